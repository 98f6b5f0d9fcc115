//! The `f64` family end to end against the time it spends inside its own dgemm calls, in the same run.
//!
//! Without arguments (as `cargo test` runs it) sizes are tiny and only the answers matter. `cargo bench --features blas
//! --bench conversion_f64 -- --full` takes the real sizes, one thread; CPU time, for each piece (a panel, a plane, 64
//! blocks) the least of the runs, so that other work on the machine counts little. Start it with
//! `OPENBLAS_CORETYPE` set where OpenBLAS does not know the CPU (docs/BENCHMARKS.md).

use rug::Integer;
use rug::integer::Order;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use sunzi::Matrix;
use sunzi::advanced::kernels::f64::F64Kernel;
use sunzi::advanced::kernels::f64::dgemm::{Dgemm, DgemmShape, DoubleColumns, GemmCrate};
use sunzi::advanced::kernels::{
    BlockResidues, EngineSpec, IntegerBlock, PanelSource, PlaneEngine, PlaneKernel, PlaneProduct,
};
use sunzi::advanced::math::bound;
use sunzi::advanced::math::scale::scaled_integer;
use sunzi::advanced::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use sunzi::advanced::store::Buffer;

/// Nanoseconds spent inside dgemm calls.
static DGEMM_NS: AtomicU64 = AtomicU64::new(0);

/// CPU time of this process: what other processes do on a shared machine counts little.
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A dgemm with a clock around every call.
#[derive(Clone)]
struct Timed<G>(G);

impl<G> Timed<G> {
    fn time(&self, work: impl FnOnce(&G)) {
        let start = now();
        work(&self.0);
        DGEMM_NS.fetch_add((now() - start).as_nanos() as u64, Ordering::Relaxed);
    }
}

impl<G: Dgemm> Dgemm for Timed<G> {
    fn tile(&self) -> DgemmShape {
        self.0.tile()
    }

    fn product(&self, x: DoubleColumns<'_>, y: DoubleColumns<'_>, out: &mut [f64]) {
        self.time(|dgemm| dgemm.product(x, y, out));
    }

    fn gram(&self, x: DoubleColumns<'_>, out: &mut [f64]) {
        self.time(|dgemm| dgemm.gram(x, out));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let full = arguments.iter().any(|argument| argument == "--full");
    let wanted = |name: &str| !arguments.iter().any(|other| ["f64", "blas"].contains(&&**other) && other != name);
    let shapes: &[(usize, usize, u32)] =
        if full { &[(2000, 2000, 768), (4000, 1000, 1024), (3000, 300, 2048)] } else { &[(30, 17, 128)] };
    let runs = if full { 3 } else { 1 };
    for &shape in shapes {
        if wanted("f64") {
            measure(&F64Kernel::new("f64", Timed(GemmCrate)), shape, runs);
        }
        #[cfg(feature = "blas")]
        if wanted("blas") {
            let blas = sunzi::advanced::kernels::blas::safe::OpenBlas::probe().expect("OpenBLAS can run on one thread");
            measure(&F64Kernel::new("blas", Timed(blas)), shape, runs);
        }
    }
}

/// One product's operands and windows.
struct Problem {
    engine: Arc<dyn PlaneEngine>,
    matrix: Matrix,
    shifts: Vec<i64>,
    grid: BlockGrid,
    operands: Buffer,
    products: Buffer,
    scratch: Vec<u64>,
    integers: Vec<IntegerBlock>,
}

impl Problem {
    fn new(kernel: &dyn PlaneKernel, (rows, cols, bits): (usize, usize, u32)) -> Problem {
        let operand_bits = bound::working_bits(bits, rows);
        let modulus_bits = bound::modulus_bits(operand_bits, operand_bits);
        let spec = EngineSpec { operand_bits, modulus_bits, redundant: false };
        let engine = kernel.prepare(&spec).expect("the precision is supported");
        let mut matrix = Matrix::zeros(rows, cols, bits).expect("fits");
        let mut rng = rug::rand::RandState::new();
        let half = Integer::from(1) << (bits - 1);
        for index in 0..rows * cols {
            let value = Integer::from(Integer::random_bits(bits, &mut rng)) - &half;
            matrix.set_integer_exponent(index % rows, index / rows, &value, -i64::from(bits)).expect("in range");
        }
        // Entries are below one half, so the columns' norms are below sqrt(rows).
        let shift = i64::from(operand_bits) - i64::from(bound::ceil_log2(rows).div_ceil(2));
        let grid = BlockGrid::triangle(cols);
        Problem {
            scratch: vec![0; engine.scratch_words(rows, &grid)],
            integers: vec![IntegerBlock::new(engine.magnitude_limbs())],
            engine,
            matrix,
            shifts: vec![shift; cols],
            grid,
            operands: Buffer::default(),
            products: Buffer::default(),
        }
    }

    fn pieces(&self) -> [usize; 3] {
        [self.grid.cols, self.engine.moduli().len(), self.grid.len().div_ceil(64)]
    }

    /// Converts panel `block`.
    fn convert_block(&mut self, block: usize) {
        let (rows, cols) = (self.matrix.rows(), self.matrix.cols());
        let (count, panel) = (self.engine.moduli().len(), self.engine.panel_words(rows));
        let plane = panel * self.grid.cols;
        let words = self.operands.words(plane * count).expect("fits");
        let mut planes: Vec<&mut [u64]> =
            words.chunks_exact_mut(plane).map(|plane| &mut plane[block * panel..][..panel]).collect();
        let columns = block * BLOCK..((block + 1) * BLOCK).min(cols);
        let source = PanelSource { view: self.matrix.view(), columns, rows: 0..rows, shifts: &self.shifts };
        self.engine.to_residues(0..count, &source, &mut planes, &mut self.scratch);
    }

    /// Multiplies plane `prime`.
    fn multiply(&mut self, prime: usize) {
        let rows = self.matrix.rows();
        let (count, grid) = (self.engine.moduli().len(), self.grid);
        let plane = self.engine.panel_words(rows) * grid.cols;
        let x = &self.operands.words(plane * count).expect("fits")[prime * plane..][..plane];
        let products = self.products.words(grid.words() * count).expect("fits");
        let c = &mut products[prime * grid.words()..][..grid.words()];
        let product = PlaneProduct { x, y: x, rows, grid, blocks: 0..grid.len(), accumulate: false };
        self.engine.multiply(prime, &product, c, &mut self.scratch);
    }

    /// Reconstructs blocks `64 group..`.
    fn reconstruct(&mut self, group: usize) {
        let count = self.engine.moduli().len();
        let plane_words = self.grid.words();
        let window = &*self.products.words(plane_words * count).expect("fits");
        for index in group * 64..(group * 64 + 64).min(self.grid.len()) {
            let residues = BlockResidues { window, plane_words, offset: index * BLOCK_WORDS };
            self.engine.reconstruct(&residues, &mut self.integers[0], &mut self.scratch);
        }
    }

    /// The last block holds the last diagonal entry, which is compared with its exact value.
    fn check(&self) {
        let last = self.matrix.cols() - 1;
        let entry = (last % BLOCK) * (BLOCK + 1);
        let integer = |row| scaled_integer(self.matrix.get(row, last), self.shifts[last]);
        let want = (0..self.matrix.rows()).fold(Integer::new(), |sum, row| sum + integer(row).square());
        assert_eq!(Integer::from_digits(self.integers[0].magnitude(entry), Order::Lsf), want, "the answer is wrong");
    }
}

fn measure(kernel: &dyn PlaneKernel, shape: (usize, usize, u32), runs: usize) {
    let mut problem = Problem::new(kernel, shape);
    let steps: [fn(&mut Problem, usize); 3] = [Problem::convert_block, Problem::multiply, Problem::reconstruct];
    // For each piece of each step: the least CPU time, and the time in dgemm calls during that run.
    let mut best = problem.pieces().map(|count| vec![(f64::MAX, 0.0); count]);
    for _ in 0..runs {
        for (step, best) in steps.iter().zip(&mut best) {
            for (piece, best) in best.iter_mut().enumerate() {
                DGEMM_NS.store(0, Ordering::Relaxed);
                let start = now();
                step(&mut problem, piece);
                let seconds = (now() - start).as_secs_f64();
                if seconds < best.0 {
                    *best = (seconds, DGEMM_NS.load(Ordering::Relaxed) as f64 * 1e-9);
                }
            }
        }
    }
    problem.check();
    let (rows, cols, bits) = shape;
    let primes = problem.engine.moduli().len();
    let [forth, product, back] = best.each_ref().map(|pieces| pieces.iter().map(|piece| piece.0).sum::<f64>());
    let dgemm: f64 = best[1].iter().map(|piece| piece.1).sum();
    let needed = (problem.grid.len() * BLOCK_WORDS * rows * primes) as f64;
    println!("{}: {rows} x {cols}, {bits} bits, {primes} primes", kernel.name());
    println!("  to_residues {forth:.3} s: {:.2} ns a residue", forth * 1e9 / (rows * cols * primes) as f64);
    println!("  product     {product:.3} s: {:.1} G useful multiply-adds/s", needed / product * 1e-9);
    println!("  reconstruct {back:.3} s: {:.2} ns a residue", back * 1e9 / (problem.grid.words() * primes) as f64);
    println!("  dgemm alone {dgemm:.3} s: {:.1} G useful multiply-adds/s", needed / dgemm * 1e-9);
    println!("  total / dgemm = {:.3}", (forth + product + back) / dgemm);
}
