//! Reads matrices and vectors of semidefinite programs in SDPA's sparse format.
//!
//! Format: the manual of SDPA, "sparse data format", as the files of SDPLIB have it: lines of comment (`"` or `*`), the
//! number of constraints, the number of blocks, their orders (negative for a diagonal block), the vector c, and lines
//! `constraint block row column value` for the upper triangles. A member of a file is named `3/1` for block 1 of
//! constraint 3 (0 is the constant matrix), or `c` for the vector. Everything counts from 1, as in the files.
//! Independent of: how a number is read.

use crate::error::{Error, Result};
use crate::io::elements::{Elements, MatrixLayout, Order};
use crate::io::intake::{Intake, Places, ReadPosition};
use crate::io::matrix_market_header::parse_count;
use crate::io::number::Field;
use crate::io::progress::Reporter;
use crate::io::scan::{BufferSpan, Scanner, shown};
use crate::io::{FileFormat, FileInfo, Loaded, ReadOptions, Source, Symmetry, stored_entries};
use crate::matrix::{EntryIndex, Matrix};
use std::io::Read;

/// Orders of blocks that an error repeats.
const SHOWN_BLOCKS: usize = 12;

/// The member of the file that a name selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Member {
    /// The vector c, a column.
    Costs,
    /// A block of the matrix of a constraint.
    Block { constraint: usize, block: usize },
}

/// The header before the entries.
pub(super) struct SdpaHeader {
    pub constraints: usize,
    /// Order of each block, and whether it is diagonal.
    pub blocks: Vec<(usize, bool)>,
}

/// Where an entry belongs, from 0 but for the constraint, which is 0 for the constant matrix; of the two triangles the
/// lower one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EntryPlace {
    pub constraint: usize,
    pub block: usize,
    pub row: usize,
    pub col: usize,
}

/// Reads only the header.
pub(super) fn read_info(reader: impl Read, source: &Source<'_>) -> Result<FileInfo> {
    let mut scanner = Scanner::new(reader, source.path, Reporter::new(None, "read", 0));
    let header = SdpaHeader::read(&mut scanner)?;
    let info = |rows, cols, symmetric, stored_entries| FileInfo {
        format: FileFormat::Sdpa,
        rows,
        cols,
        symmetric,
        stored_entries,
        precision_bits_comment: None,
        longest_digits: None,
    };
    Ok(match header.member(source, &scanner)? {
        Member::Costs => info(header.constraints, 1, false, header.constraints as u64),
        Member::Block { block, .. } => {
            let order = header.blocks[block - 1].0;
            info(order, order, true, stored_entries(order, order, Symmetry::SymmetricLower))
        }
    })
}

/// Reads one matrix; see [`super::read`].
pub(super) fn read(reader: impl Read, source: &Source<'_>, options: &ReadOptions) -> Result<Loaded> {
    let reporter = Reporter::new(options.progress.clone(), "read", source.bytes.unwrap_or(0));
    let mut scanner = Scanner::new(reader, source.path, reporter);
    let header = SdpaHeader::read(&mut scanner)?;
    let member = header.member(source, &scanner)?;
    let bits = options.resolve(None, source)?;
    let (rows, cols, order) = match member {
        Member::Costs => (header.constraints, 1, Order::Columns),
        Member::Block { block, .. } => (header.blocks[block - 1].0, header.blocks[block - 1].0, Order::Placed),
    };
    options.admit(rows, cols, bits.least)?;
    // The matrix itself has to fit; its pages are not touched here.
    drop(Matrix::zeros(rows, cols, bits.least)?);
    let mut intake =
        Intake::new(bits.decimal, Elements::within(order, bits.least, options.limit_bytes())).keeping(options);
    for index in 0..header.constraints {
        let word = header.next_cost(&mut scanner, index)?;
        if member == Member::Costs {
            intake.push(&scanner, word, EntryIndex { row: index, col: 0 })?;
        }
    }
    read_entries(&mut scanner, &header, member, &mut intake)?;
    scanner.finish()?;
    let mirrored = matches!(member, Member::Block { .. });
    intake.elements.loaded(MatrixLayout { rows, cols, mirrored })
}

/// Separators between numbers.
fn separates(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b'(' | b')' | b'{' | b'}')
}

/// Reads all entries, and keeps those of one block.
fn read_entries<R: Read>(
    scanner: &mut Scanner<'_, R>,
    header: &SdpaHeader,
    member: Member,
    intake: &mut Intake,
) -> Result<()> {
    let order = match member {
        Member::Block { block, .. } => header.blocks[block - 1].0,
        Member::Costs => 0,
    };
    let mut seen = Places::new(order.saturating_mul(order))?;
    while let Some((at, value)) = next_entry(scanner, header)? {
        if member != (Member::Block { constraint: at.constraint, block: at.block + 1 }) {
            continue;
        }
        if !seen.insert(at.row + at.col * order) {
            return Err(second(scanner, at));
        }
        let place = EntryIndex { row: at.row, col: at.col };
        intake.push_at(scanner, value, ReadPosition { place, rows: order, field: Field::Real })?;
    }
    Ok(())
}

/// The place of the next entry, checked, and the word of its value; `None` at the end of the file.
///
/// # Errors
/// [`Error::Format`], [`Error::Io`].
pub(super) fn next_entry<R: Read>(
    scanner: &mut Scanner<'_, R>,
    header: &SdpaHeader,
) -> Result<Option<(EntryPlace, BufferSpan)>> {
    let Some(word) = scanner.next_word_between(separates)? else { return Ok(None) };
    if scanner.bytes(word).starts_with(b"*") {
        let found = String::from_utf8_lossy(scanner.bytes(word)).into_owned();
        return Err(scanner.error(format_args!(
            "the section '{found}' after the entries, for example a list of integer variables, cannot be read"
        )));
    }
    let constraint = index(scanner, word, "number of a constraint", 0..=header.constraints)?;
    let block = next_index(scanner, "number of a block", 1..=header.blocks.len())?;
    let (size, is_diagonal) = header.blocks[block - 1];
    let row = next_index(scanner, "row", 1..=size)?;
    let col = next_index(scanner, "column", 1..=size)?;
    if is_diagonal && row != col {
        return Err(
            scanner.error(format_args!("block {block} is diagonal, but has an entry at row {row}, column {col}"))
        );
    }
    let Some(value) = scanner.next_word_between(separates)? else { return Err(cut_off(scanner)) };
    // One triangle is given, either; the lower one is kept.
    let place = EntryPlace { constraint, block: block - 1, row: row.max(col) - 1, col: row.min(col) - 1 };
    Ok(Some((place, value)))
}

/// The error for an entry that was given before.
pub(super) fn second<R: Read>(scanner: &Scanner<'_, R>, at: EntryPlace) -> Error {
    scanner.error(format_args!(
        "a second entry for row {}, column {} of block {} of constraint {}",
        at.col + 1,
        at.row + 1,
        at.block + 1,
        at.constraint
    ))
}

fn cut_off<R: Read>(scanner: &Scanner<'_, R>) -> Error {
    scanner.error("the file ends within an entry 'constraint block row column value'")
}

fn next_index<R: Read>(
    scanner: &mut Scanner<'_, R>,
    name: &str,
    range: std::ops::RangeInclusive<usize>,
) -> Result<usize> {
    match scanner.next_word_between(separates)? {
        Some(word) => index(scanner, word, name, range),
        None => Err(cut_off(scanner)),
    }
}

fn index<R: Read>(
    scanner: &Scanner<'_, R>,
    word: BufferSpan,
    name: &str,
    range: std::ops::RangeInclusive<usize>,
) -> Result<usize> {
    let value = parse_count(scanner.bytes(word), name).map_err(|message| scanner.error(message))?;
    match range.contains(&value) {
        true => Ok(value),
        false => Err(scanner.error(format_args!("{name} {value} is outside {} to {}", range.start(), range.end()))),
    }
}

impl SdpaHeader {
    /// Number `index` of the vector c.
    ///
    /// # Errors
    /// [`Error::Format`] where the file ends, [`Error::Io`].
    pub fn next_cost<R: Read>(&self, scanner: &mut Scanner<'_, R>, index: usize) -> Result<BufferSpan> {
        let word = scanner.next_word_between(separates)?;
        let missing = || scanner.error(format_args!("the file ends after {index} of {} costs", self.constraints));
        word.ok_or_else(missing)
    }

    /// Reads all that stands above the vector c.
    ///
    /// # Errors
    /// [`Error::Format`], [`Error::Io`].
    pub fn read<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<SdpaHeader> {
        let constraints = first_count(scanner, "number of constraints")?;
        let count = first_count(scanner, "number of blocks")?;
        let mut blocks = Vec::new();
        while blocks.len() < count {
            let Some(line) = scanner.next_line()? else {
                return Err(
                    scanner.error(format_args!("the file ends after {} of {count} orders of blocks", blocks.len()))
                );
            };
            let words = scanner.bytes(line).split(|&byte| separates(byte)).filter(|word| !word.is_empty());
            for word in words.take(count - blocks.len()) {
                let size = word.strip_prefix(b"-").unwrap_or(word);
                let size = size.strip_prefix(b"+").unwrap_or(size);
                let order = parse_count(size, "order of a block").map_err(|message| scanner.error(message))?;
                blocks.try_reserve(1).map_err(|_| Error::OutOfMemory { bytes: 16 * count as u64 })?;
                blocks.push((order, word.starts_with(b"-")));
            }
            scanner.end_line();
        }
        Ok(SdpaHeader { constraints, blocks })
    }

    /// The member that the name of the source selects.
    fn member<R: Read>(&self, source: &Source<'_>, scanner: &Scanner<'_, R>) -> Result<Member> {
        let (count, file) = (self.blocks.len(), source.path.display());
        let Some(name) = source.member else {
            let sizes = self.blocks.iter().take(SHOWN_BLOCKS).map(|&(order, is_diagonal)| match is_diagonal {
                true => format!("-{order}"),
                false => order.to_string(),
            });
            let sizes = sizes.collect::<Vec<_>>().join(", ");
            let more = if count > SHOWN_BLOCKS { ", ..." } else { "" };
            return Err(Error::InvalidArgument(format!(
                "{file} holds several matrices: name one, such as {file}:1/1 for block 1 of constraint 1, or {file}:c; \
                 it has constraints 0 to {}, and blocks of the orders {sizes}{more} (negative: diagonal)",
                self.constraints
            )));
        };
        if name == "c" {
            return Ok(Member::Costs);
        }
        let number = |text: &str| text.parse::<usize>().ok();
        let parsed = name.split_once('/').and_then(|(constraint, block)| Some((number(constraint)?, number(block)?)));
        match parsed {
            Some((constraint, block)) if constraint <= self.constraints && (1..=count).contains(&block) => {
                Ok(Member::Block { constraint, block })
            }
            _ => Err(scanner.error(format_args!(
                "there is no matrix '{}': 'c' is the vector, '3/1' block 1 of constraint 3; there are constraints 0 to \
                 {} and blocks 1 to {count}",
                shown(name.as_bytes()),
                self.constraints
            ))),
        }
    }
}

/// The number at the start of the next line that is no comment; the rest of the line is a comment.
fn first_count<R: Read>(scanner: &mut Scanner<'_, R>, name: &str) -> Result<usize> {
    while let Some(line) = scanner.next_line()? {
        let text = scanner.bytes(line).trim_ascii();
        if !text.is_empty() && !matches!(text[0], b'"' | b'*') {
            let mut words = text.split(|&byte| separates(byte) || byte == b'=').filter(|word| !word.is_empty());
            let word = words.next().unwrap_or(text);
            let count = parse_count(word, name).map_err(|message| scanner.error(message))?;
            scanner.end_line();
            return Ok(count);
        }
        scanner.end_line();
    }
    Err(scanner.error(format_args!("the file ends before the {name}")))
}
