//! Products and triangular solves as cuBLAS takes them.
//!
//! cuBLAS is column-major, as [`Gemm`] is, so nothing is swapped. It computes `C := alpha op(A) op(B) + beta C`, where
//! `op(A)` is `m x k`, `op(B)` is `k x n` and C is `m x n`; a leading dimension is that of the matrix as stored.
//!
//! | ours | stored A | stored B | op(A) | op(B) | lda at least | ldb at least |
//! |---|---|---|---|---|---|---|
//! | `A^T B` | `k x m` | `k x n` | `T`: (k x m)^T = m x k | `N`: k x n | k | k |
//! | `A B^T`, `by_rows` | `m x k` | `n x k` | `N`: m x k | `T`: (n x k)^T = k x n | m | n |
//!
//! alpha is -1 where the product is subtracted and 1 otherwise; beta is 1 where C is added to and 0 otherwise (cuBLAS
//! does not read C then, as BLAS demands). Strides are in elements of the matrix they belong to.
//!
//! A triangular solve `B := B L^-T` is X in `X op(A) = alpha B` with side `RIGHT`, A = L, `LOWER`, op = `T`, the
//! diagonal as stored (`NON_UNIT`), alpha = 1, m rows and n columns of B; L is `n x n`.
//!
//! Bytes: `T`, `N` is the form for which the tensor cores have integer kernels, with pointers and leading dimensions
//! that are multiples of 4 (best 16), and m and k too. Other shapes use a slower kernel or none; in the latter case
//! cuBLAS reports that they are not supported, before anything is submitted.
//!
//! Doubles: the default mode keeps at least 53 bits, with the tensor cores for doubles, which fuse each product with
//! its sum. Sums of integers below 2^53 are exact in any order. The emulation of doubles by integers that newer
//! versions have must stay off; only a math mode or an environment variable turns it on (`probe.rs` looks for the
//! latter).

use super::core::Core;
use super::sys::{
    self, CUdeviceptr, CUstream, cublasComputeType_t, cublasDiagType_t, cublasFillMode_t, cublasGemmAlgo_t,
    cublasHandle_t, cublasMath_t, cublasOperation_t, cublasSideMode_t, cudaDataType,
};
use crate::device::{Element, Gemm, GemmOperand, Trsm};
use crate::error::{Error, Result};
use std::ffi::{CStr, c_char, c_int, c_longlong};
use std::sync::Arc;

/// Scratch memory of each handle. cuBLAS itself takes 32 MiB on recent GPUs, from a pool that it locks.
const WORKSPACE_BYTES: usize = 64 << 20;

/// cuBLAS has no kernel for this shape.
const NOT_SUPPORTED: c_int = 15;

/// cuBLAS refuses an argument.
const INVALID_VALUE: c_int = 7;

/// cuBLAS has nothing for this GPU.
const ARCHITECTURE: c_int = 8;

/// The arguments of a batch of products, apart from addresses.
#[derive(Clone, PartialEq, Debug)]
struct Arguments {
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: c_int,
    n: c_int,
    k: c_int,
    lda: c_int,
    ldb: c_int,
    ldc: c_int,
    stride_a: c_longlong,
    stride_b: c_longlong,
    stride_c: c_longlong,
    batch: c_int,
    alpha: i32,
    beta: i32,
}

/// A size as cuBLAS takes it.
fn size(number: usize) -> Result<c_int> {
    c_int::try_from(number).map_err(|_| Error::Device(format!("cuBLAS does not accept a size of {number}")))
}

/// A product as cuBLAS takes it.
fn arguments(gemm: &Gemm) -> Result<Arguments> {
    let (transa, transb) = match gemm.by_rows {
        false => (cublasOperation_t::CUBLAS_OP_T, cublasOperation_t::CUBLAS_OP_N),
        true => (cublasOperation_t::CUBLAS_OP_N, cublasOperation_t::CUBLAS_OP_T),
    };
    let stride = |operand: &GemmOperand| operand.stride as c_longlong;
    Ok(Arguments {
        transa,
        transb,
        m: size(gemm.m)?,
        n: size(gemm.n)?,
        k: size(gemm.k)?,
        lda: size(gemm.a.ld)?,
        ldb: size(gemm.b.ld)?,
        ldc: size(gemm.c.ld)?,
        stride_a: stride(&gemm.a),
        stride_b: stride(&gemm.b),
        stride_c: stride(&gemm.c),
        batch: size(gemm.batch)?,
        alpha: if gemm.negate { -1 } else { 1 },
        beta: i32::from(gemm.accumulate),
    })
}

/// A handle of cuBLAS for one stream, with its scratch memory. One thread at a time may use it.
pub(super) struct Handle {
    blas: &'static sys::Blas,
    core: Arc<Core>,
    stream: CUstream,
    raw: cublasHandle_t,
    workspace: CUdeviceptr,
}

// SAFETY: handle and stream are opaque and bound to no thread; the owner keeps the handle behind a mutex.
unsafe impl Send for Handle {}

impl Handle {
    /// A handle for `stream`, whose context is current.
    pub fn new(core: &Arc<Core>, stream: CUstream) -> Result<Handle> {
        let blas = sys::Blas::load()?;
        let workspace = core.allocate_uncounted(WORKSPACE_BYTES)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the context is current, and the place is for one handle, left null where there is none.
        let status = unsafe { (blas.create)(&mut raw) };
        let handle = Handle { blas, core: core.clone(), stream, raw, workspace };
        handle.check(status, "start")?;
        // SAFETY: handle and stream live. The stream is set first: setting it forgets the scratch memory.
        handle.check(unsafe { (blas.set_stream)(handle.raw, stream.cast()) }, "use a stream")?;
        // SAFETY: the block has `WORKSPACE_BYTES` bytes, is aligned to 256, and lives as long as the handle.
        let status = unsafe { (blas.set_workspace)(handle.raw, workspace as *mut _, WORKSPACE_BYTES) };
        handle.check(status, "use scratch memory")?;
        // SAFETY: the handle lives.
        let status = unsafe { (blas.set_math_mode)(handle.raw, cublasMath_t::CUBLAS_DEFAULT_MATH) };
        handle.check(status, "set its math mode")?;
        Ok(handle)
    }

    /// Submits a batch of products that is not empty; `false` where cuBLAS has no kernel for the shape and nothing was
    /// submitted.
    pub fn multiply(&self, gemm: &Gemm) -> Result<bool> {
        let arguments = arguments(gemm)?;
        let status = match gemm.element {
            Element::F64 => self.multiply_f64(gemm, &arguments),
            Element::I8 => self.multiply_i8(gemm, &arguments),
        };
        // Bounds were checked, so a refusal of the values or of the architecture means the same for bytes.
        if [NOT_SUPPORTED, INVALID_VALUE, ARCHITECTURE].contains(&status) && gemm.element == Element::I8 {
            return Ok(false);
        }
        self.check(status, "multiply").map(|()| true)
    }

    fn multiply_f64(&self, gemm: &Gemm, arguments: &Arguments) -> c_int {
        let Arguments { transa, transb, m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, batch, alpha, beta } =
            *arguments;
        let (alpha, beta) = (f64::from(alpha), f64::from(beta));
        let address = |operand: &GemmOperand| operand.region.address() as *mut f64;
        let (a, b, c) = (address(&gemm.a), address(&gemm.b), address(&gemm.c));
        // SAFETY: `Gemm::check` found that all matrices lie in their regions, which are memory of this GPU that is
        // freed after the work submitted; alpha and beta are read before the call returns.
        unsafe {
            (self.blas.dgemm)(
                self.raw, transa, transb, m, n, k, &alpha, a, lda, stride_a, b, ldb, stride_b, &beta, c, ldc, stride_c,
                batch,
            )
        }
    }

    fn multiply_i8(&self, gemm: &Gemm, arguments: &Arguments) -> c_int {
        let Arguments { transa, transb, m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, batch, alpha, beta } =
            *arguments;
        let (bytes, words) = (cudaDataType::CUDA_R_8I, cudaDataType::CUDA_R_32I);
        let address = |operand: &GemmOperand| operand.region.address() as *mut std::ffi::c_void;
        let (a, b, c) = (address(&gemm.a), address(&gemm.b), address(&gemm.c));
        let (alpha, beta) = (std::ptr::from_ref(&alpha).cast(), std::ptr::from_ref(&beta).cast());
        let (compute, choice) = (cublasComputeType_t::CUBLAS_COMPUTE_32I, cublasGemmAlgo_t::CUBLAS_GEMM_DFALT);
        // SAFETY: as for doubles; with this type of computing alpha and beta are 32-bit integers.
        unsafe {
            (self.blas.gemm_ex)(
                self.raw, transa, transb, m, n, k, alpha, a, bytes, lda, stride_a, b, bytes, ldb, stride_b, beta, c,
                words, ldc, stride_c, batch, compute, choice,
            )
        }
    }

    /// Submits a triangular solve that is not empty.
    pub fn solve(&self, trsm: &Trsm) -> Result<()> {
        let (m, n) = (size(trsm.m)?, size(trsm.n)?);
        let (lda, ldb) = (size(trsm.l.ld)?, size(trsm.b.ld)?);
        let (l, b) = (trsm.l.region.address() as *const f64, trsm.b.region.address() as *mut f64);
        let (side, lower) = (cublasSideMode_t::CUBLAS_SIDE_RIGHT, cublasFillMode_t::CUBLAS_FILL_MODE_LOWER);
        let (transposed, diagonal) = (cublasOperation_t::CUBLAS_OP_T, cublasDiagType_t::CUBLAS_DIAG_NON_UNIT);
        // SAFETY: `Trsm::check` found that both matrices lie in their regions, which are memory of this GPU that is
        // freed after the work submitted; alpha is read before the call returns.
        let status =
            unsafe { (self.blas.dtrsm)(self.raw, side, lower, transposed, diagonal, m, n, &1.0, l, lda, b, ldb) };
        self.check(status, "solve")
    }

    /// An error for a status that is not success. Where the GPU is lost, the driver's error is clearer.
    fn check(&self, status: c_int, what: &str) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        const NOT_READY: c_int = 600;
        // SAFETY: the stream lives as long as the handle.
        let driver = unsafe { (self.core.driver.stream_query)(self.stream) };
        if driver != NOT_READY {
            self.core.check(driver, what)?;
        }
        const ALLOCATION_FAILED: c_int = 3;
        if status == ALLOCATION_FAILED {
            return Err(self.core.out_of_memory(0));
        }
        let text = |ask: unsafe extern "C" fn(c_int) -> *const c_char| {
            // SAFETY: the call takes any number and answers a text that is never freed, or null.
            let text = unsafe { ask(status) };
            // SAFETY: not null, and ended by a zero as all texts of C.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let name = text(self.blas.status_name).unwrap_or_else(|| format!("status {status}"));
        let words = text(self.blas.status_string).unwrap_or_default();
        Err(Error::Device(format!("cuBLAS cannot {what}: {name}: {words}")))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.core.enter().is_err() {
            return;
        }
        if !self.raw.is_null() {
            // SAFETY: made in `new`, freed once; destroying it waits for its work.
            unsafe { (self.blas.destroy)(self.raw) };
        }
        self.core.free_uncounted(self.workspace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::soft::{SoftDevice, SoftOptions};
    use crate::device::{Device, DeviceAllocator};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn operand(device: &SoftDevice, words: usize, ld: usize, stride: usize) -> GemmOperand {
        GemmOperand { region: device.allocate(8 * words).unwrap().whole(), ld, stride }
    }

    fn gemm(device: &SoftDevice, by_rows: bool) -> Gemm {
        let (m, n, k, batch) = (3, 4, 5, 2);
        let (a_cols, b_cols) = if by_rows { (k, k) } else { (m, n) };
        let a = operand(device, 100 + 7 * a_cols, 7, 100);
        let b = operand(device, 200 + 8 * b_cols, 8, 200);
        let c = operand(device, 300 + 9 * n, 9, 300);
        Gemm { element: Element::F64, m, n, k, a, b, c, batch, negate: false, accumulate: false, by_rows }
    }

    #[test]
    fn arguments_are_those_of_the_table() {
        let device = SoftDevice::new(SoftOptions::default());
        let (t, n) = (cublasOperation_t::CUBLAS_OP_T, cublasOperation_t::CUBLAS_OP_N);
        let wanted = Arguments {
            transa: t,
            transb: n,
            m: 3,
            n: 4,
            k: 5,
            lda: 7,
            ldb: 8,
            ldc: 9,
            stride_a: 100,
            stride_b: 200,
            stride_c: 300,
            batch: 2,
            alpha: 1,
            beta: 0,
        };
        assert_eq!(arguments(&gemm(&device, false)).unwrap(), wanted);
        let changed = Gemm { negate: true, accumulate: true, ..gemm(&device, true) };
        let wanted = Arguments { transa: n, transb: t, alpha: -1, beta: 1, ..wanted };
        assert_eq!(arguments(&changed).unwrap(), wanted);
        let huge = Gemm { m: 1 << 31, ..gemm(&device, false) };
        assert!(matches!(arguments(&huge), Err(Error::Device(_))));
    }

    /// `C := alpha op(A) op(B) + beta C` as BLAS defines it, on column-major matrices.
    fn define(arguments: &Arguments, a: &[f64], b: &[f64], c: &mut [f64]) {
        let at = |row: usize, col: usize, ld: c_int| row + col * ld as usize;
        let element = |words: &[f64], op, row, col, ld, start: usize| match op {
            cublasOperation_t::CUBLAS_OP_N => words[start + at(row, col, ld)],
            _ => words[start + at(col, row, ld)],
        };
        for index in 0..arguments.batch as usize {
            let start = |stride: c_longlong| index * stride as usize;
            for (row, col) in
                (0..arguments.m as usize).flat_map(|row| (0..arguments.n as usize).map(move |col| (row, col)))
            {
                let sum = (0..arguments.k as usize).map(|term| {
                    element(a, arguments.transa, row, term, arguments.lda, start(arguments.stride_a))
                        * element(b, arguments.transb, term, col, arguments.ldb, start(arguments.stride_b))
                });
                let sum = sum.sum::<f64>();
                let entry = &mut c[start(arguments.stride_c) + at(row, col, arguments.ldc)];
                *entry = f64::from(arguments.alpha) * sum + f64::from(arguments.beta) * *entry;
            }
        }
    }

    fn numbers(random: &mut ChaCha8Rng, operand: &GemmOperand) -> Vec<f64> {
        (0..operand.region.bytes() / 8).map(|_| f64::from(random.random_range(-99..100))).collect()
    }

    #[test]
    fn the_arguments_mean_what_the_software_device_computes() {
        let device = SoftDevice::new(SoftOptions::default());
        let stream = device.stream().unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let write = |operand: &GemmOperand, words: &[f64]| {
            let pinned = device.allocate_pinned(operand.region.bytes()).unwrap();
            pinned.lock().unwrap().copy_from_slice(bytemuck::cast_slice(words));
            device.upload(stream, &pinned, 0, &operand.region).unwrap();
        };
        for case in 0..8 {
            let (by_rows, negate, accumulate) = (case & 1 != 0, case & 2 != 0, case & 4 != 0);
            let gemm = Gemm { negate, accumulate, ..gemm(&device, by_rows) };
            let [a, b, mut c] = [&gemm.a, &gemm.b, &gemm.c].map(|operand| {
                let words = numbers(&mut random, operand);
                write(operand, &words);
                words
            });
            device.multiply(stream, &gemm).unwrap();
            define(&arguments(&gemm).unwrap(), &a, &b, &mut c);
            let pinned = device.allocate_pinned(gemm.c.region.bytes()).unwrap();
            device.download(stream, &gemm.c.region, &pinned, 0).unwrap();
            assert_eq!(
                bytemuck::cast_slice::<u8, u64>(&pinned.lock().unwrap()),
                bytemuck::cast_slice::<f64, u64>(&c),
                "{case}"
            );
        }
    }
}
