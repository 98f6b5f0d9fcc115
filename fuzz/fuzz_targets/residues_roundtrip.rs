//! Integers survive the residues of every kernel: to residues, a product with the identity, and back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rug::Integer;
use rug::integer::Order;
use std::sync::Arc;
use sunzi::advanced::kernels::available;
use sunzi::advanced::kernels::{BlockResidues, EngineSpec, IntegerBlock, PanelSource, PlaneEngine, PlaneProduct};
use sunzi::advanced::plan::{BLOCK, BlockGrid};
use sunzi::{Matrix, MatrixView};

/// Operand bits that straddle the widths of limbs, digits and moduli.
const OPERAND_BITS: [u32; 16] = [2, 3, 24, 25, 51, 52, 53, 63, 64, 65, 104, 128, 208, 300, 777, 1500];

fuzz_target!(|data: &[u8]| {
    let [choice, columns, shift, rest @ ..] = data else { return };
    let spec = EngineSpec {
        operand_bits: OPERAND_BITS[usize::from(choice & 15)],
        modulus_bits: OPERAND_BITS[usize::from(choice & 15)] + 2 + u32::from(choice >> 5) * 20,
        redundant: choice & 16 != 0,
    };
    let columns = 1 + usize::from(*columns) % BLOCK;
    let shift = (i64::from(*shift) - 128) * 11;
    let (source, wanted) = operand(rest, columns, spec.operand_bits, shift);
    let diagonal: Vec<f64> = (0..BLOCK * BLOCK).map(|at| f64::from(at % (BLOCK + 1) == 0)).collect();
    let identity = Matrix::from_f64s(BLOCK, BLOCK, 2, &diagonal).expect("small and finite");
    for kernel in available() {
        let engine = kernel.prepare(&spec).expect("the precision is small");
        let integers = through_residues(&engine, source.view(), shift, identity.view());
        for (index, want) in wanted.iter().enumerate() {
            // The operand's columns are the rows of the product.
            let entry = BLOCK * (index % BLOCK) + index / BLOCK;
            let magnitude = Integer::from_digits(integers.magnitude(entry), Order::Lsf);
            let found = if integers.negative[entry] { -magnitude } else { magnitude };
            assert_eq!(found, *want, "{}: {spec:?}, entry {entry}", kernel.name());
        }
    }
});

/// A matrix whose entries, times `2^shift`, round to the integers that come with it, column by column.
fn operand(bytes: &[u8], columns: usize, operand_bits: u32, shift: i64) -> (Matrix, Vec<Integer>) {
    let mut source = Matrix::zeros(BLOCK, columns, operand_bits + 70).expect("a small matrix");
    let mut bytes = bytes.iter().copied();
    let mut wanted = Vec::new();
    for index in 0..BLOCK * columns {
        let kind = bytes.next().unwrap_or(0);
        let length = 1 + usize::from(bytes.next().unwrap_or(0)) % (operand_bits as usize).div_ceil(8);
        let limit = Integer::from(1) << operand_bits;
        let digits: Vec<u8> = (0..length).map(|_| bytes.next().unwrap_or(0)).collect();
        let size = match kind % 8 {
            0 => limit.clone(),
            1 => Integer::from(&limit - 1u32),
            2 => Integer::from_digits(&digits, Order::Lsf) << (operand_bits.saturating_sub(8 * length as u32)),
            _ => Integer::from_digits(&digits, Order::Lsf),
        };
        let size = if size > limit { limit.clone() } else { size };
        let integer = if kind & 8 != 0 { -size.clone() } else { size.clone() };
        // A quarter up or down rounds away, and so does a half at an even integer; the limit itself is not exceeded.
        let halves = [0, -1, 1, if integer.is_even() { 2 } else { 0 }];
        let quarters = if size == limit { 0 } else { halves[usize::from(kind >> 4) % 4] };
        let fine = Integer::from(&integer << 2u32) + quarters;
        source.set_integer_exponent(index % BLOCK, index / BLOCK, &fine, -2 - shift).expect("a small exponent");
        wanted.push(integer);
    }
    (source, wanted)
}

/// `source^T * identity` by one engine, in dirty buffers.
fn through_residues(
    engine: &Arc<dyn PlaneEngine>,
    source: MatrixView<'_>,
    shift: i64,
    identity: MatrixView<'_>,
) -> IntegerBlock {
    let grid = BlockGrid::rectangle(source.cols(), BLOCK);
    let (primes, panel_words) = (engine.moduli().len(), engine.panel_words(BLOCK));
    let mut scratch = vec![0x5a5a_5a5a_5a5a_5a5a; engine.scratch_words(BLOCK, &grid)];
    let mut planes = |view: MatrixView<'_>, shift: i64| {
        let shifts = vec![shift; view.cols()];
        let panel = PanelSource { view, columns: 0..view.cols(), rows: 0..BLOCK, shifts: &shifts };
        let mut window = vec![0xdead_beef_dead_beef; primes * panel_words];
        let mut slices: Vec<&mut [u64]> = window.chunks_mut(panel_words).collect();
        engine.to_residues(0..primes, &panel, &mut slices, &mut scratch);
        window
    };
    let (x, y) = (planes(source, shift), planes(identity, 0));
    let plane_words = engine.plane_words(&grid);
    let mut product = vec![0xfeed_feed_feed_feed; primes * plane_words];
    for (prime, c) in product.chunks_mut(plane_words).enumerate() {
        let words = prime * panel_words..(prime + 1) * panel_words;
        let (x, y) = (&x[words.clone()], &y[words]);
        let plane = PlaneProduct { x, y, rows: BLOCK, grid, blocks: 0..grid.len(), accumulate: false };
        engine.multiply(prime, &plane, c, &mut scratch);
    }
    let mut integers = IntegerBlock::new(engine.magnitude_limbs());
    let residues = BlockResidues { window: &product, plane_words, offset: 0 };
    engine.reconstruct(&residues, &mut integers, &mut scratch);
    integers
}
