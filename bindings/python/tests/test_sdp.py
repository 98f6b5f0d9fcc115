"""Semidefinite programs: known optima in every form of matrices and numbers, files, polynomials, options, stopping."""

import doctest
import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy
import pytest
from conftest import KINDS, exact

import sunzi
from sunzi import sdp

ONE = [[1, 0], [0, 1]]
SWAP = [[0, 1], [1, 0]]
EIGENVALUE = "1\n1\n2\n1\n0 1 1 2 1\n1 1 1 1 1\n1 1 2 2 1\n"
OPTIMAL = "found primal-dual optimal solution"


def near(value: object, expected: object, digits: int = 28) -> bool:
    return abs(exact(value) - Fraction(expected)) < Fraction(1, 10**digits)  # type: ignore[arg-type]


def matrices(number: Callable[[Fraction], object]) -> tuple[list[object], list[object]]:
    """The least `2 u + 3 v` with [[u, 1/2], [1/2, v]] >= 0 and v <= 1/4."""
    value = lambda text: number(Fraction(text))
    zero = value("0")
    corner = lambda at: [[value("1") if (i, j) == (at, at) else zero for j in range(2)] for i in range(2)]
    dense = ([[zero, value("-1/2")], [value("-1/2"), zero]], [corner(0), corner(1)])
    diagonal = ([value("-1/4")], [None, [value("-1")]])
    return [value("2"), value("3")], [dense, diagonal]


# At v = 1/4 the determinant asks for u >= 1. Without that bound v were 1 / sqrt(6), which is more.
OPTIMUM = Fraction(11, 4)


def test_every_kind_of_number(kind: str) -> None:
    c, blocks = matrices(KINDS[kind])
    solution = sdp.solve(c, blocks, precision=256)
    assert solution.termination == OPTIMAL and solution.is_optimal and solution.precision_bits == 256
    assert near(solution.primal_objective, OPTIMUM) and near(solution.dual_objective, OPTIMUM)
    assert type(solution.x) is list and type(solution.x[0]) is type(solution.primal_objective)
    assert near(solution.x[0], 1, 20) and near(solution.x[1], Fraction(1, 4), 20) and solution.y == []
    assert [len(block) for block in solution.X] == [2, 1] and near(solution.X[0][0][1], Fraction(1, 2), 20)
    assert near(solution.Y[1][0], 5, 20), "what the bound on v costs"
    assert solution.gap < 1e-30 and 0 < solution.iterations < 60 and solution.phases["schur"] >= 0
    assert len(solution.dimacs_errors) == 6 and 0 < solution.dimacs_errors[5] < 1e-28
    assert str(solution.iterations) in repr(solution)


def test_every_form_of_a_matrix_is_the_same_program() -> None:
    c, ((constant, (first, second)), diagonal) = matrices(str)
    expected = sdp.solve(c, [(constant, [first, second]), diagonal])
    assert expected.precision_bits == 400
    forms = [
        (numpy.array(constant, dtype=object), [tuple(map(tuple, first)), numpy.array(second, dtype=object)]),
        ({(1, 0): "-1/2"}, [{(0, 0): 1}, {(1, 1): "1", (0, 0): 0}]),
        ({(0, 1): "-1/2"}, [mpmath.matrix(first), sunzi.Matrix(second, precision=64)]),
    ]
    for block in forms:
        found = sdp.solve(c, [block, ({(0, 0): "-1/4"}, [None, {(0, 0): -1}])], precision=400)
        assert all(near(value, exact(other), 115) for value, other in zip(found.x, expected.x, strict=True)), block
        assert found.iterations == expected.iterations
    whole = sdp.solve(sunzi.Matrix(c, precision=400), [forms[1], diagonal])
    assert isinstance(whole.x, sunzi.Matrix) and isinstance(whole.X[0], sunzi.Matrix) and whole.X[1].shape == (1, 1)
    assert near(whole.x[0, 0], exact(expected.x[0]), 115)
    array = sdp.solve(numpy.array(["2", "3"], dtype=object), [forms[0], diagonal])
    assert isinstance(array.X[0], numpy.ndarray) and array.X[0].shape == (2, 2) and array.x.shape == (2,)
    doubles = sdp.solve(numpy.array([2.0, 3.0]), [forms[1], (numpy.array([-0.25]), [None, numpy.array([-1.0])])])
    assert doubles.x.dtype == numpy.float64 and abs(doubles.x[0] - 1) < 1e-15 and doubles.precision_bits == 400


def test_precision_is_what_numbers_bring_along() -> None:
    mpmath.mp.prec = 500
    solution = sdp.solve([mpmath.mpf(1)], [(SWAP, [ONE])], dualityGapThreshold="1e-60", primalErrorThreshold="1e-60")
    assert solution.precision_bits == 500 and near(solution.primal_objective, 1, 58)
    assert sdp.solve([1], [(SWAP, [ONE])], precision=130).precision_bits == 130


def test_equations() -> None:
    """`min 2 u + 3 v` with `u, v >= 0` and `u + v = 5`."""
    solution = sdp.solve(["2", "3"], [(None, [[1, 0], [0, 1]])], equations=([["1"], ["1"]], ["5"]))
    assert solution.is_optimal and near(solution.primal_objective, 10)
    assert near(solution.x[0], 5, 20) and near(solution.y[0], 2, 20)
    with pytest.raises(ValueError, match="B is 1 x 1"):
        sdp.solve(["2", "3"], [(None, [[1, 0], [0, 1]])], equations=([["1"]], ["5"]))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.dat-s"
    path.write_text(EIGENVALUE)
    from_file = sdp.solve_file(path, precision=200)
    assert from_file.is_optimal and isinstance(from_file.x, sunzi.Matrix) and type(from_file.gap) is float
    assert type(from_file.primal_objective) is Fraction
    here = sdp.solve([1], [(SWAP, [ONE])], precision=200, context=sunzi.Context(threads=2))
    assert [from_file.x[0, 0]] == here.x and from_file.Y[0].to_list() == here.Y[0], "the same bits"
    text = sdp.solve_file(str(path), numbers="mpmath", precision=200)
    assert isinstance(text.primal_objective, mpmath.mpf) and exact(text.primal_objective) == from_file.primal_objective
    with pytest.raises(FileNotFoundError):
        sdp.solve_file(tmp_path / "none.dat-s")
    path.write_text(EIGENVALUE.replace("1 1 2 2 1", "1 1 2 3 1"))
    with pytest.raises(ValueError, match="column 3 is outside"):
        sdp.solve_file(path)


@pytest.mark.parametrize("convert", [int, float, str, mpmath.mpf, Fraction])
def test_polynomials(convert: Callable[[int], object]) -> None:
    """x^2 - 4 x + 7 - y >= 0."""
    numbers = [convert(value) for value in (7, -4, 1)]
    polynomials = [[[numbers, numpy.array([convert(-1)], dtype=object)]]]
    program = {"objective": [0, convert(1)], "PositiveMatrixWithPrefactorArray": [{"polynomials": polynomials}]}
    solution = sdp.solve_polynomials(program, precision=300)
    assert solution.is_optimal and near(solution.dual_objective, 3) and near(solution.y[0, 0], 3, 20)


def test_rounded_numbers_of_polynomials_keep_their_digits() -> None:
    third = {"polynomials": [[[[Fraction(1, 3)], [-1]]]]}
    solution = sdp.solve_polynomials({"objective": [0, 1], "PositiveMatrixWithPrefactorArray": [third]}, precision=300)
    assert near(solution.dual_objective, Fraction(1, 3), 29)


def test_options_and_progress() -> None:
    seen: list[sdp.Iteration] = []
    solution = sdp.solve([1], [(SWAP, [ONE])], maxIterations=3, progress=seen.append)
    assert solution.termination == "maxIterations exceeded" and not solution.is_optimal
    assert [iteration.number for iteration in seen] == [1, 2, 3]
    assert seen[2].mu < seen[0].mu and seen[0].precision_bits < 400 and 0 < seen[0].primal_step <= 1
    full = sdp.solve([1], [(SWAP, [ONE])], ramp=False, maxIterations=1, progress=seen.append)
    assert seen[-1].precision_bits == 400 and full.iterations == 1
    found = sdp.solve([1], [(SWAP, [ONE])], findPrimalFeasible=True)
    assert found.termination == "found primal feasible solution"
    infeasible = sdp.solve([1], [([1, 1], [[1, -1]])])
    assert infeasible.termination == "primal infeasible"
    with pytest.raises(TypeError, match="'maxIteration'.*maxIterations"):
        sdp.solve([1], [(SWAP, [ONE])], maxIteration=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="maxIterations"):
        sdp.solve([1], [(SWAP, [ONE])], maxIterations="many")  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError), match="dualityGapThreshold"):
        sdp.solve([1], [(SWAP, [ONE])], dualityGapThreshold="small")


def test_bad_programs_are_named() -> None:
    bad: list[tuple[type[Exception], str, list[object], list[object]]] = [
        (sunzi.NotSymmetricError, "block 0: A_0", [1], [(SWAP, [[[1, 0], [2, 1]]])]),
        (ValueError, "block 0: C is 2 x 3", [1], [([[1, 2, 3], [4, 5, 6]], [ONE])]),
        (ValueError, "block 1 has 2 matrices", [1], [(SWAP, [ONE]), (None, [ONE, ONE])]),
        (ValueError, "differ in shape", [1], [(SWAP, [[1, 2]])]),
        (ValueError, "given twice", [1], [({(0, 1): 1, (1, 0): 1}, [ONE])]),
        (ValueError, "outside of the block", [1], [({(2, 1): 1}, [ONE])]),
        (ValueError, "constraint 2 is inconsistent", [1, 1], [(SWAP, [ONE, None])]),
        (ValueError, "a pair", [1], [(SWAP, ONE, ONE)]),
        (ValueError, "c is 0 x 0", [], [(SWAP, [])]),
        (ValueError, "nothing to solve", [1], []),
        (TypeError, "blocks must be a list", [1], SWAP[0][0]),  # type: ignore[list-item]
        (TypeError, "is not a pair of indices", [1], [({"a": 1}, [ONE])]),
        (ValueError, "c is 1 x 2", [[1, 2]], [(SWAP, [ONE, ONE])]),
        (ValueError, "row 0, column 0", [math.nan], [(SWAP, [ONE])]),
    ]
    for error, words, c, blocks in bad:
        with pytest.raises(error, match=words):
            sdp.solve(c, blocks)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1 bits"):
        sdp.solve([1], [(SWAP, [ONE])], precision=1)


def test_an_exception_in_progress_ends_the_run() -> None:
    def stop(iteration: sdp.Iteration) -> None:
        if iteration.number == 2:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        sdp.solve([1], [(SWAP, [ONE])], progress=stop)
    with pytest.raises(TypeError, match="callable"):
        sdp.solve([1], [(SWAP, [ONE])], progress=3)  # type: ignore[arg-type]


def test_a_memory_limit_is_kept() -> None:
    program = ([1], [(SWAP, [ONE])])
    with pytest.raises(sunzi.MemoryLimitError) as refused:
        sdp.solve(*program, context=sunzi.Context(threads=1, memory=1000))
    least = refused.value.minimum_bytes
    limited = sdp.solve(*program, context=sunzi.Context(threads=1, memory=least))
    assert limited.x == sdp.solve(*program).x
    with pytest.raises(sunzi.MemoryLimitError):
        sdp.solve(*program, context=sunzi.Context(threads=1, memory=least - 1))


def test_checkpoints(tmp_path: Path) -> None:
    """Runs in parts have the bits of a whole one."""
    c, blocks = matrices(str)
    folder = tmp_path / "states"
    solve = lambda **given: sdp.solve(c, blocks, precision=300, ramp=False, **given)
    whole, seen = solve(), list[int]()
    first = solve(checkpoint=folder, maxIterations=5)
    assert first.iterations == 5 and (folder / "checkpoint.bin").exists()
    rest = solve(checkpoint=str(folder), progress=lambda one: seen.append(one.number))
    assert seen[0] == 6 and rest.iterations == whole.iterations
    assert (rest.x, rest.X, rest.Y) == (whole.x, whole.X, whole.Y)
    again = solve(initial_checkpoint=folder, checkpoint=tmp_path / "other", checkpoint_interval=0.5)
    assert again.x == whole.x and again.iterations == whole.iterations and (tmp_path / "other").exists()


def test_what_an_exception_ends_goes_on(tmp_path: Path) -> None:
    """The state is that after the iteration in which the run heard of it, precision included."""
    n = 20
    block = ({(i, i + 1): 1 for i in range(n - 1)}, [{(i, i): 1} for i in range(n)])

    def stop(iteration: sdp.Iteration) -> None:
        if iteration.number >= 3:
            raise KeyError("enough")

    whole = sdp.solve([1] * n, [block], precision=600)
    with pytest.raises(KeyError, match="enough"):
        sdp.solve([1] * n, [block], precision=600, checkpoint=tmp_path, progress=stop)
    assert (tmp_path / "checkpoint.bin").exists()
    rest = sdp.solve([1] * n, [block], precision=600, checkpoint=tmp_path)
    assert rest.x == whole.x and rest.iterations == whole.iterations


def test_bad_checkpoints_are_named(tmp_path: Path) -> None:
    program = ([1], [(SWAP, [ONE])])
    with pytest.raises(ValueError, match="the directory has no checkpoint"):
        sdp.solve(*program, initial_checkpoint=tmp_path)
    with pytest.raises(ValueError, match="checkpoint_interval"):
        sdp.solve(*program, checkpoint_interval=3)
    with pytest.raises(ValueError, match="checkpoint_interval"):
        sdp.solve(*program, checkpoint=tmp_path, checkpoint_interval=-1)
    with pytest.raises(TypeError, match="checkpoint"):
        sdp.solve(*program, checkpoint=3)  # type: ignore[arg-type]
    sdp.solve(*program, checkpoint=tmp_path, maxIterations=2)
    with pytest.raises(ValueError, match="another program"):
        sdp.solve([1], [([[0, 1, 0], [1, 0, 1], [0, 1, 0]], [numpy.eye(3)])], checkpoint=tmp_path)
    edited = ([1], [([[0, 2], [2, 0]], [ONE])])
    with pytest.raises(ValueError, match="initial_checkpoint"):
        sdp.solve(*edited, checkpoint=tmp_path)
    assert sdp.solve(*edited, initial_checkpoint=tmp_path).is_optimal


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupt(threads: int) -> None:
    """A run of minutes ends soon after Ctrl-C, and another one begins."""
    code = (
        "import os, signal, sunzi, sunzi.sdp, threading, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "n = 60\n"
        "block = lambda: ({(i, i + 1): 1 for i in range(n - 1)}, [{(i, i): 1, (0, 0): 1} for i in range(n)])\n"
        "blocks = [block(), block()]\n"
        "threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        f"context = sunzi.Context(threads={threads})\n"
        "try:\n"
        "    sunzi.sdp.solve([1] * n, blocks, precision=4000, ramp=False, context=context)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "print(sunzi.sdp.solve([1], [([[0, 1], [1, 0]], [[[1, 0], [0, 1]]])], context=context).is_optimal)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (0, "interrupted\nTrue\n"), run.stderr


def test_doctests() -> None:
    found = [test for test in doctest.DocTestFinder().find(sdp) if test.examples]
    assert {test.name for test in found} == {"sunzi.sdp.solve", "sunzi.sdp.solve_polynomials"}
    runner = doctest.DocTestRunner()
    assert all(runner.run(test).failed == 0 for test in found)
