//! The Rayleigh-Ritz procedure on the span of vectors that need not be orthogonal, nor independent.

use super::{SmallMatrix, symmetric_eigen};
use std::ops::Range;
use sunzi::{Error, Result};

/// The options of [`rayleigh_ritz`].
#[derive(Clone, Debug)]
pub struct RitzOptions {
    /// Number of eigenpairs, the lowest ones.
    pub count: usize,
    /// Columns of `S` that contain the current approximations; the search directions exclude them.
    pub old: Range<usize>,
}

/// The lowest Ritz pairs.
#[derive(Clone, Debug)]
pub struct Ritz {
    /// Ritz values, ascending.
    pub values: Vec<f64>,
    /// The coefficients `C` for which `S C` are the Ritz vectors, orthonormal.
    pub vectors: SmallMatrix,
    /// The coefficients `C` for which `S C` are the new search directions: the parts of the Ritz vectors without the
    /// old approximations, orthonormal, and orthogonal to the Ritz vectors. There are fewer directions than Ritz
    /// vectors if the parts are dependent.
    pub directions: SmallMatrix,
    /// The computed dimension of the span.
    pub dimension: usize,
}

/// Directions whose squared length is below this part of the longest, once all columns are scaled to length 1, are
/// taken for rounding errors.
const DEPENDENT: f64 = 1e-12;

/// The lowest eigenpairs of `A` on the span of `S`, from `gram = S^T S` and `image = S^T A S`.
///
/// The columns are scaled to length 1; nearly dependent directions are omitted. Cost: two eigenproblems of the size of
/// `S`. Source: A. Stathopoulos, K. Wu, "A block orthogonalization procedure with constant synchronization
/// requirements", 2002 (the basis); U. Hetmaniuk, R. Lehoucq, "Basis selection in LOBPCG", 2006 (the directions).
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::NotFinite`]; [`Error::InvalidArgument`] if the span has fewer dimensions than the
/// requested number of eigenpairs.
pub fn rayleigh_ritz(gram: &SmallMatrix, image: &SmallMatrix, options: &RitzOptions) -> Result<Ritz> {
    let size = gram.rows();
    for (matrix, operation) in [(gram, "Gram matrix"), (image, "Rayleigh-Ritz")] {
        if [matrix.rows(), matrix.cols()] != [size, size] {
            let (right_rows, right_cols) = (matrix.rows(), matrix.cols());
            return Err(Error::ShapeMismatch { operation, left_rows: size, left_cols: size, right_rows, right_cols });
        }
    }
    let basis = orthonormal_basis(gram)?;
    let dimension = basis.cols();
    if dimension < options.count {
        let wanted = options.count;
        return Err(Error::InvalidArgument(format!(
            "{wanted} vectors are requested, but {size} vectors span only {dimension} dimensions"
        )));
    }
    let small = symmetric(&basis.times(true, &image.times(false, &basis)));
    let eigen = symmetric_eigen(&small)?;
    let wanted = eigen.vectors.columns(0..options.count);
    let vectors = basis.times(false, &wanted);
    let rest =
        SmallMatrix::from_fn(
            size,
            options.count,
            |row, col| {
                if options.old.contains(&row) { 0.0 } else { vectors.at(row, col) }
            },
        );
    let rest = basis.times(true, &gram.times(false, &rest));
    let directions = basis.times(false, &orthonormal_rest(rest, &wanted)?);
    let values = eigen.values[..options.count].to_vec();
    Ok(Ritz { values, vectors, directions, dimension })
}

/// Directions of new vectors that are shorter than this part of them after the projection on the old span is subtracted
/// are left out; as a ratio of squares.
const NEGLIGIBLE: f64 = 1e-10;

/// The coefficients `C` for which the columns of `[V W] C` are orthonormal, orthogonal to `V`, and span the part of `W`
/// outside the span of `V`; `V` is orthonormal.
///
/// `cross = V^T W` and `gram = W^T W`. There are fewer columns if a part of `W` lies nearly in the span of `V` or is
/// dependent. The columns are orthogonal up to about the rounding unit divided by `1e-10`. Source: the basis of
/// [`rayleigh_ritz`].
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::NotFinite`].
pub fn orthonormal_complement(cross: &SmallMatrix, gram: &SmallMatrix) -> Result<SmallMatrix> {
    let (old, new) = (cross.rows(), cross.cols());
    if [gram.rows(), gram.cols()] != [new, new] {
        let (right_rows, right_cols) = (gram.rows(), gram.cols());
        let operation = "orthonormal complement";
        return Err(Error::ShapeMismatch { operation, left_rows: old, left_cols: new, right_rows, right_cols });
    }
    let inside = cross.times(true, cross);
    let scale = (0..new).map(|k| if gram.at(k, k) > 0.0 { 1.0 / gram.at(k, k).sqrt() } else { 0.0 });
    let scale = scale.collect::<Vec<_>>();
    let rest = |row: usize, col: usize| scale[row] * (gram.at(row, col) - inside.at(row, col)) * scale[col];
    let eigen = symmetric_eigen(&SmallMatrix::from_fn(new, new, |row, col| 0.5 * (rest(row, col) + rest(col, row))))?;
    let first = eigen.values.iter().position(|&value| value > NEGLIGIBLE).unwrap_or(new);
    let basis = SmallMatrix::from_fn(new, new - first, |row, col| {
        scale[row] * eigen.vectors.at(row, first + col) / eigen.values[first + col].sqrt()
    });
    let along = cross.times(false, &basis);
    Ok(SmallMatrix::from_fn(old + new, new - first, |row, col| match row.checked_sub(old) {
        None => -along.at(row, col),
        Some(row) => basis.at(row, col),
    }))
}

/// `B` with `B^T gram B = I`.
fn orthonormal_basis(gram: &SmallMatrix) -> Result<SmallMatrix> {
    let size = gram.rows();
    let scale = (0..size).map(|k| if gram.at(k, k) > 0.0 { 1.0 / gram.at(k, k).sqrt() } else { 0.0 });
    let scale = scale.collect::<Vec<_>>();
    let scaled = SmallMatrix::from_fn(size, size, |row, col| scale[row] * gram.at(row, col) * scale[col]);
    let eigen = symmetric_eigen(&scaled)?;
    let least = DEPENDENT * eigen.values.last().copied().unwrap_or(0.0).max(0.0);
    let first = eigen.values.iter().position(|&value| value > least).unwrap_or(size);
    Ok(SmallMatrix::from_fn(size, size - first, |row, col| {
        scale[row] * eigen.vectors.at(row, first + col) / eigen.values[first + col].sqrt()
    }))
}

/// An orthonormal basis of the span of `rest`, projected orthogonally to the orthonormal columns of `wanted`.
fn orthonormal_rest(mut rest: SmallMatrix, wanted: &SmallMatrix) -> Result<SmallMatrix> {
    let lengths = |m: &SmallMatrix, col: usize| (0..m.rows()).map(|row| m.at(row, col).powi(2)).sum::<f64>();
    let before = (0..rest.cols()).map(|col| lengths(&rest, col)).collect::<Vec<_>>();
    // Twice is enough (Kahan, Parlett).
    for _ in 0..2 {
        let along = wanted.times(false, &wanted.times(true, &rest));
        for (x, y) in rest.numbers_mut().iter_mut().zip(along.numbers()) {
            *x -= y;
        }
    }
    // Columns that lay in the wanted space up to rounding errors give no direction.
    let kept = (0..rest.cols()).filter(|&col| lengths(&rest, col) > 1e-24 * before[col] && before[col] > 0.0);
    let kept = kept.collect::<Vec<_>>();
    let rest = SmallMatrix::from_fn(rest.rows(), kept.len(), |row, col| rest.at(row, kept[col]));
    let basis = orthonormal_basis(&rest.times(true, &rest))?;
    Ok(rest.times(false, &basis))
}

/// The mean of a matrix and its transpose.
fn symmetric(a: &SmallMatrix) -> SmallMatrix {
    SmallMatrix::from_fn(a.rows(), a.cols(), |row, col| 0.5 * (a.at(row, col) + a.at(col, row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    /// `S^T diag(1, 2, ..) S` for a random `S` with 20 rows, its last columns dependent on the first.
    fn problem(independent: usize, dependent: usize) -> (SmallMatrix, SmallMatrix, SmallMatrix) {
        let free = SmallMatrix::from_fn(20, independent, |row, col| random::symmetric(5, (row * 64 + col) as u64));
        let s = SmallMatrix::from_fn(20, independent + dependent, |row, col| match col.checked_sub(independent) {
            None => free.at(row, col) * 10f64.powi(3 * col as i32),
            Some(k) => free.at(row, k) - 3.0 * free.at(row, k + 1),
        });
        let image = SmallMatrix::from_fn(20, s.cols(), |row, col| (row + 1) as f64 * s.at(row, col));
        (s.times(true, &s), s.times(true, &image), s)
    }

    #[test]
    fn dependent_vectors_change_nothing() {
        let (gram, image, _) = problem(6, 0);
        let options = RitzOptions { count: 3, old: 0..3 };
        let plain = rayleigh_ritz(&gram, &image, &options).unwrap();
        assert_eq!((plain.dimension, plain.directions.cols()), (6, 3));
        let (gram, image, s) = problem(6, 3);
        let found = rayleigh_ritz(&gram, &image, &options).unwrap();
        assert_eq!(found.dimension, 6);
        for (one, other) in plain.values.iter().zip(&found.values) {
            assert!((one - other).abs() < 1e-11, "{one} {other}");
        }
        let (x, p) = (s.times(false, &found.vectors), s.times(false, &found.directions));
        let (unit, zero) = (x.times(true, &x), x.times(true, &p));
        for i in 0..3 {
            for j in 0..3 {
                assert!((unit.at(i, j) - f64::from(u8::from(i == j))).abs() < 1e-10);
                assert!(zero.at(i, j).abs() < 1e-9, "{}", zero.at(i, j));
            }
        }
    }

    #[test]
    fn complements_are_orthonormal() {
        let (_, _, s) = problem(6, 2);
        let old = s.columns(0..2);
        let plain = orthonormal_complement(&SmallMatrix::zeros(0, 2), &old.times(true, &old)).unwrap();
        let old = old.times(false, &plain);
        let new = SmallMatrix::from_fn(20, 4, |row, col| match col {
            0 => s.at(row, 3) * 1e-9,
            1 => s.at(row, 4) + 5e4 * old.at(row, 0),
            2 => old.at(row, 1) - 2.0 * old.at(row, 0),
            _ => s.at(row, 5),
        });
        let c = orthonormal_complement(&old.times(true, &new), &new.times(true, &new)).unwrap();
        assert_eq!((c.rows(), c.cols()), (6, 3));
        let all = SmallMatrix::from_fn(20, 6, |row, col| if col < 2 { old.at(row, col) } else { new.at(row, col - 2) });
        let found = all.times(false, &c);
        let unit = found.times(true, &found);
        let zero = old.times(true, &found);
        for j in 0..3 {
            (0..3).for_each(|i| assert!((unit.at(i, j) - f64::from(u8::from(i == j))).abs() < 1e-6));
            (0..2).for_each(|i| assert!(zero.at(i, j).abs() < 1e-6, "{}", zero.at(i, j)));
        }
    }

    #[test]
    fn too_few_dimensions_are_refused() {
        let (gram, image, _) = problem(2, 1);
        let error = rayleigh_ritz(&gram, &image, &RitzOptions { count: 3, old: 0..0 }).unwrap_err();
        assert_eq!(error.to_string(), "3 vectors are requested, but 3 vectors span only 2 dimensions");
        let empty = SmallMatrix::zeros(0, 0);
        assert_eq!(rayleigh_ritz(&empty, &empty, &RitzOptions { count: 0, old: 0..0 }).unwrap().dimension, 0);
    }
}
