//! Copies one triangle of a square matrix onto the other.
//!
//! The columns are divided in halves recursively: the rectangle between the two halves is copied from one to the other,
//! and the halves, which share no memory, are mirrored separately, at the same time if the caller runs on a thread
//! pool.

use crate::matrix::{MatrixViewMut, Uplo};

/// Columns below which nothing is halved any more: the heads of this number of neighbours fill two cache lines.
const BLOCK: usize = 16;

/// Elements of a rectangle that are worth a thread of their own.
const ELEMENTS_OF_A_THREAD: usize = 1 << 14;

/// Whether halves run at the same time, on the caller's rayon pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workers {
    /// One after the other.
    One,
    /// On all threads of the pool.
    Pool,
}

/// Columns `first..` of a matrix, `stride` elements from one column to the next, `width` limbs for each element.
struct MirrorColumns<'a> {
    heads: &'a mut [u64],
    limbs: &'a mut [u64],
    first: usize,
    stride: usize,
    width: usize,
}

impl<'a> MirrorColumns<'a> {
    fn count(&self) -> usize {
        self.heads.len().div_ceil(self.stride) // a block ends with the last row of its last column
    }

    /// The first `count` columns and the others.
    fn split(self, count: usize) -> (MirrorColumns<'a>, MirrorColumns<'a>) {
        let MirrorColumns { heads, limbs, first, stride, width } = self;
        let (left_heads, right_heads) = heads.split_at_mut(count * stride);
        let (left_limbs, right_limbs) = limbs.split_at_mut(count * stride * width);
        let left = MirrorColumns { heads: left_heads, limbs: left_limbs, first, stride, width };
        (left, MirrorColumns { heads: right_heads, limbs: right_limbs, first: first + count, stride, width })
    }
}

/// Sets every element outside the triangle `uplo` of a square matrix to its mirror image inside.
///
/// Cost: one pass over the matrix; nothing is allocated.
pub fn mirror(matrix: MatrixViewMut<'_>, uplo: Uplo, workers: Workers) {
    let (stride, width) = (matrix.leading_dimension(), matrix.limbs_per_element());
    assert_eq!(matrix.rows(), matrix.cols(), "only a square matrix has a mirror image of a triangle");
    if matrix.rows() > 0 {
        let (heads, limbs) = matrix.into_parts();
        mirror_columns(MirrorColumns { heads, limbs, first: 0, stride, width }, uplo, workers);
    }
}

/// Mirrors the square on the diagonal that lies in these columns.
fn mirror_columns(columns: MirrorColumns<'_>, uplo: Uplo, workers: Workers) {
    let count = columns.count();
    if count <= BLOCK {
        return mirror_block(columns, uplo);
    }
    let (mut left, mut right) = columns.split((count / 2).next_multiple_of(BLOCK));
    match uplo {
        Uplo::Lower => copy_rectangle(&left, &mut right, workers),
        Uplo::Upper => copy_rectangle(&right, &mut left, workers),
    }
    both(workers, count * count, || mirror_columns(left, uplo, workers), || mirror_columns(right, uplo, workers));
}

/// Runs both, at the same time where that is requested and worth it.
fn both(workers: Workers, elements: usize, left: impl FnOnce() + Send, right: impl FnOnce() + Send) {
    if workers == Workers::Pool && elements > ELEMENTS_OF_A_THREAD {
        rayon::join(left, right);
    } else {
        left();
        right();
    }
}

fn mirror_block(columns: MirrorColumns<'_>, uplo: Uplo) {
    let MirrorColumns { heads, limbs, first, stride, width } = columns;
    // Column `last` of the upper triangle, from its top down to the diagonal, is row `last` of the lower one.
    for last in 1..heads.len().div_ceil(stride) {
        let (columns, column) = heads.split_at_mut(last * stride);
        let along_row = columns[first + last..].iter_mut().step_by(stride);
        for (row, column) in along_row.zip(&mut column[first..]) {
            match uplo {
                Uplo::Lower => *column = *row,
                Uplo::Upper => *row = *column,
            }
        }
        let (columns, column) = limbs.split_at_mut(last * stride * width);
        let along_row = columns[(first + last) * width..].chunks_mut(stride * width);
        for (row, column) in along_row.zip(column[first * width..].chunks_exact_mut(width)) {
            match uplo {
                Uplo::Lower => column.copy_from_slice(&row[..width]),
                Uplo::Upper => row[..width].copy_from_slice(column),
            }
        }
    }
}

/// Element `(i, j)` of `to` becomes element `(j, i)` of `from`, for all `i` among the columns of `from`.
fn copy_rectangle(from: &MirrorColumns<'_>, to: &mut MirrorColumns<'_>, workers: Workers) {
    let count = to.count();
    if count > BLOCK {
        let MirrorColumns { heads, limbs, first, stride, width } = to;
        let whole = MirrorColumns { heads, limbs, first: *first, stride: *stride, width: *width };
        let (mut left, mut right) = whole.split((count / 2).next_multiple_of(BLOCK));
        let elements = count * from.count();
        return both(
            workers,
            elements,
            || copy_rectangle(from, &mut left, workers),
            || copy_rectangle(from, &mut right, workers),
        );
    }
    let (stride, width) = (to.stride, to.width);
    for i in 0..from.count() {
        let start = i * stride + to.first;
        let heads = &from.heads[start..start + count];
        let limbs = from.limbs[start * width..(start + count) * width].chunks_exact(width);
        for (j, (head, limbs)) in heads.iter().zip(limbs).enumerate() {
            let at = from.first + i + j * stride;
            to.heads[at] = *head;
            to.limbs[at * width..(at + 1) * width].copy_from_slice(limbs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    #[test]
    fn every_size_becomes_its_own_transpose_and_keeps_the_triangle() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for (order, bits) in [(0, 64), (1, 65), (2, 64), (16, 64), (17, 130), (33, 64), (64, 200), (257, 64)] {
            let entries = (0..order * order).map(|at| at as f64 + 1.0).collect::<Vec<_>>();
            let whole = Matrix::from_f64s(order, order, bits, &entries).unwrap();
            for uplo in [Uplo::Lower, Uplo::Upper] {
                let mut alone = whole.clone();
                mirror(alone.view_mut(), uplo, Workers::One);
                for (row, col) in (0..order).flat_map(|row| (0..order).map(move |col| (row, col))) {
                    let inside = (row >= col) == (uplo == Uplo::Lower) || row == col;
                    let want = if inside { whole.get(row, col) } else { whole.get(col, row) };
                    assert_eq!(alone.get(row, col), want, "{uplo:?} {order} ({row}, {col})");
                }
                let mut together = whole.clone();
                pool.install(|| mirror(together.view_mut(), uplo, Workers::Pool));
                assert!(together == alone);
                let mut large = Matrix::zeros(order + 3, order + 2, bits).unwrap();
                large.view_mut().block(1..order + 1, 2..order + 2).unwrap().copy_from(&whole);
                mirror(large.view_mut().block(1..order + 1, 2..order + 2).unwrap(), uplo, Workers::One);
                assert!(large.view().block(1..order + 1, 2..order + 2).unwrap().to_matrix().unwrap() == alone);
            }
        }
    }
}
