//! Reads arrays of NumPy: numbers, texts of one width, and objects that are texts or numbers.
//!
//! Numbers are taken exactly. Entries are counted from 1 in messages, as in all files. Objects are pickled; `pickle`
//! reads NumPy's form of them, and runs no code. Independent of: how texts become numbers.

use crate::error::{Error, Result};
use crate::io::bytes::ByteStream;
use crate::io::elements::{Elements, MatrixLayout, Order};
use crate::io::intake::{Intake, ReadPosition, Rejected, refused};
use crate::io::npy_header::{NpyElement, NpyHeader, text_range};
use crate::io::number::{Field, Refusal};
use crate::io::pickle::Pickle;
use crate::io::progress::Reporter;
use crate::io::{FileFormat, FileInfo, Loaded, ReadOptions, Source};
use crate::matrix::{EntryIndex, Matrix};
use rug::Float;
use std::io::Read;

/// Bytes read from the system at a time, about.
const BUFFER_BYTES: usize = 1 << 20;

/// Reads only the header.
pub(super) fn read_info(reader: impl Read, source: &Source<'_>) -> Result<FileInfo> {
    let header = NpyFile::new(reader, source, Reporter::new(None, "read", 0)).header()?;
    Ok(FileInfo {
        format: FileFormat::Npy,
        rows: header.rows,
        cols: header.cols,
        symmetric: false,
        stored_entries: (header.rows as u64).saturating_mul(header.cols as u64),
        precision_bits_comment: header.kind.precision_bits(),
        longest_digits: None,
    })
}

/// Reads the whole file; see [`super::read`].
pub(super) fn read(reader: impl Read, source: &Source<'_>, options: &ReadOptions) -> Result<Loaded> {
    let reporter = Reporter::new(options.progress.clone(), "read", source.bytes.unwrap_or(0));
    let mut file = NpyFile::new(reader, source, reporter);
    let header = file.header()?;
    let NpyHeader { rows, cols, kind, .. } = header;
    let stated = kind.precision_bits();
    let bits = options.resolve(stated, source)?;
    let least = bits.least.max(kind.exact_bits());
    options.admit(rows, cols, least)?;
    file.check_length(&header)?;
    let loaded = match kind {
        NpyElement::Float(_) | NpyElement::Signed(_) | NpyElement::Unsigned(_) => {
            Loaded::new(file.numbers(&header, least)?)
        }
        NpyElement::Unicode(_) | NpyElement::Bytes(_) | NpyElement::Objects => {
            let order = if header.fortran_order { Order::Columns } else { Order::Rows };
            let count = (rows as u64).saturating_mul(cols as u64);
            // The matrix itself has to fit; its pages are not touched here.
            drop(Matrix::zeros(rows, cols, least)?);
            let mut intake = Intake::new(bits.decimal, Elements::new(order, least, count)).keeping(options);
            match kind {
                NpyElement::Objects => file.objects(&header, &mut intake, options.limit_bytes())?,
                _ => file.texts(&header, &mut intake)?,
            }
            intake.elements.loaded(MatrixLayout { rows, cols, mirrored: false })?
        }
    };
    file.stream.finish("the array")?;
    Ok(Loaded { precision_bits_comment: stated, ..loaded })
}

/// A file under way.
struct NpyFile<'a, R> {
    stream: ByteStream<'a, R>,
    bytes: Option<u64>,
}

impl<'a, R: Read> NpyFile<'a, R> {
    fn new(reader: R, source: &Source<'a>, reporter: Reporter) -> NpyFile<'a, R> {
        NpyFile { stream: ByteStream::new(reader, source.path, reporter), bytes: source.bytes }
    }

    fn error(&self, message: impl std::fmt::Display) -> Error {
        self.stream.error(message)
    }

    fn header(&mut self) -> Result<NpyHeader> {
        let mut first = [0; 12];
        self.stream.fill(&mut first, "its header")?;
        let range = text_range(&first).map_err(|message| self.error(message))?;
        let mut text = vec![0; range.end - 12];
        self.stream.fill(&mut text, "its header")?;
        let text = [&first[range.start..], &text].concat();
        NpyHeader::parse(&text).map_err(|message| self.error(message))
    }

    /// Compares the length of the file, where it is known, with its header, before memory is taken.
    fn check_length(&self, header: &NpyHeader) -> Result<()> {
        let entry = header.kind.bytes().map(|bytes| bytes as u128);
        let Some(expected) = entry.map(|bytes| bytes * header.rows as u128 * header.cols as u128) else {
            return Ok(());
        };
        let expected = expected + u128::from(self.stream.offset());
        match self.bytes.map(u128::from) {
            Some(found) if found != expected => {
                let word = if found < expected { "truncated" } else { "too long" };
                Err(self.error(format_args!(
                    "the file is {word}: it has {found} bytes, but its header requires {expected}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Calls `put` with the bytes of each entry and its place.
    fn entries(
        &mut self,
        header: &NpyHeader,
        mut put: impl FnMut(&mut [u8], EntryIndex) -> std::result::Result<(), Refusal>,
    ) -> Result<()> {
        let each = header.kind.bytes().unwrap_or(0);
        let (rows, cols) = (header.rows, header.cols);
        let count = rows as u64 * cols as u64;
        let at_once = (BUFFER_BYTES / each.max(1)).max(1) as u64;
        let mut buffer = vec![0; each * at_once.min(count) as usize];
        let mut done = 0;
        while done < count {
            let now = at_once.min(count - done) as usize;
            self.stream.fill(&mut buffer[..now * each], "its entries")?;
            for index in 0..now {
                let bytes = &mut buffer[index * each..(index + 1) * each];
                let place = place(header, done + index as u64);
                if let Err(refusal) = put(bytes, place) {
                    return Err(refused(refusal, bytes, place, |text| self.error(text)));
                }
            }
            done += now as u64;
        }
        Ok(())
    }

    /// Numbers of a fixed width, exactly.
    fn numbers(&mut self, header: &NpyHeader, precision_bits: u32) -> Result<Matrix> {
        let mut matrix = Matrix::zeros(header.rows, header.cols, precision_bits)?;
        let (kind, is_big_endian) = (header.kind, header.is_big_endian);
        self.entries(header, |bytes, EntryIndex { row, col }| {
            if is_big_endian {
                bytes.reverse();
            }
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let word = u64::from_le_bytes(word);
            let value = match kind {
                NpyElement::Float(4) => double(f64::from(f32::from_bits(word as u32)))?,
                NpyElement::Float(_) => double(f64::from_bits(word))?,
                NpyElement::Signed(bytes) => {
                    let spare = 64 - 8 * bytes as u32;
                    Float::with_val(64, (word << spare) as i64 >> spare)
                }
                _ => Float::with_val(64, word),
            };
            matrix.set_float(row, col, &value).map_err(|_| Refusal::ExponentRange)
        })?;
        Ok(matrix)
    }

    /// Texts of a fixed width, zeros behind them.
    fn texts(&mut self, header: &NpyHeader, intake: &mut Intake) -> Result<()> {
        let (is_wide, is_big_endian) = (matches!(header.kind, NpyElement::Unicode(_)), header.is_big_endian);
        if header.kind.bytes() == Some(0) && header.rows > 0 && header.cols > 0 {
            return Err(self.error("the strings of the array have length 0"));
        }
        let mut text = Vec::new();
        self.entries(header, |bytes, place| {
            text.clear();
            if is_wide {
                let (words, _) = bytes.as_chunks::<4>();
                text.extend(words.iter().map(|&word| {
                    let code = if is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
                    u8::try_from(code).unwrap_or(b'?')
                }));
            } else {
                text.extend_from_slice(bytes);
            }
            let length = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            intake.put(text[..length].trim_ascii(), ReadPosition { place, rows: 0, field: Field::Real })
        })
    }

    /// Texts and numbers among Python's objects, row by row in any array.
    fn objects(&mut self, header: &NpyHeader, intake: &mut Intake, limit_bytes: u64) -> Result<()> {
        let header = NpyHeader { fortran_order: false, ..*header };
        let count = header.rows as u64 * header.cols as u64;
        let mut index = 0;
        let mut put = |word: &[u8]| {
            let at = place(&header, index);
            index += 1;
            if index > count {
                return Err(Rejected { refusal: Refusal::NotANumber, place: at });
            }
            let put = intake.put(word.trim_ascii(), ReadPosition { place: at, rows: 0, field: Field::Real });
            put.map_err(|refusal| Rejected { refusal, place: at })
        };
        Pickle::new(&mut self.stream, limit_bytes).read(&mut put)?;
        if index != count {
            return Err(self.error(format_args!("the array has {index} objects, but its header requires {count}")));
        }
        Ok(())
    }
}

/// The place of the entry with this number.
fn place(header: &NpyHeader, index: u64) -> EntryIndex {
    let (rows, cols) = (header.rows.max(1) as u64, header.cols.max(1) as u64);
    let (row, col) = if header.fortran_order { (index % rows, index / rows) } else { (index / cols, index % cols) };
    EntryIndex { row: row as usize, col: col as usize }
}

fn double(value: f64) -> std::result::Result<Float, Refusal> {
    match value.is_finite() {
        true => Ok(Float::with_val(53, value)),
        false => Err(Refusal::NotFinite(if value.is_nan() { "NaN" } else { "infinite" })),
    }
}
