//! Checksums of results, one line for each operation, size and precision, compared on every kernel: on one thread and
//! on two, or with little effort on one or two, the larger sizes with every third operation or kernel.
//!
//! The table `tests/checksums.txt` was made by the program as it stood before its drivers were merged, its lines of
//! accuracy entry by entry when that became the default; a result may
//! never change a bit, so a line may be added but not changed. `SUNZI_WRITE_CHECKSUMS=1` writes the table anew, by the
//! preferred kernel on one thread.
//!
//! A checksum covers the signs, the exponents and the limbs of a matrix, column by column; of a matrix of which one
//! triangle is asked for, that triangle alone.

use rug::Float;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use sunzi::advanced::kernels;
use sunzi::advanced::testing::effort;
use sunzi::{
    Accuracy, CholeskyOptions, Context, Diag, GemmOptions, LdltOptions, LuOptions, Matrix, Op, RefineOptions, Side,
    Symmetric, SyrkOptions, TrsmOptions, Uplo, cholesky_with, gemm_with, ldlt_with, lu_with, solve_refined_with,
    syrk_with, trsm_with, weighted_gram_with,
};
use xxhash_rust::xxh3::Xxh3;

/// Contracted rows, columns, bits: direct path, edges of blocks, tiles, chunks; a precision beyond 52-bit kernels.
const SIZES: &[(usize, usize, u32)] = &[
    (1, 1, 53),
    (7, 3, 100),
    (9, 8, 256),
    (20, 10, 256),
    (33, 17, 640),
    (40, 45, 200),
    (64, 65, 128),
    (129, 40, 1024),
    (300, 31, 333),
    (25, 150, 120),
    (18, 24, 2100),
    (12, 9, 4000),
];

/// From this size on the lines take most of the time.
const LARGER: usize = 7;

/// A source of words that owes nothing to the library or to a crate (SplitMix64).
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A full significand of random sign; its exponent lies within `spread` of 0.
    fn float(&mut self, precision_bits: u32, spread: u64) -> Float {
        let digits = (0..precision_bits.div_ceil(64)).map(|_| self.next()).collect::<Vec<_>>();
        let mut integer = rug::Integer::from_digits(&digits, rug::integer::Order::Lsf);
        integer.keep_bits_mut(precision_bits);
        integer.set_bit(precision_bits - 1, true);
        let shift = (self.next() % (2 * spread + 1)) as i64 - spread as i64 - i64::from(precision_bits);
        let value = Float::with_val(precision_bits, integer) << i32::try_from(shift).unwrap();
        if self.next() & 1 == 1 { -value } else { value }
    }
}

fn matrix(rows: usize, cols: usize, precision_bits: u32, (seed, spread): (u64, u64)) -> Matrix {
    let mut words = Words(seed);
    let values = (0..rows * cols).map(|_| words.float(precision_bits, spread)).collect::<Vec<_>>();
    Matrix::from_floats(rows, cols, precision_bits, &values).unwrap()
}

fn integers(rows: usize, cols: usize, bits: u32, seed: u64) -> Matrix {
    let mut words = Words(seed);
    let values = (0..rows * cols).map(|_| words.next() as i64 >> (64 - bits)).collect::<Vec<_>>();
    Matrix::from_integers(rows, cols, bits, &values.into_iter().map(rug::Integer::from).collect::<Vec<_>>()).unwrap()
}

/// A symmetric matrix whose diagonal dominates, rows and columns scaled by powers of two.
fn definite(order: usize, precision_bits: u32, (seed, spread): (u64, u64)) -> Matrix {
    let mut words = Words(seed);
    let scales = (0..order).map(|_| (words.next() % (2 * spread + 1)) as i32 - spread as i32).collect::<Vec<_>>();
    let mut values = vec![Float::new(precision_bits); order * order];
    for col in 0..order {
        for row in col..order {
            let mut value = words.float(precision_bits, 1);
            if row == col {
                value = value.abs() + order as u32 * 2;
            }
            value <<= scales[row] + scales[col];
            values[col + row * order] = value.clone();
            values[row + col * order] = value;
        }
    }
    Matrix::from_floats(order, order, precision_bits, &values).unwrap()
}

/// The sums of one computation, in the order in which matrices were added.
#[derive(Default)]
struct Sum(Xxh3);

impl Sum {
    /// Adds the entries that `wanted` names.
    fn add_where(&mut self, matrix: &Matrix, wanted: impl Fn(usize, usize) -> bool) {
        for size in [matrix.rows() as u64, matrix.cols() as u64, matrix.precision_bits().into()] {
            self.0.update(&size.to_le_bytes());
        }
        for col in 0..matrix.cols() {
            for row in (0..matrix.rows()).filter(|&row| wanted(row, col)) {
                let value = matrix.get(row, col);
                self.0.update(&value.head.0.to_le_bytes());
                value.limbs.iter().for_each(|limb| self.0.update(&limb.to_le_bytes()));
            }
        }
    }

    fn add(&mut self, matrix: &Matrix) {
        self.add_where(matrix, |_, _| true);
    }

    fn add_lower(&mut self, matrix: &Matrix) {
        self.add_where(matrix, |row, col| row >= col);
    }

    fn add_float(&mut self, value: &Float) {
        let text = value.to_string_radix(32, None);
        self.0.update(text.as_bytes());
    }
}

/// What a line is computed from: contracted rows, columns and bits, and what is promised of entries.
#[derive(Clone, Copy)]
struct Size {
    rows: usize,
    cols: usize,
    bits: u32,
    accuracy: Accuracy,
}

type Case = fn(&Context, Size, &mut Sum);

const CASES: &[(&str, Accuracy, Case)] = &[
    ("syrk", Accuracy::Norm, syrk_case),
    ("gemm", Accuracy::Norm, gemm_case),
    ("integers", Accuracy::Norm, integer_case),
    ("trsm", Accuracy::Norm, trsm_case),
    ("cholesky", Accuracy::Norm, cholesky_case),
    ("solve", Accuracy::Norm, solve_case),
    ("ldlt", Accuracy::Norm, ldlt_case),
    ("syrk-entrywise", Accuracy::Entrywise, syrk_case),
    ("gemm-entrywise", Accuracy::Entrywise, gemm_case),
    ("trsm-entrywise", Accuracy::Entrywise, trsm_case),
    ("cholesky-entrywise", Accuracy::Entrywise, cholesky_case),
    ("solve-entrywise", Accuracy::Entrywise, solve_case),
    ("ldlt-entrywise", Accuracy::Entrywise, ldlt_case),
    ("weighted", Accuracy::Norm, weighted_case),
    ("weighted-entrywise", Accuracy::Entrywise, weighted_case),
    ("lu", Accuracy::Norm, lu_case),
    ("lu-entrywise", Accuracy::Entrywise, lu_case),
];

fn syrk_case(ctx: &Context, Size { rows, cols, bits, accuracy }: Size, sum: &mut Sum) {
    let (alpha, beta) = (Float::with_val(70, 7) / 3u32, Float::with_val(20, -0.375));
    for spread in [2, 900] {
        let p = matrix(rows, cols, bits, (1, spread));
        let c = definite(cols, bits, (2, 3));
        sum.add_lower(&syrk_with(ctx, &p, bits, &SyrkOptions::new().accuracy(accuracy)).unwrap().result);
        let upper = SyrkOptions::new().accuracy(accuracy).op(Op::Transpose).uplo(Uplo::Upper);
        let q = syrk_with(ctx, &p.transposed().to_matrix().unwrap(), bits, &upper).unwrap().result;
        sum.add_where(&q, |row, col| row <= col);
        let scaled = SyrkOptions::new().accuracy(accuracy).alpha(&alpha).beta(&beta).accumulate(Symmetric::from(&c));
        sum.add_lower(&syrk_with(ctx, &p, bits, &scaled).unwrap().result);
    }
}

fn gemm_case(ctx: &Context, Size { rows, cols, bits, accuracy }: Size, sum: &mut Sum) {
    let (alpha, beta) = (Float::with_val(90, -5) / 7u32, Float::with_val(30, 1.5));
    for spread in [2, 700] {
        let (a, b) = (matrix(cols, rows, bits, (3, spread)), matrix(rows, cols + 2, bits + 9, (4, spread)));
        let c = matrix(cols, cols + 2, bits, (5, 4));
        sum.add(&gemm_with(ctx, &a, &b, bits, &GemmOptions::new().accuracy(accuracy)).unwrap().result);
        let (a, b) = (a.transposed().to_matrix().unwrap(), b.transposed().to_matrix().unwrap());
        let turned = GemmOptions::new().accuracy(accuracy).op_a(Op::Transpose).op_b(Op::Transpose);
        let options = turned.alpha(&alpha).beta(&beta).accumulate(c.view());
        sum.add(&gemm_with(ctx, &a, &b, bits, &options).unwrap().result);
    }
}

fn weighted_case(ctx: &Context, Size { rows, cols, bits, accuracy }: Size, sum: &mut Sum) {
    let alpha = Float::with_val(70, -5) / 3u32;
    let c = definite(cols, bits, (18, 3));
    for spread in [2, 900] {
        let (p, d) = (matrix(rows, cols, bits, (19, spread)), matrix(rows, 1, 90, (20, spread)));
        let options = SyrkOptions::new().accuracy(accuracy);
        sum.add_lower(&weighted_gram_with(ctx, &p, &d, bits, &options).unwrap().result);
        let options = options.op(Op::Transpose).uplo(Uplo::Upper).alpha(&alpha).accumulate(Symmetric::from(&c));
        let q = weighted_gram_with(ctx, p.transposed().to_matrix().unwrap().view(), &d, bits, &options);
        sum.add_where(&q.unwrap().result, |row, col| row <= col);
    }
}

fn integer_case(ctx: &Context, Size { rows, cols, bits, .. }: Size, sum: &mut Sum) {
    let p = integers(rows, cols, bits.min(60), 6);
    let options = SyrkOptions::new().exact_integers(true);
    sum.add_lower(&syrk_with(ctx, &p, bits, &options).unwrap().result);
    let options = GemmOptions::new().op_a(Op::Transpose).exact_integers(true);
    sum.add(&gemm_with(ctx, &p, &integers(rows, 5, 33, 7), bits, &options).unwrap().result);
}

fn trsm_case(ctx: &Context, Size { rows, cols, bits, accuracy }: Size, sum: &mut Sum) {
    let plain = TrsmOptions::new().accuracy(accuracy);
    let alpha = Float::with_val(40, 11) / 13u32;
    let t = definite(cols, bits, (8, 2));
    for (at, side) in [Side::Left, Side::Right].into_iter().enumerate() {
        for uplo in [Uplo::Lower, Uplo::Upper] {
            for op in [Op::NoTranspose, Op::Transpose] {
                for diag in [Diag::NonUnit, Diag::Unit] {
                    let seed = (9, if diag == Diag::Unit { 40 } else { 3 });
                    let b = match side {
                        Side::Left => matrix(cols, rows.min(40), bits, seed),
                        Side::Right => matrix(rows.min(40), cols, bits, seed),
                    };
                    let alpha = (at == 1).then_some(&alpha);
                    let options = plain.side(side).uplo(uplo).op(op).diag(diag).alpha(alpha);
                    sum.add(&trsm_with(ctx, &t, &b, bits, &options).unwrap().result);
                }
            }
        }
    }
    // One right-hand side, and columns whose exponents lie far apart.
    sum.add(&trsm_with(ctx, &t, &matrix(cols, 1, bits, (10, 2)), bits, &plain).unwrap().result);
    sum.add(&trsm_with(ctx, &t, &matrix(cols, 12, bits, (11, 9000)), bits, &plain).unwrap().result);
}

fn cholesky_case(ctx: &Context, Size { rows, cols, bits, accuracy }: Size, sum: &mut Sum) {
    let options = CholeskyOptions::new().accuracy(accuracy);
    for (order, spread) in [(cols, 0), (cols, 1500), (rows.min(260), 3)] {
        let factor = cholesky_with(ctx, &definite(order, bits, (12, spread)), bits, &options).unwrap().result;
        sum.add_lower(factor.factor());
        sum.add_float(&factor.log_det());
    }
}

fn solve_case(ctx: &Context, Size { cols, bits, accuracy, .. }: Size, sum: &mut Sum) {
    let a = definite(cols, bits, (13, 5));
    let factor = cholesky_with(ctx, &a, bits, &CholeskyOptions::new().accuracy(accuracy)).unwrap().result;
    for (right_sides, spread) in [(1, 3), (2, 3), (3, 4000), (40, 2)] {
        sum.add(&factor.solve(ctx, &matrix(cols, right_sides, bits, (14, spread)), bits).unwrap());
    }
    sum.add(&factor.inverse(ctx, bits).unwrap());
    let refined =
        solve_refined_with(ctx, &a, &matrix(cols, 2, bits, (15, 2)), bits, &RefineOptions::default()).unwrap();
    sum.add(&refined.result);
}

fn ldlt_case(ctx: &Context, Size { cols, bits, accuracy, .. }: Size, sum: &mut Sum) {
    // Quasi-definite: a positive block, a negative block, and what lies between them.
    let mut a = definite(cols, bits, (16, 2));
    for index in cols / 2..cols {
        let pivot = -a.float(index, index);
        a.set_float(index, index, &pivot).unwrap();
    }
    let factors = ldlt_with(ctx, &a, bits, &LdltOptions::new().accuracy(accuracy)).unwrap().result;
    sum.add_lower(factors.lower());
    sum.add(factors.pivots());
    sum.add(&factors.solve(ctx, &matrix(cols, 3, bits, (17, 2)), bits).unwrap());
}

fn lu_case(ctx: &Context, Size { cols, bits, accuracy, .. }: Size, sum: &mut Sum) {
    let a = matrix(cols, cols, bits, (18, 9));
    let factors = lu_with(ctx, &a, bits, &LuOptions::new().accuracy(accuracy)).unwrap().result;
    sum.add(factors.factors());
    factors.rows().iter().for_each(|&row| sum.add_float(&Float::with_val(64, row)));
    let b = matrix(cols, 9, bits, (19, 2));
    sum.add(&factors.solve(ctx, &b, bits).unwrap());
    sum.add(&factors.solve_transposed(ctx, &b, bits).unwrap());
    sum.add_float(&factors.det().unwrap());
}

/// The lines of the table that are wanted, by the numbers of size and case, under one kernel and number of threads.
fn table(kernel: &str, threads: usize, is_wanted: impl Fn(usize, usize) -> bool) -> Vec<(usize, String, u64)> {
    let ctx = Context::builder().kernel(kernel).threads(threads).build().unwrap();
    let mut lines = Vec::new();
    for (size, &(rows, cols, bits)) in SIZES[..sizes()].iter().enumerate() {
        for (at, &(name, accuracy, case)) in CASES.iter().enumerate().filter(|(at, _)| is_wanted(size, *at)) {
            let mut sum = Sum::default();
            case(&ctx, Size { rows, cols, bits, accuracy }, &mut sum);
            lines.push((size * CASES.len() + at, format!("{name} {rows} x {cols} {bits}"), sum.0.digest()));
        }
    }
    lines
}

/// How many sizes are looked at: all, or the first `SUNZI_CHECKSUM_SIZES` where a processor is emulated.
fn sizes() -> usize {
    let asked = std::env::var("SUNZI_CHECKSUM_SIZES").ok().and_then(|count| count.parse().ok());
    asked.unwrap_or(SIZES.len()).min(SIZES.len())
}

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checksums.txt")
}

#[test]
fn results_have_the_checksums_of_the_table() {
    if std::env::var_os("SUNZI_WRITE_CHECKSUMS").is_some() {
        let mut text = String::new();
        for (_, name, digest) in table(kernels::preferred().name(), 1, |_, _| true) {
            writeln!(text, "{name} {digest:016x}").unwrap();
        }
        std::fs::write(path(), text).unwrap();
    }
    let text = std::fs::read_to_string(path()).unwrap();
    let wanted = text.lines().map(|line| line.rsplit_once(' ').unwrap()).collect::<Vec<_>>();
    assert_eq!(wanted.len(), SIZES.len() * CASES.len(), "the table has a line for each case");
    let kernels = kernels::available().into_iter().enumerate();
    let runs = kernels.flat_map(|(number, kernel)| [1, 2].map(|threads| (number, kernel.name(), threads)));
    let (runs, changed, compared) = (Mutex::new(runs), Mutex::new(String::new()), Mutex::new(vec![0; wanted.len()]));
    let work = || {
        while let Some((number, kernel, threads)) = { runs.lock().unwrap().next() } {
            // With little effort one of the numbers of threads, and of the larger sizes every third case.
            let in_turn = |size: usize, case: usize| {
                let is_taken = size < LARGER || (size + number + case).is_multiple_of(3);
                is_taken && (size / 2 + number) % 2 + 1 == threads
            };
            for (line, name, digest) in table(kernel, threads, |size, case| effort() > 1 || in_turn(size, case)) {
                let (case, expected) = wanted[line];
                compared.lock().unwrap()[line] += 1;
                assert_eq!(name, case, "the order of the table");
                if format!("{digest:016x}") != expected {
                    let mut changed = changed.lock().unwrap();
                    writeln!(changed, "{name}: {digest:016x}, kernel {kernel}, {threads} threads").unwrap();
                }
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let (changed, compared) = (changed.into_inner().unwrap(), compared.into_inner().unwrap());
    let count = kernels::available().len();
    for (size, lines) in compared.chunks(CASES.len()).take(sizes()).enumerate() {
        let all = if size < LARGER { count } else { count / 3 };
        let least = if effort() > 1 { 2 * count } else { all };
        assert!(lines.iter().all(|&kernels| kernels >= least), "size {size}: {lines:?} kernels");
    }
    assert!(changed.is_empty(), "other bits than before:\n{changed}");
}
