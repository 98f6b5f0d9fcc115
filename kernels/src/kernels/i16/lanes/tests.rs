//! Every instruction set against plain Rust.

use super::*;
use std::array::from_fn;

fn pair(low: i16, high: i16) -> i32 {
    (i32::from(low) & 0xffff) | i32::from(high) << 16
}

/// All operations on two vectors of pairs.
struct Operations<'a> {
    a: &'a [i32; 16],
    b: &'a [i32; 16],
    out: &'a mut Vec<i32>,
}

impl I16Task for Operations<'_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let store = |value: L, out: &mut Vec<i32>| {
            let mut lanes = [0; 16];
            value.store(&mut lanes);
            out.extend_from_slice(&lanes[..L::WIDTH]);
        };
        let halves: &[i16] = bytemuck::cast_slice(self.b);
        let (mut results, mut upper) = (vec![Vec::new(); 10], Vec::new());
        for first in (0..16).step_by(L::WIDTH) {
            let (a, b) = (L::load(&self.a[first..]), L::load(&self.b[first..]));
            store(a.multiply_add(b, a), &mut results[0]);
            store(a.multiply_halves_top(b), &mut results[1]);
            store(a.xor(L::splat(77)), &mut results[2]);
            store(a.pair(b), &mut results[3]);
            store(a.pair_upper(b), &mut upper);
            store(a.add_halves(b).min_halves(a), &mut results[4]);
            store(a.multiply_halves(b), &mut results[5]);
            store(a.multiply_halves_high(b), &mut results[6]);
            store(a.sub_halves(b), &mut results[7]);
            store(L::widen(&halves[first..]), &mut results[8]);
        }
        let (mut first, mut second) = ([0; 8], [0; 8]);
        let mut rows = [0; 2 * PAIRS];
        for part in 0..PAIRS / L::WIDTH {
            let pairs = L::load_rows(halves.first_chunk().unwrap(), part).paired();
            pairs.store_paired([&mut first, &mut second], part);
            pairs.apart().store_rows(&mut rows, part);
        }
        assert_eq!(rows, halves[..2 * PAIRS], "and rows again");
        results[9].extend(first.into_iter().chain(second));
        results.push(blocks::<L>(self.a, 0).to_vec());
        results.push(blocks::<L>(self.a, 16).to_vec());
        results.push(sums::<L, C>(self.a, self.b));
        let rows: &[i16; 64] = &from_fn(|at| 3 * at as i16 - 77);
        results.push(L::transpose(rows).map(i32::from).to_vec());
        results.push(upper);
        *self.out = results.concat();
    }
}

/// Residues of 8 columns of 8 rows in each panel of a vector, which name their places, as blocks: two columns at a
/// time, in the instruction set's order, from the halves of lanes `shift` bits up.
#[inline(always)]
fn blocks<L: Lanes>(offsets: &[i32; 16], shift: u32) -> [i32; 32] {
    let mut columns = [L::splat(0); 4];
    for (at, two) in columns.iter_mut().enumerate() {
        let entry = |column: i32, lane: usize| 8 * column + lane as i32 % 8 + offsets[lane / 8];
        let column = |column: i32| L::load(&from_fn::<i32, 16, _>(|lane| entry(column, lane) << shift));
        let (even, odd) = (column(2 * at as i32), column(2 * at as i32 + 1));
        *two = if shift == 0 { even.low_halves(odd) } else { even.high_halves(odd) };
    }
    let mut out = [0; 64];
    for (at, block) in L::in_blocks(columns).into_iter().enumerate() {
        block.store(&mut out[at * L::WIDTH..]);
    }
    *out.first_chunk().expect("the block of the first panel")
}

/// The products of 8 lanes of pairs with a row of factors, added to a number that depends on lane and column.
#[inline(always)]
fn sums<L: Lanes, const C: usize>(a: &[i32; 16], b: &[i32; 16]) -> Vec<i32> {
    let factors: &[i32; 8] = b.first_chunk().expect("eight pairs");
    let mut out = Vec::new();
    for first in (0..8).step_by(C) {
        let mut before = [[L::load(a); 1]; C];
        for (c, sums) in before.iter_mut().enumerate() {
            sums[0] = sums[0].xor(L::splat((first + c) as i32));
        }
        for sums in L::add_products(before, [L::load(a)], factors, first) {
            let mut lanes = [0; 16];
            sums[0].store(&mut lanes);
            out.extend_from_slice(&lanes[..8]);
        }
    }
    out
}

#[test]
fn every_instruction_set_computes_the_same() {
    let names: Vec<&str> = I16Isa::available().map(I16Isa::name).collect();
    assert!(names.ends_with(&["portable"]));
    // A half of -2^15 squared has no half of its own.
    let a: [i32; 16] = from_fn(|lane| ((lane as i64 - 8) * 123_456_789 % 30_000_001) as i32);
    let b: [i32; 16] = from_fn(|lane| (lane as i32).wrapping_mul(987_654_321) ^ 0x5a5a);
    let mut want = Vec::new();
    I16Isa(I16Level::Portable).run(Operations { a: &a, b: &b, out: &mut want });
    assert_eq!(want.len(), 160 + 2 * 32 + 64 + 64 + 16);
    for halves in want[160..224].chunks(32) {
        let halves: &[i16] = bytemuck::cast_slice(halves);
        let block = from_fn::<i16, 64, _>(|at| (at as i16).wrapping_add(a[0] as i16));
        assert_eq!(halves, block, "a block, column by column");
    }
    assert_eq!((want[288 + 1], want[288 + 8]), (3 * 8 - 77, 3 - 77), "rows become columns");
    let upper = |lane: usize| pair((a[lane] >> 16) as i16, (b[lane] >> 16) as i16);
    assert_eq!(want[352..], from_fn::<i32, 16, _>(upper), "upper halves");
    for isa in I16Isa::all() {
        let mut got = Vec::new();
        isa.run(Operations { a: &a, b: &b, out: &mut got });
        assert_eq!(got, want, "{isa:?}");
    }
    // By hand: 3 + 2 * 5 + (-1) * 7, and halves of 8 rows.
    let [one, other] = [(-1 << 16) | 2, (7 << 16) | 5];
    let mut lanes = [0; 8];
    I16PlainLanes::<8>::splat(3).multiply_add(I16PlainLanes::splat(one), I16PlainLanes::splat(other)).store(&mut lanes);
    assert_eq!(lanes, [6; 8]);
}

/// Writes lanes past the caches, to an aligned place and to one next to it.
struct Streams<'a> {
    from: &'a [i32; 16],
    to: &'a mut [[i32; 32]; 2],
}

#[repr(align(64))]
struct Aligned([[i32; 32]; 2]);

impl I16Task for Streams<'_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        L::load(self.from).stream(&mut self.to[0]);
        L::load(self.from).stream(&mut self.to[1][1..]);
        L::fence();
    }
}

#[test]
fn streamed_lanes_are_those_that_were_given() {
    let from: [i32; 16] = from_fn(|at| 7 * at as i32 - 99);
    for isa in I16Isa::all() {
        let mut to = Aligned([[1000; 32]; 2]);
        isa.run(Streams { from: &from, to: &mut to.0 });
        let copied = to.0[0].iter().take_while(|&&lane| lane != 1000).count();
        assert!(copied >= 8, "{isa:?}");
        assert_eq!(to.0[0][..copied], from[..copied], "{isa:?}");
        assert_eq!(to.0[1][1..=copied], from[..copied], "{isa:?}");
        assert_eq!((to.0[1][0], to.0[1][copied + 1]), (1000, 1000), "{isa:?}");
    }
}
