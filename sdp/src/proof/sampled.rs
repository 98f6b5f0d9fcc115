//! The matrices of a polynomial matrix program at sample points, exactly.
//!
//! Variable `(r, s, k)` with `r <= s` has the number `(s (s + 1) / 2 + r) D + k`, and `A = w_k E^{rs} (x) v_k v_k^T` in
//! each block, with `E^{rs} = (e_r e_s^T + e_s e_r^T) / 2`, `v_k` column `k` of the block's basis, and weights `w_k`,
//! which are 1 in SDPB's blocks. Source: SDPB.

use super::limits::MAXIMUM_ORDER;
use super::scaled::{Fixed, Scaled, packed, triangle};
use super::shape::{Gram, ProofShape};
use rug::{Complete, Integer, Rational};

/// The largest number of rows, and of sample points, of a polynomial matrix.
const MAXIMUM_SIZE: usize = 1 << 16;

/// Polynomial matrices of one group.
#[derive(Clone, PartialEq, Debug)]
pub struct ProofSampled {
    /// Rows of the polynomial matrix.
    dim: usize,
    /// Sample points.
    points: usize,
    /// The bases one after the other, each column by column.
    values: Scaled,
    /// Rows of each basis, and its start.
    bases: Vec<(usize, usize)>,
    /// The factor of each `A`, basis by basis and point by point; 1 in SDPB's blocks.
    weights: Scaled,
}

impl ProofSampled {
    /// Bits of the longest of its integers.
    pub fn largest_bits(&self) -> u32 {
        self.values.largest_bits().max(self.weights.largest_bits())
    }

    /// Variables of a block.
    ///
    /// # Errors
    /// A text if it is empty or too large.
    pub fn count(dim: usize, points: usize) -> Result<usize, String> {
        if dim == 0 || points == 0 {
            return Err(format!("a block of dim {dim} at {points} points is empty"));
        }
        if dim.max(points) > MAXIMUM_SIZE {
            return Err(format!("a block of dim {dim} at {points} points: neither may exceed {MAXIMUM_SIZE}"));
        }
        Ok(points * triangle(dim))
    }

    /// Matrices with these bases; each basis has its rows and one column for each point, and is given row by row.
    ///
    /// # Errors
    /// A text if a basis does not fit, or all are empty.
    pub fn new(dim: usize, points: usize, bases: &[Vec<Rational>]) -> Result<ProofSampled, String> {
        ProofSampled::count(dim, points)?;
        let (mut values, mut places) = (Vec::new(), Vec::new());
        for basis in bases.iter().filter(|basis| !basis.is_empty()) {
            let rows = basis.len() / points;
            if basis.len() % points != 0 {
                return Err(format!("a basis has {} numbers, but there are {points} points", basis.len()));
            }
            if rows > MAXIMUM_ORDER / dim {
                return Err(format!("a block has {dim} times {rows} rows, but the limit is {MAXIMUM_ORDER}"));
            }
            places.push((rows, values.len()));
            values.extend((0..points).flat_map(|point| basis.iter().skip(point).step_by(points).cloned()));
        }
        if places.is_empty() {
            return Err("both bilinear bases are empty".into());
        }
        let weights = Scaled { numerators: vec![Integer::from(1); places.len() * points], denominator: 1.into() };
        Ok(ProofSampled { dim, points, values: Scaled::new(&values), bases: places, weights })
    }

    /// The same matrices with other weights, one for each basis and point.
    ///
    /// # Errors
    /// A text if the number of weights differs.
    pub fn weighted(self, weights: &[Rational]) -> Result<ProofSampled, String> {
        let (given, wanted) = (weights.len(), self.bases.len() * self.points);
        if given != wanted {
            let bases = self.bases.len();
            return Err(format!("{given} weights for {bases} bases at {} points, which require {wanted}", self.points));
        }
        Ok(ProofSampled { weights: Scaled::new(weights), ..self })
    }

    /// Rows of the polynomial matrix.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Rows of a basis.
    pub fn rows(&self, cone: usize) -> usize {
        self.bases[cone].0
    }

    /// An entry of a basis.
    pub fn entry(&self, cone: usize, row: usize, point: usize) -> Rational {
        Rational::from((&self.vector(cone, point)[row], &self.values.denominator))
    }

    /// The factor of the `A` of a point in a block.
    pub fn factor(&self, cone: usize, point: usize) -> Rational {
        Rational::from((self.weight(cone, point), &self.weights.denominator))
    }

    /// The numerator of the weight at a point.
    fn weight(&self, cone: usize, point: usize) -> &Integer {
        &self.weights.numerators[cone * self.points + point]
    }

    /// The numbers of the bases, and the weights.
    pub(super) fn parts(&self) -> (&Scaled, &Scaled) {
        (&self.values, &self.weights)
    }

    /// Sample points.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Variables.
    pub fn variables(&self) -> usize {
        self.points * triangle(self.dim)
    }

    /// Orders of the blocks.
    pub fn shapes(&self) -> Vec<ProofShape> {
        self.bases.iter().map(|&(rows, _)| ProofShape { order: self.dim * rows, diagonal: false }).collect()
    }

    /// All `(r, s)` with `r <= s`, in the order of the variables.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.dim).flat_map(|s| (0..=s).map(move |r| (r, s)))
    }

    /// The numerators of `v_k`.
    fn vector(&self, cone: usize, point: usize) -> &[Integer] {
        let (rows, first) = self.bases[cone];
        &self.values.numerators[first + point * rows..][..rows]
    }

    /// The square of the denominator of all bases.
    fn square(&self) -> Integer {
        self.values.denominator.square_ref().complete()
    }

    /// Products that [`ProofSampled::pairings`] makes with a block; [`ProofSampled::weighted_sum`] makes fewer.
    pub(super) fn block_steps(&self, cone: usize) -> u64 {
        let rows = self.bases[cone].0 as u64;
        rows.saturating_mul(rows + 1).saturating_mul(self.variables() as u64)
    }

    /// Products that [`ProofSampled::gram`] makes.
    pub(super) fn gram_steps(&self) -> u64 {
        let rows = self.bases.iter().map(|&(rows, _)| rows as u64).sum::<u64>();
        rows.saturating_mul(triangle(self.points) as u64)
    }

    /// `w_k v_k^T M^{rs} v_k`.
    pub fn pairings(&self, blocks: &[Fixed]) -> Vec<Rational> {
        let mut found = vec![Rational::new(); self.variables()];
        for (cone, block) in blocks.iter().enumerate() {
            let (rows, denominator) = (self.bases[cone].0, (self.square() * &self.weights.denominator) << block.bits);
            for (pair, (r, s)) in self.pairs().enumerate() {
                for point in 0..self.points {
                    let vector = self.vector(cone, point);
                    let mut sum = Integer::new();
                    for (row, left) in vector.iter().enumerate() {
                        let mut image = Integer::new();
                        for (col, right) in vector.iter().enumerate() {
                            image += &block.values[packed(r * rows + row, s * rows + col)] * right;
                        }
                        sum += image * left;
                    }
                    found[pair * self.points + point] +=
                        Rational::from((sum * self.weight(cone, point), denominator.clone()));
                }
            }
        }
        found
    }

    /// Block `(r, s)` is `sum_k x_k w_k v_k v_k^T`, or half of it if `r` and `s` differ.
    pub fn weighted_sum(&self, cone: usize, x: &Fixed) -> Scaled {
        let rows = self.bases[cone].0;
        let mut numerators = vec![Integer::new(); triangle(self.dim * rows)];
        for (pair, (r, s)) in self.pairs().enumerate() {
            for point in 0..self.points {
                let weight = (&x.values[pair * self.points + point] * self.weight(cone, point)).complete();
                let vector = self.vector(cone, point);
                for (row, left) in vector.iter().enumerate() {
                    let product = (&weight * left).complete() << u32::from(r == s);
                    // Block (s, r) is the one below the diagonal; on it the lower triangle is all.
                    let end = if r == s { row + 1 } else { rows };
                    for (col, right) in vector[..end].iter().enumerate() {
                        numerators[packed(s * rows + row, r * rows + col)] += &product * right;
                    }
                }
            }
        }
        Scaled { numerators, denominator: (self.square() * &self.weights.denominator) << (x.bits + 1) }
    }

    /// The numerators of `v_k . v_l`, whose denominator is the square of that of the bases.
    fn products(&self, cone: usize, k: usize, l: usize) -> Integer {
        let pairs = self.vector(cone, k).iter().zip(self.vector(cone, l));
        pairs.fold(Integer::new(), |sum, (left, right)| sum + left * right)
    }

    /// The sum of `A_p . A_p`: `(w_k v_k . v_k)^2` for each `(r, r)`, and half of it for each other pair.
    pub fn square_sum(&self, cone: usize) -> Rational {
        let squares =
            (0..self.points).map(|point| (self.products(cone, point, point) * self.weight(cone, point)).square());
        let sum = squares.fold(Integer::new(), |sum, square| sum + square);
        let halves = 2 * self.dim + self.dim * (self.dim - 1) / 2;
        Rational::from((sum * halves as u64, self.square_denominator() * 2u32))
    }

    /// The denominator of products of two `A`.
    fn square_denominator(&self) -> Integer {
        (self.square() * &self.weights.denominator).square()
    }

    /// The sum over the blocks of `w_k w_l (v_k . v_l)^2`, for each `(r, r)`, and half of it for each other pair.
    pub fn gram(&self) -> Gram {
        let mut numerators = Vec::with_capacity(triangle(self.points));
        for k in 0..self.points {
            for l in 0..=k {
                let squares = (0..self.bases.len()).map(|cone| {
                    let weights = (self.weight(cone, k) * self.weight(cone, l)).complete();
                    self.products(cone, k, l).square() * weights
                });
                numerators.push(squares.fold(Integer::new(), |sum, square| sum + square));
            }
        }
        let repeats = self.pairs().map(|(r, s)| if r == s { 1 } else { 2 }).collect();
        Gram { order: self.points, matrix: Scaled { numerators, denominator: self.square_denominator() }, repeats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_as_many_as_bases_times_points_or_refused() -> Result<(), String> {
        let one = || Rational::from(1);
        let sampled = || ProofSampled::new(1, 2, &[vec![one(), one()], vec![one(), one()]]);
        for count in [0, 3, 5, 8] {
            let refused = sampled()?.weighted(&vec![one(); count]).unwrap_err();
            assert_eq!(refused, format!("{count} weights for 2 bases at 2 points, which require 4"));
        }
        let weighted = sampled()?.weighted(&[1, 2, 3, 4].map(Rational::from))?;
        assert_eq!([(0, 0), (0, 1), (1, 0), (1, 1)].map(|(cone, at)| weighted.factor(cone, at)), [1, 2, 3, 4]);
        // An empty basis has no weights.
        assert!(ProofSampled::new(1, 2, &[vec![one(), one()], Vec::new()])?.weighted(&[one(), one()]).is_ok());
        Ok(())
    }
}
