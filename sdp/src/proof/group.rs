//! Variables that share blocks, and their matrices: polynomial ones at sample points, or of few entries.

use super::sampled::ProofSampled;
use super::scaled::{Fixed, Scaled};
use super::shape::{Gram, ProofShape};
use super::sparse::ProofSparse;
use rug::Rational;

/// A group of variables that share blocks.
#[derive(Clone, PartialEq, Debug)]
pub struct ProofGroup {
    /// `c`.
    pub costs: Scaled,
    /// The matrix `B`, row by row.
    pub free: Scaled,
    /// The matrices `A_p`, and `C`.
    pub constraints: ProofConstraints,
}

/// The matrices of a group.
#[derive(Clone, PartialEq, Debug)]
pub enum ProofConstraints {
    /// Polynomial matrices at sample points; `C` is 0.
    Sampled(ProofSampled),
    /// Few entries each.
    Sparse(ProofSparse),
}

impl ProofGroup {
    /// Variables.
    pub fn variables(&self) -> usize {
        self.costs.numerators.len()
    }

    /// Kinds and orders of the blocks.
    pub fn shapes(&self) -> Vec<ProofShape> {
        match &self.constraints {
            ProofConstraints::Sampled(sampled) => sampled.shapes(),
            ProofConstraints::Sparse(sparse) => sparse.shapes.clone(),
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
            ProofConstraints::Sampled(sampled) => sampled.pairings(blocks),
            ProofConstraints::Sparse(sparse) => sparse.pairings(blocks),
        }
    }

    /// `C . M`.
    pub fn constant_pairing(&self, blocks: &[Fixed]) -> Rational {
        match &self.constraints {
            ProofConstraints::Sampled(_) => Rational::new(),
            ProofConstraints::Sparse(sparse) => sparse.constant_pairing(blocks),
        }
    }

    /// `C . C`.
    pub fn constant_square(&self) -> Rational {
        match &self.constraints {
            ProofConstraints::Sampled(_) => Rational::new(),
            ProofConstraints::Sparse(sparse) => sparse.squares(|variable| variable.is_none(), 0..usize::MAX),
        }
    }

    /// Block `cone` of `sum_p x_p A_p - C`.
    pub fn slack(&self, cone: usize, x: &Fixed) -> Scaled {
        match &self.constraints {
            ProofConstraints::Sampled(sampled) => sampled.weighted_sum(cone, x),
            ProofConstraints::Sparse(sparse) => sparse.slack(cone, x, 1),
        }
    }

    /// Block `cone` of `sum_p x_p A_p`.
    pub fn weighted_sum(&self, cone: usize, x: &Fixed) -> Scaled {
        match &self.constraints {
            ProofConstraints::Sampled(sampled) => sampled.weighted_sum(cone, x),
            ProofConstraints::Sparse(sparse) => sparse.slack(cone, x, 0),
        }
    }

    /// The sum of `A_p . A_p` over all p, for one block of them.
    pub fn square_sum(&self, cone: usize) -> Rational {
        match &self.constraints {
            ProofConstraints::Sampled(sampled) => sampled.square_sum(cone),
            ProofConstraints::Sparse(sparse) => sparse.squares(|variable| variable.is_some(), cone..cone + 1),
        }
    }

    /// Rows of the matrix of [`ProofGroup::gram`].
    pub fn gram_order(&self) -> usize {
        match &self.constraints {
            ProofConstraints::Sampled(sampled) => sampled.points(),
            ProofConstraints::Sparse(_) => self.variables(),
        }
    }

    /// `A_p . A_q`.
    pub fn gram(&self) -> Gram {
        match &self.constraints {
            ProofConstraints::Sampled(sampled) => sampled.gram(),
            ProofConstraints::Sparse(sparse) => sparse.gram(self.variables()),
        }
    }
}
