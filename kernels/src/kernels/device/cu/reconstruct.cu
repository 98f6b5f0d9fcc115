/* Residues to integers: x = sum_i y_i M/p_i - q M with y_i = r_i (M/p_i)^-1 mod p_i, one thread per entry.
 *
 * The words of x are formed in two's complement, `-q M` as `+ q (2^(32 words) - M)`, so that all terms are positive;
 * then the magnitude is taken. Bounds of all sums: docs/ALGORITHM.md, "On a device".
 */
#ifndef __CUDACC_RTC__
#include "common.h"
#endif

/* Words formed in one pass over the moduli. */
#define PASS_WORDS 16

struct reconstruct_arguments {
    const struct modulus *moduli;
    /* [pass * (modulus_count + 1) + row][4]: sixteen words of M/p_i, and in the last row those of 2^(32 words) - M */
    const struct words4 *cofactors;
    u64 modulus_count;
    u64 bytes;
    const void *residues; /* [modulus * stride + offset + entry] */
    u64 stride;
    u64 offset;
    u64 entries;
    u32 *integers; /* [word * entries + entry]; the sign is word number `words` */
    u64 words;
};

FUNCTION u32 weighted_residue(const struct reconstruct_arguments *a, u64 modulus, u64 entry)
{
    const struct modulus *constants = a->moduli + modulus;
    const u32 residue = load_residue(a->residues, modulus * a->stride + a->offset + entry, BYTES);
    return least_residue((u64)residue * constants->weight, constants);
}

/* Adds `factor` times sixteen words of a row. */
FUNCTION void add_row(u64 *sums, u32 factor, const struct words4 *row)
{
    UNROLL
    for (int part = 0; part < PASS_WORDS / 4; ++part) {
        const struct words4 words = row[part];
        UNROLL
        for (int lane = 0; lane < 4; ++lane)
            sums[4 * part + lane] += (u64)factor * words.word[lane];
    }
}

KERNEL(reconstruct)
{
    u64 shares = 0;
    for (u64 modulus = 0; modulus < a->modulus_count; ++modulus)
        shares += weighted_residue(a, modulus, thread) * a->moduli[modulus].share;
    const u32 quotient = (u32)((shares + ((u64)1 << 47)) >> 48);

    u32 *integer = a->integers + thread;
    const struct words4 *row = a->cofactors;
    u64 carry = 0;
    u32 top = 0;
    for (u64 first = 0; first < a->words; first += PASS_WORDS) {
        u64 sums[PASS_WORDS];
        UNROLL
        for (int word = 0; word < PASS_WORDS; ++word)
            sums[word] = 0;
        for (u64 modulus = 0; modulus < a->modulus_count; ++modulus) {
            add_row(sums, weighted_residue(a, modulus, thread), row);
            row += PASS_WORDS / 4;
        }
        add_row(sums, quotient, row);
        row += PASS_WORDS / 4;
        UNROLL
        for (int word = 0; word < PASS_WORDS; ++word) {
            if (first + (u64)word < a->words) {
                carry += sums[word];
                top = (u32)carry;
                integer[(first + (u64)word) * a->entries] = top;
                carry >>= 32;
            }
        }
    }

    const u32 negative = top >> 31;
    if (negative) {
        u64 sum = 1;
        for (u64 word = 0; word < a->words; ++word) {
            sum += (u32)~integer[word * a->entries];
            integer[word * a->entries] = (u32)sum;
            sum >>= 32;
        }
    }
    integer[a->words * a->entries] = negative;
}
