//! The table of iterations, a line for each, with SDPB's columns and the time that remains: 80 letters wide.

use crate::iterate::Iteration;
use rug::Float;

/// The header above the lines of [`table_row`].
pub const TABLE_HEADER: &str = concat!(
    "it   time  mu     P-obj   D-obj   gap     P-err  D-err  Pstep Dstep beta  left\n",
    "--------------------------------------------------------------------------------"
);

/// Letters of each column but the last.
const WIDTHS: [usize; 11] = [4, 5, 6, 7, 7, 7, 6, 6, 5, 5, 5];

/// Digits of a number at most.
const MOST_DIGITS: usize = 3;

/// A number with an exponent, in as many digits as there is room for.
fn short(value: &Float, width: usize) -> String {
    let with_digits = |digits: usize| format!("{value:.digits$e}");
    let fitting = (1..=MOST_DIGITS).rev().map(with_digits).find(|text| text.len() <= width);
    fitting.unwrap_or_else(|| with_digits(1))
}

/// A step or a centring parameter: where a run stalls, the latter has any size.
fn fraction(value: &Float) -> String {
    if *value < 9.9995 { format!("{:.3}", value.to_f64()) } else { short(value, WIDTHS[10]) }
}

/// The line of an iteration; `left` is the remaining time of the run, if it is known. The larger of the two primal
/// errors is shown.
pub fn table_row(iteration: &Iteration, left: Option<&str>) -> String {
    let Iteration { number, seconds, mu, quality, primal_step, dual_step, beta, .. } = iteration;
    let decimals = usize::from(seconds.0 < 999.95);
    let texts = [
        number.to_string(),
        format!("{:.decimals$}", seconds.0),
        short(mu, WIDTHS[2]),
        short(&quality.primal_objective, WIDTHS[3]),
        short(&quality.dual_objective, WIDTHS[4]),
        short(&quality.gap, WIDTHS[5]),
        short(quality.primal_error(), WIDTHS[6]),
        short(&quality.dual_error, WIDTHS[7]),
        fraction(primal_step),
        fraction(dual_step),
        fraction(beta),
        left.unwrap_or("").into(),
    ];
    let (mut row, mut end) = (String::new(), 0);
    for (at, text) in texts.iter().enumerate() {
        // A number that is too long takes room from the columns behind it.
        let blanks = end.max(row.len() + usize::from(at > 0)) - row.len();
        row.extend(std::iter::repeat_n(' ', blanks));
        row.push_str(text);
        end += WIDTHS.get(at).map_or(0, |width| width + 1);
    }
    row.trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iterate::{Conditions, Quality};

    fn iteration(number: u64, exponent: i32, beta: i32) -> Iteration {
        let power =
            |digits: &str, exponent: i32| Float::with_val(300, Float::parse(format!("{digits}e{exponent}")).unwrap());
        let quality = Quality {
            primal_objective: power("-1.4142", exponent / 2),
            dual_objective: power("-1.4143", exponent / 2),
            gap: power("4.567", exponent),
            primal_matrix_error: power("1.5", exponent),
            primal_free_error: power("2.4", exponent),
            dual_error: Float::new(300),
        };
        let zero = || Float::new(300);
        Iteration {
            number,
            seconds: (12345.678, 0.5),
            precision_bits: 300,
            mu: power("6.28", exponent),
            off_centre: None,
            quality,
            primal_step: power("7.5", -1),
            dual_step: power("1", 0),
            beta: power("1.234", beta),
            conditions: Conditions { free: zero(), block: zero(), name: String::new() },
        }
    }

    #[test]
    fn lines_have_80_letters_at_most() {
        let header = TABLE_HEADER.lines().next().unwrap();
        assert!(TABLE_HEADER.lines().all(|line| line.len() <= 80));
        // A run that stalls has a centring parameter of any size.
        for (exponent, beta) in [(-3, -1), (-30, 0), (-100, 110), (99, 3), (-999, 999)] {
            let row = table_row(&iteration(9999, exponent, beta), Some("18.0ms"));
            assert!(row.len() <= 80, "{}: {row}", row.len());
            assert_eq!(row.split_whitespace().count(), header.split_whitespace().count(), "{row}");
        }
        let row = table_row(&iteration(17, -30, -1), Some("6.63ms"));
        assert_eq!(row, "17   12346 6e-30  -1e-15  -1e-15  4.6e-30 2e-30  0      0.750 1.000 0.123 6.63ms");
        // Names stand above their numbers.
        let row = table_row(&iteration(17, -3, 110), None);
        for (name, text) in [("mu", "6.3e-3"), ("gap", "4.57e-3"), ("P-err", "2.4e-3"), ("beta", "1e110")] {
            assert_eq!(header.find(name), row.rfind(text), "{name}\n{header}\n{row}");
        }
    }
}
