//! Values that must be equal on all ranks: each adds its fields to a hash, which ranks compare.
//!
//! The byte form is defined here and does not depend on texts for people: a number is its eight bytes, lowest first, a
//! text or a list begins with its length, and an optional value with whether it is present. A structure names all of
//! its fields, also those that each rank may choose for itself, so that a new field does not compile until it is in a
//! list.

use rug::Float;
use xxhash_rust::xxh3::Xxh3;

/// The hash of the values that a rank has added so far.
pub(crate) struct Said(Xxh3);

impl Said {
    /// The hash of all fields of `value`.
    pub fn hash(value: &(impl Say + ?Sized)) -> u64 {
        let mut said = Said(Xxh3::new());
        value.say(&mut said);
        said.0.digest()
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    /// Adds some bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }
}

/// A value that ranks compare.
pub(crate) trait Say {
    /// Adds all of the value: values that add the same bytes count as equal on all ranks.
    fn say(&self, said: &mut Said);
}

impl<T: Say + ?Sized> Say for &T {
    fn say(&self, said: &mut Said) {
        (**self).say(said);
    }
}

impl Say for str {
    fn say(&self, said: &mut Said) {
        said.bytes(self.as_bytes());
    }
}

impl Say for String {
    fn say(&self, said: &mut Said) {
        said.bytes(self.as_bytes());
    }
}

/// A number by its value and its precision.
impl Say for Float {
    fn say(&self, said: &mut Said) {
        (self.prec(), self.to_string_radix(16, None)).say(said);
    }
}

/// A double by its bits.
impl Say for f64 {
    fn say(&self, said: &mut Said) {
        said.number(self.to_bits());
    }
}

impl<T: Say> Say for Option<T> {
    fn say(&self, said: &mut Said) {
        said.number(self.is_some().into());
        if let Some(value) = self {
            value.say(said);
        }
    }
}

impl<T: Say> Say for [T] {
    fn say(&self, said: &mut Said) {
        said.number(self.len() as u64);
        self.iter().for_each(|value| value.say(said));
    }
}

impl<T: Say> Say for Vec<T> {
    fn say(&self, said: &mut Said) {
        self.as_slice().say(said);
    }
}

impl<T: Say, const N: usize> Say for [T; N] {
    fn say(&self, said: &mut Said) {
        self.as_slice().say(said);
    }
}

/// Types that a cast turns into numbers, different values into different ones: integers and enums without fields.
macro_rules! say_as_number {
    ($($type:ty),* $(,)?) => { $(
        impl $crate::comm::Say for $type {
            fn say(&self, said: &mut $crate::comm::Said) {
                said.number(*self as u64);
            }
        }
    )* };
}

/// Implements `Say` for structures: first the fields that must be equal on all ranks, then those that may differ
/// (`apart`). Both lists together are all fields.
macro_rules! say_fields {
    ($type:ty { $($field:ident),* $(,)? } $(apart { $($own:ident),* $(,)? })?) => {
        impl $crate::comm::Say for $type {
            fn say(&self, said: &mut $crate::comm::Said) {
                let Self { $($field,)* $($($own: _,)*)? } = self;
                $($crate::comm::Say::say($field, said);)*
            }
        }
    };
}

pub(crate) use {say_as_number, say_fields};

say_as_number!(bool, u32, usize, i64);

impl Say for u64 {
    fn say(&self, said: &mut Said) {
        said.number(*self);
    }
}

macro_rules! say_tuples {
    ($($($name:ident)+;)*) => { $(
        impl<$($name: Say),+> Say for ($($name,)+) {
            fn say(&self, said: &mut Said) {
                #[allow(non_snake_case, reason = "a value has the name of its type")]
                let ($($name,)+) = self;
                $($name.say(said);)+
            }
        }
    )* };
}

say_tuples! { A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; }

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    struct Options {
        rows: usize,
        name: Option<&'static str>,
        spans: bool,
    }

    say_fields! { Options { rows, name } apart { spans } }

    #[test]
    fn the_hash_is_xxh3_of_the_stated_form() {
        let options = Options { rows: 3, name: Some("ab"), spans: true };
        let form = [&3u64.to_le_bytes()[..], &1u64.to_le_bytes(), &2u64.to_le_bytes(), b"ab"].concat();
        assert_eq!(Said::hash(&options), xxhash_rust::xxh3::xxh3_64(&form));
        let others = [Options { spans: false, ..options }, Options { rows: 4, ..options }];
        assert_eq!(
            others.map(|other| (other.spans, Said::hash(&other) == Said::hash(&options))),
            [(false, true), (true, false)]
        );
    }

    #[test]
    fn what_differs_is_said_in_other_words() {
        let lists: [&[&str]; 6] = [&[], &[""], &["", ""], &["ab"], &["a", "b"], &["b", "a"]];
        let mut hashes = lists.iter().map(|list| Said::hash(*list)).collect::<HashSet<_>>();
        hashes.extend([None, Some(0u64), Some(1)].map(|number| Said::hash(&(number, "number"))));
        hashes.extend([(0.0, false), (-0.0, false), (0.0, true)].map(|pair| Said::hash(&pair)));
        assert_eq!(hashes.len(), 12);
    }
}
