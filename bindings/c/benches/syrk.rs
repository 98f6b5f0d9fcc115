//! SYRK on arrays of `mpfr_t` through the C library beside the Rust call on a `Matrix`, in turns, in one process.
//!
//! `cargo bench -p sunzi-c -- [ROWS COLS BITS THREADS RUNS]` prints the least times and their ratio; run as a test it
//! takes a tiny size. Either way the two results are compared bit for bit.

use rug::{Float, rand::RandState};
use std::ptr;
use std::time::Instant;
use sunzi::{Context, Matrix, SyrkOptions, syrk_into};
use sunzi_c::*;

fn main() {
    let numbers = std::env::args().skip(1).filter_map(|text| text.parse::<usize>().ok()).collect::<Vec<_>>();
    let benched = std::env::args().any(|text| text == "--bench");
    let mut sizes = if benched { [4000, 1000, 1024, 1, 3] } else { [40, 10, 128, 1, 2] };
    sizes.iter_mut().zip(numbers).for_each(|(size, given)| *size = given);
    let [rows, cols, bits, threads, runs] = sizes;
    let (c, rust, reading, writing) = measure((rows, cols), bits as u32, threads, runs);
    println!("syrk {rows} x {cols}, {bits} bits, {threads} threads, least of {runs} runs in turns");
    println!("  Rust call on a Matrix        {rust:.3} s");
    println!("  C call on arrays of mpfr_t   {c:.3} s, of which {reading:.3} s to read and {writing:.3} s to write");
    println!("  ratio                        {:.3}", c / rust);
}

/// Least seconds of both calls, and what the best C call spent on conversions.
fn measure((rows, cols): (usize, usize), bits: u32, threads: usize, runs: usize) -> (f64, f64, f64, f64) {
    let mut rng = RandState::new();
    let mut entries = (0..rows * cols).map(|_| Float::with_val(bits, Float::random_bits(&mut rng)) - 0.5f64);
    let entries = entries.by_ref().collect::<Vec<_>>();
    let matrix = Matrix::from_floats(rows, cols, bits, &entries).expect("finite numbers");
    let target = vec![Float::new(bits); cols * cols];

    let rust_ctx = Context::builder().threads(threads).build().expect("a context");
    let mut result = sunzi::SymmetricMatrix::default();
    let mut ctx = ptr::null_mut();
    let options = sunzi_options { threads: threads as i64, ..sunzi_options_default() };
    // SAFETY: both are live.
    assert_eq!(unsafe { sunzi_context_new(&options, &mut ctx) }, sunzi_status::SUNZI_OK);
    let (row_count, col_count) = (rows as i64, cols as i64);
    let a = sunzi_mpfr_matrix(SUNZI_COL_MAJOR, row_count, col_count, entries.as_ptr().cast(), row_count);
    let c = sunzi_mpfr_matrix(SUNZI_COL_MAJOR, col_count, col_count, target.as_ptr().cast(), col_count);
    let (none, mut report) = (ptr::null(), sunzi_report::default());
    let (mut least, mut of_rust) = ((f64::INFINITY, 0.0, 0.0), f64::INFINITY);
    for _ in 0..runs {
        let start = Instant::now();
        syrk_into(&rust_ctx, &matrix, bits, &SyrkOptions::default(), &mut result).expect("a product");
        of_rust = of_rust.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        // SAFETY: all arrays are live.
        let status = unsafe { sunzi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, none, &a, none, &c) };
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(status, sunzi_status::SUNZI_OK);
        // SAFETY: both are live.
        unsafe { sunzi_last_report(ctx, &mut report) };
        if seconds < least.0 {
            least = (seconds, report.read_seconds, report.write_seconds);
        }
    }
    for col in 0..cols {
        assert!((col..cols).all(|row| target[row + col * cols] == result.float(row, col)), "column {col}");
    }
    // SAFETY: made above, and not used again.
    unsafe { sunzi_context_free(ctx) };
    (least.0, of_rust, least.1, least.2)
}
