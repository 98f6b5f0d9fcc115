//! Matrices of few entries each, exactly: SDPA's constraints.

use super::scaled::{Fixed, Scaled, packed, triangle};
use super::shape::{Gram, ProofShape};
use rug::{Complete, Integer, Rational};
use std::collections::BTreeMap;
use std::ops::Range;

/// The place of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The variable, from 0; `None` for `C`.
    pub variable: Option<usize>,
    /// The block, from 0.
    pub cone: usize,
    /// The row, from 0.
    pub row: usize,
    /// The column, from 0, at most the row.
    pub col: usize,
}

/// All matrices of a group.
#[derive(Clone, PartialEq, Debug)]
pub struct ProofSparse {
    /// The blocks.
    pub shapes: Vec<ProofShape>,
    /// Entries of the lower triangles, no place twice, sorted by block.
    pub places: Vec<Place>,
    /// Their numbers.
    pub values: Scaled,
}

/// A variable with an entry at some place, how often it counts, and its numerator.
type Holder<'a> = (usize, u32, &'a Integer);

impl Place {
    /// The number of times that the entry occurs in the whole matrix.
    fn times(self) -> u32 {
        if self.row == self.col { 1 } else { 2 }
    }
}

impl ProofSparse {
    /// The matrices with `C = 0`.
    pub fn without_constant(&self) -> ProofSparse {
        let kept = self.entries().filter(|(place, _)| place.variable.is_some());
        let (places, numerators) = kept.map(|(place, value)| (place, value.clone())).unzip();
        let values = Scaled { numerators, denominator: self.values.denominator.clone() };
        ProofSparse { shapes: self.shapes.clone(), places, values }
    }

    /// The position of the entry among the numbers that are kept of its block.
    fn index(&self, place: Place) -> usize {
        if self.shapes[place.cone].diagonal { place.row } else { packed(place.row, place.col) }
    }

    fn entries(&self) -> impl Iterator<Item = (Place, &Integer)> {
        self.places.iter().copied().zip(&self.values.numerators)
    }

    /// The positions of the entries of these blocks among all.
    fn range(&self, cones: Range<usize>) -> Range<usize> {
        let first = |cone: usize| self.places.partition_point(|place| place.cone < cone);
        first(cones.start)..first(cones.end)
    }

    /// The sums of `a_ij m_ij` by block, of C in front of those of the variables.
    fn sums(&self, blocks: &[Fixed]) -> BTreeMap<Option<usize>, Rational> {
        let mut sums: BTreeMap<(Option<usize>, usize), Integer> = BTreeMap::new();
        for (place, value) in self.entries() {
            let other = &blocks[place.cone].values[self.index(place)];
            let product = (value * other).complete() * place.times();
            *sums.entry((place.variable, place.cone)).or_default() += product;
        }
        let mut found = BTreeMap::new();
        for ((variable, cone), sum) in sums {
            let denominator = (&self.values.denominator << blocks[cone].bits).complete();
            *found.entry(variable).or_insert_with(Rational::new) += Rational::from((sum, denominator));
        }
        found
    }

    /// `A_p . M` for all p.
    pub fn pairings(&self, blocks: &[Fixed]) -> Vec<Rational> {
        let variables = self.places.iter().filter_map(|place| place.variable).max().map_or(0, |last| last + 1);
        let mut found = vec![Rational::new(); variables];
        for (variable, sum) in self.sums(blocks) {
            if let Some(variable) = variable {
                found[variable] = sum;
            }
        }
        found
    }

    /// `C . M`.
    pub fn constant_pairing(&self, blocks: &[Fixed]) -> Rational {
        self.sums(blocks).remove(&None).unwrap_or_default()
    }

    /// The sum of the squares of all entries of the selected matrices in these blocks.
    pub fn squares(&self, meant: impl Fn(Option<usize>) -> bool, cones: Range<usize>) -> Rational {
        let range = self.range(cones);
        let places = &self.places[range.clone()];
        self.values.squares(range, |at| if meant(places[at].variable) { places[at].times() } else { 0 })
    }

    /// Block `cone` of `sum_p x_p A_p - times C`.
    pub fn slack(&self, cone: usize, x: &Fixed, times: u32) -> Scaled {
        let mut numerators = vec![Integer::new(); self.shapes[cone].stored()];
        let range = self.range(cone..cone + 1);
        for (place, value) in self.places[range.clone()].iter().copied().zip(&self.values.numerators[range]) {
            let sum = &mut numerators[self.index(place)];
            match place.variable {
                Some(variable) => *sum += value * &x.values[variable],
                None => *sum -= (value * times).complete() << x.bits,
            }
        }
        Scaled { numerators, denominator: (&self.values.denominator << x.bits).complete() }
    }

    /// Products that [`ProofSparse::gram`] makes: one for each pair of variables with an entry at the same place.
    pub(super) fn gram_steps(&self) -> u64 {
        let mut holders: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for place in self.places.iter().filter(|place| place.variable.is_some()) {
            *holders.entry((place.cone, self.index(*place))).or_default() += 1;
        }
        holders.values().map(|count| count.saturating_mul(count + 1) / 2).fold(0, u64::saturating_add)
    }

    /// `A_p . A_q`, entry by entry of the places that they share.
    pub fn gram(&self, variables: usize) -> Gram {
        let mut shared: BTreeMap<(usize, usize), Vec<Holder<'_>>> = BTreeMap::new();
        for (place, value) in self.entries() {
            if let Some(variable) = place.variable {
                shared.entry((place.cone, self.index(place))).or_default().push((variable, place.times(), value));
            }
        }
        let mut numerators = vec![Integer::new(); triangle(variables)];
        for list in shared.values() {
            for (at, &(left, times, first)) in list.iter().enumerate() {
                for &(right, _, second) in &list[..=at] {
                    numerators[packed(left, right)] += (first * second).complete() * times;
                }
            }
        }
        let denominator = self.values.denominator.square_ref().complete();
        Gram { order: variables, matrix: Scaled { numerators, denominator }, repeats: vec![1] }
    }
}
