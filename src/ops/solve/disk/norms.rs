//! The exponents of norms of rows and columns of a triangle in a file, by passes over its heads.

use crate::math::float::Head;
use crate::math::scale::{norm_exponent, square_bound};

/// Norms of lines: first the largest entry of each is found, then the squares are summed.
pub(super) struct LineNorms {
    largest: Vec<Option<i64>>,
    sums: Vec<u128>,
}

impl LineNorms {
    /// For `lines` lines, before any entry is read.
    pub fn new(lines: usize) -> LineNorms {
        LineNorms { largest: vec![None; lines], sums: vec![0; lines] }
    }

    /// An entry of a line in the first pass.
    pub fn see(&mut self, line: usize, head: Head) {
        if !head.is_zero() {
            let largest = &mut self.largest[line];
            *largest = Some(largest.map_or(head.exponent(), |largest| largest.max(head.exponent())));
        }
    }

    /// The same entry in the second pass.
    pub fn add(&mut self, line: usize, head: Head) {
        if let Some(largest) = self.largest[line].filter(|_| !head.is_zero()) {
            self.sums[line] += u128::from(square_bound(head, largest));
        }
    }

    /// The exponents, as [`crate::math::scale::column_exponent`] has them.
    pub fn exponents(&self) -> Vec<i64> {
        let each = self.largest.iter().zip(&self.sums);
        each.map(|(largest, &sum)| largest.map_or(0, |largest| norm_exponent(sum, largest))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::scale::column_exponent;

    #[test]
    fn exponents_are_those_of_whole_lines() {
        let lines: [&[i64]; 4] = [&[], &[3], &[1, -4, 700, 698, 0], &[-20; 300]];
        let heads =
            |line: &[i64]| line.iter().map(|&exponent| Head::new(exponent % 2 == 0, exponent)).collect::<Vec<_>>();
        let mut norms = LineNorms::new(lines.len());
        for pass in 0..2 {
            for (at, line) in lines.iter().enumerate() {
                for head in heads(line).into_iter().chain([Head::ZERO]) {
                    if pass == 0 { norms.see(at, head) } else { norms.add(at, head) }
                }
            }
        }
        assert_eq!(norms.exponents(), lines.map(|line| column_exponent(heads(line).into_iter())));
    }
}
