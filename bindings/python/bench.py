"""Cholesky and solve on Python numbers, compared with mpmath and python-flint.

    python bindings/python/bench.py [--order 500] [--precision 512] [--runs 5]

mpmath is timed at a smaller order and extrapolated by n³. Conversions are part of our times; their share is shown.
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--order", type=int, default=500)
    parser.add_argument("--small-order", type=int, default=100)
    parser.add_argument("--precision", type=int, default=512)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    order, small, precision, runs = options.order, options.small_order, options.precision, options.runs
    context = sunzi.Context(threads=options.threads)
    mpmath.mp.prec = flint.ctx.prec = precision
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
