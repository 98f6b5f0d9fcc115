//! Is a Gram matrix positive definite, as it must be? Cholesky in doubles and in big floats.

use crate::matrix::Matrix;
use rug::Float;
use rug::ops::CompleteRound;
use serde::Serialize;
use std::fmt;

/// How far a factorisation came.
#[derive(Serialize)]
pub struct Cholesky {
    /// Bits of every number in it.
    pub precision_bits: u32,
    /// Rows of the matrix.
    pub dimension: usize,
    /// Column, from 1, of the first pivot that is not positive.
    pub failed_column: Option<usize>,
    /// The least pivot met, in decimals.
    pub least_pivot: String,
}

impl fmt::Display for Cholesky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cholesky { precision_bits, dimension, failed_column, least_pivot } = self;
        match failed_column {
            Some(column) => write!(
                f,
                "   {precision_bits:>4} bits: breaks down at column {column} of {dimension}: pivot {least_pivot}"
            ),
            None => write!(f, "   {precision_bits:>4} bits: all {dimension} pivots positive, the least {least_pivot}"),
        }
    }
}

/// Rounds P to doubles (each column scaled by a power of two, which costs nothing), forms `P^T P` in doubles, factors.
pub fn in_doubles(p: &Matrix) -> Cholesky {
    let n = p.cols();
    let columns: Vec<Vec<f64>> = (0..n).map(|col| scaled_column(p, col)).collect();
    let mut q: Vec<Vec<f64>> = (0..n)
        .map(|row| (0..=row).map(|col| columns[row].iter().zip(&columns[col]).map(|(x, y)| x * y).sum()).collect())
        .collect();
    let roots: Vec<f64> = (0..n).map(|row| q[row][row].sqrt()).collect();
    for (row, entries) in q.iter_mut().enumerate() {
        entries.iter_mut().zip(&roots).for_each(|(entry, root)| *entry /= roots[row] * root);
    }
    let (mut least, mut failed_column) = (f64::INFINITY, None);
    for col in 0..n {
        let pivot = q[col][col] - q[col][..col].iter().map(|x| x * x).sum::<f64>();
        least = least.min(pivot);
        if pivot <= 0.0 {
            failed_column = Some(col + 1);
            break;
        }
        q[col][col] = pivot.sqrt();
        let (above, below) = q.split_at_mut(col + 1);
        let pivot_row = &above[col];
        for row in below {
            let sum: f64 = row[..col].iter().zip(pivot_row).map(|(x, y)| x * y).sum();
            row[col] = (row[col] - sum) / pivot_row[col];
        }
    }
    Cholesky { precision_bits: 53, dimension: n, failed_column, least_pivot: format!("{least:.2e}") }
}

/// Entries of a column over the power of two of its largest.
fn scaled_column(p: &Matrix, col: usize) -> Vec<f64> {
    let top = (0..p.rows()).filter_map(|row| p.float(row, col).get_exp()).max().unwrap_or(0);
    (0..p.rows()).map(|row| (p.float(row, col) >> top).to_f64()).collect()
}

/// Factors a stored Gram matrix at its own precision.
pub fn in_big_floats(q: &Matrix) -> Cholesky {
    let (n, bits) = (q.rows(), q.precision_bits());
    let roots: Vec<Float> = (0..n).map(|row| q.float(row, row).sqrt()).collect();
    let scaled = |row: usize, col: usize| q.float(row, col) / (&roots[row] * &roots[col]).complete(bits);
    let mut factor: Vec<Vec<Float>> = (0..n).map(|row| (0..=row).map(|col| scaled(row, col)).collect()).collect();
    let (mut least, mut failed_column) = (Float::with_val(bits, 1), None);
    for col in 0..n {
        let pivot = factor[col][col].clone() - dot(&factor[col][..col], &factor[col][..col], bits);
        if pivot < least {
            least = pivot.clone();
        }
        if pivot <= 0 {
            failed_column = Some(col + 1);
            break;
        }
        factor[col][col] = pivot.sqrt();
        let (above, below) = factor.split_at_mut(col + 1);
        let pivot_row = &above[col];
        for row in below {
            let sum = dot(&row[..col], &pivot_row[..col], bits);
            row[col] -= sum;
            row[col] /= &pivot_row[col];
        }
    }
    Cholesky { precision_bits: bits, dimension: n, failed_column, least_pivot: format!("{least:.3e}") }
}

fn dot(x: &[Float], y: &[Float], bits: u32) -> Float {
    Float::dot(x.iter().zip(y)).complete(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::generate::{Kind, Size, generate};
    use crate::{Context, syrk};

    #[test]
    fn a_hilbert_matrix_breaks_doubles_but_not_big_floats() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let well = generate(Kind::Minij, Size { rows: 5, cols: 5, precision_bits: 256 }, 0).unwrap();
        let ill = generate(Kind::Hilbert, Size { rows: 30, cols: 12, precision_bits: 256 }, 0).unwrap();
        let q = |p: &Matrix| syrk(&ctx, p, 256).unwrap();
        assert_eq!(in_doubles(&well).failed_column, None);
        assert_eq!(in_big_floats(&q(&well)).failed_column, None);
        assert!(in_doubles(&ill).failed_column.is_some());
        assert_eq!(in_big_floats(&q(&ill)).failed_column, None);
    }

    #[test]
    fn pivots_are_those_of_the_scaled_matrix() {
        // Columns (1, 0) and (1, 1): the scaled Gram matrix is [[1, s], [s, 1]] with s^2 = 1/2.
        let p = Matrix::from_f64s(2, 2, 100, &[1.0, 0.0, 1.0, 1.0]).unwrap();
        let q = Matrix::from_f64s(2, 2, 100, &[1.0, 1.0, 1.0, 2.0]).unwrap();
        assert_eq!(in_doubles(&p).least_pivot.parse(), Ok(0.5));
        assert_eq!(in_big_floats(&q).least_pivot.parse(), Ok(0.5));
    }
}
