//! The Schur complement of sparse constraint matrices: `S_ij = Tr(A_i X^-1 A_j Y)`, one triangle.
//!
//! Constraints are sorted by their entries, most first. One with many is turned into `U = X^-1 (A_i Y)` by products of
//! the library, several at a time; of one with few only those entries of `U` are formed that a later constraint
//! meets. Both give numbers that depend on the operands alone, and so do the rules that choose.
//! Source of the idea: Fujisawa, Kojima, Nakata, Math. Programming 79 (1997), 235-253.

use super::SchurOperand;
use super::sparse::{Entry, SparseCone, weights};
use crate::block::{Block, Shape};
use crate::numbers::{Arithmetic, entrywise};
use crate::workers::Workers;
use rug::{Assign, Float};
use std::cmp::Reverse;
use std::ops::Range;
use sunzi::{Matrix, Result, gemm_with};

/// Estimates in nanoseconds: a product of two numbers that is added, one inside a product of the library, and taking
/// an entry into or out of such a product.
const TERM_NS: usize = 45;
const LIBRARY_TERM_NS: usize = 4;
const EXCHANGE_NS: usize = 150;

/// Columns of a product of the library, about.
const PRODUCT_COLUMNS: usize = 4096;

/// Constraints of a task that forms single entries.
const TASK_CONSTRAINTS: usize = 8;

/// A row of `A_i Y`.
enum RowImage {
    /// A multiple of a row of Y; without a factor where that is 1.
    Multiple { row: usize, factor: Option<Float> },
    /// A sum of several.
    Sum(Vec<Float>),
}

/// A piece of the work: positions in the order of the plan.
enum Task {
    Products(Range<usize>),
    Entries(Range<usize>),
}

/// The numbers of one constraint beside all at its own and at later positions.
type Line = Vec<Float>;

/// Constraints by their entries, and how many of them are turned into products of the library.
struct Plan {
    order: Vec<usize>,
    products: usize,
}

/// Operands of a dense block as numbers.
struct Dense<'a> {
    cone: &'a SparseCone,
    plan: Plan,
    order: usize,
    bits: u32,
    x_inverse: &'a Matrix,
    x_numbers: Vec<Float>,
    y_numbers: Vec<Float>,
}

/// Entries of the whole matrix that a list stands for.
fn weight(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| 1 + usize::from(entry.is_beside())).sum()
}

/// Rows in which a matrix has entries, rising.
fn rows_of(entries: &[Entry]) -> Vec<usize> {
    let mut rows = entries.iter().flat_map(|entry| [entry.row, entry.col]).collect::<Vec<_>>();
    rows.sort_unstable();
    rows.dedup();
    rows
}

impl Plan {
    fn new(cone: &SparseCone) -> Plan {
        let count = cone.active.len();
        let mut order = (0..count).collect::<Vec<_>>();
        order.sort_by_key(|&at| (Reverse(weight(&cone.entries[at])), at));
        let size = cone.shape.order();
        let mut met = 0;
        let mut cheaper = vec![false; count];
        for (position, &at) in order.iter().enumerate().rev() {
            met += weight(&cone.entries[at]);
            let rows = rows_of(&cone.entries[at]).len();
            let by_entries = rows * met * TERM_NS;
            let by_product = size * size * (size * LIBRARY_TERM_NS + EXCHANGE_NS) + met * TERM_NS;
            cheaper[position] = by_product < by_entries;
        }
        let products = cheaper.iter().take_while(|&&product| product).count();
        Plan { order, products }
    }

    /// Tasks with an estimate of their cost.
    fn tasks(&self, size: usize) -> Vec<(u64, Task)> {
        let count = self.order.len();
        let each = (PRODUCT_COLUMNS / size.max(1)).max(1);
        let products = (0..self.products).step_by(each).map(|first| first..(first + each).min(self.products));
        let entries = (self.products..count).step_by(TASK_CONSTRAINTS);
        let entries = entries.map(|first| first..(first + TASK_CONSTRAINTS).min(count));
        let cost = |range: &Range<usize>| (range.len() * (count - range.start)) as u64;
        let products = products.map(|range| (u64::MAX, Task::Products(range)));
        products.chain(entries.map(|range| (cost(&range), Task::Entries(range)))).collect()
    }
}

impl Dense<'_> {
    fn entries(&self, position: usize) -> &[Entry] {
        &self.cone.entries[self.plan.order[position]]
    }

    /// The rows of `A_i Y` that are not 0, with their numbers.
    fn images(&self, entries: &[Entry]) -> Vec<(usize, RowImage)> {
        let rows = rows_of(entries);
        let mut terms = vec![Vec::new(); rows.len()];
        for entry in entries {
            let mut add = |row: usize, other: usize| {
                if let Ok(at) = rows.binary_search(&row) {
                    terms[at].push((other, &entry.value));
                }
            };
            add(entry.row, entry.col);
            if entry.is_beside() {
                add(entry.col, entry.row);
            }
        }
        rows.into_iter().zip(terms).map(|(row, terms)| (row, self.image(&terms))).collect()
    }

    /// The sum of rows of Y with these numbers and factors.
    fn image(&self, terms: &[(usize, &Float)]) -> RowImage {
        if let [(row, value)] = *terms {
            return RowImage::Multiple { row, factor: (*value != 1).then(|| value.clone()) };
        }
        let mut product = Float::new(self.bits);
        let sum = (0..self.order).map(|col| {
            let mut sum = Float::new(self.bits);
            for &(other, value) in terms {
                product.assign(&self.y_numbers[other + col * self.order] * value);
                sum += &product;
            }
            sum
        });
        RowImage::Sum(sum.collect())
    }

    /// Adds row `row` of `X^-1 A_i Y` in column `col`, times nothing yet, to `sum`.
    fn add_entry(&self, images: &[(usize, RowImage)], (row, col): (usize, usize), room: &mut [Float; 2]) {
        let n = self.order;
        let [sum, product] = room;
        for (inner, image) in images {
            let left = &self.x_numbers[row + inner * n];
            match image {
                RowImage::Multiple { row: other, factor } => {
                    product.assign(left * &self.y_numbers[other + col * n]);
                    if let Some(factor) = factor {
                        *product *= factor;
                    }
                }
                RowImage::Sum(numbers) => product.assign(left * &numbers[col]),
            }
            *sum += &*product;
        }
    }

    /// The line of a constraint, by the entries of `X^-1 A_i Y` that are met.
    fn line_of_entries(&self, position: usize) -> Line {
        let images = self.images(self.entries(position));
        let mut room = [Float::new(self.bits), Float::new(self.bits)];
        let others = position..self.plan.order.len();
        others
            .map(|other| {
                let mut total = Float::new(self.bits);
                for entry in self.entries(other) {
                    room[0].assign(0);
                    self.add_entry(&images, (entry.row, entry.col), &mut room);
                    if entry.is_beside() {
                        self.add_entry(&images, (entry.col, entry.row), &mut room);
                    }
                    let [sum, product] = &mut room;
                    if entry.value == 1 {
                        total += &*sum;
                    } else {
                        product.assign(&*sum * &entry.value);
                        total += &*product;
                    }
                }
                total
            })
            .collect()
    }

    /// The lines of some constraints, by whole matrices `X^-1 A_i Y`.
    fn lines_of_products(&self, k: Arithmetic<'_>, positions: Range<usize>) -> Result<Vec<Line>> {
        let n = self.order;
        let mut right = Matrix::zeros(n, n * positions.len(), self.bits)?;
        let mut product = Float::new(self.bits);
        for (at, position) in positions.clone().enumerate() {
            for (row, image) in self.images(self.entries(position)) {
                for col in 0..n {
                    match &image {
                        RowImage::Sum(numbers) => right.set_float(row, at * n + col, &numbers[col])?,
                        RowImage::Multiple { row: other, factor } => {
                            product.assign(&self.y_numbers[other + col * n]);
                            if let Some(factor) = factor {
                                product *= factor;
                            }
                            right.set_float(row, at * n + col, &product)?;
                        }
                    }
                }
            }
        }
        let images = gemm_with(k.ctx, self.x_inverse, &right, self.bits, &entrywise())?.result;
        drop(right);
        let line = |(at, position): (usize, usize)| {
            let mut numbers = images.view().block(0..n, at * n..(at + 1) * n)?.to_floats();
            // Below the diagonal only sums of an entry and its mirror image are met.
            for col in 0..n {
                for row in col + 1..n {
                    let (front, back) = numbers.split_at_mut(row * n);
                    front[row + col * n] += &back[col];
                }
            }
            let mut product = Float::new(self.bits);
            let others = position..self.plan.order.len();
            let line = others.map(|other| {
                let mut total = Float::new(self.bits);
                for entry in self.entries(other) {
                    product.assign(&numbers[entry.row + entry.col * n] * &entry.value);
                    total += &product;
                }
                total
            });
            Ok(line.collect())
        };
        positions.enumerate().map(line).collect()
    }
}

/// The lower triangle of the part of one block, for the constraints that have entries there.
///
/// # Errors
/// Those of the library's products.
pub fn schur(workers: &Workers, k: Arithmetic<'_>, cone: &SparseCone, operand: &SchurOperand<'_>) -> Result<Matrix> {
    let (Block::Dense(x_inverse), Block::Dense(y), Shape::Dense(order)) = (operand.x_inverse, operand.y, cone.shape)
    else {
        return of_diagonal(k, cone, operand);
    };
    let dense = Dense {
        cone,
        plan: Plan::new(cone),
        order,
        bits: k.bits,
        x_inverse,
        x_numbers: x_inverse.view().to_floats(),
        y_numbers: y.view().to_floats(),
    };
    let tasks = dense.plan.tasks(order);
    let lines = workers.map(
        &tasks,
        |(cost, _)| *cost,
        |ctx, (_, task)| match task {
            Task::Products(positions) => dense.lines_of_products(Arithmetic { ctx, ..k }, positions.clone()),
            Task::Entries(positions) => Ok(positions.clone().map(|at| dense.line_of_entries(at)).collect()),
        },
    )?;
    let count = cone.active.len();
    let mut whole = Matrix::zeros(count, count, k.bits)?;
    for (position, line) in lines.into_iter().flatten().enumerate() {
        let one = dense.plan.order[position];
        for (offset, number) in line.iter().enumerate() {
            let other = dense.plan.order[position + offset];
            whole.set_float(one.max(other), one.min(other), number)?;
        }
    }
    Ok(whole)
}

/// `sum_k a_ik a_jk y_k / x_k`: by a product where most entries are there, else pair by pair.
fn of_diagonal(k: Arithmetic<'_>, cone: &SparseCone, operand: &SchurOperand<'_>) -> Result<Matrix> {
    let weights = weights(k, operand.x_inverse.stored(), operand.y.stored())?;
    let (count, order) = (cone.active.len(), cone.shape.order());
    let mut by_row = vec![Vec::new(); order];
    for (at, entries) in cone.entries.iter().enumerate() {
        entries.iter().for_each(|entry| by_row[entry.row].push((at, &entry.value)));
    }
    let pairs = by_row.iter().map(|row| row.len() * row.len()).sum::<usize>();
    if pairs * TERM_NS > 2 * order * count * count * LIBRARY_TERM_NS {
        let columns = cone.diagonals(k.bits)?;
        let scaled = Matrix::from_fn(order, count, k.bits, |row, col| {
            Float::with_val(k.bits, &columns.float(row, col) * &weights.float(row, 0))
        })?;
        return Ok(gemm_with(k.ctx, columns.transposed(), &scaled, k.bits, &entrywise())?.result);
    }
    let mut whole = Matrix::zeros(count, count, k.bits)?;
    let (mut scaled, mut product) = (Float::new(k.bits), Float::new(k.bits));
    for (row, list) in by_row.iter().enumerate() {
        let weight = weights.float(row, 0);
        for (at, &(right, value)) in list.iter().enumerate() {
            scaled.assign(&weight * value);
            for &(left, other) in &list[at..] {
                product.assign(&scaled * other);
                product += whole.float(left, right);
                whole.set_float(left, right, &product)?;
            }
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::Context;

    /// A cone of constraints with many, some and single entries.
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
                    list.push(Entry { row, col, value: Float::with_val(bits, value) });
                }
            }
            list
        });
        SparseCone { shape, active: (0..counts.len()).collect(), entries: entries.collect(), constant: Vec::new() }
    }

    fn dense(cone: &SparseCone, at: usize, bits: u32) -> Matrix {
        let order = cone.shape.order();
        let mut matrix = Matrix::zeros(order, order, bits).unwrap();
        for entry in &cone.entries[at] {
            matrix.set_float(entry.row, entry.col, &entry.value).unwrap();
            matrix.set_float(entry.col, entry.row, &entry.value).unwrap();
        }
        matrix
    }

    #[test]
    fn every_way_gives_the_traces() -> Result<()> {
        let (bits, order) = (160, 9);
        let cases: [&[usize]; 5] = [&[], &[1], &[40, 1, 1, 1, 1, 5], &[30; 40], &[1; 30]];
        for shape in [Shape::Dense(order), Shape::Diagonal(order)] {
            for counts in cases {
                let cone = cone(order, counts, shape);
                let mut bits_of = Vec::new();
                for threads in [1, 2, 3] {
                    let workers = Workers::new(Context::builder().threads(threads).build()?)?;
                    let k = Arithmetic { ctx: workers.all(), bits };
                    let spd = |seed: f64| -> Result<Matrix> {
                        let half = Matrix::from_fn(order, order, bits, |row, col| {
                            Float::with_val(bits, seed + (row * 2 + col * 7) as f64).cos()
                        })?;
                        Ok(sunzi::syrk(workers.all(), &half, bits)?.into_matrix())
                    };
                    let only = |m: Matrix| match shape {
                        Shape::Dense(_) => Block::Dense(m),
                        Shape::Diagonal(_) => {
                            Block::Diagonal(Matrix::from_fn(order, 1, bits, |row, _| m.float(row, row)).unwrap())
                        }
                    };
                    let whole = |block: &Block| match block {
                        Block::Dense(m) => m.clone(),
                        Block::Diagonal(d) => Matrix::from_fn(order, order, bits, |row, col| {
                            if row == col { d.float(row, 0) } else { Float::new(bits) }
                        })
                        .unwrap(),
                    };
                    let (x, y) = (only(spd(0.3)?), only(spd(1.1)?));
                    let operand = SchurOperand { x_inverse: &x, x_lower_inverse: None, y: &y, y_lower: None };
                    let found = schur(&workers, k, &cone, &operand)?;
                    for right in 0..counts.len() {
                        let a = dense(&cone, right, bits);
                        let image = sunzi::gemm(
                            workers.all(),
                            &sunzi::gemm(workers.all(), &whole(&x), &a, bits)?,
                            &whole(&y),
                            bits,
                        )?;
                        for left in right..counts.len() {
                            let want = k.inner(&dense(&cone, left, bits), &image.transposed().to_matrix()?)?;
                            let error = (want - found.float(left, right)).abs();
                            assert!(error < 1e-40, "{shape:?} {counts:?} {left} {right}: {error}");
                        }
                    }
                    bits_of.push(Matrix::from_fn(counts.len(), counts.len(), bits, |row, col| {
                        found.float(row.max(col), row.min(col))
                    })?);
                }
                assert!(bits_of[0] == bits_of[1] && bits_of[1] == bits_of[2], "{shape:?} {counts:?}");
            }
        }
        let plan = Plan::new(&cone(order, &[30; 40], Shape::Dense(order)));
        assert!(plan.products > 0, "the test reaches both ways");
        Ok(())
    }
}
