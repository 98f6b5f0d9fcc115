//! A semidefinite program with the numbers of its files, exactly.
//!
//! `min f + c^T x`, `X = sum_p x_p A_p - C >= 0`, `B^T x = b`, and its dual `max f + C . Y + b^T y`,
//! `A_p . Y + (B y)_p = c_p`, `Y >= 0`. Independent of: files, the solver and its types.

use super::group::{ProofConstraints, ProofGroup};
use super::polynomial::{ProofPolynomialMatrix, ProofSampling};
use super::scaled::{Fixed, Scaled, floor_shifted, triangle};
use rug::{Complete, Integer, Rational};
use std::borrow::Cow;

/// A program.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    /// `f`.
    pub constant: Rational,
    /// `b`.
    pub objective: Scaled,
    /// The variables x and their matrices; matrices of two groups share no block.
    pub groups: Vec<ProofGroup>,
    /// The matrices of a polynomial program, which has no groups until its sample points are known; otherwise empty.
    pub polynomials: Vec<ProofPolynomialMatrix>,
    /// Total bytes of the files, to which the size of a check is limited in proportion.
    pub bytes: u64,
    /// A checksum of the files, byte by byte, as 32 hexadecimal digits.
    pub digest: String,
}

impl Program {
    /// Bits of the longest numerator or denominator of its blocks.
    pub fn largest_bits(&self) -> u32 {
        let of_group = |group: &ProofGroup| {
            let own = match &group.constraints {
                ProofConstraints::Sampled(sampled) => sampled.largest_bits(),
                ProofConstraints::Sparse(sparse) => sparse.values.largest_bits(),
            };
            own.max(group.costs.largest_bits()).max(group.free.largest_bits())
        };
        self.groups.iter().map(of_group).max().unwrap_or(0).max(self.objective.largest_bits())
    }

    /// A program without contents yet.
    pub(super) fn empty() -> Program {
        let (constant, objective) = (Rational::new(), Scaled::new(&[]));
        Program { constant, objective, groups: Vec::new(), polynomials: Vec::new(), bytes: 0, digest: String::new() }
    }

    /// The program itself, or for a polynomial program the program with groups from samplings, one for each of its
    /// matrices. For any samplings, a bound of one program is a bound of the other: docs/CHECKS.md, "Certificates of
    /// polynomial programs".
    ///
    /// # Errors
    /// A text with the number of the matrix, from 1, if a sampling does not fit.
    pub fn at(&self, samplings: &[ProofSampling]) -> Result<Cow<'_, Program>, String> {
        if self.polynomials.len() != samplings.len() {
            let (found, wanted) = (samplings.len(), self.polynomials.len());
            return Err(format!("samplings: {found} in the proof, but {wanted} polynomial matrices in the program"));
        }
        if samplings.is_empty() {
            return Ok(Cow::Borrowed(self));
        }
        let pairs = self.polynomials.iter().zip(samplings).enumerate();
        let group = |(number, (matrix, sampling)): (usize, (&ProofPolynomialMatrix, &ProofSampling))| {
            matrix.sampled(sampling).map_err(|message| format!("polynomial matrix {}: {message}", number + 1))
        };
        let groups = pairs.map(group).collect::<Result<Vec<_>, _>>()?;
        let (constant, objective) = (self.constant.clone(), self.objective.clone());
        let (polynomials, digest) = (Vec::new(), self.digest.clone());
        Ok(Cow::Owned(Program { constant, objective, groups, polynomials, bytes: self.bytes, digest }))
    }

    /// Number of free variables y.
    pub fn free_variables(&self) -> usize {
        self.objective.numerators.len()
    }

    /// `f + c^T x`.
    pub fn primal_objective(&self, x: &[Fixed]) -> Rational {
        let parts = self.groups.iter().zip(x).map(|(group, x)| group.costs.dot(0, x));
        parts.fold(self.constant.clone(), |sum, part| sum + part)
    }

    /// `b - B^T x`.
    pub fn free_rest(&self, x: &[Fixed]) -> Vec<Rational> {
        let count = self.free_variables();
        let mut rest = (0..count).map(|at| self.objective.get(at)).collect::<Vec<_>>();
        for (group, x) in self.groups.iter().zip(x) {
            let mut sums = vec![Integer::new(); count];
            for (row, weight) in x.values.iter().enumerate() {
                for (sum, entry) in sums.iter_mut().zip(&group.free.numerators[row * count..]) {
                    *sum += weight * entry;
                }
            }
            let denominator = (&group.free.denominator << x.bits).complete();
            for (rest, sum) in rest.iter_mut().zip(sums) {
                *rest -= Rational::from((sum, denominator.clone()));
            }
        }
        rest
    }

    /// The Gram matrix of C, whose entries are those of `B D` rounded down to `bits` bits after the binary point, with
    /// the powers of two of `scales` in D; for all groups together.
    pub fn free_gram(&self, scales: &[i64], bits: u32) -> Scaled {
        let count = self.free_variables();
        let mut numerators = vec![Integer::new(); triangle(count)];
        for ProofGroup { free, .. } in &self.groups {
            for row in free.numerators.chunks(count) {
                let entry =
                    |(entry, scale): (&Integer, &i64)| floor_shifted(entry, scale + i64::from(bits), &free.denominator);
                let row = row.iter().zip(scales).map(entry).collect::<Vec<_>>();
                for (at, left) in row.iter().enumerate().filter(|(_, left)| !left.is_zero()) {
                    for (sum, right) in numerators[triangle(at)..].iter_mut().zip(&row[..=at]) {
                        *sum += left * right;
                    }
                }
            }
        }
        Scaled { numerators, denominator: Integer::from(1) << (2 * bits) }
    }

    /// The program with `c = 0` and `f = 0`: if a dual feasible point of it has an objective above 0, this program has
    /// no primal feasible point.
    pub fn without_costs(&self) -> Program {
        let group = |group: &ProofGroup| ProofGroup { costs: Scaled::zeros(group.variables()), ..group.clone() };
        Program { constant: Rational::new(), groups: self.groups.iter().map(group).collect(), ..self.clone() }
    }

    /// The program with `b = 0`, `C = 0` and `f = 0`: if a primal feasible point of it has an objective below 0, this
    /// program has no dual feasible point.
    pub fn without_right_sides(&self) -> Program {
        let group = |group: &ProofGroup| {
            let constraints = match &group.constraints {
                ProofConstraints::Sparse(sparse) => ProofConstraints::Sparse(sparse.without_constant()),
                sampled => sampled.clone(),
            };
            ProofGroup { constraints, ..group.clone() }
        };
        Program {
            constant: Rational::new(),
            objective: Scaled::zeros(self.free_variables()),
            groups: self.groups.iter().map(group).collect(),
            ..self.clone()
        }
    }

    /// `c^T c`, of all groups together.
    pub fn costs_square(&self) -> Rational {
        self.groups.iter().fold(Rational::new(), |sum, group| sum + group.costs.squares(0..group.variables(), |_| 1))
    }
}
