//! The lowest eigenpairs of a large sparse symmetric matrix, written only on the front end.

#[cfg(test)]
mod tests;

use crate::front::{SparseMatrix, TallMatrix, inner, times_small};
use crate::small::{RitzOptions, SmallMatrix, orthonormal_complement, rayleigh_ritz};
use sunzi::{Error, Result};

/// The preconditioner that is applied to residuals.
#[derive(Clone, Copy)]
pub enum Preconditioner<'a> {
    /// No preconditioner.
    Identity,
    /// The inverse of a diagonal matrix, given as a vector.
    Diagonal(&'a TallMatrix),
}

/// The options of [`lobpcg`].
#[derive(Clone, Copy)]
pub struct LobpcgOptions<'a> {
    /// Number of eigenpairs, and of vectors in a block.
    pub count: usize,
    /// The preconditioner for the residuals.
    pub preconditioner: Preconditioner<'a>,
    /// The iteration ends when all residuals satisfy `|A x - theta x| <= tolerance |theta|`.
    pub tolerance: f64,
    /// The largest number of iterations.
    pub iterations: usize,
    /// The seed of the initial vectors.
    pub seed: u64,
}

impl Default for LobpcgOptions<'_> {
    /// Eight pairs, residuals of `1e-6`, at most 100 iterations, no preconditioner.
    fn default() -> Self {
        LobpcgOptions { count: 8, preconditioner: Preconditioner::Identity, tolerance: 1e-6, iterations: 100, seed: 1 }
    }
}

/// The result of [`lobpcg`].
#[derive(Clone)]
pub struct EigenPairs {
    /// Ascending.
    pub values: Vec<f64>,
    /// Orthonormal columns.
    pub vectors: TallMatrix,
    /// `|A x - theta x|` of each eigenpair.
    pub residuals: Vec<f64>,
    /// Number of products with the matrix, except the first one.
    pub iterations: usize,
    /// Whether all residuals are below the tolerance.
    pub converged: bool,
}

/// A report of one finished iteration.
#[derive(Clone, PartialEq, Debug)]
pub struct LobpcgStep {
    /// Number of iterations before this one.
    pub iteration: usize,
    /// The Ritz values.
    pub values: Vec<f64>,
    /// `|A x - theta x|` of each eigenpair.
    pub residuals: Vec<f64>,
}

/// The approximations, and the directions in which they moved last, each with its image.
struct Basis {
    x: [TallMatrix; 2],
    p: Option<[TallMatrix; 2]>,
    values: Vec<f64>,
}

/// The lowest eigenpairs of a symmetric matrix by the locally optimal block preconditioned conjugate gradient method.
///
/// Eigenvalues have an error of about the square of the residual over the gap. `watch` is called after each iteration,
/// and ends the iterations by returning `false`. Cost of an iteration: one product with the matrix, and about 40
/// `count` operations for each number of the vectors; at most twelve blocks of vectors are used at a time. Source: A.
/// Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput. 23, 2001; for the bases
/// [`rayleigh_ritz`](crate::small::rayleigh_ritz).
///
/// # Errors
/// [`Error::NotSquare`], [`Error::ShapeMismatch`], [`Error::InvalidArgument`] for more eigenpairs than a third of the
/// rows; [`Error::Cancelled`] if `watch` returns `false`; the errors of evaluations.
pub fn lobpcg(
    a: &SparseMatrix,
    options: &LobpcgOptions<'_>,
    mut watch: impl FnMut(&LobpcgStep) -> bool,
) -> Result<EigenPairs> {
    let (rows, count) = (a.rows(), options.count);
    if a.cols() != rows {
        return Err(Error::NotSquare { operation: "eigenvalues", rows, cols: a.cols() });
    }
    if count == 0 || count > rows / 3 {
        return Err(Error::InvalidArgument(format!(
            "{count} eigenpairs of a matrix of {rows} rows are not possible; choose 1 to a third of the rows"
        )));
    }
    let mut basis = first(a, options)?;
    let mut iteration = 0;
    loop {
        let front = Front::new(&basis, options)?;
        let residuals = front.residuals();
        let step = LobpcgStep { iteration, values: basis.values.clone(), residuals: residuals.clone() };
        if !watch(&step) {
            return Err(Error::Cancelled);
        }
        let is_small = |(residual, value): (&f64, &f64)| *residual <= options.tolerance * value.abs();
        let converged = residuals.iter().zip(&basis.values).all(is_small);
        let ends = converged || iteration == options.iterations;
        let next = if ends { None } else { advance(a, &basis, &front)? };
        let Some(next) = next else {
            let Basis { x: [vectors, _], values, .. } = basis;
            return Ok(EigenPairs { values, vectors, residuals, iterations: iteration, converged });
        };
        basis = next;
        iteration += 1;
    }
}

/// Where the next iteration goes.
struct Front {
    /// Preconditioned residuals.
    w: TallMatrix,
    /// `[X P W R]^T [W R]`, from one pass over all of them.
    found: SmallMatrix,
}

impl Front {
    fn new(basis: &Basis, options: &LobpcgOptions<'_>) -> Result<Front> {
        let residual = times_small(&[&basis.x[1], &basis.x[0]], &against(&basis.values))?;
        let w = match options.preconditioner {
            Preconditioner::Identity => residual.clone(),
            Preconditioner::Diagonal(divisors) => residual.divide_rows(divisors)?,
        };
        let mut all = vec![&basis.x[0]];
        all.extend(basis.p.as_ref().map(|p| &p[0]));
        all.extend([&w, &residual]);
        let found = inner(&all, &[&w, &residual])?.get()?;
        Ok(Front { w, found })
    }

    /// Lengths of the residuals.
    fn residuals(&self) -> Vec<f64> {
        let (rows, cols) = (self.found.rows(), self.found.cols());
        (1..=cols / 2).rev().map(|k| self.found.at(rows - k, cols - k).sqrt()).collect()
    }
}

/// Ritz vectors of a random block.
fn first(a: &SparseMatrix, options: &LobpcgOptions<'_>) -> Result<Basis> {
    let x = a.session().random(a.rows(), options.count, options.seed)?;
    let image = a.times(&x)?;
    let found = inner(&[&x], &[&x, &image])?.get()?;
    let ritz = ritz_of(&found, options.count, 0)?;
    let x = [times_small(&[&x], &ritz.vectors)?, times_small(&[&image], &ritz.vectors)?];
    Ok(Basis { x, p: None, values: ritz.values })
}

/// `[I; -diag(values)]`, so that `[A X, X]` times it are the residuals.
fn against(values: &[f64]) -> SmallMatrix {
    let count = values.len();
    SmallMatrix::from_fn(2 * count, count, |row, col| match row {
        _ if row == col => 1.0,
        _ if row == count + col => -values[col],
        _ => 0.0,
    })
}

/// The procedure on inner products `[S^T S, S^T A S]`, of which the first columns are the approximations.
fn ritz_of(found: &SmallMatrix, count: usize, old: usize) -> Result<crate::small::Ritz> {
    let size = found.rows();
    rayleigh_ritz(&found.columns(0..size), &found.columns(size..2 * size), &RitzOptions { count, old: 0..old })
}

/// One iteration; `None` where the residuals lead nowhere any more.
fn advance(a: &SparseMatrix, basis: &Basis, front: &Front) -> Result<Option<Basis>> {
    let count = basis.values.len();
    let mut all = vec![&basis.x[0]];
    all.extend(basis.p.as_ref().map(|p| &p[0]));
    all.push(&front.w);
    let old = front.found.rows() - 2 * count;
    let part = |from: usize, rows: usize| SmallMatrix::from_fn(rows, count, |row, col| front.found.at(from + row, col));
    let complement = orthonormal_complement(&part(0, old), &part(old, count))?;
    if complement.cols() == 0 {
        return Ok(None);
    }
    let w = times_small(&all, &complement)?;
    let image = a.times(&w)?;
    let (mut span, mut images) = (vec![&basis.x[0], &w], vec![&basis.x[1], &image]);
    if let Some([p, p_image]) = &basis.p {
        span.push(p);
        images.push(p_image);
    }
    let both = span.iter().chain(&images).copied().collect::<Vec<_>>();
    let ritz = ritz_of(&inner(&span, &both)?.get()?, count, count)?;
    let moved = |c: &SmallMatrix| Ok::<_, Error>([times_small(&span, c)?, times_small(&images, c)?]);
    let p = if ritz.directions.cols() == 0 { None } else { Some(moved(&ritz.directions)?) };
    let x = moved(&ritz.vectors)?;
    // All in one pass, or the old ones would be kept for the vectors that are requested last.
    x.iter().chain(p.iter().flatten()).for_each(TallMatrix::want);
    Ok(Some(Basis { x, p, values: ritz.values }))
}
