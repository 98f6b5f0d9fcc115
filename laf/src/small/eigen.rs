//! Eigenvalues and eigenvectors of a small symmetric matrix.

use super::SmallMatrix;
use sunzi::{Error, Result};

/// `A V = V diag(values)`.
#[derive(Clone, PartialEq, Debug)]
pub struct Eigen {
    /// Ascending.
    pub values: Vec<f64>,
    /// Orthonormal columns, in the order of the values.
    pub vectors: SmallMatrix,
}

/// Sweeps after which the method is given up; ten are many.
const SWEEPS: usize = 60;

/// The eigenproblem of a symmetric matrix, of which the lower triangle is read.
///
/// Cyclic Jacobi rotations: the absolute error of every eigenvalue is a few units in the last place of the largest one,
/// and if the matrix is positive definite with a scaled condition number `k`, its relative error is about `k` units.
/// Cost: about `30 n^3` operations. Source: J. Demmel, K. Veselic, "Jacobi's method is more accurate than QR", 1992.
///
/// # Errors
/// [`Error::NotSquare`]; [`Error::NotFinite`] with the first entry that is not finite.
pub fn symmetric_eigen(a: &SmallMatrix) -> Result<Eigen> {
    let size = a.rows();
    if a.cols() != size {
        return Err(Error::NotSquare { operation: "eigenvalues", rows: a.rows(), cols: a.cols() });
    }
    let mut a = SmallMatrix::from_fn(size, size, |row, col| a.at(row.max(col), row.min(col)));
    if let Some(place) = a.numbers().iter().position(|x| !x.is_finite()) {
        let kind = if a.numbers()[place].is_nan() { "NaN" } else { "infinite" };
        return Err(Error::NotFinite { row: place / size, column: place % size, kind });
    }
    let mut v = SmallMatrix::identity(size);
    for _ in 0..SWEEPS {
        let mut turned = false;
        for p in 0..size {
            for q in p + 1..size {
                turned |= rotate(&mut a, &mut v, p, q);
            }
        }
        if !turned {
            break;
        }
    }
    let mut order = (0..size).collect::<Vec<_>>();
    order.sort_by(|&i, &j| a.at(i, i).total_cmp(&a.at(j, j)));
    let values = order.iter().map(|&i| a.at(i, i)).collect();
    Ok(Eigen { values, vectors: SmallMatrix::from_fn(size, size, |row, col| v.at(row, order[col])) })
}

/// Makes the entry at `p`, `q` zero; `false` where it is negligible relative to the diagonal.
fn rotate(a: &mut SmallMatrix, v: &mut SmallMatrix, p: usize, q: usize) -> bool {
    let (app, aqq, apq) = (a.at(p, p), a.at(q, q), a.at(p, q));
    if apq == 0.0 || apq.abs() <= f64::EPSILON * 0.25 * (app.abs().sqrt() * aqq.abs().sqrt()).max(f64::MIN_POSITIVE) {
        return false;
    }
    let theta = (aqq - app) / (2.0 * apq);
    let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let s = t * c;
    if t == 0.0 || s == 0.0 {
        return false;
    }
    let size = a.rows();
    for k in 0..size {
        let (akp, akq) = (a.at(k, p), a.at(k, q));
        (*a.at_mut(k, p), *a.at_mut(k, q)) = (c * akp - s * akq, s * akp + c * akq);
    }
    for k in 0..size {
        let (apk, aqk) = (a.at(p, k), a.at(q, k));
        (*a.at_mut(p, k), *a.at_mut(q, k)) = (c * apk - s * aqk, s * apk + c * aqk);
        let (vkp, vkq) = (v.at(k, p), v.at(k, q));
        (*v.at_mut(k, p), *v.at_mut(k, q)) = (c * vkp - s * vkq, s * vkp + c * vkq);
    }
    (*a.at_mut(p, p), *a.at_mut(q, q)) = (app - t * apq, aqq + t * apq);
    (*a.at_mut(p, q), *a.at_mut(q, p)) = (0.0, 0.0);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    #[test]
    fn matrices_with_known_eigenvalues() {
        // The second difference: 2 - 2 cos(k pi / (n + 1)).
        for size in [0, 1, 2, 3, 8, 24, 40] {
            let a = SmallMatrix::from_fn(size, size, |row, col| match row.abs_diff(col) {
                0 => 2.0,
                1 => -1.0,
                _ => 0.0,
            });
            let eigen = symmetric_eigen(&a).unwrap();
            for (k, &value) in eigen.values.iter().enumerate() {
                let angle = (k + 1) as f64 * std::f64::consts::PI / (size + 1) as f64;
                assert!((value - (2.0 - 2.0 * angle.cos())).abs() < 1e-14, "{size}: {k}: {value}");
            }
        }
    }

    #[test]
    fn random_matrices_and_tiny_eigenvalues() {
        for size in 1..30usize {
            let root = SmallMatrix::from_fn(size, size, |row, col| {
                random::symmetric(size as u64, (row * size + col) as u64) * 10f64.powi(-(row as i32))
            });
            let a = root.times(false, &SmallMatrix::from_fn(size, size, |row, col| root.at(col, row)));
            let Eigen { values, vectors } = symmetric_eigen(&a).unwrap();
            let unit = vectors.times(true, &vectors);
            let image = a.times(false, &vectors);
            for i in 0..size {
                for (j, value) in values.iter().enumerate() {
                    assert!((unit.at(i, j) - f64::from(u8::from(i == j))).abs() < 1e-13);
                    let error = image.at(i, j) - vectors.at(i, j) * value;
                    assert!(error.abs() < 1e-14 * a.largest().max(1e-300), "{size}: {error}");
                }
            }
            assert!(values.is_sorted());
        }
    }

    #[test]
    fn bad_matrices_are_refused() {
        assert!(matches!(symmetric_eigen(&SmallMatrix::zeros(2, 3)), Err(Error::NotSquare { rows: 2, cols: 3, .. })));
        let mut a = SmallMatrix::zeros(2, 2);
        *a.at_mut(1, 0) = f64::NAN;
        assert!(matches!(symmetric_eigen(&a), Err(Error::NotFinite { row: 0, column: 1, kind: "NaN" })));
    }
}
