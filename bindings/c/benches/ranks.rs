//! Verbs over ranks through the C library beside the Rust calls on the same ranks, in turns, in the same processes.
//!
//! `mpirun -n 2 BENCH [PERCENT THREADS RUNS]`, where BENCH is what `cargo bench -p sunzi-c --features mpi --no-run`
//! names, prints the least times and their ratios; PERCENT scales the orders. Run as a test it takes tiny sizes on one
//! rank. The matrices of the C calls lie in whole rows, as limbs and as `mpfr_t`; those of the Rust calls in rows
//! (SYRK) and in tiles. Every result is compared with that of the Rust call, bit by bit. Written for Open MPI, whose
//! handle of all ranks is 0.

use rug::{Float, rand::RandState};
use std::ptr;
use std::time::Instant;
use sunzi::comm::mpi::Environment;
use sunzi::comm::{Reduction, Transport, barrier};
use sunzi::distributed::{
    DistCholeskyOptions, DistMatrix, DistOptions, Distribution, RankGrid, Team, TeamOptions, TileMap, cholesky_with,
    even_rows, solve_into, syrk, trsm_into,
};
use sunzi::{Accuracy, Context, Matrix, TrsmOptions, Uplo};
use sunzi_c::*;

/// What all cases share.
struct Bench {
    ctx: Context,
    team: Team,
    c: *mut sunzi_context,
    runs: usize,
}

/// A matrix of a C call: this rank's rows.
struct Rows {
    limbs: Matrix,
    floats: Vec<Float>,
}

/// Least seconds of a call over the runs, on the slowest rank, and what conversions took in that run: the check of
/// limbs where they lie is one.
#[derive(Clone, Copy)]
struct Least {
    seconds: f64,
    conversions: f64,
}

impl Rows {
    fn of(matrix: &Matrix) -> Rows {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let floats = (0..cols).flat_map(|col| (0..rows).map(move |row| matrix.float(row, col))).collect();
        Rows { limbs: matrix.clone(), floats }
    }

    fn described(&mut self, as_floats: bool, ranks: usize) -> sunzi_dist_matrix {
        let (rows, cols, bits) =
            (self.limbs.rows() as i64, self.limbs.cols() as i64, self.limbs.precision_bits().into());
        let local = if as_floats {
            sunzi_mpfr_matrix(SUNZI_COL_MAJOR, rows, cols, self.floats.as_ptr().cast(), rows.max(1))
        } else {
            let (heads, limbs) = self.limbs.parts_mut();
            sunzi_limb_matrix(SUNZI_COL_MAJOR, rows, cols, heads.as_mut_ptr(), limbs.as_mut_ptr(), rows.max(1), bits)
        };
        sunzi_dist_rows(local, ranks as i64)
    }

    fn check(&self, as_floats: bool, want: &Matrix, what: &str) {
        if !as_floats {
            assert!(self.limbs == *want, "{what}: other bits");
            return;
        }
        let places = (0..want.cols()).flat_map(|col| (0..want.rows()).map(move |row| (row, col)));
        assert!(
            places.zip(&self.floats).all(|((row, col), float)| *float == want.float(row, col)),
            "{what}: other bits"
        );
    }
}

impl Bench {
    fn world(&self) -> &dyn Transport {
        self.team.world()
    }

    /// Seconds of one call, on the slowest rank.
    fn time(&self, call: impl FnOnce()) -> f64 {
        barrier(self.world()).expect("ranks");
        let start = Instant::now();
        call();
        self.slowest(start.elapsed().as_secs_f64())
    }

    fn slowest(&self, seconds: f64) -> f64 {
        let mut nanoseconds = [(seconds * 1e9) as u64];
        self.world().all_reduce(Reduction::Max, &mut nanoseconds).expect("ranks");
        nanoseconds[0] as f64 / 1e9
    }

    /// Times both C calls beside the Rust call.
    fn compare(
        &mut self,
        what: &str,
        mut rust: impl FnMut(&Context, &mut Team) -> Option<Matrix>,
        mut c: impl FnMut(*mut sunzi_context, bool, Option<&Matrix>) -> sunzi_status,
    ) {
        let mut least = [Least { seconds: f64::INFINITY, conversions: 0.0 }; 3];
        for run in 0..=self.runs {
            let Bench { ctx, team, .. } = self;
            barrier(team.world()).expect("ranks");
            let start = Instant::now();
            let want = rust(ctx, team);
            let seconds = self.slowest(start.elapsed().as_secs_f64());
            if run > 0 {
                least[0].seconds = least[0].seconds.min(seconds);
            }
            for (at, as_floats) in [false, true].into_iter().enumerate() {
                let mut status = sunzi_status::SUNZI_OK;
                let seconds = self.time(|| status = c(self.c, as_floats, None));
                assert_eq!(status, sunzi_status::SUNZI_OK);
                let mut report = sunzi_report::default();
                // SAFETY: both are live.
                unsafe { sunzi_last_report(self.c, &mut report) };
                let conversions = self.slowest(report.read_seconds + report.write_seconds);
                if run > 0 && seconds < least[at + 1].seconds {
                    least[at + 1] = Least { seconds, conversions };
                }
                if run == 0 {
                    c(self.c, as_floats, want.as_ref());
                }
            }
        }
        if self.team.rank() == 0 {
            let [rust, limbs, floats] = least;
            let say = |name: &str, of: Least| {
                let (total, beside) = (of.seconds / rust.seconds, (of.seconds - of.conversions) / rust.seconds);
                println!(
                    "  {name:<8} {:8.1} ms, conversions {:6.1} ms: {total:.3}, beside them {beside:.3}",
                    of.seconds * 1e3,
                    of.conversions * 1e3
                );
            };
            println!("{what}: Rust {:.1} ms", rust.seconds * 1e3);
            say("limbs", limbs);
            say("mpfr_t", floats);
        }
    }
}

/// This rank's rows of a random matrix, the same whole one for any number of ranks.
fn random_rows(world: &dyn Transport, (rows, cols): (usize, usize), bits: u32, diagonal: f64) -> Matrix {
    let share = sunzi::distributed::even_share(rows, world.size(), world.rank());
    let mut own = Matrix::zeros(share.len(), cols, bits).expect("memory");
    let mut rng = RandState::new();
    for row in 0..share.end {
        rng.seed(&rug::Integer::from(row + 1));
        for col in 0..if row < share.start { 0 } else { cols } {
            let mut value = Float::with_val(bits, Float::random_bits(&mut rng)) - 0.5f64;
            if diagonal > 0.0 && col >= row {
                value = Float::with_val(bits, if col == row { diagonal } else { 0.0 });
            }
            own.set_float(row - share.start, col, &value).expect("finite");
        }
    }
    own
}

fn tiles(world: &dyn Transport, rows: &Matrix, triangle: Option<Uplo>) -> DistMatrix {
    let mut total = [rows.rows() as u64];
    world.all_reduce(Reduction::Sum, &mut total).expect("ranks");
    let (height, cols) = (total[0] as usize, rows.cols());
    let map = TileMap { rows: height, cols, tile_size: 64, grid: RankGrid::for_ranks(world.size()), triangle };
    DistMatrix::from_local(world, &even_rows(height, cols, world.size()), rows, map).expect("tiles")
}

fn own_rows(world: &dyn Transport, tiles: &DistMatrix) -> Matrix {
    let to: Distribution = even_rows(tiles.map().rows, tiles.map().cols, world.size());
    tiles.to_local(world, &to).expect("rows")
}

fn of_syrk(bench: &mut Bench, (rows, cols): (usize, usize), bits: u32) {
    let ranks = bench.world().size();
    let p = random_rows(bench.world(), (rows, cols), bits, 0.0);
    let (mut a, mut c) = (Rows::of(&p), Rows::of(&random_rows(bench.world(), (cols, cols), bits, 0.0)));
    let mut first = true;
    bench.compare(
        &format!("SYRK {rows} x {cols}, {bits} bits"),
        |ctx, team| {
            let done = syrk(ctx, team, &[p.view()], bits, &DistOptions::new().accuracy(Accuracy::Norm))
                .expect("a product")
                .result;
            std::mem::take(&mut first).then(|| own_rows(team.world(), &done))
        },
        |ctx, as_floats, want| {
            if let Some(want) = want {
                c.check(as_floats, want, "syrk");
                return sunzi_status::SUNZI_OK;
            }
            let (a, c) = (a.described(as_floats, ranks), c.described(as_floats, ranks));
            // SAFETY: all arrays are live.
            unsafe { sunzi_mpi_syrk(ctx, SUNZI_BOTH, SUNZI_TRANS, ptr::null(), &a, ptr::null(), &c) }
        },
    );
}

fn of_trsm(bench: &mut Bench, (order, cols): (usize, usize), bits: u32) {
    let ranks = bench.world().size();
    let (t, b) = (
        random_rows(bench.world(), (order, order), bits, order as f64 / 8.0),
        random_rows(bench.world(), (order, cols), bits, 0.0),
    );
    let (factor, right) = (tiles(bench.world(), &t, Some(Uplo::Lower)), tiles(bench.world(), &b, None));
    let (mut of_t, mut of_b, mut solution) = (Rows::of(&t), Rows::of(&b), right.clone());
    let mut first = true;
    bench.compare(
        &format!("TRSM {order} x {cols}, {bits} bits"),
        |ctx, team| {
            trsm_into(ctx, team, &factor, &right, bits, &TrsmOptions::new().accuracy(Accuracy::Norm), &mut solution)
                .expect("a solution");
            std::mem::take(&mut first).then(|| own_rows(team.world(), &solution))
        },
        |ctx, as_floats, want| {
            if let Some(want) = want {
                of_b.check(as_floats, want, "trsm");
                return sunzi_status::SUNZI_OK;
            }
            let (t, b) = (of_t.described(as_floats, ranks), of_b.described(as_floats, ranks));
            // SAFETY: all arrays are live.
            unsafe { sunzi_mpi_trsm(ctx, SUNZI_LEFT, SUNZI_LOWER, SUNZI_NO_TRANS, SUNZI_NON_UNIT, ptr::null(), &t, &b) }
        },
    );
}

fn of_solves(bench: &mut Bench, order: usize, columns: &[usize], bits: u32) {
    let ranks = bench.world().size();
    // Symmetric by construction: the lower triangle counts.
    let a = random_rows(bench.world(), (order, order), bits, order as f64);
    let held = tiles(bench.world(), &a, Some(Uplo::Lower)).into_symmetric().expect("square");
    let by_norms = DistCholeskyOptions::new().accuracy(Accuracy::Norm);
    let factor = cholesky_with(&bench.ctx, &bench.team, &held, bits, &by_norms).expect("definite").factor;
    let mut rows = Rows::of(&own_rows(bench.world(), &held));
    let described = rows.described(false, ranks);
    let mut kept = ptr::null_mut();
    // SAFETY: all arrays are live.
    let status = unsafe { sunzi_mpi_factor_new(bench.c, SUNZI_LOWER, bits.into(), &described, &mut kept) };
    assert_eq!(status, sunzi_status::SUNZI_OK);
    let factor = tiles_of(bench.world(), &factor);
    for &count in columns {
        let b = random_rows(bench.world(), (order, count), bits, 0.0);
        let right = tiles(bench.world(), &b, None);
        let (mut of_b, mut solution, mut first) = (Rows::of(&b), right.clone(), true);
        bench.compare(
            &format!("solve {order} rows, {count} right-hand sides, {bits} bits, factor kept"),
            |ctx, team| {
                solve_into(ctx, team, &factor, &right, bits, Accuracy::Norm, &mut solution).expect("a solution");
                std::mem::take(&mut first).then(|| own_rows(team.world(), &solution))
            },
            |ctx, as_floats, want| {
                if let Some(want) = want {
                    of_b.check(as_floats, want, "solve");
                    return sunzi_status::SUNZI_OK;
                }
                let b = of_b.described(as_floats, ranks);
                // SAFETY: the array and the factor are live.
                unsafe { sunzi_mpi_factor_solve(ctx, kept, &b) }
            },
        );
    }
    // SAFETY: made above, and not used again.
    unsafe { sunzi_mpi_factor_free(kept) };
}

/// The same matrix in tiles of 64 rows.
fn tiles_of(world: &dyn Transport, matrix: &DistMatrix) -> DistMatrix {
    let map = TileMap { tile_size: 64, grid: RankGrid::for_ranks(world.size()), ..*matrix.map() };
    matrix.redistribute(world, map).expect("tiles")
}

fn main() {
    let numbers = std::env::args().skip(1).filter_map(|text| text.parse::<usize>().ok()).collect::<Vec<_>>();
    let benched = std::env::args().any(|text| text == "--bench") || !numbers.is_empty();
    let mut sizes = if benched { [100, 1, 5] } else { [2, 1, 1] };
    sizes.iter_mut().zip(numbers).for_each(|(size, given)| *size = given);
    let [percent, threads, runs] = sizes;
    let environment = Environment::start().expect("MPI");
    let world = environment.world().expect("all ranks");
    let team = Team::new(world.split(0).expect("ranks"), TeamOptions::new()).expect("a team");
    let ctx = Context::builder().threads(threads).build().expect("a context");
    let options = sunzi_options { threads: threads as i64, accuracy: SUNZI_NORM, ..sunzi_options_default() };
    let mut c = ptr::null_mut();
    // SAFETY: the options are live; 0 is the handle of all ranks.
    assert_eq!(unsafe { sunzi_context_from_mpi(0, &options, &mut c) }, sunzi_status::SUNZI_OK);
    let mut bench = Bench { ctx, team, c, runs };
    let scaled = |size: usize| (size * percent / 100).max(1);
    of_syrk(&mut bench, (scaled(4000), scaled(1000)), 1024);
    of_trsm(&mut bench, (scaled(1000), scaled(1000)), 1024);
    of_solves(&mut bench, scaled(2000), &[scaled(100), 1], 768);
    // SAFETY: made above, and not used again.
    unsafe { sunzi_context_free(bench.c) };
    bench.team.close().expect("ranks");
    drop(world);
    environment.finish().expect("MPI");
}
