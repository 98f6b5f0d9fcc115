// MPLAPACK's routines on mpfr::mpreal, from the library libsunzi_mplapack_mpfr: a program that was linked with MPLAPACK
// is linked with this one instead, compiled against MPLAPACK's header or this one. SUNZI_NUM_THREADS, else
// OMP_NUM_THREADS, says how many threads it takes. mpreal.h has a licence of its own (GPL, in newer versions), which the
// library does not need: it knows no more of an mpreal than the mpfr_t in it.
//
// With SUNZI_MPACK defined the declarations are those of MPACK, the older name: info by pointer, and integers of type
// mpackint: 64 bits long, or 32 with SUNZI_MPACK defined as 32 (SDPA-GMP's own copy). The library has all three.
#ifndef SUNZI_MPLAPACK_MPFR_H
#define SUNZI_MPLAPACK_MPFR_H

#include <mpreal.h>
#include <stdint.h>

#ifdef SUNZI_MPACK
#if SUNZI_MPACK + 0 == 32
typedef int32_t mpackint;
#else
typedef int64_t mpackint;
#endif
#define SUNZI_INT mpackint
#define SUNZI_INFO mpackint *
#define SUNZI_LWORK mpackint *
#else
typedef int64_t mplapackint;
#define SUNZI_INT mplapackint
#define SUNZI_INFO mplapackint &
#define SUNZI_LWORK mplapackint const
#endif
#define SUNZI_REAL mpfr::mpreal

#include "mplapack_declarations.h"

// Precision, range and so on of the default precision, by the letters of LAPACK's DLAMCH.
SUNZI_REAL Rlamch_mpfr(const char *cmach);
// Called with the name of a routine and the number of its wrong argument. The library's own prints both and ends the
// program with that number as its status, as MPLAPACK's does; a program may define another, and info is returned then.
void Mxerbla_mpfr(const char *srname, int info);

#undef SUNZI_REAL
#undef SUNZI_INT
#undef SUNZI_INFO
#undef SUNZI_LWORK
#endif
