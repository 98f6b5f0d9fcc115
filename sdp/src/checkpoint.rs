//! States of a run on disk: one binary file of the library with all numbers in a column, complete or absent; and SDPB's
//! text checkpoints, from which a run can begin.
//!
//! The column has a head of [`HEADER`] numbers: a version; the iterations, both steps and the precision; by what the
//! program is known again; what is known of earlier points. Behind it stand the point, and the best point where there
//! is one. Any run of the same program may go on from it, at another precision and with other threads, ranks and
//! options; at the same precision and options it goes on with the same bits, and ends as the run would have ended that
//! wrote it.

use crate::block::{Block, Shape};
use crate::iterate::{Best, Cone, Course, Fingerprint, Merit, Point, Quality, Seen, State, cones};
use crate::numbers::rounded;
use crate::problem::{Constraints, Problem};
use rug::Float;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sunzi::io::{self, FileFormat, ReadOptions, WriteOptions};
use sunzi::{Error, Matrix, Result};

/// The name of the file in its folder.
pub const CHECKPOINT_FILE: &str = "checkpoint.bin";

/// The number at the top of a column.
const VERSION: u32 = 2;

/// Numbers in front of the point.
const HEADER: usize = 28;

/// The version without a word of its program and of earlier points, and its numbers in front of the point.
const OLDER: (u32, usize) = (1, 4);

/// Bits of a column, at least: counts and steps have so many.
const LEAST_BITS: u32 = 64;

/// Iterations that no run comes to; sums with counts below it stay far from where they would overflow.
const MOST_ITERATIONS: u64 = 1 << 53;

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

/// The numbers of a point in the order of the file.
fn parts(point: &Point) -> impl Iterator<Item = &Matrix> {
    let Point { x, primal, y, dual } = point;
    x.iter().chain(primal.iter().map(Block::stored)).chain([y]).chain(dual.iter().map(Block::stored))
}

/// The numbers in front of the point.
fn header(problem: &Problem, state: &State) -> Vec<Float> {
    let count = |value: u64| Float::with_val(LEAST_BITS, value);
    let Fingerprint { precision_bits, digest, sum } = Fingerprint::of(problem);
    let mut numbers = vec![
        count(VERSION.into()),
        count(state.iterations),
        state.steps.0.clone(),
        state.steps.1.clone(),
        count(state.precision_bits.into()),
        count(precision_bits.into()),
        count(digest),
        Float::with_val(LEAST_BITS, sum),
    ];
    if let Some(Course { best, feasible, seen, worse, thresholds }) = &state.course {
        let flag = |holds: bool| count(holds.into());
        numbers.extend([flag(true), flag(feasible.is_some()), count(feasible.unwrap_or(0)), count(*worse)]);
        numbers.extend(thresholds.clone());
        numbers.push(flag(seen.is_some()));
        numbers.extend(match seen.clone() {
            Some(Seen { least_size, least_error, error }) => [least_size, least_error, error],
            None => std::array::from_fn(|_| count(0)),
        });
        if let Some(best) = best {
            let Merit { is_feasible, size } = best.merit.clone();
            numbers.extend([flag(true), count(best.iterations), flag(is_feasible), size]);
            numbers.extend(of_quality(&best.quality).map(Float::clone));
        }
    }
    numbers.resize(HEADER, count(0));
    numbers
}

/// The numbers of a quality in the order of the file.
fn of_quality(quality: &Quality) -> [&Float; 6] {
    let Quality { primal_objective, dual_objective, gap, primal_matrix_error, primal_free_error, dual_error } = quality;
    [primal_objective, dual_objective, gap, primal_matrix_error, primal_free_error, dual_error]
}

/// Writes a state into `folder`, which is made where it is missing: by what the program is known again, what is known
/// of earlier points, `x`, X, y and Y, and those of the best point, as one column in the library's binary format,
/// exactly, with a checksum. The file is complete or absent.
///
/// Cost: two passes over the numbers of the program; a copy of both points in memory, and their bytes on disk.
/// Source: docs/decisions/054-a-solver-on-the-public-api.md, docs/decisions/085-checkpoints-know-their-program.md.
///
/// # Errors
/// [`Error::Io`], [`Error::OutOfMemory`].
pub fn save_checkpoint(folder: &Path, problem: &Problem, state: &State) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|source| Error::Io {
        path: folder.to_path_buf(),
        action: "create",
        source,
    })?;
    let best = state.course.as_ref().and_then(|course| course.best.as_deref());
    let points = [Some(&state.point), best.map(|best| &best.point)];
    let length = lengths(problem, &cones(problem)).iter().sum::<usize>();
    let count = HEADER + length * points.iter().flatten().count();
    let mut column = Matrix::zeros(count, 1, state.precision_bits.max(LEAST_BITS))?;
    for (at, number) in header(problem, state).iter().enumerate() {
        column.set_float(at, 0, number)?;
    }
    let mut at = HEADER;
    for part in points.into_iter().flatten().flat_map(parts) {
        for (row, col) in (0..part.cols()).flat_map(|col| (0..part.rows()).map(move |row| (row, col))) {
            column.set_float(at, 0, &part.float(row, col))?;
            at += 1;
        }
    }
    io::write_as(folder.join(CHECKPOINT_FILE), FileFormat::Binary, &column, &WriteOptions::new())
}

/// The state in `folder`, rounded to the precision of the program: that of [`save_checkpoint`], or SDPB's text files,
/// which do not say of which program they are; `None` where neither is there. At the same precision the rest of a run
/// has the bits that it would have had. [`State::precision_bits`] is that of the file: a run from there sees whether
/// the point was rounded.
///
/// Whether the program is the one that the checkpoint was written for is told by a hash of all its numbers, and at
/// another precision by a weighted sum of them, which sees no change of a number below 2^-30 of its column or below
/// 2^-95, nearly all above 2^-20, and at places with a weight near 0 only larger ones.
///
/// Cost: a pass over the file, and its numbers twice in memory; two passes over the numbers of the program.
/// Source: docs/decisions/085-checkpoints-know-their-program.md.
///
/// # Errors
/// [`Error::Format`] where the file belongs to another program, does not say to which it belongs, as those of earlier
/// versions do not, or is damaged; [`Error::Io`].
pub fn load_checkpoint(folder: &Path, problem: &Problem) -> Result<Option<State>> {
    load(folder, problem, false)
}

/// The state in `folder` as one to begin with: as [`load_checkpoint`], but of any program with blocks of these sizes.
/// Of another program, and of one that is not known, it is the point alone, after no iterations.
///
/// Cost: as there.
///
/// # Errors
/// [`Error::Format`] where the sizes are others, or the file is damaged; [`Error::Io`].
pub fn load_initial_checkpoint(folder: &Path, problem: &Problem) -> Result<Option<State>> {
    load(folder, problem, true)
}

fn load(folder: &Path, problem: &Problem, any: bool) -> Result<Option<State>> {
    let path = folder.join(CHECKPOINT_FILE);
    if path.exists() {
        return load_binary(&path, problem, any).map(Some);
    }
    match folder.join("x_0.txt").exists() {
        true => load_text(folder, problem).map(Some),
        false => Ok(None),
    }
}

/// Whether SDPB's binary checkpoint lies in `folder`, which is not read: it has the layout of SDPB's processes, and no
/// word of its precision.
///
/// Cost: a look at the names of two files. Source: SDPB, `src/sdp_solve/SDP_Solver/save_checkpoint.cxx`.
pub fn has_foreign_checkpoint(folder: &Path) -> bool {
    ["checkpoint.json", "checkpoint.0"].iter().any(|name| folder.join(name).is_file())
}

/// A column that is read from its top.
struct Column<'a> {
    path: &'a Path,
    numbers: Matrix,
    at: usize,
}

impl Column<'_> {
    fn refused<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Error::Format { path: self.path.to_path_buf(), message: message.into() })
    }

    /// The next number, with so many bits.
    fn float(&mut self, bits: u32) -> Result<Float> {
        let number = Float::with_val(bits, self.numbers.float(self.at, 0));
        self.at += 1;
        if number.is_finite() { Ok(number) } else { self.refused(format!("number {} is none", self.at)) }
    }

    /// The next number, of things that are counted.
    fn count(&mut self) -> Result<u64> {
        let number = self.float(self.numbers.precision_bits())?;
        let is_count = number.is_integer() && number >= 0 && number <= u64::MAX;
        let count = if is_count { number.to_integer().and_then(|count| count.to_u64()) } else { None };
        count.map_or_else(|| self.refused(format!("number {} is no count", self.at)), Ok)
    }

    /// The next number, of iterations of which there were at most so many.
    fn iterations(&mut self, most: u64) -> Result<u64> {
        let count = self.count()?;
        if count <= most {
            return Ok(count);
        }
        self.refused(format!("number {} counts {count} iterations, and {most} are the most that there can be", self.at))
    }

    /// The precision of the state, whose numbers have no more bits than that in this column.
    fn precision(&mut self) -> Result<u32> {
        let (count, bits) = (self.count()?, self.numbers.precision_bits());
        match u32::try_from(count) {
            Ok(found) if found > 0 && found.max(LEAST_BITS) == bits => Ok(found),
            _ => self.refused(format!("a state of {count} bits in numbers of {bits}")),
        }
    }

    /// The next number, which says whether something holds.
    fn flag(&mut self) -> Result<bool> {
        match self.count()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.refused(format!("number {} is neither 0 nor 1", self.at)),
        }
    }

    fn matrix(&mut self, (rows, cols): (usize, usize), bits: u32) -> Result<Matrix> {
        let first = self.at;
        self.at += rows * cols;
        Matrix::from_fn(rows, cols, bits, |row, col| self.numbers.float(first + row + col * rows, 0))
    }

    fn point(&mut self, problem: &Problem, bits: u32) -> Result<Point> {
        let cones = cones(problem);
        let of_x = problem.groups.iter().map(|group| (group.constraints.variables(), 1));
        let x = of_x.map(|shape| self.matrix(shape, bits)).collect::<Result<_>>()?;
        let block = |column: &mut Self, cone: &Cone| -> Result<Block> {
            Ok(Block::of_shape(cone.shape, column.matrix(cone.shape.stored(), bits)?))
        };
        let primal = cones.iter().map(|cone| block(self, cone)).collect::<Result<_>>()?;
        let y = self.matrix((problem.free_variables(), 1), bits)?;
        let dual = cones.iter().map(|cone| block(self, cone)).collect::<Result<_>>()?;
        Ok(Point { x, primal, y, dual })
    }

    fn fingerprint(&mut self) -> Result<Fingerprint> {
        let precision_bits = u32::try_from(self.count()?).unwrap_or(u32::MAX);
        Ok(Fingerprint { precision_bits, digest: self.count()?, sum: self.float(LEAST_BITS)?.to_f64() })
    }

    /// What is known of earlier points of a state of `bits` bits after so many iterations, but for the best point.
    fn course(&mut self, bits: u32, made: u64) -> Result<Option<(Course, Option<Best>)>> {
        let (has_course, has_feasible) = (self.flag()?, self.flag()?);
        let feasible = Some(self.iterations(made)?).filter(|_| has_feasible);
        let worse = self.iterations(made)?;
        let thresholds = [self.float(LEAST_BITS)?, self.float(LEAST_BITS)?];
        let has_seen = self.flag()?;
        let seen = Seen {
            least_size: self.float(LEAST_BITS)?,
            least_error: self.float(LEAST_BITS)?,
            error: self.float(LEAST_BITS)?,
        };
        let (has_best, iterations) = (self.flag()?, self.iterations(made)?);
        let merit = Merit { is_feasible: self.flag()?, size: self.float(LEAST_BITS)? };
        let quality = Quality {
            primal_objective: self.float(bits)?,
            dual_objective: self.float(bits)?,
            gap: self.float(bits)?,
            primal_matrix_error: self.float(LEAST_BITS)?,
            primal_free_error: self.float(bits)?,
            dual_error: self.float(LEAST_BITS)?,
        };
        let none = Point { x: Vec::new(), primal: Vec::new(), y: Matrix::zeros(0, 1, bits)?, dual: Vec::new() };
        let best = has_best.then_some(Best { point: none, quality, iterations, merit });
        let seen = Some(seen).filter(|_| has_seen);
        Ok(has_course.then_some((Course { best: None, feasible, seen, worse, thresholds }, best)))
    }
}

fn load_binary(path: &Path, problem: &Problem, any: bool) -> Result<State> {
    const ADVICE: &str = "to begin with its point name its folder as that of the initial checkpoint \
                          (--initialCheckpointDir), else remove it, or name another one for checkpoints";
    let numbers = io::read(path, &ReadOptions::new(None))?.matrix;
    let mut column = Column { path, numbers, at: 0 };
    let (rows, bits) = (column.numbers.rows(), problem.precision_bits);
    let least = if column.numbers.cols() == 1 { rows } else { 0 };
    let is_older = least >= OLDER.1 && column.numbers.float(0, 0) == OLDER.0;
    if !is_older && (least < HEADER || column.numbers.float(0, 0) != VERSION) {
        return column.refused("this is no checkpoint of a semidefinite program");
    }
    column.at = 1;
    let iterations = column.iterations(MOST_ITERATIONS)?;
    let steps = (column.float(LEAST_BITS)?, column.float(LEAST_BITS)?);
    // What this program's numbers are rounded to may be less.
    let found = if is_older { column.numbers.precision_bits() } else { column.precision()? };
    let known = if is_older { None } else { Some((column.fingerprint()?, column.course(found, iterations)?)) };
    let (fingerprint, course) = known.unzip();
    let course = course.flatten();
    let has_best = course.as_ref().is_some_and(|(_, best)| best.is_some());
    let length = lengths(problem, &cones(problem)).iter().sum::<usize>();
    let head = if is_older { OLDER.1 } else { HEADER };
    let wanted = head + length * if has_best { 2 } else { 1 };
    if rows != wanted {
        return column
            .refused(format!("the checkpoint of another program: it has {rows} numbers, {wanted} are wanted"));
    }
    let is_known = fingerprint.is_some_and(|known| known.is_like(&Fingerprint::of(problem)));
    if !is_known && !any {
        return column.refused(match is_older {
            true => format!("a checkpoint of an earlier version, which does not say of which program it is: {ADVICE}"),
            false => format!("the checkpoint of another program with blocks of the same sizes: {ADVICE}"),
        });
    }
    column.at = head;
    let point = column.point(problem, bits)?;
    if !is_known {
        let steps = (Float::new(LEAST_BITS), Float::new(LEAST_BITS));
        return Ok(State { point, iterations: 0, steps, precision_bits: found, course: None });
    }
    // Points that are rounded further are compared anew.
    let course = match course.filter(|_| found <= bits) {
        Some((course, Some(best))) => {
            let point = column.point(problem, found)?;
            Some(Course { best: Some(Arc::new(Best { point, ..best })), ..course })
        }
        course => course.map(|(course, _)| course),
    };
    Ok(State { point, iterations, steps, precision_bits: found, course })
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
    Ok(State { point, iterations: 0, steps, precision_bits: bits, course: None })
}

/// The mean of a matrix and its transpose: decimals may have cut both differently.
fn symmetric(matrix: Matrix) -> Result<Matrix> {
    let bits = matrix.precision_bits();
    let mean = |row: usize, col: usize| (matrix.float(row, col) + matrix.float(col, row)) >> 1u32;
    rounded(Matrix::from_fn(matrix.rows(), matrix.cols(), bits, mean)?, bits)
}
