/* Integers from the host, a sign word and limbs each, to 32-bit digits. */
#ifndef __CUDACC_RTC__
#include "common.h"
#endif

struct unpack_arguments {
    const u64 *packed; /* [(col * rows + row) * (1 + limb_count)]: sign, then limbs */
    u64 rows;
    u64 ld;
    u64 limb_count;
    u32 *digits; /* [digit * stride + col * ld + row]; the sign is digit number `digit_count` */
    u64 digit_count;
    u64 stride;
};

KERNEL(unpack)
{
    const u64 col = divide(thread, a->ld);
    const u64 row = thread - col * a->ld;
    const int inside = row < a->rows;
    const u64 *packed = a->packed + (inside ? (col * a->rows + row) * (1 + a->limb_count) : 0);
    u32 *digits = a->digits + thread;
    for (u64 digit = 0; digit < a->digit_count; ++digit) {
        const u64 limb = inside && digit >> 1 < a->limb_count ? packed[1 + (digit >> 1)] : 0;
        digits[digit * a->stride] = (u32)(digit & 1 ? limb >> 32 : limb);
    }
    digits[a->digit_count * a->stride] = inside ? (u32)(packed[0] & 1) : 0;
}
