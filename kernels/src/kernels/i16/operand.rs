//! The operands of a product: panels of residues in place, or sums of parts of them, formed while they are packed.
//!
//! A panel holds its rows one after the other, 8 residues of 16 bits each; packing makes pairs of neighbouring rows.
#![forbid(unsafe_code)]

use super::lanes::{INTERLEAVED, InterleavedRows, Lanes, PAIRS};
use super::rules::{Rule, SymmetricSums, WinogradLeft, WinogradRight, load_rows};
use crate::plan::BLOCK;
use std::ops::Range;

/// The largest number of rows of one pass over the operands: residues are taken once a pass.
pub const MOST_DEPTH: usize = 2048;

/// Panels of an operand, `stride` residues apart, from some row on.
#[derive(Clone, Copy)]
pub struct I16Panels<'a> {
    /// The first panel's first row begins the slice.
    pub residues: &'a [i16],
    /// Residues from one panel to the next.
    pub stride: usize,
    /// Number of panels; panels beyond are zeros.
    pub count: usize,
}

/// The rows of a panel that is not there.
static ZEROS: [i16; (MOST_DEPTH + INTERLEAVED) * BLOCK] = [0; (MOST_DEPTH + INTERLEAVED) * BLOCK];

impl<'a> I16Panels<'a> {
    /// The panels from number `panel` on, from row `row` on.
    pub fn from(self, panel: usize, row: usize) -> I16Panels<'a> {
        let at = (panel * self.stride + row * BLOCK).min(self.residues.len());
        I16Panels { residues: &self.residues[at..], count: self.count.saturating_sub(panel), ..self }
    }

    /// Some rows of panel `panel`, at most [`MOST_DEPTH`].
    #[inline(always)]
    pub fn rows(&self, panel: usize, rows: &Range<usize>) -> &'a [i16] {
        match panel < self.count {
            true => &self.residues[panel * self.stride..][rows.start * BLOCK..rows.end * BLOCK],
            false => &ZEROS[..rows.len() * BLOCK],
        }
    }
}

/// One of the four sums that a scheme forms of four parts.
#[derive(Clone, Copy)]
pub struct Sum<'a> {
    /// Selects the sums.
    pub scheme: SchemeSums,
    /// Selects one of the four parts.
    pub number: usize,
    /// The parts.
    pub parts: [I16Panels<'a>; 4],
}

/// The sums of one scheme.
#[derive(Clone, Copy)]
pub enum SchemeSums {
    /// Sums of the operand of a triangle.
    Symmetric(SymmetricSums),
    /// Sums of the left operand of a rectangle.
    Left(WinogradLeft),
    /// Sums of the right operand of a rectangle.
    Right(WinogradRight),
}

/// An operand of a product.
#[derive(Clone, Copy)]
pub enum I16Operand<'a> {
    /// In place, without a copy.
    Panels(I16Panels<'a>),
    /// Formed while it is packed.
    Sum(Sum<'a>),
}

impl<'a> I16Operand<'a> {
    /// The panels of an operand that is not a sum.
    pub fn panels(self) -> I16Panels<'a> {
        match self {
            I16Operand::Panels(panels) => panels,
            I16Operand::Sum(_) => unreachable!("only panels in place can be cut further"),
        }
    }

    /// Pairs of some rows of panel `panel`, `stride` integers apart, from integer `at` on. Of sums the rows are a
    /// multiple of [`INTERLEAVED`].
    #[inline(always)]
    pub fn pack<L: Lanes>(&self, panel: usize, rows: &Range<usize>, out: &mut [i32], stride: usize, at: usize) {
        match self {
            I16Operand::Panels(panels) => pack::<L>(panels.rows(panel, rows), out, stride, at),
            I16Operand::Sum(Sum { scheme, number, parts: [a, b, c, d] }) => {
                let parts = [a.rows(panel, rows), b.rows(panel, rows), c.rows(panel, rows), d.rows(panel, rows)];
                match scheme {
                    SchemeSums::Symmetric(rule) => pack_sum::<L, _>(*rule, *number, parts, out, stride, at),
                    SchemeSums::Left(rule) => pack_sum::<L, _>(*rule, *number, parts, out, stride, at),
                    SchemeSums::Right(rule) => pack_sum::<L, _>(*rule, *number, parts, out, stride, at),
                }
            }
        }
    }
}

/// Pairs of rows of sum number `number`.
#[inline(always)]
fn pack_sum<L: Lanes, R: Rule>(rule: R, number: usize, parts: [&[i16]; 4], out: &mut [i32], stride: usize, at: usize) {
    match number {
        0 => pack_number::<L, R, 0>(rule, parts, out, stride, at),
        1 => pack_number::<L, R, 1>(rule, parts, out, stride, at),
        2 => pack_number::<L, R, 2>(rule, parts, out, stride, at),
        _ => pack_number::<L, R, 3>(rule, parts, out, stride, at),
    }
}

#[inline(always)]
fn pack_number<L: Lanes, R: Rule, const N: usize>(
    rule: R,
    parts: [&[i16]; 4],
    out: &mut [i32],
    stride: usize,
    at: usize,
) {
    assert!(parts[0].len().is_multiple_of(size_of::<InterleavedRows>() / 2));
    let [a, b, c, d] = parts.map(|part| part.as_chunks::<{ 2 * PAIRS }>().0);
    let groups = out.chunks_exact_mut(INTERLEAVED / 2 * stride);
    for ((((a, b), c), d), group) in a.iter().zip(b).zip(c).zip(d).zip(groups) {
        let [first, second] = eights(group, stride, at);
        for part in 0..PAIRS / L::WIDTH {
            let sum = rule.sum::<L, N, true>(load_rows([a, b, c, d], part));
            sum.store_paired([&mut *first, &mut *second], part);
        }
    }
}

/// Pairs of rows of one panel, `stride` integers apart, from integer `at` on.
#[inline(always)]
fn pack<L: Lanes>(rows: &[i16], out: &mut [i32], stride: usize, at: usize) {
    let (whole, rest) = rows.as_chunks::<{ 2 * PAIRS }>();
    let mut last = [0; 2 * PAIRS];
    last[..rest.len()].copy_from_slice(rest);
    let mut groups = out.chunks_exact_mut(INTERLEAVED / 2 * stride);
    for (rows, group) in whole.iter().zip(&mut groups) {
        interleave::<L>(rows, group, stride, at);
    }
    if let Some(group) = groups.next().filter(|_| !rest.is_empty()) {
        interleave::<L>(&last, group, stride, at);
    }
}

#[inline(always)]
fn interleave<L: Lanes>(rows: &InterleavedRows, group: &mut [i32], stride: usize, at: usize) {
    let [first, second] = eights(group, stride, at);
    for part in 0..PAIRS / L::WIDTH {
        L::load_rows(rows, part).paired().store_paired([&mut *first, &mut *second], part);
    }
}

/// Eight integers of each of two rows, from integer `at` on.
#[inline(always)]
fn eights(rows: &mut [i32], stride: usize, at: usize) -> [&mut [i32; BLOCK]; 2] {
    let (first, second) = rows.split_at_mut(stride);
    let (first, second) = (first[at..].first_chunk_mut(), second[at..].first_chunk_mut());
    [first.expect("eight pairs"), second.expect("eight pairs")]
}
