// MPLAPACK's routines on mpf_class.

#include <gmpxx.h>
#include <sunzi.h>

namespace sunzi_mplapack {

struct Kind {
    typedef __mpf_struct raw;
    typedef mpf_class real;

    static void init(raw *x, long bits) { mpf_init2(x, static_cast<mp_bitcnt_t>(bits)); }
    static void clear(raw *x) { mpf_clear(x); }
    static void set(raw *x, const raw *y) { mpf_set(x, y); }
    static void set_si(raw *x, long y) { mpf_set_si(x, y); }
    // As the copy of a number by `=`, which keeps the precision of an mpf_class.
    static void assign(raw *x, const raw *y) { mpf_set(x, y); }
    static void add(raw *x, const raw *y, const raw *z) { mpf_add(x, y, z); }
    static void sub(raw *x, const raw *y, const raw *z) { mpf_sub(x, y, z); }
    static void mul(raw *x, const raw *y, const raw *z) { mpf_mul(x, y, z); }
    static void div(raw *x, const raw *y, const raw *z) { mpf_div(x, y, z); }
    static void neg(raw *x, const raw *y) { mpf_neg(x, y); }
    static void abs(raw *x, const raw *y) { mpf_abs(x, y); }
    static void sqrt(raw *x, const raw *y) { mpf_sqrt(x, y); }
    static int cmp(const raw *x, const raw *y) { return mpf_cmp(x, y); }
    static int sign(const raw *x) { return mpf_sgn(x); }
    // Times 2^-bits.
    static void half(raw *x, long bits) {
        if (bits < 0) mpf_mul_2exp(x, x, static_cast<mp_bitcnt_t>(-bits));
        else mpf_div_2exp(x, x, static_cast<mp_bitcnt_t>(bits));
    }
    static long bits(const raw *x) { return static_cast<long>(mpf_get_prec(x)); }
    static long default_bits() { return static_cast<long>(mpf_get_default_prec()); }
    static real make(long bits) { return mpf_class(0, static_cast<mp_bitcnt_t>(bits)); }
    static bool is_finite(const raw *) { return true; }
    // What is not finite does not exist here: the library cannot have met it, and 0 divides nothing.
    static bool set_nan(raw *) { return false; }

    static constexpr auto nrm2 = sunzi_rnrm2_mpf;
    static constexpr auto gemv = sunzi_rgemv_mpf;
    static constexpr auto symv = sunzi_rsymv_mpf;
    static constexpr auto ger = sunzi_rger_mpf;
    static constexpr auto trmv = sunzi_rtrmv_mpf;
    static constexpr auto trsv = sunzi_rtrsv_mpf;
    static constexpr auto gemm = sunzi_rgemm_mpf;
    static constexpr auto syrk = sunzi_rsyrk_mpf;
    static constexpr auto syr2k = sunzi_rsyr2k_mpf;
    static constexpr auto symm = sunzi_rsymm_mpf;
    static constexpr auto trmm = sunzi_rtrmm_mpf;
    static constexpr auto trsm = sunzi_rtrsm_mpf;
    static constexpr auto potrf = sunzi_rpotrf_mpf;
    static constexpr auto potrs = sunzi_rpotrs_mpf;
    static constexpr auto getrf = sunzi_rgetrf_mpf;
    static constexpr auto getrs = sunzi_rgetrs_mpf;
    static constexpr auto gesv = sunzi_rgesv_mpf;
    static constexpr auto getri = sunzi_rgetri_mpf;
};

} // namespace sunzi_mplapack

#define SUNZI_REAL mpf_class
#define SUNZI_XERBLA Mxerbla_gmp
#define SUNZI_LSAME Mlsame_gmp
#define SUNZI_LAMCH Rlamch_gmp
#include "library.inc"
