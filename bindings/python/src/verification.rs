//! Checks of results by methods that share no code with those that made them.

use crate::call::Call;
use crate::choices::{Named, SIDES, SYMMETRIC, json, op, part_of, symmetric};
use crate::input::{Bits, Operand, ReadPart, scalar};
use crate::view::View;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rug::Float;
use sunzi::verify::{Verification, VerifyOptions, verify_weighted_gram};
use sunzi::verify::{verify_cholesky, verify_gemm, verify_inverse, verify_solve, verify_syrk, verify_trsm};
use sunzi::{Diag, Op, Side, TrsmOptions, Uplo};

/// The operations whose results can be checked, with the names of their operands; the result is the last.
const OPERATIONS: [(&str, &[&str]); 7] = [
    ("syrk", &["p", "q"]),
    ("weighted_gram", &["p", "d", "q"]),
    ("gemm", &["a", "b", "c"]),
    ("cholesky", &["a", "l"]),
    ("solve", &["a", "b", "x"]),
    ("inverse", &["a", "x"]),
    ("trsm", &["t", "b", "x"]),
];

/// The computation to check, and the effort of the check.
struct Check {
    operation: &'static str,
    names: &'static [&'static str],
    uplo: Option<Named>,
    op: Op,
    side: Side,
    diag: Diag,
    alpha: Option<Float>,
    bits: u32,
    options: VerifyOptions,
}

impl Check {
    /// Reads the operands and the result.
    fn new(call: &Call<'_>, operation: &str, count: usize) -> PyResult<Check> {
        let found = OPERATIONS.iter().find(|(name, names)| *name == operation && names.len() == count);
        let Some(&(operation, names)) = found else {
            let known = OPERATIONS.map(|(name, names)| format!("('{name}', {})", names.join(", "))).join(", ");
            let message = format!("there is no check of '{operation}' with {count} matrices; use {known}");
            return Err(PyValueError::new_err(message));
        };
        let uplo = call.choice("uplo", SYMMETRIC)?;
        let op_a = op(call.flag("transpose_a")?);
        let options = VerifyOptions::default()
            .op(op_a)
            .op_b(op(call.flag("transpose_b")?))
            .uplo(uplo.map_or(Uplo::Lower, |named| named.uplo))
            .exact_integers(call.flag("exact")?)
            .seed(call.seed("seed")?);
        let side = call.choice("side", SIDES)?;
        let diag = if call.flag("unit")? { Diag::Unit } else { Diag::NonUnit };
        Ok(Check { operation, names, uplo, op: op_a, side, diag, alpha: None, bits: 0, options })
    }

    /// The triangle of an operand or a factor that has only one.
    fn triangle(&self) -> Uplo {
        self.uplo.map_or(Uplo::Lower, |named| named.uplo)
    }

    /// The part of an operand that is read.
    fn part(&self, at: usize) -> ReadPart {
        let triangle = self.triangle();
        match (self.operation, at) {
            ("syrk", 1) | ("weighted_gram", 2) | ("cholesky" | "solve", 0) | ("inverse", _) => part_of(self.uplo),
            ("trsm", 0) if self.diag == Diag::Unit => ReadPart::StrictTriangle(triangle),
            ("trsm", 0) => ReadPart::Triangle(triangle),
            _ => ReadPart::Whole,
        }
    }

    fn run(&self, ctx: &sunzi::Context, views: &[View]) -> sunzi::Result<Verification> {
        let (uplo, bits, options) = (self.uplo, self.bits, &self.options);
        match (self.operation, views) {
            ("syrk", [p, q]) => verify_syrk(ctx, p.entries(), symmetric(q, uplo), bits, options),
            ("weighted_gram", [p, d, q]) => {
                verify_weighted_gram(ctx, p.entries(), d.entries(), symmetric(q, uplo), bits, options)
            }
            ("cholesky", [a, l]) => verify_cholesky(ctx, symmetric(a, uplo), l.entries(), bits, options),
            ("inverse", [a, x]) => verify_inverse(ctx, symmetric(a, uplo), symmetric(x, uplo), bits, options),
            ("solve", [a, b, x]) => verify_solve(ctx, (symmetric(a, uplo), b.entries()), x.entries(), bits, options),
            ("trsm", [t, b, x]) => {
                let system = TrsmOptions::new().side(self.side).uplo(self.triangle()).op(self.op);
                let system = system.diag(self.diag).alpha(self.alpha.as_ref());
                verify_trsm(ctx, (t.entries(), b.entries()), x.entries(), bits, (&system, options))
            }
            (_, [a, b, c]) => verify_gemm(ctx, (a.entries(), b.entries()), c.entries(), bits, options),
            _ => unreachable!("the number of operands has been checked"),
        }
    }
}

/// The native part of the function of this name in `sunzi`.
#[pyfunction]
pub fn verify<'py>(
    operation: &str,
    operands: Vec<Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut call = Call::new(options)?;
    let mut check = Check::new(&call, operation, operands.len())?;
    let read = |(at, object)| Operand::of(object, check.names[at], check.part(at));
    let operands = operands.iter().enumerate().map(read).collect::<PyResult<Vec<_>>>()?;
    // The last operand is the result, and was rounded to its precision.
    let exact = check.options.exact_integers;
    check.bits = match exact {
        true => call.least_bits(),
        false => call.precision_bits(&[operands.last().and_then(|result| result.natural_bits)])?,
    };
    let read_as = if exact { Bits::Integers } else { Bits::Round(check.bits) };
    check.alpha = scalar(call.object("alpha")?.as_ref(), "alpha", read_as)?;
    let views = operands.into_iter().map(|operand| operand.view(call.py(), read_as));
    let views = views.collect::<PyResult<Vec<View>>>()?;
    let found = call.run(|ctx| check.run(ctx, &views))?;
    call.py().import("json")?.call_method1("loads", (json(&found)?.unwrap_or_default(),))
}
