//! The integers of a few columns, from the row of their first pivot on: pivots, quotients, and the products among these
//! columns.

use crate::drive;
use crate::error::Result;
use crate::kernels::entries::{Reciprocal, Widths, quotient_words};
use crate::kernels::limbs;
use crate::math::float::{bit_length, round_shifted};
use crate::ops::lu::lanes::LaneRules;
use crate::ops::lu::problem::{Headroom, LuProblem, LuStop};
use std::cmp::Ordering;
use std::ops::Range;

/// Rows that a worker takes at a time.
const ROWS_TOGETHER: usize = 16;

/// The rules of one factorisation.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub working_bits: u32,
    pub headroom: Headroom,
    /// Where eight integers are worked on together.
    pub lanes: Option<LaneRules>,
}

impl Rules {
    pub fn new(problem: &LuProblem, headroom: Headroom) -> Rules {
        Rules { working_bits: problem.working_bits, headroom, lanes: LaneRules::new(problem, &headroom) }
    }

    fn widths(&self) -> Widths {
        self.headroom.widths
    }

    /// Words of a finished entry: a sign and limbs.
    pub fn entry_words(&self) -> usize {
        1 + self.widths().entry
    }

    /// Bits of the largest entry.
    pub fn entry_bits(&self) -> u32 {
        self.working_bits + self.headroom.growth_bits
    }

    /// Words of scratch of [`Rules::divide`].
    fn scratch_words(&self) -> usize {
        self.widths().rest + 2 * self.widths().entry + quotient_words(self.widths(), self.entry_bits())
    }

    /// The entry of `U` from its remainder in two's complement: `round(rest 2^-w)`; `magnitude` is scratch.
    ///
    /// # Errors
    /// [`LuStop::Growth`].
    pub fn upper(&self, rest: &[u64], magnitude: &mut [u64], out: &mut [u64]) -> std::result::Result<(), LuStop> {
        magnitude.copy_from_slice(rest);
        let negative = limbs::to_magnitude(magnitude);
        let (sign, out): (&mut [u64], &mut [u64]) = out.split_at_mut(1);
        round_shifted(magnitude, self.working_bits.into(), out);
        let bits = bit_length(magnitude).saturating_sub(self.working_bits.into());
        if bits > u64::from(self.entry_bits()) {
            return Err(LuStop::Growth((bits - u64::from(self.working_bits)) as u32));
        }
        sign[0] = u64::from(negative && out.iter().any(|&limb| limb != 0));
        Ok(())
    }

    /// `rest := rest - x y` for two finished entries.
    #[inline]
    pub fn take_product_off(&self, rest: &mut [u64], x: &[u64], y: &[u64], product: &mut [u64]) {
        limbs::add_product(rest, &x[1..], &y[1..], x[0] == y[0], product);
    }
}

/// The remainders of some columns, and their entries of `L` as far as they are found.
pub(super) struct Leaf {
    rules: Rules,
    /// Columns.
    cols: usize,
    /// Remainders in two's complement, row by row.
    rests: Vec<u64>,
    /// Finished entries, row by row.
    entries: Vec<u64>,
    /// The entries of `U`, row by row.
    pub upper: Vec<u64>,
}

/// The memory of a row.
pub(super) struct LeafRow<'l> {
    /// Its remainders, one column after the other.
    pub rests: &'l mut [u64],
    entries: &'l mut [u64],
}

/// The largest remainder of a column so far: its row, and its magnitude.
#[derive(Default)]
struct Largest {
    row: usize,
    magnitude: Vec<u64>,
}

impl Largest {
    /// Takes in the remainder of a row in two's complement; of equals the first row stays.
    fn see(&mut self, row: usize, rest: &[u64], scratch: &mut [u64]) {
        scratch.copy_from_slice(rest);
        limbs::to_magnitude(scratch);
        self.take(row, scratch);
    }

    fn take(&mut self, row: usize, magnitude: &[u64]) {
        let order = match self.magnitude.is_empty() {
            true => Ordering::Greater,
            false => magnitude.iter().rev().cmp(self.magnitude.iter().rev()),
        };
        if order == Ordering::Greater || (order == Ordering::Equal && row < self.row) {
            self.row = row;
            self.magnitude.clear();
            self.magnitude.extend_from_slice(magnitude);
        }
    }
}

/// The private memory of a worker.
struct LeafWorker {
    scratch: Vec<u64>,
    largest: Largest,
}

/// The pivot of a column, for the rows below it.
struct PivotStep<'a> {
    rules: Rules,
    /// Its column.
    col: usize,
    cols: usize,
    /// Its row of `U`, from the first column of the leaf on.
    upper: &'a [u64],
    reciprocal: &'a Reciprocal<Box<[u64]>>,
}

impl PivotStep<'_> {
    /// The quotient of a row, and its products off the remainders of the columns behind.
    fn divide(&self, row: &mut LeafRow<'_>, scratch: &mut [u64]) {
        let PivotStep { rules, col, cols, upper, reciprocal } = *self;
        let (Widths { entry, rest }, words) = (rules.widths(), rules.entry_words());
        let (magnitude, scratch) = scratch.split_at_mut(rest);
        let (product, space) = scratch.split_at_mut(2 * entry);
        let pivot = &upper[col * words..][..words];
        magnitude.copy_from_slice(&row.rests[col * rest..][..rest]);
        let negative = limbs::to_magnitude(magnitude) != (pivot[0] == 1);
        let quotient = reciprocal.quotient(magnitude, &pivot[1..], space);
        let own = &mut row.entries[col * words..][..words];
        let count = quotient.len().min(entry);
        own[1..=count].copy_from_slice(&quotient[..count]);
        own[count + 1..].fill(0);
        let is_zero = own[1..].iter().all(|&limb| limb == 0);
        own[0] = u64::from(negative && !is_zero);
        if is_zero {
            return;
        }
        for behind in col + 1..cols {
            let left = &mut row.rests[behind * rest..][..rest];
            rules.take_product_off(left, own, &upper[behind * words..][..words], product);
        }
    }
}

impl Leaf {
    /// Bytes of a leaf.
    pub fn bytes(rules: &Rules, rows: usize, cols: usize) -> u64 {
        8 * (rows * cols * (rules.widths().rest + rules.entry_words())) as u64
    }

    /// A leaf of zeros.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(rules: Rules, rows: usize, cols: usize) -> Result<Leaf> {
        let words = rules.entry_words();
        Ok(Leaf {
            rules,
            cols,
            rests: crate::store::zeroed(rows * cols * rules.widths().rest)?,
            entries: crate::store::zeroed(rows * cols * words)?,
            upper: vec![0; cols * cols * words],
        })
    }

    /// The same memory for fewer rows, and as many columns or fewer.
    pub fn shrink(&mut self, rows: usize, cols: usize) {
        self.cols = cols;
        self.rests.truncate(rows * cols * self.rules.widths().rest);
        self.entries.truncate(rows * cols * self.rules.entry_words());
        self.upper.truncate(cols * cols * self.rules.entry_words());
    }

    /// All rows, in order.
    pub fn rows(&mut self) -> impl Iterator<Item = LeafRow<'_>> {
        let (rest, words) = (self.cols * self.rules.widths().rest, self.cols * self.rules.entry_words());
        let rows = self.rests.chunks_exact_mut(rest).zip(self.entries.chunks_exact_mut(words));
        rows.map(|(rests, entries)| LeafRow { rests, entries })
    }

    /// A finished entry of `L`.
    pub fn lower(&self, row: usize, col: usize) -> &[u64] {
        let words = self.rules.entry_words();
        &self.entries[(row * self.cols + col) * words..][..words]
    }

    /// A finished entry of `U`.
    pub fn upper(&self, row: usize, col: usize) -> &[u64] {
        let words = self.rules.entry_words();
        &self.upper[(row * self.cols + col) * words..][..words]
    }

    fn swap_rows(&mut self, one: usize, other: usize) {
        let swap = |words: &mut [u64], each: usize| {
            let (before, after) = words.split_at_mut(other * each);
            before[one * each..][..each].swap_with_slice(&mut after[..each]);
        };
        if one < other {
            swap(&mut self.rests, self.cols * self.rules.widths().rest);
            swap(&mut self.entries, self.cols * self.rules.entry_words());
        }
    }

    /// Finds the pivots of all columns: rows are exchanged so that the pivot of column `c` comes into row `c`, and each
    /// exchange is reported.
    ///
    /// # Errors
    /// [`LuStop`], with the column within the leaf.
    pub fn factor(
        &mut self,
        workers: usize,
        mut exchanged: impl FnMut(usize, usize),
    ) -> std::result::Result<(), LuStop> {
        let rest = self.rules.widths().rest;
        let scratch = || vec![0; self.rules.scratch_words()];
        let mut workers =
            (0..workers).map(|_| LeafWorker { scratch: scratch(), largest: Largest::default() }).collect::<Vec<_>>();
        let mut largest = Largest::default();
        for (at, row) in self.rows().enumerate() {
            largest.see(at, &row.rests[..rest], &mut workers[0].scratch[..rest]);
        }
        for col in 0..self.cols {
            exchanged(col, largest.row);
            self.swap_rows(col, largest.row);
            self.upper_row(col, &mut largest.magnitude)?;
            largest = self.divide_below(col, &mut workers)?;
        }
        Ok(())
    }

    /// The row of `U` that belongs to a pivot.
    fn upper_row(&mut self, col: usize, magnitude: &mut [u64]) -> std::result::Result<(), LuStop> {
        let (rest, words, cols) = (self.rules.widths().rest, self.rules.entry_words(), self.cols);
        for behind in col..cols {
            let own = &self.rests[(col * cols + behind) * rest..][..rest];
            self.rules.upper(own, magnitude, &mut self.upper[(col * cols + behind) * words..][..words])?;
        }
        let is_zero = self.upper(col, col)[1..].iter().all(|&limb| limb == 0);
        if is_zero { Err(LuStop::NoPivot(col)) } else { Ok(()) }
    }

    /// The quotients of all rows below a pivot; returns the largest remainder of the next column.
    fn divide_below(&mut self, col: usize, workers: &mut [LeafWorker]) -> Result<Largest> {
        let (rules, cols, rest) = (self.rules, self.cols, self.rules.widths().rest);
        let words = rules.entry_words();
        let upper = std::mem::take(&mut self.upper);
        let own = &upper[col * cols * words..][..cols * words];
        let reciprocal = &Reciprocal::boxed(&own[col * words + 1..][..words - 1], rules.entry_bits());
        let step = &PivotStep { rules, col, cols, upper: own, reciprocal };
        let below = col + 1;
        let (rests, entries) = (&mut self.rests[below * cols * rest..], &mut self.entries[below * cols * words..]);
        let each = ROWS_TOGETHER * cols;
        let mut groups = rests.chunks_mut(each * rest).zip(entries.chunks_mut(each * words)).enumerate();
        drive::parallel_for(
            workers,
            |_| groups.next(),
            |LeafWorker { scratch, largest }, (group, (rests, entries))| {
                let rows = rests.chunks_exact_mut(cols * rest).zip(entries.chunks_exact_mut(cols * words));
                for (at, (rests, entries)) in rows.enumerate() {
                    let mut row = LeafRow { rests, entries };
                    step.divide(&mut row, scratch);
                    if below < cols {
                        let next = &row.rests[below * rest..][..rest];
                        largest.see(below + group * ROWS_TOGETHER + at, next, &mut scratch[..rest]);
                    }
                }
                Ok(())
            },
        )?;
        self.upper = upper;
        let mut all = Largest::default();
        for LeafWorker { largest, .. } in workers {
            let own = std::mem::take(largest);
            if !own.magnitude.is_empty() {
                all.take(own.row, &own.magnitude);
            }
        }
        Ok(all)
    }
}

/// The entries of eight rows of `U` in one column, from their remainders: the unit triangle `lower` has the entries of
/// `L` among these rows, row by row.
///
/// # Errors
/// [`LuStop::Growth`].
pub(super) fn substitute(
    rules: &Rules,
    lower: &[u64],
    rests: &mut [u64],
    upper: &mut [u64],
    scratch: &mut [u64],
) -> std::result::Result<(), LuStop> {
    let (Widths { entry, rest }, words) = (rules.widths(), rules.entry_words());
    let (magnitude, product) = scratch.split_at_mut(rest);
    let count = rests.len() / rest;
    for row in 0..count {
        let (before, own) = upper.split_at_mut(row * words);
        let left = &mut rests[row * rest..][..rest];
        for (at, above) in before.chunks_exact(words).enumerate() {
            rules.take_product_off(
                left,
                &lower[(row * count + at) * words..][..words],
                above,
                &mut product[..2 * entry],
            );
        }
        rules.upper(left, magnitude, &mut own[..words])?;
    }
    Ok(())
}

/// Words of scratch of [`substitute`].
pub(super) fn substitute_words(rules: &Rules) -> usize {
    rules.widths().rest + 2 * rules.widths().entry
}

/// The rows of a leaf that belong to a panel.
pub(super) fn rows_of(panel: usize, first: usize, rows: usize) -> Range<usize> {
    (panel * crate::plan::BLOCK - first).min(rows)..((panel + 1) * crate::plan::BLOCK - first).min(rows)
}
