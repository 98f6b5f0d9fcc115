//! The operands of a command, read from files: at one precision, within one memory limit, symmetric where they must be.

use crate::args::{NamedTriangle, Precision};
use crate::files::{bits, bytes, header, stated_precision_or};
use crate::session::Session;
use crate::triangles::SymmetricUse;
use std::cell::{Cell, RefCell};
use std::path::Path;
use sunzi::io::{FileInfo, Loaded, ReadOptions, WrittenEntry};
use sunzi::{Error, MAXIMUM_PRECISION_BITS, Matrix, Result, SymmetricMatrix, Uplo};
use sunzi_session::engine::Engine;

/// The options for reading the operands of a command.
pub struct Reader<'a> {
    session: &'a Session,
    engine: &'a Engine,
    precision_bits: u32,
    options: ReadOptions,
    /// Bytes of the matrices that were read.
    held_bytes: Cell<u64>,
    /// Where given, decimals are read to all bits that their file states, or well beyond the precision, and to at least
    /// this number of bits.
    in_full: Option<u32>,
    /// The fewest bits to which a number was rounded that has more.
    rounded_bits: Cell<Option<u32>>,
    /// The entries of the symmetric matrix read last that were rounded, as they were written.
    written: RefCell<Option<Vec<WrittenEntry>>>,
}

/// A matrix that a header announces.
#[derive(Clone, Copy, Debug)]
pub struct Announced {
    pub rows: usize,
    pub cols: usize,
    /// Bits that it is read at.
    pub bits: u32,
}

impl Announced {
    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        Matrix::bytes_for(self.rows, self.cols, self.bits)
    }
}

/// Bits beyond the precision to which decimals are read in full where their file does not state how many they have.
const DECIMAL_BITS: u32 = 64;

impl<'a> Reader<'a> {
    /// Reads within the memory limit of `engine`, at the precision given, else the one that `first` states.
    ///
    /// # Errors
    /// The errors of [`header`] and [`stated_precision_or`].
    pub fn new(session: &'a Session, engine: &'a Engine, typed: &Precision, first: &Path) -> Result<Reader<'a>> {
        let info = header(first)?;
        let precision_bits = stated_precision_or(typed.advice, typed.bits, first, info.as_ref())?;
        Ok(Reader::at(session, engine, typed, precision_bits))
    }

    /// Reads within the memory limit of `engine`, at `precision_bits`.
    pub fn at(session: &'a Session, engine: &'a Engine, typed: &Precision, precision_bits: u32) -> Reader<'a> {
        let options = ReadOptions::new(precision_bits).input_precision_bits(typed.input_bits);
        Reader {
            session,
            engine,
            precision_bits,
            options,
            held_bytes: Cell::new(0),
            in_full: None,
            rounded_bits: Cell::new(None),
            written: RefCell::new(None),
        }
    }

    /// Reads decimals to the bits that their file states, where these are more than the precision, or to 64 bits more
    /// than it where the file states none, and to at least `least_bits`: so the result is that of the matrix in the
    /// file. A precision given by the user is kept.
    pub fn in_full(self, least_bits: u32) -> Reader<'a> {
        Reader { in_full: Some(least_bits), ..self }
    }

    /// Keeps numbers that are rounded as they were written, where there are few.
    pub fn keeping_written(self) -> Reader<'a> {
        Reader { options: self.options.keep_written(true), ..self }
    }

    /// The entries of the last symmetric matrix that were rounded when it was read, as they were written, of the
    /// selected triangle; `None` if they were not kept.
    pub fn written(&self) -> Option<Vec<WrittenEntry>> {
        self.written.take()
    }

    /// The fewest bits to which a number of the matrix read last was rounded; `None` where all are as in the file.
    pub fn rounded_bits(&self) -> Option<u32> {
        self.rounded_bits.get()
    }

    /// The precision of all that is read.
    pub fn precision_bits(&self) -> u32 {
        self.precision_bits
    }

    /// Bytes of the matrix that a header announces.
    fn bytes(&self, info: &FileInfo) -> u64 {
        bytes(info, &self.options_for(Some(info)))
    }

    /// Returns an error for a memory limit that is too small for a command, before any of its files is read:
    /// `needed_bytes` is the memory of its computation, and the headers of the files give the rest. A file without a
    /// header is refused later, where it is too large.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the smallest limit that suffices; the errors of [`header`] and of `needed_bytes`.
    pub fn admit(&self, files: &[&Path], needed_bytes: impl FnOnce(&[FileInfo]) -> Result<u64>) -> Result<()> {
        let Some(budget) = self.engine.budget(0) else { return Ok(()) };
        let infos = files.iter().map(|file| header(file)).collect::<Result<Option<Vec<_>>>>()?;
        let Some(infos) = infos else { return Ok(()) };
        let read_bytes = infos.iter().map(|info| self.bytes(info)).fold(0, u64::saturating_add);
        budget.admit(read_bytes.saturating_add(needed_bytes(&infos)?))
    }

    /// Bits of the matrix that a header announces, as it is read.
    pub fn bits_of(&self, info: &FileInfo) -> u32 {
        bits(info, &self.options_for(Some(info)))
    }

    /// The matrices that headers announce; `None` where a file has none.
    ///
    /// # Errors
    /// The errors of [`header`].
    pub fn announced(&self, files: &[&Path]) -> Result<Option<Vec<Announced>>> {
        let announced = |info: FileInfo| Announced { rows: info.rows, cols: info.cols, bits: self.bits_of(&info) };
        files.iter().map(|file| Ok(header(file)?.map(announced))).collect()
    }

    /// The reading of a file of which this much is known.
    fn options_for(&self, info: Option<&FileInfo>) -> ReadOptions {
        let options = self.options.clone();
        let Some(least_bits) = self.in_full.filter(|_| options.input_precision_bits.is_none()) else { return options };
        let stated = info.and_then(|info| info.precision_bits_comment);
        let bits =
            stated.unwrap_or(self.precision_bits.saturating_add(DECIMAL_BITS)).max(self.precision_bits).max(least_bits);
        options.input_precision_bits(bits.min(MAXIMUM_PRECISION_BITS))
    }

    /// Bytes of all matrices that were read, which a command holds while it computes.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.get()
    }

    /// A matrix.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] by its header, and the errors of [`Session::read`].
    pub fn matrix(&self, path: &Path) -> Result<Matrix> {
        self.load(path).map(|loaded| loaded.matrix)
    }

    /// A symmetric matrix, of which the triangle `named` counts; without one both must hold the same numbers. `wanted`
    /// names its use.
    ///
    /// # Errors
    /// [`Error::NotSquare`] where it is not, before it is read where that is possible; [`Error::Format`] with two
    /// entries that differ; the errors of [`Reader::matrix`].
    pub fn symmetric(
        &self,
        path: &Path,
        named: Option<NamedTriangle>,
        wanted: &SymmetricUse,
    ) -> Result<SymmetricMatrix> {
        if let Some(info) = header(path)? {
            check_square(info.rows, info.cols)?;
        }
        let Loaded { matrix, symmetric, precision_bits_comment, written, .. } = self.load(path)?;
        check_square(matrix.rows(), matrix.cols())?;
        if !symmetric {
            // The bits to which the entries were rounded: a file may state fewer bits than it is read at.
            let stated = precision_bits_comment.unwrap_or(self.precision_bits);
            wanted.check(path, &matrix, stated.min(matrix.precision_bits()), named)?;
        }
        let uplo = named.map_or(Uplo::default(), |named| named.uplo);
        let counts = |entry: &WrittenEntry| match uplo {
            _ if symmetric => true,
            Uplo::Upper => entry.row <= entry.col,
            _ => entry.row >= entry.col,
        };
        self.written.replace(written.map(|entries| entries.into_iter().filter(counts).collect()));
        SymmetricMatrix::from_triangle(matrix, uplo)
    }

    fn load(&self, path: &Path) -> Result<Loaded> {
        let (info, held_bytes) = (header(path)?, self.held_bytes.get());
        let options = self.options_for(info.as_ref());
        let loaded = match self.engine.budget(held_bytes) {
            None => self.session.read(path, options),
            Some(budget) => {
                if let Some(info) = info {
                    budget.admit(bytes(&info, &options))?;
                }
                let read = self.session.read(path, options.memory_bytes(budget.left()));
                read.map_err(|error| budget.restate(error))
            }
        }?;
        self.held_bytes.set(held_bytes + loaded.matrix.bytes());
        self.rounded_bits.set(loaded.rounded_bits);
        Ok(loaded)
    }
}

/// Refuses a shape that no symmetric matrix has.
fn check_square(rows: usize, cols: usize) -> Result<()> {
    if rows == cols {
        return Ok(());
    }
    Err(Error::NotSquare { operation: "a symmetric matrix", rows, cols })
}
