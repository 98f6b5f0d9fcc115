//! States of a run on disk: one binary file of the library with all numbers in a column, complete or absent; and SDPB's
//! text checkpoints, from which a run can begin.
//!
//! The column has a head of [`HEADER`] numbers: a version; the iterations, both steps and the precision; the
//! fingerprint of the program; the course of earlier points; the summary of the first iterations; what steps have
//! reached. Behind it stand the point, and the best point where there is one. Any run of the same program may continue,
//! at another precision and with other threads, ranks and options; at the same precision and options it continues with
//! the same bits, and ends as the run that wrote the checkpoint would have ended. A run that had reached its end is
//! continued beyond it.

mod binary;
mod lock;
mod parts;
mod text;

pub use lock::CheckpointLock;

use crate::block::Block;
use crate::iterate::{Course, Fingerprint, Merit, Outset, Point, Quality, Seen, Solver, State};
use crate::problem::Problem;
use parts::{PointParts, PointSizes};
use rug::Float;
use std::path::Path;
use sunzi::io::{self, FileFormat, WriteOptions};
use sunzi::{Error, Matrix, Result};

/// The name of the file in its folder.
pub const CHECKPOINT_FILE: &str = "checkpoint.bin";

/// The number at the top of a column.
const VERSION: u32 = 4;

/// Numbers in front of the point.
const HEADER: usize = 33;

/// The numbers among them that are about the first iterations, in front of the last ones.
const OF_OUTSET: usize = 3;

/// The last numbers, which record what steps have reached.
const OF_REACHED: usize = 2;

/// Bits of a column, at least: counts and steps have this number.
const LEAST_BITS: u32 = 64;

/// The content behind the numbers of a state in the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Behind {
    /// Zeros: the run had reached its end, and a continued run goes beyond it. Files of versions that did not
    /// distinguish ends from breaks have this where nothing is known of earlier points.
    End = 0,
    /// The course of earlier points: the run was under way.
    Course = 1,
    /// Zeros: the run was under way at a new precision.
    Nothing = 2,
}

impl Behind {
    fn of(state: &State) -> Behind {
        match state.course {
            Some(_) => Behind::Course,
            None if state.is_ended => Behind::End,
            None => Behind::Nothing,
        }
    }
}

/// The numbers of a point in the order of the file.
fn matrices(point: &Point) -> impl Iterator<Item = &Matrix> {
    let Point { x, primal, y, dual } = point;
    x.iter().chain(primal.iter().map(Block::stored)).chain([y]).chain(dual.iter().map(Block::stored))
}

/// The numbers in front of the point.
fn header(program: &Fingerprint, state: &State) -> Vec<Float> {
    let count = |value: u64| Float::with_val(LEAST_BITS, value);
    let Fingerprint { precision_bits, digest, sum } = *program;
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
    numbers.push(count(Behind::of(state) as u64));
    if let Some(Course { best, feasible, seen, worse, thresholds }) = &state.course {
        let flag = |holds: bool| count(holds.into());
        numbers.extend([flag(feasible.is_some()), count(feasible.unwrap_or(0)), count(*worse)]);
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
    numbers.resize(HEADER - OF_OUTSET - OF_REACHED, count(0));
    let Outset { mu, small } = &state.outset;
    let (first, last) = mu.clone().unwrap_or_else(|| (count(0), count(0)));
    numbers.extend([count(*small), first, last]);
    numbers.extend([state.reached.0, state.reached.1].map(|holds| count(holds.into())));
    numbers
}

/// The numbers of a quality in the order of the file.
fn of_quality(quality: &Quality) -> [&Float; 6] {
    let Quality { primal_objective, dual_objective, gap, primal_matrix_error, primal_free_error, dual_error } = quality;
    [primal_objective, dual_objective, gap, primal_matrix_error, primal_free_error, dual_error]
}

/// The checkpoints of one program: its fingerprint, which is computed once, and the sizes of its points.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    program: Fingerprint,
    sizes: PointSizes,
}

impl Checkpoints {
    /// The checkpoints of a program; the program may be dropped afterwards.
    ///
    /// Cost: a pass over its numbers.
    /// Source: docs/decisions/085-checkpoints-know-their-program.md.
    pub fn new(problem: &Problem) -> Checkpoints {
        Checkpoints { program: Fingerprint::of(problem), sizes: PointSizes::of(problem) }
    }

    /// Writes a state into `folder`, which is created if it is missing: the fingerprint of the program, the history of
    /// earlier points, `x`, X, y and Y, and those of the best point, as one column in the library's binary format,
    /// exactly, with a checksum. The file is complete or absent.
    ///
    /// Cost: a copy of both points in memory, and their bytes on disk.
    /// Source: docs/decisions/054-a-solver-on-the-public-api.md, docs/decisions/085-checkpoints-know-their-program.md.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::OutOfMemory`].
    pub fn save(&self, folder: &Path, state: &State) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(|source| Error::Io {
            path: folder.to_path_buf(),
            action: "create",
            source,
        })?;
        let best = state.course.as_ref().and_then(|course| course.best.as_deref());
        let points = [Some(&state.point), best.map(|best| &best.point)];
        let numbers = points.iter().flatten().flat_map(|point| matrices(point));
        let count = HEADER + numbers.map(|part| part.rows() * part.cols()).sum::<usize>();
        let mut column = Matrix::zeros(count, 1, state.precision_bits.max(LEAST_BITS))?;
        for (at, number) in header(&self.program, state).iter().enumerate() {
            column.set_float(at, 0, number)?;
        }
        let mut at = HEADER;
        for part in points.into_iter().flatten().flat_map(matrices) {
            for (row, col) in (0..part.cols()).flat_map(|col| (0..part.rows()).map(move |row| (row, col))) {
                column.set_float(at, 0, &part.float(row, col))?;
                at += 1;
            }
        }
        io::write_as(folder.join(CHECKPOINT_FILE), FileFormat::Binary, &column, &WriteOptions::new())
    }

    /// The state in `folder`; this rank of `solver` keeps only its part and skips the parts of other ranks in the file.
    /// As [`load_checkpoint`], or as [`load_initial_checkpoint`] if `initial` is set; `None` if no folder is given.
    /// Collective: every rank calls it, also a rank without a folder.
    ///
    /// Cost: two passes over the file, one pass over text files; memory for the part, and on each rank for a buffer of
    /// at most 1 MiB and for the heads of the numbers in the file; for text files also the text of a block. Source:
    /// docs/decisions/085-checkpoints-know-their-program.md, docs/decisions/091-checkpoints-in-parts.md.
    ///
    /// # Errors
    /// The same errors, on all ranks; [`Error::InvalidArgument`] if ranks find different checkpoints, or only some of
    /// them find one, and if the solver's program has other blocks.
    pub fn load(&self, solver: &Solver<'_>, folder: Option<&Path>, initial: bool) -> Result<Option<State>> {
        let find = |folder| match solver.share().all == self.sizes.cones {
            true => self.find(folder, &PointParts::of_rank(&self.sizes, solver), initial),
            false => Err(Error::InvalidArgument(
                "the checkpoints are those of a program whose blocks differ from those of the solver's program".into(),
            )),
        };
        let (found, mark) = solver.agreed(folder.map_or(Ok(None), find))?.unzip();
        solver.same_states(found.as_ref(), mark.unwrap_or(0))?;
        Ok(found)
    }

    /// A state and a number that depends on all of it.
    fn find(&self, folder: &Path, parts: &PointParts<'_>, initial: bool) -> Result<Option<(State, u64)>> {
        let path = folder.join(CHECKPOINT_FILE);
        if path.exists() {
            return binary::load(&path, parts, &self.program, initial).map(Some);
        }
        if folder.join("x_0.txt").exists() {
            return text::load(folder, parts).map(Some);
        }
        match has_foreign_checkpoint(folder) {
            // A new start would pass over it without a word, and put a checkpoint next to it.
            true => Err(Error::InvalidArgument(format!(
                "{}: the directory has a binary checkpoint of SDPB, which cannot be read; to start from it, let SDPB \
                 write text files with --writeSolution=x,y,X,Y, and name their directory as that of the initial \
                 checkpoint (option -i, in Python initial_checkpoint=); to start afresh, choose another directory for \
                 checkpoints (option -c, in Python checkpoint=) or none (-c '')",
                folder.display()
            ))),
            false => Ok(None),
        }
    }
}

/// As [`Checkpoints::save`], for one checkpoint of a program.
///
/// # Errors
/// As there.
pub fn save_checkpoint(folder: &Path, problem: &Problem, state: &State) -> Result<()> {
    Checkpoints::new(problem).save(folder, state)
}

/// The state in `folder`, rounded to the precision of the program, from a file of [`save_checkpoint`] or from SDPB's
/// text files, which do not identify their program; `None` if there is no checkpoint. At the same precision the
/// continued run has the same bits as an uninterrupted run. [`State::precision_bits`] is the precision of the file, so
/// that a continued run can detect that the point was rounded.
///
/// A hash of all numbers decides whether the checkpoint was written for the program; at another precision it is a
/// weighted sum of them, which detects no change of a number below 2^-30 of its column or below 2^-95, nearly all
/// changes above 2^-20, and at places with a weight near 0 only larger ones.
///
/// Cost: two passes over the file, its numbers in memory, and a pass over the numbers of the program. Source:
/// docs/decisions/085-checkpoints-know-their-program.md.
///
/// # Errors
/// [`Error::Format`] if the file belongs to another program, does not record its program, as in earlier versions, or is
/// damaged; [`Error::InvalidArgument`] if there is only a binary checkpoint of SDPB; [`Error::Io`].
pub fn load_checkpoint(folder: &Path, problem: &Problem) -> Result<Option<State>> {
    load(folder, problem, false)
}

/// The state in `folder` as an initial point: as [`load_checkpoint`], but from any program with blocks of these sizes.
/// From another or an unknown program only the point is used, with an iteration count of 0.
///
/// Cost: as there.
///
/// # Errors
/// [`Error::Format`] if the sizes differ, or the file is damaged; [`Error::InvalidArgument`] and [`Error::Io`] as
/// there.
pub fn load_initial_checkpoint(folder: &Path, problem: &Problem) -> Result<Option<State>> {
    load(folder, problem, true)
}

fn load(folder: &Path, problem: &Problem, initial: bool) -> Result<Option<State>> {
    let checkpoints = Checkpoints::new(problem);
    let found = checkpoints.find(folder, &PointParts::whole(&checkpoints.sizes), initial)?;
    Ok(found.map(|(state, _)| state))
}

/// Whether `folder` contains a binary checkpoint of SDPB, which cannot be read: its layout depends on SDPB's processes,
/// and it does not state its precision.
///
/// Cost: the names of two files are looked up. Source: SDPB, `src/sdp_solve/SDP_Solver/save_checkpoint.cxx`.
pub fn has_foreign_checkpoint(folder: &Path) -> bool {
    ["checkpoint.json", "checkpoint.0"].iter().any(|name| folder.join(name).is_file())
}
