// MPLAPACK's routines on mpfr::mpreal.

#include <mpfr.h>
#include <sunzi.h>

namespace mpfr {

// What mpreal.h declares, as far as calls between objects go: an mpfr_t, passed by reference to a copy since there is a
// copy constructor. It is never called here, so this library neither needs that header nor defines anything of its.
class mpreal {
  public:
    mpfr_t mp;

    // No constructor of the other header takes this.
    struct Fresh {
        long bits;
    };
    inline __attribute__((always_inline)) explicit mpreal(Fresh fresh) {
        mpfr_init2(mp, fresh.bits);
        mpfr_set_zero(mp, 1);
    }
    mpreal(const mpreal &);
};

} // namespace mpfr

namespace sunzi_mplapack {

struct Kind {
    typedef __mpfr_struct raw;
    typedef mpfr::mpreal real;

    static void init(raw *x, long bits) { mpfr_init2(x, bits); }
    static void clear(raw *x) { mpfr_clear(x); }
    static void set(raw *x, const raw *y) { mpfr_set(x, y, MPFR_RNDN); }
    static void set_si(raw *x, long y) { mpfr_set_si(x, y, MPFR_RNDN); }
    // As the copy of a number by `=`, which takes the precision over.
    static void assign(raw *x, const raw *y) {
        if (x == y) return;
        if (mpfr_get_prec(x) != mpfr_get_prec(y)) mpfr_set_prec(x, mpfr_get_prec(y));
        mpfr_set(x, y, MPFR_RNDN);
    }
    static void add(raw *x, const raw *y, const raw *z) { mpfr_add(x, y, z, MPFR_RNDN); }
    static void sub(raw *x, const raw *y, const raw *z) { mpfr_sub(x, y, z, MPFR_RNDN); }
    static void mul(raw *x, const raw *y, const raw *z) { mpfr_mul(x, y, z, MPFR_RNDN); }
    static void div(raw *x, const raw *y, const raw *z) { mpfr_div(x, y, z, MPFR_RNDN); }
    static void neg(raw *x, const raw *y) { mpfr_neg(x, y, MPFR_RNDN); }
    static void abs(raw *x, const raw *y) { mpfr_abs(x, y, MPFR_RNDN); }
    static void sqrt(raw *x, const raw *y) { mpfr_sqrt(x, y, MPFR_RNDN); }
    static int cmp(const raw *x, const raw *y) { return mpfr_cmp(x, y); }
    static int sign(const raw *x) { return mpfr_sgn(x); }
    // Times 2^-bits.
    static void half(raw *x, long bits) { mpfr_mul_2si(x, x, -bits, MPFR_RNDN); }
    static long bits(const raw *x) { return mpfr_get_prec(x); }
    static long default_bits() { return mpfr_get_default_prec(); }
    static real make(long bits) { return mpfr::mpreal(mpfr::mpreal::Fresh{bits}); }
    static bool is_finite(const raw *x) { return mpfr_number_p(x) != 0; }
    static bool set_nan(raw *x) {
        mpfr_set_nan(x);
        return true;
    }

    static constexpr auto nrm2 = sunzi_rnrm2;
    static constexpr auto gemv = sunzi_rgemv;
    static constexpr auto symv = sunzi_rsymv;
    static constexpr auto ger = sunzi_rger;
    static constexpr auto trmv = sunzi_rtrmv;
    static constexpr auto trsv = sunzi_rtrsv;
    static constexpr auto gemm = sunzi_rgemm;
    static constexpr auto syrk = sunzi_rsyrk;
    static constexpr auto syr2k = sunzi_rsyr2k;
    static constexpr auto symm = sunzi_rsymm;
    static constexpr auto trmm = sunzi_rtrmm;
    static constexpr auto trsm = sunzi_rtrsm;
    static constexpr auto potrf = sunzi_rpotrf;
    static constexpr auto potrs = sunzi_rpotrs;
    static constexpr auto getrf = sunzi_rgetrf;
    static constexpr auto getrs = sunzi_rgetrs;
    static constexpr auto gesv = sunzi_rgesv;
    static constexpr auto getri = sunzi_rgetri;
};

} // namespace sunzi_mplapack

#define SUNZI_REAL mpfr::mpreal
#define SUNZI_XERBLA Mxerbla_mpfr
#define SUNZI_LSAME Mlsame_mpfr
#define SUNZI_LAMCH Rlamch_mpfr
#include "library.inc"
