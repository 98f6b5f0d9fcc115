//! Small sizes beside plain loops over `mpfr_t`, one thread: GEMM, SYRK, TRMM, TRSM and POTRF of square matrices, by
//! the Rust calls, accurate by norms and entry by entry, and by the C twins on arrays of `mpfr_t`.
//!
//! `cargo bench -p sunzi-c --bench small -- [OPERATIONS [SIZES [BITS [KERNEL]]]]`, lists with commas, prints the times
//! of the loops over those of the calls: least times of runs in turns. Run as a test it takes tiny sizes. Either way
//! all results are compared.

use gmp_mpfr_sys::mpfr;
use rug::{Assign, Float, Integer, rand::RandState};
use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::time::Instant;
use sunzi::*;
use sunzi_c::*;

/// Nanoseconds that each call is timed for, in batches of about a fiftieth.
const NANOSECONDS: f64 = 2e7;

const OPERATIONS: &str = "gemm,syrk,trmm,trsm,potrf";

fn main() {
    let benched = std::env::args().any(|text| text == "--bench");
    let given = std::env::args().skip(1).filter(|text| !text.starts_with("--")).collect::<Vec<_>>();
    let list = |at: usize, default: &str| {
        let list = given.get(at).map_or(default, String::as_str);
        list.split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    let numbers = |list: Vec<String>| list.iter().map(|text| text.parse().expect("a number")).collect::<Vec<usize>>();
    let sizes = numbers(list(1, if benched { "1,2,4,6,8,12,16,24,32,64,128" } else { "1,3,9" }));
    let kernel = given.get(3).map_or("auto", String::as_str);
    let contexts = Contexts::new(kernel);
    println!(
        "loops over {kernel}: by norms, entry by entry, C twin entry by entry; microseconds of the loops and these"
    );
    for operation in list(0, OPERATIONS) {
        for bits in numbers(list(2, if benched { "256,512,1024" } else { "256" })) {
            for &size in &sizes {
                let case = Case::new(size, bits as u32);
                let [loops, norm, entrywise, twin] = case.measure(&contexts, &operation, benched);
                let ratios = [norm, entrywise, twin].map(|time| format!("{:7.2}", loops / time)).concat();
                let times = [loops, norm, entrywise, twin].map(|time| format!("{:12.2}", time / 1e3)).concat();
                println!("{operation:5} {bits:5} {size:4} {ratios}   {times}");
            }
        }
    }
}

/// A context of each kind.
struct Contexts {
    rust: Context,
    c: *mut sunzi_context,
}

impl Contexts {
    fn new(kernel: &str) -> Contexts {
        let rust = Context::builder().threads(1).kernel(kernel).build().expect("a context");
        let (name, mut c) = (CString::new(kernel).expect("a name"), ptr::null_mut());
        let options = sunzi_options { threads: 1, kernel: name.as_ptr(), ..sunzi_options_default() };
        // SAFETY: both are live.
        assert_eq!(unsafe { sunzi_context_new(&options, &mut c) }, sunzi_status::SUNZI_OK);
        Contexts { rust, c }
    }
}

impl Drop for Contexts {
    fn drop(&mut self) {
        // SAFETY: made above, and not used again.
        unsafe { sunzi_context_free(self.c) };
    }
}

/// Operands of one size, column-major.
struct Case {
    size: usize,
    bits: u32,
    a: Vec<Float>,
    b: Vec<Float>,
    /// Lower triangular, and symmetric positive definite.
    lower: Vec<Float>,
    definite: Vec<Float>,
}

impl Case {
    fn new(size: usize, bits: u32) -> Case {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(1));
        let mut random = || Float::with_val(bits, Float::random_bits(&mut rng)) * 2u32 - 1u32;
        let mut matrix = || (0..size * size).map(|_| random()).collect::<Vec<_>>();
        let (a, b) = (matrix(), matrix());
        let build = |entry: &dyn Fn(usize, usize) -> Float| {
            (0..size * size).map(|at| entry(at % size, at / size)).collect::<Vec<_>>()
        };
        let shift = |row: usize, col: usize| if row == col { size as u32 } else { 0 };
        let lower = build(&|row, col| match row < col {
            true => Float::new(bits),
            false => Float::with_val(bits, &a[row + col * size] + shift(row, col)),
        });
        let definite = build(&|row, col| {
            Float::with_val(bits, &a[row + col * size] + &a[col + row * size]) / 2u32 + shift(row, col)
        });
        Case { size, bits, a, b, lower, definite }
    }

    /// Nanoseconds of the loops, of the Rust calls and of the C call; one run each where nothing is timed.
    fn measure(&self, contexts: &Contexts, operation: &str, timed: bool) -> [f64; 4] {
        let (size, bits) = (self.size, self.bits);
        let matrix = |entries: &[Float]| Matrix::from_floats(size, size, bits, entries).expect("finite numbers");
        let operands = Operands {
            a: matrix(&self.a),
            b: matrix(&self.b),
            lower: matrix(&self.lower),
            definite: matrix(&self.definite),
        };
        let zeros = || vec![Float::new(bits); size * size];
        let (mut looped, mut twin, mut term) = (zeros(), zeros(), Float::new(bits));
        let mut results = [Matrix::empty(), Matrix::empty()];
        let [norm, entrywise] = &mut results;
        let times = least(
            [
                &mut || self.run_loop(operation, &mut looped, &mut term),
                &mut || operands.run(&contexts.rust, operation, Accuracy::Norm, norm),
                &mut || operands.run(&contexts.rust, operation, Accuracy::Entrywise, entrywise),
                &mut || self.run_twin(contexts.c, operation, &mut twin),
            ],
            timed,
        );
        let triangle = matches!(operation, "syrk" | "potrf");
        for (row, col) in (0..size).flat_map(|row| (0..size).map(move |col| (row, col))) {
            if triangle && row < col {
                continue;
            }
            let want = &looped[row + col * size];
            let others = [results[0].float(row, col), results[1].float(row, col), twin[row + col * size].clone()];
            for other in others {
                let error = Float::with_val(64, other - want).abs();
                assert!(error < Float::with_val(64, 1) >> (bits - 40), "{operation} {bits} {size}: ({row}, {col})");
            }
        }
        times
    }

    /// The loops, with one rounding for each product and each sum.
    fn run_loop(&self, operation: &str, out: &mut [Float], term: &mut Float) {
        let n = self.size;
        let Case { a, b, lower, definite, .. } = self;
        for (j, i) in (0..n).flat_map(|j| (0..n).map(move |i| (j, i))) {
            let at = i + j * n;
            match operation {
                "gemm" => sum(&mut out[at], term, (0..n).map(|k| (&a[i + k * n], &b[k + j * n]))),
                "syrk" if i >= j => sum(&mut out[at], term, (0..n).map(|k| (&a[k + i * n], &a[k + j * n]))),
                "trmm" => sum(&mut out[at], term, (0..=i).map(|k| (&lower[i + k * n], &b[k + j * n]))),
                "trsm" => {
                    let (known, rest) = out[j * n..].split_at_mut(i);
                    rest[0].assign(&b[at]);
                    known.iter().enumerate().for_each(|(k, x)| subtract(&mut rest[0], term, &lower[i + k * n], x));
                    rest[0] /= &lower[i + i * n];
                }
                "potrf" if i >= j => {
                    let (known, rest) = out.split_at_mut(at);
                    rest[0].assign(&definite[at]);
                    (0..j).for_each(|k| subtract(&mut rest[0], term, &known[i + k * n], &known[j + k * n]));
                    match i == j {
                        true => rest[0].sqrt_mut(),
                        false => rest[0] /= &known[j + j * n],
                    }
                }
                _ => {}
            }
        }
    }

    /// The twin of the routine; operands that it overwrites are copied first.
    fn run_twin(&self, ctx: *mut sunzi_context, operation: &str, out: &mut [Float]) {
        let (n, ld) = (self.size as i64, self.size as i64);
        let scalar = |value: u32| Float::with_val(self.bits, value);
        let (one, zero) = (scalar(1), scalar(0));
        let (one, zero): (*const c_void, *const c_void) = (one.as_raw().cast(), zero.as_raw().cast());
        let [no, yes, lower, left]: [*const c_char; 4] = [c"N", c"T", c"L", c"L"].map(|text| text.as_ptr());
        let first = |entries: &[Float]| -> *const c_void { entries.as_ptr().cast() };
        let before = match operation {
            "trmm" | "trsm" => &self.b[..],
            "potrf" => &self.definite[..],
            _ => &[],
        };
        out.iter_mut().zip(before).for_each(|(out, value)| out.assign(value));
        let (a, b, t, c) = (first(&self.a), first(&self.b), first(&self.lower), out.as_mut_ptr().cast::<c_void>());
        // SAFETY: all arrays are live and as large as the sizes say.
        let info = unsafe {
            match operation {
                "gemm" => sunzi_rgemm(ctx, no, no, n, n, n, one, a, ld, b, ld, zero, c, ld),
                "syrk" => sunzi_rsyrk(ctx, lower, yes, n, n, one, a, ld, zero, c, ld),
                "trmm" => sunzi_rtrmm(ctx, left, lower, no, no, n, n, one, t, ld, c, ld),
                "trsm" => sunzi_rtrsm(ctx, left, lower, no, no, n, n, one, t, ld, c, ld),
                "potrf" => sunzi_rpotrf(ctx, lower, n, c, ld),
                other => panic!("{other}: choose from {OPERATIONS}"),
            }
        };
        assert_eq!(info, 0, "{operation}");
    }
}

/// The operands as matrices.
struct Operands {
    a: Matrix,
    b: Matrix,
    lower: Matrix,
    definite: Matrix,
}

impl Operands {
    fn run(&self, ctx: &Context, operation: &str, accuracy: Accuracy, result: &mut Matrix) {
        let Operands { a, b, lower, definite } = self;
        let bits = a.precision_bits();
        let done = match operation {
            "gemm" => gemm_into(ctx, a, b, bits, &GemmOptions::new().accuracy(accuracy), result).map(drop),
            "syrk" => {
                let target = SymmetricDestination::Triangle(Destination::Matrix(result));
                syrk_into(ctx, a, bits, &SyrkOptions::new().accuracy(accuracy), target).map(drop)
            }
            "trmm" => trmm_into(ctx, lower, b, bits, &TrmmOptions::new().accuracy(accuracy), result).map(drop),
            "trsm" => trsm_into(ctx, lower, b, bits, &TrsmOptions::new().accuracy(accuracy), result).map(drop),
            _ => {
                let mut factor = Cholesky::with_memory(std::mem::take(result));
                let options = CholeskyOptions::new().accuracy(accuracy);
                let done = cholesky_into(ctx, Symmetric::lower(definite), bits, &options, &mut factor).map(drop);
                *result = factor.into_factor();
                done
            }
        };
        done.expect("a result");
    }
}

/// `sum := sum of x y`, with a rounding for each product and each sum.
fn sum<'a>(sum: &mut Float, term: &mut Float, pairs: impl Iterator<Item = (&'a Float, &'a Float)>) {
    sum.assign(0);
    for (x, y) in pairs {
        // SAFETY: all numbers are initialised.
        unsafe {
            mpfr::mul(term.as_raw_mut(), x.as_raw(), y.as_raw(), mpfr::rnd_t::RNDN);
            mpfr::add(sum.as_raw_mut(), sum.as_raw(), term.as_raw(), mpfr::rnd_t::RNDN);
        }
    }
}

/// `rest := rest - x y`, with a rounding for each.
fn subtract(rest: &mut Float, term: &mut Float, x: &Float, y: &Float) {
    // SAFETY: all numbers are initialised.
    unsafe {
        mpfr::mul(term.as_raw_mut(), x.as_raw(), y.as_raw(), mpfr::rnd_t::RNDN);
        mpfr::sub(rest.as_raw_mut(), rest.as_raw(), term.as_raw(), mpfr::rnd_t::RNDN);
    }
}

/// Least nanoseconds of each of the calls, in batches by turns.
fn least<const N: usize>(mut calls: [&mut dyn FnMut(); N], timed: bool) -> [f64; N] {
    let time = |call: &mut dyn FnMut(), count: usize| {
        let start = Instant::now();
        (0..count).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e9 / count as f64
    };
    let mut best = calls.each_mut().map(|call| time(call, 1));
    if timed {
        let counts = calls.each_mut().map(|call| (NANOSECONDS / 50.0 / time(call, 1)).clamp(1.0, 5000.0) as usize);
        let mut spent = 0.0;
        while spent < NANOSECONDS {
            let mut round = 0.0f64;
            for (at, call) in calls.iter_mut().enumerate() {
                let each = time(call, counts[at]);
                best[at] = best[at].min(each);
                round = round.max(each * counts[at] as f64);
            }
            spent += round;
        }
    }
    best
}
