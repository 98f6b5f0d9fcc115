//! Products from file to file, against those in memory.

use super::{damage, ended_after, groups};
use crate::common::{Kind, effort, forced, in_turn, kernel_names, matrix, seeds};
use std::fs;
use std::path::{Path, PathBuf};
use sunzi::advanced::storage::Caching;
use sunzi::distributed::Team;
use sunzi::io::{self, Symmetry, WriteOptions};
use sunzi::out_of_core::{
    self, OperandFile, OutOfCoreProductOptions, OutOfCoreProductPlan, OutOfCoreProductReport, ProductPaths,
};
use sunzi::{Accuracy, Context, Error, GemmOptions, Matrix, Op, SyrkOptions};

/// What a product works on, by the names of files in a folder.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    pub a: Op,
    /// `None` for SYRK.
    pub b: Option<Op>,
    pub precision_bits: u32,
}

/// Operands in files, the product of one call in memory in another one, and a place for a storage directory.
pub struct Case {
    folder: tempfile::TempDir,
    product: Product,
}

fn write(path: &Path, matrix: &Matrix, symmetry: Symmetry) {
    io::write(path, matrix, &WriteOptions::new().symmetry(symmetry)).unwrap();
}

/// Rows and columns of an operand in its file.
fn stored(op: Op, (rows, cols): (usize, usize)) -> (usize, usize) {
    if op == Op::Transpose { (cols, rows) } else { (rows, cols) }
}

impl Case {
    /// A product of random operands that contracts so many rows.
    pub fn new(product: Product, contracted: usize, (rows, cols): (usize, usize), kind: Kind) -> Case {
        let bits = product.precision_bits;
        let a = match product.b {
            None => stored(product.a, (contracted, rows)),
            Some(_) => stored(product.a, (rows, contracted)),
        };
        let a = matrix(kind, a.0, a.1, bits, 1);
        let b =
            product.b.map(|op| stored(op, (contracted, cols))).map(|(rows, cols)| matrix(kind, rows, cols, bits, 2));
        Case::of(product, &[Some(a), b].into_iter().flatten().collect::<Vec<_>>(), Symmetry::General)
    }

    fn of(product: Product, operands: &[Matrix], symmetry: Symmetry) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let ctx = Context::builder().threads(1).build().unwrap();
        let Product { a, b, precision_bits: bits } = product;
        write(&path("a.bin"), &operands[0], symmetry);
        match b {
            None => {
                let made =
                    sunzi::syrk_with(&ctx, &operands[0], bits, &SyrkOptions::new().accuracy(Accuracy::Norm).op(a))
                        .unwrap();
                write(&path("in_memory.bin"), &made.result.into_matrix(), Symmetry::SymmetricLower);
            }
            Some(b) => {
                write(&path("b.bin"), &operands[1], Symmetry::General);
                let options = GemmOptions::new().accuracy(Accuracy::Norm).op_a(a).op_b(b);
                let made = sunzi::gemm_with(&ctx, &operands[0], &operands[1], bits, &options).unwrap();
                write(&path("in_memory.bin"), &made.result, Symmetry::General);
            }
        }
        Case { folder, product }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, ctx: &Context, options: &OutOfCoreProductOptions) -> sunzi::Result<OutOfCoreProductReport> {
        self.run_on(ctx, None, options)
    }

    /// In this process, or by the ranks of a team.
    pub fn run_on(
        &self,
        ctx: &Context,
        team: Option<&Team>,
        options: &OutOfCoreProductOptions,
    ) -> sunzi::Result<OutOfCoreProductReport> {
        let bits = self.product.precision_bits;
        let (a, b, result, storage) = (self.path("a.bin"), self.path("b.bin"), self.path("c.bin"), self.path("tiles"));
        let (a, paths) = (OperandFile::new(&a).op(self.product.a), ProductPaths { result: &result, storage: &storage });
        match self.product.b {
            None => match team {
                None => out_of_core::syrk(ctx, a, paths, bits, options),
                Some(team) => out_of_core::syrk_over_ranks(ctx, team, a, paths, bits, options),
            },
            Some(op) => {
                let operands = (a, OperandFile::new(&b).op(op));
                match team {
                    None => out_of_core::gemm(ctx, operands, paths, bits, options),
                    Some(team) => out_of_core::gemm_over_ranks(ctx, team, operands, paths, bits, options),
                }
            }
        }
    }

    fn plan(&self, ctx: &Context, options: &OutOfCoreProductOptions) -> sunzi::Result<OutOfCoreProductPlan> {
        let (a, b) = (self.path("a.bin"), self.path("b.bin"));
        let a = OperandFile::new(&a).op(self.product.a);
        match self.product.b {
            None => out_of_core::plan_syrk(ctx, a, self.product.precision_bits, options),
            Some(op) => {
                let operands = (a, OperandFile::new(&b).op(op));
                out_of_core::plan_gemm(ctx, operands, self.product.precision_bits, options)
            }
        }
    }

    /// The result is that of memory, byte for byte.
    pub fn check(&self, what: &str) {
        assert!(same(&self.path("c.bin"), &self.path("in_memory.bin")), "{what}: another product");
        fs::remove_file(self.path("c.bin")).unwrap();
    }

    pub fn forget_tiles(&self) {
        fs::remove_dir_all(self.path("tiles")).unwrap();
    }

    /// The least limit under which the call runs, and the most that it can use.
    fn limits(&self, ctx: &Context, options: &OutOfCoreProductOptions) -> (u64, u64) {
        let most = self.plan(&ctx.with_memory_bytes(None), options).unwrap().product.planned_bytes;
        match self.plan(&ctx.with_memory_bytes(Some(1)), options) {
            Err(Error::MemoryLimit { minimum_bytes, .. }) => (minimum_bytes, most),
            other => panic!("{other:?}"),
        }
    }
}

fn same(one: &Path, other: &Path) -> bool {
    fs::read(one).unwrap() == fs::read(other).unwrap()
}

pub fn options(tile_size: usize) -> OutOfCoreProductOptions {
    // The cache spares the tests' disk; what goes past it is tested with the storage.
    OutOfCoreProductOptions::new().caching(Caching::Cached).tile_size(tile_size)
}

const PLAIN: Op = Op::NoTranspose;
const TURNED: Op = Op::Transpose;

/// Runs a case within its least limit, within others up to none that take turns, and with one byte less than the least.
fn run_within_limits(case: &Case, ctx: &Context, options: &OutOfCoreProductOptions, turn: usize) {
    let (least, most) = case.limits(ctx, options);
    let between = |part: u64| Some(least + (most - least) / part);
    let others = [between(20), between(5), between(2), None];
    for limit in in_turn(4, turn).map(|at| others[at]).chain([Some(least)]) {
        let report = case.run(&ctx.with_memory_bytes(limit), options).unwrap();
        let what = format!("{:?}, limit {limit:?}, {:?}", case.product, report.plan);
        case.check(&what);
        assert!(report.plan.product.planned_bytes <= limit.unwrap_or(u64::MAX), "{what}");
        case.forget_tiles();
    }
    let refused = case.run(&ctx.with_memory_bytes(Some(least - 1)), options).unwrap_err();
    assert!(matches!(refused, Error::MemoryLimit { minimum_bytes, .. } if minimum_bytes == least), "{refused}");
    assert!(!case.path("tiles").exists());
}

#[test]
fn the_file_is_that_of_memory_for_all_shapes_limits_threads_and_kernels() {
    let shapes = [(0, 3, 4), (1, 1, 1), (5, 8, 9), (64, 9, 8), (70, 17, 1), (131, 40, 23)];
    for (at, (contracted, rows, cols)) in shapes.into_iter().enumerate() {
        let ops = [(PLAIN, PLAIN), (TURNED, PLAIN), (PLAIN, TURNED), (TURNED, TURNED)];
        let (a, b) = ops[at % 4];
        for b in [None, Some(b)] {
            let product = Product { a, b, precision_bits: 150 };
            let case = Case::new(product, contracted, (rows, cols), Kind::Graded);
            for (turn, kernel) in kernel_names().into_iter().enumerate() {
                // Every kernel has every shape, and one kernel after the other the two verbs in turns.
                if effort() == 1 && (turn + at).is_multiple_of(2) == b.is_some() {
                    continue;
                }
                let ctx = forced(kernel, 1 + at % 2).self_check(at % 3 == 0).build().unwrap();
                run_within_limits(&case, &ctx, &options(8 + 8 * (at % 2)), turn / 2 + at);
            }
        }
    }
}

#[test]
fn operands_without_entries_and_without_columns_give_what_memory_gives() {
    let ctx = Context::builder().threads(2).build().unwrap();
    for (contracted, rows, cols) in [(0, 0, 0), (3, 0, 5), (3, 5, 0), (0, 2, 2)] {
        for b in [None, Some(PLAIN)] {
            let case = Case::new(Product { a: PLAIN, b, precision_bits: 70 }, contracted, (rows, cols), Kind::Graded);
            case.run(&ctx, &options(8)).unwrap();
            case.check("empty");
        }
    }
}

/// A size at which products in memory run on planes, with tiles of the size that the shape asks for.
#[test]
fn larger_products_are_those_of_memory() {
    let ctx = Context::builder().threads(2).build().unwrap();
    // Within the least limit the residues are made again for each prime, so that bits and rows are few.
    for (turn, (product, contracted, shape)) in [
        (Product { a: PLAIN, b: None, precision_bits: 120 }, 180, (110, 110)),
        (Product { a: TURNED, b: None, precision_bits: 80 }, 120, (101, 101)),
        (Product { a: PLAIN, b: Some(TURNED), precision_bits: 100 }, 130, (80, 93)),
    ]
    .into_iter()
    .enumerate()
    {
        let case = Case::new(product, contracted, shape, Kind::Graded);
        let options = OutOfCoreProductOptions::new().caching(Caching::Cached);
        run_within_limits(&case, &ctx, &options, turn + 1);
    }
}

/// A file that stores one triangle is the whole matrix, as it is in memory.
#[test]
fn symmetric_operands_are_whole() {
    let order = 45;
    let mut a = matrix(Kind::Graded, order, order, 130, 5);
    for (row, col) in (0..order).flat_map(|row| (0..row).map(move |col| (row, col))) {
        let value = a.float(row, col);
        a.set_float(col, row, &value).unwrap();
    }
    let b = matrix(Kind::Graded, order, 12, 130, 6);
    let ctx = Context::builder().threads(2).build().unwrap();
    for (turn, product) in [
        Product { a: PLAIN, b: None, precision_bits: 130 },
        Product { a: TURNED, b: None, precision_bits: 100 },
        Product { a: PLAIN, b: Some(PLAIN), precision_bits: 130 },
        Product { a: TURNED, b: Some(PLAIN), precision_bits: 130 },
    ]
    .into_iter()
    .enumerate()
    {
        let case = Case::of(product, &[a.clone(), b.clone()], Symmetry::SymmetricLower);
        run_within_limits(&case, &ctx, &options(8), turn);
    }
}

#[test]
fn what_is_read_is_what_was_counted() {
    let case = Case::new(Product { a: PLAIN, b: None, precision_bits: 100 }, 500, (120, 120), Kind::Graded);
    let ctx = Context::builder().threads(1).build().unwrap();
    let (least, most) = case.limits(&ctx, &options(16));
    for limit in [least, least + (most - least) / 3, most] {
        let report = case.run(&ctx.with_memory_bytes(Some(limit)), &options(16)).unwrap();
        let (plan, disk) = (&report.plan, &report.disk);
        // The rest is what was read of tiles to write the result.
        let tiles = disk.written_bytes;
        assert!((plan.read_bytes..=plan.read_bytes + tiles).contains(&disk.read_bytes), "{report:?}");
        assert!(plan.product.batches > 1 || plan.read_bytes == plan.least_read_bytes, "{plan:?}");
        assert!(plan.read_bytes == plan.least_read_bytes * plan.product.batches as u64 || plan.product.chunks == 1);
        case.forget_tiles();
    }
}

/// Ends calls after more and more work, and begins each again under other limits and threads.
#[test]
fn a_run_that_is_begun_again_goes_on_and_ends_with_the_same_bytes() {
    for seed in seeds(4) {
        let b = (seed % 2 == 1).then_some(PLAIN);
        let case = Case::new(Product { a: PLAIN, b, precision_bits: 120 }, 90, (100, 100), Kind::Graded);
        let base = Context::builder().threads(1).build().unwrap();
        let (least, most) = case.limits(&base, &options(16));
        let mut found = Vec::new();
        for round in 0..60 {
            // The first one ends with tiles left, and some are there by then.
            let most_reports = match round {
                0 => 20,
                1..=50 => 20 + (seed * 7 + round * 5) % 60,
                _ => u64::MAX,
            };
            let limit = least + (most - least) * (round % 4) / 8 + 40_000;
            let ctx = ended_after(most_reports, "reconstruct", (1 + (round % 3) as usize, limit));
            match case.run(&ctx, &options(16)) {
                Ok(report) => {
                    found.push(report.disk.tiles_found);
                    break;
                }
                Err(Error::Cancelled) => assert!(!case.path("c.bin").exists()),
                Err(error) => panic!("{error}"),
            }
        }
        case.check("resumed");
        assert!(found.first().is_some_and(|&tiles| tiles > 0), "the last run found nothing: {found:?}");
        // Another run finds everything, and reads no operand after the pass over it.
        let report = case.run(&base, &options(16)).unwrap();
        assert_eq!(report.disk.tiles_found, if b.is_none() { 7 * 8 / 2 } else { 49 });
        assert_eq!(report.operand_seconds, 0.0);
        case.check("found whole");
    }
}

#[test]
fn damaged_tiles_are_made_again() {
    for seed in seeds(8) {
        let case = Case::new(Product { a: PLAIN, b: None, precision_bits: 100 }, 30, (100, 100), Kind::Graded);
        let ctx = Context::builder().threads(2).build().unwrap();
        case.run(&ctx, &options(16)).unwrap();
        case.check("whole");
        let groups = groups(&case.path("tiles"));
        damage(&groups[(seed as usize * 5) % groups.len()], seed);
        let report = case.run(&ctx, &options(16)).unwrap();
        case.check("repaired");
        assert_eq!(report.disk.groups_repaired, 1, "{report:?}");
    }
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let product = Product { a: PLAIN, b: None, precision_bits: 100 };
    let case = Case::new(product, 20, (24, 24), Kind::Graded);
    let ctx = Context::builder().threads(1).build().unwrap();
    case.run(&ctx, &options(8)).unwrap();
    case.check("whole");
    let refused = |product: Product, tile_size: usize, words: &str| {
        let Case { folder, .. } = &case;
        let other = Case { folder: tempfile::tempdir().unwrap(), product };
        fs::copy(folder.path().join("a.bin"), other.path("a.bin")).unwrap();
        fs::copy(folder.path().join("a.bin"), other.path("b.bin")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("tiles"), other.path("tiles")).unwrap();
        let error = other.run(&ctx, &options(tile_size)).unwrap_err();
        assert!(matches!(error, Error::StorageMismatch { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(!other.path("c.bin").exists());
    };
    refused(Product { precision_bits: 90, ..product }, 8, "precision_bits");
    refused(product, 16, "tile_size");
    refused(Product { b: Some(TURNED), ..product }, 8, "syrk");
    // Another matrix of the same shape.
    let path = case.path("a.bin");
    write(&path, &matrix(Kind::Graded, 20, 24, 100, 9), Symmetry::General);
    let error = case.run(&ctx, &options(8)).unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_written() {
    let case = Case::new(Product { a: PLAIN, b: Some(PLAIN), precision_bits: 80 }, 10, (7, 9), Kind::Graded);
    let ctx = Context::builder().threads(1).build().unwrap();
    let turned = Case { folder: case.folder, product: Product { b: Some(TURNED), ..case.product } };
    assert!(matches!(turned.run(&ctx, &options(8)), Err(Error::ShapeMismatch { operation: "gemm", .. })));
    let case = Case { folder: turned.folder, product: Product { b: Some(PLAIN), ..turned.product } };
    let tested = Context::builder().threads(1).freivalds(true).build().unwrap();
    let error = case.run(&tested, &options(8)).unwrap_err();
    assert!(matches!(&error, Error::InvalidArgument(text) if text.contains("self-check")), "{error}");
    let mut wide = case.product;
    wide.precision_bits = 1 << 20;
    let case = Case { folder: case.folder, product: wide };
    assert!(matches!(case.run(&ctx, &options(8)), Err(Error::Precision { .. })));
    // A number that is none.
    let case = Case { folder: case.folder, product: Product { precision_bits: 80, ..wide } };
    let mut bytes = fs::read(case.path("a.bin")).unwrap();
    let at = bytes.len() - 20;
    bytes[at] ^= 0xff;
    fs::write(case.path("a.bin"), bytes).unwrap();
    assert!(matches!(case.run(&ctx, &options(8)), Err(Error::Format { .. })));
    assert!(!case.path("tiles").exists() && !case.path("c.bin").exists());
}
