//! Integers for tests of kernels: random ones at the ends of a range, and their limbs.

use crate::kernels::tiles::{EntryForm, PanelColumn, TileEngine, TileShape};
use crate::plan::BLOCK;
use rug::integer::Order;
use rug::{Integer, rand::RandState};

/// A magnitude in `count` limbs.
pub fn limbs(value: &Integer, count: usize) -> Vec<u64> {
    let mut limbs = value.to_digits::<u64>(Order::Lsf);
    limbs.resize(count, 0);
    limbs
}

/// An integer of at most `2^bits`: at either end of the range, 0, or a random one.
pub fn integer(bits: u32, rng: &mut RandState<'_>) -> Integer {
    let value = match rng.below(6) {
        0 => Integer::new(),
        1 | 2 => Integer::from(1) << bits,
        3 => (Integer::from(1) << bits) - 1u32,
        _ => {
            let length = rng.below(bits + 1);
            Integer::from(Integer::random_bits(length, rng))
        }
    };
    if rng.below(2) == 0 { -value } else { value }
}

/// Eight numbers that fit a form: 0, the largest, powers of two and others.
pub fn eight_of(form: EntryForm, rng: &mut RandState<'_>) -> [Integer; BLOCK] {
    let bits = match form {
        EntryForm::Limbs(count) => 64 * count as u32,
        EntryForm::Digits(count) => 52 * count as u32,
    };
    std::array::from_fn(|lane| match lane {
        0 => Integer::new(),
        1 => (Integer::from(1) << bits) - 1u32,
        2 => Integer::from(1) << rng.below(bits),
        _ => Integer::from(Integer::random_bits(rng.below(bits + 1), rng)),
    })
}

/// Magnitudes in a form.
pub fn in_form(form: EntryForm, numbers: &[Integer; BLOCK]) -> Vec<u64> {
    let mut magnitudes = vec![0; form.words()];
    for (lane, number) in numbers.iter().enumerate() {
        match form {
            EntryForm::Limbs(count) => magnitudes[lane * count..][..count].copy_from_slice(&limbs(number, count)),
            EntryForm::Digits(count) => (0..count).for_each(|at| {
                let digit = Integer::from(number >> (52 * at as u32)).keep_bits(52);
                magnitudes[at * BLOCK + lane] = digit.to_u64().unwrap();
            }),
        }
    }
    magnitudes
}

/// Eight entries of a finished tile are the same as limbs and in the form that is rounded.
pub fn assert_forms_agree(engine: &dyn TileEngine, shape: TileShape, words: &[u64], at: PanelColumn) {
    let (form, each) = (engine.entry_form(), engine.entry_limbs());
    let (mut magnitudes, mut own) = (vec![7; BLOCK * each], vec![7; form.words()]);
    let signs = engine.entries(shape, words, at, &mut magnitudes);
    assert_eq!(engine.entries_in_form(shape, words, at, &mut own), signs, "{at:?}");
    let numbers = std::array::from_fn(|lane| Integer::from_digits(&magnitudes[lane * each..][..each], Order::Lsf));
    assert_eq!(own, in_form(form, &numbers), "{at:?}");
}
