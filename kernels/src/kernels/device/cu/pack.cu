/* Integers to the form the host reads: a sign word and limbs each, one thread per limb or sign. */
#ifndef __CUDACC_RTC__
#include "common.h"
#endif

struct pack_arguments {
    const u32 *integers; /* [word * entries + entry]; the sign is word number `words` */
    u64 words;
    u64 entries;
    u64 limb_count;
    u64 *packed; /* [entry * (1 + limb_count)]: sign, then limbs */
};

KERNEL(pack)
{
    const u64 place = divide(thread, a->entries);
    const u64 entry = thread - place * a->entries;
    const u32 *integer = a->integers + entry;
    u64 *packed = a->packed + entry * (1 + a->limb_count);
    if (place == 0) {
        packed[0] = integer[a->words * a->entries];
        return;
    }
    const u64 low = 2 * (place - 1);
    const u64 high_word = low + 1 < a->words ? integer[(low + 1) * a->entries] : 0;
    packed[place] = high_word << 32 | integer[low * a->entries];
}
