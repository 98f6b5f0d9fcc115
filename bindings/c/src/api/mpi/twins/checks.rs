//! Checks of the arguments of ScaLAPACK's twins on each rank by itself, and those that must be the same on all.

use crate::api::lapack::{Entries, sizes};
use crate::api::mpi::DistOperand;
use crate::api::mpi::opening::Opening;
use crate::array::{Operand, invalid};
use crate::failure::{Failure, Outcome};
use crate::types::sunzi_status;
use std::ffi::{c_int, c_void};
use std::fmt::Debug;
use std::ops::Range;
use sunzi::distributed::Distribution;

/// An operand in an array: its first row and column in the matrix of the descriptor, and its shape.
pub struct SubMatrix {
    /// The array, the operand's first row and column, and the descriptor, by name.
    pub names: [&'static str; 4],
    pub entries: *const c_void,
    /// The first row and the first column, counted from 1.
    pub first: [i64; 2],
    pub desc: *const c_int,
    /// Rows and columns of the operand.
    pub shape: [Size; 2],
}

/// The arguments of a first operand by name.
pub const A: [&str; 4] = ["a", "ia", "ja", "desca"];

/// The names of the arguments of a second operand.
pub const B: [&str; 4] = ["b", "ib", "jb", "descb"];

/// The names of the arguments of a result.
pub const C: [&str; 4] = ["c", "ic", "jc", "descc"];

/// A size that is not negative, with the argument that states it.
#[derive(Clone, Copy)]
pub struct Size {
    pub name: &'static str,
    pub count: i64,
}

/// The opening of a routine's call, with the format of the entries of its arrays.
pub struct Checks<'o, 'a> {
    pub open: &'o mut Opening<'a>,
    pub entries: Entries,
}

impl Checks<'_, '_> {
    /// An argument that must be the same on all ranks.
    pub fn global<T: Debug>(&mut self, name: &'static str, value: Outcome<T>) -> Outcome<T> {
        self.open.choice(name, value)
    }

    /// A size, not negative and the same on all ranks.
    pub fn size(&mut self, name: &'static str, value: i64) -> Outcome<Size> {
        let checked = sizes([name], [value]).map(|[size]| size);
        Ok(Size { name, count: self.global(name, checked)? })
    }

    /// A scalar, the same on all ranks.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn scalar(&mut self, name: &'static str, number: *const c_void) -> Outcome<Option<rug::Float>> {
        // SAFETY: by contract.
        let value = unsafe { self.entries.scalar(self.open.call, name, number) }?;
        Ok(self.open.number(name, Some(value)))
    }

    /// An operand with its descriptor.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn matrix(&mut self, sub: &SubMatrix) -> Outcome<DistOperand> {
        let [array, row, col, desc] = sub.names;
        for (name, first) in [row, col].into_iter().zip(sub.first) {
            if first < 1 {
                let message = format!("{first} is not valid; rows and columns are counted from 1");
                return Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, message));
            }
            self.global(name, Ok(first))?;
        }
        if sub.desc.is_null() {
            return Err(Failure::null(desc));
        }
        // SAFETY: nine integers by contract.
        let numbers: [c_int; 9] = std::array::from_fn(|at| unsafe { sub.desc.add(at).read() });
        let whole = self.described(desc, numbers)?;
        let (rows, cols) = self.within(sub, whole.rows, whole.cols)?;
        let rank = self.open.rank();
        let (before_rows, before_cols) = whole.local_before(rank, rows.start, cols.start);
        let distribution = whole.part(rows, cols);
        let (local_rows, local_cols) = distribution.local_shape(rank);
        // Where there are no columns the distance between them may be anything from 1 on.
        let ld = numbers[8] as usize;
        let first = match local_rows * local_cols {
            0 => sub.entries,
            _ if sub.entries.is_null() => return Err(Failure::null(array)),
            _ => self.entries.behind(sub.entries, before_rows + before_cols * ld),
        };
        let local = self.entries.described(first, local_rows as i64, local_cols as i64, ld.max(local_rows) as i64);
        // SAFETY: by contract: the descriptor's entries are there, and these are some of them.
        Ok(DistOperand { local: unsafe { Operand::new(array, &local) }?, distribution })
    }

    /// The distribution that a descriptor describes.
    fn described(&mut self, desc: &'static str, numbers: [c_int; 9]) -> Outcome<Distribution> {
        let wrong = |entry: usize, message: String| {
            let message = format!("entry {entry} is {}: {message}", numbers[entry - 1]);
            Failure { entry: Some(entry), ..invalid(desc, message) }
        };
        let [kind, context, rows, cols, row_block, col_block, row_first, col_first, ld] = numbers;
        if kind != 1 {
            return Err(wrong(1, "it must be 1, which means a block-cyclic matrix".into()));
        }
        let unknown = || wrong(2, "sunzi_mpi_grid has not defined a grid of this number".into());
        let (grid, order) = self.open.call.owner().grid(context).ok_or_else(unknown)?;
        for (entry, number, least) in [(3, rows, 0), (4, cols, 0), (5, row_block, 1), (6, col_block, 1)] {
            if number < least {
                return Err(wrong(entry, format!("it must be at least {least}")));
            }
        }
        for (entry, number, ranks) in [(7, row_first, grid.rows), (8, col_first, grid.cols)] {
            if usize::try_from(number).map_or(true, |number| number >= ranks) {
                return Err(wrong(entry, format!("it must be from 0 to {} in this grid", ranks - 1)));
            }
        }
        let shape = format!("{} x {} ranks, {order:?}", grid.rows, grid.cols);
        self.open.say_of_entry(desc, 2, "entry 2 stands for", shape);
        for (at, number) in numbers.iter().enumerate().filter(|(at, _)| (2..8).contains(at)) {
            self.open.say_of_entry(desc, at + 1, &format!("entry {} is", at + 1), number);
        }
        let size = |number: c_int| number as usize;
        let blocks = (size(row_block), size(col_block));
        let first = (size(row_first), size(col_first));
        let whole = Distribution::block_cyclic((size(rows), size(cols)), (grid, order), blocks, first);
        let (local_rows, local_cols) = whole.local_shape(self.open.rank());
        let least = if local_cols > 0 { local_rows.max(1) } else { 1 };
        if usize::try_from(ld).map_or(true, |ld| ld < least) {
            return Err(wrong(9, format!("it must be at least {least} on this rank")));
        }
        Ok(whole)
    }

    /// The rows and columns of an operand, from 0, which must be there; one without entries may begin anywhere.
    fn within(&self, sub: &SubMatrix, rows: usize, cols: usize) -> Outcome<(Range<usize>, Range<usize>)> {
        let refuse = |name, message: String| Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, message));
        let [height, width] = sub.shape.map(|size| size.count);
        if height == 0 || width == 0 {
            let start = |first: i64, len: usize| (first as usize - 1).min(len);
            let (row, col) = (start(sub.first[0], rows), start(sub.first[1], cols));
            // As many as there are, so that shapes still fit each other: of the one that is 0 there are none.
            return Ok((row..row + height as usize, col..col + width as usize));
        }
        for (name, first, len) in [(sub.names[1], sub.first[0], rows), (sub.names[2], sub.first[1], cols)] {
            if first as u64 > len as u64 {
                return refuse(name, format!("{first} lies outside a {rows} x {cols} matrix"));
            }
        }
        let [row, col] = sub.first.map(|first| first as usize - 1);
        for (Size { name, count }, start, len) in [(sub.shape[0], row, rows), (sub.shape[1], col, cols)] {
            if count as u64 > (len - start) as u64 {
                let message = format!("{count} entries from {} on do not fit a {rows} x {cols} matrix", start + 1);
                return refuse(name, message);
            }
        }
        Ok((row..row + height as usize, col..col + width as usize))
    }
}
