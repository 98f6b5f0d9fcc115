//! The file of a proof: lines of words and integers in hexadecimal, and a checksum at the end.
//!
//! The format is described in docs/SDP.md. Independent of: programs, whether a proof is right.

use super::certificate::{GramProof, LowerGroup, LowerProof, Proof, UpperProof};
use super::definite::Witness;
use super::limits::{MAXIMUM_EXPONENT, MAXIMUM_WORD};
use super::number::exact_number;
use super::polynomial::ProofSampling;
use super::scaled::Fixed;
use rug::float::Round;
use rug::ops::Pow;
use rug::{Float, Integer, Rational};
use std::fmt::Write;
use std::str::SplitAsciiWhitespace;
use xxhash_rust::xxh3::xxh3_128;

/// The first line.
const TITLE: &str = "sunzi proof of a semidefinite program, version 1";

/// Numbers in a line.
const LINE_NUMBERS: usize = 16;

impl Proof {
    /// The text of the proof's file: a copy of all numbers in hexadecimal, in time and memory proportional to their
    /// length.
    pub fn text(&self) -> String {
        let mut text = format!("{TITLE}\nprogram {}\n", self.digest);
        samplings(&mut text, &self.samplings);
        for (name, part) in [("lower", &self.lower), ("no-primal", &self.no_primal)] {
            part.iter().for_each(|part| lower(&mut text, name, part));
        }
        for (name, part) in [("upper", &self.upper), ("no-dual", &self.no_dual)] {
            part.iter().for_each(|part| upper(&mut text, name, part));
        }
        let checksum = xxh3_128(text.as_bytes());
        let _ = writeln!(text, "checksum {checksum:032x}");
        text
    }

    /// Parses the text of a file, as [`Proof::text`] writes it; [`super::verify`] decides whether the proof holds.
    ///
    /// Cost: a pass over the text; the numbers need half of its bytes in memory.
    ///
    /// # Errors
    /// A text that names the fault.
    pub fn parse(text: &str) -> Result<Proof, String> {
        let last = text.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
        let (body, end) = text.split_at(last);
        if end != format!("checksum {:032x}\n", xxh3_128(body.as_bytes())) {
            return Err("the file is damaged: its last line is not the checksum of the others".into());
        }
        let Some(body) = body.strip_prefix(TITLE) else { return Err(format!("the first line is not '{TITLE}'")) };
        let mut words = Words { words: body.split_ascii_whitespace().peekable() };
        words.expect("program")?;
        let digest = words.next()?.to_string();
        let samplings = if words.finds("samplings") { words.samplings()? } else { Vec::new() };
        let lower = words.finds("lower").then(|| words.lower()).transpose()?;
        let no_primal = words.finds("no-primal").then(|| words.lower()).transpose()?;
        let upper = words.finds("upper").then(|| words.upper()).transpose()?;
        let no_dual = words.finds("no-dual").then(|| words.upper()).transpose()?;
        match words.words.next() {
            None => Ok(Proof { digest, samplings, lower, upper, no_primal, no_dual }),
            Some(word) => Err(format!("'{word}' where the end is expected")),
        }
    }
}

/// A rational number as a decimal if its denominator divides a power of ten, else as a fraction.
pub fn decimal(value: &Rational) -> String {
    let (twos, fives) = {
        let (mut rest, twos) = (value.denom().clone(), value.denom().find_one(0).unwrap_or(0));
        rest >>= twos;
        let fives = rest.remove_factor_mut(&Integer::from(5));
        if rest != 1 {
            return value.to_string();
        }
        (twos, fives)
    };
    let places = twos.max(fives) as usize;
    let scaled = value.numer().clone() * Integer::from(10).pow(places as u32) / value.denom();
    let digits = format!("{:0>width$}", scaled.clone().abs().to_string(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let sign = if scaled < 0 { "-" } else { "" };
    if places == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn numbers(text: &mut String, name: &str, list: &Fixed) {
    let _ = writeln!(text, "{name} {} {}", list.values.len(), list.bits);
    for line in list.values.chunks(LINE_NUMBERS) {
        let words = line.iter().map(|value| value.to_string_radix(16)).collect::<Vec<_>>();
        let _ = writeln!(text, "{}", words.join(" "));
    }
}

fn witness(text: &mut String, name: &str, witness: &Witness) {
    let _ = writeln!(text, "tau {}", witness.exponent);
    numbers(text, name, &witness.factor);
}

fn witnesses(text: &mut String, list: &[Witness]) {
    let _ = writeln!(text, "blocks {}", list.len());
    list.iter().for_each(|block| witness(text, "factor", block));
}

fn gram(text: &mut String, proof: &GramProof) {
    let scales = proof.scales.iter().map(i64::to_string).collect::<Vec<_>>();
    let _ = writeln!(text, "scales {}\n{}", scales.len(), scales.join(" "));
    witness(text, "factor", &proof.witness);
}

/// The number in `digits` digits, rounded in one direction.
fn shown(value: &Rational, digits: usize, round: Round) -> String {
    let (value, _) = Float::with_val_round(4 * digits as u32 + 64, value, round);
    value.to_string_radix_round(10, Some(digits), round)
}

impl LowerProof {
    /// The bound in `digits` digits, rounded down.
    pub fn shown(&self, digits: usize) -> String {
        shown(&self.claim, digits, Round::Down)
    }
}

impl UpperProof {
    /// The bound in `digits` digits, rounded up.
    pub fn shown(&self, digits: usize) -> String {
        shown(&self.claim, digits, Round::Up)
    }
}

fn samplings(text: &mut String, list: &[ProofSampling]) {
    if !list.is_empty() {
        let _ = writeln!(text, "samplings\nmatrices {}", list.len());
    }
    for ProofSampling { points, exponents, basis } in list {
        numbers(text, "points", points);
        let exponents = exponents.iter().map(i64::to_string).collect::<Vec<_>>();
        let _ = writeln!(text, "weights {}\n{}", exponents.len(), exponents.join(" "));
        numbers(text, "basis", basis);
    }
}

fn lower(text: &mut String, name: &str, part: &LowerProof) {
    let _ = writeln!(text, "{name} {}", decimal(&part.claim));
    numbers(text, "y", &part.y);
    let _ = writeln!(text, "groups {}", part.groups.len());
    for group in &part.groups {
        gram(text, &group.gram);
        witnesses(text, &group.blocks);
    }
}

fn upper(text: &mut String, name: &str, part: &UpperProof) {
    let _ = writeln!(text, "{name} {}", decimal(&part.claim));
    let _ = writeln!(text, "groups {}", part.x.len());
    part.x.iter().for_each(|x| numbers(text, "x", x));
    let _ = writeln!(text, "equations {}", u32::from(part.gram.is_some()));
    part.gram.iter().for_each(|proof| gram(text, proof));
    part.blocks.iter().for_each(|blocks| witnesses(text, blocks));
}

/// The words of a file, one after the other.
struct Words<'a> {
    words: std::iter::Peekable<SplitAsciiWhitespace<'a>>,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<&'a str, String> {
        self.words.next().ok_or_else(|| "the file ends too early".into())
    }

    fn expect(&mut self, name: &str) -> Result<(), String> {
        match self.next()? {
            word if word == name => Ok(()),
            word => Err(format!("'{word}' where '{name}' is expected")),
        }
    }

    /// Whether the next word is `name`, which is then taken.
    fn finds(&mut self, name: &str) -> bool {
        self.words.next_if_eq(&name).is_some()
    }

    fn integer(&mut self, name: &str, least: i64, most: i64) -> Result<i64, String> {
        let word = self.next()?;
        let value = word.parse::<i64>().ok().filter(|value| (least..=most).contains(value));
        value.ok_or_else(|| format!("{name} is '{word}', but must be {least} to {most}"))
    }

    /// A count behind its name.
    fn count(&mut self, name: &str) -> Result<usize, String> {
        self.expect(name)?;
        Ok(self.integer(name, 0, u32::MAX.into())? as usize)
    }

    /// Reads `count` items.
    fn repeat<T>(
        &mut self,
        count: usize,
        mut one: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        (0..count).map(|_| one(self)).collect()
    }

    fn claim(&mut self) -> Result<Rational, String> {
        exact_number(self.next()?)
    }

    fn numbers(&mut self, name: &str) -> Result<Fixed, String> {
        let count = self.count(name)?;
        let bits = self.integer("a number of bits", 0, MAXIMUM_EXPONENT)? as u32;
        let value = |words: &mut Self| {
            let word = words.next()?;
            if word.len() > MAXIMUM_WORD {
                return Err(format!("a number has {} characters, but the limit is {MAXIMUM_WORD}", word.len()));
            }
            Integer::from_str_radix(word, 16).map_err(|_| format!("'{word}' is not an integer"))
        };
        Ok(Fixed { bits, values: self.repeat(count, value)? })
    }

    fn witness(&mut self) -> Result<Witness, String> {
        self.expect("tau")?;
        let limit = MAXIMUM_EXPONENT;
        let exponent = self.integer("an exponent", -limit, limit)?;
        Ok(Witness { exponent, factor: self.numbers("factor")? })
    }

    fn witnesses(&mut self) -> Result<Vec<Witness>, String> {
        let count = self.count("blocks")?;
        self.repeat(count, Self::witness)
    }

    fn exponents(&mut self, name: &str) -> Result<Vec<i64>, String> {
        let (count, limit) = (self.count(name)?, MAXIMUM_EXPONENT);
        self.repeat(count, |words| words.integer("an exponent", -limit, limit))
    }

    fn samplings(&mut self) -> Result<Vec<ProofSampling>, String> {
        let count = self.count("matrices")?;
        self.repeat(count, |words| {
            let (points, exponents) = (words.numbers("points")?, words.exponents("weights")?);
            Ok(ProofSampling { points, exponents, basis: words.numbers("basis")? })
        })
    }

    fn gram(&mut self) -> Result<GramProof, String> {
        let (count, limit) = (self.count("scales")?, MAXIMUM_EXPONENT);
        let scales = self.repeat(count, |words| words.integer("a scale", -limit, limit))?;
        Ok(GramProof { scales, witness: self.witness()? })
    }

    fn lower(&mut self) -> Result<LowerProof, String> {
        let (claim, y) = (self.claim()?, self.numbers("y")?);
        let count = self.count("groups")?;
        let group = |words: &mut Self| Ok(LowerGroup { gram: words.gram()?, blocks: words.witnesses()? });
        Ok(LowerProof { claim, y, groups: self.repeat(count, group)? })
    }

    fn upper(&mut self) -> Result<UpperProof, String> {
        let claim = self.claim()?;
        let count = self.count("groups")?;
        let x = self.repeat(count, |words| words.numbers("x"))?;
        let gram = match self.count("equations")? {
            0 => None,
            _ => Some(self.gram()?),
        };
        let blocks = self.repeat(count, Self::witnesses)?;
        Ok(UpperProof { claim, x, gram, blocks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(bits: u32, values: &[i32]) -> Fixed {
        Fixed { bits, values: values.iter().map(|&value| Integer::from(value)).collect() }
    }

    fn example() -> Proof {
        let witness = Witness { exponent: -7, factor: fixed(12, &[255, -3, 0]) };
        let gram = GramProof { scales: vec![3, -4], witness: witness.clone() };
        let groups = vec![LowerGroup { gram: gram.clone(), blocks: vec![witness.clone(), witness.clone()] }];
        let lower = LowerProof { claim: Rational::from((-1, 8)), y: fixed(3, &[]), groups };
        let upper = UpperProof {
            claim: Rational::from((1, 3)),
            x: vec![fixed(9, &[17; 40])],
            gram: Some(gram),
            blocks: vec![vec![witness]],
        };
        let (no_primal, no_dual) = (Some(lower.clone()), Some(upper.clone()));
        let samplings =
            vec![ProofSampling { points: fixed(5, &[3, -2]), exponents: vec![0, -9], basis: fixed(7, &[1]) }; 2];
        Proof { digest: "0".repeat(32), samplings, lower: Some(lower), upper: Some(upper), no_primal, no_dual }
    }

    #[test]
    fn proofs_come_back() {
        let whole = example();
        for (lower, upper) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut proof = whole.clone();
            proof.lower = proof.lower.filter(|_| lower);
            proof.upper = proof.upper.filter(|_| upper);
            proof.no_primal = proof.no_primal.filter(|_| upper);
            proof.no_dual = proof.no_dual.filter(|_| lower);
            assert_eq!(Proof::parse(&proof.text()), Ok(proof));
        }
        assert!(whole.text().contains("lower -0.125\n") && whole.text().contains("upper 1/3\n"));
    }

    #[test]
    fn every_other_byte_is_refused() {
        let text = example().text();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            assert!(Proof::parse(std::str::from_utf8(&bytes).unwrap()).is_err(), "byte {at}");
            assert!(Proof::parse(&text[..at]).is_err(), "cut off at {at}");
        }
        assert!(Proof::parse(&format!("{text}\n")).is_err());
    }

    /// With a right checksum the syntax still has to be right.
    #[test]
    fn words_that_do_not_fit_are_named() {
        let text = example().text();
        let body = &text[..text.rfind("checksum").unwrap()];
        let seal = |body: String| format!("{body}checksum {:032x}\n", xxh3_128(body.as_bytes()));
        assert!(Proof::parse(&seal(body.into())).is_ok());
        for (old, new, wanted) in [
            ("version 1", "version 2", "first line"),
            ("scales 2", "scales 4294967296", "must be"),
            ("tau -7", "tau 9999999", "must be"),
            ("factor 3 12", "factor 3 -1", "must be"),
            ("factor 3 12", "factor 4 12", "is not an integer"),
            ("factor 3 12", "factor 2 12", "expected"),
            ("ff", "fg", "not an integer"),
            ("lower -0.125", "lower x", "not a number"),
            ("equations 1", "equations 0", "expected"),
            ("\nprogram", "\nprograms", "expected"),
        ] {
            let refusal = Proof::parse(&seal(body.replacen(old, new, 1))).unwrap_err();
            assert!(refusal.contains(wanted), "{new}: {refusal}");
        }
        assert!(Proof::parse(&seal(format!("{body}more\n"))).unwrap_err().contains("end"));
    }

    #[test]
    fn decimals_are_exact() {
        for (over, under, wanted) in
            [(1, 8, "0.125"), (-5, 1, "-5"), (-1, 1000, "-0.001"), (123, 50, "2.46"), (0, 1, "0"), (2, 3, "2/3")]
        {
            let value = Rational::from((over, under));
            assert_eq!(decimal(&value), wanted);
            assert_eq!(exact_number(wanted), Ok(value));
        }
    }
}
