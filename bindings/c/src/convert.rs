//! Numbers between the caller's arrays and the library's matrices: one pass, on the context's threads.
//!
//! Reading assumes that all entries have the precision of the first; only if an entry has more bits are the precisions
//! of all entries read. Inputs are always exact.

use crate::array::{Entry, Flaw, Grid, LimbArray, Part, Value};
use crate::failure::{Failure, Outcome};
use rug::Float;
use std::sync::Mutex;
use sunzi::advanced::drive::parallel_for;
use sunzi::advanced::math::float::limbs_for;
use sunzi::{Context, Error, FloatRef, Matrix, MatrixView};

/// Entries that are worth a thread of their own.
const ENTRIES_PER_WORKER: usize = 4096;

/// A column of a matrix with its number.
struct Column<'a> {
    col: usize,
    heads: &'a mut [u64],
    limbs: &'a mut [u64],
}

/// Bits that hold an entry `(row, column)` of `part` exactly, the first one there is; 64 where there is none.
///
/// # Safety
/// The entries of `part` are live.
pub unsafe fn first_bits<T: Entry>(name: &'static str, grid: &Grid<T>, part: Part) -> Outcome<u32> {
    let first = Part::columns(grid.rows, grid.cols).find_map(|col| Some((part.rows(col, grid.rows).next()?, col)));
    let Some((row, col)) = first else { return Ok(64) };
    // SAFETY: an entry of the part, live by contract.
    let entry = unsafe { grid.place(row, col).read() };
    entry.bits().map(|bits| bits.max(2)).map_err(|flaw| grid.flaw(name, row, col, flaw))
}

/// The most bits that `bits` returns for any entry of `part`, at least 2.
///
/// # Safety
/// The entries of `part` are live.
pub unsafe fn widest<T: Entry>(
    name: &'static str,
    grid: &Grid<T>,
    part: Part,
    bits: impl Fn(T) -> Result<u32, Flaw>,
) -> Outcome<u32> {
    let mut most = 2;
    for col in Part::columns(grid.rows, grid.cols) {
        for row in part.rows(col, grid.rows) {
            // SAFETY: an entry of the part, live by contract.
            let entry = unsafe { grid.place(row, col).read() };
            most = bits(entry).map_err(|flaw| grid.flaw(name, row, col, flaw))?.max(most);
        }
    }
    Ok(most)
}

/// The only entry of a grid, exactly.
///
/// # Safety
/// The entry is live, and no thread writes to it.
pub unsafe fn read_number<T: Entry>(name: &'static str, grid: &Grid<T>) -> Outcome<Float> {
    // SAFETY: the one entry, live by contract.
    let read = unsafe {
        let entry = grid.place(0, 0).read();
        entry.bits().map(|bits| bits.max(2)).and_then(|bits| {
            let mut limbs = vec![0; limbs_for(bits)];
            entry.read(bits, &mut limbs).map(|head| FloatRef { head, limbs: &limbs }.to_float(bits))
        })
    };
    read.map_err(|flaw| flaw.at(name, 0, 0))
}

/// Copies `part` of `grid` into `matrix`, which has its shape, and sets the rest to 0. `false` where an entry has more
/// bits than the matrix; its contents are unspecified numbers then, as after an error.
///
/// # Safety
/// The entries of `part` are live, and no thread writes to them.
pub unsafe fn read<T: Entry>(
    ctx: &Context,
    name: &'static str,
    grid: &Grid<T>,
    part: Part,
    matrix: &mut Matrix,
) -> Outcome<bool> {
    // SAFETY: by contract.
    let fill = |column: Column<'_>, bits| unsafe { read_column(name, grid, part, column, bits) };
    let (rows, cols, bits) = (matrix.rows(), matrix.cols(), matrix.precision_bits());
    match each(ctx, rows, cols, Columns::new(matrix), |column| fill(column, bits)) {
        // The first flaw, whichever thread met one before.
        Err(Some(_)) => {
            Columns::new(matrix).find_map(|column| fill(column, bits).err().flatten()).map_or(Ok(false), Err)
        }
        Err(None) => Ok(false),
        Ok(()) => Ok(true),
    }
}

/// Reads one column; an error without a failure is an entry with too many bits.
///
/// # Safety
/// As [`read`].
unsafe fn read_column<T: Entry>(
    name: &'static str,
    grid: &Grid<T>,
    part: Part,
    column: Column<'_>,
    precision_bits: u32,
) -> Result<(), Option<Failure>> {
    let Column { col, heads, limbs } = column;
    let rows = part.rows(col, grid.rows);
    let width = limbs.len() / heads.len();
    let (before, after) = (0..rows.start, rows.end..heads.len());
    for rest in [before, after] {
        heads[rest.clone()].fill(0);
        limbs[rest.start * width..rest.end * width].fill(0);
    }
    let columns = heads[rows.clone()].iter_mut().zip(limbs[rows.start * width..].chunks_exact_mut(width));
    for (row, (head, limbs)) in rows.zip(columns) {
        let place = grid.place(row, col);
        // SAFETY: an entry of the part, live by contract.
        if let Some(plain) = unsafe { T::read_plain(place, precision_bits, limbs) } {
            *head = plain.0;
            continue;
        }
        // SAFETY: as above.
        let read = unsafe { place.read().read(precision_bits, limbs) };
        *head = match read {
            Ok(head) => head.0,
            Err(Flaw::Wider) => return Err(None),
            Err(flaw) => return Err(Some(grid.flaw(name, row, col, flaw))),
        };
    }
    Ok(())
}

/// A view of raw numbers, those of `part` checked.
///
/// # Safety
/// Heads and limbs are live, and no thread writes to them while the view is in use.
pub unsafe fn view<'a>(ctx: &Context, name: &'static str, array: &LimbArray, part: Part) -> Outcome<MatrixView<'a>> {
    // Along the memory.
    let (along, part) =
        if array.heads.is_row_major() { (array.transposed(), part.transposed()) } else { (*array, part) };
    let (rows, cols) = (along.heads.rows, along.heads.cols);
    // SAFETY: by contract.
    let check = |col: usize| unsafe { along.check_column(name, part, col) };
    let columns = Part::columns(rows, cols);
    if each(ctx, rows, cols, columns.clone(), |col| check(col).map_err(Some)).is_err() {
        columns.into_iter().try_for_each(check)?; // the first flaw, whichever thread met one before
    }
    // SAFETY: by contract.
    unsafe { array.view(name) }
}

/// Stores `part` of `matrix` in `grid`, which has its shape, each entry rounded to nearest at its own precision.
///
/// # Safety
/// The entries of `part` are live and apart from each other, and no other thread uses them.
pub unsafe fn write<T: Entry>(
    ctx: &Context,
    name: &'static str,
    grid: &Grid<T>,
    part: Part,
    matrix: &Matrix,
) -> Outcome<()> {
    let store = |col: usize| {
        for row in part.rows(col, grid.rows) {
            let value = Value { number: matrix.get(row, col), precision_bits: matrix.precision_bits() };
            // SAFETY: an entry of the part, live, and used only by this thread by contract.
            let written = unsafe { T::write(grid.place(row, col), value) };
            written.map_err(|flaw| Some(grid.flaw(name, row, col, flaw)))?;
        }
        Ok(())
    };
    let columns = Part::columns(matrix.rows(), matrix.cols());
    let done = each(ctx, matrix.rows(), matrix.cols(), columns, store);
    done.map_err(|failure| failure.unwrap_or_else(|| Failure::from(Error::Cancelled)))
}

/// [`write`] into heads and limbs.
///
/// # Safety
/// As [`write`].
pub unsafe fn write_limbs(array: &LimbArray, part: Part, matrix: &Matrix) {
    for col in Part::columns(matrix.rows(), matrix.cols()) {
        for row in part.rows(col, matrix.rows()) {
            let value = Value { number: matrix.get(row, col), precision_bits: matrix.precision_bits() };
            // SAFETY: an entry of the part, live, and used by no one else by contract.
            unsafe { array.write(row, col, value) };
        }
    }
}

/// The columns of a matrix, for writing.
struct Columns<'a> {
    heads: std::slice::ChunksMut<'a, u64>,
    limbs: std::slice::ChunksMut<'a, u64>,
    next: usize,
}

impl<'a> Columns<'a> {
    fn new(matrix: &'a mut Matrix) -> Columns<'a> {
        let (rows, width) = (matrix.rows().max(1), matrix.limbs_per_element());
        let (heads, limbs) = matrix.parts_mut();
        Columns { heads: heads.chunks_mut(rows), limbs: limbs.chunks_mut(rows * width), next: 0 }
    }
}

impl<'a> Iterator for Columns<'a> {
    type Item = Column<'a>;

    fn next(&mut self) -> Option<Column<'a>> {
        let column = Column { col: self.next, heads: self.heads.next()?, limbs: self.limbs.next()? };
        self.next += 1;
        Some(column)
    }
}

/// Calls `work` with each item, of which there is one for each column of a `rows x cols` matrix, on as many threads as
/// are worth it; one of the failures where several fail.
fn each<T>(
    ctx: &Context,
    rows: usize,
    cols: usize,
    mut items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> Result<(), Option<Failure>> + Sync,
) -> Result<(), Option<Failure>> {
    let workers = ctx.threads().min(cols).min((rows * cols).div_ceil(ENTRIES_PER_WORKER)).max(1);
    if workers == 1 {
        return items.try_for_each(work);
    }
    let failed = Mutex::new(None);
    let one = |_: &mut (), item: T| {
        work(item).map_err(|failure| {
            if let Ok(mut failed) = failed.lock() {
                *failed = Some(failure);
            }
            Error::Cancelled
        })
    };
    let mut locals = vec![(); workers];
    let done = ctx.install(|| parallel_for(&mut locals, |()| items.next(), one));
    match (done, failed.into_inner()) {
        (Ok(()), _) => Ok(()),
        (Err(_), Ok(Some(failure))) => Err(failure),
        (Err(error), _) => Err(Some(Failure::from(error))),
    }
}
