//! The entry points, by subject. Each checks its arguments, takes operands in, calls the library, and stores the
//! result.
//!
//! The rules for all pointers are stated once, at the head of the header; below they are "the header's rules".

// The header declares the functions in the order of these lines, and lists them so in its table of contents.
pub mod contexts;

pub mod arrays;
pub mod products;
pub mod triangular;

pub mod cholesky;
pub mod factor;

pub mod digits;
pub mod ldlt;
pub mod lu;

pub mod batches;
pub mod plans;

pub mod lapack;
pub mod mpi;

pub mod info;

use crate::array::{Operand, Part, invalid};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::types::*;
use rug::Float;
use sunzi::{Diag, MatrixView, Op, Side, Symmetric, Uplo};

/// The operands that a call needs, by their names in the header.
///
/// # Safety
/// The header's rules.
unsafe fn operands<const N: usize>(
    names: [&'static str; N],
    matrices: [*const sunzi_matrix; N],
) -> Outcome<[Operand; N]> {
    let mut made = Vec::with_capacity(N);
    for (name, matrix) in names.into_iter().zip(matrices) {
        // SAFETY: by contract.
        made.push(unsafe { Operand::new(name, matrix) }?);
    }
    Ok(std::array::from_fn(|at| made[at]))
}

/// A scalar: a matrix of one entry; `None` for a null pointer.
///
/// # Safety
/// The header's rules.
unsafe fn scalar(call: &Call<'_>, name: &'static str, matrix: *const sunzi_matrix) -> Outcome<Option<Float>> {
    if matrix.is_null() {
        return Ok(None);
    }
    // SAFETY: by contract.
    let operand = unsafe { Operand::new(name, matrix) }?;
    operand.check_shape(1, 1)?;
    // SAFETY: by contract.
    Ok(Some(unsafe { number(call, &operand) }?))
}

/// The only entry of an operand.
///
/// # Safety
/// The header's rules.
unsafe fn number(call: &Call<'_>, operand: &Operand) -> Outcome<Float> {
    // SAFETY: by contract.
    unsafe { call.read_number(operand) }
}

fn unknown(name: &'static str, value: i32, choices: &str) -> Failure {
    invalid(name, format!("{value} is not a valid value; choose {choices}"))
}

fn uplo_of(value: i32) -> Outcome<Uplo> {
    match value {
        SUNZI_LOWER => Ok(Uplo::Lower),
        SUNZI_UPPER => Ok(Uplo::Upper),
        other => Err(unknown("uplo", other, "SUNZI_UPPER (121) or SUNZI_LOWER (122)")),
    }
}

/// The triangle of a symmetric matrix that counts; `None` for both.
fn symmetric_of(value: i32) -> Outcome<Option<Uplo>> {
    match value {
        SUNZI_LOWER => Ok(Some(Uplo::Lower)),
        SUNZI_UPPER => Ok(Some(Uplo::Upper)),
        SUNZI_BOTH => Ok(None),
        other => Err(unknown("uplo", other, "SUNZI_UPPER (121), SUNZI_LOWER (122) or SUNZI_BOTH (123)")),
    }
}

/// A symmetric operand of which the triangle `uplo` counts; both must hold the same numbers where it is `None`.
fn symmetric<'a>(name: &'static str, view: MatrixView<'a>, uplo: Option<Uplo>) -> Outcome<Symmetric<'a>> {
    match uplo {
        Some(uplo) => Ok(Symmetric::triangle(view, uplo)),
        None => {
            let checked = Symmetric::from(view).lower_view("a symmetric matrix");
            checked.map(Symmetric::lower).map_err(|error| Failure::about(name, error))
        }
    }
}

fn op_of(name: &'static str, value: i32) -> Outcome<Op> {
    match value {
        SUNZI_NO_TRANS => Ok(Op::NoTranspose),
        SUNZI_TRANS => Ok(Op::Transpose),
        other => Err(unknown(name, other, "SUNZI_NO_TRANS (111) or SUNZI_TRANS (112)")),
    }
}

fn side_of(value: i32) -> Outcome<Side> {
    match value {
        SUNZI_LEFT => Ok(Side::Left),
        SUNZI_RIGHT => Ok(Side::Right),
        other => Err(unknown("side", other, "SUNZI_LEFT (141) or SUNZI_RIGHT (142)")),
    }
}

fn diag_of(value: i32) -> Outcome<Diag> {
    match value {
        SUNZI_NON_UNIT => Ok(Diag::NonUnit),
        SUNZI_UNIT => Ok(Diag::Unit),
        other => Err(unknown("diag", other, "SUNZI_NON_UNIT (131) or SUNZI_UNIT (132)")),
    }
}

/// The entries of a triangle.
fn triangle(uplo: Uplo) -> Part {
    match uplo {
        Uplo::Lower => Part::Lower,
        Uplo::Upper => Part::Upper,
    }
}

/// The entries that count of a symmetric matrix.
fn part_of(uplo: Option<Uplo>) -> Part {
    uplo.map_or(Part::All, triangle)
}
