//! Checks of the arguments of ScaLAPACK's twins: first on each rank alone, then that all ranks pass the same.

use crate::api::lapack::{Entries, position_of};
use crate::api::mpi::matrix::DistOperand;
use crate::array::{Operand, invalid};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::types::sunzi_status;
use std::ffi::{c_int, c_void};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use sunzi::comm::{Reduction, Transport};
use sunzi::distributed::Distribution;

/// An array, where in the matrix of its descriptor an operand begins, and how much of it counts.
pub struct SubMatrix {
    /// The array, the operand's first row and column, and the descriptor, by name.
    pub names: [&'static str; 4],
    pub entries: *const c_void,
    /// Counted from 1.
    pub first: (i64, i64),
    pub desc: *const c_int,
    /// Rows and columns of the operand, with the arguments that say so.
    pub shape: [(&'static str, i64); 2],
}

/// What one rank has found out about its arguments.
pub struct Checks<'a> {
    pub call: &'a Call<'a>,
    pub entries: Entries,
    world: &'a dyn Transport,
    /// What must be the same on all ranks: an argument, its entry, a hash of its value.
    said: Vec<(&'static str, Option<usize>, u64)>,
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl<'a> Checks<'a> {
    pub fn new(call: &'a Call<'a>, entries: Entries, world: &'a dyn Transport) -> Checks<'a> {
        Checks { call, entries, world, said: Vec::new() }
    }

    /// An argument that must be the same on all ranks.
    pub fn global<T: Debug>(&mut self, name: &'static str, value: Outcome<T>) -> Outcome<T> {
        if let Ok(value) = &value {
            self.said.push((name, None, hash(&format!("{value:?}"))));
        }
        value
    }

    /// A size, not negative and the same on all ranks.
    pub fn size(&mut self, name: &'static str, value: i64) -> Outcome<i64> {
        let checked = crate::api::lapack::sizes([(name, value)]).map(|[size]| size);
        self.global(name, checked)
    }

    /// A scalar, the same on all ranks.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn scalar(&mut self, name: &'static str, number: *const c_void) -> Outcome<rug::Float> {
        // SAFETY: by contract.
        let value = unsafe { self.entries.scalar(self.call, name, number) };
        self.global(name, value)
    }

    /// An operand with its descriptor.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn matrix(&mut self, sub: &SubMatrix) -> Outcome<DistOperand> {
        let [array, row, col, desc] = sub.names;
        for (name, first) in [(row, sub.first.0), (col, sub.first.1)] {
            if first < 1 {
                let message = format!("{first}: rows and columns are counted from 1");
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
        let (rows, cols) = self.within(sub, (whole.rows, whole.cols))?;
        let rank = self.world.rank();
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
        let shape = (local_rows as i64, local_cols as i64);
        let local = self.entries.described(first, shape, ld.max(local_rows) as i64);
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
            return Err(wrong(1, "1 stands for a block-cyclic matrix".into()));
        }
        let unknown = || wrong(2, "sunzi_mpi_grid has not been told of this context".into());
        let (grid, order) = self.call.owner().grid(context).ok_or_else(unknown)?;
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
        self.said.push((desc, Some(2), hash(&format!("{grid:?} {order:?}"))));
        let same = numbers.iter().enumerate().filter(|(at, _)| (2..8).contains(at));
        self.said.extend(same.map(|(at, number)| (desc, Some(at + 1), hash(number))));
        let size = |number: c_int| number as usize;
        let blocks = (size(row_block), size(col_block));
        let first = (size(row_first), size(col_first));
        let whole = Distribution::block_cyclic((size(rows), size(cols)), (grid, order), blocks, first);
        let (local_rows, local_cols) = whole.local_shape(self.world.rank());
        let least = if local_cols > 0 { local_rows.max(1) } else { 1 };
        if usize::try_from(ld).map_or(true, |ld| ld < least) {
            return Err(wrong(9, format!("it must be at least {least} on this rank")));
        }
        Ok(whole)
    }

    /// The rows and columns of an operand, from 0, which must be there; one without entries may begin anywhere.
    fn within(
        &self,
        sub: &SubMatrix,
        (rows, cols): (usize, usize),
    ) -> Outcome<(std::ops::Range<usize>, std::ops::Range<usize>)> {
        let [(row_count, height), (col_count, width)] = sub.shape;
        let refuse = |name, message: String| Err(Failure::of(sunzi_status::SUNZI_INVALID_SIZE, name, message));
        if height == 0 || width == 0 {
            let start = |first: i64, len: usize| (first as usize - 1).min(len);
            let (row, col) = (start(sub.first.0, rows), start(sub.first.1, cols));
            // As many as there are, so that shapes still fit each other: of the one that is 0 there are none.
            return Ok((row..row + height as usize, col..col + width as usize));
        }
        for (name, first, len) in [(sub.names[1], sub.first.0, rows), (sub.names[2], sub.first.1, cols)] {
            if first as u64 > len as u64 {
                return refuse(name, format!("{first} in a matrix of {rows} x {cols}"));
            }
        }
        let (row, col) = (sub.first.0 as usize - 1, sub.first.1 as usize - 1);
        for (name, count, start, len) in [(row_count, height, row, rows), (col_count, width, col, cols)] {
            if count as u64 > (len - start) as u64 {
                let message = format!("{count} from {} on in a matrix of {rows} x {cols}", start + 1);
                return refuse(name, message);
            }
        }
        Ok((row..row + height as usize, col..col + width as usize))
    }

    /// The checked arguments, where those of all ranks are right and the same; else, on every rank, the first argument
    /// that is wrong on any. Collective.
    pub fn agreed<T>(self, names: &[&'static str], own: Outcome<T>) -> Outcome<T> {
        let rank = self.world.rank() as u64;
        let number = |failure: &Failure| {
            position_of(names, failure)
                .map_or(u64::from(u16::MAX), |(at, entry)| (at * 100 + entry.unwrap_or(0)) as u64)
        };
        let wrong = own.as_ref().err().map(number);
        let routine = hash(&(names, self.entries.format));
        let mut words = [wrong.map_or(u64::MAX, |wrong| wrong << 32 | rank), routine, !routine];
        self.world.all_reduce(Reduction::Min, &mut words)?;
        if words[1] != !words[2] {
            return Err(Failure::new(sunzi_status::SUNZI_INVALID_ARGUMENT, "the ranks call different routines"));
        }
        if words[0] != u64::MAX {
            let (least, first) = ((words[0] >> 32) as usize, words[0] as u32);
            return match own {
                Err(failure) if wrong == Some(least as u64) => Err(failure),
                _ => Err(of_rank(names, least, first)),
            };
        }
        let mut values = self.said.iter().flat_map(|(_, _, value)| [*value, !*value]).collect::<Vec<_>>();
        self.world.all_reduce(Reduction::Max, &mut values)?;
        match values.chunks_exact(2).position(|pair| pair[0] != !pair[1]) {
            None => own,
            Some(at) => {
                let (name, entry, _) = self.said[at];
                let which = entry.map_or(String::new(), |entry| format!("entry {entry} "));
                Err(Failure { entry, ..invalid(name, format!("{which}differs from rank to rank")) })
            }
        }
    }
}

/// What is wrong on another rank, by the number of the argument.
fn of_rank(names: &[&'static str], number: usize, rank: u32) -> Failure {
    let status = sunzi_status::SUNZI_COMMUNICATION;
    match names.get((number / 100).wrapping_sub(1)) {
        Some(name) => {
            let entry = Some(number % 100).filter(|&entry| entry > 0);
            Failure { entry, ..Failure::of(status, name, format!("it is wrong on rank {rank}")) }
        }
        None => Failure::new(status, format!("rank {rank} could not check its arguments")),
    }
}
