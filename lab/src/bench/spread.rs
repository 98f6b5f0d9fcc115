//! Least, median and largest of a series of measurements.

use serde::Serialize;

/// The figures that are reported for a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Spread {
    /// The spread of a series that is not empty (asserted).
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        assert!(count > 0, "no measurements");
        let median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
        Spread { min: sorted[0], median, max: sorted[count - 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        assert_eq!(Spread::of(&[3.0]), Spread { min: 3.0, median: 3.0, max: 3.0 });
        assert_eq!(Spread::of(&[9.0, 1.0, 2.0]), Spread { min: 1.0, median: 2.0, max: 9.0 });
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 9.0]), Spread { min: 1.0, median: 3.0, max: 9.0 });
    }
}
