//! A checkpoint of the solver's own, read piece by piece: pieces that are not kept are skipped.

use super::parts::PointParts;
use super::{Behind, HEADER, LEAST_BITS, OF_OUTSET, OF_REACHED, VERSION};
use crate::iterate::{Best, Course, Fingerprint, Merit, Outset, Point, Quality, Seen, State};
use crate::numbers::{Dimensions, rounded};
use rug::Float;
use std::fmt::Display;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use sunzi::io::{Block as FileBlock, MatrixFile};
use sunzi::{Error, Matrix, Result};

/// The version without a word of its program and of earlier points, and its numbers in front of the point.
const OLDER: (u32, usize) = (1, 4);

/// The version without data on the first iterations, and its numbers in front of the point: a run that goes on makes no
/// remark on them.
const EARLY: (u32, usize) = (2, HEADER - OF_OUTSET - OF_REACHED);

/// The version without data on what steps have reached: a run that goes on assumes that they have reached nothing.
const FORMER: (u32, usize) = (3, HEADER - OF_REACHED);

/// A number of iterations that no run reaches; sums with counts below it stay far from where they would overflow.
const MOST_ITERATIONS: u64 = 1 << 53;

/// The options of the program and of Python by which a run begins without a refused checkpoint.
const OTHERS: &str = "to start afresh, remove the file, or choose another directory for checkpoints (option -c, in \
                      Python checkpoint=) or none (-c '')";

/// The option by which a run begins at the point of the checkpoint.
const POINT: &str = "to start from its point, name its directory as that of the initial checkpoint (option -i, in \
                     Python initial_checkpoint=)";

/// Numbers that are read at a time.
const PIECE_NUMBERS: usize = 256;

/// Some rows of a file of one column, each of which is a valid number: a file that was looked at as a whole may have
/// been written over since.
fn piece(file: &MatrixFile, rows: Range<usize>) -> Result<Matrix> {
    let mut numbers = Matrix::zeros(rows.len(), 1, file.precision_bits())?;
    let block = FileBlock { rows, cols: 0..1 };
    if numbers.rows() == 0 {
        return Ok(numbers);
    }
    let mut words = vec![0; file.block_words(&block)];
    file.read_block(&block, &mut words)?;
    file.check_block(&block, &words)?;
    let (heads, limbs) = numbers.parts_mut();
    let (of_heads, of_limbs) = words.split_at(heads.len());
    heads.copy_from_slice(of_heads);
    limbs.copy_from_slice(of_limbs);
    Ok(numbers)
}

/// The course of earlier points, and the best one without its point.
type KnownPoints = (Course, Option<Best>);

/// A column that is read from its top.
struct Column<'a> {
    path: &'a Path,
    file: MatrixFile,
    /// The numbers in front of the points.
    head: Matrix,
    at: usize,
}

impl<'a> Column<'a> {
    /// A file all of whose numbers were checked, and their checksum.
    fn open(path: &'a Path) -> Result<(Column<'a>, u64)> {
        let file = MatrixFile::open(path)?;
        let mark = file.check(None, |_, _, _| Ok(()))?;
        let count = if file.is_symmetric() || file.cols() != 1 { 0 } else { file.rows().min(HEADER) };
        let head = piece(&file, 0..count)?;
        Ok((Column { path, file, head, at: 0 }, mark))
    }

    /// The count of the numbers in front of the points, which depends on the version.
    fn head_length(&self) -> Option<usize> {
        let versions = [OLDER, EARLY, FORMER, (VERSION, HEADER)];
        let is_it = |&(version, head): &(u32, usize)| self.head.rows() >= head && self.head.float(0, 0) == version;
        versions.into_iter().find(is_it).map(|(_, head)| head)
    }

    fn refused<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Error::Format { path: self.path.to_path_buf(), message: message.into() })
    }

    /// The next number, with `bits` bits.
    fn float(&mut self, bits: u32) -> Result<Float> {
        let number = Float::with_val(bits, self.head.float(self.at, 0));
        self.at += 1;
        if number.is_finite() { Ok(number) } else { self.wrong(&number, "a finite number") }
    }

    /// The refusal of the number that was read last.
    fn wrong<T>(&self, found: impl Display, wanted: &str) -> Result<T> {
        self.refused(format!(
            "number {} of the checkpoint, counted from 1, is {found}, but must be {wanted}: the file was not written \
             by this program; {OTHERS}",
            self.at
        ))
    }

    /// The next number, of things that are counted.
    fn count(&mut self) -> Result<u64> {
        let number = self.float(self.head.precision_bits())?;
        let is_count = number.is_integer() && number >= 0 && number <= u64::MAX;
        let count = if is_count { number.to_integer().and_then(|count| count.to_u64()) } else { None };
        count.map_or_else(|| self.wrong(format_args!("{number:.6e}"), "a whole number from 0 to 2^64 - 1"), Ok)
    }

    /// The next number, a count of iterations, at most `most`.
    fn iterations(&mut self, most: u64) -> Result<u64> {
        let count = self.count()?;
        if count <= most {
            return Ok(count);
        }
        self.wrong(count, &format!("a count of iterations of at most {most}"))
    }

    /// The precision of the state, whose numbers have no more bits than that in this column.
    fn precision(&mut self) -> Result<u32> {
        let (count, bits) = (self.count()?, self.head.precision_bits());
        match u32::try_from(count) {
            Ok(found) if found > 0 && found.max(LEAST_BITS) == bits => Ok(found),
            _ => self.wrong(count, &format!("the precision of the numbers of the file, {bits} bits")),
        }
    }

    /// The next number, a flag.
    fn flag(&mut self) -> Result<bool> {
        match self.count()? {
            0 => Ok(false),
            1 => Ok(true),
            other => self.wrong(other, "0 or 1"),
        }
    }

    /// The next numbers, column by column.
    fn matrix(&mut self, shape: Dimensions, bits: u32) -> Result<Matrix> {
        let mut whole = Matrix::zeros(shape.rows, shape.cols, bits)?;
        let (count, width) = (shape.count(), whole.limbs_per_element());
        for first in (0..count).step_by(PIECE_NUMBERS) {
            let last = (first + PIECE_NUMBERS).min(count);
            let some = rounded(piece(&self.file, self.at + first..self.at + last)?, bits)?;
            let (heads, limbs) = whole.parts_mut();
            heads[first..last].copy_from_slice(some.parts().0);
            limbs[first * width..last * width].copy_from_slice(some.parts().1);
        }
        self.at += count;
        Ok(whole)
    }

    /// The part of the next point that is kept.
    fn point(&mut self, parts: &PointParts<'_>, bits: u32) -> Result<Point> {
        parts.point(bits, |part, is_kept| {
            let shape = parts.shape(part);
            if is_kept {
                return self.matrix(shape, bits).map(Some);
            }
            self.at += shape.count();
            Ok(None)
        })
    }

    fn fingerprint(&mut self) -> Result<Fingerprint> {
        let precision_bits = u32::try_from(self.count()?).unwrap_or(u32::MAX);
        Ok(Fingerprint { precision_bits, digest: self.count()?, sum: self.float(LEAST_BITS)?.to_f64() })
    }

    /// The outset, the summary of the first iterations, of a run that made `made` iterations.
    fn outset(&mut self, made: u64) -> Result<Outset> {
        let (small, bits) = (self.iterations(made.min(Outset::ITERATIONS))?, self.head.precision_bits());
        let mu = (self.float(bits)?, self.float(bits)?);
        Ok(Outset { mu: (small > 0).then_some(mu), small })
    }

    /// The number that tells what follows the state: see [`Behind`].
    fn behind(&mut self) -> Result<Behind> {
        match self.count()? {
            0 => Ok(Behind::End),
            1 => Ok(Behind::Course),
            2 => Ok(Behind::Nothing),
            other => self.wrong(other, "0, 1 or 2"),
        }
    }

    /// The course of earlier points of a state of `bits` bits after `made` iterations, but for the best point.
    fn course(&mut self, bits: u32, made: u64) -> Result<(Behind, Option<KnownPoints>)> {
        let (behind, has_feasible) = (self.behind()?, self.flag()?);
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
        let course = Course { best: None, feasible, seen, worse, thresholds };
        Ok((behind, (behind == Behind::Course).then_some((course, best))))
    }
}

/// The state of a file, as far as it is kept, and a number that depends on all of it. A checkpoint of another program
/// than `program` is accepted as a first point where `initial`.
///
/// # Errors
/// The errors of [`super::load_checkpoint`].
pub fn load(path: &Path, parts: &PointParts<'_>, program: &Fingerprint, initial: bool) -> Result<(State, u64)> {
    let (mut column, mark) = Column::open(path)?;
    let (rows, bits) = (column.file.rows(), parts.sizes.bits);
    let Some(head) = column.head_length() else {
        return column.refused(format!(
            "this is not a checkpoint of a semidefinite program, or one of a later version of this program; {OTHERS}"
        ));
    };
    let is_older = head == OLDER.1;
    column.at = 1;
    let iterations = column.iterations(MOST_ITERATIONS)?;
    let steps = (column.float(LEAST_BITS)?, column.float(LEAST_BITS)?);
    // This program's numbers may be rounded to fewer bits.
    let found = if is_older { column.head.precision_bits() } else { column.precision()? };
    let known = if is_older { None } else { Some((column.fingerprint()?, column.course(found, iterations)?)) };
    let (fingerprint, rest) = known.unzip();
    let (behind, course) = rest.unwrap_or((Behind::End, None));
    let has_best = course.as_ref().is_some_and(|(_, best)| best.is_some());
    let outset = if head < FORMER.1 { Outset::default() } else { column.outset(iterations)? };
    let reached = if head < HEADER { (false, false) } else { (column.flag()?, column.flag()?) };
    let wanted = head + parts.length() * if has_best { 2 } else { 1 };
    if rows != wanted {
        return column.refused(format!(
            "the checkpoint belongs to another program with other blocks: it has {rows} numbers, but the checkpoint of \
             this program would have {wanted}; {OTHERS}"
        ));
    }
    let is_known = fingerprint.is_some_and(|known| known.is_like(program));
    if !is_known && !initial {
        return column.refused(match is_older {
            true => {
                format!("the checkpoint has an earlier version, which does not record its program; {POINT}; {OTHERS}")
            }
            false => {
                format!("the checkpoint belongs to another program with blocks of the same sizes; {POINT}; {OTHERS}")
            }
        });
    }
    column.at = head;
    let point = column.point(parts, bits)?;
    if !is_known {
        let steps = (Float::new(LEAST_BITS), Float::new(LEAST_BITS));
        let outset = Outset::default();
        let reached = (false, false);
        let (precision_bits, course) = (found, None);
        let state = State { point, iterations: 0, steps, reached, precision_bits, course, outset, is_ended: false };
        return Ok((state, mark));
    }
    // Points that are rounded further are compared anew.
    let course = match course.filter(|_| found <= bits) {
        Some((course, Some(best))) => {
            let point = column.point(parts, found)?;
            Some(Course { best: Some(Arc::new(Best { point, ..best })), ..course })
        }
        course => course.map(|(course, _)| course),
    };
    let is_ended = behind == Behind::End;
    Ok((State { point, iterations, steps, reached, precision_bits: found, course, outset, is_ended }, mark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;
    use sunzi::io::{FileFormat, WriteOptions, write_as};

    /// A file may be written over between its check and its reading; it is refused then.
    #[test]
    fn numbers_are_looked_at_where_they_are_read() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("column.bin");
        let numbers = Matrix::from_fn(HEADER + 300, 1, 128, |row, _| Float::with_val(128, row + 1))?;
        write_as(&path, FileFormat::Binary, &numbers, &WriteOptions::new())?;
        let (mut column, _) = Column::open(&path)?;
        column.at = HEADER;
        assert_eq!(column.matrix(Dimensions::column(300), 128)?.float(299, 0), (HEADER + 300) as u32);
        // The last words are those of the last significand, and the checksum.
        let length = std::fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&[0; 8], length - 16).unwrap();
        column.at = HEADER;
        let refused = column.matrix(Dimensions::column(300), 128).unwrap_err().to_string();
        assert!(refused.contains("not a valid number"), "{refused}");
        Ok(())
    }
}
