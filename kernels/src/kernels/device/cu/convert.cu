/* Fixed-point integers to residues: operand planes for a product, or plain least residues.
 *
 * A residue is a sum of products of digits and radix powers, reduced once; docs/ALGORITHM.md, "On a device".
 * A thread takes one entry and some groups of four moduli.
 */
#ifndef __CUDACC_RTC__
#include "common.h"
#endif

struct convert_arguments {
    const struct modulus *moduli;
    const struct words4 *powers; /* [group * power_count + digit]: 2^(32 digit) modulo four moduli */
    u64 power_count;
    const u32 *digits; /* [digit * digit_stride + entry]; the sign is digit number `digit_count` */
    u64 digit_count;
    u64 digit_stride;
    u64 entries;
    u64 first; /* moduli */
    u64 end;
    u64 groups_per_thread;
    u64 singles; /* moduli of one plane each */
    u64 bytes;
    u64 planes; /* whether to write operand planes */
    void *out;  /* [plane - first plane][entry], or [modulus][entry] */
    u64 stride;
};

#ifdef SUNZI_PLANES
#define PLANES SUNZI_PLANES
#else
#define PLANES ((int)a->planes)
#endif

/* With a number of digits known when it is compiled, a thread holds its digits in registers. */
#ifdef SUNZI_DIGITS
#define DIGITS SUNZI_DIGITS
#define DIGIT(digit) held[digit]
#else
#define DIGITS ((int)a->digit_count)
#define DIGIT(digit) digits[(u64)(digit) * a->digit_stride]
#endif

/* Writes one residue: balanced in the operand planes, and for moduli of three planes split as 128 high + low. */
FUNCTION void write_residue(const struct convert_arguments *a, u64 modulus, u64 entry, u32 residue, u32 value)
{
    if (!PLANES) {
        store_residue(a->out, modulus * a->stride + entry, residue, BYTES);
        return;
    }
    const i32 balanced = residue > (value - 1) / 2 ? (i32)(residue - value) : (i32)residue;
    const u64 place = (plane_of(modulus, a->singles) - plane_of(a->first, a->singles)) * a->stride + entry;
    if (!BYTES) {
        ((double *)a->out)[place] = (double)balanced;
        return;
    }
    i8 *out = (i8 *)a->out + place;
    if (modulus < a->singles) {
        out[0] = (i8)balanced;
        return;
    }
    const i32 high = (balanced + 64) >> 7;
    const i32 low = balanced - 128 * high;
    out[0] = (i8)low;
    out[a->stride] = (i8)high;
    out[2 * a->stride] = (i8)(low + high);
}

KERNEL(convert)
{
    const u64 slice = divide(thread, a->entries);
    const u64 entry = thread - slice * a->entries;
    const u32 *digits = a->digits + entry;
    const u32 negative = digits[a->digit_count * a->digit_stride];
#ifdef SUNZI_DIGITS
    u32 held[DIGITS];
    UNROLL
    for (int digit = 0; digit < DIGITS; ++digit)
        held[digit] = digits[(u64)digit * a->digit_stride];
#endif
    u64 group = (a->first >> 2) + slice * a->groups_per_thread;
    const u64 last = (a->end + 3) >> 2;
    const u64 stop = group + a->groups_per_thread < last ? group + a->groups_per_thread : last;
    for (; group < stop; ++group) {
        const struct words4 *powers = a->powers + group * a->power_count;
        u64 sums[4] = { 0, 0, 0, 0 };
        UNROLL
        for (int digit = 0; digit < DIGITS; ++digit) {
            const u64 word = DIGIT(digit);
            const struct words4 power = powers[digit];
            UNROLL
            for (int lane = 0; lane < 4; ++lane)
                sums[lane] += word * power.word[lane];
        }
        UNROLL
        for (int lane = 0; lane < 4; ++lane) {
            const u64 modulus = 4 * group + (u64)lane;
            if (modulus >= a->first && modulus < a->end) {
                const struct modulus *constants = a->moduli + modulus;
                const u32 residue = least_residue(sums[lane], constants);
                const u32 signed_residue = negative && residue ? constants->value - residue : residue;
                write_residue(a, modulus, entry, signed_residue, constants->value);
            }
        }
    }
}
