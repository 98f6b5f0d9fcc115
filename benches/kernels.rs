//! Each step of every kernel alone, against the machine's multiply-add rate measured in the same run.
//!
//! Without arguments (as `cargo test` runs it) sizes are tiny and only the answers matter. `cargo bench --bench
//! kernels -- --full [kernel] [500x5000 | bits=1024]` takes the real sizes, or
//! one triangle of these columns and rows, or the conversions at these bits. One thread; minima over interleaved runs.

use std::sync::Arc;
use std::time::Instant;
use sunzi::Matrix;
use sunzi::advanced::kernels::{
    self, BlockResidues, EngineSpec, IntegerBlock, PanelSource, PlaneEngine, PlaneKernel, PlaneProduct,
};
use sunzi::advanced::math::bound;
use sunzi::advanced::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use sunzi::advanced::store::Buffer;

/// Shape of a plane product: rows of C, columns of C, rows contracted; a triangle where the first two are one matrix.
type Shape = (usize, usize, usize, bool);

const FULL: &[Shape] = &[
    (960, 960, 4096, false),
    (1000, 1000, 4000, true),
    (500, 500, 5000, true),
    (300, 300, 3000, true),
    (2000, 2000, 2000, true),
    (200, 200, 2000, true),
    (4000, 4000, 4000, true),
];

fn main() {
    let arguments = std::env::args().collect::<Vec<_>>();
    let full = arguments.iter().any(|argument| argument == "--full");
    let chosen = arguments.iter().find_map(|argument| kernels::by_name(argument).ok());
    for kernel in kernels::available() {
        if chosen.is_some_and(|chosen| chosen.name() != kernel.name()) || (full && kernel.name() == "reference") {
            continue;
        }
        println!("kernel {}", kernel.name());
        let runs = if full { 5 } else { 1 };
        if let Some(shape) = arguments.iter().find_map(|argument| triangle(argument)) {
            time_product(kernel, shape, 5);
            continue;
        }
        if let Some(bits) = arguments.iter().find_map(|argument| argument.strip_prefix("bits=")?.parse().ok()) {
            time_conversions(kernel, bits, 2000, runs);
            continue;
        }
        for &shape in if full { FULL } else { &[(16, 24, 10, false), (17, 17, 9, true)] } {
            time_product(kernel, shape, runs);
        }
        for &bits in if full { &[256, 512, 768, 1024, 2048][..] } else { &[128] } {
            time_conversions(kernel, bits, if full { 2000 } else { 9 }, runs);
        }
    }
}

/// The shape that an argument such as `500x5000` names: columns and rows of a triangle.
fn triangle(argument: &str) -> Option<Shape> {
    let (columns, rows) = argument.split_once('x')?;
    let columns = columns.parse().ok()?;
    Some((columns, columns, rows.parse().ok()?, true))
}

fn engine(kernel: &'static dyn PlaneKernel, bits: u32, rows: usize) -> Arc<dyn PlaneEngine> {
    let operand_bits = bound::working_bits(bits, rows);
    let modulus_bits = bound::modulus_bits(operand_bits, operand_bits);
    kernel.prepare(&EngineSpec { operand_bits, modulus_bits, redundant: false }).expect("the precision is supported")
}

fn random_matrix(rows: usize, cols: usize, bits: u32) -> Matrix {
    let mut matrix = Matrix::zeros(rows, cols, bits).expect("fits");
    let mut rng = rug::rand::RandState::new();
    let half = rug::Integer::from(1) << (bits - 1);
    for index in 0..rows * cols {
        let value = rug::Integer::from(rug::Integer::random_bits(bits, &mut rng)) - &half;
        matrix.set_integer_exponent(index % rows, index / rows, &value, -i64::from(bits)).expect("in range");
    }
    matrix
}

/// One plane of residues in the kernel's own form: a converted panel of random numbers, repeated.
fn plane(engine: &dyn PlaneEngine, columns: usize, rows: usize, buffer: &mut Buffer) {
    let matrix = random_matrix(rows, BLOCK, 100);
    let source = PanelSource { view: matrix.view(), columns: 0..BLOCK, rows: 0..rows, shifts: &[100; BLOCK] };
    let panel = engine.panel_words(rows);
    let mut scratch = vec![0; engine.scratch_words(rows, &BlockGrid::triangle(1))];
    let words = buffer.words(columns.div_ceil(BLOCK) * panel).expect("fits");
    let (first, others) = words.split_at_mut(panel);
    engine.to_residues(0..1, &source, &mut [&mut *first], &mut scratch);
    others.chunks_exact_mut(panel).for_each(|other| other.copy_from_slice(first));
}

fn time_product(kernel: &'static dyn PlaneKernel, (m, n, rows, triangle): Shape, runs: usize) {
    let engine = engine(kernel, 100, rows);
    let (mut x, mut y, mut c) = (Buffer::default(), Buffer::default(), Buffer::default());
    plane(&*engine, m, rows, &mut x);
    plane(&*engine, n, rows, &mut y);
    let grid = if triangle { BlockGrid::triangle(m) } else { BlockGrid::rectangle(m, n) };
    let c = c.words(engine.plane_words(&grid)).expect("fits");
    let x = &*x.words(grid.rows * engine.panel_words(rows)).expect("fits");
    let y = if triangle { x } else { y.words(grid.cols * engine.panel_words(rows)).expect("fits") };
    let mut scratch = Buffer::default();
    let scratch = scratch.words(engine.scratch_words(rows, &grid)).expect("fits");
    let (mut best, mut rate) = (f64::MAX, 0.0f64);
    for _ in 0..runs {
        rate = rate.max(kernels::instruction_rate(3).unwrap_or(f64::NAN));
        let start = Instant::now();
        let product = PlaneProduct { x, y, rows, grid, blocks: 0..grid.len(), accumulate: false };
        engine.multiply(0, &product, c, scratch);
        best = best.min(start.elapsed().as_secs_f64());
    }
    let terms = ((if triangle { m * (m + 1) / 2 } else { m * n }) * rows) as f64;
    println!(
        "  plane product {m} x {n} x {rows}{}: {:.2} ms, {:.2} G terms/s, {:.3} of the instruction rate {:.2} G/s",
        if triangle { " triangle" } else { "" },
        best * 1e3,
        terms / best * 1e-9,
        terms / 4.0 / best / rate,
        rate * 1e-9
    );
}

fn time_conversions(kernel: &'static dyn PlaneKernel, bits: u32, rows: usize, runs: usize) {
    const PANELS: usize = 8;
    let engine = engine(kernel, bits, rows);
    let count = engine.moduli().len();
    let matrix = random_matrix(rows, PANELS * BLOCK, bits);
    let shift = i64::from(bound::working_bits(bits, rows)) - i64::from(bound::ceil_log2(rows)) / 2 - 1;
    let shifts = [shift; PANELS * BLOCK];
    let panel = engine.panel_words(rows);
    let grid = BlockGrid::triangle(PANELS * BLOCK);
    let mut scratch = Buffer::default();
    let scratch = scratch.words(engine.scratch_words(rows, &grid)).expect("fits");
    let (mut window, mut products) = (Buffer::default(), Buffer::default());
    let products = products.words(engine.plane_words(&grid) * count).expect("fits");
    let mut block = IntegerBlock::new(engine.magnitude_limbs());
    let (mut forth, mut back) = (f64::MAX, f64::MAX);
    for _ in 0..runs {
        let words = window.words(PANELS * panel * count).expect("fits");
        let start = Instant::now();
        for number in 0..PANELS {
            let mut planes = words
                .chunks_exact_mut(PANELS * panel)
                .map(|plane| &mut plane[number * panel..][..panel])
                .collect::<Vec<_>>();
            let columns = number * BLOCK..(number + 1) * BLOCK;
            let source = PanelSource { view: matrix.view(), columns, rows: 0..rows, shifts: &shifts };
            engine.to_residues(0..count, &source, &mut planes, scratch);
        }
        forth = forth.min(start.elapsed().as_secs_f64());
        for (prime, c) in products.chunks_exact_mut(engine.plane_words(&grid)).enumerate() {
            let x = &words[prime * PANELS * panel..][..PANELS * panel];
            let product = PlaneProduct { x, y: x, rows, grid, blocks: 0..grid.len(), accumulate: false };
            engine.multiply(prime, &product, c, scratch);
        }
        let repeats = rows.div_ceil(10);
        let start = Instant::now();
        for at in 0..repeats {
            let offset = at % grid.len() * engine.block_words();
            let residues = BlockResidues { window: products, plane_words: engine.plane_words(&grid), offset };
            engine.reconstruct(&residues, &mut block, scratch);
        }
        back = back.min(start.elapsed().as_secs_f64() / (repeats * BLOCK_WORDS) as f64);
    }
    let entries = (rows * PANELS * BLOCK) as f64;
    println!(
        "  {bits} bits, {count} primes: to residues {:.1} ns an entry ({:.2} a residue), back {:.1} ns ({:.2})",
        forth / entries * 1e9,
        forth / entries / count as f64 * 1e9,
        back * 1e9,
        back / count as f64 * 1e9
    );
}
