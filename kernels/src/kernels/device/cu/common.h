/* What all kernels share: types, the shape of a kernel, reduction modulo a small modulus.
 *
 * The text is CUDA C for NVRTC, which has no standard headers and gets this file pasted in front of each kernel, and
 * C11 for the software device. One definition
 *
 *     struct name_arguments { ... };
 *     KERNEL(name) { ... thread ... a->field ... }
 *
 * makes, for CUDA, a kernel `sunzi_name(u64 threads, struct name_arguments a)` and, for the host, a function
 * `sunzi_name(u64 first, u64 end, const u64 *arguments)` that runs threads one after another. Every field of an
 * argument structure has eight bytes.
 */
#ifndef SUNZI_COMMON_H
#define SUNZI_COMMON_H

typedef signed char i8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#ifdef __CUDACC_RTC__

/* No kernel calls all of the functions below. */
#pragma nv_diag_suppress 177

#define FUNCTION static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define ALIGNED_16 __align__(16)

#define KERNEL(name)                                                                             \
    FUNCTION void name##_thread(u64 thread, const struct name##_arguments *a);                   \
    extern "C" __global__ void sunzi_##name(u64 threads, const struct name##_arguments argument) \
    {                                                                                            \
        const u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;                           \
        if (thread < threads)                                                                    \
            name##_thread(thread, &argument);                                                    \
    }                                                                                            \
    FUNCTION void name##_thread(u64 thread, const struct name##_arguments *a)

/* High half of the product. */
FUNCTION u64 multiply_high(u64 x, u64 y)
{
    return __umul64hi(x, y);
}

/* Lowers a word that other threads may be lowering, too. */
FUNCTION void lower(u64 *word, u64 value)
{
    atomicMin(word, value);
}

/* Zero bits above the highest bit of a word that is not 0. */
FUNCTION int leading_zeros(u32 word)
{
    return __clz((int)word);
}

#else

#define FUNCTION static inline
#define UNROLL
#define ALIGNED_16 __attribute__((aligned(16)))

#define KERNEL(name)                                                                      \
    static inline void name##_thread(u64 thread, const struct name##_arguments *a);       \
    void sunzi_##name(u64 first, u64 end, const u64 *words);                              \
    void sunzi_##name(u64 first, u64 end, const u64 *words)                               \
    {                                                                                     \
        struct name##_arguments argument;                                                 \
        __builtin_memcpy(&argument, words, sizeof argument);                              \
        for (u64 thread = first; thread < end; ++thread)                                  \
            name##_thread(thread, &argument);                                             \
    }                                                                                     \
    static inline void name##_thread(u64 thread, const struct name##_arguments *a)

FUNCTION u64 multiply_high(u64 x, u64 y)
{
    return (u64)(((unsigned __int128)x * y) >> 64);
}

/* Threads of the host run one after another. */
FUNCTION void lower(u64 *word, u64 value)
{
    if (value < *word)
        *word = value;
}

FUNCTION int leading_zeros(u32 word)
{
    return __builtin_clz(word);
}

#endif

/* Four words that are loaded at once. */
struct ALIGNED_16 words4 {
    u32 word[4];
};

/* Whether residues are those of the signed bytes, stored in 16 bits, or those of the doubles, stored in 32. */
#ifdef SUNZI_BYTES
#define BYTES SUNZI_BYTES
#else
#define BYTES ((int)a->bytes)
#endif

/* Constants of one modulus. */
struct modulus {
    u64 inverse; /* floor((2^64 - 1) / value) */
    u64 offset;  /* a multiple of the modulus that makes any sum of a chunk positive */
    u64 share;   /* floor(2^48 / value) */
    u32 value;
    u32 weight; /* (M / value)^-1 modulo value */
};

/* The least residue of any word. The quotient from the inverse is right or one too small, so the rest is below twice
 * the modulus, and the lower halves of all words suffice for it. */
FUNCTION u32 least_residue(u64 word, const struct modulus *modulus)
{
    const u32 quotient = (u32)multiply_high(word, modulus->inverse);
    const u32 rest = (u32)word - quotient * modulus->value;
    return rest >= modulus->value ? rest - modulus->value : rest;
}

FUNCTION u32 load_residue(const void *residues, u64 index, int bytes)
{
    return bytes ? ((const u16 *)residues)[index] : ((const u32 *)residues)[index];
}

FUNCTION void store_residue(void *residues, u64 index, u32 residue, int bytes)
{
    if (bytes)
        ((u16 *)residues)[index] = (u16)residue;
    else
        ((u32 *)residues)[index] = residue;
}

/* Number of the first operand plane of a modulus: one plane each, and three each from `singles` on. */
FUNCTION u64 plane_of(u64 modulus, u64 singles)
{
    return modulus < singles ? modulus : 3 * modulus - 2 * singles;
}

/* Quotient of a thread's number, by the short division where it serves. */
FUNCTION u64 divide(u64 number, u64 divisor)
{
    return ((number | divisor) >> 32) == 0 ? (u64)((u32)number / (u32)divisor) : number / divisor;
}

#endif
