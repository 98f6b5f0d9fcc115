/* Integers times a power of two to big floats: to nearest, ties to even, one thread per entry.
 *
 * Also looks for integers that are longer than they may be, and for exponents out of range.
 */
#ifndef __CUDACC_RTC__
#include "common.h"
#endif

struct round_arguments {
    const u32 *integers; /* [word * entries + entry]; the sign is word number `words` */
    u64 words;
    u64 entries;
    u64 rows;                /* entry number col * rows + row */
    const i64 *left_shifts;  /* of the rows; null for zeros */
    const i64 *right_shifts; /* of the columns; null for zeros */
    u64 precision_bits;
    u64 limb_count;
    u64 largest_bits;
    u64 largest_exponent;
    u64 first_index; /* what is added to an entry's number in the faults */
    u64 *faults;     /* least entry that is too long, least entry out of range */
    u64 *heads;      /* [entry]: exponent << 2 | 2 | sign, or 0 */
    u64 *limbs;      /* [entry * limb_count + limb] */
};

/* Word `index` of an integer; words outside it are 0. */
FUNCTION u32 word_at(const u32 *integer, const struct round_arguments *a, i64 index)
{
    return index >= 0 && index < (i64)a->words ? integer[(u64)index * a->entries] : 0;
}

/* Bits `low .. low + 64` of an integer; bits outside it are 0. */
FUNCTION u64 bits_from(const u32 *integer, const struct round_arguments *a, i64 low)
{
    const i64 index = low >> 5;
    const int shift = (int)(low & 31);
    const u64 lower_words = word_at(integer, a, index) | (u64)word_at(integer, a, index + 1) << 32;
    if (shift == 0)
        return lower_words;
    return lower_words >> shift | (u64)word_at(integer, a, index + 2) << (64 - shift);
}

/* Whether the bits below bit `cut` round the magnitude up; `odd` is bit `cut`. */
FUNCTION int rounds_up(const u32 *integer, const struct round_arguments *a, i64 cut, int odd)
{
    const i64 half = cut - 1;
    if (half < 0)
        return 0;
    const u32 word = integer[(u64)(half >> 5) * a->entries];
    const int bit = (int)(half & 31);
    if (!(word >> bit & 1))
        return 0;
    if (odd || (word & (((u32)1 << bit) - 1)))
        return 1;
    for (i64 index = 0; index < half >> 5; ++index)
        if (integer[(u64)index * a->entries])
            return 1;
    return 0;
}

/* Length of an integer in bits. */
FUNCTION u64 bit_length(const u32 *integer, const struct round_arguments *a)
{
    for (u64 words = a->words; words > 0; --words) {
        const u32 word = integer[(words - 1) * a->entries];
        if (word)
            return 32 * words - (u64)leading_zeros(word);
    }
    return 0;
}

KERNEL(round)
{
    const u32 *integer = a->integers + thread;
    u64 *limbs = a->limbs + thread * a->limb_count;
    const u64 length = bit_length(integer, a);
    if (length == 0) {
        for (u64 limb = 0; limb < a->limb_count; ++limb)
            limbs[limb] = 0;
        a->heads[thread] = 0;
        return;
    }
    const i64 low = (i64)length - 64 * (i64)a->limb_count;
    const int spare = (int)(64 * a->limb_count - a->precision_bits);
    const u64 lowest = bits_from(integer, a, low);
    u64 carry = (u64)rounds_up(integer, a, low + spare, (int)(lowest >> spare & 1)) << spare;
    for (u64 limb = 0; limb < a->limb_count; ++limb) {
        const u64 bits = limb ? bits_from(integer, a, low + 64 * (i64)limb) : lowest >> spare << spare;
        limbs[limb] = bits + carry;
        carry = limbs[limb] < bits;
    }
    /* All ones, rounded up, are one half of the next power of two. */
    if (carry)
        limbs[a->limb_count - 1] = (u64)1 << 63;

    const u64 col = divide(thread, a->rows);
    i64 exponent = (i64)length + (i64)carry;
    if (a->left_shifts)
        exponent -= a->left_shifts[thread - col * a->rows];
    if (a->right_shifts)
        exponent -= a->right_shifts[col];
    a->heads[thread] = (u64)exponent << 2 | 2 | (u64)integer[a->words * a->entries];
    if (length > a->largest_bits)
        lower(a->faults, a->first_index + thread);
    if (exponent > (i64)a->largest_exponent || -exponent > (i64)a->largest_exponent)
        lower(a->faults + 1, a->first_index + thread);
}
