/* Sums of products of operand planes to least residues, which overwrite what is there, or are added or subtracted.
 *
 * For moduli of three planes x = 128 x1 + x0 the products of x0, of x1 and of x0 + x1 give that of x (Karatsuba).
 * A thread takes one entry and some moduli.
 */
#ifndef __CUDACC_RTC__
#include "common.h"
#endif

struct reduce_arguments {
    const struct modulus *moduli;
    const void *sums; /* [plane - first plane][entry]: i32, or doubles */
    u64 sum_stride;
    u64 entries;
    u64 first; /* moduli */
    u64 end;
    u64 moduli_per_thread;
    u64 singles; /* moduli of one plane each */
    u64 bytes;
    u64 into; /* 0 overwrite, 1 add, 2 subtract */
    void *residues; /* [modulus * stride + offset + entry] */
    u64 stride;
    u64 offset;
};

/* The sum of one entry of one modulus. A double beyond 2^53, which no product has, counts as 0. */
FUNCTION i64 load_sum(const struct reduce_arguments *a, u64 modulus, u64 place)
{
    if (!BYTES) {
        const double sum = ((const double *)a->sums)[place];
        return sum >= -9007199254740992.0 && sum <= 9007199254740992.0 ? (i64)sum : 0;
    }
    const i32 *sums = (const i32 *)a->sums + place;
    if (modulus < a->singles)
        return sums[0];
    const i64 low = sums[0];
    const i64 high = sums[a->sum_stride];
    const i64 both = sums[2 * a->sum_stride];
    return low + 128 * (both - low - high) + 16384 * high;
}

KERNEL(reduce)
{
    const u64 slice = divide(thread, a->entries);
    const u64 entry = thread - slice * a->entries;
    const u64 first_plane = plane_of(a->first, a->singles);
    u64 modulus = a->first + slice * a->moduli_per_thread;
    const u64 stop = modulus + a->moduli_per_thread < a->end ? modulus + a->moduli_per_thread : a->end;
    for (; modulus < stop; ++modulus) {
        const struct modulus *constants = a->moduli + modulus;
        const u64 plane = plane_of(modulus, a->singles) - first_plane;
        const i64 sum = load_sum(a, modulus, plane * a->sum_stride + entry);
        const u32 value = constants->value;
        u32 residue = least_residue((u64)sum + constants->offset, constants);
        const u64 place = modulus * a->stride + a->offset + entry;
        if (a->into != 0) {
            const u32 held = load_residue(a->residues, place, BYTES);
            const u32 term = a->into == 1 || residue == 0 ? residue : value - residue;
            residue = held + term >= value ? held + term - value : held + term;
        }
        store_residue(a->residues, place, residue, BYTES);
    }
}
