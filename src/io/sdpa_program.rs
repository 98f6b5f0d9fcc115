//! A whole semidefinite program in SDPA's sparse format: orders of blocks, the vector c, and every entry that is given.
//!
//! The syntax is that of the reader of single blocks, which is shared. Independent of: how programs are solved.

use crate::error::{Error, Result};
use crate::io::elements::{Elements, MatrixLayout, Order};
use crate::io::input::Plain;
use crate::io::intake::{Intake, ReadPosition};
use crate::io::number::Field;
use crate::io::progress::Reporter;
use crate::io::scan::Scanner;
use crate::io::sdpa::{EntryPlace, SdpaHeader, next_entry, second};
use crate::io::{FileFormat, ReadOptions, Source, open};
use crate::matrix::{EntryIndex, Matrix};
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

/// A block of the matrices of a semidefinite program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SdpaBlock {
    /// Rows and columns.
    pub order: usize,
    /// Whether all entries off the diagonal are 0.
    pub diagonal: bool,
}

/// The place of a given entry; its number is in [`SdpaProgram::values`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SdpaEntry {
    /// 0 for the constant matrix, else the number of the constraint, from 1.
    pub constraint: usize,
    /// Number of the block, from 0.
    pub block: usize,
    /// Row, from 0, of the entry in the lower triangle.
    pub row: usize,
    /// Column, from 0: at most `row`.
    pub col: usize,
}

/// `min c^T x` subject to `x_1 F_1 + ... + x_m F_m - F_0 >= 0`, and its dual `max F_0 . Y` subject to `F_i . Y = c_i`,
/// `Y >= 0`: the content of a file in SDPA's sparse format.
#[derive(Clone, Debug)]
pub struct SdpaProgram {
    /// The blocks that each matrix has.
    pub blocks: Vec<SdpaBlock>,
    /// The vector c, a column.
    pub costs: Matrix,
    /// Places of the given entries, in the order of the file; zeros may be among them.
    pub entries: Vec<SdpaEntry>,
    /// The given entries, a column.
    pub values: Matrix,
}

/// Reads a whole program in SDPA's sparse format (`.dat-s`), compressed or not.
///
/// Accuracy: as [`crate::io::read`]: integers are taken exactly, decimals are rounded once; the precision of `costs`
/// and `values` is at least that of the options. Memory: the numbers and 48 bytes for each of them, at most twice that
/// during reading. Cost: linear in the file. Source: the manual of SDPA, "sparse data format".
///
/// ```
/// use sunzi::io::{ReadOptions, read_sdpa};
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("tiny.dat-s");
/// std::fs::write(&path, "1\n1\n2\n{3}\n0 1 1 2 0.5\n1 1 2 2 4\n").unwrap();
/// let program = read_sdpa(&path, &ReadOptions::new(64))?;
/// assert_eq!((program.blocks[0].order, program.entries.len()), (2, 2));
/// assert!(program.entries[0].row == 1 && program.values.float(1, 0) == 4);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::io::read`]; [`Error::Format`] for an entry that is given twice.
pub fn read_sdpa(path: impl AsRef<Path>, options: &ReadOptions) -> Result<SdpaProgram> {
    let path = path.as_ref();
    let (file, bytes) = open(path)?;
    read_sdpa_stream(file, &Source::new(path, FileFormat::Sdpa).bytes(bytes), options)
}

/// As [`read_sdpa`], from any stream, compressed or not.
///
/// # Errors
/// As [`read_sdpa`].
pub fn read_sdpa_stream(reader: impl Read, source: &Source<'_>, options: &ReadOptions) -> Result<SdpaProgram> {
    options.check()?;
    let source = Source { format: Some(FileFormat::Sdpa), ..*source };
    let Plain { reader, bytes, .. } = Plain::open(reader, &source)?;
    let reporter = Reporter::new(options.progress.clone(), "read", bytes.unwrap_or(0));
    let mut scanner = Scanner::new(reader, source.path, reporter);
    let header = SdpaHeader::read(&mut scanner)?;
    let bits = options.resolve(None, &source)?;
    options.admit(header.constraints, 1, bits.least)?;
    let column = || Intake::new(bits.decimal, Elements::within(Order::Columns, bits.least, options.limit_bytes()));
    let (mut costs, mut values) = (column(), column());
    for index in 0..header.constraints {
        let word = header.next_cost(&mut scanner, index)?;
        costs.push(&scanner, word, EntryIndex { row: index, col: 0 })?;
    }
    let (mut entries, mut seen) = (Vec::new(), HashSet::new());
    while let Some((at, value)) = next_entry(&mut scanner, &header)? {
        let EntryPlace { constraint, block, row, col } = at;
        let entry = SdpaEntry { constraint, block, row, col };
        let bytes = 96 * entries.len() as u64;
        seen.try_reserve(1).and_then(|()| entries.try_reserve(1)).map_err(|_| Error::OutOfMemory { bytes })?;
        if !seen.insert((constraint, block, row as u64 * header.blocks[block].0 as u64 + col as u64)) {
            return Err(second(&scanner, at));
        }
        let place = EntryIndex { row, col };
        values.push_at(&scanner, value, ReadPosition { place, rows: 0, field: Field::Real })?;
        entries.push(entry);
    }
    scanner.finish()?;
    let finish = |intake: Intake, rows| intake.elements.finish(MatrixLayout { rows, cols: 1, mirrored: false });
    Ok(SdpaProgram {
        blocks: header.blocks.iter().map(|&(order, diagonal)| SdpaBlock { order, diagonal }).collect(),
        costs: finish(costs, header.constraints)?,
        values: finish(values, entries.len())?,
        entries,
    })
}
