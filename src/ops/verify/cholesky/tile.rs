//! One tile of `A - L L^T` after the other, and the worst entry of all.
//!
//! The product of a tile is a sum over pieces of the rows; each piece is an exact integer product, tested before it is
//! believed, and added to sums of a fixed number of words. Entries of rows that spread too far are summed one by one,
//! exactly, except for terms that are known to be small.

use super::rows::Row;
use super::{Cut, FactorCheck, SINGLES_AT_ONCE, Verification, VerifyOptions};
use crate::context::{Context, Progress};
use crate::drive::{map_indices, parallel_for};
use crate::error::Result;
use crate::math::bound::ceil_log2;
use crate::math::float::{FloatRef, Head};
use crate::matrix::{EntryIndex, Matrix, Op};
use crate::ops::verify::exact::{Accumulator, Dyadic, KEEP_ALL, ProductSum, term};
use crate::ops::verify::{freivalds_gemm, freivalds_syrk};
use crate::ops::{GemmOptions, SyrkOptions, gemm_with, syrk_with};
use crate::store::zeroed;
use rug::Integer;
use rug::integer::Order;
use std::cmp;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Terms this many bits below the bound are left out at first; they are added where they could decide.
const SPARE_BITS: i64 = 96;

/// The residual of one entry.
#[derive(Clone, Copy, Default)]
pub(super) struct EntryResidual {
    /// In units of its bound.
    pub ratio: f64,
    /// Whether it is beyond the bound.
    pub fails: bool,
    /// Its row and column.
    pub place: EntryIndex,
}

impl EntryResidual {
    /// The worse of two; of equal ones the first, column by column, whichever tile it is in.
    fn or_worse(self, other: EntryResidual) -> EntryResidual {
        let rank = |one: &EntryResidual| (one.fails, one.ratio);
        let comes_later = (self.place.col, self.place.row) > (other.place.col, other.place.row);
        let is_worse = rank(&other) > rank(&self) || (rank(&other) == rank(&self) && comes_later);
        if is_worse { other } else { self }
    }
}

/// The check with the measured rows.
pub(super) struct Verifier<'a> {
    pub check: FactorCheck<'a>,
    pub rows: Vec<Row>,
    pub cut: Cut,
    /// The integers of all rows are below 2 to this power.
    pub integer_bits: i64,
}

/// Rows and columns of a tile, and the matrix's entries there.
struct Tile {
    rows: Range<usize>,
    cols: Range<usize>,
    own: Matrix,
}

impl Tile {
    fn own(&self, place: EntryIndex) -> FloatRef<'_> {
        self.own.get(place.row - self.rows.start, place.col - self.cols.start)
    }

    /// Columns with their rows at or below the diagonal.
    fn places(&self) -> impl Iterator<Item = EntryIndex> + use<> {
        let (rows, cols) = (self.rows.clone(), self.cols.clone());
        cols.flat_map(move |col| (rows.start.max(col)..rows.end).map(move |row| EntryIndex { row, col }))
    }
}

fn worse(worst: Option<EntryResidual>, found: EntryResidual) -> EntryResidual {
    worst.map_or(found, |worst| worst.or_worse(found))
}

fn pieces(end: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..end).step_by(size).map(move |start| start..(start + size).min(end))
}

impl Verifier<'_> {
    /// Compares every entry of the lower triangle.
    pub fn decide(&self, ctx: &Context, seed: Option<u64>) -> Result<Verification> {
        let n = self.rows.len();
        let mut outcome = VerifyOptions::new().seed(seed).first_outcome();
        let options = VerifyOptions::new().seed(outcome.seed);
        let (mut worst, total): (Option<EntryResidual>, _) = (None, (n * (n + 1) / 2) as u64);
        let (looked_at, outer) = (Arc::new(AtomicU64::new(0)), ctx.clone());
        let progress = {
            let looked_at = looked_at.clone();
            move || Progress::new("verify", looked_at.load(Ordering::Relaxed), total)
        };
        // Products of tiles report progress as parts of the whole check.
        let inner = &self.cut.inner(ctx, &self.check, self.integer_bits).with_progress({
            let progress = progress.clone();
            move |_| outer.report_progress(progress()).is_ok()
        });
        for rows in pieces(n, self.cut.tile_rows) {
            for cols in pieces(rows.end, self.cut.tile_rows) {
                let product = self.product(inner, &rows, &cols, &options, &mut outcome)?;
                let tile = Tile { own: self.check.a.block(&rows, &cols)?, rows: rows.clone(), cols };
                let found = self.worst_of(ctx, &tile, &product)?;
                worst = Some(worse(worst, found));
                outcome.entry_count += tile.places().count();
                looked_at.store(outcome.entry_count as u64, Ordering::Relaxed);
                ctx.report_progress(progress())?;
            }
        }
        match worst {
            Some(worst) if worst.fails => Err(self.check.failure(&worst)),
            Some(worst) => {
                let EntryIndex { row, col } = self.check.stored_place(worst.place);
                Ok(Verification { worst_entry: worst.ratio.min(1.0), worst_place: Some((row, col)), ..outcome })
            }
            None => Ok(outcome),
        }
    }

    /// Announces that the bands of a tile in some columns will be needed.
    fn announce_bands(&self, rows: &Range<usize>, cols: &Range<usize>, depth: &Range<usize>) {
        self.check.l.announce(rows, depth);
        if rows != cols {
            self.check.l.announce(cols, depth);
        }
    }

    /// Announces the reads after the last bands of a tile: its entries, and the first bands of the next tile.
    fn announce_next(&self, rows: &Range<usize>, cols: &Range<usize>) {
        self.check.a.announce(rows, cols);
        let (n, size) = (self.rows.len(), self.cut.tile_rows);
        let after = |range: &Range<usize>| range.end..(range.end + size).min(n);
        let (rows, cols) = if rows == cols { (after(rows), 0..size.min(n)) } else { (rows.clone(), after(cols)) };
        if !rows.is_empty() {
            self.announce_bands(&rows, &cols, &(0..self.cut.depth.min(cols.end)));
        }
    }

    /// The integers `l_ik 2^-low_i` of the planar rows, in some columns. Other rows are 0.
    fn band(&self, rows: &Range<usize>, cols: &Range<usize>) -> Result<Matrix> {
        let mut band = self.check.l.block(rows, cols)?;
        let (count, limbs) = (rows.len(), band.limbs_per_element());
        let (heads, all_limbs) = band.parts_mut();
        for (at, head) in heads.iter_mut().enumerate() {
            let (row, value) = (&self.rows[rows.start + at % count], Head(*head));
            if !row.planar {
                *head = Head::ZERO.0;
                all_limbs[at * limbs..][..limbs].fill(0);
            } else if !value.is_zero() {
                *head = Head::new(value.is_negative(), value.exponent() - row.low).0;
            }
        }
        Ok(band)
    }

    /// The exact integers of a tile of `L L^T`, each piece tested modulo a random prime.
    fn product(
        &self,
        ctx: &Context,
        rows: &Range<usize>,
        cols: &Range<usize>,
        options: &VerifyOptions,
        outcome: &mut Verification,
    ) -> Result<IntegerSums> {
        let most = |range: &Range<usize>| {
            let rows = self.rows[range.clone()].iter().filter(|row| row.planar);
            rows.map(Row::integer_bits).max().unwrap_or(0)
        };
        let bits = most(rows) + most(cols) + i64::from(ceil_log2(self.rows.len())) + 1;
        let mut sums = IntegerSums::new(rows.len(), cols.len(), bits)?;
        let least_bits = 2; // the result has as many as its integers need
        // Rows of the factor end at the diagonal, so the columns' last row bounds the contraction.
        let mut depths = pieces(cols.end, self.cut.depth).peekable();
        while let Some(depth) = depths.next() {
            let left = self.band(rows, &depth)?;
            let right = if rows == cols { None } else { Some(self.band(cols, &depth)?) };
            // The next blocks are read while these are multiplied.
            match depths.peek() {
                Some(next) => self.announce_bands(rows, cols, next),
                None => self.announce_next(rows, cols),
            }
            let (product, tested) = if let Some(right) = right {
                let choices = GemmOptions { op_b: Op::Transpose, exact_integers: true, ..GemmOptions::default() };
                let product = gemm_with(ctx, &left, &right, least_bits, &choices)?.result;
                let options = VerifyOptions { op_b: Op::Transpose, ..options.clone() };
                let tested = freivalds_gemm(ctx, (&left, &right), &product, &options)?;
                (product, tested)
            } else {
                let choices = SyrkOptions { op: Op::Transpose, exact_integers: true, ..SyrkOptions::default() };
                let product = syrk_with(ctx, &left, least_bits, &choices)?.result;
                let options = VerifyOptions { op: Op::Transpose, ..options.clone() };
                let tested = freivalds_syrk(ctx, &left, &product, &options)?;
                (product.into_matrix(), tested)
            };
            outcome.vector_count += tested.vector_count;
            outcome.prime = tested.prime;
            sums.add(ctx, &product)?;
        }
        Ok(sums)
    }

    /// The worst entry of the lower triangle in a tile; the first of several.
    fn worst_of(&self, ctx: &Context, tile: &Tile, product: &IntegerSums) -> Result<EntryResidual> {
        let columns = map_indices(ctx, tile.cols.len(), |at| {
            let col = tile.cols.start + at;
            let places = (tile.rows.start.max(col)..tile.rows.end).map(|row| EntryIndex { row, col });
            let mut entries = places.filter(|&place| self.is_planar(place)).map(|place| {
                let product = product.get(place.row - tile.rows.start, at);
                let difference = |floor| Ok(self.planar_difference(tile, place, &product, floor));
                self.residual(place, difference(self.floor(place))?, difference)
            });
            entries.try_fold(None, |worst, found| Ok(Some(worse(worst, found?))))
        });
        let columns = columns.into_iter().collect::<Result<Vec<Option<EntryResidual>>>>()?;
        let mut found = columns.into_iter().flatten().reduce(EntryResidual::or_worse);
        let mut singles = tile.places().filter(|&place| !self.is_planar(place)).peekable();
        while singles.peek().is_some() {
            let some = singles.by_ref().take(SINGLES_AT_ONCE).collect::<Vec<_>>();
            found =
                self.single_residuals(ctx, tile, &some)?.into_iter().fold(found, |worst, one| Some(worse(worst, one)));
        }
        Ok(found.unwrap_or_default())
    }

    fn is_planar(&self, place: EntryIndex) -> bool {
        self.rows[place.row].planar && self.rows[place.col].planar
    }

    /// Terms below 2 to this power are left out at first: the bound is at least `2^(s_i + s_j - b)`.
    fn floor(&self, place: EntryIndex) -> i64 {
        self.rows[place.row].scale + self.rows[place.col].scale - i64::from(self.check.precision_bits) - SPARE_BITS
    }

    /// The difference at an entry whose product `(L L^T)_ij 2^(-low_i - low_j)` is known.
    fn planar_difference(&self, tile: &Tile, place: EntryIndex, product: &Integer, floor: i64) -> EntryDifference {
        let (mut sum, mut left_out) = (Accumulator::default(), 0);
        add_own(&mut sum, &mut left_out, tile.own(place), floor);
        sum.add(product.is_positive(), product.as_limbs(), self.rows[place.row].low + self.rows[place.col].low);
        EntryDifference { sum: sum.take(), left_out }
    }

    /// The residuals of entries that are summed term by term.
    fn single_residuals(&self, ctx: &Context, tile: &Tile, places: &[EntryIndex]) -> Result<Vec<EntryResidual>> {
        let new = |&place: &EntryIndex| Single::new(place, self.floor(place), tile.own(place));
        let mut singles = places.iter().map(new).collect::<Vec<_>>();
        for depth in pieces(tile.cols.end, self.cut.depth) {
            let left = self.check.l.block(&tile.rows, &depth)?;
            let right = self.check.l.block(&tile.cols, &depth)?;
            let mut items = singles.iter_mut();
            let subtract = |_: &mut (), single: &mut Single| {
                let EntryIndex { row, col } = single.place;
                single.subtract(&left, row - tile.rows.start, &right, col - tile.cols.start);
                Ok(())
            };
            let mut locals = vec![(); ctx.threads()];
            ctx.install(|| parallel_for(&mut locals, |_| items.next(), subtract))?;
        }
        let residual = |single: &mut Single| {
            let place = single.place;
            self.residual(place, single.take(), |floor| self.alone(tile, place, floor))
        };
        singles.iter_mut().map(residual).collect()
    }

    /// The difference at one entry, from its two rows.
    fn alone(&self, tile: &Tile, place: EntryIndex, floor: i64) -> Result<EntryDifference> {
        let EntryIndex { row: i, col: j } = place;
        let mut single = Single::new(place, floor, tile.own(place));
        for depth in pieces(j + 1, self.cut.depth) {
            let (left, right) = (self.check.l.block(&(i..i + 1), &depth)?, self.check.l.block(&(j..j + 1), &depth)?);
            single.subtract(&left, 0, &right, 0);
        }
        Ok(single.take())
    }

    /// The residual of an entry by its difference above the floor; `again` computes it above another floor.
    fn residual(
        &self,
        place: EntryIndex,
        difference: EntryDifference,
        again: impl Fn(i64) -> Result<EntryDifference>,
    ) -> Result<EntryResidual> {
        let (own, other) = (&self.rows[place.row].diagonal, &self.rows[place.col].diagonal);
        let two_bits = 4 - 2 * i64::from(self.check.precision_bits);
        let exponent = own.exponent + other.exponent + two_bits;
        let bound = Dyadic { integer: Integer::from(&own.integer * &other.integer), exponent };
        let exceeds = |size: Dyadic| size.square().compare(&bound) == cmp::Ordering::Greater;
        let EntryDifference { sum, left_out } = difference;
        let ratio = sum.over_root(&bound);
        if left_out == 0 {
            return Ok(EntryResidual { ratio, fails: exceeds(sum), place });
        }
        // The neglected terms sum to less than `left_out * 2^floor`.
        let floor = self.floor(place);
        let unit = sum.exponent.min(floor);
        let size = sum.integer.abs() << (sum.exponent - unit) as u32;
        let rest = Integer::from(left_out) << (floor - unit) as u32;
        let (least, most) = ((Integer::from(&size - &rest)).max(Integer::new()), size + rest);
        let dyadic = |integer: Integer| Dyadic { integer, exponent: unit };
        let fails = match (exceeds(dyadic(least)), exceeds(dyadic(most))) {
            (true, _) => true,
            (_, false) => false,
            _ => exceeds(again(KEEP_ALL)?.sum),
        };
        Ok(EntryResidual { ratio, fails, place })
    }
}

/// `a_ij - (L L^T)_ij` but for terms below a floor.
struct EntryDifference {
    /// The terms that are not left out.
    sum: Dyadic,
    /// The number of terms that are.
    left_out: usize,
}

/// An entry that is summed term by term.
pub(super) struct Single {
    /// Its row and column.
    place: EntryIndex,
    /// Terms below `2^floor` are left out.
    floor: i64,
    sum: Accumulator,
    left_out: usize,
}

impl Single {
    /// Bytes of one, its sum included: from the floor up, and down to the lowest bit of a product above it.
    pub fn bytes(precision_bits: u32, factor_bits: u32) -> u64 {
        let span = u64::from(precision_bits) + 2 * u64::from(factor_bits) + SPARE_BITS as u64 + 128;
        size_of::<Single>() as u64 + 2 * 8 * (span / 64 * 5 / 4 + 4)
    }

    /// An entry with its own term, where that is not below the floor.
    fn new(place: EntryIndex, floor: i64, own: FloatRef<'_>) -> Single {
        let (mut sum, mut left_out) = (Accumulator::default(), 0);
        add_own(&mut sum, &mut left_out, own, floor);
        Single { place, floor, sum, left_out }
    }

    /// Subtracts the terms of some columns: the products of row `i` of `left` and row `j` of `right`, which are blocks
    /// of the factor.
    fn subtract(&mut self, left: &Matrix, i: usize, right: &Matrix, j: usize) {
        let (mut products, mut factor) = (ProductSum::default(), Integer::new());
        for k in 0..left.cols() {
            let (x, y) = (left.get(i, k), right.get(j, k));
            let (Some(one), Some(other)) = (term(x, KEEP_ALL), term(y, KEEP_ALL)) else { continue };
            if x.head.exponent() + y.head.exponent() <= self.floor {
                self.left_out += 1;
                continue;
            }
            products.set_left(one);
            factor.assign_digits(other.limbs, Order::Lsf);
            if !other.negative {
                factor = -factor;
            }
            products.add_to(&mut self.sum, &factor, one.low + other.low);
        }
    }

    /// The difference so far; the sum is 0 afterwards.
    fn take(&mut self) -> EntryDifference {
        EntryDifference { sum: self.sum.take(), left_out: self.left_out }
    }
}

/// Adds an entry of the matrix, or leaves it out.
fn add_own(sum: &mut Accumulator, left_out: &mut usize, own: FloatRef<'_>, floor: i64) {
    let Some(term) = term(own, KEEP_ALL) else { return };
    if own.head.exponent() > floor {
        sum.add(term.negative, term.limbs, term.low);
    } else {
        *left_out += 1;
    }
}

/// Sums in two's complement, the lowest word first.
pub(super) struct IntegerSums {
    rows: usize,
    width: usize,
    words: Vec<u64>,
}

impl IntegerSums {
    /// Words of a sum below `2^bits` in size.
    pub fn width(bits: i64) -> usize {
        usize::try_from(bits).map_or(1, |bits| bits / 64 + 1)
    }

    /// Sums of 0, each below `2^bits` in size at any time.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(rows: usize, cols: usize, bits: i64) -> Result<IntegerSums> {
        let width = IntegerSums::width(bits);
        Ok(IntegerSums { rows, width, words: zeroed(rows * cols * width)? })
    }

    /// Adds the integers of a matrix of the same shape, column by column on all threads of the context.
    ///
    /// # Errors
    /// The errors of [`parallel_for`].
    pub fn add(&mut self, ctx: &Context, integers: &Matrix) -> Result<()> {
        let width = self.width;
        let mut columns = self.words.chunks_exact_mut(self.rows * width).enumerate();
        let add = |_: &mut (), (col, sums): (usize, &mut [u64])| {
            let sums = sums.chunks_exact_mut(width).enumerate();
            sums.for_each(|(row, sum)| add_one(sum, integers.get(row, col)));
            Ok(())
        };
        let mut locals = vec![(); ctx.threads()];
        ctx.install(|| parallel_for(&mut locals, |_| columns.next(), add))
    }

    /// A sum.
    pub fn get(&self, row: usize, col: usize) -> Integer {
        let words = &self.words[(row + col * self.rows) * self.width..][..self.width];
        if words[self.width - 1] >> 63 == 0 {
            return Integer::from_digits(words, Order::Lsf);
        }
        // The complement of all bits is -1 less than the opposite.
        let opposite = words.iter().map(|word| !word).collect::<Vec<_>>();
        -(Integer::from_digits(&opposite, Order::Lsf) + 1u32)
    }
}

/// Adds an integer to a sum.
fn add_one(sum: &mut [u64], value: FloatRef<'_>) {
    let Some(term) = term(value, KEEP_ALL) else { return };
    // Bits below 1 are 0: they may fill a part of the lowest word that is there.
    let (word, shift) = (term.low.div_euclid(64), term.low.rem_euclid(64) as u32);
    let (mut below, mut carry) = (0u64, false);
    for at in word..sum.len() as i64 {
        let limb = usize::try_from(at - word).ok().and_then(|from| term.limbs.get(from)).copied().unwrap_or(0);
        let piece = (limb << shift) | (below >> 1 >> (63 - shift));
        below = limb;
        let Ok(at) = usize::try_from(at) else { continue };
        let change = if term.negative { u64::overflowing_sub } else { u64::overflowing_add };
        let (first, one) = change(sum[at], piece);
        let (second, other) = change(first, u64::from(carry));
        (sum[at], carry) = (second, one | other);
    }
}
