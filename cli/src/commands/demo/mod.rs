//! `sunzi demo`: a Gram matrix of the conformal bootstrap, computed, checked, stored, verified, timed, factored; and a
//! look at why doubles do not do. All files go to a temporary folder, which is gone at the end.

mod definite;
mod plain;

use crate::session::Session;
use crate::signals::{Mode, in_mode, stop_requested};
use definite::{InBigFloats, InDoubles, in_big_floats, in_doubles};
use plain::PlainLoop;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sunzi::gallery::{Kind, Size, generate};
use sunzi::io::{self, ReadOptions, Symmetry, WriteOptions};
use sunzi::report::Report;
use sunzi::verify::{VerifyOptions, verify_syrk};
use sunzi::{Error, Matrix, Result, SyrkOptions, syrk_with};
use sunzi_session::engine::Engine;
use sunzi_session::engine::limited;
use sunzi_session::session::Session as _;
use sunzi_session::units::{counted, format_bytes, format_seconds};

/// The problem: 2000 sampled dimensions, 200 derivatives, 1024 bits.
const SIZE: Size = Size { rows: 2000, cols: 200, precision_bits: 1024 };
/// Seconds that the plain loop may take; the rest is extrapolated.
const PLAIN_SECONDS: f64 = 8.0;

#[derive(Serialize)]
struct DemoReport<'a> {
    operation: &'static str,
    product: &'a Report,
    /// A second call with warm tables and memory.
    again_seconds: f64,
    plain_loop: &'a PlainLoop,
    /// Seconds of the plain loop, extrapolated where it was cut short, over ours.
    ratio: f64,
    doubles: &'a InDoubles,
    big_floats: &'a InBigFloats,
    seconds: f64,
}

pub fn run(session: &mut Session, engine: &Engine) -> Result<()> {
    in_mode(Mode::Computing, || tour(session, engine))
}

fn tour(session: &mut Session, engine: &Engine) -> Result<()> {
    let start = Instant::now();
    let folder = tempfile::tempdir().map_err(|source| Error::Io {
        path: std::env::temp_dir(),
        action: "create a folder there",
        source,
    })?;
    let (p_path, q_path) = (folder.path().join("P.bin"), folder.path().join("Q.mtx"));
    prepare(session, &p_path)?;
    let p = session.read(&p_path, ReadOptions::new(SIZE.precision_bits))?.matrix;
    let (builder, restate) = limited(session.context(engine)?.self_check(true), engine.budget(p.bytes()));
    let ctx = builder.build()?;
    let product = || syrk_with(&ctx, &p, SIZE.precision_bits, &SyrkOptions::default()).map_err(&restate);
    let first = product()?;
    let again = product()?.report;
    session.say(&format!(
        "2. Q := P^T P by modular arithmetic: {} in the first call, {} in the second ({}, {} primes, {}, {} of \
         memory); a redundant prime checked every entry.",
        format_seconds(first.report.seconds),
        format_seconds(again.seconds),
        again.kernel,
        again.primes,
        counted(again.threads, "thread"),
        format_bytes(again.planned_bytes),
    ))?;
    store_and_verify(session, &ctx, &p, &first.result, &q_path)?;
    still_wanted()?;
    let plain = plain::measure(&p, ctx.threads(), PLAIN_SECONDS);
    session.say(&format!("4. {}", plain.describe(again.seconds)))?;
    still_wanted()?;
    let doubles = in_doubles(&first.result);
    session.say(&format!("5. Why high precision? Cholesky of Q in double precision {doubles}."))?;
    let big_floats = in_big_floats(&ctx, &first.result).map_err(&restate)?;
    session.say(&format!("   Sunzi at 53 bits: {}.", big_floats.at_double_precision()))?;
    session.say(&format!("6. At {big_floats}"))?;
    let seconds = start.elapsed().as_secs_f64();
    session.finish_report(&DemoReport {
        operation: "demo",
        product: &first.report,
        again_seconds: again.seconds,
        ratio: plain.total_seconds / again.seconds,
        plain_loop: &plain,
        doubles: &doubles,
        big_floats: &big_floats,
        seconds,
    })?;
    session.say(&format!("Done in {}; the temporary files are removed.", format_seconds(seconds)))
}

/// Makes the problem and stores it.
fn prepare(session: &Session, path: &Path) -> Result<()> {
    let start = Instant::now();
    let p = generate(Kind::Bootstrap1d, SIZE, 0)?;
    io::write(path, &p, &WriteOptions::default())?;
    still_wanted()?;
    session.say(&format!(
        "1. P: {} x {} derivatives of 1D conformal crossing functions at {} bits, made in {} ({}).",
        SIZE.rows,
        SIZE.cols,
        SIZE.precision_bits,
        format_seconds(start.elapsed().as_secs_f64()),
        format_bytes(p.bytes()),
    ))
}

/// Stores Q, reads it back, and verifies the matrix that was read.
fn store_and_verify(session: &Session, ctx: &sunzi::Context, p: &Matrix, q: &Matrix, path: &PathBuf) -> Result<()> {
    let options = WriteOptions::new().symmetry(Symmetry::SymmetricLower);
    io::write(path, q, &options)?;
    let stored = io::read(path, &ReadOptions::new(SIZE.precision_bits))?.matrix;
    let found = verify_syrk(ctx, p, &stored, SIZE.precision_bits, &VerifyOptions::default())?;
    session.say(&format!(
        "3. Q stored as decimals, read back and verified by exact arithmetic: {} random vectors and {} entries; the \
         largest error is {:.3} times the bound 2^(1-{}) |p_i| |p_j|.",
        found.vector_count,
        found.entry_count,
        found.worst_entry.max(found.worst_residual),
        SIZE.precision_bits
    ))
}

fn still_wanted() -> Result<()> {
    if stop_requested() { Err(Error::Cancelled) } else { Ok(()) }
}
