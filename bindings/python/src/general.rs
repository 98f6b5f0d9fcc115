//! Systems with general matrices, by LU: where the matrix is not symmetric, or proven not to be positive definite.

use crate::call::{Call, beside};
use crate::errors::{if_not_positive, with_remark};
use crate::symmetric::Symmetric;
use pyo3::prelude::*;
use sunzi::advanced::optional_estimate;
use sunzi::estimate::InputRounding;
use sunzi::report::LuReport;
use sunzi::{Accuracy, Error, LuOptions, Matrix, MatrixView, MoreBits, Outcome};

/// The factors that a function of any square matrix may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Factors {
    /// Cholesky's, or those of LU where the matrix has none.
    Any,
    /// Cholesky's, since an option requires them.
    Cholesky,
}

impl Factors {
    /// Cholesky's where an option names a triangle: the matrix is symmetric then.
    ///
    /// # Errors
    /// `TypeError`.
    pub fn of(call: &Call<'_>) -> PyResult<Factors> {
        Ok(if call.object("uplo")?.is_some() { Factors::Cholesky } else { Factors::Any })
    }

    /// Whether LU may serve after this error of a Cholesky factorisation. A matrix that rounding may have made
    /// indefinite needs more bits, and one that is proven to be singular has no solution.
    pub fn fall_back(self, error: &Error) -> bool {
        let is_general = matches!(error, Error::NotSymmetric { .. })
            || matches!(error, Error::NotPositiveDefinite { more_bits: MoreBits::Never, .. });
        self == Factors::Any && is_general
    }
}

/// The exception of `function` with a remark about the factors: with a triangle named it has Cholesky's only, where
/// `instead` is the call for symmetric matrices that have none; and LU needs no proof about a symmetric matrix.
pub fn with_factors(py: Python<'_>, exception: PyErr, function: &str, instead: &str) -> PyErr {
    let might_help = exception.value(py).getattr("more_bits_might_help").and_then(|might| might.is_truthy());
    if might_help.unwrap_or(false) {
        return with_remark(py, exception, "if the matrix is not positive definite, use sunzi.lu(a)");
    }
    let remark = format!(
        "with uplo= {function} accepts symmetric positive definite matrices; for other symmetric matrices use \
         {instead}, and for general matrices leave out uplo="
    );
    if_not_positive(py, exception, &remark)
}

/// A square matrix of any kind, and the precision of results computed from it.
#[derive(Clone, Copy)]
pub struct General<'a> {
    pub entries: MatrixView<'a>,
    pub precision_bits: u32,
    pub accuracy: Accuracy,
}

impl General<'_> {
    /// `P A = L U`.
    ///
    /// # Errors
    /// As [`sunzi::lu_with`].
    pub fn factor(&self, ctx: &sunzi::Context) -> sunzi::Result<Outcome<sunzi::Lu, LuReport>> {
        sunzi::lu_with(ctx, self.entries, self.precision_bits, &LuOptions::new().accuracy(self.accuracy))
    }

    /// The solution of `A X = B`, or without right-hand sides the inverse, and the report as JSON; with the rounding of
    /// the input the report has an estimate of the correct digits.
    ///
    /// # Errors
    /// As [`sunzi::lu_with`] and [`sunzi::Lu::solve`].
    pub fn answer(
        &self,
        ctx: &sunzi::Context,
        b: Option<MatrixView<'_>>,
        rounding: Option<InputRounding>,
    ) -> sunzi::Result<(Matrix, Option<String>)> {
        let Some(rounding) = rounding else {
            let solved = self.solve_for(ctx, b)?;
            return Ok((solved.solution, Some(solved.report.to_string())));
        };
        let GeneralAnswer { solution, mut report, digits, .. } = self.with_digits(ctx, b, rounding, false)?;
        if let Some(fields) = report.as_object_mut() {
            fields.extend(digits.map(|digits| ("digits".to_string(), digits.into())));
        }
        Ok((solution, Some(report.to_string())))
    }

    /// The solution, or without right-hand sides the inverse, with an estimate of its correct digits; with `certified`
    /// also with a number of them that is proven.
    ///
    /// # Errors
    /// As [`General::answer`]; the errors of the estimate except those of memory.
    pub fn with_digits(
        &self,
        ctx: &sunzi::Context,
        b: Option<MatrixView<'_>>,
        rounding: InputRounding,
        certified: bool,
    ) -> sunzi::Result<GeneralAnswer> {
        let GeneralSolution { factors, solution, report } = self.solve_for(ctx, b)?;
        let held_bytes = factors.factors().bytes() + solution.bytes();
        let estimate = beside(ctx, held_bytes, |own| match b {
            Some(b) => factors.solution_digits(own, self.entries, b, &solution, rounding),
            None => factors.inverse_digits(own, self.entries, &solution, rounding),
        });
        let prove = |own: &sunzi::Context| {
            let Some(proof) = factors.certify(own, self.entries, rounding)? else { return Ok(0.0) };
            match b {
                Some(b) => proof.solution_digits(own, b, &solution),
                None => proof.inverse_digits(own, &solution),
            }
        };
        let proven = if certified { Some(beside(ctx, held_bytes, prove)?) } else { None };
        // Proven digits are correct.
        let digits = optional_estimate(estimate)?.map(|digits| digits.max(proven.unwrap_or(0.0)));
        Ok(GeneralAnswer { solution, report, digits, certified: proven })
    }

    fn solve_for(&self, ctx: &sunzi::Context, b: Option<MatrixView<'_>>) -> sunzi::Result<GeneralSolution> {
        let identity = Matrix::identity(self.entries.rows(), 2)?;
        let (b, operation) = b.map_or((identity.view(), "inverse"), |b| (b, "solve"));
        let Outcome { result: factors, report: factorisation } = self.factor(ctx)?;
        let (factor_bytes, mut solution) = (factors.factors().bytes(), Matrix::empty());
        let mut report =
            beside(ctx, factor_bytes, |own| factors.solve_into(own, b, self.precision_bits, &mut solution))?;
        report.operation = operation;
        report.accuracy = factorisation.accuracy;
        report.seconds += factorisation.seconds;
        report.planned_bytes = report.planned_bytes.saturating_add(factor_bytes).max(factorisation.planned_bytes);
        let mut report = serde_json::to_value(&report).unwrap_or_default();
        if let (Some(fields), Ok(own)) = (report.as_object_mut(), serde_json::to_value(&factorisation)) {
            fields.insert("factorisation".into(), own);
        }
        Ok(GeneralSolution { factors, solution, report })
    }
}

/// A solution or an inverse by LU, and its report.
struct GeneralSolution {
    factors: sunzi::Lu,
    solution: Matrix,
    report: serde_json::Value,
}

/// A solution or an inverse by LU, and what is known of it.
pub struct GeneralAnswer {
    pub solution: Matrix,
    pub report: serde_json::Value,
    pub digits: Option<f64>,
    pub certified: Option<f64>,
}

impl Symmetric {
    /// The same matrix as one of any kind, of which every entry is read.
    pub fn general(&self) -> General<'_> {
        General { entries: self.view.entries(), precision_bits: self.precision_bits, accuracy: self.accuracy }
    }
}
