// What the examples share: arrays of mpfr_t, numbers to fill them with, and an end with a message where a call fails.
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <gmp.h>
#include <mpfr.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sunzi.h>
#include <time.h>

// Ends the program where a call on `ctx` did not go well.
#define CALL(ctx, call) check_call(ctx, call, #call, __LINE__)

// Ends the program where a condition does not hold.
#define EXPECT(condition)                                                         \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

static inline void check_call(const sunzi_context *ctx, sunzi_status status, const char *call, int line) {
    if (status != SUNZI_OK) {
        fprintf(stderr, "line %d: %s: %s (%s)\n", line, call, sunzi_last_error(ctx), sunzi_status_text(status));
        exit(1);
    }
}

static inline sunzi_context *new_context(int64_t threads) {
    sunzi_options options = sunzi_options_default();
    sunzi_context *ctx = NULL;
    options.threads = threads;
    CALL(ctx, sunzi_context_new(&options, &ctx));
    return ctx;
}

static inline mpfr_t *new_array(size_t count, mpfr_prec_t bits) {
    mpfr_t *array = (mpfr_t *)malloc((count ? count : 1) * sizeof *array);
    EXPECT(array != NULL);
    for (size_t at = 0; at < count; at++) {
        mpfr_init2(array[at], bits);
        mpfr_set_zero(array[at], 1);
    }
    return array;
}

static inline void free_array(mpfr_t *array, size_t count) {
    for (size_t at = 0; at < count; at++) {
        mpfr_clear(array[at]);
    }
    free(array);
}

static inline mpfr_t *copy_array(mpfr_t *from, size_t count) {
    mpfr_t *array = (mpfr_t *)malloc((count ? count : 1) * sizeof *array);
    EXPECT(array != NULL);
    for (size_t at = 0; at < count; at++) {
        mpfr_init2(array[at], mpfr_get_prec(from[at]));
        mpfr_set(array[at], from[at], MPFR_RNDN);
    }
    return array;
}

// Numbers between -1 and 1 with all bits in use; the same for the same seed.
static inline void fill_array(mpfr_t *array, size_t count, unsigned long seed) {
    gmp_randstate_t state;
    gmp_randinit_mt(state);
    gmp_randseed_ui(state, seed);
    for (size_t at = 0; at < count; at++) {
        mpfr_urandomb(array[at], state);
        mpfr_mul_2ui(array[at], array[at], 1, MPFR_RNDN);
        mpfr_sub_ui(array[at], array[at], 1, MPFR_RNDN);
    }
    gmp_randclear(state);
}

// About log2 of |x - y| / |y|; -1000000 where they are the same.
static inline long error_log2(mpfr_srcptr x, mpfr_srcptr y) {
    mpfr_t difference;
    long log2 = -1000000;
    mpfr_init2(difference, 64);
    mpfr_sub(difference, x, y, MPFR_RNDN);
    if (!mpfr_zero_p(difference)) {
        log2 = mpfr_get_exp(difference) - (mpfr_zero_p(y) ? 0 : mpfr_get_exp(y));
    }
    mpfr_clear(difference);
    return log2;
}

static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
