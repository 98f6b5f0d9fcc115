//! `sunzi bench kernel`: the rate of one plane product compared with the peak rate at which this core issues the
//! kernel's multiplications.

use super::spread::Spread;
use rug::{Integer, integer::Order};
use serde::Serialize;
use std::time::Instant;
use sunzi::advanced::kernels::{self, BlockResidues, EngineSpec, IntegerBlock, PanelSource, PlaneEngine, PlaneProduct};
use sunzi::advanced::math::bound::{ceil_log2, modulus_bits};
use sunzi::advanced::plan::{BLOCK, BlockGrid};
use sunzi::advanced::store::Buffer;
use sunzi::gallery::{Kind, Size, generate};
use sunzi::{Error, Matrix, Result};
use sunzi_session::engine::Engine;
use sunzi_session::session::Session;
use sunzi_session::units::{folded, format_seconds};

/// Bits of the integers multiplied: one digit.
const ENTRY_BITS: u32 = 50;

#[derive(Serialize)]
struct KernelReport {
    operation: &'static str,
    kernel: &'static str,
    rows: usize,
    cols: usize,
    seconds: Spread,
    multiply_adds_per_second: f64,
    /// The number of multiply-adds per second that the kernel's instructions could do if nothing else limited them.
    issue_rate: Option<Spread>,
    /// The multiply-adds of the classical product divided by the number that the core could issue in the median time.
    share_of_issue_rate: Option<f64>,
    checked: bool,
}

/// Planes of `X^T X` for all primes of a small engine, block by block over the full square.
struct Planes {
    operands: Buffer,
    products: Buffer,
    scratch: Vec<u64>,
    grid: BlockGrid,
    plane_words: usize,
    panel_words: usize,
}

/// A plane product to time.
#[derive(Clone, Debug)]
pub struct BenchKernel {
    /// Rows contracted.
    pub rows: usize,
    /// Rows and columns of the product.
    pub cols: usize,
    /// Timed runs.
    pub runs: usize,
    /// The kernel.
    pub engine: Engine,
}

/// Times a plane product and reports the results.
///
/// # Errors
/// [`Error::Verification`] for a wrong product, [`Error::InvalidArgument`] for sizes that the kernel does not take.
pub fn run(session: &mut dyn Session, config: &BenchKernel) -> Result<()> {
    if config.rows == 0 || config.cols == 0 {
        return Err(Error::InvalidArgument("the timed product of residue matrices needs rows and columns".into()));
    }
    let kernel = match config.engine.kernel {
        Some(name) => kernels::by_name(name)?,
        None => kernels::preferred(),
    };
    let matrix = generate(Kind::Random, Size { rows: config.rows, cols: config.cols, precision_bits: 64 }, 1)?;
    let norm_bits = ENTRY_BITS + ceil_log2(config.rows).div_ceil(2);
    let modulus_bits = modulus_bits(norm_bits, norm_bits);
    let engine = kernel.prepare(&EngineSpec { operand_bits: ENTRY_BITS, modulus_bits, redundant: false })?;
    let engine = engine.as_ref();
    let mut planes = Planes::new(engine, &matrix)?;
    for prime in 0..engine.moduli().len() {
        planes.multiply(engine, prime, config.rows)?;
    }
    let checked = planes.last_block_is_right(engine, &matrix)?;
    let (mut rates, mut seconds) = (Vec::new(), Vec::new());
    for _ in 0..config.runs {
        rates.extend(kernel.issue_rate(1));
        let start = Instant::now();
        planes.multiply(engine, 0, config.rows)?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    let seconds = Spread::of(&seconds);
    let multiply_adds = config.rows as f64 * config.cols as f64 * config.cols as f64;
    let rate = (!rates.is_empty()).then(|| Spread::of(&rates));
    let report = KernelReport {
        operation: "kernel",
        kernel: kernel.name(),
        rows: config.rows,
        cols: config.cols,
        seconds,
        multiply_adds_per_second: multiply_adds / seconds.median,
        issue_rate: rate,
        share_of_issue_rate: rate.map(|rate| multiply_adds / seconds.median / rate.median),
        checked,
    };
    session.finish_report(&report)?;
    session.say(&folded(&describe(&report)))?;
    if checked { Ok(()) } else { Err(Error::verification(format!("kernel {} gave a wrong product", kernel.name()))) }
}

fn describe(report: &KernelReport) -> String {
    let share = match (report.share_of_issue_rate, report.issue_rate) {
        (Some(share), Some(rate)) => {
            format!(", {:.1} % of the {:.2} G that its instructions allow", share * 100.0, rate.median / 1e9)
        }
        _ => String::new(),
    };
    format!(
        "kernel {}: residue matrices {} x {} x {} in {} ({} to {}): {:.2} G multiply-adds per second{share}; {}",
        report.kernel,
        report.cols,
        report.cols,
        report.rows,
        format_seconds(report.seconds.median),
        format_seconds(report.seconds.min),
        format_seconds(report.seconds.max),
        report.multiply_adds_per_second / 1e9,
        if report.checked { "result checked" } else { "WRONG RESULT" }
    )
}

impl Planes {
    /// Room for all planes, and the residues of the matrix in units of `2^-50`.
    fn new(engine: &dyn PlaneEngine, matrix: &Matrix) -> Result<Planes> {
        let (rows, cols, primes) = (matrix.rows(), matrix.cols(), engine.moduli().len());
        let grid = BlockGrid::rectangle(cols, cols);
        let panel_words = engine.panel_words(rows);
        let plane = panel_words * cols.div_ceil(BLOCK);
        let (mut operands, mut products) = (Buffer::default(), Buffer::default());
        let mut scratch = vec![0; engine.scratch_words(rows, &grid)];
        let plane_words = engine.plane_words(&grid);
        products.words(primes * plane_words)?;
        let shifts = vec![i64::from(ENTRY_BITS); cols];
        let words = operands.words(primes * plane)?;
        for panel in 0..cols.div_ceil(BLOCK) {
            let columns = panel * BLOCK..cols.min((panel + 1) * BLOCK);
            let source = PanelSource { view: matrix.view(), columns, rows: 0..rows, shifts: &shifts };
            let planes = words.chunks_exact_mut(plane);
            let mut slices: Vec<&mut [u64]> =
                planes.map(|plane| &mut plane[panel * panel_words..][..panel_words]).collect();
            engine.to_residues(0..primes, &source, &mut slices, &mut scratch);
        }
        Ok(Planes { operands, products, scratch, grid, plane_words, panel_words })
    }

    fn multiply(&mut self, engine: &dyn PlaneEngine, prime: usize, rows: usize) -> Result<()> {
        let (plane, count) = (self.panel_words * self.grid.cols, engine.moduli().len());
        let x = &self.operands.words(plane * count)?[prime * plane..][..plane];
        let product = PlaneProduct { x, y: x, rows, grid: self.grid, blocks: 0..self.grid.len(), accumulate: false };
        let c = &mut self.products.words(self.plane_words * count)?[prime * self.plane_words..][..self.plane_words];
        engine.multiply(prime, &product, c, &mut self.scratch);
        Ok(())
    }

    /// Whether the block at the lower right is the product of the integers.
    fn last_block_is_right(&mut self, engine: &dyn PlaneEngine, matrix: &Matrix) -> Result<bool> {
        let (grid, plane_words) = (self.grid, self.plane_words);
        let window = &*self.products.words(plane_words * engine.moduli().len())?;
        let mut block = IntegerBlock::new(engine.magnitude_limbs());
        let residues = BlockResidues { window, plane_words, offset: (grid.len() - 1) * engine.block_words() };
        engine.reconstruct(&residues, &mut block, &mut self.scratch);
        let first = (grid.cols - 1) * BLOCK;
        let integers: Vec<Vec<Integer>> = (first..matrix.cols())
            .map(|col| (0..matrix.rows()).map(|row| scaled(matrix, row, col)).collect())
            .collect();
        let right = |row: usize, col: usize| {
            let exact: Integer = integers[row].iter().zip(&integers[col]).map(|(x, y)| Integer::from(x * y)).sum();
            let found = Integer::from_digits(block.magnitude(BLOCK * col + row), Order::Lsf);
            exact == if block.negative[BLOCK * col + row] { -found } else { found }
        };
        let count = integers.len();
        Ok((0..count).all(|col| (0..count).all(|row| right(row, col))))
    }
}

/// The integer that the kernel makes of an entry.
fn scaled(matrix: &Matrix, row: usize, col: usize) -> Integer {
    let shifted = matrix.float(row, col) << ENTRY_BITS;
    shifted.to_integer_round(rug::float::Round::Nearest).map(|(integer, _)| integer).unwrap_or_default()
}
