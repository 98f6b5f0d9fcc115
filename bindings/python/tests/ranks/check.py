"""Verbs over the ranks of a communicator against one process, bit for bit; run by mpirun, without pytest.

The last line of rank 0 counts the checks.
"""

import random
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mpi4py import MPI

import sunzi
from sunzi.mpi import Cholesky, DistMatrix, Distribution, Ranks, elemental, rows, scalapack

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()
BITS = 220
HEIGHT = max(h for h in (1, 2, 3) if SIZE % h == 0 and h * h <= SIZE)
GRID = (HEIGHT, SIZE // HEIGHT)


def random_matrix(height: int, width: int, seed: int) -> sunzi.Matrix:
    rng = random.Random(seed)
    draw = lambda: Fraction(rng.getrandbits(BITS) * 2 + 1, 1 << (BITS + rng.randrange(-9, 9))) * rng.choice([1, -1])
    return sunzi.Matrix([[draw() for _ in range(width)] for _ in range(height)], precision=BITS)


def distributions(height: int, width: int) -> list[Distribution]:
    """One of each kind, ragged and with ranks that have nothing."""
    counts = [height // SIZE] * SIZE
    counts[SIZE // 2] += height - sum(counts)
    shape = (height, width)
    return [
        rows(counts, width),
        rows([height] + [0] * (SIZE - 1), width),
        scalapack([1, 0, height, width, 3, 5, HEIGHT - 1, 0, 99], grid=GRID),
        scalapack([1, 0, height, width, 64, 2, 0, GRID[1] - 1, 99], grid=GRID, order="column"),
        elemental(shape, grid=GRID, pair=("MC", "MR"), align=(HEIGHT - 1, 0)),
        elemental(shape, grid=GRID, pair=("VC", "STAR")),
        elemental(shape, grid=GRID, pair=("STAR", "VR"), align=(0, SIZE - 1)),
        elemental(shape, grid=GRID, pair=("STAR", "STAR")),
    ]


def part(whole: sunzi.Matrix, distribution: Distribution) -> DistMatrix:
    here, there = distribution.indices(RANK)
    if not here or not there:
        return DistMatrix(None, distribution)
    values = whole.to_list()
    local = sunzi.Matrix([[values[i][j] for j in there] for i in here], precision=whole.precision)
    return DistMatrix(local, distribution)


def same(got: DistMatrix, want: sunzi.Matrix, what: str) -> None:
    """The part of this rank has the entries of one process."""
    here, there = got.distribution.indices(RANK)
    local, values = got.local.to_list(), want.to_list()
    assert got.local.shape == (len(here), len(there)), what
    for at, i in enumerate(here):
        for to, j in enumerate(there):
            assert local[at][to] == values[i][j], f"{what}: entry ({i}, {j}) on rank {RANK} of {SIZE}"


def refused(error: type[Exception], work: Callable[[], object], *said: str) -> None:
    """The call raises on every rank, all of them with what is said, and the ranks go on."""
    message = None
    try:
        work()
    except (error, ValueError) as raised:
        message = str(raised)
    messages = COMM.allgather(message)
    assert all(one is not None and all(word in one for word in said) for one in messages), (said, messages)


K, N, M = 61, 23, 6
P, Q, B = random_matrix(K, N, 1), random_matrix(K, M, 2), random_matrix(N, M, 3)
GRAM = sunzi.syrk(P)
FACTOR = sunzi.cholesky(GRAM)
PLACES = len(distributions(1, 1))


def products(ranks: Ranks) -> int:
    half = Fraction(-1, 2)
    added = sunzi.syrk(P, alpha=3, beta=half, c=GRAM)
    product = sunzi.gemm(P, Q, transpose_a=True)
    for at in range(PLACES):
        of = lambda shape, shift: distributions(*shape)[(at + shift) % PLACES]
        p = part(P, of((K, N), 0))
        same(ranks.syrk(p, of((N, N), 3)), GRAM, "syrk")
        same(ranks.syrk(p, alpha=3, beta=half, c=part(GRAM, of((N, N), 2))), added, "syrk of a sum")
        same(ranks.syrk(p, c=part(GRAM, of((N, N), 2))), sunzi.syrk(P, c=GRAM), "syrk and a matrix")
        q = part(Q, of((K, M), 1))
        same(ranks.gemm(p, q, of((N, M), 5), transpose_a=True), product, "gemm")
    wide = ranks.syrk(part(P, distributions(K, N)[0]), distributions(K, K)[2], transpose=True, precision=300)
    same(wide, sunzi.syrk(P, transpose=True, precision=300), "syrk of rows")
    return 3 * PLACES + 1


def factors(ranks: Ranks) -> int:
    solution, unknowns = sunzi.solve(GRAM, B), sunzi.trsm(FACTOR, B)
    identity = sunzi.Matrix([[int(i == j) for j in range(N)] for i in range(N)], precision=BITS)
    reciprocal = sunzi.Cholesky(GRAM).solve(identity)
    for at in range(PLACES):
        of = lambda shape, shift: distributions(*shape)[(at + shift) % PLACES]
        gram, b = part(GRAM, of((N, N), 0)), part(B, of((N, M), 4))
        kept = ranks.cholesky(gram)
        assert isinstance(kept, Cholesky) and (kept.order, kept.precision) == (N, BITS)
        same(kept.lower(of((N, N), 1)), FACTOR, "factor")
        same(kept.solve(b), sunzi.Cholesky(GRAM).solve(B), "solve with a kept factor")
        same(ranks.solve(gram, b), solution, "solve")
        same(ranks.trsm(part(FACTOR, of((N, N), 6)), b), unknowns, "trsm")
        same(kept.inverse(of((N, N), 3)), reciprocal, "inverse")
        assert kept.log_det() == sunzi.Cholesky(GRAM).log_det()
        renewed(kept, of)
    turned = sunzi.gemm(B, [[1 if i == j else 0 for j in range(M)] for i in range(M)])
    across = sunzi.trsm(FACTOR, turned.T, side="right", transpose=True, alpha=2)
    right = part(B.T, distributions(M, N)[4])
    got = ranks.trsm(part(FACTOR, distributions(N, N)[2]), right, side="right", transpose=True, alpha=2)
    same(got, across, "right")
    return 10 * PLACES + 1


def renewed(kept: Cholesky, of: Callable[[tuple[int, int], int], Distribution]) -> None:
    """A factor that others take the place of: of the same order and precision, of others, and after one that fails."""
    other, larger = sunzi.syrk(P, alpha=3), sunzi.syrk(random_matrix(N + 18, N + 9, 4))
    indefinite = sunzi.Matrix([[-1]], precision=90)
    cases = [(other, None, BITS), (GRAM, 150, 150), (larger, None, 150), (larger, 300, 300)]
    for matrix, precision, bits in cases:
        order = matrix.shape[0]
        kept.renew(part(matrix, of((order, order), 5)), uplo="lower", precision=precision)
        assert (kept.order, kept.precision) == (order, bits)
        same(kept.lower(of((order, order), 1)), sunzi.cholesky(matrix, precision=bits), "renewed factor")
    refused(sunzi.NotPositiveDefiniteError, lambda: kept.renew(part(indefinite, of((1, 1), 4))))
    assert kept.order == 0
    refused(ValueError, lambda: kept.solve(part(B, of((N, M), 4))))
    kept.renew(part(GRAM, of((N, N), 2)), precision=BITS)
    same(kept.solve(part(B, of((N, M), 4))), sunzi.Cholesky(GRAM).solve(B), "solve with a renewed factor")


def bad_input(ranks: Ranks) -> int:
    good = part(P, distributions(K, N)[0])
    last = RANK == SIZE - 1
    to = distributions(N, N)[4]
    refused(ValueError, lambda: ranks.syrk(DistMatrix([[1.0]], good.distribution) if last else good, to))
    refused(TypeError, lambda: ranks.syrk(DistMatrix([[object()]], good.distribution) if last else good, to))
    refused(ValueError, lambda: ranks.syrk(good, distributions(N, N + 1)[4]))
    if SIZE > 1:
        refused(ValueError, lambda: ranks.syrk(good, to, precision=300 if last else 200))
        refused(ValueError, lambda: ranks.syrk(good, distributions(N, N)[0 if last else 4]))
    refused(ValueError, lambda: ranks.syrk(good, to, precision=1))
    refused(ValueError, lambda: ranks.syrk(good))
    refused(ValueError, lambda: ranks.syrk(good, to, beta=2))
    indefinite = sunzi.Matrix([[-1 if i == j == 4 else int(i == j) for j in range(N)] for i in range(N)], precision=90)
    refused(sunzi.NotPositiveDefiniteError, lambda: ranks.cholesky(part(indefinite, to)))
    zero = sunzi.Matrix.zeros(N, N, precision=90)
    refused(sunzi.SingularError, lambda: ranks.trsm(part(zero, to), part(B, distributions(N, M)[0])))
    # The context goes on.
    same(ranks.syrk(good, to), GRAM, "syrk after what was refused")
    return 9 + 2 * (SIZE > 1)


def one_alone(ranks: Ranks) -> int:
    """What one rank alone gets wrong, or has otherwise than the others: an error of all, and no rank waits."""
    last = RANK == SIZE - 1
    p, to = part(P, distributions(K, N)[0]), distributions(N, N)[4]
    gram, b = part(GRAM, distributions(N, N)[2]), part(B, distributions(N, M)[0])
    t = part(FACTOR, distributions(N, N)[2])
    kept = ranks.cholesky(gram)
    odd = lambda wrong, right: wrong if last else right
    text: Any = "middle"
    matrix: Any = P
    numbers: Any = (5.5, N)
    refused(ValueError, lambda: ranks.syrk(p, to, uplo=odd(text, "lower")), "uplo='middle'")
    refused(ValueError, lambda: ranks.trsm(t, b, side=odd(text, "left")), "side='middle'")
    refused(ValueError, lambda: ranks.trsm(t, b, uplo=odd("both", "lower")), "uplo='both'")
    refused(ValueError, lambda: ranks.solve(gram, b, uplo=odd(text, "lower")), "uplo='middle'")
    refused(ValueError, lambda: ranks.cholesky(gram, uplo=odd(text, "lower")), "uplo='middle'")
    refused(TypeError, lambda: ranks.syrk(odd(matrix, p), to), "p must be a DistMatrix, but it is a Matrix")
    refused(TypeError, lambda: ranks.trsm(t, odd(matrix, b)), "must be a DistMatrix")
    refused(TypeError, lambda: ranks.syrk(p, odd(text, to)), "must be a Distribution")
    refused(TypeError, lambda: kept.inverse(odd(None, to)), "to")
    refused(ValueError, lambda: kept.renew(gram, uplo=odd(text, "lower")), "uplo='middle'")
    refused(TypeError, lambda: kept.solve(b, precision=odd(text, None)), "'str'")
    refused(TypeError, lambda: kept.log_det(precision=odd(text, None)), "'str'")
    refused(ValueError, lambda: kept.log_det(precision=odd(1, None)), "1")
    wrong = Distribution((N, N), (0, SIZE), "row", ("grid_row", "none"), (1, 1), (0, 0))
    refused(ValueError, lambda: ranks.syrk(p, odd(wrong, to)))
    refused(TypeError, lambda: ranks.syrk(odd(DistMatrix(P, rows(numbers, N)), p), to))
    refused(TypeError, lambda: ranks.syrk(p, to, alpha=odd(object(), 2)))
    refused(ValueError, lambda: Ranks(COMM, accuracy=odd(text, "norm")), "accuracy='middle'")
    refused(ValueError, lambda: Ranks(COMM, memory=odd(-1, None)), "memory=-1")
    refused(TypeError, lambda: Ranks(COMM, threads=odd(text, 1)), "'str'")
    count = 19
    if SIZE > 1:
        between = "differs between ranks"
        refused(ValueError, lambda: ranks.syrk(p, to, uplo=odd("upper", "lower")), "uplo", between, "upper", "lower")
        refused(ValueError, lambda: ranks.syrk(p, to, transpose=last), "transpose", between, "True", "False")
        refused(ValueError, lambda: ranks.syrk(p, to, alpha=odd(0, 2)), "alpha", between, "2")
        refused(ValueError, lambda: ranks.syrk(p, to, alpha=odd(None, 2)), "alpha", between)
        refused(ValueError, lambda: ranks.syrk(p, alpha=3, beta=odd(0, 2), c=gram), "beta", between, "2")
        refused(ValueError, lambda: ranks.gemm(p, p, to, transpose_a=not last), "transpose_a", between)
        refused(ValueError, lambda: ranks.trsm(t, b, side=odd("right", "left")), "side", between, "right", "left")
        refused(ValueError, lambda: ranks.trsm(t, b, unit=last), "unit", between)
        refused(ValueError, lambda: ranks.trsm(t, b, alpha=odd(0, 2)), "alpha", between)
        refused(ValueError, lambda: ranks.syrk(p, to, precision=odd(300, 200)), "precision", between, "300", "200")
        refused(ValueError, lambda: kept.solve(b) if last else kept.inverse(to), "the call", between)
        refused(ValueError, lambda: kept.log_det(precision=odd(90, 80)), "precision", between, "90", "80")
        refused(ValueError, lambda: Ranks(COMM, accuracy=odd("norm", "entrywise")), "accuracy", between)
        other = ranks.cholesky(gram)
        refused(ValueError, lambda: odd(other, kept).solve(b), "factor", between)
        refused(ValueError, lambda: odd(other, kept).renew(gram), "factor", between)
        refused(ValueError, lambda: kept.renew(gram, precision=odd(90, 80)), "precision", between, "90", "80")
        count += 16
    # Operands of other precisions on one rank: the largest counts.
    fine = sunzi.Matrix(P, precision=BITS + 80)
    got = ranks.syrk(part(odd(fine, P), distributions(K, N)[0]), to)
    same(got, sunzi.syrk(fine), "syrk with precisions of two kinds")
    same(kept.solve(b), sunzi.Cholesky(GRAM).solve(B), "solve after what was refused")
    return count + 2


def plans(ranks: Ranks) -> int:
    """Every call has a plan, from distributions alone; nodes add up, and a limit below the plan is refused."""
    deal = distributions(200, 120)[1]
    square, right = distributions(120, 120)[1], distributions(120, 40)[1]
    calls = [("syrk", deal, square), ("gemm", square, right, right), ("cholesky", square), ("trsm", square, right)]
    calls += [("solve", square, right), ("solve", right)]
    for operation, *placed in calls:
        plan = ranks.plan(operation, *placed, precision=200)
        assert 0 < plan.rank_bytes <= plan.node_bytes and plan.copied_bytes < plan.rank_bytes, (operation, plan)
        assert sum(COMM.allgather(plan.rank_bytes)) <= plan.node_bytes, (operation, plan)
        with Ranks(COMM, threads=1, memory=1000) as narrow:
            refused(sunzi.MemoryLimitError, lambda: narrow.plan(operation, *placed, precision=200), "limit")
    refused(ValueError, lambda: ranks.plan("cholesky", square, square, precision=200), "distributions")
    refused(ValueError, lambda: ranks.plan("qr", square, precision=200), "operation")
    # What a plan says of a node is enough for the call, also for both triangles, which is what `solve` reads.
    gram, b = part(GRAM, distributions(N, N)[2]), part(B, distributions(N, M)[2])
    placed = (gram.distribution, b.distribution)
    with Ranks(COMM, threads=1, accuracy="norm") as free:
        plan = free.plan("solve", *placed, precision=BITS)
    with Ranks(COMM, threads=1, accuracy="norm", memory=plan.node_bytes) as enough:
        enough.plan("solve", *placed, precision=BITS)
        same(enough.solve(gram, b), sunzi.solve(GRAM, B, accuracy="norm"), "solve within its plan")
    return 2 * len(calls) + 3


def main() -> None:
    with Ranks(COMM, threads=1) as ranks:
        assert (ranks.rank, ranks.size) == (RANK, SIZE)
        count = products(ranks) + factors(ranks) + bad_input(ranks) + one_alone(ranks) + plans(ranks)
    refused(ValueError, lambda: ranks.syrk(part(P, distributions(K, N)[0]), distributions(N, N)[0]))
    with Ranks(COMM, threads=1, device=["soft", "host"]) as ranks:
        places = distributions(K, N)
        same(ranks.syrk(part(P, places[4]), distributions(N, N)[2]), GRAM, "syrk on devices")
    refused(RuntimeError, lambda: Ranks(COMM, device="moon" if RANK == SIZE - 1 else "soft"), "moon")
    half = COMM.Split(RANK % 2)
    with Ranks(half, threads=1, accuracy="norm", memory=1 << 30) as ranks:
        own = half.Get_size()
        p = P if half.Get_rank() == 0 else None
        everywhere = elemental((N, N), grid=(1, own), pair=("STAR", "STAR"))
        got = ranks.syrk(DistMatrix(p, rows([K] + [0] * (own - 1), N)), everywhere)
        assert got.local.to_list() == sunzi.syrk(P, accuracy="norm").to_list(), "a part of the communicator"
    half.Free()
    if RANK == 0:
        print(f"{count + 4} checks on {SIZE} ranks")


if __name__ == "__main__":
    sys.excepthook = lambda *error: (sys.__excepthook__(*error), COMM.Abort(1))
    main()
