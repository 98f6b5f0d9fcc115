//! Numbers and matrices as SDPB and SDPA write them.

use rug::Float;
use std::fmt::Write;
use sunzi::Matrix;

/// The number with as many digits as its precision has, in the form of C's `%g`: with an exponent below `1e-4` and if
/// the integer part has more digits than are known.
pub fn decimal(value: &Float) -> String {
    let digits = (f64::from(value.prec()) * std::f64::consts::LOG10_2) as usize + 2;
    if value.is_zero() {
        return "0".into();
    }
    let (negative, all, exponent) = value.to_sign_string_exp(10, Some(digits));
    let Some(exponent) = exponent else { return all };
    let all = all.trim_end_matches('0');
    let mut text = String::from(if negative { "-" } else { "" });
    // The value is 0.ddd times 10^exponent.
    if (-3..=0).contains(&exponent) {
        text.push_str("0.");
        text.extend(std::iter::repeat_n('0', exponent.unsigned_abs() as usize));
        text.push_str(all);
    } else if exponent > 0 && exponent as usize <= digits {
        let front = exponent as usize;
        text.extend(all.chars().chain(std::iter::repeat('0')).take(front));
        if all.len() > front {
            text.push('.');
            text.push_str(&all[front..]);
        }
    } else {
        text.push_str(&all[..1]);
        if all.len() > 1 {
            text.push('.');
            text.push_str(&all[1..]);
        }
        let _ = write!(text, "e{:+03}", exponent - 1);
    }
    text
}

/// A matrix as Elemental prints it under a line with its shape.
pub fn matrix(matrix: &Matrix) -> String {
    let mut text = format!("{} {}\n", matrix.rows(), matrix.cols());
    for row in 0..matrix.rows() {
        for col in 0..matrix.cols() {
            let end = if col + 1 == matrix.cols() { "\n" } else { " " };
            text.push_str(&decimal(&matrix.float(row, col)));
            text.push_str(end);
        }
    }
    text
}

/// The numbers of a list with commas between them, in braces.
pub fn braces(numbers: impl Iterator<Item = Float>) -> String {
    let numbers = numbers.map(|number| decimal(&number)).collect::<Vec<_>>();
    format!("{{{}}}", numbers.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_read_back_as_the_same_numbers() {
        let cases =
            ["0", "1", "-1", "0.5", "1e-3", "-1.25e-4", "3.5e-5", "12345.678", "1e20", "-7e60", "1e300", "2e-300"];
        for bits in [53, 64, 200] {
            for case in cases {
                let value = Float::with_val(bits, Float::parse(case).unwrap());
                let text = decimal(&value);
                assert_eq!(Float::with_val(bits, Float::parse(&text).unwrap()), value, "{case}: {text}");
            }
        }
        let shown = |value: f64| decimal(&Float::with_val(53, value));
        assert_eq!(
            (shown(0.25), shown(-1500.0), shown(0.0), shown(1e-5)),
            ("0.25".into(), "-1500".into(), "0".into(), "1.0000000000000001e-05".into())
        );
        assert_eq!(
            (shown(0.5f64.powi(10)), shown(2f64.powi(70))),
            ("0.0009765625".into(), "1.1805916207174113e+21".into())
        );
        let two = Matrix::from_f64s(2, 2, 53, &[1.0, 2.0, 0.5, -4.0]).unwrap();
        assert_eq!(matrix(&two), "2 2\n1 0.5\n2 -4\n");
    }
}
