/* Residues of a rectangle of entries, copied to where they lie one after the other.
 *
 * A thread takes one entry and some moduli.
 */
#ifndef __CUDACC_RTC__
#include "common.h"
#endif

struct select_arguments {
    const void *from; /* [modulus * from_stride + from_offset + column * leading + row] */
    u64 from_stride;
    u64 from_offset;
    u64 leading;
    u64 rows;
    u64 entries; /* whole columns */
    u64 first; /* moduli */
    u64 end;
    u64 moduli_per_thread;
    u64 bytes;
    void *to; /* [modulus * to_stride + to_offset + column * rows + row] */
    u64 to_stride;
    u64 to_offset;
};

KERNEL(select)
{
    const u64 slice = divide(thread, a->entries);
    const u64 entry = thread - slice * a->entries;
    const u64 column = divide(entry, a->rows);
    const u64 place = column * a->leading + (entry - column * a->rows);
    u64 modulus = a->first + slice * a->moduli_per_thread;
    const u64 stop = modulus + a->moduli_per_thread < a->end ? modulus + a->moduli_per_thread : a->end;
    for (; modulus < stop; ++modulus) {
        const u32 residue = load_residue(a->from, modulus * a->from_stride + a->from_offset + place, BYTES);
        store_residue(a->to, modulus * a->to_stride + a->to_offset + entry, residue, BYTES);
    }
}
