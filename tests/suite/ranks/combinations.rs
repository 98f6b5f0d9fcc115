//! The matrix of combinations: every distribution of operands and results, grid, number of ranks and of nodes, verb,
//! accuracy, kernel and device has the bits of one process.
//!
//! Most axes go through their values by strides, so that a sample has every value of each; the second operand's place
//! and the tile size are drawn. Repeats are skipped, and at least three quarters are different.
//! What is special about one verb, kernel or distribution is tested beside it in the other files.

use super::distributions::part;
use super::solve::factor;
use crate::common::{Kind, Rng, effort, kernel_names, matrix};
use std::collections::HashSet;
use std::sync::Arc;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, local};
use sunzi::devices::Device;
use sunzi::distributed::{
    Along, DistCholeskyOptions, DistMatrix, DistOptions, Distribution, GridOrder, LocalPart, RankGrid, Team,
    TeamOptions, cholesky_with, even_rows, gemm_rows, inverse_local, log_det, redistribute, solve_local, syrk,
    trsm_local, trsm_with,
};
use sunzi::estimate::log_det_of;
use sunzi::rug::Float;
use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Context, ContextBuilder, Diag, GemmOptions, Matrix, Op, Side, SyrkOptions,
    TrsmOptions, Uplo, cholesky_with as cholesky_alone, gemm_with, syrk_with, trsm_with as trsm_alone,
};

/// Combinations that are drawn in one run, and different ones of them at least.
const SAMPLE: usize = 200;
const LEAST: usize = 150;

/// Contracted rows of products, order, and bits.
const ROWS: usize = 53;
const ORDER: usize = 37;
const BITS: u32 = 120;

/// Ranks, as grids.
const GRIDS: [(usize, usize); 12] =
    [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 2), (4, 1), (1, 4), (2, 3), (3, 2), (1, 6), (6, 1)];

/// Ways in which a matrix lies.
const PLACES: usize = 8;

const VERBS: [Verb; 11] = [
    Verb::Syrk,
    Verb::Gemm,
    Verb::Cholesky,
    Verb::Trsm(9),
    Verb::Trsm(3),
    Verb::TrsmRight,
    Verb::Solve(1),
    Verb::Solve(5),
    Verb::Solve(19),
    Verb::Inverse,
    Verb::LogDet,
];

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Verb {
    Syrk,
    Gemm,
    Cholesky,
    /// With so many right-hand sides: transposed, of a unit triangle.
    Trsm(usize),
    /// `X U = B` in tiles.
    TrsmRight,
    /// With a factor, for so many right-hand sides.
    Solve(usize),
    Inverse,
    LogDet,
}

/// What ranks compute with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Engine {
    Kernel(&'static str),
    /// So many software devices of that kernel.
    Devices(usize, &'static str),
}

impl Engine {
    fn all() -> Vec<Engine> {
        let kernels = kernel_names().into_iter().map(Engine::Kernel);
        kernels.chain([Engine::Devices(1, "cuda-i8"), Engine::Devices(2, "cuda-f64")]).collect()
    }

    fn context(self) -> Context {
        let builder: ContextBuilder = Context::builder().threads(1);
        let builder = match self {
            Engine::Kernel(name) => builder.kernel(name),
            Engine::Devices(count, kernel) => {
                let device = |number: usize| {
                    let seed = Some(number as u64);
                    let options = SoftOptions { seed, capacity_bytes: 64 << 20, ..SoftOptions::default() };
                    Arc::new(SoftDevice::new(options)) as Arc<dyn Device>
                };
                builder.devices((0..count).map(device).collect()).kernel(kernel)
            }
        };
        builder.build().unwrap()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Combination {
    grid: (usize, usize),
    /// Whether each rank is a node of its own.
    apart: bool,
    verb: Verb,
    entrywise: bool,
    engine: Engine,
    /// Of the operands and of the result.
    from: [usize; 2],
    to: usize,
    tile_size: usize,
}

/// A matrix of a shape in one of the ways over a grid.
fn placed(way: usize, (rows, cols): (usize, usize), grid: (usize, usize)) -> Distribution {
    let (grid, ranks) = (RankGrid { rows: grid.0, cols: grid.1 }, grid.0 * grid.1);
    let cyclic = |pair, align| Distribution::entry_cyclic((rows, cols), (grid, GridOrder::ColumnMajor), pair, align);
    match way {
        0 => even_rows(rows, cols, ranks),
        1 => Distribution::on_root(rows, cols, ranks, ranks - 1),
        2 => Distribution::block_cyclic((rows, cols), (grid, GridOrder::RowMajor), (5, 3), (grid.rows - 1, 0)),
        3 => Distribution::block_cyclic((rows, cols), (grid, GridOrder::ColumnMajor), (16, 64), (0, grid.cols - 1)),
        4 => cyclic((Some(Along::GridRow), Some(Along::GridCol)), (grid.rows - 1, grid.cols / 2)),
        5 => cyclic((Some(Along::ColumnMajor), None), (ranks - 1, 0)),
        6 => cyclic((None, Some(Along::RowMajor)), (0, 0)),
        7 => cyclic((None, None), (0, 0)),
        _ => unreachable!("{PLACES} ways"),
    }
}

impl Combination {
    /// Combination number `index`: each axis goes through its values with a step of its own.
    fn number(index: usize, rng: &mut Rng) -> Combination {
        let engines = Engine::all();
        let way = |step: usize| (index * step + index / PLACES) % PLACES;
        Combination {
            grid: GRIDS[(index + index / GRIDS.len()) % GRIDS.len()],
            apart: index / 2 % 2 == 1,
            verb: VERBS[index % VERBS.len()],
            entrywise: index / 3 % 2 == 1,
            engine: engines[(index + index / engines.len()) % engines.len()],
            from: [way(3), rng.below(PLACES)],
            to: way(5),
            tile_size: rng.pick(&[8, 16, 24]),
        }
    }

    fn accuracy(&self) -> Accuracy {
        if self.entrywise { Accuracy::Entrywise } else { Accuracy::Norm }
    }

    fn ranks(&self) -> usize {
        self.grid.0 * self.grid.1
    }

    fn tiles(&self, (rows, cols): (usize, usize), triangle: Option<Uplo>) -> TileMap {
        let grid = RankGrid { rows: self.grid.0, cols: self.grid.1 };
        TileMap { rows, cols, tile_size: self.tile_size, grid, triangle }
    }

    /// The options of [`Verb::Trsm`] and [`Verb::TrsmRight`].
    fn trsm(&self) -> TrsmOptions<'static> {
        let options = TrsmOptions::new().accuracy(self.accuracy());
        match self.verb {
            Verb::TrsmRight => options.side(Side::Right).uplo(Uplo::Upper),
            _ => options.op(Op::Transpose).diag(Diag::Unit),
        }
    }
}

/// The operands of all verbs.
struct Operands {
    ctx: Context,
    p: Matrix,
    q: Matrix,
    gram: Matrix,
    l: Matrix,
}

impl Operands {
    fn new() -> Operands {
        let ctx = Context::builder().threads(1).build().unwrap();
        let (p, q) = (matrix(Kind::Unit, ROWS, ORDER, BITS, 3), matrix(Kind::Unit, ROWS, 11, BITS, 4));
        let gram = sunzi::syrk(&ctx, &p, BITS).unwrap().into_matrix();
        Operands { ctx, p, q, gram, l: factor(ORDER, BITS, 4, 5) }
    }

    fn right_sides(&self, verb: Verb) -> Matrix {
        match verb {
            Verb::Trsm(columns) | Verb::Solve(columns) => matrix(Kind::Unit, ORDER, columns, BITS, columns as u64),
            _ => matrix(Kind::Unit, 14, ORDER, BITS, 6),
        }
    }

    /// The triangle that the verb reads, as a whole matrix.
    fn triangle(&self, verb: Verb) -> Matrix {
        if verb == Verb::TrsmRight { self.l.transposed().to_matrix().unwrap() } else { self.l.clone() }
    }

    /// In one process.
    fn alone(&self, of: &Combination) -> Matrix {
        let (ctx, accuracy) = (&self.ctx, of.accuracy());
        let factored = || Cholesky::from_factor(self.l.clone()).unwrap().with_accuracy(accuracy);
        match of.verb {
            Verb::Syrk => {
                let options = SyrkOptions::new().accuracy(accuracy);
                syrk_with(ctx, &self.p, BITS, &options).unwrap().result.into_matrix()
            }
            Verb::Gemm => {
                let options = GemmOptions::new().op_a(Op::Transpose).accuracy(accuracy);
                gemm_with(ctx, &self.p, &self.q, BITS, &options).unwrap().result
            }
            Verb::Cholesky => {
                let options = CholeskyOptions::new().accuracy(accuracy);
                let gram = sunzi::Symmetric::lower(&self.gram);
                cholesky_alone(ctx, gram, BITS, &options).unwrap().result.into_factor()
            }
            Verb::Trsm(_) | Verb::TrsmRight => {
                let (t, b) = (self.triangle(of.verb), self.right_sides(of.verb));
                trsm_alone(ctx, &t, &b, BITS, &of.trsm()).unwrap().result
            }
            Verb::Solve(_) => factored().solve(ctx, &self.right_sides(of.verb), BITS).unwrap(),
            Verb::Inverse => factored().solve(ctx, &Matrix::identity(ORDER, BITS).unwrap(), BITS).unwrap(),
            Verb::LogDet => number(&log_det_of(&pivots(&self.l), BITS)),
        }
    }

    /// This rank's part of what the ranks compute, as `to` deals it out.
    fn on_rank(&self, of: &Combination, rank: &local::LocalRank, to: &Distribution) -> Matrix {
        let ctx = of.engine.context();
        let options = TeamOptions::new().ranks_per_node(if of.apart { Some(1) } else { None });
        let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
        let place = |which: usize, whole: &Matrix| {
            let from = placed(of.from[which], (whole.rows(), whole.cols()), of.grid);
            let held = part(whole, &from, rank.rank());
            (from, held)
        };
        let rows = |which: usize, whole: &Matrix| {
            let (from, held) = place(which, whole);
            let to = even_rows(whole.rows(), whole.cols(), rank.size());
            redistribute(rank, (&from, &held), &to).unwrap()
        };
        let in_tiles = |which: usize, whole: &Matrix, triangle: Option<Uplo>| {
            let ((from, held), map) = (place(which, whole), of.tiles((whole.rows(), whole.cols()), triangle));
            DistMatrix::from_local(rank, &from, &held, map).unwrap()
        };
        let (accuracy, lower) = (of.accuracy(), Some(Uplo::Lower));
        let options = DistOptions::new().accuracy(accuracy).tile_size(of.tile_size);
        let options = options.grid(RankGrid { rows: of.grid.0, cols: of.grid.1 });
        let found = match of.verb {
            Verb::Syrk => {
                let p = rows(0, &self.p);
                syrk(&ctx, &mut team, &[p.view()], BITS, &options).unwrap().result
            }
            Verb::Gemm => {
                let (p, q) = (rows(0, &self.p), rows(1, &self.q));
                gemm_rows(&ctx, &mut team, (&[p.view()], &[q.view()]), BITS, &options).unwrap().result
            }
            Verb::Cholesky => {
                let options = DistCholeskyOptions::new().accuracy(accuracy).tile_rows(of.tile_size);
                cholesky_with(&ctx, &team, &in_tiles(0, &self.gram, lower), BITS, &options).unwrap().factor
            }
            Verb::TrsmRight => {
                let t = in_tiles(0, &self.triangle(of.verb), Some(Uplo::Upper));
                let b = in_tiles(1, &self.right_sides(of.verb), None);
                trsm_with(&ctx, &team, &t, &b, BITS, &of.trsm()).unwrap().solution
            }
            Verb::LogDet => {
                let log_det = log_det(&team, &in_tiles(0, &self.l, lower), BITS).unwrap();
                return part(&number(&log_det), to, rank.rank());
            }
            Verb::Trsm(_) | Verb::Solve(_) | Verb::Inverse => {
                let (l, b) = (in_tiles(0, &self.l, lower), self.right_sides(of.verb));
                let (from, held) = place(1, &b);
                let right = LocalPart { distribution: &from, local: held.view() };
                let solution = match of.verb {
                    Verb::Trsm(_) => trsm_local(&ctx, &team, &l, right, BITS, &of.trsm()),
                    Verb::Solve(_) => solve_local(&ctx, &team, &l, right, BITS, accuracy),
                    _ => inverse_local(&ctx, &team, &l, BITS, accuracy),
                };
                let (height, width) = to.local_shape(rank.rank());
                let mut local = Matrix::zeros(height, width, BITS).unwrap();
                solution.unwrap().fill_local(rank, to, local.view_mut()).unwrap();
                team.close().unwrap();
                return local;
            }
        };
        let local = found.to_local(rank, to).unwrap();
        team.close().unwrap();
        local
    }
}

/// The diagonal, as a column.
fn pivots(l: &Matrix) -> Matrix {
    let mut pivots = Matrix::zeros(l.rows(), 1, l.precision_bits()).unwrap();
    (0..l.rows()).for_each(|row| pivots.set(row, 0, l.get(row, row)));
    pivots
}

fn number(value: &Float) -> Matrix {
    let mut number = Matrix::zeros(1, 1, BITS).unwrap();
    number.set_float(0, 0, value).unwrap();
    number
}

#[test]
fn a_sample_of_combinations_has_the_bits_of_one_process() {
    let (operands, mut known) = (Operands::new(), HashSet::new());
    let count = SAMPLE * effort() as usize;
    let mut rng = Rng::new(22);
    for index in 0..count {
        let of = Combination::number(index, &mut rng);
        if !known.insert(of) {
            continue;
        }
        let want = operands.alone(&of);
        let to = placed(of.to, (want.rows(), want.cols()), of.grid);
        let parts = local::run(of.ranks(), |rank| operands.on_rank(&of, rank, &to));
        for (rank, got) in parts.into_iter().enumerate() {
            assert!(got == part(&want, &to, rank), "combination {index}, rank {rank}: {of:?}");
        }
    }
    let values = |of: &dyn Fn(&Combination) -> String| known.iter().map(of).collect::<HashSet<_>>().len();
    println!("{} combinations", known.len());
    assert!(known.len() >= LEAST * effort() as usize, "{} of {count} combinations are different", known.len());
    assert_eq!(values(&|of| format!("{:?}", of.verb)), VERBS.len());
    assert_eq!(values(&|of| format!("{:?}", of.engine)), Engine::all().len());
    assert_eq!(values(&|of| format!("{:?}", of.grid)), GRIDS.len());
    assert_eq!((values(&|of| of.from[0].to_string()), values(&|of| of.to.to_string())), (PLACES, PLACES));
    assert_eq!((values(&|of| of.apart.to_string()), values(&|of| of.entrywise.to_string())), (2, 2));
}
