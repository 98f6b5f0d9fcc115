/* Big floats to fixed point: round(|value| * 2^shift) to nearest, ties to even, as 32-bit digits and a sign. */
#ifndef __CUDACC_RTC__
#include "common.h"
#endif

struct scale_arguments {
    const u64 *heads;      /* [col * rows + row]: exponent << 2 | 2 | sign, or 0 */
    const u64 *limbs;      /* [(col * rows + row) * limb_count + limb] */
    const i64 *row_shifts; /* null for zeros */
    const i64 *col_shifts; /* null for zeros */
    u64 rows;
    u64 ld;
    u64 limb_count;
    u32 *digits; /* [digit * stride + col * ld + row]; the sign is digit number `digit_count` */
    u64 digit_count;
    u64 stride;
};

/* Bits `low .. low + 32` of a significand; bits outside it are 0. */
FUNCTION u32 bits_from(const u64 *limbs, i64 count, i64 low)
{
    if (low <= -32 || low >= 64 * count)
        return 0;
    const i64 index = low >> 6;
    const int shift = (int)(low & 63);
    u64 bits = index >= 0 ? limbs[index] >> shift : 0;
    if (shift > 32 && index + 1 < count)
        bits |= limbs[index + 1] << (64 - shift);
    return (u32)bits;
}

/* Whether the bits cut off round the magnitude up; `drop` of them are cut, and `odd` is the last one kept. */
FUNCTION int rounds_up(const u64 *limbs, i64 count, i64 drop, int odd)
{
    const i64 half = drop - 1;
    if (half < 0 || half >= 64 * count || !((limbs[half >> 6] >> (half & 63)) & 1))
        return 0;
    if (odd || (limbs[half >> 6] & (((u64)1 << (half & 63)) - 1)))
        return 1;
    for (i64 index = 0; index < half >> 6; ++index)
        if (limbs[index])
            return 1;
    return 0;
}

KERNEL(scale)
{
    const u64 col = divide(thread, a->ld);
    const u64 row = thread - col * a->ld;
    u32 *digits = a->digits + thread;
    const u64 entry = col * a->rows + row;
    const u64 head = row < a->rows ? a->heads[entry] : 0;
    if (head == 0) {
        for (u64 digit = 0; digit <= a->digit_count; ++digit)
            digits[digit * a->stride] = 0;
        return;
    }
    const i64 count = (i64)a->limb_count;
    const u64 *limbs = a->limbs + entry * a->limb_count;
    i64 shift = (i64)head >> 2;
    if (a->row_shifts)
        shift += a->row_shifts[row];
    if (a->col_shifts)
        shift += a->col_shifts[col];
    const i64 drop = 64 * count - shift;
    u64 carry = (u64)rounds_up(limbs, count, drop, (int)(bits_from(limbs, count, drop) & 1));
    u32 any = 0;
    for (u64 digit = 0; digit < a->digit_count; ++digit) {
        carry += bits_from(limbs, count, drop + 32 * (i64)digit);
        digits[digit * a->stride] = (u32)carry;
        any |= (u32)carry;
        carry >>= 32;
    }
    digits[a->digit_count * a->stride] = any ? (u32)(head & 1) : 0;
}
