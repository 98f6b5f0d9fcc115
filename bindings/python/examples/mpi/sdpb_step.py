"""One step of an interior-point method in the manner of SDPB, on the ranks of a communicator.

    mpirun -n 4 python sdpb_step.py

The blocks of a semidefinite program are distributed over the ranks. Each rank factors its Schur complements,
`S_j = L_j L_jᵀ`, and solves `V_j = L_j⁻¹ B_j`, in one process. The sum `Q = Σ V_jᵀ V_j` over all blocks of all ranks
is one SYRK, its result distributed entry by entry; its Cholesky factor stays with the library, for the solves of the
step. In the end every rank computes everything in one process, and compares: the bits are the same.
"""

import random
from fractions import Fraction

from mpi4py import MPI

import sunzi
from sunzi.mpi import DistMatrix, Ranks, elemental, rows

BLOCKS, ORDER, N, BITS = 7, 9, 23, 700


def block(number: int) -> tuple[sunzi.Matrix, sunzi.Matrix]:
    """A positive definite matrix `S_j` and the constraints `B_j` of a block."""
    rng = random.Random(number)
    draw = lambda: Fraction(rng.randrange(-(10**6), 10**6), 10**6)
    p = sunzi.Matrix([[draw() for _ in range(ORDER)] for _ in range(2 * ORDER)], precision=BITS)
    b = sunzi.Matrix([[draw() for _ in range(N)] for _ in range(ORDER)], precision=BITS)
    return p.T @ p, b


def solved(numbers: range) -> list[sunzi.Matrix]:
    """`V_j = L_j⁻¹ B_j` of some blocks."""
    return [sunzi.trsm(sunzi.cholesky(s, precision=BITS), b, precision=BITS) for s, b in map(block, numbers)]


def same(what: str, got: DistMatrix, whole: sunzi.Matrix, rank: int) -> None:
    """The part of this rank has the numbers of one process."""
    here, there = got.distribution.indices(rank)
    values, local = whole.to_list(), got.local.to_list()
    assert local == [[values[i][j] for j in there] for i in here], f"{what} on rank {rank}"


def main() -> None:
    comm = MPI.COMM_WORLD
    with Ranks(comm, threads=1) as ranks:
        own = range(ranks.rank, BLOCKS, ranks.size)
        v = sunzi.vstack(solved(own)) if own else None

        # V by rows as the blocks lie, Q entry by entry over a grid as Elemental has it.
        counts = comm.allgather(ORDER * len(own))
        height = max(h for h in (1, 2, 3) if ranks.size % h == 0 and h * h <= max(ranks.size, 1))
        grid = (height, ranks.size // height)
        spread = elemental((N, N), grid=grid, pair=("MC", "MR"))
        q = ranks.syrk(DistMatrix(v, rows(counts, N)), spread, precision=BITS)

        # Right sides in another distribution: each rank has all rows of some columns.
        right = elemental((N, 5), grid=grid, pair=("STAR", "VR"))
        local = [[Fraction(1 + (i * j) % 7, 3) for j in right.indices(ranks.rank)[1]] for i in range(N)]
        b = DistMatrix(local, right)
        factor = ranks.cholesky(q)
        x = factor.solve(b)

        # What is left of B - Q X, which the ranks compute as well.
        rest = ranks.gemm(q, x, alpha=-1, beta=1, c=b, precision=BITS)
        largest = max([abs(float(one)) for row in rest.local.to_list("float") for one in row], default=0.0)
        largest = comm.allreduce(largest, MPI.MAX)
        log_det = factor.log_det()
        assert largest < 2.0 ** (40 - BITS), largest

        # All of it in one process, whose rows of V stand in another order.
        whole = sunzi.syrk(sunzi.vstack(solved(range(BLOCKS))), precision=BITS)
        alone = sunzi.Cholesky(whole)
        all_b = [[Fraction(1 + (i * j) % 7, 3) for j in range(5)] for i in range(N)]
        same("Q", q, whole, ranks.rank)
        same("the factor", factor.lower(spread), sunzi.cholesky(whole, precision=BITS), ranks.rank)
        same("the solution", x, alone.solve(sunzi.Matrix(all_b, precision=BITS)), ranks.rank)
        assert log_det == alone.log_det()
        if ranks.rank == 0:
            print(f"{ranks.size} ranks: log det Q = {float(log_det):.15f}, residual {largest:.1e}")


if __name__ == "__main__":
    main()
