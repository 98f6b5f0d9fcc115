//! SDPB's text checkpoints, which do not name their program.

use super::LEAST_BITS;
use super::parts::{PointPart, PointParts};
use crate::block::Shape;
use crate::iterate::{Outset, State};
use crate::numbers::{Dimensions, rounded};
use rug::Float;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use sunzi::{Error, Matrix, Result, io};
use xxhash_rust::xxh3::Xxh3;

/// Bytes of a file that are hashed at a time.
const PIECE_BYTES: usize = 1 << 16;

/// Adds the bytes of a file to a hash, and returns their number.
fn pass(path: &Path, hash: &mut Xxh3) -> Result<()> {
    let refused = |source| Error::Io { path: path.to_path_buf(), action: "read", source };
    let mut file = File::open(path).map_err(refused)?;
    let (mut bytes, mut length) = (vec![0; PIECE_BYTES], 0u64);
    loop {
        let count = match file.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(refused(error)),
        };
        hash.update(&bytes[..count]);
        length += count as u64;
    }
    hash.update(&length.to_le_bytes());
    Ok(())
}

/// A matrix under a line with its shape; its text goes into the hash as [`pass`] adds it.
fn text_matrix(path: PathBuf, shape: Dimensions, bits: u32, hash: &mut Xxh3) -> Result<Matrix> {
    let refused = |message: String| Error::Format { path: path.clone(), message };
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|source| Error::Io { path: path.clone(), action: "read", source })?;
    hash.update(text.as_bytes());
    hash.update(&(text.len() as u64).to_le_bytes());
    let (first, rest) = text.trim_start().split_once('\n').unwrap_or((&text, ""));
    let sizes = first.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<usize>, _>>();
    if sizes.as_deref() != Ok(&[shape.rows, shape.cols]) {
        let Dimensions { rows, cols } = shape;
        return Err(refused(format!(
            "line 1 is '{}', but must have the sizes '{rows} {cols}' of this program",
            first.trim()
        )));
    }
    let mut parser = io::NumberParser::new(bits);
    let mut numbers = Vec::with_capacity(shape.count());
    for word in rest.split_whitespace() {
        let number = parser.parse(word).map_err(|error| refused(format!("number {}: {error}", numbers.len() + 1)))?;
        numbers.push(number.value);
    }
    if numbers.len() != shape.count() {
        return Err(refused(format!(
            "the file has {} numbers below line 1 instead of {}",
            numbers.len(),
            shape.count()
        )));
    }
    Matrix::from_fn(shape.rows, shape.cols, bits, |row, col| numbers[row * shape.cols + col].clone())
}

/// SDPB's files: `x_j.txt`, `y.txt`, `X_matrix_i.txt`, `Y_matrix_i.txt`, of which a rank keeps its part, and a hash of
/// the bytes of all of them, which it reads for this: by it ranks find out whether they have the same files.
///
/// # Errors
/// The errors of [`super::load_checkpoint`].
pub fn load(folder: &Path, parts: &PointParts<'_>) -> Result<(State, u64)> {
    let (sizes, bits) = (parts.sizes, parts.sizes.bits);
    let mut hash = Xxh3::new();
    let point = parts.point(bits, |part, is_kept| {
        let shape = parts.shape(part);
        let name = match part {
            PointPart::Variables(group) => format!("x_{group}.txt"),
            PointPart::Primal(at) => format!("X_matrix_{}.txt", sizes.text_numbers[at]),
            // There is no file of no numbers.
            PointPart::Free if shape.rows == 0 => return Ok(Some(Matrix::zeros(0, 1, bits)?)),
            PointPart::Free => "y.txt".into(),
            PointPart::Dual(at) => format!("Y_matrix_{}.txt", sizes.text_numbers[at]),
        };
        let path = folder.join(name);
        if !is_kept {
            return pass(&path, &mut hash).map(|()| None);
        }
        let read = text_matrix(path, shape, bits, &mut hash)?;
        let is_dense = |at: usize| matches!(sizes.cones[at].shape, Shape::Dense(_));
        Ok(Some(match part {
            PointPart::Primal(at) | PointPart::Dual(at) if is_dense(at) => symmetric(read)?,
            _ => read,
        }))
    })?;
    let steps = (Float::new(LEAST_BITS), Float::new(LEAST_BITS));
    let outset = Outset::default();
    let state = State {
        point,
        iterations: 0,
        steps,
        precision_bits: bits,
        course: None,
        outset,
        is_ended: false,
        reached: (false, false),
    };
    Ok((state, hash.digest()))
}

/// The mean of a matrix and its transpose: decimals may have cut both differently.
fn symmetric(matrix: Matrix) -> Result<Matrix> {
    let bits = matrix.precision_bits();
    let mean = |row: usize, col: usize| (matrix.float(row, col) + matrix.float(col, row)) >> 1u32;
    rounded(Matrix::from_fn(matrix.rows(), matrix.cols(), bits, mean)?, bits)
}
