//! States of a run on disk: one binary file of the library with all numbers in a column, complete or absent; and SDPB's
//! text checkpoints, from which a run can begin.
//!
//! The file does not know the precision, threads or options of the run that wrote it: any other may go on from it. At
//! the same precision it goes on with the same bits.

use crate::block::{Block, Shape};
use crate::iterate::{Cone, Point, State, cones};
use crate::numbers::rounded;
use crate::problem::{Constraints, Problem};
use rug::Float;
use std::path::{Path, PathBuf};
use sunzi::io::{self, FileFormat, ReadOptions, WriteOptions};
use sunzi::{Error, Matrix, Result};

/// The name of the file in its folder.
pub const CHECKPOINT_FILE: &str = "checkpoint.bin";

/// The number at the top of a column.
const VERSION: u32 = 1;

/// Numbers in front of the point.
const HEADER: usize = 4;

/// Bits of a column, at least: counts and steps have so many.
const LEAST_BITS: u32 = 64;

/// What both writing and reading say of the numbers of a program, in the order of the file.
fn lengths(problem: &Problem, cones: &[Cone]) -> Vec<usize> {
    let of_x = problem.groups.iter().map(|group| group.constraints.variables());
    let stored = |cone: &Cone| {
        let (rows, cols) = cone.shape.stored();
        rows * cols
    };
    let blocks = cones.iter().map(stored).collect::<Vec<_>>();
    of_x.chain(blocks.clone()).chain([problem.free_variables()]).chain(blocks).collect()
}

/// Writes a state into `folder`, which is made where it is missing: `x`, X, y and Y as one column in the library's
/// binary format, exactly, with a checksum. The file is complete or absent.
///
/// Cost: a copy of the point in memory, and its bytes on disk.
/// Source: docs/decisions/054-a-solver-on-the-public-api.md.
///
/// # Errors
/// [`Error::Io`], [`Error::OutOfMemory`].
pub fn save_checkpoint(folder: &Path, problem: &Problem, state: &State) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|source| Error::Io {
        path: folder.to_path_buf(),
        action: "create",
        source,
    })?;
    let Point { x, primal, y, dual } = &state.point;
    let blocks = |list: &[Block]| list.iter().map(|block| block.stored().clone()).collect::<Vec<_>>();
    let parts = x.iter().cloned().chain(blocks(primal)).chain([y.clone()]).chain(blocks(dual)).collect::<Vec<_>>();
    let count = HEADER + lengths(problem, &cones(problem)).iter().sum::<usize>();
    let mut column = Matrix::zeros(count, 1, state.precision_bits.max(LEAST_BITS))?;
    let iterations = Float::with_val(LEAST_BITS, state.iterations);
    let header = [Float::with_val(LEAST_BITS, VERSION), iterations, state.steps.0.clone(), state.steps.1.clone()];
    for (at, number) in header.iter().enumerate() {
        column.set_float(at, 0, number)?;
    }
    let mut at = HEADER;
    for part in &parts {
        for col in 0..part.cols() {
            for row in 0..part.rows() {
                column.set_float(at, 0, &part.float(row, col))?;
                at += 1;
            }
        }
    }
    io::write_as(folder.join(CHECKPOINT_FILE), FileFormat::Binary, &column, &WriteOptions::new())
}

/// The state in `folder`, rounded to the precision of the program: that of [`save_checkpoint`], or SDPB's text files;
/// `None` where neither is there. At the same precision the rest of a run has the bits that it would have had.
///
/// Cost: a pass over the file, and its numbers twice in memory.
///
/// # Errors
/// [`Error::Format`] where the file belongs to another program, or is damaged; [`Error::Io`].
pub fn load_checkpoint(folder: &Path, problem: &Problem) -> Result<Option<State>> {
    let path = folder.join(CHECKPOINT_FILE);
    if path.exists() {
        return load_binary(&path, problem).map(Some);
    }
    match folder.join("x_0.txt").exists() {
        true => load_text(folder, problem).map(Some),
        false => Ok(None),
    }
}

/// Whether SDPB's binary checkpoint lies in `folder`, which is not read: it has the layout of SDPB's processes, and no
/// word of its precision.
pub fn has_foreign_checkpoint(folder: &Path) -> bool {
    ["checkpoint.json", "checkpoint.0"].iter().any(|name| folder.join(name).is_file())
}

fn load_binary(path: &Path, problem: &Problem) -> Result<State> {
    let refused = |message: String| Error::Format { path: path.to_path_buf(), message };
    let column = io::read(path, &ReadOptions::new(None))?.matrix;
    let (cones, bits) = (cones(problem), problem.precision_bits);
    let lengths = lengths(problem, &cones);
    let wanted = HEADER + lengths.iter().sum::<usize>();
    if column.cols() != 1 || column.rows() < HEADER || column.float(0, 0) != VERSION {
        return Err(refused("this is no checkpoint of a semidefinite program".into()));
    }
    if column.rows() != wanted {
        let found = column.rows();
        return Err(refused(format!("the checkpoint of another program: it has {found} numbers, {wanted} are wanted")));
    }
    let mut at = HEADER;
    let mut next = |rows: usize, cols: usize| {
        let first = at;
        at += rows * cols;
        Matrix::from_fn(rows, cols, bits, |row, col| column.float(first + row + col * rows, 0))
    };
    let x = problem.groups.iter().map(|group| next(group.constraints.variables(), 1)).collect::<Result<_>>()?;
    let blocks = |next: &mut dyn FnMut(usize, usize) -> Result<Matrix>| {
        let block = |cone: &Cone| {
            let (rows, cols) = cone.shape.stored();
            Ok(Block::of_shape(cone.shape, next(rows, cols)?))
        };
        cones.iter().map(block).collect::<Result<Vec<_>>>()
    };
    let primal = blocks(&mut next)?;
    let y = next(problem.free_variables(), 1)?;
    let dual = blocks(&mut next)?;
    let iterations = column.float(1, 0).to_integer().and_then(|count| count.to_u64());
    let iterations = iterations.ok_or_else(|| refused("the number of iterations is none".into()))?;
    let step = |at: usize| Float::with_val(LEAST_BITS, column.float(at, 0));
    let precision_bits = column.precision_bits().min(bits);
    Ok(State { point: Point { x, primal, y, dual }, iterations, steps: (step(2), step(3)), precision_bits })
}

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

/// SDPB's files: `x_j.txt`, `y.txt`, `X_matrix_i.txt`, `Y_matrix_i.txt`.
fn load_text(folder: &Path, problem: &Problem) -> Result<State> {
    let bits = problem.precision_bits;
    let cones = cones(problem);
    let x = problem.groups.iter().enumerate().map(|(group, list)| {
        text_matrix(folder.join(format!("x_{group}.txt")), (list.constraints.variables(), 1), bits)
    });
    let x = x.collect::<Result<_>>()?;
    let y = match problem.free_variables() {
        0 => Matrix::zeros(0, 1, bits)?,
        count => text_matrix(folder.join("y.txt"), (count, 1), bits)?,
    };
    let number = |at: usize, cone: &Cone| match &problem.groups[cone.group].constraints {
        Constraints::Sampled(sampled) => 2 * cone.group + sampled.parities()[cone.number],
        Constraints::Sparse(_) => at,
    };
    let blocks = |name: &str| {
        let block = |(at, cone): (usize, &Cone)| {
            let path = folder.join(format!("{name}_matrix_{}.txt", number(at, cone)));
            Ok(match cone.shape {
                Shape::Dense(order) => Block::Dense(symmetric(text_matrix(path, (order, order), bits)?)?),
                Shape::Diagonal(order) => Block::Diagonal(text_matrix(path, (order, 1), bits)?),
            })
        };
        cones.iter().enumerate().map(block).collect::<Result<Vec<_>>>()
    };
    let point = Point { x, primal: blocks("X")?, y, dual: blocks("Y")? };
    let steps = (Float::new(LEAST_BITS), Float::new(LEAST_BITS));
    Ok(State { point, iterations: 0, steps, precision_bits: bits })
}

/// The mean of a matrix and its transpose: decimals may have cut both differently.
fn symmetric(matrix: Matrix) -> Result<Matrix> {
    let bits = matrix.precision_bits();
    let mean = |row: usize, col: usize| (matrix.float(row, col) + matrix.float(col, row)) >> 1u32;
    rounded(Matrix::from_fn(matrix.rows(), matrix.cols(), bits, mean)?, bits)
}
