//! Numbers as they may be written, against MPFR.

use super::*;
use crate::math::float::FloatRef;
use rug::rand::RandState;

fn generator(seed: u32) -> RandState<'static> {
    let mut rng = RandState::new();
    rng.seed(&Integer::from(seed));
    rng
}

/// The value of `word` read at `bits`, and its number.
fn value(reader: &mut NumberReader, word: &str) -> Result<(Float, Number), Refusal> {
    let number = reader.read(word.as_bytes(), Field::Real)?;
    let mut limbs = vec![0xdead; limbs_for(number.bits) + 1];
    let head = reader.store(number, &mut limbs)?;
    assert_eq!(limbs[0], 0, "{word}: the limb below the significand is cleared");
    Ok((FloatRef { head, limbs: &limbs }.to_float(number.bits), number))
}

fn decimal(bits: u32, word: &str) -> Float {
    let (value, number) = value(&mut NumberReader::new(bits), word).unwrap();
    assert!(!number.exact && number.bits == bits, "{word}");
    value
}

fn oracle(bits: u32, word: &str) -> Float {
    Float::with_val(bits, Float::parse(word.replace(['d', 'D'], "e")).unwrap())
}

#[test]
fn decimals_round_as_mpfr_does() {
    let mut rng = generator(5);
    for case in 0..6000 {
        let bits = 2 + rng.below(if case % 7 == 0 { 1500 } else { 200 });
        let digits = 1 + rng.below(if case % 11 == 0 { 2500 } else { 80 });
        let mut word: String = (0..digits).map(|_| char::from(b'0' + rng.below(10) as u8)).collect();
        if case % 4 != 0 {
            word.insert(rng.below(digits) as usize, '.');
        }
        if case % 3 != 0 || !word.contains('.') {
            let exponent = match case % 5 {
                0 => rng.below(120_000) as i64 - 60_000,
                1 => rng.below(8400) as i64 - 4200,
                _ => rng.below(120) as i64 - 60,
            };
            word += &format!("{}{exponent}", ['e', 'E', 'd', 'D'][case % 4]);
        }
        if case % 2 == 0 {
            word.insert(0, '-');
        }
        assert_eq!(decimal(bits, &word), oracle(bits, &word), "{bits} bits: {word}");
    }
}

#[test]
fn exact_ties_go_to_even_and_their_neighbours_away() {
    let mut rng = generator(6);
    for case in 0..2000u32 {
        let bits = 2 + rng.below(150);
        let odd = Integer::from(Integer::random_bits(bits, &mut rng)) * 2u32 + 1u32;
        let tie: Integer = odd + (Integer::from(1) << (bits + 1)); // bits + 2 significant bits at most, odd
        let shift = rng.below(160) as i32 - 80;
        // The tie as a decimal, exactly: 2^-k = 5^k 10^-k.
        let (digits, exponent) = if shift >= 0 {
            ((tie.clone() << shift).to_string(), 0)
        } else {
            ((tie.clone() * Integer::from(Integer::u_pow_u(5, shift.unsigned_abs()))).to_string(), shift)
        };
        for (tail, nudge) in [("", 0), ("000000000000000000000000000000000001", 1)] {
            let word = format!("{digits}{tail}e{}", exponent - tail.len() as i32);
            let exact: Integer = (tie.clone() << 4) + nudge;
            let mut want = Float::with_val(bits, &exact);
            want <<= shift - 4;
            assert_eq!(decimal(bits, &word), want, "case {case}, {bits} bits: {word}");
            assert_eq!(want, oracle(bits, &word));
        }
    }
    assert_eq!(decimal(2, "2.5"), 2);
    assert_eq!(decimal(2, "3.5"), 4);
    assert_eq!(decimal(2, "-3.5000000000000000000001"), -4);
    assert_eq!(decimal(2, "2.5000000000000000000001"), 3);
}

#[test]
fn the_ends_of_the_exponent_range() {
    // 2^-1073741824 is the least number; half of it would be rounded twice if MPFR's underflow were trusted.
    let least = Float::with_val(64, 1) >> (MAXIMUM_EXPONENT + 1) as i32;
    let text = least.to_string_radix(10, Some(40));
    assert_eq!(decimal(64, &text), least);
    let mut reader = NumberReader::new(64);
    for word in ["1.5e-323228497", "1e-323228497", "1e323228497", "-1e999999999999999999999", "3e-99999999999999"] {
        assert_eq!(value(&mut reader, word).unwrap_err(), Refusal::ExponentRange, "{word}");
    }
    assert!(value(&mut reader, "1e323228400").is_ok());
    assert!(value(&mut reader, "0.000e-99999999999999999").unwrap().0.is_zero());
    for (word, ok) in [
        ("0x.8p1073741823", true),
        ("0x1p1073741823", false),
        ("0x1p-1073741824", true),
        ("0x1p-1073741825", false),
        ("0x1p99999999999999999999", false),
    ] {
        assert_eq!(value(&mut reader, word).is_ok(), ok, "{word}");
    }
}

#[test]
fn integers_and_hexadecimal_floats_are_exact() {
    let mut rng = generator(7);
    let mut reader = NumberReader::new(2);
    for case in 0..3000u32 {
        let size = 1 + rng.below(if case % 9 == 0 { 9000 } else { 300 });
        let integer = (Integer::from(Integer::random_bits(size, &mut rng)) | 1u32) << rng.below(90);
        let bits = (integer.significant_bits() - integer.find_one(0).unwrap()).max(2);
        let (found, number) = value(&mut reader, &format!("-{integer}")).unwrap();
        assert_eq!((found.clone(), number.bits, number.exact), (-Float::with_val(bits, &integer), bits, true));
        let mut hex = integer.to_string_radix(16);
        let exponent = rng.below(400) as i32 - 200;
        let after = rng.below(hex.len() as u32 + 1) as usize;
        hex.insert(hex.len() - after, '.');
        if case % 2 == 0 {
            hex = hex.to_uppercase();
        }
        let (found, number) = value(&mut reader, &format!("-0x000{hex}00p{exponent}")).unwrap();
        let want = -Float::with_val(bits, &integer) << (exponent - 4 * after as i32);
        assert_eq!((found, number.bits, number.exact), (want, bits, true), "{hex}p{exponent}");
    }
    for (word, want) in [("0x1.8p-3", 0.1875), ("0X.8", 0.5), ("0xA.", 10.0), ("+7", 7.0), ("-0", 0.0), ("0x0p0", 0.0)]
    {
        assert_eq!(value(&mut reader, word).unwrap().0, want, "{word}");
    }
}

#[test]
fn what_is_no_number() {
    let mut reader = NumberReader::new(64);
    for word in [
        "", "-", "+-1", ".", "1.2.3", "e5", "1e", "1e+", "1e5.0", "0x", "0x.p1", "0x1p", "0x1q2", "one", "1,5", "0b1",
        "١", "1e5x", "--1", "nano", "infinit", "0x1.8e3p",
    ] {
        assert_eq!(value(&mut reader, word).unwrap_err(), Refusal::NotANumber, "{word}");
    }
    for word in ["nan", "-NaN", "nan(0x1)", "NAN"] {
        assert_eq!(value(&mut reader, word).unwrap_err(), Refusal::NotFinite("NaN"), "{word}");
    }
    for word in ["inf", "-Inf", "+INFINITY"] {
        assert_eq!(value(&mut reader, word).unwrap_err(), Refusal::NotFinite("infinite"), "{word}");
    }
    for word in ["1.0", "1e3", "0x10", ".5", "7."] {
        assert_eq!(reader.read(word.as_bytes(), Field::Integer).unwrap_err(), Refusal::NotAnInteger, "{word}");
    }
    assert!(reader.read(b"-17", Field::Integer).unwrap().exact);
    let long = format!("0x1{}1", "0".repeat((MAXIMUM_PRECISION_BITS / 4) as usize));
    assert!(matches!(reader.read(long.as_bytes(), Field::Real), Err(Refusal::TooLong(_))));
}

#[test]
fn fractions_and_forms_of_mathematica() {
    let mut rng = generator(8);
    for _ in 0..2000 {
        let bits = 2 + rng.below(300);
        let (a, b) = (Integer::from(Integer::random_bits(rng.below(400), &mut rng)), 1 + rng.below(1 << 20));
        let word = format!("-{a}/{b}");
        let want = Float::with_val(bits, &Rational::from((-a, b)));
        assert_eq!(value(&mut NumberReader::new(bits), &word).unwrap().0, want, "{word}");
    }
    for (word, plain) in [
        ("4.`300.", "4."),
        ("1.5*^-1", "1.5e-1"),
        ("-1.5``30*^-2", "-1.5e-2"),
        ("1.5``-2.5", "1.5"),
        ("1.5`", "1.5"),
        ("5`30", "5."),
        ("0``300.", "0."),
        ("1.5`30.*^+12", "1.5e12"),
        ("1_000.2_5e1_0", "1000.25e10"),
    ] {
        assert_eq!(decimal(100, word), oracle(100, plain), "{word}");
    }
    assert_eq!(value(&mut NumberReader::new(2), "-1_000_001").unwrap().0, -1_000_001);
    assert_eq!(value(&mut NumberReader::new(2), "0xf_f").unwrap().0, 255);
    for word in [
        "1/0", "/2", "1/", "1/-2", "1.5/2", "1/2/3", "1/2e3", "1``", "1`x", "1`3*2", "1`3*^", "1*^", "1*2", "_1", "1_",
        "1__0", "1_.5", "1e_5", "0x_1", "1`3`4",
    ] {
        assert_eq!(value(&mut NumberReader::new(64), word), Err(Refusal::NotANumber), "{word}");
    }
    assert_eq!(NumberReader::new(64).read(b"1/2", Field::Integer), Err(Refusal::NotAnInteger));
}

#[test]
fn the_first_mark_states_the_precision() {
    let mut reader = NumberReader::new(None);
    assert_eq!(value(&mut reader, "12345678901234567890").unwrap().0, 12_345_678_901_234_567_890u64);
    for word in ["1.5", "1/3", "1e2", "1.5``30"] {
        assert_eq!(value(&mut reader, word), Err(Refusal::NoPrecision), "{word}");
    }
    for bits in [2, 53, 64, 1000, 4000] {
        let mut reader = NumberReader::new(None);
        let mark = f64::from(bits) * std::f64::consts::LOG10_2;
        assert_eq!(value(&mut reader, &format!("1.1`{mark}")).unwrap().1.bits, bits);
        assert_eq!((value(&mut reader, "1.1").unwrap().1.bits, reader.marked_bits()), (bits, Some(bits)));
    }
}

#[test]
fn strings_of_a_caller() {
    assert_eq!(parse_number(" nan ", 64), Err(NumberError::NotFinite("NaN")));
    assert_eq!(parse_number("1e999999999999", 64), Err(NumberError::ExponentRange));
    assert_eq!(parse_number("", 64), Err(NumberError::NotANumber));
    let cases = [("1e5", Some((3125, 5))), ("2.50e1", Some((25, 0))), ("0x1.8p4", Some((3, 3))), ("0.5", None)];
    let more = [("12_8", Some((1, 7))), ("-6/3", Some((-1, 1))), ("2/3", None), ("1.5`9*^1", Some((15, 0)))];
    let last = [("0x1p-1", None), ("0.000", Some((0, 0))), ("x", None), ("-0", Some((0, 0))), ("1D1", Some((5, 1)))];
    for (text, want) in cases.into_iter().chain(more).chain(last) {
        let want = want.map(|(integer, exponent)| (Integer::from(integer), exponent));
        assert_eq!(parse_exact_integer(text), want, "{text}");
    }
}
