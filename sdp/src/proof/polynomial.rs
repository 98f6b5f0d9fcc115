//! Polynomial matrix programs, exactly, and the semidefinite programs that they are.
//!
//! `M(x) = C(x) - sum_i y_i B_i(x)` of degree at most d is positive semidefinite for all `x >= 0` where
//! `M^{rs}(x) = q(x)^T (Y_0^{rs} + x Y_1^{rs}) q(x)` with Y positive semidefinite, and both sides are equal where they
//! are equal at `d + 1` points. So a proof may choose points, weights and basis freely.
//! The theorem: docs/CHECKS.md, "Certificates of polynomial programs". Independent of: files, prefactors.

use super::group::{ProofConstraints, ProofGroup};
use super::limits::MAXIMUM_SAMPLING_BITS;
use super::sampled::ProofSampled;
use super::scaled::{Fixed, Scaled, are_distinct, power_of_two, triangle};
use rug::{Complete, Integer, Rational};

/// A symmetric matrix of polynomials, for the constant 1 and for each free variable.
#[derive(Clone, PartialEq, Debug)]
pub struct ProofPolynomialMatrix {
    /// Rows.
    pub dim: usize,
    /// An upper bound of all degrees.
    pub degree: usize,
    /// Entries `(r, s)` with `r <= s`, in the order `(0, 0), (0, 1), (1, 1), (0, 2), ...`: the polynomials `C^{rs}`,
    /// `B_1^{rs}`, `B_2^{rs}` and so on, with coefficients from the constant one on.
    pub entries: Vec<Vec<Scaled>>,
}

/// The sample points at which two polynomial matrices are compared, and the basis of polynomials.
#[derive(Clone, PartialEq, Debug)]
pub struct ProofSampling {
    /// The points, all different: one more than the degree.
    pub points: Fixed,
    /// The equations of each point are multiplied by 2 to this power.
    pub exponents: Vec<i64>,
    /// Coefficients of polynomials of degree 0, 1, 2 and so on, from the constant one on, one polynomial after the
    /// other.
    pub basis: Fixed,
}

/// A polynomial with these numerators at `x 2^-bits`.
fn value(numerators: &[Integer], denominator: &Integer, x: &Integer, bits: u32) -> Rational {
    // Most polynomials of a program may be 0, and have no denominators that could be made.
    if numerators.iter().all(Integer::is_zero) {
        return Rational::new();
    }
    let mut sum = Integer::new();
    for (step, coefficient) in numerators.iter().rev().enumerate() {
        sum *= x;
        sum += (coefficient << (bits * step as u32)).complete();
    }
    let shift = bits * numerators.len().saturating_sub(1) as u32;
    Rational::from((sum, (denominator << shift).complete()))
}

impl ProofSampling {
    /// Whether it is valid for matrices of this degree.
    pub fn check(&self, degree: usize) -> Result<(), String> {
        let rows = degree / 2 + 1;
        for (name, found, wanted) in [
            ("points", self.points.values.len(), degree + 1),
            ("weights", self.exponents.len(), degree + 1),
            ("numbers of the basis", self.basis.values.len(), triangle(rows)),
        ] {
            if found != wanted {
                return Err(format!("{name}: {found}, but degree {degree} requires {wanted}"));
            }
        }
        if self.points.bits.max(self.basis.bits) > MAXIMUM_SAMPLING_BITS {
            return Err(format!(
                "points or coefficients have more than {MAXIMUM_SAMPLING_BITS} bits after the binary point"
            ));
        }
        if !are_distinct(self.points.values.iter()) {
            return Err("two sample points are the same".into());
        }
        match (0..rows).find(|&row| self.basis.values[triangle(row + 1) - 1] == 0) {
            Some(row) => Err(format!("polynomial {row} of the basis has a lower degree than {row}")),
            None => Ok(()),
        }
    }

    /// The polynomials of the basis at the points, a row for each.
    fn basis_rows(&self, rows: usize) -> Vec<Rational> {
        let one = Integer::from(1) << self.basis.bits;
        let row = |row: usize| {
            let coefficients = &self.basis.values[triangle(row)..][..=row];
            self.points.values.iter().map(|x| value(coefficients, &one, x, self.points.bits)).collect::<Vec<_>>()
        };
        (0..rows).flat_map(row).collect()
    }
}

impl ProofPolynomialMatrix {
    /// The equations at the points of a sampling.
    ///
    /// # Errors
    /// A text if the sampling does not fit.
    pub fn sampled(&self, sampling: &ProofSampling) -> Result<ProofGroup, String> {
        sampling.check(self.degree)?;
        let (points, bits) = (&sampling.points.values, sampling.points.bits);
        let powers = sampling.exponents.iter().map(|&exponent| power_of_two(exponent)).collect::<Vec<_>>();
        let (mut costs, mut free) = (Vec::new(), Vec::new());
        for entry in &self.entries {
            for (x, power) in points.iter().zip(&powers) {
                let mut values = entry.iter().map(|p| value(&p.numerators, &p.denominator, x, bits) * power);
                costs.extend(values.next());
                free.extend(values);
            }
        }
        let even = sampling.basis_rows(self.degree / 2 + 1);
        let odd = even[..self.degree.div_ceil(2) * points.len()].to_vec();
        let mut weights = powers.clone();
        if !odd.is_empty() {
            let point = |x: &Integer| Rational::from(x) * power_of_two(-i64::from(bits));
            weights.extend(points.iter().zip(&powers).map(|(x, power)| point(x) * power));
        }
        let sampled = ProofSampled::new(self.dim, points.len(), &[even, odd])?.weighted(&weights)?;
        Ok(ProofGroup {
            costs: Scaled::new(&costs),
            free: Scaled::new(&free),
            constraints: ProofConstraints::Sampled(sampled),
        })
    }
}
