//! The opening of a call over ranks: each rank checks its arguments by itself, then all compare them, in one collective
//! call. Later code may rely on it: every choice, size and scalar is the same on all ranks.
//!
//! A rank that is the only one to find something wrong takes part in the comparison nevertheless, so that none waits
//! for it.

use super::caller::{ArgumentFault, CallFailure, LocalArray};
use super::described::{DescribedMatrix, DistributionNumbers};
use super::shapes::{PARTS, RankShapes};
use crate::comm::{Transport, broadcast_bytes};
use crate::error::Error;
use rug::Float;
use std::fmt::{Debug, Display};
use xxhash_rust::xxh3::Xxh3;

/// The words in which a rank encodes its opening: the routine, what is wrong, a hash of what must be the same, whether
/// its memory is limited, and the rows and columns of its parts.
const WORDS: usize = FIRST_PART + 2 * PARTS;

/// Where they begin.
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
        let message = format!("it differs between ranks: {what} {one} on rank 0 and {two} on rank {other}");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_hashed_with_their_lengths_by_xxh3() {
        let form = [&1u64.to_le_bytes()[..], b"a", &2u64.to_le_bytes(), b"bc"].concat();
        assert_eq!(hash(["a", "bc"]), xxhash_rust::xxh3::xxh3_64(&form));
        assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
    }
}
