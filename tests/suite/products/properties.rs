//! Identities that hold bit for bit, on random shapes, exponents and zero columns; and the round trip of every
//! engine through its residues.
//!
//! `PROPTEST_CASES` overrides the number of cases; `SUNZI_TEST_EFFORT` multiplies the default.

use crate::common::{KINDS, Kind, Rng, effort, forced, kernel_names, matrix};
use proptest::prelude::*;
use proptest::sample::select;
use rug::Integer;
use rug::integer::Order;
use sunzi::advanced::kernels::{
    BlockResidues, EngineSpec, IntegerBlock, PanelSource, PlaneEngine, PlaneProduct, by_name,
};
use sunzi::advanced::math::bound::{guard_bits, range_check_bits};
use sunzi::advanced::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use sunzi::{
    Accuracy, Context, FloatRef, GemmOptions, Matrix, MatrixView, Op, SyrkOptions, Uplo, gemm_with, syrk_with,
};

fn config() -> ProptestConfig {
    let set = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    let cases = set.unwrap_or(120 * effort() as u32);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn kinds() -> impl Strategy<Value = Kind> {
    select(KINDS.to_vec())
}

fn contexts() -> Vec<(&'static str, Context)> {
    kernel_names().into_iter().map(|name| (name, forced(name, 1).build().unwrap())).collect()
}

/// Both accuracies, for identities that hold with either.
const ACCURACIES: [Accuracy; 2] = [Accuracy::Norm, Accuracy::Entrywise];

fn syrk(ctx: &Context, p: MatrixView<'_>, bits: u32, accuracy: Accuracy) -> Matrix {
    syrk_with(ctx, p, bits, &SyrkOptions::new().accuracy(accuracy)).unwrap().result.into_matrix()
}

/// Every kernel with every one of `accuracies`.
fn cases_of(accuracies: &[Accuracy]) -> Vec<(&'static str, Context, Accuracy)> {
    let pairs = |(kernel, ctx): (&'static str, Context)| {
        accuracies.iter().map(move |&accuracy| (kernel, ctx.clone(), accuracy))
    };
    contexts().into_iter().flat_map(pairs).collect()
}

/// The matrix whose entry `(i, j)` is entry `(rows[i], cols[j])` of the old one.
fn rearranged(old: &Matrix, rows: &[usize], cols: &[usize]) -> Matrix {
    let mut new = Matrix::zeros(rows.len(), cols.len(), old.precision_bits()).unwrap();
    for (col, &from_col) in cols.iter().enumerate() {
        for (row, &from_row) in rows.iter().enumerate() {
            new.set(row, col, old.get(from_row, from_col));
        }
    }
    new
}

fn shuffled(count: usize, rng: &mut Rng) -> Vec<usize> {
    let mut order = (0..count).collect::<Vec<_>>();
    for last in (1..count).rev() {
        order.swap(last, rng.below(last + 1));
    }
    order
}

/// Entry `(row, col)` of a symmetric matrix of which the lower triangle is stored.
fn symmetric(q: &Matrix, row: usize, col: usize) -> FloatRef<'_> {
    q.get(row.max(col), row.min(col))
}

fn shifted(value: FloatRef<'_>, shift: i64) -> (bool, i64, &[u64]) {
    let exponent = if value.head.is_zero() { 0 } else { value.head.exponent() + shift };
    (value.head.is_negative(), exponent, value.limbs)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn gemm_of_the_transpose_is_the_whole_of_syrk(
        kind in kinds(), rows in 0usize..40, cols in 0usize..20, bits in 2u32..400, seed: u64,
    ) {
        let p = matrix(kind, rows, cols, bits.max(53), seed);
        for (kernel, ctx, accuracy) in cases_of(&ACCURACIES) {
            let options = GemmOptions::new().accuracy(accuracy);
            let full = gemm_with(&ctx, p.transposed(), &p, bits, &options).unwrap().result;
            let by_op = gemm_with(&ctx, &p, &p, bits, &options.op_a(Op::Transpose)).unwrap().result;
            prop_assert!(full == by_op, "{kernel}: op and view differ");
            let options = SyrkOptions::new().accuracy(accuracy);
            let lower = syrk_with(&ctx, &p, bits, &options).unwrap().result.into_matrix();
            let upper = syrk_with(&ctx, &p, bits, &options.uplo(Uplo::Upper)).unwrap().result;
            for col in 0..cols {
                for row in col..cols {
                    let entry = lower.get(row, col);
                    prop_assert_eq!(entry, upper.get(col, row), "{}: upper triangle", kernel);
                    // Entry by entry the bits of a whole product need not be those of a triangle.
                    if accuracy == Accuracy::Norm {
                        prop_assert_eq!(entry, full.get(row, col), "{}: gemm below the diagonal", kernel);
                        prop_assert_eq!(entry, full.get(col, row), "{}: gemm above the diagonal", kernel);
                    }
                }
            }
        }
    }

    #[test]
    fn neither_the_order_of_rows_nor_of_columns_changes_a_bit(
        kind in kinds(), rows in 0usize..50, cols in 1usize..20, bits in 2u32..300, seed: u64,
    ) {
        let p = matrix(kind, rows, cols, 120, seed);
        let mut rng = Rng::new(seed ^ 1);
        let (row_order, col_order) = (shuffled(rows, &mut rng), shuffled(cols, &mut rng));
        for (kernel, ctx, accuracy) in cases_of(&ACCURACIES) {
            let before = syrk(&ctx, p.view(), bits, accuracy);
            let after = syrk(&ctx, rearranged(&p, &row_order, &col_order).view(), bits, accuracy);
            for col in 0..cols {
                for row in col..cols {
                    let moved = symmetric(&before, col_order[row], col_order[col]);
                    prop_assert_eq!(after.get(row, col), moved, "{}: entry ({}, {})", kernel, row, col);
                }
            }
        }
    }

    #[test]
    fn scaling_a_column_by_a_power_of_two_shifts_exponents_alone(
        kind in kinds(), rows in 1usize..40, cols in 1usize..12, bits in 2u32..300, seed: u64,
        shift in -100_000i64..100_000,
    ) {
        let p = matrix(kind, rows, cols, 150, seed);
        let scaled_col = (seed % cols as u64) as usize;
        let mut scaled = p.clone();
        for row in 0..rows {
            let (integer, exponent) = p.get(row, scaled_col).to_integer_exponent();
            scaled.set_integer_exponent(row, scaled_col, &integer, exponent + shift).unwrap();
        }
        for (kernel, ctx, accuracy) in cases_of(&ACCURACIES) {
            let (before, after) = (syrk(&ctx, p.view(), bits, accuracy), syrk(&ctx, scaled.view(), bits, accuracy));
            for col in 0..cols {
                for row in col..cols {
                    let times = [row, col].iter().filter(|&&index| index == scaled_col).count() as i64;
                    let want = shifted(before.get(row, col), times * shift);
                    prop_assert_eq!(shifted(after.get(row, col), 0), want, "{}: entry ({}, {})", kernel, row, col);
                }
            }
        }
    }

    #[test]
    fn zero_rows_that_need_no_guard_bits_change_nothing(
        kind in kinds(), rows in 1usize..40, cols in 1usize..12, bits in 2u32..300, seed: u64, added in 0usize..40,
    ) {
        let p = matrix(kind, rows, cols, 110, seed);
        let most = (rows..).take_while(|&more| guard_bits(more) == guard_bits(rows)).take(added + 1).last().unwrap();
        let mut longer = Matrix::zeros(most, cols, 110).unwrap();
        let mut places = shuffled(most, &mut Rng::new(seed));
        places.truncate(rows);
        for col in 0..cols {
            for (row, &place) in places.iter().enumerate() {
                longer.set(place, col, p.get(row, col));
            }
        }
        // The working bits of componentwise accuracy follow from a cost, in which zero rows count.
        for (kernel, ctx, accuracy) in cases_of(&[Accuracy::Norm]) {
            let (short, long) = (syrk(&ctx, p.view(), bits, accuracy), syrk(&ctx, longer.view(), bits, accuracy));
            prop_assert!(short == long, "{kernel}: {rows} to {most} rows");
        }
    }

    #[test]
    fn signs_of_columns_are_signs_of_entries_and_zero_columns_give_zeros(
        kind in kinds(), rows in 0usize..30, cols in 1usize..12, bits in 2u32..200, seed: u64,
    ) {
        let p = matrix(kind, rows, cols, 100, seed);
        let mut rng = Rng::new(seed);
        let choices: &[i32] = if rng.below(2) == 0 { &[-1, 1] } else { &[-1, 0, 1] };
        let signs = (0..cols).map(|_| rng.pick(choices)).collect::<Vec<i32>>();
        let mut changed = p.clone();
        for (col, &sign) in signs.iter().enumerate() {
            for row in 0..rows {
                let (integer, exponent) = p.get(row, col).to_integer_exponent();
                changed.set_integer_exponent(row, col, &(integer * sign), exponent).unwrap();
            }
        }
        // The working bits of componentwise accuracy follow from the exponents of all columns, hence not with zeros.
        let accuracies = if signs.contains(&0) { &ACCURACIES[..1] } else { &ACCURACIES[..] };
        for (kernel, ctx, accuracy) in cases_of(accuracies) {
            let (before, after) = (syrk(&ctx, p.view(), bits, accuracy), syrk(&ctx, changed.view(), bits, accuracy));
            for col in 0..cols {
                for row in col..cols {
                    let (old, new) = (before.get(row, col), after.get(row, col));
                    let head = match signs[row] * signs[col] {
                        0 => { prop_assert!(new.head.is_zero() && new.limbs.iter().all(|&limb| limb == 0)); continue }
                        1 => old.head,
                        _ => old.head.negated(),
                    };
                    prop_assert_eq!((new.head, new.limbs), (head, old.limbs), "{}: entry ({}, {})", kernel, row, col);
                }
            }
        }
    }

    #[test]
    fn integers_survive_the_residues_of_every_engine(
        operand_bits in 2u32..1500, more_bits in 0u32..200, redundant: bool, columns in 1usize..=8, seed: u64,
        shift in -3000i64..3000,
    ) {
        // The product of an operand with the identity is the operand: to residues, one product, and back.
        let mut rng = Rng::new(seed);
        let spec = EngineSpec { operand_bits, modulus_bits: operand_bits + 2 + more_bits, redundant };
        let (source, wanted) = scaled_entries(operand_bits, columns, shift, &mut rng);
        let diagonal = (0..64).map(|at| f64::from(at % 9 == 0)).collect::<Vec<_>>();
        let identity = Matrix::from_f64s(BLOCK, BLOCK, 2, &diagonal).unwrap();
        for kernel in kernel_names() {
            let engine = by_name(kernel).unwrap().prepare(&spec).unwrap();
            let integers = through_residues(&*engine, source.view(), shift, identity.view());
            for col in 0..columns {
                for row in 0..BLOCK {
                    let entry = BLOCK * row + col; // the operand's columns are the rows of the product
                    let magnitude = Integer::from_digits(integers.magnitude(entry), Order::Lsf);
                    let value = if integers.negative[entry] { -magnitude } else { magnitude };
                    prop_assert_eq!(&value, &wanted[col * BLOCK + row], "{}: ({}, {})", kernel, row, col);
                    let length = value.significant_bits();
                    prop_assert!(length <= range_check_bits(spec.modulus_bits));
                }
            }
            for entry in (0..BLOCK_WORDS).filter(|entry| entry % BLOCK >= columns) {
                prop_assert!(integers.magnitude(entry).iter().all(|&limb| limb == 0), "{}: beyond the columns", kernel);
            }
        }
    }
}

/// An 8-row matrix whose entries, times `2^shift`, round to known integers of at most `2^operand_bits`.
fn scaled_entries(operand_bits: u32, columns: usize, shift: i64, rng: &mut Rng) -> (Matrix, Vec<Integer>) {
    let mut source = Matrix::zeros(BLOCK, columns, operand_bits + 70).unwrap();
    let mut wanted = Vec::with_capacity(BLOCK * columns);
    for col in 0..columns {
        for row in 0..BLOCK {
            let value = match rng.below(6) {
                0 => Integer::new(),
                1 => Integer::from(1) << operand_bits,
                2 => -(Integer::from(1) << operand_bits),
                3 => {
                    let length = 1 + rng.below(operand_bits as usize) as u32;
                    rng.integer(length)
                }
                _ => rng.integer(operand_bits),
            };
            // A fraction of 1/4 up or down, or one of exactly 1/2 at an even integer, rounds away again.
            let quarters = if value.is_even() { rng.pick(&[-2, -1, 0, 1, 2]) } else { rng.pick(&[-1, 0, 1]) };
            let inside = value.significant_bits() <= operand_bits;
            let fine = (Integer::from(&value << 2u32)) + if inside { quarters } else { 0 };
            source.set_integer_exponent(row, col, &fine, -2 - shift).unwrap();
            wanted.push(value);
        }
    }
    (source, wanted)
}

/// `source^T * identity` by one engine, in dirty buffers.
fn through_residues(
    engine: &dyn PlaneEngine,
    source: MatrixView<'_>,
    shift: i64,
    identity: MatrixView<'_>,
) -> IntegerBlock {
    let grid = BlockGrid::rectangle(source.cols(), BLOCK);
    let primes = engine.moduli().len();
    let mut scratch = vec![0x5a5a_5a5a_5a5a_5a5a; engine.scratch_words(BLOCK, &grid)];
    let mut planes = |view: MatrixView<'_>, shift: i64| {
        let shifts = vec![shift; view.cols()];
        let panel = PanelSource { view, columns: 0..view.cols(), rows: 0..BLOCK, shifts: &shifts };
        let mut window = vec![0xdead_beef_dead_beef; primes * engine.panel_words(BLOCK)];
        let mut slices = window.chunks_mut(engine.panel_words(BLOCK)).collect::<Vec<_>>();
        engine.to_residues(0..primes, &panel, &mut slices, &mut scratch);
        window
    };
    let (x, y) = (planes(source, shift), planes(identity, 0));
    let mut product = vec![0xfeed_feed_feed_feed; primes * engine.plane_words(&grid)];
    for (prime, c) in product.chunks_mut(engine.plane_words(&grid)).enumerate() {
        let words = prime * engine.panel_words(BLOCK)..(prime + 1) * engine.panel_words(BLOCK);
        let plane = PlaneProduct {
            x: &x[words.clone()],
            y: &y[words],
            rows: BLOCK,
            grid,
            blocks: 0..grid.len(),
            accumulate: false,
        };
        engine.multiply(prime, &plane, c, &mut scratch);
    }
    let mut integers = IntegerBlock::new(engine.magnitude_limbs());
    let residues = BlockResidues { window: &product, plane_words: engine.plane_words(&grid), offset: 0 };
    engine.reconstruct(&residues, &mut integers, &mut scratch);
    integers
}
