//! Matrices as callers have them, in distributions of many kinds, to tiles and back.

use crate::common::{Kind, Rng, matrix, seeds};
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{Along, Axis, DistMatrix, Distribution, GridOrder, RankGrid, redistribute};
use sunzi::{Error, Matrix, Uplo};

/// The part of a rank, entry by entry.
pub(super) fn part(whole: &Matrix, distribution: &Distribution, rank: usize) -> Matrix {
    let (rows, cols) = distribution.local_shape(rank);
    let mut local = Matrix::zeros(rows, cols, whole.precision_bits()).unwrap();
    let grid = distribution.grid;
    let place = match distribution.order {
        GridOrder::RowMajor => (rank / grid.cols, rank % grid.cols),
        GridOrder::ColumnMajor => (rank % grid.rows, rank / grid.rows),
    };
    let owns = |axis: &Axis, index: usize| {
        let number = |along: Along| match along {
            Along::GridRow => (place.0, grid.rows),
            Along::GridCol => (place.1, grid.cols),
            Along::ColumnMajor => (place.1 * grid.rows + place.0, grid.size()),
            Along::RowMajor => (place.0 * grid.cols + place.1, grid.size()),
        };
        match axis {
            Axis::Whole => true,
            Axis::Cyclic { block, first, offset, along } => {
                let (number, count) = number(*along);
                ((index + offset) / block + first) % count == number
            }
            Axis::Consecutive { starts, along } => {
                let (number, _) = number(*along);
                (starts[number]..starts[number + 1]).contains(&index)
            }
        }
    };
    if rank >= grid.size() {
        return local;
    }
    let own = |axis: &Axis, len: usize| (0..len).filter(|&index| owns(axis, index)).collect::<Vec<_>>();
    let (own_rows, own_cols) = (own(&distribution.row_axis, whole.rows()), own(&distribution.col_axis, whole.cols()));
    assert_eq!((own_rows.len(), own_cols.len()), (rows, cols), "{distribution:?}, rank {rank}");
    for (j, &col) in own_cols.iter().enumerate() {
        for (i, &row) in own_rows.iter().enumerate() {
            local.set(i, j, whole.get(row, col));
        }
    }
    local
}

/// Some distribution of a matrix of this shape over at most so many ranks.
pub(super) fn any(rng: &mut Rng, (rows, cols): (usize, usize), ranks: usize) -> Distribution {
    let grid_rows = 1 + rng.below(ranks);
    let grid = RankGrid { rows: grid_rows, cols: 1 + rng.below(ranks / grid_rows) };
    let order = [GridOrder::RowMajor, GridOrder::ColumnMajor][rng.below(2)];
    let pairs = [
        (Some(Along::GridRow), Some(Along::GridCol)),
        (Some(Along::GridCol), Some(Along::GridRow)),
        (Some(Along::ColumnMajor), None),
        (None, Some(Along::RowMajor)),
        (Some(Along::GridRow), None),
        (None, Some(Along::GridCol)),
        (None, None),
    ];
    let pair = pairs[rng.below(pairs.len())];
    let numbers = |along: Option<Along>| match along {
        None => 1,
        Some(Along::GridRow) => grid.rows,
        Some(Along::GridCol) => grid.cols,
        Some(_) => grid.size(),
    };
    match rng.below(6) {
        0 => Distribution::on_root(rows, cols, ranks, rng.below(ranks)),
        1 => {
            let mut starts = (0..ranks - 1).map(|_| rng.below(rows + 1)).chain([0, rows]).collect::<Vec<_>>();
            starts.sort_unstable();
            Distribution::row_blocks(starts, cols)
        }
        2 => {
            let first = (rng.below(grid.rows), rng.below(grid.cols));
            let blocks = (1 + rng.below(20), 1 + rng.below(20));
            Distribution::block_cyclic((rows, cols), (grid, order), blocks, first)
        }
        3 => {
            // A part of a larger matrix.
            let (before, after) = ((rng.below(30), rng.below(30)), rng.below(9));
            let first = (rng.below(grid.rows), rng.below(grid.cols));
            let blocks = (1 + rng.below(20), 1 + rng.below(20));
            let shape = (before.0 + rows + after, before.1 + cols + after);
            let larger = Distribution::block_cyclic(shape, (grid, order), blocks, first);
            larger.part(before.0..before.0 + rows, before.1..before.1 + cols)
        }
        _ => {
            let align = (rng.below(numbers(pair.0)), rng.below(numbers(pair.1)));
            Distribution::entry_cyclic((rows, cols), (grid, order), pair, align)
        }
    }
}

#[test]
fn any_distribution_becomes_any_other() {
    for seed in seeds(120) {
        let mut rng = Rng::new(seed);
        let (ranks, rows, cols) = (1 + rng.below(7), rng.below(60), rng.below(60));
        let whole = matrix(Kind::Graded, rows, cols, 140, seed);
        let (from, to) = (any(&mut rng, (rows, cols), ranks), any(&mut rng, (rows, cols), ranks));
        let tile_size = 8 * (1 + rng.below(3));
        let map = TileMap { rows, cols, tile_size, grid: RankGrid::for_ranks(1 + rng.below(ranks)), triangle: None };
        local::run(ranks, |rank| {
            let held = part(&whole, &from, rank.rank());
            let got = redistribute(rank, (&from, &held), &to).unwrap();
            assert!(got == part(&whole, &to, rank.rank()), "seed {seed}: {from:?} to {to:?}");
            let tiles = DistMatrix::from_local(rank, &from, &held, map).unwrap();
            let scattered = DistMatrix::scatter(rank, 0, (rank.rank() == 0).then_some(&whole), map, 140).unwrap();
            assert!(tiles == scattered, "seed {seed}: {from:?} to {map:?}");
            assert!(tiles.to_local(rank, &to).unwrap() == got, "seed {seed}: {map:?} to {to:?}");
            // The transpose, of local parts that are looked at the other way.
            let turned = TileMap { rows: cols, cols: rows, ..map };
            let tiles = DistMatrix::from_local(rank, &from.transposed(), held.transposed(), turned).unwrap();
            let back = tiles.to_local(rank, &to.transposed()).unwrap();
            assert!(back == got.transposed().to_matrix().unwrap(), "seed {seed}: transposed {from:?} to {to:?}");
        });
    }
}

#[test]
fn triangles_are_read_and_given_back_in_any_distribution() {
    for seed in seeds(60) {
        let mut rng = Rng::new(seed);
        let (ranks, order) = (1 + rng.below(6), 1 + rng.below(70));
        let p = matrix(Kind::Unit, order + 3, order, 130, seed);
        let ctx = sunzi::Context::builder().threads(1).build().unwrap();
        let whole = sunzi::syrk(&ctx, &p, 130).unwrap().into_matrix();
        let (from, to) = (any(&mut rng, (order, order), ranks), any(&mut rng, (order, order), ranks));
        let uplo = [Uplo::Lower, Uplo::Upper][rng.below(2)];
        let is_inside = |row: usize, col: usize| if uplo == Uplo::Lower { row >= col } else { row <= col };
        // What lies outside of the triangle does not count.
        let spoiled = |keep: f64| {
            let mut other = whole.clone();
            for (i, j) in (0..order).flat_map(|i| (0..order).map(move |j| (i, j))).filter(|&(i, j)| !is_inside(i, j)) {
                other.set_f64(i, j, keep).unwrap();
            }
            other
        };
        let (read, zeroed) = (spoiled(77.0), spoiled(0.0));
        let grid = RankGrid::for_ranks(ranks);
        let map = TileMap { rows: order, cols: order, tile_size: 16, grid, triangle: Some(uplo) };
        local::run(ranks, |rank| {
            let held = part(&read, &from, rank.rank());
            let triangle = DistMatrix::from_local(rank, &from, &held, map).unwrap();
            let want = part(&zeroed, &to, rank.rank());
            assert!(triangle.to_local(rank, &to).unwrap() == want, "seed {seed}: {from:?} to {to:?}");
            let symmetric = triangle.into_symmetric().unwrap();
            let want = part(&whole, &to, rank.rank());
            assert!(symmetric.to_local(rank, &to).unwrap() == want, "seed {seed}: {from:?} to {to:?}, symmetric");
        });
    }
}

#[test]
fn the_widest_part_gives_the_precision() {
    let whole = matrix(Kind::Graded, 20, 6, 100, 3);
    let distribution = Distribution::row_blocks(vec![0, 7, 20], 6);
    local::run(2, |rank| {
        let mut held = part(&whole, &distribution, rank.rank());
        if rank.rank() == 1 {
            let (rows, cols) = (held.rows(), held.cols());
            let mut wide = Matrix::zeros(rows, cols, 300).unwrap();
            for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
                wide.set_float(i, j, &held.float(i, j)).unwrap();
            }
            held = wide;
        }
        let got = redistribute(rank, (&distribution, &held), &Distribution::on_root(20, 6, 2, 0)).unwrap();
        assert_eq!(got.precision_bits(), 300);
        if rank.rank() == 0 {
            let same = |i, j| got.float(i, j) == whole.float(i, j);
            assert!((0..20).all(|i| (0..6).all(|j| same(i, j))));
        }
    });
}

/// What a rank passes: two distributions, and by how many rows its part is too short.
type Case<'a> = dyn Fn(usize) -> (Distribution, Distribution, usize) + Sync + 'a;

#[test]
fn what_cannot_be_is_refused_on_all_ranks() {
    let grid = RankGrid { rows: 2, cols: 2 };
    let good = Distribution::block_cyclic((10, 6), (grid, GridOrder::RowMajor), (1, 1), (0, 0));
    let root = Distribution::on_root(10, 6, 4, 0);
    let refused = |what: &Case<'_>| {
        local::run(4, |rank| {
            let (from, to, fewer) = what(rank.rank());
            let (rows, cols) = good.local_shape(rank.rank());
            let held = Matrix::zeros(rows - fewer, cols, 100).unwrap();
            redistribute(rank, (&from, &held), &to).unwrap_err()
        })
    };
    let wide = Distribution { grid: RankGrid { rows: 1, cols: 5 }, ..good.clone() };
    for (words, what) in [
        (
            "rank 3: local part: shapes do not fit: 5 x 3 against 4 x 3",
            &(|rank| (good.clone(), root.clone(), usize::from(rank == 3_usize))) as &Case<'_>,
        ),
        ("a grid of 1 x 5 ranks has 5 ranks, but there are only 4", &|_| (good.clone(), wide.clone(), 0)),
        ("ranks request different distributions", &|rank| (good.clone(), Distribution::on_root(10, 6, 4, rank / 2), 0)),
        ("shapes do not fit: 10 x 6 against 10 x 7", &|_| (good.clone(), Distribution::on_root(10, 7, 4, 0), 0)),
    ] {
        for error in refused(what) {
            assert!(error.to_string().contains(words), "{error}");
            assert!(!matches!(error, Error::Transport(_)));
        }
    }
}
