//! The opening of a call over ranks: each rank checks its arguments by itself, then all compare them, in one collective
//! call. Later code may rely on it: every choice, size and scalar is the same on all ranks.
//!
//! A rank that is the only one to find something wrong takes part in the comparison nevertheless, so that none waits
//! for it.

use super::matrix::Told;
use super::parts::{PARTS, Parts};
use crate::api::products::Terms;
use crate::api::{lapack::position_of, products::terms_of, scalar, symmetric_of};
use crate::array::invalid;
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_dist_matrix, sunzi_matrix, sunzi_status};
use rug::Float;
use std::fmt::{Debug, Display};
use sunzi::Uplo;
use sunzi::comm::{Transport, broadcast_bytes};
use xxhash_rust::xxh3::Xxh3;

/// The words in which a rank encodes its opening: the routine, what is wrong, a hash of what must be the same, whether
/// its memory is limited, and the rows and columns of its parts.
const WORDS: usize = FIRST_PART + 2 * PARTS;

/// Where they begin.
const FIRST_PART: usize = 4;

/// A routine: its identification, and its arguments by their names in the header.
#[derive(Clone, Copy)]
pub(crate) struct Routine<'n> {
    pub name: &'n str,
    pub arguments: &'n [&'static str],
}

/// One rank's record of the arguments of a call.
pub(crate) struct Opening<'a> {
    pub call: &'a Call<'a>,
    world: &'a dyn Transport,
    said: Vec<Said>,
    parts: Vec<[usize; 2]>,
}

/// A value that must be the same on all ranks.
struct Said {
    argument: &'static str,
    entry: Option<usize>,
    /// Which of the argument's values it is.
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
    pub fn new(call: &'a Call<'a>, world: &'a dyn Transport) -> Opening<'a> {
        let mut opening = Opening { call, world, said: Vec::new(), parts: Vec::new() };
        // Options of the context, not arguments: they have no numbers.
        opening.say("accuracy", "it is", format!("{:?}", call.accuracy()));
        opening.say("devices", "there are", if call.has_devices() { "some" } else { "none" });
        opening
    }

    /// This rank's number.
    pub fn rank(&self) -> usize {
        self.world.rank()
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.world.size()
    }

    /// Records a value of an argument; `what` begins the sentence that ends with the value.
    pub fn say(&mut self, argument: &'static str, what: &str, value: impl Display) {
        let shown = value.to_string();
        self.said.push(Said { argument, entry: None, what: what.into(), exact: String::new(), shown });
    }

    /// [`Opening::say`] of an entry of a descriptor, from 1.
    pub fn say_entry(&mut self, argument: &'static str, entry: usize, what: &str, value: impl Display) {
        let shown = value.to_string();
        self.said.push(Said { argument, entry: Some(entry), what: what.into(), exact: String::new(), shown });
    }

    /// An argument that must be the same on all ranks, where it is one at all: a name without fields, whose `Debug` is
    /// that name. The compared values are those that a message shows, so every difference is reported.
    pub fn choice<T: Debug>(&mut self, name: &'static str, value: Outcome<T>) -> Outcome<T> {
        let value = value?;
        self.say(name, "it is", format!("{value:?}"));
        Ok(value)
    }

    /// The triangle of a symmetric matrix that counts; `None` for both.
    pub fn symmetric(&mut self, uplo: i32) -> Outcome<Option<Uplo>> {
        let found = symmetric_of(uplo)?;
        self.say("uplo", "it is", found.map_or("both triangles".into(), |uplo| format!("{uplo:?}")));
        Ok(found)
    }

    /// A scalar by its value, in as few bits as that has: its stored precision need not be the same on all ranks.
    pub fn number(&mut self, name: &'static str, number: Option<Float>) -> Option<Float> {
        let number = number.map(shortest);
        let (shown, exact) = match &number {
            None => ("null".into(), "null".into()),
            Some(number) => (number.to_string_radix(10, Some(17)), number.to_string_radix(16, None)),
        };
        self.said.push(Said { argument: name, entry: None, what: "it is".into(), shown, exact });
        number
    }

    /// A scalar that may be null.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn scalar(&mut self, name: &'static str, number: *const sunzi_matrix) -> Outcome<Option<Float>> {
        // SAFETY: by contract.
        let number = unsafe { scalar(self.call, name, number) }?;
        Ok(self.number(name, number))
    }

    /// The scalars of a product.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn terms(&mut self, alpha: *const sunzi_matrix, beta: *const sunzi_matrix) -> Outcome<Terms> {
        // SAFETY: by contract.
        let Terms { alpha, beta } = unsafe { terms_of(self.call, alpha, beta) }?;
        Ok(Terms { alpha: self.number("alpha", alpha), beta: self.number("beta", beta) })
    }

    /// A matrix over ranks; [`Told::place`] makes an operand of it.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn matrix(&mut self, name: &'static str, matrix: *const sunzi_dist_matrix) -> Outcome<Told> {
        // SAFETY: by contract.
        let told = unsafe { Told::new(name, matrix, self.parts.len()) }?;
        self.parts.push([told.local.rows(), told.local.cols()]);
        for (what, number) in told.numbers {
            self.say(name, what, number);
        }
        Ok(told)
    }

    /// The result of this rank's checks, where they succeeded on all ranks with the same values; else, on every rank,
    /// the first argument that is wrong on any, or that differs. Collective.
    pub fn agreed<T>(self, routine: Routine<'_>, own: Outcome<T>) -> Outcome<(T, Parts)> {
        let Routine { name, arguments } = routine;
        let (world, size) = (self.world, self.world.size());
        let number = |failure: &Failure| {
            let last = u64::from(u32::MAX);
            position_of(arguments, failure).map_or(last, |(at, entry)| (at * 100 + entry.unwrap_or(0)) as u64)
        };
        let wrong = own.as_ref().err().map_or(0, number);
        let mut words = [0; WORDS];
        let values = self.said.iter().flat_map(|said| [said.argument, &said.shown, &said.exact]);
        let routine = std::iter::once(name).chain(arguments.iter().copied());
        [words[0], words[1], words[2]] = [hash(routine), wrong, hash(values)];
        words[3] = u64::from(self.call.limit_bytes().is_some());
        for (word, count) in words[FIRST_PART..].iter_mut().zip(self.parts.iter().flatten()) {
            *word = *count as u64;
        }
        let mut all = vec![0; WORDS * size];
        world.all_gather(&words, &mut all)?;
        let of = |rank: usize, word: usize| all[WORDS * rank + word];
        if (0..size).any(|rank| of(rank, 0) != of(0, 0)) {
            return Err(Failure::new(sunzi_status::SUNZI_INVALID_ARGUMENT, "the ranks call different routines"));
        }
        if let Some(first) = (0..size).filter(|&rank| of(rank, 1) != 0).min_by_key(|&rank| of(rank, 1)) {
            return Err(told_by(world, first, own.err().filter(|_| wrong == of(first, 1)), arguments, of(first, 1))?);
        }
        if let Some(other) = (1..size).find(|&rank| of(rank, 2) != of(0, 2)) {
            return Err(self.difference(other)?);
        }
        let part = |rank: usize, at: usize| [0, 1].map(|which| of(rank, FIRST_PART + 2 * at + which) as usize);
        let shapes = (0..size).map(|rank| std::array::from_fn(|at| part(rank, at))).collect();
        Ok((own?, Parts::new(shapes, (0..size).any(|rank| of(rank, 3) != 0))))
    }

    /// The first value that rank 0 and another one do not agree on. Collective.
    fn difference(&self, other: usize) -> Outcome<Failure> {
        let line = |said: &Said| format!("{}\t{}", said.shown, said.exact);
        let own = self.said.iter().map(line).collect::<Vec<_>>().join("\n");
        let mut lists = Vec::new();
        for root in [0, other] {
            lists.push(String::from_utf8_lossy(&broadcast_bytes(self.world, root, own.as_bytes())?).into_owned());
        }
        let mut pairs = lists[0].lines().zip(lists[1].lines());
        let found = pairs.position(|(one, two)| one != two).and_then(|at| Some((self.said.get(at)?, at)));
        let Some((Said { argument, entry, what, .. }, at)) = found else {
            return Ok(Failure::new(sunzi_status::SUNZI_INVALID_ARGUMENT, "the ranks have different arguments"));
        };
        let [one, two] = [0, 1].map(|list: usize| {
            let line = lists[list].lines().nth(at).unwrap_or_default();
            line.split_once('\t').unwrap_or((line, ""))
        });
        // Where the short forms are the same, the long ones decide.
        let (one, two) = if one.0 == two.0 { (one.1, two.1) } else { (one.0, two.0) };
        let message = format!("it differs between ranks: {what} {one} on rank 0 and {two} on rank {other}");
        Ok(Failure { entry: *entry, ..invalid(argument, message) })
    }
}

/// The failure on rank `first`: `own`, where this rank has found the same, else the record of that rank. Collective.
fn told_by(
    world: &dyn Transport,
    first: usize,
    own: Option<Failure>,
    arguments: &[&'static str],
    number: u64,
) -> Outcome<Failure> {
    let message = own.as_ref().map_or("", |failure| &failure.message);
    let message = broadcast_bytes(world, first, message.as_bytes())?;
    if let Some(own) = own {
        return Ok(own);
    }
    let text = format!("rank {first}: {}", String::from_utf8_lossy(&message));
    let argument = arguments.get((number as usize / 100).wrapping_sub(1)).copied();
    let entry = Some(number as usize % 100).filter(|&entry| entry > 0 && argument.is_some());
    Ok(Failure { argument, entry, ..Failure::new(sunzi_status::SUNZI_COMMUNICATION, text) })
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
