//! Sums, pairings and the Schur complement of sparse matrices compared with products with whole matrices.

use super::*;
use crate::block::Summand;
use crate::problem::{Entry, Sparse, SparseCone};
use sunzi::Context;

/// A cone of constraints with many, some and single entries, some of them longer than results, without every third
/// variable.
fn cone(order: usize, counts: &[usize], shape: Shape) -> SparseCone {
    let bits = 53;
    let mut state = 7u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let entries = counts.iter().map(|&count| {
        let mut list = Vec::<Entry>::new();
        for _ in 0..count {
            let (a, b) = (next(order), next(order));
            let (row, col) = if matches!(shape, Shape::Diagonal(_)) { (a, a) } else { (a.max(b), a.min(b)) };
            if !list.iter().any(|entry| (entry.row, entry.col) == (row, col)) {
                let value = if count == 1 { 1.0 } else { next(9) as f64 - 3.5 };
                let value = Float::with_val(bits, value);
                let value = if list.len() % 16 == 9 { Float::with_val(200, &value / 3u32) } else { value };
                list.push(Entry { row, col, value });
            }
        }
        list
    });
    let active = (0..counts.len()).map(|at| at + at / 2).collect();
    SparseCone { shape, active, entries: entries.collect(), constant: Vec::new() }
}

/// The matrix of a variable in a block, all of it.
fn dense(cone: &SparseCone, variable: usize, bits: u32) -> Matrix {
    let order = cone.shape.order();
    let mut matrix = Matrix::zeros(order, order, bits).unwrap();
    let at = cone.active.iter().position(|&active| active == variable);
    for entry in at.map_or(&[][..], |at| &cone.entries[at]) {
        matrix.set_float(entry.row, entry.col, &entry.value).unwrap();
        matrix.set_float(entry.col, entry.row, &entry.value).unwrap();
    }
    matrix
}

fn all_of(block: &Block) -> Matrix {
    let matrix = block.stored();
    let (order, bits) = (matrix.rows(), matrix.precision_bits());
    let diagonal = |row, col| if row == col { matrix.float(row, 0) } else { Float::new(bits) };
    match block {
        Block::Dense(matrix) => matrix.clone(),
        Block::Diagonal(_) => Matrix::from_fn(order, order, bits, diagonal).unwrap(),
    }
}

/// Some positive definite block.
fn definite(ctx: &Context, shape: Shape, seed: f64, bits: u32) -> Result<Block> {
    let order = shape.order();
    let half =
        Matrix::from_fn(order, order, bits, |row, col| Float::with_val(bits, seed + (row * 2 + col * 7) as f64).cos())?;
    let matrix = sunzi::syrk(ctx, &half, bits)?.into_matrix();
    Ok(match shape {
        Shape::Dense(_) => Block::Dense(matrix),
        Shape::Diagonal(_) => Block::Diagonal(column(order, bits, |row| matrix.float(row, row))?),
    })
}

fn summands(blocks: &[Block]) -> Vec<Summand<'_>> {
    blocks.iter().map(|block| Summand { block, product: None }).collect()
}

fn pairings(k: Arithmetic<'_>, sparse: &Sparse, summands: &[Summand<'_>]) -> Result<Matrix> {
    let numbers = summands.iter().enumerate().map(|(cone, summand)| sparse.numbers(k, cone, summand));
    sparse.paired(k, &numbers.collect::<Result<Vec<_>>>()?)
}

#[test]
fn schur_complements_sums_and_pairings_are_those_of_whole_matrices() -> Result<()> {
    let (bits, order) = (160, 20);
    let cases: [&[usize]; 5] = [&[], &[1], &[900, 1, 1, 1, 1, 5], &[300, 200, 300, 9, 9, 900], &[1; 20]];
    for counts in cases {
        let shapes = [Shape::Dense(order), Shape::Diagonal(order), Shape::Dense(3)];
        let sparse = Sparse::new(35, shapes.map(|shape| cone(shape.order(), counts, shape)).into());
        assert_eq!(sparse.is_sparse(0, bits)?, counts.len() != 6, "the test reaches both ways");
        let mut found = Vec::new();
        for threads in [1, 2, 3] {
            let workers = Workers::new(Context::builder().threads(threads).build()?)?;
            let k = Arithmetic { ctx: workers.all(), bits };
            let blocks = |seed| shapes.iter().map(move |shape| definite(k.ctx, *shape, seed, bits));
            let x = blocks(0.3).collect::<Result<Vec<_>>>()?;
            let y = blocks(1.1).collect::<Result<Vec<_>>>()?;
            let operands = x.iter().zip(&y);
            let operands = operands
                .map(|(x, y)| SchurOperand { x_inverse: x, x_lower_inverse: None, y, y_lower: None })
                .collect::<Vec<_>>();
            let s = sparse.schur(&workers, &Ranks::alone(), k, &operands)?.unwrap();
            if threads == 1 {
                check(k, &sparse, (&x, &y), &s)?;
            }
            let pairings = pairings(k, &sparse, &summands(&y))?;
            found.push((Matrix::from_fn(35, 35, bits, |row, col| s.float(row.max(col), row.min(col)))?, pairings));
        }
        assert!(found[0] == found[1] && found[1] == found[2], "{counts:?}");
    }
    let tables = Tables::new(4, &[cone(order, &[400, 300, 1], Shape::Dense(order))])?;
    let cone = &tables.cones[0];
    let ways = cone.parts.iter().map(|part| cone.is_product(part, bits)).collect::<Vec<_>>();
    assert_eq!(ways, [true, true, false], "the test reaches both ways");
    for (counts, is_full) in [(&[900, 1, 1, 1, 1, 5][..], true), (&[200, 9], false)] {
        let tables = Tables::new(9, &[self::cone(order, counts, Shape::Dense(order))])?;
        let cone = &tables.cones[0];
        assert_eq!(cone.is_full(cone.rows_of(&cone.parts[..1])?, bits), is_full, "the test reaches both ways");
    }
    Ok(())
}

/// Sums, pairings and the lower triangle of S compared with products with whole matrices.
fn check(k: Arithmetic<'_>, sparse: &Sparse, (x, y): (&[Block], &[Block]), s: &Matrix) -> Result<()> {
    let small = |value: Float, what: &str| assert!(value.clone().abs() < 1e-38, "{what} is off by {value}");
    let weights = column(sparse.variables, k.bits, |row| Float::with_val(k.bits, row as f64 * 0.37).sin())?;
    let wide = |row: usize, col: usize| Float::with_val(k.bits, 3.0 + (row * 5 + col * 3) as f64).sin();
    let products = sparse.cones.iter().map(|cone| {
        let order = cone.shape.order();
        Matrix::from_fn(order, order, k.bits, wide)
    });
    let products = products.collect::<Result<Vec<_>>>()?;
    let with = x.iter().zip(y).zip(&products).map(|((x, block), product)| {
        let product = matches!(block, Block::Dense(_)).then_some((x, product));
        Summand { block, product }
    });
    let pairings = [pairings(k, sparse, &summands(y))?, pairings(k, sparse, &with.collect::<Vec<_>>())?];
    let variables = sparse.variables;
    let mut wanted = vec![Float::new(k.bits); variables * variables];
    let mut paired = [vec![Float::new(k.bits); variables], vec![Float::new(k.bits); variables]];
    for (number, cone) in sparse.cones.iter().enumerate() {
        let (x, y, order) = (all_of(&x[number]), all_of(&y[number]), cone.shape.order());
        let image = sunzi::gemm(k.ctx, &x, &products[number], k.bits)?;
        let image = if matches!(cone.shape, Shape::Dense(_)) { image } else { Matrix::zeros(order, order, k.bits)? };
        let sum = all_of(&sparse.weighted_sum(k, number, &weights)?);
        let mut sum_wanted = Matrix::zeros(order, order, k.bits)?;
        for &right in &cone.active {
            let a = dense(cone, right, k.bits);
            sum_wanted = k.sum(&weights.float(right, 0), &a, &sum_wanted)?;
            paired[0][right] += k.inner(&a, &y)?;
            paired[1][right] += k.inner(&a, &y)? + k.inner(&a, &image)?;
            let product = sunzi::gemm(k.ctx, &sunzi::gemm(k.ctx, &x, &a, k.bits)?, &y, k.bits)?;
            let product = product.transposed().to_matrix()?;
            for &left in &cone.active {
                wanted[left * variables + right] += k.inner(&dense(cone, left, k.bits), &product)?;
            }
        }
        small(k.difference(&sum, &sum_wanted)?.max_norm(), "the sum");
        if sparse.is_sparse(number, k.bits)? {
            let few = sparse.entries_of(number, &sum, k.bits)?;
            let product = sunzi::sparse::spmm(k.ctx, &few, &products[number], k.bits)?;
            let wanted = sunzi::gemm(k.ctx, &sum_wanted, &products[number], k.bits)?;
            small(k.difference(&product, &wanted)?.max_norm(), "a product with few entries");
        }
    }
    for (found, want) in pairings.iter().zip(&paired) {
        (0..variables).for_each(|row| small(found.float(row, 0) - &want[row], "a pairing"));
    }
    for (col, row) in (0..variables).flat_map(|col| (col..variables).map(move |row| (col, row))) {
        small(s.float(row, col) - &wanted[row * variables + col], "S");
    }
    Ok(())
}
