"""Verbs over the ranks of a communicator against one process, bit for bit; run by mpirun, without pytest.

The last line of rank 0 counts the checks.
"""

import random
import sys
from collections.abc import Callable
from fractions import Fraction

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


def refused(error: type[Exception], work: Callable[[], object]) -> None:
    """The call raises on every rank, and the ranks go on."""
    raised = False
    try:
        work()
    except (error, ValueError):
        raised = True
    assert COMM.allgather(raised) == [True] * SIZE


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
    turned = sunzi.gemm(B, [[1 if i == j else 0 for j in range(M)] for i in range(M)])
    across = sunzi.trsm(FACTOR, turned.T, side="right", transpose=True, alpha=2)
    right = part(B.T, distributions(M, N)[4])
    got = ranks.trsm(part(FACTOR, distributions(N, N)[2]), right, side="right", transpose=True, alpha=2)
    same(got, across, "right")
    return 6 * PLACES + 1


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


def main() -> None:
    with Ranks(COMM, threads=1) as ranks:
        assert (ranks.rank, ranks.size) == (RANK, SIZE)
        count = products(ranks) + factors(ranks) + bad_input(ranks)
    refused(ValueError, lambda: ranks.syrk(part(P, distributions(K, N)[0]), distributions(N, N)[0]))
    half = COMM.Split(RANK % 2)
    with Ranks(half, threads=1, accuracy="norm", memory=1 << 30) as ranks:
        own = half.Get_size()
        p = P if half.Get_rank() == 0 else None
        everywhere = elemental((N, N), grid=(1, own), pair=("STAR", "STAR"))
        got = ranks.syrk(DistMatrix(p, rows([K] + [0] * (own - 1), N)), everywhere)
        assert got.local.to_list() == sunzi.syrk(P, accuracy="norm").to_list(), "a part of the communicator"
    half.Free()
    if RANK == 0:
        print(f"{count + 2} checks on {SIZE} ranks")


if __name__ == "__main__":
    sys.excepthook = lambda *error: (sys.__excepthook__(*error), COMM.Abort(1))
    main()
