//! Products and triangular solves of a software device.

use super::threads::apart;
use crate::device::dgemm::function;
use crate::device::{Element, Gemm, GemmOperand, Trsm};
use crate::math::processor::dgemm_crate_runs;
#[cfg(target_arch = "x86_64")]
use crate::math::processor::processor_has;
use rayon::ThreadPool;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Elements of an operand from its first on.
fn elements<T>(operand: &GemmOperand) -> &[T] {
    let count = operand.region.bytes() / size_of::<T>();
    // SAFETY: the region is initialised memory of the software device, aligned as the caller of `multiply` promised
    // for its element type, and commands of the device run one at a time.
    unsafe { std::slice::from_raw_parts(operand.region.address() as *const T, count) }
}

fn aligned<T>(operand: &GemmOperand) -> *mut T {
    assert!(operand.region.address().is_multiple_of(align_of::<T>() as u64), "an operand begins at a whole element");
    operand.region.address() as *mut T
}

/// Carries a batch out.
pub(super) fn multiply(gemm: &Gemm, pool: Option<&ThreadPool>) {
    let one = |index| match gemm.element {
        Element::F64 => multiply_f64(gemm, index),
        Element::I8 => multiply_i8(gemm, index),
    };
    // The matrices of a batch do not overlap.
    match pool {
        Some(pool) => apart(pool, || (0..gemm.batch).into_par_iter().for_each(one)),
        None => (0..gemm.batch).for_each(one),
    }
}

fn multiply_f64(gemm: &Gemm, index: usize) {
    let Gemm { m, n, k, a, b, c, .. } = gemm;
    // (row stride, column stride) of the m x k and of the k x n matrix.
    let (a_strides, b_strides) = match gemm.by_rows {
        true => ((1, a.ld as isize), (b.ld as isize, 1)),
        false => ((a.ld as isize, 1), (1, b.ld as isize)),
    };
    let sign = if gemm.negate { -1.0 } else { 1.0 };
    if !dgemm_crate_runs() {
        let (a_words, b_words) = (&elements::<f64>(a)[index * a.stride..], &elements::<f64>(b)[index * b.stride..]);
        let entry = |row: usize, col: usize, k: usize| {
            let left = a_words[row * a_strides.0 as usize + k * a_strides.1 as usize];
            left * b_words[k * b_strides.0 as usize + col * b_strides.1 as usize]
        };
        return multiply_by_loops(gemm, index, |row, col| sign * (0..*k).map(|k| entry(row, col, k)).sum::<f64>());
    }
    // SAFETY: `Gemm::check` found that all matrices lie in their regions; C overlaps neither operand, as on any BLAS;
    // the contents of C are read only where the product is added to them.
    unsafe {
        function()(
            *m,
            *n,
            *k,
            aligned::<f64>(c).add(index * c.stride),
            c.ld as isize,
            1,
            gemm.accumulate,
            aligned::<f64>(a).add(index * a.stride),
            a_strides.1,
            a_strides.0,
            aligned::<f64>(b).add(index * b.stride),
            b_strides.1,
            b_strides.0,
            1.0,
            sign,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

/// Stores these sums, or adds them, where the crate for products cannot run.
fn multiply_by_loops(gemm: &Gemm, index: usize, sum: impl Fn(usize, usize) -> f64) {
    let (c, out) = (&gemm.c, aligned::<f64>(&gemm.c));
    for (row, col) in (0..gemm.n).flat_map(|col| (0..gemm.m).map(move |row| (row, col))) {
        // SAFETY: `Gemm::check` found that C lies in its region, and nothing else is borrowed from it.
        unsafe {
            let entry = out.add(index * c.stride + col * c.ld + row);
            *entry = if gemm.accumulate { *entry } else { 0.0 } + sum(row, col);
        }
    }
}

fn multiply_i8(gemm: &Gemm, index: usize) {
    #[cfg(target_arch = "x86_64")]
    if processor_has!(Avx2: "avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { multiply_i8_avx2(gemm, index) };
    }
    multiply_i8_by_loops(gemm, index);
}

/// The same loops, compiled for vectors that are twice as wide and extend bytes in one instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn multiply_i8_avx2(gemm: &Gemm, index: usize) {
    multiply_i8_by_loops(gemm, index);
}

#[inline(always)]
fn multiply_i8_by_loops(gemm: &Gemm, index: usize) {
    let Gemm { m, n, k, a, b, c, .. } = gemm;
    let (a_words, b_words) = (&elements::<i8>(a)[index * a.stride..], &elements::<i8>(b)[index * b.stride..]);
    assert!(*k < 1 << 17, "sums of {k} products of bytes may not fit 32 bits");
    let out = aligned::<i32>(c);
    for col in 0..*n {
        let right = &b_words[col * b.ld..][..*k];
        for row in 0..*m {
            let left = &a_words[row * a.ld..][..*k];
            let mut sum = 0i32;
            for (&x, &y) in left.iter().zip(right) {
                sum = sum.wrapping_add(i32::from(x) * i32::from(y));
            }
            // SAFETY: `Gemm::check` found that C lies in its region, and nothing else is borrowed from it.
            unsafe {
                let entry = out.add(index * c.stride + col * c.ld + row);
                *entry = if gemm.accumulate { (*entry).wrapping_add(sum) } else { sum };
            }
        }
    }
}

/// Changes the first entry of the first product.
pub(super) fn flip(gemm: &Gemm) {
    if gemm.work() == 0 {
        return;
    }
    // SAFETY: the entry lies in C, which lies in its region; for doubles the whole number 1 is added, which every sum
    // of the method has room for.
    unsafe {
        match gemm.element {
            Element::F64 => *aligned::<f64>(&gemm.c) += 1.0,
            Element::I8 => *aligned::<i32>(&gemm.c) ^= 1,
        }
    }
}

/// `B := B L^-T`, column by column.
pub(super) fn solve(trsm: &Trsm) {
    let l = elements::<f64>(&trsm.l);
    let (b, m) = (aligned::<f64>(&trsm.b), trsm.m);
    // SAFETY: `Trsm::check` found that the columns `0..n` of `m` entries lie in the region; each is borrowed once.
    let column = |index: usize| unsafe { std::slice::from_raw_parts_mut(b.add(index * trsm.b.ld), m) };
    for col in 0..trsm.n {
        let own = column(col);
        for before in 0..col {
            let factor = l[before * trsm.l.ld + col];
            for (entry, solved) in own.iter_mut().zip(column(before).iter()) {
                *entry -= solved * factor;
            }
        }
        let pivot = l[col * trsm.l.ld + col];
        own.iter_mut().for_each(|entry| *entry /= pivot);
    }
}
