// The one context of a process that all routines run on, and what happens when a call fails.
#ifndef SUNZI_MPLAPACK_CONTEXT_H
#define SUNZI_MPLAPACK_CONTEXT_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <sunzi.h>

namespace sunzi_mplapack {

// Threads as the environment says; 0 are all processors.
inline int64_t threads_of_environment() {
    for (const char *name : {"SUNZI_NUM_THREADS", "OMP_NUM_THREADS"}) {
        const char *text = std::getenv(name);
        char *end = nullptr;
        long threads = text ? std::strtol(text, &end, 10) : 0;
        if (text && end != text && threads > 0) return threads;
    }
    return 0;
}

// Made at the first use, from any thread, and freed when the program ends. Destructors of static objects that run after
// that get a context of their own, which is left to the system.
class Context {
  public:
    static sunzi_context *get() {
        static Context owner;
        if (!owner.context_) owner.open();
        return owner.context_;
    }

  private:
    sunzi_context *context_ = nullptr;

    Context() { open(); }
    ~Context() {
        sunzi_context_free(context_);
        context_ = nullptr;
    }
    void open() {
        sunzi_options options = sunzi_options_default();
        options.threads = threads_of_environment();
        if (sunzi_context_new(&options, &context_) != SUNZI_OK) {
            std::fprintf(stderr, "sunzi: %s\n", sunzi_last_error(context_));
            std::abort();
        }
    }
};

// What LAPACK has no number for ends the program, as GMP does when memory is short.
[[noreturn]] inline void fail(const char *routine, const char *message) {
    std::fprintf(stderr, "sunzi: %s: %s\n", routine, message);
    std::abort();
}

// Whether a call did what it should. Not so: it met a NaN or an infinite number.
enum class Outcome { done, wrong_argument, not_finite };

// Sorts what a call has returned; `info` keeps what LAPACK would return. A wrong argument is reported to `xerbla`.
inline Outcome settle(const char *routine, int64_t &info, void (*xerbla)(const char *, int)) {
    if (info >= 0) return Outcome::done;
    switch (sunzi_last_status(Context::get())) {
    case SUNZI_NOT_FINITE:
        return Outcome::not_finite;
    case SUNZI_NULL_POINTER:
    case SUNZI_INVALID_ARGUMENT:
    case SUNZI_INVALID_SIZE:
        if (info > -1000) {
            xerbla(routine, static_cast<int>(-info));
            return Outcome::wrong_argument;
        }
        // fall through
    default:
        fail(routine, sunzi_last_error(Context::get()));
    }
}

} // namespace sunzi_mplapack

#endif
