"""Documentation that runs, examples that run, types, what the package exports."""

import doctest
import inspect
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import sunzi
import sunzi._functions

HERE = Path(__file__).parent
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def documented() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    objects = [sunzi, *(getattr(sunzi, name) for name in sunzi.__all__ if not name.startswith("_"))]
    parser = doctest.DocTestParser()
    texts = {getattr(thing, "__name__", "?"): inspect.getdoc(thing) or "" for thing in objects}
    assert finder is not None and len(texts) == len(objects)
    return [parser.get_doctest(text, {}, name, None, 0) for name, text in texts.items() if ">>>" in text]


@pytest.mark.parametrize("test", documented(), ids=lambda test: test.name)
def test_doctests(test: doctest.DocTest) -> None:
    assert test.examples
    output: list[str] = []
    failures, _ = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=output.append)
    assert failures == 0, "".join(output)


def test_there_are_doctests() -> None:
    names = {test.name for test in documented()}
    assert names >= {"sunzi", "Matrix", "Context", "Cholesky"}
    assert names >= {"syrk", "gemm", "trsm", "cholesky", "solve", "log_det", "plan"}


@pytest.mark.parametrize("path", sorted((HERE.parent / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


def test_benchmark_runs_small(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["bench.py", "--order", "20", "--small-order", "10", "--runs", "1"])
    runpy.run_path(str(HERE.parent / "bench.py"), run_name="__main__")
    assert "times as long" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["bench.py", "--borders", "--order", "20", "--precision", "256", "--runs", "1"])
    runpy.run_path(str(HERE.parent / "bench.py"), run_name="__main__")
    assert capsys.readouterr().out.count("times as long as the loop") == 3
    monkeypatch.setattr(sys, "argv", ["bench.py", "--general", "--order", "20", "--precision", "256", "--runs", "1"])
    runpy.run_path(str(HERE.parent / "bench.py"), run_name="__main__")
    assert capsys.readouterr().out.count("times as long") == 2


@pytest.mark.parametrize("name", sunzi.__all__)
def test_everything_is_documented(name: str) -> None:
    thing = getattr(sunzi, name)
    assert name == "__version__" or inspect.getdoc(thing)
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        for member, value in vars(thing).items():
            assert member.startswith("_") or inspect.getdoc(value), f"{name}.{member}"


def test_types_are_shipped_and_right(tmp_path: Path) -> None:
    """The stub against the module that is installed; the Python half is strictly typed."""
    folder = Path(sunzi.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_sunzi.pyi").exists()
    for check in (["mypy.stubtest", "sunzi"], ["mypy", "--strict", "--cache-dir", os.devnull, "-p", "sunzi"]):
        run = subprocess.run([sys.executable, "-m", *check], capture_output=True, text=True, cwd=tmp_path)
        assert run.returncode == 0, run.stdout + run.stderr


TYPES = """
import numpy
import sunzi
from typing_extensions import assert_type

array = numpy.ones((2, 2))
a = sunzi.Matrix([[2, 1], [1, 2]], precision=100)
assert_type(sunzi.cholesky(a, precision=200), sunzi.Matrix)
assert_type(sunzi.solve(a, a, digits=30), sunzi.Matrix)
assert_type(sunzi.inverse(a, precision="auto"), sunzi.Matrix)
assert_type(sunzi.exp(a), sunzi.Matrix)
assert_type(a.solve(a), sunzi.Matrix)
assert_type(sunzi.Cholesky(a).solve(a), sunzi.Matrix)
assert_type(sunzi.ldlt(a), tuple[sunzi.Matrix, sunzi.Matrix])
assert_type(sunzi.lu(array).solve(a, transposed=True), sunzi.Matrix)
assert_type(a[1:], sunzi.Matrix)
assert_type(a[:, [0]], sunzi.Matrix)
x: list[object] = sunzi.solve([[2.0]], [1.0])
shape: tuple[int, ...] = sunzi.gemm(array, array).shape
sunzi.gemv(a, array).astype(float)
sunzi.sdp.Solution
{wrong}
"""


def test_types_of_results(tmp_path: Path) -> None:
    """The result has the type of the operand that names it, and a wrong use is found."""
    for wrong, found in [("", None), ("sunzi.cholesky(a).nonsense", "attr-defined"), ("sunzi.syrk(a, uplo='l')", "arg")]:
        path = tmp_path / "uses.py"
        path.write_text(TYPES.format(wrong=wrong), encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(path)]
        run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert run.returncode == (found is not None), run.stdout + run.stderr
        assert found is None or found in run.stdout or "overload" in run.stdout, run.stdout


def test_modules_that_the_package_brings_along() -> None:
    code = "import sunzi; print(sunzi.sdp.solve.__name__, hasattr(sunzi, 'linalg'))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "solve False\n", run.stderr


def test_the_installed_package_is_tested() -> None:
    assert (HERE.parent / "python") not in Path(sunzi.__file__).parents
