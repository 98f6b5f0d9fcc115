/* Words of one value. */
#ifndef __CUDACC_RTC__
#include "common.h"
#endif

struct fill_arguments {
    u64 *words;
    u64 value;
};

KERNEL(fill)
{
    a->words[thread] = a->value;
}
