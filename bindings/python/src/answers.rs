//! Solutions and inverses with a number of correct digits: at the least precision that gives them, or with a proof.

use crate::argument::argument;
use crate::call::{Call, beside};
use crate::choices::{SYMMETRIC, part_of};
use crate::errors::{SINGULAR, exception};
use crate::general::{Factors, GeneralAnswer};
use crate::input::{Bits, Operand, ReadPart};
use crate::output::{ResultForm, Shape, digits_held};
use crate::symmetric::Symmetric;
use crate::view::View;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Instant;
use sunzi::advanced::{PrecisionSearch, PrecisionTry, optional_estimate};
use sunzi::{Error, Matrix, MoreBits, Outcome, SymmetricMatrix};

/// Correct digits of `precision="auto"`, where the numbers of the result hold as many.
const DIGITS: u32 = 30;

/// The exponent of the largest entry of a column below which its entries, as `float`, have fewer bits than others.
const LEAST_EXPONENT: i64 = -1021;

/// The correct digits that a caller requests of an answer.
#[derive(Clone, Copy, Debug)]
pub struct RequestedDigits {
    /// Where the precision is to be found.
    search: Option<DigitsGoal>,
    certified: bool,
}

/// The goal of a search for a precision.
#[derive(Clone, Copy, Debug)]
struct DigitsGoal {
    /// The number of digits that the caller names.
    digits: Option<u32>,
}

impl RequestedDigits {
    /// Takes `precision="auto"`, `digits`, `certified` and `dps` out of the options of a call, where `precision` is
    /// then a number of bits or absent; `None` where nothing is requested of the digits.
    ///
    /// # Errors
    /// `TypeError`, `ValueError` for values that contradict each other.
    pub fn take(options: &Bound<'_, PyDict>) -> PyResult<Option<RequestedDigits>> {
        let given = |name: &str| Ok::<_, PyErr>(options.get_item(name)?.filter(|value| !value.is_none()));
        let precision = given("precision")?;
        let word = precision.as_ref().and_then(|value| value.extract::<String>().ok());
        if let Some(word) = word.as_ref().filter(|word| *word != "auto") {
            return Err(PyValueError::new_err(format!(
                "precision='{word}' is not valid; use a number of bits or 'auto'"
            )));
        }
        let positive = |name: &str| -> PyResult<Option<u32>> {
            let Some(value) = given(name)? else { return Ok(None) };
            match argument::<u32>(name, &value)? {
                0 => Err(PyValueError::new_err(format!("{name}=0 is not valid; it must be at least 1"))),
                count => Ok(Some(count)),
            }
        };
        let (digits, dps) = (positive("digits")?, positive("dps")?);
        match (&precision, digits, dps) {
            (Some(precision), _, Some(dps)) => {
                return Err(PyValueError::new_err(format!("dps={dps} and precision={precision} are both given")));
            }
            (_, Some(digits), Some(dps)) => {
                return Err(PyValueError::new_err(format!(
                    "dps={dps} and digits={digits} are both given; dps= is the precision of the computation in decimal \
                     digits, digits= the number of correct digits of the result"
                )));
            }
            (Some(bits), Some(digits), _) if word.is_none() => {
                let message = format!("digits={digits} requires precision='auto', but precision={bits} is given");
                return Err(PyValueError::new_err(message));
            }
            (.., Some(dps)) => options.set_item("precision", bits_of_places(dps))?,
            _ if word.is_some() => options.set_item("precision", options.py().None())?,
            _ => {}
        }
        let certified = given("certified")?.map_or(Ok(false), |value| argument("certified", &value))?;
        let search = (word.is_some() || digits.is_some()).then_some(DigitsGoal { digits });
        if search.is_none() && certified && given("report")?.is_none() {
            return Err(PyValueError::new_err(
                "certified=True requires report=, which receives the number of proven digits, or digits=, which that \
                 number must reach",
            ));
        }
        Ok((search.is_some() || certified).then_some(RequestedDigits { search, certified }))
    }

    /// Refuses an option that does not match these.
    ///
    /// # Errors
    /// `ValueError`.
    pub fn refuse_with(self, other: &str) -> PyResult<()> {
        let name = match (self.search, self.certified) {
            (None, _) => "certified=True",
            (Some(DigitsGoal { digits: None }), _) => "precision='auto'",
            _ => "digits=",
        };
        Err(PyValueError::new_err(format!("{name} is not accepted together with {other}")))
    }
}

/// The bits of a number of decimal digits, as mpmath counts them.
fn bits_of_places(dps: u32) -> u32 {
    ((f64::from(dps) + 1.0) * std::f64::consts::LOG2_10).round() as u32
}

/// The matrix and the right-hand sides of a call, as the caller has them; without these the inverse is requested.
pub struct GivenSystem<'py, 'o> {
    pub a: &'o Bound<'py, PyAny>,
    pub b: Option<&'o Bound<'py, PyAny>>,
}

/// The same, with sizes and number types read.
pub struct SystemOperands<'py> {
    pub a: Operand<'py>,
    pub b: Option<Operand<'py>>,
}

/// The same as numbers at one precision.
struct SystemNumbers {
    a: Symmetric,
    b: Option<View>,
    /// The factors that may be used.
    factors: Factors,
}

/// An answer, and what is known of it.
struct SystemAnswer {
    result: Matrix,
    report: serde_json::Value,
    digits: Option<f64>,
    certified: Option<f64>,
    form: ResultForm,
}

impl<'py> GivenSystem<'py, '_> {
    /// Reads sizes and number types of the operands.
    ///
    /// # Errors
    /// As [`Operand::of`].
    pub fn look(&self, call: &Call<'py>) -> PyResult<SystemOperands<'py>> {
        let a = Operand::of(self.a, "a", part_of(call.choice("uplo", SYMMETRIC)?))?;
        let b = self.b.map(|b| Operand::of(b, "b", ReadPart::Whole)).transpose()?;
        Ok(SystemOperands { a, b })
    }
}

impl<'py> SystemOperands<'py> {
    /// The form of the answer.
    fn shape(&self) -> Shape {
        let first = self.b.as_ref().unwrap_or(&self.a);
        Shape { container: first.container, kind: first.kind.min(self.a.kind) }
    }

    /// The numbers for a call at `bits` bits, or at the precision that they have.
    fn read(self, call: &Call<'py>, bits: Option<u32>) -> PyResult<SystemNumbers> {
        let SystemOperands { a, b } = self;
        let natural = [a.natural_bits, b.as_ref().and_then(|b| b.natural_bits)];
        let bits = bits.map_or_else(|| call.precision_bits(&natural), Ok)?;
        let b = b.map(|b| b.view(call.py(), Bits::InFull(bits))).transpose()?;
        Ok(SystemNumbers { a: Symmetric::at(call, a, bits)?, b, factors: Factors::of(call)? })
    }
}

impl SystemAnswer {
    /// The digits that count: those proven where a proof was requested.
    fn stated(&self) -> f64 {
        self.certified.or(self.digits).unwrap_or(0.0)
    }

    /// The digits that are left after the numbers of the answer have been rounded to `bits` bits of a `float`.
    fn held(&self, bits: Option<u32>) -> f64 {
        let top = |col: usize| {
            let heads = (0..self.result.rows()).map(|row| self.result.get(row, col).head);
            heads.filter(|head| !head.is_zero()).map(|head| head.exponent()).max()
        };
        match bits {
            None => self.stated(),
            // The least floats have fewer bits.
            Some(_) if (0..self.result.cols()).any(|col| top(col).is_some_and(|top| top <= LEAST_EXPONENT)) => 0.0,
            Some(bits) => digits_held(self.stated(), bits),
        }
    }
}

impl SystemNumbers {
    /// Whether some number is not the one that was given.
    fn is_rounded(&self) -> bool {
        self.a.view.rounded_bits().is_some() || self.b.as_ref().is_some_and(|b| b.rounded_bits().is_some())
    }

    /// The answer, with an estimate of its correct digits; with `certified` also with a number of them that is proven.
    fn answer(&self, ctx: &sunzi::Context, certified: bool) -> sunzi::Result<SystemAnswer> {
        let answered = if certified { self.certified_answer(ctx) } else { self.estimated_answer(ctx) };
        match answered {
            Err(error) if self.factors.fall_back(&error) => self.general_answer(ctx, certified),
            other => other,
        }
    }

    /// The answer by LU.
    fn general_answer(&self, ctx: &sunzi::Context, certified: bool) -> sunzi::Result<SystemAnswer> {
        let (b, rounding) = (self.b.as_ref().map(View::entries), self.a.rounding(self.b.as_ref()));
        let GeneralAnswer { solution: result, report, digits, certified } =
            self.a.general().with_digits(ctx, b, rounding, certified)?;
        Ok(SystemAnswer { result, report, digits, certified, form: ResultForm::General })
    }

    /// The form of an answer by Cholesky's factor.
    fn form(&self) -> ResultForm {
        if self.b.is_some() { ResultForm::General } else { ResultForm::Symmetric }
    }

    fn estimated_answer(&self, ctx: &sunzi::Context) -> sunzi::Result<SystemAnswer> {
        let (a, bits) = (self.a.operand(), self.a.precision_bits);
        let options = self.a.options().digits(true).rounding(self.a.rounding(self.b.as_ref()));
        let Outcome { result, report } = match &self.b {
            Some(b) => sunzi::solve_with(ctx, a, b.entries(), bits, &options)?,
            None => {
                let Outcome { result, report } = sunzi::inverse_with(ctx, a, bits, &options)?;
                Outcome { result: result.into_matrix(), report }
            }
        };
        let digits = report.digits;
        let report = serde_json::to_value(&report).unwrap_or_default();
        Ok(SystemAnswer { result, digits, certified: None, report, form: self.form() })
    }

    fn certified_answer(&self, ctx: &sunzi::Context) -> sunzi::Result<SystemAnswer> {
        let start = Instant::now();
        let (a, bits, rounding) = (self.a.operand(), self.a.precision_bits, self.a.rounding(self.b.as_ref()));
        let Outcome { result: factor, report: factorisation } = self.a.factor(ctx)?;
        let factor_bytes = factor.factor().bytes();
        let (result, mut report) = beside(ctx, factor_bytes, |own| match &self.b {
            Some(b) => {
                let mut x = Matrix::empty();
                let report = factor.solve_into(own, b.entries(), bits, &mut x)?;
                Ok((x, report))
            }
            None => {
                let mut inverse = SymmetricMatrix::default();
                let report = factor.inverse_into(own, bits, &mut inverse)?;
                Ok((inverse.into_matrix(), report))
            }
        })?;
        let held_bytes = factor_bytes + result.bytes();
        let estimate = beside(ctx, held_bytes, |own| match &self.b {
            Some(b) => factor.solution_digits_with(own, a, b.entries(), &result, rounding),
            None => factor.inverse_digits_with(own, a, &result, rounding),
        });
        let proven = beside(ctx, held_bytes, |own| {
            let Some(proof) = factor.certify_with(own, a, rounding)? else { return Ok(0.0) };
            match &self.b {
                Some(b) => proof.solution_digits(own, b.entries(), &result),
                None => proof.inverse_digits(own, &result),
            }
        })?;
        // Proven digits are correct.
        let digits = optional_estimate(estimate)?.map(|digits| digits.max(proven));
        report.planned_bytes = report.planned_bytes.saturating_add(factor_bytes).max(factorisation.planned_bytes);
        report.seconds = start.elapsed().as_secs_f64();
        report.factorisation = Some(factorisation);
        let report = serde_json::to_value(&report).unwrap_or_default();
        Ok(SystemAnswer { result, report, digits, certified: Some(proven), form: self.form() })
    }
}

/// Solves or inverts, with the digits that are requested.
///
/// # Errors
/// The errors of a solve or an inverse; `ValueError` where no precision gives the digits.
pub fn answer<'py>(
    mut call: Call<'py>,
    system: &GivenSystem<'py, '_>,
    operands: SystemOperands<'py>,
    requested: RequestedDigits,
) -> PyResult<Bound<'py, PyAny>> {
    let (certified, shape) = (requested.certified, operands.shape());
    let held_bits = call.held_bits(shape)?;
    let mut found = match requested.search {
        Some(search) => {
            let goal = search.goal(shape, held_bits)?;
            let tries =
                Tries { search: PrecisionSearch::new(goal), goal: goal.into(), held_bits, certified, best: None };
            tries.run(&mut call, system, operands)?
        }
        None => {
            let read = operands.read(&call, None)?;
            call.run(|ctx| read.answer(ctx, certified).map_err(|error| read.a.explained(ctx, error)))?
        }
    };
    if held_bits.is_some() && found.held(held_bits) == 0.0 {
        found.certified = found.certified.map(|_| 0.0);
    }
    let (form, mut report) = (found.form, found.report);
    if let Some(fields) = report.as_object_mut() {
        for (name, digits) in [("digits", found.digits), ("certified", found.certified)] {
            fields.extend(digits.map(|digits| (name.to_string(), digits.into())));
        }
    }
    call.finish(found.result, form, shape, Some(report.to_string()))
}

impl DigitsGoal {
    /// The digits to reach with results of this form.
    fn goal(self, shape: Shape, held_bits: Option<u32>) -> PyResult<u32> {
        let all = held_bits.map_or(f64::INFINITY, |bits| digits_held(f64::INFINITY, bits));
        let goal = self.digits.unwrap_or(DIGITS.min(all as u32));
        if f64::from(goal) > all {
            return Err(PyValueError::new_err(format!(
                "digits={goal} is requested, but the numbers of the result ({}) have {all:.1} digits; use operands of \
                 another type, or a Matrix, which keeps all digits",
                shape.kind.name()
            )));
        }
        Ok(goal)
    }
}

/// Answers at several precisions.
struct Tries {
    search: PrecisionSearch,
    goal: f64,
    held_bits: Option<u32>,
    certified: bool,
    best: Option<SystemAnswer>,
}

impl Tries {
    /// The answer at the least precision, to some bits, at which it has the digits.
    fn run<'py>(
        mut self,
        call: &mut Call<'py>,
        system: &GivenSystem<'py, '_>,
        operands: SystemOperands<'py>,
    ) -> PyResult<SystemAnswer> {
        let mut read = operands.read(call, Some(self.search.bits()))?;
        let mut stated = 0.0;
        for number in 0.. {
            let bits = self.search.bits();
            if number > 0 && read.is_rounded() {
                read = system.look(call)?.read(call, Some(bits))?;
            }
            read.a.precision_bits = bits;
            let held_bytes = self.best.as_ref().map_or(0, |best| best.result.bytes());
            let certified = self.certified;
            let tried = call.run(|ctx| Ok(beside(ctx, held_bytes, |own| read.answer(own, certified))))?;
            let outcome = match tried {
                Ok(answer) => {
                    let (found, held) = (answer.stated(), answer.held(self.held_bits));
                    let is_enough = held >= self.goal;
                    (stated, self.best) = (held, if is_enough { Some(answer) } else { self.best });
                    PrecisionTry::Digits(if is_enough { found } else { held })
                }
                Err(Error::NotPositiveDefinite { more_bits, index, pivot, diagonal, .. }) if more_bits.might_help() => {
                    if number == 0 && call.run(|ctx| read.a.is_singular(ctx))? {
                        let (more_bits, enough_bits) = (MoreBits::Singular, None);
                        let error = Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, enough_bits };
                        return Err(exception(call.py(), error));
                    }
                    PrecisionTry::NoFactor
                }
                Err(error @ Error::NoPivot { .. }) => {
                    if number == 0 && call.run(|ctx| read.a.is_singular(ctx))? {
                        return Err(exception(call.py(), error));
                    }
                    PrecisionTry::NoFactor
                }
                // Beyond the reach of the kernel.
                Err(Error::Precision { .. }) if number > 0 => break,
                Err(error) => return Err(exception(call.py(), error)),
            };
            let is_doubtful = number == 0 && outcome != PrecisionTry::NoFactor && stated < 1.0;
            if is_doubtful && call.run(|ctx| read.a.is_singular(ctx))? {
                return Err(PyValueError::new_err(format!("{SINGULAR}: no precision gives {} digits", self.goal)));
            }
            if !self.search.record(outcome) {
                break;
            }
        }
        let (goal, too_few) = (self.goal, self.search.too_few_bits());
        self.best.ok_or_else(|| {
            PyValueError::new_err(format!(
                "no precision tried, up to {too_few} bits, gives {goal} correct digits: about {stated:.0} were reached"
            ))
        })
    }
}
