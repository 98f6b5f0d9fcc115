"""Cholesky and solve on Python numbers, compared with mpmath and python-flint; products, compared with loops over
their numbers.

    python bindings/python/bench.py [--order 500] [--precision 512] [--runs 5]
    python bindings/python/bench.py --borders [--order 300] [--precision 256]
    python bindings/python/bench.py --general [--order 300] [--precision 1024]

mpmath is timed at a smaller order and extrapolated by n³. Conversions are part of our times; their share is shown. With
`--borders` a product of two matrices of each type is compared with the product of two `sunzi.Matrix`, and with a loop
that only reads the entries of both operands as integers and makes the objects of the result from integers. With
`--general` a system with a general matrix is solved by LU, from and to an `arb_mat`. Our result has no radii, so that
both methods of python-flint are timed: the one that encloses the solution, and `algorithm="approx"`, which does not.
"""

import argparse
import time
from collections.abc import Callable

import flint
import gmpy2
import mpmath

import sunzi


def best(runs: int, work: Callable[[], object]) -> float:
    """The shortest time of `work` in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def entries(order: int, precision: int) -> list[list[gmpy2.mpfr]]:
    """Positive definite, every entry with all its bits in use."""
    with gmpy2.context(precision=precision):
        root = [gmpy2.sqrt(gmpy2.mpfr(i + 2)) for i in range(order)]
        return [[1 / (root[i] + root[j]) + (order if i == j else 0) for j in range(order)] for i in range(order)]


def ours(runs: int, call: Callable[[dict[str, float]], object]) -> str:
    """The best run, and its share of conversions."""
    reports: list[dict[str, float]] = []
    call({})  # threads and tables

    def work() -> None:
        reports.append({})
        call(reports[-1])

    seconds = best(runs, work)
    total = lambda report: report["input_seconds"] + report["compute_seconds"] + report["output_seconds"]
    report = min(reports, key=total)
    share = 1 - report["compute_seconds"] / total(report)
    ours.seconds = seconds  # type: ignore[attr-defined]
    parts = ", ".join(f"{name} {report[name + '_seconds']:.3f}" for name in ("input", "compute", "output"))
    return f"{seconds:.3f} s, {share:.0%} conversions ({parts}); planned {report.get('planned_bytes', 0) / 1e6:.1f} MB"


def read_and_make_mpf(a: list[list[mpmath.mpf]], b: list[list[mpmath.mpf]]) -> object:
    """Reads two lists of rows and makes a third."""
    for matrix in (a, b):
        for row in matrix:
            for x in row:
                sign, mantissa, exponent, bits = x._mpf_
    make = mpmath.mp.make_mpf
    return [[make((x._mpf_[0], x._mpf_[1], x._mpf_[2], x._mpf_[3])) for x in row] for row in a]


def read_and_make_mpmath(a: mpmath.matrix, b: mpmath.matrix) -> object:
    """Reads two matrices and makes a third."""
    for matrix in (a, b):
        for x in matrix:
            sign, mantissa, exponent, bits = x._mpf_
    make = mpmath.mp.make_mpf
    return mpmath.matrix([[make(x._mpf_) for x in row] for row in a.tolist()])


def read_and_make_arb(a: flint.arb_mat, b: flint.arb_mat) -> object:
    """Reads two matrices and makes a third."""
    parts: list[tuple[int, int]] = []
    for matrix in (a, b):
        parts = []
        for x in matrix.entries():
            mantissa, exponent = x.man_exp()
            parts.append((int(mantissa), int(exponent)))
    return flint.arb_mat(a.nrows(), a.ncols(), [flint.arb(pair) for pair in parts])


def borders(order: int, precision: int, runs: int, context: sunzi.Context) -> None:
    """Products from and to the types of other packages."""
    rows = entries(order, precision)
    a, b = sunzi.Matrix(rows), sunzi.Matrix([row[::-1] for row in rows])
    product = best(runs, lambda: sunzi.gemm(a, b, context=context))
    print(f"product of two Matrix: {product:.4f} s")
    flints = lambda m: m.to_flint()
    lists = lambda m: m.to_list("mpmath")
    kinds: list[tuple[str, Callable[[sunzi.Matrix], object], Callable[..., object] | None]] = [
        ("gmpy2.mpfr in lists", lambda m: m.to_gmpy2(), None),
        ("mpmath.mpf in lists", lists, read_and_make_mpf),
        ("mpmath.matrix", lambda m: m.to_mpmath(), read_and_make_mpmath),
        ("flint.arb_mat", flints, read_and_make_arb),
    ]
    for name, convert, loop in kinds:
        left, right = convert(a), convert(b)
        report: dict[str, float] = {}
        seconds = best(runs, lambda: sunzi.gemm(left, right, context=context, report=report))
        parts = ", ".join(f"{part} {report[part + '_seconds']:.3f}" for part in ("input", "compute", "output"))
        text = f"{name}: {seconds:.4f} s ({parts}), {seconds / product:.2f} times as long as of two Matrix"
        if loop is not None:
            only = best(runs, lambda: loop(left, right))
            text += f", {seconds / only:.2f} times as long as the loop ({only:.4f} s)"
        print(text)


def general(order: int, precision: int, runs: int, context: sunzi.Context) -> None:
    """A system with a general matrix, from and to an `arb_mat`."""
    with gmpy2.context(precision=precision):
        state = gmpy2.random_state(order)
        rows = [[gmpy2.mpfr_random(state) - 0.5 for _ in range(order)] for _ in range(order)]
    a = sunzi.Matrix(rows).to_flint()
    b = sunzi.Matrix([[gmpy2.mpfr(i, precision)] for i in range(order)]).to_flint()
    seconds = best(runs, lambda: sunzi.lu(a, context=context).solve(b, context=context))
    print(f"order {order}, {precision} bits, {context.threads} threads")
    print(f"sunzi.lu(a).solve(b), flint.arb_mat: {seconds:.3f} s")
    for algorithm in (None, "approx"):
        slow = best(min(runs, 2), lambda: a.solve(b, algorithm=algorithm))
        print(f"flint.arb_mat.solve, {algorithm=}: {slow:.2f} s: {slow / seconds:.1f} times as long")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--borders", action="store_true")
    parser.add_argument("--general", action="store_true")
    parser.add_argument("--order", type=int, default=500)
    parser.add_argument("--small-order", type=int, default=100)
    parser.add_argument("--precision", type=int, default=512)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    order, small, precision, runs = options.order, options.small_order, options.precision, options.runs
    context = sunzi.Context(threads=options.threads)
    mpmath.mp.prec = flint.ctx.prec = precision
    if options.borders:
        borders(order, precision, runs, context)
        return
    if options.general:
        general(order, precision, runs, context)
        return
    a = entries(order, precision)
    print(f"order {order}, {precision} bits, {context.threads} threads, kernel {context.kernel}")

    print("sunzi.cholesky, gmpy2.mpfr: ", ours(runs, lambda r: sunzi.cholesky(a, context=context, report=r)))
    seconds = ours.seconds  # type: ignore[attr-defined]
    matrix = sunzi.Matrix(a).to_mpmath()
    print("sunzi.cholesky, mpmath:     ", ours(runs, lambda r: sunzi.cholesky(matrix, context=context, report=r)))
    corner = matrix[:small, :small]
    slow = best(min(runs, 3), lambda: mpmath.cholesky(corner)) * (order / small) ** 3
    ratio = slow / seconds
    print(f"mpmath.cholesky:             {slow:.1f} s from order {small}: {ratio:.0f} times as long as gmpy2.mpfr")

    b = [[gmpy2.mpfr(i, precision)] for i in range(order)]
    print("sunzi.solve, gmpy2.mpfr:    ", ours(runs, lambda r: sunzi.solve(a, b, context=context, report=r)))
    balls, right = sunzi.Matrix(a).to_flint(), sunzi.Matrix(b).to_flint()
    print("sunzi.solve, flint.arb_mat: ", ours(runs, lambda r: sunzi.solve(balls, right, context=context, report=r)))
    seconds = ours.seconds  # type: ignore[attr-defined]
    slow = best(1, lambda: balls.solve(right))
    print(f"flint.arb_mat.solve:         {slow:.1f} s: {slow / seconds:.1f} times as long as ours on its type")


if __name__ == "__main__":
    main()
