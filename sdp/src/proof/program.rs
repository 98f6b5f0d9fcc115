//! A semidefinite program with the numbers of its files, exactly.
//!
//! `min f + c^T x`, `X = sum_p x_p A_p - C >= 0`, `B^T x = b`, and its dual `max f + C . Y + b^T y`,
//! `A_p . Y + (B y)_p = c_p`, `Y >= 0`. Does not know: files, the solver and its types.

use super::polynomial::{PolynomialMatrix, Sampling};
use super::sampled::Sampled;
use super::scaled::{Fixed, Scaled, floor_shifted, triangle};
use super::sparse::Sparse;
use rug::{Complete, Integer, Rational};
use std::borrow::Cow;

/// A program.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    /// `f`.
    pub constant: Rational,
    /// `b`.
    pub objective: Scaled,
    /// The variables x and their matrices; those of two groups share no block.
    pub groups: Vec<Group>,
    /// What the groups are made from when it is known where, of a polynomial program, which has none before; none
    /// else.
    pub polynomials: Vec<PolynomialMatrix>,
    /// Bytes of the files together, to which the numbers of a check have their limit.
    pub bytes: u64,
    /// A checksum of the files, byte by byte, as 32 hexadecimal digits.
    pub digest: String,
}

/// Variables that share blocks.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// `c`.
    pub costs: Scaled,
    /// `B`, row by row.
    pub free: Scaled,
    /// The matrices `A_p`, and `C`.
    pub constraints: Constraints,
}

/// The matrices of a group.
#[derive(Clone, PartialEq, Debug)]
pub enum Constraints {
    /// Polynomial matrices at sample points; `C` is 0.
    Sampled(Sampled),
    /// Few entries each.
    Sparse(Sparse),
}

/// Kind and order of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Rows.
    pub order: usize,
    /// Whether all entries beside the diagonal are 0; of such a block the diagonal alone is kept.
    pub diagonal: bool,
}

impl Shape {
    /// Numbers that are kept of a block.
    pub fn stored(self) -> usize {
        if self.diagonal { self.order } else { triangle(self.order) }
    }
}

/// The Gram matrix `A_p . A_q`: a block for each copy, `matrix / repeat`, and zeros beside them. Variable `k` of copy
/// `i` has the number `i order + k`.
pub struct Gram {
    /// Rows of a block.
    pub order: usize,
    /// The lower triangle.
    pub matrix: Scaled,
    /// What the matrix is divided by in each copy.
    pub repeats: Vec<u32>,
}

impl Group {
    /// Variables.
    pub fn variables(&self) -> usize {
        self.costs.numerators.len()
    }

    /// Kinds and orders of the blocks.
    pub fn shapes(&self) -> Vec<Shape> {
        match &self.constraints {
            Constraints::Sampled(sampled) => sampled.shapes(),
            Constraints::Sparse(sparse) => sparse.shapes.clone(),
        }
    }

    /// `c - B y`.
    pub fn rest(&self, y: &Fixed) -> Vec<Rational> {
        let count = y.values.len();
        (0..self.variables())
            .map(|row| match count {
                0 => self.costs.get(row),
                _ => self.costs.get(row) - self.free.dot(row * count, y),
            })
            .collect()
    }

    /// `A_p . M` for all p.
    pub fn pairings(&self, blocks: &[Fixed]) -> Vec<Rational> {
        match &self.constraints {
            Constraints::Sampled(sampled) => sampled.pairings(blocks),
            Constraints::Sparse(sparse) => sparse.pairings(blocks),
        }
    }

    /// `C . M`.
    pub fn constant_pairing(&self, blocks: &[Fixed]) -> Rational {
        match &self.constraints {
            Constraints::Sampled(_) => Rational::new(),
            Constraints::Sparse(sparse) => sparse.constant_pairing(blocks),
        }
    }

    /// `C . C`.
    pub fn constant_square(&self) -> Rational {
        match &self.constraints {
            Constraints::Sampled(_) => Rational::new(),
            Constraints::Sparse(sparse) => sparse.squares(|variable| variable.is_none(), 0..usize::MAX),
        }
    }

    /// Block `cone` of `sum_p x_p A_p - C`.
    pub fn slack(&self, cone: usize, x: &Fixed) -> Scaled {
        match &self.constraints {
            Constraints::Sampled(sampled) => sampled.weighted_sum(cone, x),
            Constraints::Sparse(sparse) => sparse.slack(cone, x, 1),
        }
    }

    /// Block `cone` of `sum_p x_p A_p`.
    pub fn weighted_sum(&self, cone: usize, x: &Fixed) -> Scaled {
        match &self.constraints {
            Constraints::Sampled(sampled) => sampled.weighted_sum(cone, x),
            Constraints::Sparse(sparse) => sparse.slack(cone, x, 0),
        }
    }

    /// The sum of `A_p . A_p` over all p, for one block of them.
    pub fn square_sum(&self, cone: usize) -> Rational {
        match &self.constraints {
            Constraints::Sampled(sampled) => sampled.square_sum(cone),
            Constraints::Sparse(sparse) => sparse.squares(|variable| variable.is_some(), cone..cone + 1),
        }
    }

    /// Rows of the matrix of [`Group::gram`].
    pub fn gram_order(&self) -> usize {
        match &self.constraints {
            Constraints::Sampled(sampled) => sampled.points(),
            Constraints::Sparse(_) => self.variables(),
        }
    }

    /// `A_p . A_q`.
    pub fn gram(&self) -> Gram {
        match &self.constraints {
            Constraints::Sampled(sampled) => sampled.gram(),
            Constraints::Sparse(sparse) => sparse.gram(self.variables()),
        }
    }
}

impl Program {
    /// Bits of the longest numerator or denominator of its blocks.
    pub fn largest_bits(&self) -> u32 {
        let of_group = |group: &Group| {
            let own = match &group.constraints {
                Constraints::Sampled(sampled) => sampled.largest_bits(),
                Constraints::Sparse(sparse) => sparse.values.largest_bits(),
            };
            own.max(group.costs.largest_bits()).max(group.free.largest_bits())
        };
        self.groups.iter().map(of_group).max().unwrap_or(0).max(self.objective.largest_bits())
    }

    /// Nothing yet.
    pub(super) fn empty() -> Program {
        let (constant, objective) = (Rational::new(), Scaled::new(&[]));
        Program { constant, objective, groups: Vec::new(), polynomials: Vec::new(), bytes: 0, digest: String::new() }
    }

    /// The program itself, or a polynomial one with groups from samplings, one for each of its matrices. Whatever they
    /// are, a bound of the one is one of the other: docs/ALGORITHM.md, "Certificates of polynomial programs".
    ///
    /// # Errors
    /// A text with the matrix, from 1, where a sampling does not fit.
    pub fn at(&self, samplings: &[Sampling]) -> Result<Cow<'_, Program>, String> {
        if self.polynomials.len() != samplings.len() {
            let (found, wanted) = (samplings.len(), self.polynomials.len());
            return Err(format!("samplings: {found} in the proof, and {wanted} polynomial matrices in the program"));
        }
        if samplings.is_empty() {
            return Ok(Cow::Borrowed(self));
        }
        let pairs = self.polynomials.iter().zip(samplings).enumerate();
        let group = |(number, (matrix, sampling)): (usize, (&PolynomialMatrix, &Sampling))| {
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

    /// The Gram matrix of C, whose entries are those of `B D` rounded down to `bits` bits behind the point, with the
    /// powers of two of `scales` in D; of all groups together.
    pub fn free_gram(&self, scales: &[i64], bits: u32) -> Scaled {
        let count = self.free_variables();
        let mut numerators = vec![Integer::new(); triangle(count)];
        for Group { free, .. } in &self.groups {
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

    /// The program with `c = 0` and `f = 0`: a dual feasible point of it with an objective above 0 leaves no primal
    /// point of this one.
    pub fn without_costs(&self) -> Program {
        let group = |group: &Group| Group { costs: Scaled::zeros(group.variables()), ..group.clone() };
        Program { constant: Rational::new(), groups: self.groups.iter().map(group).collect(), ..self.clone() }
    }

    /// The program with `b = 0`, `C = 0` and `f = 0`: a primal feasible point of it with an objective below 0 leaves no
    /// dual point of this one.
    pub fn without_right_sides(&self) -> Program {
        let group = |group: &Group| {
            let constraints = match &group.constraints {
                Constraints::Sparse(sparse) => Constraints::Sparse(sparse.without_constant()),
                sampled => sampled.clone(),
            };
            Group { constraints, ..group.clone() }
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
