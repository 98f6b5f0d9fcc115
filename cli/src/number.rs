//! A scalar such as `--alpha 0.1`, by the syntax of numbers in files.

use rug::Float;
use sunzi::io::parse_number;
use sunzi::{Error, Result};

/// The number written as `text`; `what` names it in the error. Decimals are rounded once at `precision_bits`.
///
/// # Errors
/// [`Error::InvalidArgument`] for anything that is not a finite number.
pub fn parse_scalar(what: &str, text: &str, precision_bits: u32) -> Result<Float> {
    let parsed = parse_number(text, precision_bits);
    parsed.map(|parsed| parsed.value).map_err(|error| Error::InvalidArgument(format!("{what}: '{text}' {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::Rational;

    #[test]
    fn scalars_are_exact_or_rounded_once() {
        let exact = [("0", 0.0), ("-3", -3.0), ("+2.5e1", 25.0), ("0x1.8p-3", 0.1875), ("-0X.8", -0.5), ("1e22", 1e22)];
        for (text, value) in exact {
            assert_eq!(parse_scalar("--alpha", text, 64).unwrap(), value, "{text}");
        }
        let third = parse_scalar("--alpha", "0.1", 100).unwrap();
        assert_eq!(third, Float::with_val(100, &Rational::from((1, 10))));
        let large = parse_scalar("--alpha", "1e100000", 64).unwrap();
        assert_eq!(large, Float::with_val(64, Float::parse("1e100000").unwrap()));
        for text in
            ["", "-", "nan", "inf", "1e", "0x", "1e999999999", "0x1p2000000000", "ten", "1 2", "0x1.g", "--1", "."]
        {
            assert!(parse_scalar("--alpha", text, 64).is_err(), "{text}");
        }
    }
}
