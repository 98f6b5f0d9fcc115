"""Long calls: progress, cancelling, Ctrl-C, threads, forks, flat memory."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import flint
import gmpy2
import mpmath
import numpy as np
import pytest
from conftest import BITS, positive_definite, random_rows

import sunzi


def large(order: int = 400, bits: int = 1500) -> sunzi.Matrix:
    """Takes a second or more to factor on one thread."""
    rows = [[Fraction(1, i + j + 1) + (i == j) for j in range(order)] for i in range(order)]
    return sunzi.Matrix(rows, precision=bits)


def test_progress() -> None:
    seen: list[tuple[int, int]] = []
    thread = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        thread.append(threading.get_ident())

    matrix = large(300)
    factor = matrix.cholesky(progress=progress, context=sunzi.Context(threads=1))
    assert seen and all(0 <= done <= total for done, total in seen) and seen == sorted(seen)
    assert set(thread) == {threading.get_ident()}
    assert factor == matrix.cholesky()


def test_progress_cancels() -> None:
    class Enough(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise Enough(f"{done} of {total}")

    matrix, context = large(300), sunzi.Context(threads=2)
    calls = [
        lambda: sunzi.cholesky(matrix, progress=stop, context=context),
        lambda: sunzi.syrk(matrix, progress=stop, context=context),
        lambda: sunzi.solve(matrix, matrix, progress=stop, context=context),
        lambda: sunzi.Cholesky(matrix, progress=stop, context=context),
        lambda: sunzi.log_det(matrix, progress=stop, context=context),
    ]
    for call in calls:
        with pytest.raises(Enough, match="of"):
            call()
    assert matrix.cholesky(context=context) == matrix.cholesky(), "the context works on"


def test_progress_may_call_back() -> None:
    inner: list[object] = []
    context = sunzi.Context(threads=2)
    progress = lambda done, total: inner.append(sunzi.cholesky([[4.0]], context=context))
    large(250).cholesky(progress=progress, context=context)
    assert inner and all(result == [[2.0]] for result in inner)


def test_cancelling_is_quick() -> None:
    # Seconds of the processor: other programs on the machine take none of them.
    matrix, context = large(), sunzi.Context(threads=1)
    start = time.process_time()
    matrix.cholesky(context=context)
    whole = time.process_time() - start

    def stop(done: int, total: int) -> None:
        raise KeyError

    start = time.process_time()
    with pytest.raises(KeyError):
        matrix.cholesky(context=context, progress=stop)
    assert time.process_time() - start < 0.5 * whole + 0.3


def test_interrupt() -> None:
    code = (
        "import os, signal, sunzi, threading, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background may ignore it
        "n = 700\n"
        "m = sunzi.Matrix.identity(n, precision=3000) * 5\n"
        "m = m + sunzi.Matrix([[1.0 / (i + j + 1) for j in range(n)] for i in range(n)])\n"
        "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "start = time.monotonic()\n"
        "try:\n"
        "    while time.monotonic() < start + 60: m.cholesky(context=sunzi.Context(threads=1))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted'); raise SystemExit(0)\n"
        "raise SystemExit('no interrupt came through')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout) == (0, "interrupted\n"), run.stderr


def test_the_interpreter_is_free_meanwhile() -> None:
    matrix, counted, at_work = large(), [0], threading.Event()

    def count() -> None:
        while not at_work.is_set():
            counted[0] += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    start = time.monotonic()
    matrix.cholesky(context=sunzi.Context(threads=1))
    seconds = time.monotonic() - start
    at_work.set()
    other.join()
    assert counted[0] > 20 * seconds, f"{counted[0]} steps in {seconds} seconds"


@pytest.mark.parametrize("shared", [True, False])
def test_many_threads_at_once(shared: bool) -> None:
    context = sunzi.Context(threads=2)
    jobs = [(positive_definite(12 + k % 5, seed=k), k) for k in range(24)]
    expected = [sunzi.cholesky(a, precision=100 + 16 * k) for a, k in jobs]

    def work(job: tuple[list[list[Fraction]], int]) -> object:
        a, k = job
        return sunzi.cholesky(a, precision=100 + 16 * k, context=context if shared else sunzi.Context(threads=1))

    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(work, jobs)) == expected


def test_one_matrix_in_many_threads() -> None:
    p = sunzi.Matrix(random_rows(60, 30, 150, seed=5), precision=BITS)
    gram = p.T @ p
    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(lambda _: p.T @ p == gram and gram.cholesky().shape == (30, 30), range(30)))


def test_fork() -> None:
    """A child gets threads of its own, also where the parent's are at work; the parent's stay what they are."""
    p = sunzi.Matrix(random_rows(80, 40, 150, seed=6), precision=BITS)
    context = sunzi.Context(threads=2)
    gram = sunzi.syrk(p, context=context)
    busy = threading.Thread(target=lambda: [sunzi.syrk(p, context=context) for _ in range(20)])
    busy.start()
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            same = sunzi.syrk(p, context=context) == gram and sunzi.syrk(p) == gram
            os._exit(0 if same else 1)
        children.append(child)
    deadline = time.monotonic() + 60
    while children and time.monotonic() < deadline:
        for child in list(children):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                children.remove(child)
                assert status == 0
        time.sleep(0.01)
    for child in children:
        os.kill(child, signal.SIGKILL)
    busy.join()
    assert not children, "a child hangs"
    assert sunzi.syrk(p, context=context) == gram


def test_the_collector_is_left_as_it_was() -> None:
    matrix = sunzi.Matrix([["1e400", 1]], precision=60)
    try:
        for switch, runs in ((gc.disable, False), (gc.enable, True)):
            switch()
            matrix.to_list("mpmath"), matrix.to_flint(), sunzi.syrk(flint.arb_mat([[1, 2]]))
            assert gc.isenabled() == runs
            with pytest.raises(OverflowError):
                matrix.to_list("float")
            assert gc.isenabled() == runs
    finally:
        gc.enable()


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rounds(numbers: str) -> object:
    """One round of conversions, calls and errors on numbers of a kind."""
    a = sunzi.Matrix(positive_definite(24, seed=7), precision=700, numbers=numbers)
    rows = a.to_list()
    array = a.to_numpy()

    def work() -> None:
        sunzi.cholesky(rows)
        sunzi.solve(array, rows)
        sunzi.log_det(a)
        (a.T @ a).to_list()
        for bad in ([[rows[0][0], None]], [[float("nan")]]):
            with pytest.raises((TypeError, ValueError)):
                sunzi.cholesky(bad)
        with pytest.raises(ZeroDivisionError):
            a.cholesky(progress=lambda done, total: 1 / 0)

    return work


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="asks Linux for the resident memory")
@pytest.mark.parametrize("numbers", ["gmpy2", "mpmath", "flint", "fraction", "str"])
def test_memory_stays_flat(numbers: str) -> None:
    mpmath.mp.prec = flint.ctx.prec = 700
    work = rounds(numbers)
    if numbers in ("fraction", "str"):
        inner = sunzi.Matrix(positive_definite(24, seed=7), precision=700, numbers=numbers).to_list()
        work = lambda: sunzi.cholesky(inner, precision=700)
    for _ in range(20):
        work()
    gc.collect()
    before = resident_bytes()
    for _ in range(120):
        work()
    gc.collect()
    grown = resident_bytes() - before
    # One round holds half a megabyte of numbers: a leak of a hundredth of them would show.
    assert grown < 3 << 20, f"{grown} bytes more after 120 rounds"


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss in kilobytes")
@pytest.mark.parametrize("operation", ["syrk", "cholesky"])
def test_memory_is_as_planned(operation: str) -> None:
    """The peak of a process against the plan, and the operand on top where it is Python numbers."""
    code = (
        "import gmpy2, resource, sunzi, sys\n"
        "n, bits, operation = 300, 1024, sys.argv[1]\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "context = sunzi.Context(threads=2)\n"
        "entry = lambda i, j: gmpy2.mpfr(n if i == j else 1, bits)\n"
        "rows = [[entry(i, j) for j in range(n)] for i in range(n)]\n"
        "matrix = sunzi.Matrix(rows)\n"
        "sizes = (n, n) if operation == 'syrk' else (n,)\n"
        "promise = {'accuracy': 'norm', 'context': context}\n"
        "planned = sunzi.plan(operation, *sizes, precision=bits, **promise)['planned_bytes']\n"
        "call, report = getattr(sunzi, operation), {}\n"
        "before = peak()\n"
        "call(matrix, report=report, **promise)\n"
        "print(planned, report['planned_bytes'], peak() - before, matrix.nbytes)\n"
        "before = peak()\n"
        "call(rows, **promise)\n"
        "print(peak() - before)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, operation], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    planned, reported, grown, operand, grown_with_objects = map(int, run.stdout.split())
    assert planned == reported
    # Stacks, and the full matrix of which a syrk computes half.
    assert grown <= planned + operand + (8 << 20), run.stdout
    # The operand in the library's form, and new objects for the result.
    assert grown_with_objects <= planned + 4 * operand + (8 << 20), run.stdout


def test_objects_are_not_kept() -> None:
    number = gmpy2.mpfr("1.5", 300)
    array = np.full((20, 20), number, dtype=object)
    before = sys.getrefcount(number)
    for _ in range(50):
        sunzi.syrk(array)
        with pytest.raises(ValueError):
            sunzi.gemm(array, [[1.0]])
    assert sys.getrefcount(number) == before


def test_inputs_do_not_change() -> None:
    array = np.array(sunzi.Matrix(positive_definite(9, seed=8), precision=BITS).to_gmpy2(), dtype=object)
    before = [gmpy2.to_binary(value) for value in array.flat]
    sunzi.cholesky(array)
    sunzi.solve(array, array)
    assert [gmpy2.to_binary(value) for value in array.flat] == before


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="asks Linux for the resident memory")
def test_caches_of_threads_are_given_back() -> None:
    """MPFR keeps constants for logarithms, a kilobyte or two at 5000 bits for each thread that takes one."""
    a, context = sunzi.Matrix([["3.7"]], precision=5000), sunzi.Context(threads=1)
    factor = sunzi.Cholesky(a, context=context)

    def take() -> None:
        sunzi.log_det(a, context=context)
        thread = threading.Thread(target=factor.log_det)
        thread.start()
        thread.join()

    for _ in range(200):
        take()
    before = resident_bytes()
    for _ in range(800):
        take()
    assert resident_bytes() - before < 1 << 19


def interrupted_after(seconds: float, work: Callable[[], object]) -> None:
    """Expects that a signal ends `work` long before it would end itself."""

    def stop(*_: object) -> None:
        raise TimeoutError

    # Seconds of the processor: other programs on the machine take none of them.
    start = time.process_time()
    work()
    whole = time.process_time() - start
    old = signal.signal(signal.SIGALRM, stop)
    try:
        start = time.process_time()
        # The signal must not come before pytest expects it, however busy the machine is.
        with pytest.raises(TimeoutError):
            signal.setitimer(signal.ITIMER_REAL, seconds)
            work()
        assert time.process_time() - start < seconds + whole / 2, whole
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
def test_conversions_and_sums_look_for_signals() -> None:
    a = sunzi.Matrix(np.arange(4.0e5).reshape(2, 200_000), precision=2000)
    column = a[0].T.copy()
    numbers = [[Fraction(1, 3)] * 200_000]
    work = {
        "times": lambda: a * Fraction(1, 3),
        "a column": lambda: column * Fraction(1, 3),
        "round": lambda: a.rounded(1500),
        "plus": lambda: a + a,
        "out": lambda: a.to_list("str"),
        "in": lambda: sunzi.Matrix(numbers, precision=2000),
    }
    for call in work.values():
        interrupted_after(0.005, call)


@pytest.mark.parametrize("conversion", ["in", "out"])
def test_other_threads_run_while_numbers_are_converted(conversion: str) -> None:
    rows = [["0.1"] * 400 for _ in range(300 if conversion == "in" else 100)]
    matrix = sunzi.Matrix(rows, precision=3000, numbers="str")
    work = {"in": lambda: sunzi.Matrix(rows, precision=3000), "out": matrix.to_list}[conversion]
    steps, at_work = [0], threading.Event()

    def count() -> None:
        while not at_work.is_set():
            steps[0] += 1
            time.sleep(0)

    other = threading.Thread(target=count)
    other.start()
    steps_before = steps[0]
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    steps_meanwhile = steps[0] - steps_before
    at_work.set()
    other.join()
    # It gets the lock about every ten milliseconds, and not once at the end.
    assert steps_meanwhile > 20 * seconds, f"{steps_meanwhile} steps in {seconds} seconds"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
@pytest.mark.parametrize("name, rows", [("a.csv", 100), ("a.bin", 900), ("a.json.gz", 100)])
def test_signals_end_reading_and_writing(tmp_path: Path, name: str, rows: int) -> None:
    """Within the time that a signal takes to be noticed; of what was being written nothing stays."""
    matrix = sunzi.Matrix(np.arange(1.0, 300.0 * rows + 1).reshape(rows, 300), precision=4000) / 3
    complete = tmp_path / name
    interrupted_after(0.01, lambda: matrix.save(complete))
    interrupted_after(0.01, lambda: sunzi.Matrix.load(complete, precision=4000))
    assert sunzi.Matrix.load(complete, precision=4000) == matrix
    other = tmp_path / f"other-{name}"
    with pytest.raises(ZeroDivisionError):
        matrix.save(other, progress=lambda done, total: 1 / 0)
    assert list(tmp_path.iterdir()) == [complete]
