//! The opening of a call over ranks: each rank checks its arguments by itself, then all compare them, in one collective
//! call. Later code may rely on it: every choice, size and scalar is the same on all ranks.
//!
//! A rank that is the only one to find something wrong takes part in the comparison nevertheless, so that none waits
//! for it. Matrices are described by a rule for the rows and one for the columns, in numbers of a caller; once the call
//! is open, all ranks have the sizes of each other's parts.

use super::caller::{ArgumentFault, CallFailure, LocalArray};
use super::matrix::PlacedMatrix;
use crate::comm::{Transport, broadcast_bytes};
use crate::error::Error;
use crate::tile::{Along, Axis, Distribution, GridOrder, RankGrid};
use rug::Float;
use std::fmt::{Debug, Display};
use std::marker::PhantomData;
use xxhash_rust::xxh3::Xxh3;

/// The most matrices over ranks that a call has.
const PARTS: usize = 3;

/// The words in which a rank encodes its opening: the routine, what is wrong, a hash of what must be the same, whether
/// its memory is limited, and the rows and columns of its parts.
const WORDS: usize = FIRST_PART + 2 * PARTS;

/// The position of the first part among these words.
const FIRST_PART: usize = 4;

/// A routine: its identification, and its arguments by name.
#[derive(Clone, Copy, Debug)]
pub struct Routine<'n> {
    /// Its identification.
    pub name: &'n str,
    /// Its arguments in their order.
    pub arguments: &'n [&'static str],
}

impl Routine<'_> {
    /// A number for the argument that is at fault, and its entry; the last number where it is none of these.
    fn number(&self, failure: &impl CallFailure) -> u64 {
        let position = self.arguments.iter().position(|name| Some(*name) == failure.argument());
        let entry = failure.entry().unwrap_or(0);
        position.map_or(u64::from(u32::MAX), |at| ((at + 1) * 100 + entry) as u64)
    }
}

/// One rank's record of the arguments of a call.
pub struct Opening<'a> {
    world: &'a dyn Transport,
    values: Vec<SharedValue>,
    parts: Vec<[usize; 2]>,
}

/// A value that must be the same on all ranks.
struct SharedValue {
    argument: &'static str,
    entry: Option<usize>,
    /// The number of the value among those of the argument.
    what: String,
    /// The value, for messages.
    shown: String,
    /// The value without loss, where `shown` is shortened.
    exact: String,
}

/// XXH3 of texts, each behind its length as eight bytes, lowest first: the same in every build of the library.
fn hash<'t>(texts: impl IntoIterator<Item = &'t str>) -> u64 {
    let mut hash = Xxh3::new();
    for text in texts {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.digest()
}

impl<'a> Opening<'a> {
    /// The record of a call without arguments so far.
    pub fn new(world: &'a dyn Transport) -> Opening<'a> {
        Opening { world, values: Vec::new(), parts: Vec::new() }
    }

    /// This rank's number.
    pub fn rank(&self) -> usize {
        self.world.rank()
    }

    /// Records a value of an argument; `what` begins the sentence that ends with the value.
    pub fn say(&mut self, argument: &'static str, what: &str, value: impl Display) {
        self.say_of_entry(argument, None, what, value);
    }

    /// Records a value of an entry of an argument, counted from 1.
    pub fn say_of_entry(&mut self, argument: &'static str, entry: Option<usize>, what: &str, value: impl Display) {
        let shown = value.to_string();
        self.values.push(SharedValue { argument, entry, what: what.into(), exact: String::new(), shown });
    }

    /// An argument that must be the same on all ranks: an enumeration without fields, whose `Debug` text is its name.
    /// Exactly the values shown in messages are compared, so every difference is reported.
    pub fn choice<T: Debug>(&mut self, name: &'static str, value: T) -> T {
        self.say(name, "it is", format!("{value:?}"));
        value
    }

    /// A scalar by its value, with the fewest bits that represent it: its stored precision may differ between ranks.
    pub fn number(&mut self, name: &'static str, number: Option<Float>) -> Option<Float> {
        let number = number.map(shortest);
        let (shown, exact) = match &number {
            None => ("null".into(), "null".into()),
            Some(number) => (number.to_string_radix(10, Some(17)), number.to_string_radix(16, None)),
        };
        self.values.push(SharedValue { argument: name, entry: None, what: "it is".into(), shown, exact });
        number
    }

    /// A matrix over ranks; [`DescribedMatrix::place`] makes an operand of it.
    ///
    /// # Errors
    /// A number of the description that is out of range; more matrices than a call can have.
    pub fn matrix<A: LocalArray, F: CallFailure>(
        &mut self,
        local: A,
        numbers: &DistributionNumbers,
    ) -> Result<DescribedMatrix<A, F>, F> {
        if self.parts.len() == PARTS {
            let error = Error::InvalidArgument(format!("a call over ranks has at most {PARTS} matrices"));
            return Err(error.into());
        }
        let part = [local.rows(), local.cols()];
        let described = DescribedMatrix::<A, F>::new(local, numbers, self.parts.len())?;
        self.parts.push(part);
        Ok(described)
    }

    /// The result of this rank's checks, if they succeeded on all ranks with the same values; otherwise, on every rank,
    /// the first argument that is wrong on some rank, or that differs. `limited` is whether this rank has a memory
    /// limit. Collective.
    ///
    /// Cost: ten words of each rank travel to all; texts only where something is wrong or differs.
    /// Source: docs/decisions/078-one-opening-for-calls-over-ranks.md.
    ///
    /// # Errors
    /// The common failure of all ranks.
    pub fn agreed<T, F: CallFailure>(
        self,
        routine: Routine<'_>,
        limited: bool,
        own: Result<T, F>,
    ) -> Result<(T, RankShapes), F> {
        let Routine { name, arguments } = routine;
        let (world, size) = (self.world, self.world.size());
        let wrong = own.as_ref().err().map_or(0, |failure| routine.number(failure));
        let mut words = [0; WORDS];
        let values = self.values.iter().flat_map(|value| [value.argument, &value.shown, &value.exact]);
        [words[0], words[1], words[2]] =
            [hash(std::iter::once(name).chain(arguments.iter().copied())), wrong, hash(values)];
        words[3] = u64::from(limited);
        for (word, count) in words[FIRST_PART..].iter_mut().zip(self.parts.iter().flatten()) {
            *word = *count as u64;
        }
        let mut all = vec![0; WORDS * size];
        world.all_gather(&words, &mut all)?;
        let of = |rank: usize, word: usize| all[WORDS * rank + word];
        if (0..size).any(|rank| of(rank, 0) != of(0, 0)) {
            return Err(F::different("the ranks call different routines"));
        }
        if let Some(first) = (0..size).filter(|&rank| of(rank, 1) != 0).min_by_key(|&rank| of(rank, 1)) {
            let own = own.err().filter(|_| wrong == of(first, 1));
            return Err(failure_of::<F>(world, first, own, routine, of(first, 1))?);
        }
        if let Some(other) = (1..size).find(|&rank| of(rank, 2) != of(0, 2)) {
            return Err(self.difference::<F>(other)?);
        }
        let part = |rank: usize, at: usize| [0, 1].map(|which| of(rank, FIRST_PART + 2 * at + which) as usize);
        let shapes = (0..size).map(|rank| std::array::from_fn(|at| part(rank, at))).collect();
        Ok((own?, RankShapes::new(shapes, (0..size).any(|rank| of(rank, 3) != 0))))
    }

    /// The first value that rank 0 and another one do not agree on. Collective.
    fn difference<F: CallFailure>(&self, other: usize) -> Result<F, F> {
        let line = |value: &SharedValue| format!("{}\t{}", value.shown, value.exact);
        let own = self.values.iter().map(line).collect::<Vec<_>>().join("\n");
        let mut lists = Vec::new();
        for root in [0, other] {
            lists.push(String::from_utf8_lossy(&broadcast_bytes(self.world, root, own.as_bytes())?).into_owned());
        }
        let mut pairs = lists[0].lines().zip(lists[1].lines());
        let found = pairs.position(|(one, two)| one != two).and_then(|at| Some((self.values.get(at)?, at)));
        let Some((SharedValue { argument, entry, what, .. }, at)) = found else {
            return Ok(F::different("the ranks have different arguments"));
        };
        let [one, two] = [0, 1].map(|list: usize| {
            let line = lists[list].lines().nth(at).unwrap_or_default();
            line.split_once('\t').unwrap_or((line, ""))
        });
        // Where the short forms are the same, the long ones decide.
        let (one, two) = if one.0 == two.0 { (one.1, two.1) } else { (one.0, two.0) };
        let message = format!("the argument differs between ranks: {what} {one} on rank 0 and {two} on rank {other}");
        Ok(F::refused(argument, ArgumentFault::Value, message).with_entry(*entry))
    }
}

/// The failure on rank `first`, whose argument has this number: `own`, where this rank has found the same, else the
/// record of that rank. Collective.
fn failure_of<F: CallFailure>(
    world: &dyn Transport,
    first: usize,
    own: Option<F>,
    routine: Routine<'_>,
    number: u64,
) -> Result<F, F> {
    let message = own.as_ref().map_or("", |failure| failure.message());
    let message = broadcast_bytes(world, first, message.as_bytes())?;
    if let Some(own) = own {
        return Ok(own);
    }
    let text = format!("rank {first}: {}", String::from_utf8_lossy(&message));
    let argument = routine.arguments.get((number as usize / 100).wrapping_sub(1)).copied();
    let entry = Some(number as usize % 100).filter(|&entry| entry > 0 && argument.is_some());
    Ok(F::elsewhere(text, argument, entry))
}

/// A number in as few bits as it has.
fn shortest(number: Float) -> Float {
    let Some((integer, _)) = number.to_integer_exp().filter(|(integer, _)| !integer.is_zero()) else {
        return if number.is_zero() { Float::new(2) } else { number };
    };
    let bits = integer.significant_bits() - integer.find_one(0).unwrap_or(0);
    Float::with_val(bits.max(2), &number)
}

/// Sizes of the parts of all ranks, and whether memory is limited.
#[derive(Clone, Debug)]
pub struct RankShapes {
    shapes: Vec<[[usize; 2]; PARTS]>,
    limited: bool,
}

impl RankShapes {
    /// Rows and columns of each rank's part of each matrix; whether any rank has a memory limit.
    fn new(shapes: Vec<[[usize; 2]; PARTS]>, limited: bool) -> RankShapes {
        RankShapes { shapes, limited }
    }

    /// The number of ranks.
    fn ranks(&self) -> usize {
        self.shapes.len()
    }

    /// Whether any of them has a memory limit.
    pub fn limited(&self) -> bool {
        self.limited
    }

    /// Rows and columns of a rank's part of the matrix with number `at` among the arguments.
    fn of(&self, rank: usize, at: usize) -> [usize; 2] {
        self.shapes[rank][at]
    }
}

/// A distribution in a caller's description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DistributionNumbers {
    /// Rows of the matrix, or -1 for their sum over the ranks.
    pub rows: i64,
    /// Columns of the matrix, or -1 for their sum over the ranks.
    pub cols: i64,
    /// Rows of the grid of ranks.
    pub grid_rows: i64,
    /// Columns of the grid of ranks.
    pub grid_cols: i64,
    /// The order of the ranks in the grid.
    pub order: GridOrder,
    /// The coordinate of the ranks over which the rows are distributed; `None` if every rank has all rows.
    pub row_along: Option<Along>,
    /// The coordinate of the ranks over which the columns are distributed; `None` if every rank has all columns.
    pub col_along: Option<Along>,
    /// Rows of a block of the distribution; 0 for consecutive rows.
    pub row_block: i64,
    /// Columns of a block of the distribution; 0 for consecutive columns.
    pub col_block: i64,
    /// The coordinate of the ranks that have the first row.
    pub row_first: i64,
    /// The coordinate of the ranks that have the first column.
    pub col_first: i64,
}

/// A rule for the rows or the columns of a matrix.
#[derive(Clone, Copy)]
struct AxisRule {
    length: i64,
    along: Option<Along>,
    block: usize,
    first: usize,
}

/// A described matrix, before the ranks have exchanged the sizes of their parts.
pub struct DescribedMatrix<A, F> {
    local: A,
    /// The number of the matrix among those of the call.
    at: usize,
    grid: RankGrid,
    order: GridOrder,
    row_rule: AxisRule,
    col_rule: AxisRule,
    failure: PhantomData<F>,
}

impl<A: LocalArray, F: CallFailure> DescribedMatrix<A, F> {
    /// The matrix that is the `at`-th of its call.
    ///
    /// # Errors
    /// A number that is out of range.
    fn new(local: A, numbers: &DistributionNumbers, at: usize) -> Result<DescribedMatrix<A, F>, F> {
        let name = local.name();
        let count = |value: i64, what: &str| {
            let message = || format!("{what} = {value} is out of range; choose 0 to {}", u32::MAX);
            let found = usize::try_from(value).ok().filter(|&value| value <= u32::MAX as usize);
            found.ok_or_else(|| F::refused(name, ArgumentFault::Value, message()))
        };
        let grid =
            RankGrid { rows: count(numbers.grid_rows, "grid_rows")?, cols: count(numbers.grid_cols, "grid_cols")? };
        let row_rule = AxisRule {
            length: numbers.rows,
            along: numbers.row_along,
            block: count(numbers.row_block, "row_block")?,
            first: count(numbers.row_first, "row_first")?,
        };
        let col_rule = AxisRule {
            length: numbers.cols,
            along: numbers.col_along,
            block: count(numbers.col_block, "col_block")?,
            first: count(numbers.col_first, "col_first")?,
        };
        Ok(DescribedMatrix { local, at, grid, order: numbers.order, row_rule, col_rule, failure: PhantomData })
    }

    /// The matrix with its distribution, after a check that its description is the same on all ranks and fits the parts
    /// of all ranks: every rank returns the same result.
    ///
    /// Cost: a few words for each rank, without communication. Source: docs/decisions/090-plans-from-descriptions.md.
    ///
    /// # Errors
    /// Numbers that are not a distribution, and parts whose shapes differ from it.
    pub fn place(self, shapes: &RankShapes) -> Result<PlacedMatrix<A>, F> {
        let (rows, row_axis) = self.axis(self.row_rule, 0, shapes)?;
        let (cols, col_axis) = self.axis(self.col_rule, 1, shapes)?;
        let DescribedMatrix { local, at, grid, order, .. } = self;
        let distribution = Distribution { rows, cols, grid, order, row_axis, col_axis };
        distribution.check(shapes.ranks()).map_err(|error| F::about(local.name(), error))?;
        for rank in 0..shapes.ranks() {
            let ([has_rows, has_cols], (rows, cols)) = (shapes.of(rank, at), distribution.local_shape(rank));
            if (has_rows, has_cols) != (rows, cols) {
                let own = format!("the distribution assigns {rows} x {cols} entries to it");
                let message = format!("rank {rank} has {has_rows} x {has_cols} entries, but {own}");
                return Err(F::refused(local.name(), ArgumentFault::Size, message));
            }
        }
        Ok(PlacedMatrix { local, distribution })
    }

    /// The length of the matrix along its rows (0) or columns (1), and which rank has which part of it.
    fn axis(&self, rule: AxisRule, which: usize, shapes: &RankShapes) -> Result<(usize, Axis), F> {
        let AxisRule { length, along, block, first } = rule;
        let refuse = |message| Err(F::refused(self.local.name(), ArgumentFault::Size, message));
        let what = ["rows", "columns"][which];
        if length < -1 {
            return refuse(format!(
                "{length} {what} are not valid; pass the number of {what}, or -1 for the sum over the ranks"
            ));
        }
        let known = usize::try_from(length).ok();
        match (along, known) {
            (None, known) => Ok((known.unwrap_or_else(|| shapes.of(0, self.at)[which]), Axis::Whole)),
            (Some(along), _) if block == 0 && self.grid.size() <= shapes.ranks() => {
                let starts = self.starts(along, which, shapes)?;
                let sum = starts.last().copied().unwrap_or(0);
                match known {
                    Some(known) if known != sum => {
                        refuse(format!("the ranks have {sum} {what} together, but the matrix has {known}"))
                    }
                    _ => Ok((sum, Axis::Consecutive { starts, along })),
                }
            }
            (Some(along), Some(known)) => Ok((known, Axis::Cyclic { block, first, offset: 0, along })),
            (Some(_), None) => refuse(format!("{length} as the number of {what} is only valid with a block size of 0")),
        }
    }

    /// Where the consecutive rows or columns of each number begin, and where the last ends.
    fn starts(&self, along: Along, which: usize, shapes: &RankShapes) -> Result<Vec<usize>, F> {
        let refuse = |message| Err(F::refused(self.local.name(), ArgumentFault::Size, message));
        let what = ["rows", "columns"][which];
        // The numbers of the ranks, from a matrix of one row.
        let deal = Distribution::entry_cyclic((1, 1), (self.grid, self.order), (Some(along), None), (0, 0));
        let most = (0..self.grid.size()).filter_map(|rank| deal.numbers(rank)).map(|(at, _)| at + 1).max();
        let mut counts = vec![None; most.unwrap_or(0)];
        for rank in 0..self.grid.size() {
            let Some((at, _)) = deal.numbers(rank) else { continue };
            let own = shapes.of(rank, self.at)[which];
            match counts[at] {
                Some(count) if count != own => {
                    return refuse(format!(
                        "ranks with the same grid coordinate have {count} and {own} {what}, but must have equal numbers"
                    ));
                }
                _ => counts[at] = Some(own),
            }
        }
        let (mut starts, mut sum) = (vec![0], 0_usize);
        for count in counts {
            let Some(next) = sum.checked_add(count.unwrap_or(0)) else {
                return refuse(format!("the sum of the {what} over the ranks is too large"));
            };
            sum = next;
            starts.push(sum);
        }
        Ok(starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
    use crate::matrix::MatrixViewMut;

    /// An array of one entry.
    struct OneEntry;

    impl LocalArray for OneEntry {
        fn name(&self) -> &'static str {
            "a"
        }

        fn rows(&self) -> usize {
            1
        }

        fn cols(&self) -> usize {
            1
        }

        fn transposed(self) -> Self {
            self
        }

        fn is_in_place(&self) -> bool {
            true
        }

        fn has_place_for(&self, _precision_bits: u32) -> bool {
            false
        }

        fn place_for(&mut self, _precision_bits: u32) -> Option<MatrixViewMut<'_>> {
            None
        }
    }

    /// A failure by its message.
    #[derive(Debug)]
    struct PlainFailure(String);

    impl From<Error> for PlainFailure {
        fn from(error: Error) -> PlainFailure {
            PlainFailure(error.to_string())
        }
    }

    impl CallFailure for PlainFailure {
        fn about(argument: &'static str, error: Error) -> PlainFailure {
            PlainFailure(format!("{argument}: {error}"))
        }

        fn refused(argument: &'static str, _why: ArgumentFault, message: String) -> PlainFailure {
            PlainFailure(format!("{argument}: {message}"))
        }

        fn elsewhere(message: String, _argument: Option<&'static str>, _entry: Option<usize>) -> PlainFailure {
            PlainFailure(message)
        }

        fn different(message: &str) -> PlainFailure {
            PlainFailure(message.into())
        }

        fn defect(message: String) -> PlainFailure {
            PlainFailure(message)
        }

        fn with_entry(self, _entry: Option<usize>) -> PlainFailure {
            self
        }

        fn message(&self) -> &str {
            &self.0
        }

        fn argument(&self) -> Option<&'static str> {
            None
        }

        fn entry(&self) -> Option<usize> {
            None
        }
    }

    #[test]
    fn more_matrices_than_a_call_has_are_refused_and_not_recorded() {
        let whole = DistributionNumbers {
            rows: 1,
            cols: 1,
            grid_rows: 1,
            grid_cols: 1,
            order: GridOrder::RowMajor,
            row_along: None,
            col_along: None,
            row_block: 0,
            col_block: 0,
            row_first: 0,
            col_first: 0,
        };
        let mut open = Opening::new(local::alone());
        for _ in 0..PARTS {
            assert!(open.matrix::<_, PlainFailure>(OneEntry, &whole).is_ok());
        }
        let Err(refused) = open.matrix::<_, PlainFailure>(OneEntry, &whole) else { panic!("one more than a call has") };
        assert!(refused.message().contains("a call over ranks has at most 3 matrices"), "{refused:?}");
        assert_eq!(open.parts, [[1, 1]; PARTS]);
        // Those before it are an opening that all ranks agree on.
        let routine = Routine { name: "one", arguments: &["a"] };
        let ((), shapes) = open.agreed::<_, PlainFailure>(routine, false, Ok(())).unwrap();
        assert_eq!((shapes.ranks(), shapes.of(0, PARTS - 1), shapes.limited()), (1, [1, 1], false));
    }

    #[test]
    fn texts_are_hashed_with_their_lengths_by_xxh3() {
        let form = [&1u64.to_le_bytes()[..], b"a", &2u64.to_le_bytes(), b"bc"].concat();
        assert_eq!(hash(["a", "bc"]), xxhash_rust::xxh3::xxh3_64(&form));
        assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
    }
}
