//! The matrices of a polynomial matrix program at sample points: SDPB's blocks.
//!
//! Variable `(r, s <= ... , k)`, with `s >= r`, has index `(s (s + 1) / 2 + r) D + k`, and
//! `A = E^{rs} (x) v_k v_k^T` in the even and in the odd block, where `E^{rs} = (e_r e_s^T + e_s e_r^T) / 2` and `v_k`
//! is column `k` of the basis. Source: SDPB (`src/sdp_solve/SDP.hxx`); arXiv:1502.02033, section 3.

use super::SchurOperand;
use crate::block::{Block, Shape};
use crate::calls::{Call, call, dot, gemm_with, spmm, syrk_with};
use crate::numbers::{Arithmetic, entrywise, rounded};
use rug::Float;
use std::ops::Range;
use std::sync::Arc;
use sunzi::blas::HadamardOptions;
use sunzi::blas::hadamard_into;
use sunzi::sparse::SparseMatrix;
use sunzi::{Accuracy, Error, Matrix, MatrixView, Result, SymmetricMatrix};
use sunzi::{SyrkOptions, Uplo, gemm_into};

/// Polynomial matrices of one block.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// Rows of the polynomial matrix.
    dim: usize,
    /// Sample points.
    points: usize,
    /// The even and odd bases, with a column for each point; bases without rows are omitted.
    bases: Vec<Matrix>,
    /// The parity of each of the two bases: 0 even, 1 odd.
    parities: Vec<usize>,
    /// Sample points and scalings of a polynomial matrix.
    origin: Option<Arc<Origin>>,
}

/// The sample points of a polynomial matrix, with more bits than the bases have.
#[derive(Debug)]
pub struct Origin {
    /// The sample points.
    pub points: Vec<Float>,
    /// The factor of the matrix at each point.
    pub scalings: Vec<Float>,
}

/// Columns of a part of S on the diagonal that are formed at a time, from the row of the first on.
const STRIP_COLUMNS: usize = 8;

/// The index of the first variable of `(r, s)`, divided by the number of points, for `r <= s`.
fn pair_index(r: usize, s: usize) -> usize {
    s * (s + 1) / 2 + r
}

/// The part of a Gram matrix of the columns of `I (x) q` that belongs to two rows of the polynomial matrix.
fn part(gram: &SymmetricMatrix, row: usize, col: usize, points: usize) -> Result<MatrixView<'_>> {
    let place = |at: usize| at * points..(at + 1) * points;
    gram.view().block(place(row), place(col))
}

impl Sampled {
    /// The block of a `dim x dim` polynomial matrix at `points` points.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the shape of a basis differs from SDPB's.
    pub fn new(dim: usize, points: usize, bases: [Matrix; 2]) -> Result<Sampled> {
        if dim == 0 || points == 0 {
            return Err(Error::InvalidArgument(format!("a block of dim {dim} at {points} points is empty")));
        }
        for (name, basis) in ["bilinear_bases_even", "bilinear_bases_odd"].iter().zip(&bases) {
            if basis.rows() > 0 && basis.cols() != points {
                let (rows, cols) = (basis.rows(), basis.cols());
                return Err(Error::InvalidArgument(format!(
                    "{name} is {rows} x {cols}, but there are {points} points"
                )));
            }
        }
        let present = (0..2).filter(|&parity| bases[parity].rows() > 0);
        let parities = present.collect::<Vec<_>>();
        if parities.is_empty() {
            return Err(Error::InvalidArgument("both bilinear bases are empty".into()));
        }
        let bases = bases.into_iter().filter(|basis| basis.rows() > 0).collect();
        Ok(Sampled { dim, points, bases, parities, origin: None })
    }

    /// The block of a polynomial matrix, sampled there.
    pub(crate) fn with_origin(self, origin: Origin) -> Sampled {
        Sampled { origin: Some(Arc::new(origin)), ..self }
    }

    /// Points and scalings, where it is of a polynomial matrix.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_deref()
    }

    /// The block with bases rounded to `bits` bits.
    ///
    /// # Errors
    /// The errors of [`Matrix::from_fn`].
    pub fn rounded(&self, bits: u32) -> Result<Sampled> {
        let bases = self.bases.iter().map(|basis| rounded(basis.clone(), bits)).collect::<Result<_>>()?;
        let (parities, origin) = (self.parities.clone(), self.origin.clone());
        Ok(Sampled { bases, parities, origin, ..*self })
    }

    /// Rows of the polynomial matrix.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Sample points.
    pub fn points(&self) -> usize {
        self.points
    }

    /// The parities of the bases that exist: 0 is the even one.
    pub fn parities(&self) -> &[usize] {
        &self.parities
    }

    /// The basis of a block.
    pub fn basis(&self, cone: usize) -> &Matrix {
        &self.bases[cone]
    }

    /// Variables.
    pub fn variables(&self) -> usize {
        self.points * self.dim * (self.dim + 1) / 2
    }

    /// Orders of the blocks.
    pub fn shapes(&self) -> Vec<Shape> {
        self.bases.iter().map(|basis| Shape::Dense(self.dim * basis.rows())).collect()
    }

    /// All `(r, s)` with `r <= s`, in the order of the variables.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.dim).flat_map(|s| (0..=s).map(move |r| (r, s)))
    }

    /// Block `(r, s)` is `q diag(x^{rs}) q^T`, or half of it if `r` and `s` differ.
    ///
    /// # Errors
    /// The errors of [`sunzi::gemm_with`].
    pub fn weighted_sum(&self, k: Arithmetic<'_>, cone: usize, x: &Matrix) -> Result<Block> {
        let basis = &self.bases[cone];
        let (order, points) = (basis.rows(), self.points);
        let mut whole = Matrix::zeros(self.dim * order, self.dim * order, k.bits)?;
        for (r, s) in self.pairs() {
            let first = pair_index(r, s) * points;
            let weights = (first..first + points).map(|at| x.float(at, 0)).collect::<Vec<_>>();
            let weights = weights.iter().enumerate().map(|(at, weight)| ((at, at), weight));
            let weights = SparseMatrix::from_entries(points, points, weights)?;
            let scaled = spmm(k.ctx, &weights, basis.transposed(), k.bits)?;
            // One triangle counts: the other one may differ in its last bits.
            let share = Float::with_val(2, if r == s { 1.0 } else { 0.5 });
            let part =
                gemm_with(k.ctx, scaled.transposed(), basis.transposed(), k.bits, &entrywise().alpha(&share))?.result;
            let part = SymmetricMatrix::from_triangle(part, Uplo::Lower)?;
            if self.dim == 1 {
                return Ok(Block::Dense(part.into_matrix()));
            }
            for (row, col) in [(r, s), (s, r)] {
                let place = (row * order..(row + 1) * order, col * order..(col + 1) * order);
                whole.view_mut().block(place.0, place.1)?.copy_from(&part);
            }
        }
        Ok(Block::Dense(whole))
    }

    /// `v_k^T M^{rs} v_k` for all variables.
    ///
    /// # Errors
    /// The errors of [`sunzi::gemm_with`].
    pub fn pairings(&self, k: Arithmetic<'_>, cone: usize, block: &Block) -> Result<Vec<Float>> {
        let basis = &self.bases[cone];
        let (order, matrix) = (basis.rows(), block.stored());
        let mut found = Vec::with_capacity(self.variables());
        for (r, s) in self.pairs() {
            let part = matrix.view().block(r * order..(r + 1) * order, s * order..(s + 1) * order)?;
            let image = gemm_with(k.ctx, part, basis, k.bits, &entrywise())?.result;
            for point in 0..self.points {
                let column = |m: &Matrix| -> Result<Float> {
                    let (left, right) = (m.view(), basis.view());
                    let at = point..point + 1;
                    dot(k.ctx, left.block(0..order, at.clone())?, right.block(0..order, at)?, k.bits)
                };
                found.push(column(&image)?);
            }
        }
        Ok(found)
    }

    /// `T (I (x) q)` for the triangular matrix of one block.
    fn spread(&self, k: Arithmetic<'_>, cone: usize, triangle: MatrixView<'_>) -> Result<Matrix> {
        let basis = &self.bases[cone];
        let (order, rows, points) = (basis.rows(), triangle.rows(), self.points);
        if self.dim == 1 {
            return Ok(gemm_with(k.ctx, triangle, basis, k.bits, &entrywise())?.result);
        }
        let mut whole = Matrix::zeros(rows, self.dim * points, k.bits)?;
        for part in 0..self.dim {
            let left = triangle.block(0..rows, part * order..(part + 1) * order)?;
            call(Call { verb: "gemm", shape: (rows, points, order), bits: k.bits }, || {
                let place = whole.view_mut().block(0..rows, part * points..(part + 1) * points)?;
                gemm_into(k.ctx, left, basis, k.bits, &entrywise(), place)
            })?;
        }
        Ok(whole)
    }

    /// `G^T M^-1 G` or `G^T M G` with `G = I (x) q`, from a triangle whose Gram matrix it is; while `held` bytes are
    /// held.
    fn gram(&self, k: Arithmetic<'_>, cone: usize, triangle: MatrixView<'_>, held: u64) -> Result<SymmetricMatrix> {
        let ctx = k.beside(held);
        let spread = self.spread(Arithmetic { ctx: &ctx, ..k }, cone, triangle)?;
        let options = SyrkOptions::new().accuracy(Accuracy::Entrywise);
        Ok(syrk_with(&k.beside(held + spread.bytes()), &spread, k.bits, &options)?.result)
    }

    /// The lower triangle of `S_pq = Tr(A_p X^-1 A_q Y)`, from all blocks of the group. The entries above the diagonal
    /// are undefined.
    ///
    /// # Errors
    /// The errors of the library's products.
    pub fn schur(&self, k: Arithmetic<'_>, operands: &[SchurOperand<'_>]) -> Result<Matrix> {
        let (mut grams, mut held) = (Vec::with_capacity(operands.len()), 0);
        for (cone, operand) in operands.iter().enumerate() {
            let (Some(inverse), Some(lower)) = (operand.x_lower_inverse, operand.y_lower) else {
                return Err(Error::InvalidArgument("a block of samples is not diagonal".into()));
            };
            let of_x = self.gram(k, cone, inverse.view(), held)?;
            held += of_x.as_matrix().bytes();
            let of_y = self.gram(k, cone, lower.transposed(), held)?;
            held += of_y.as_matrix().bytes();
            grams.push([of_x, of_y]);
        }
        self.schur_of(k, &grams)
    }

    /// The same from `G^T X^-1 G` and `G^T Y G` of each block: a quarter of four sums of products, entry by entry, of
    /// their parts.
    fn schur_of<'a>(&self, k: Arithmetic<'_>, grams: &'a [[SymmetricMatrix; 2]]) -> Result<Matrix> {
        let (variables, points) = (self.variables(), self.points);
        let quarter = Float::with_val(2, 0.25);
        let mut schur = Matrix::zeros(variables, variables, k.bits)?;
        for (right, (r2, s2)) in self.pairs().enumerate() {
            for (left, (r1, s1)) in self.pairs().enumerate().skip(right) {
                let four = [[s1, r2, r1, s2], [r1, r2, s1, s2], [s1, s2, r1, r2], [r1, s2, s1, r2]];
                // All four are one.
                let are_alike = r1 == s1 && r2 == s2;
                let (terms, options) = match are_alike {
                    true => (&four[..1], HadamardOptions::new()),
                    false => (&four[..], HadamardOptions::new().alpha(&quarter)),
                };
                let mut pairs = Vec::with_capacity(terms.len() * grams.len());
                for ([of_x, of_y], &[x_row, x_col, y_row, y_col]) in
                    grams.iter().flat_map(|gram| terms.iter().map(move |term| (gram, term)))
                {
                    pairs.push((part(of_x, x_row, x_col, points)?, part(of_y, y_row, y_col, points)?));
                }
                let width = if left == right { STRIP_COLUMNS } else { points };
                for first in (0..points).step_by(width) {
                    let (rows, cols) = (first..points, first..(first + width).min(points));
                    let strip = |part: MatrixView<'a>| part.block(rows.clone(), cols.clone());
                    let pairs = pairs.iter().map(|&(x, y)| Ok((strip(x)?, strip(y)?))).collect::<Result<Vec<_>>>()?;
                    call(
                        Call { verb: "hadamard", shape: (rows.len(), cols.len(), pairs.len()), bits: k.bits },
                        || {
                            let place = |at: usize, own: &Range<usize>| at * points + own.start..at * points + own.end;
                            let place = schur.view_mut().block(place(left, &rows), place(right, &cols))?;
                            hadamard_into(k.ctx, &pairs, k.bits, &options, place)
                        },
                    )?;
                }
            }
        }
        Ok(schur)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::Context;

    /// The matrix `A_p` by its definition.
    fn plain(sampled: &Sampled, cone: usize, variable: usize, bits: u32) -> Matrix {
        let (pair, point) = (variable / sampled.points, variable % sampled.points);
        let (r, s) = sampled.pairs().nth(pair).unwrap();
        let q = sampled.basis(cone);
        let order = q.rows();
        Matrix::from_fn(sampled.dim * order, sampled.dim * order, bits, |row, col| {
            let half =
                u32::from((row / order, col / order) == (r, s)) + u32::from((row / order, col / order) == (s, r));
            let product = Float::with_val(bits, &q.float(row % order, point) * &q.float(col % order, point));
            product * half / 2u32
        })
        .unwrap()
    }

    #[test]
    fn sums_pairings_and_schur_complements_are_those_of_the_definition() -> Result<()> {
        let (bits, tolerance) = (192, 1e-50);
        let ctx = Context::builder().threads(1).build()?;
        let k = Arithmetic { ctx: &ctx, bits };
        for (dim, points) in [(1, 1), (1, 4), (2, 3), (3, 2), (1, 19), (2, 9)] {
            let basis = |rows: usize, shift: f64| {
                Matrix::from_fn(rows, points, bits, |row, col| {
                    let (row, col) = (row as f64, col as f64);
                    Float::with_val(bits, 1.5 + shift + 3.0 * row + 0.7 * row * col + 0.3 * col * col).sqrt()
                })
            };
            let sampled = Sampled::new(dim, points, [basis(points.div_ceil(2), 1.0)?, basis(points / 2, 2.0)?])?;
            assert_eq!(sampled.shapes().len(), if points == 1 { 1 } else { 2 });
            for cone in 0..sampled.shapes().len() {
                let order = sampled.shapes()[cone].order();
                let spd = |seed: f64| -> Result<Matrix> {
                    let half = Matrix::from_fn(order, order, bits, |row, col| {
                        Float::with_val(bits, seed + (1 + row * 3 + col * 5) as f64).sin()
                    })?;
                    let mut whole = sunzi::syrk(&ctx, &half, bits)?.into_matrix();
                    for at in 0..order {
                        let shifted = whole.float(at, at) + 2u32;
                        whole.set_float(at, at, &shifted)?;
                    }
                    Ok(whole)
                };
                let (x, y) = (spd(0.1)?, spd(0.7)?);
                let matrices = (0..sampled.variables()).map(|p| plain(&sampled, cone, p, bits)).collect::<Vec<_>>();
                let found = sampled.pairings(k, cone, &Block::Dense(y.clone()))?;
                for (p, a) in matrices.iter().enumerate() {
                    assert!((k.inner(a, &y)? - &found[p]).abs() < tolerance, "{dim} {points} {p}");
                }
                let weights =
                    Matrix::from_fn(sampled.variables(), 1, bits, |p, _| Float::with_val(bits, p as f64 - 1.3))?;
                let mut sum = Matrix::zeros(order, order, bits)?;
                for (p, a) in matrices.iter().enumerate() {
                    sum = k.sum(&weights.float(p, 0), a, &sum)?;
                }
                let block = sampled.weighted_sum(k, cone, &weights)?;
                assert!(SymmetricMatrix::new(block.stored().clone()).is_ok());
                assert!(crate::numbers::largest(&k.difference(block.stored(), &sum)?) < tolerance);
                let x_factor = sunzi::cholesky(&ctx, &x, bits)?;
                let x_inverse = x_factor.inverse(&ctx, bits)?.into_matrix();
                let x_lower_inverse = sunzi::trsm(&ctx, x_factor.factor(), &Matrix::identity(order, bits)?, bits)?;
                let y_factor = sunzi::cholesky(&ctx, &y, bits)?;
                let grams = [x_lower_inverse.view(), y_factor.factor().transposed()];
                let [of_x, of_y] = grams.map(|triangle| sampled.gram(k, cone, triangle, 0));
                let schur = sampled.schur_of(k, &[[of_x?, of_y?]])?;
                for (q, right) in matrices.iter().enumerate() {
                    let image = sunzi::gemm(&ctx, &sunzi::gemm(&ctx, &x_inverse, right, bits)?, &y, bits)?;
                    for (p, left) in matrices.iter().enumerate().skip(q) {
                        let want = k.inner(left, &image.transposed().to_matrix()?)?;
                        assert!((want - schur.float(p, q)).abs() < tolerance, "{dim} {points} {p} {q}");
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn bases_that_do_not_fit_are_refused() -> Result<()> {
        let basis = |rows, cols| Matrix::zeros(rows, cols, 64);
        assert!(Sampled::new(0, 3, [basis(2, 3)?, basis(1, 3)?]).is_err());
        assert!(Sampled::new(1, 3, [basis(2, 4)?, basis(1, 3)?]).is_err());
        assert!(Sampled::new(1, 1, [basis(0, 0)?, basis(0, 0)?]).is_err());
        assert_eq!(Sampled::new(2, 1, [basis(1, 1)?, basis(0, 0)?])?.shapes(), [Shape::Dense(2)]);
        Ok(())
    }
}
