//! The Cholesky factor of one tile of doubles on the host: POTRF.
//!
//! Columns are halved until few are left; each half takes the earlier one off the later one by a product, in strips of
//! columns that threads share. Source: Gustavson, "Recursion leads to automatic variable blocking for dense
//! linear-algebra algorithms", IBM J. Res. Dev. 41 (1997).

use crate::drive;
use crate::error::Result;
use crate::kernels::f64::dgemm::{Columns, subtract_product};
use std::ops::Range;

/// Columns that are factored one after the other.
const LEAF_COLUMNS: usize = 16;

/// Columns of a strip.
const STRIP_COLUMNS: usize = 64;

/// Multiply-adds below which threads would cost more than they gain.
const SHARED_WORK: usize = 1 << 21;

/// A pivot that is not positive: its index in the tile, and its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct BadPivot {
    pub index: usize,
    pub pivot: f64,
}

/// `A = L L^T` in place of the lower triangle of the column-major `order x order` matrix `a`; what lies above the
/// diagonal is changed and means nothing. Runs on `threads` threads of the pool it is called in.
pub(super) fn factor(a: &mut [f64], order: usize, threads: usize) -> std::result::Result<(), BadPivot> {
    assert_eq!(a.len(), order * order);
    columns(a, order, 0..order, threads)
}

/// Factors some columns, from the diagonal to the last row; all columns before them were taken off.
fn columns(a: &mut [f64], order: usize, range: Range<usize>, threads: usize) -> std::result::Result<(), BadPivot> {
    if range.len() <= LEAF_COLUMNS {
        return leaf(a, order, range);
    }
    let middle = range.start + (range.len() / 2).next_multiple_of(LEAF_COLUMNS).min(range.len() - 1);
    columns(a, order, range.start..middle, threads)?;
    let (before, after) = a.split_at_mut(middle * order);
    let done = &before[range.start * order..];
    let depth = middle - range.start;
    let strips = after[..(range.end - middle) * order].chunks_mut(STRIP_COLUMNS * order).enumerate();
    let take_off = |(index, strip): (usize, &mut [f64])| {
        let (first, width) = (middle + index * STRIP_COLUMNS, strip.len() / order);
        let x = Columns::new(&done[first..], order - first, depth, order);
        let y = Columns::new(&done[first..], width, depth, order);
        subtract_product(x, y, &mut strip[first..], order);
    };
    if threads <= 1 || (order - middle) * (range.end - middle) * depth < SHARED_WORK {
        strips.for_each(take_off);
    } else {
        let mut strips = strips;
        let shared: Result<()> = drive::share(
            &mut vec![(); threads],
            |()| strips.next(),
            |(), strip| {
                take_off(strip);
                Ok(())
            },
        );
        shared.expect("strips do not fail");
    }
    columns(a, order, middle..range.end, threads)
}

/// A few columns, one after the other.
fn leaf(a: &mut [f64], order: usize, range: Range<usize>) -> std::result::Result<(), BadPivot> {
    for col in range.clone() {
        let (before, own) = a.split_at_mut(col * order);
        let own = &mut own[col..order];
        for earlier in before[range.start * order..].chunks_exact(order) {
            let (factor, earlier) = (earlier[col], &earlier[col..]);
            own.iter_mut().zip(earlier).for_each(|(entry, value)| *entry -= value * factor);
        }
        let pivot = own[0];
        if !(pivot > 0.0 && pivot < f64::INFINITY) {
            return Err(BadPivot { index: col, pivot });
        }
        let root = pivot.sqrt();
        own[0] = root;
        own[1..].iter_mut().for_each(|entry| *entry /= root);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    /// Entries of `L` that are exact in doubles, as are all sums of `L L^T`.
    fn exact_factor(order: usize) -> Vec<f64> {
        let entry = |at: usize| match (at % order, at / order) {
            (i, j) if i == j => 1.0 + (i % 3) as f64,
            (i, j) if i > j => ((i * 7 + j * 13) % 5) as f64 - 2.0,
            _ => 0.0,
        };
        (0..order * order).map(entry).collect()
    }

    fn gram(l: &[f64], order: usize) -> Vec<f64> {
        let sum = |at: usize| {
            let (i, j) = (at % order, at / order);
            if i < j { f64::NAN } else { (0..=j).map(|k| l[k * order + i] * l[k * order + j]).sum() }
        };
        (0..order * order).map(sum).collect()
    }

    #[test]
    fn factors_of_integers_come_back_exactly() {
        let ctx = Context::builder().threads(2).build().unwrap();
        for order in [0, 1, 2, 15, 16, 17, 33, 64, 100, 257] {
            for threads in [1, 2] {
                let l = exact_factor(order);
                let mut a = gram(&l, order);
                ctx.install(|| factor(&mut a, order, threads)).unwrap();
                for at in 0..order * order {
                    let (i, j) = (at % order, at / order);
                    assert!(i < j || a[at] == l[at], "{order}, ({i}, {j}): {} instead of {}", a[at], l[at]);
                }
            }
        }
    }

    #[test]
    fn the_first_bad_pivot_is_named() {
        for (order, bad) in [(1, 0), (20, 0), (40, 17), (100, 99)] {
            for change in [-1e6, f64::NAN, f64::INFINITY] {
                let mut a = gram(&exact_factor(order), order);
                a[bad * order + bad] += change;
                assert_eq!(factor(&mut a, order, 1).unwrap_err().index, bad, "{order} rows, {change}");
            }
        }
    }
}
