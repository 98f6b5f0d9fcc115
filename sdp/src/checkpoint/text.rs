//! SDPB's text checkpoints, which do not say of which program they are.

use super::LEAST_BITS;
use super::parts::{Part, Parts};
use crate::block::Shape;
use crate::iterate::State;
use crate::numbers::rounded;
use crate::problem::Constraints;
use rug::Float;
use std::path::{Path, PathBuf};
use sunzi::{Error, Matrix, Result, io};

/// A matrix under a line with its shape.
fn text_matrix(path: PathBuf, shape: (usize, usize), bits: u32) -> Result<Matrix> {
    let refused = |message: String| Error::Format { path: path.clone(), message };
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|source| Error::Io { path: path.clone(), action: "read", source })?;
    let (first, rest) = text.trim_start().split_once('\n').unwrap_or((&text, ""));
    let sizes = first.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<usize>, _>>();
    if sizes.as_deref() != Ok(&[shape.0, shape.1]) {
        let (rows, cols) = shape;
        return Err(refused(format!("line 1 is '{}', and '{rows} {cols}' is wanted", first.trim())));
    }
    let mut parser = io::NumberParser::new(bits);
    let mut numbers = Vec::with_capacity(shape.0 * shape.1);
    for word in rest.split_whitespace() {
        let number = parser.parse(word).map_err(|error| refused(format!("number {}: {error}", numbers.len() + 1)))?;
        numbers.push(number.value);
    }
    if numbers.len() != shape.0 * shape.1 {
        return Err(refused(format!("it has {} numbers, and should have {}", numbers.len(), shape.0 * shape.1)));
    }
    Matrix::from_fn(shape.0, shape.1, bits, |row, col| numbers[row * shape.1 + col].clone())
}

/// SDPB's files: `x_j.txt`, `y.txt`, `X_matrix_i.txt`, `Y_matrix_i.txt`, of which a rank reads what it keeps.
///
/// # Errors
/// Those of [`super::load_checkpoint`].
pub fn load(folder: &Path, parts: &Parts<'_>) -> Result<State> {
    let (problem, bits) = (parts.problem, parts.problem.precision_bits);
    let number = |at: usize| {
        let cone = &parts.cones[at];
        match &problem.groups[cone.group].constraints {
            Constraints::Sampled(sampled) => 2 * cone.group + sampled.parities()[cone.number],
            Constraints::Sparse(_) => at,
        }
    };
    let point = parts.point(bits, |part, is_kept| {
        if !is_kept {
            return Ok(None);
        }
        let shape = parts.shape(part);
        let block = |name: &str, at: usize| {
            let read = text_matrix(folder.join(format!("{name}_matrix_{}.txt", number(at))), shape, bits)?;
            Ok(match parts.cones[at].shape {
                Shape::Dense(_) => symmetric(read)?,
                Shape::Diagonal(_) => read,
            })
        };
        Ok(Some(match part {
            Part::Variables(group) => text_matrix(folder.join(format!("x_{group}.txt")), shape, bits)?,
            Part::Primal(at) => block("X", at)?,
            Part::Free if shape.0 == 0 => Matrix::zeros(0, 1, bits)?,
            Part::Free => text_matrix(folder.join("y.txt"), shape, bits)?,
            Part::Dual(at) => block("Y", at)?,
        }))
    })?;
    let steps = (Float::new(LEAST_BITS), Float::new(LEAST_BITS));
    Ok(State { point, iterations: 0, steps, precision_bits: bits, course: None })
}

/// The mean of a matrix and its transpose: decimals may have cut both differently.
fn symmetric(matrix: Matrix) -> Result<Matrix> {
    let bits = matrix.precision_bits();
    let mean = |row: usize, col: usize| (matrix.float(row, col) + matrix.float(col, row)) >> 1u32;
    rounded(Matrix::from_fn(matrix.rows(), matrix.cols(), bits, mean)?, bits)
}
