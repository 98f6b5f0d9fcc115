// C := A^T B, or C + A^T B, in bytes, one entry a thread: for the shapes that the library's fast kernels refuse.
// Columns of A and B begin at multiples of 16 bytes, so four bytes can be read at once.

struct Arguments {
    const signed char *a;
    const signed char *b;
    int *c;
    unsigned long long m, n, k, a_ld, b_ld, c_ld, a_stride, b_stride, c_stride, accumulate;
};

extern "C" __global__ void product_i8(unsigned long long threads, Arguments arguments) {
    unsigned long long thread = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (thread >= threads) return;
    unsigned long long row = thread % arguments.m;
    unsigned long long col = thread / arguments.m % arguments.n;
    unsigned long long product = thread / arguments.m / arguments.n;
    const signed char *a = arguments.a + product * arguments.a_stride + row * arguments.a_ld;
    const signed char *b = arguments.b + product * arguments.b_stride + col * arguments.b_ld;
    int *c = arguments.c + product * arguments.c_stride + col * arguments.c_ld + row;
    int sum = 0;
    unsigned long long at = 0;
    for (; at + 4 <= arguments.k; at += 4) {
        sum = __dp4a(*(const int *)(a + at), *(const int *)(b + at), sum);
    }
    for (; at < arguments.k; at++) sum += a[at] * b[at];
    *c = arguments.accumulate ? *c + sum : sum;
}
