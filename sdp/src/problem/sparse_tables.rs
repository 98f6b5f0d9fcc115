//! The matrices of a group in the order in which its Schur complement is formed, as sparse matrices of the library.
//!
//! Constraints are sorted by their entries, most first. A *position* is a place of the lower triangle of a block where
//! any matrix has an entry. The group is one sparse matrix with a row for each constraint and a column for each
//! position, so that pairings and the Schur complement are its products with the numbers at the positions, and sums
//! of matrices are products with its transpose. Off the diagonal a position stands for two entries: its number is the
//! sum of both, and on the diagonal twice the entry, so that there the matrices have half of theirs.
//! Independent of: iterations, threads.

use super::sparse_cone::{Entry, SparseCone};
use crate::block::Shape;
use rug::Float;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use sunzi::Result;
use sunzi::sparse::{SparseMatrix, SparseView};

/// Nanoseconds of a term of a sum of the library's sparse verbs, about. The choices that depend on these estimates show
/// in the last bits, so they are the same everywhere.
fn term_ns(bits: u32) -> f64 {
    let limbs = f64::from(bits.div_ceil(64));
    6.0 + limbs * (1.0 + 0.3 * limbs)
}

/// The same of a term inside a product of matrices of the library.
fn product_term_ns(bits: u32) -> f64 {
    0.4 * f64::from(bits.div_ceil(64))
}

/// Taking an entry into and out of such a product.
const EXCHANGE_NS: f64 = 150.0;

/// About the time of the product of `rows` rows with a block of `order` rows.
fn whole_ns(rows: usize, order: usize, bits: u32) -> f64 {
    let (rows, order) = (rows as f64, order as f64);
    rows * order * (order * product_term_ns(bits) + EXCHANGE_NS)
}

/// The time of a term with two long factors, relative to one with an entry of a constraint.
const LONG_TERM: f64 = 1.7;

/// Beginning a sum and rounding it.
const ENTRY_NS: f64 = 40.0;

/// The time of a product by itself, relative to one whose entries are then looked up.
const ALONE: f64 = 0.5;

/// A group's matrices, block by block; see the module.
#[derive(Clone, Debug)]
pub struct Tables {
    /// The constraints in their order.
    pub order: Vec<usize>,
    /// The entries of the constraints: a row for each constraint in that order, a column for each position.
    pub matrices: SparseMatrix,
    /// The transpose, with the constraints by their numbers.
    pub transposed: SparseMatrix,
    /// The tables of each block.
    pub cones: Vec<ConeTables>,
}

/// The positions of a block, and the constraints that have entries there.
#[derive(Clone, Debug)]
pub struct ConeTables {
    /// Kind and order of the block.
    pub shape: Shape,
    /// The column of its first position.
    pub first: usize,
    /// Row and column of each position, those first that the last constraints meet.
    pub positions: Vec<(usize, usize)>,
    /// The number of first positions that the constraints from each place on need.
    pub met: Vec<usize>,
    /// The constraints by their places.
    pub parts: Vec<ConstraintPart>,
    /// The rows of their matrices that are not 0.
    pub rows: SparseMatrix,
}

/// A constraint in a block.
#[derive(Clone, Debug)]
pub struct ConstraintPart {
    /// Its place in the order.
    pub place: usize,
    /// The rows in which its matrix has entries, rising.
    pub rows: Vec<usize>,
    /// Their start among the rows of all constraints.
    pub first_row: usize,
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

/// The matrix in just the memory that is counted for it: its lists have grown with spare room, and those of a copy have
/// not.
fn fitted(matrix: SparseMatrix) -> SparseMatrix {
    matrix.clone()
}

impl Tables {
    /// The tables of a group of `variables` variables.
    ///
    /// # Errors
    /// The errors of [`SparseMatrix::from_entries`].
    pub fn new(variables: usize, cones: &[SparseCone]) -> Result<Tables> {
        let mut weights = vec![0; variables];
        for cone in cones {
            cone.active.iter().zip(&cone.entries).for_each(|(&variable, list)| weights[variable] += weight(list));
        }
        let mut order = (0..variables).collect::<Vec<_>>();
        order.sort_by_key(|&variable| (Reverse(weights[variable]), variable));
        let mut places = vec![0; variables];
        order.iter().enumerate().for_each(|(place, &variable)| places[variable] = place);
        let (mut tables, mut entries, mut first) = (Vec::with_capacity(cones.len()), Vec::new(), 0);
        for cone in cones {
            let table = ConeTables::new(cone, &places, first)?;
            let index = table.positions.iter().zip(first..).map(|(&position, at)| (position, at));
            let index = index.collect::<BTreeMap<_, _>>();
            let is_dense = matches!(cone.shape, Shape::Dense(_));
            for (&variable, list) in cone.active.iter().zip(&cone.entries) {
                entries.extend(list.iter().map(|entry| {
                    let halved = u32::from(is_dense && !entry.is_beside());
                    let value = Float::with_val(entry.value.prec(), &entry.value >> halved);
                    (variable, index[&(entry.row, entry.col)], value)
                }));
            }
            first += table.positions.len();
            tables.push(table);
        }
        let by_place = entries.iter().map(|(variable, at, value)| ((places[*variable], *at), value));
        let by_position = entries.iter().map(|(variable, at, value)| ((*at, *variable), value));
        Ok(Tables {
            matrices: fitted(SparseMatrix::from_entries(variables, first, by_place)?),
            transposed: fitted(SparseMatrix::from_entries(first, variables, by_position)?),
            order,
            cones: tables,
        })
    }

    /// Positions of all blocks.
    pub fn positions(&self) -> usize {
        self.matrices.cols()
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> u64 {
        let of_cone = |cone: &ConeTables| {
            let of_parts = cone.parts.iter().map(|part| 8 * part.rows.capacity()).sum::<usize>();
            let lists = 16 * cone.positions.capacity() + 8 * cone.met.capacity();
            cone.rows.bytes() + (lists + of_parts + size_of::<ConstraintPart>() * cone.parts.capacity()) as u64
        };
        let cones = size_of::<ConeTables>() * self.cones.capacity() + 8 * self.order.capacity();
        let matrices = self.matrices.bytes() + self.transposed.bytes();
        matrices + cones as u64 + self.cones.iter().map(of_cone).sum::<u64>()
    }
}

impl ConeTables {
    fn new(cone: &SparseCone, places: &[usize], first: usize) -> Result<ConeTables> {
        let mut last = BTreeMap::new();
        for (&variable, list) in cone.active.iter().zip(&cone.entries) {
            for entry in list {
                let found = last.entry((entry.row, entry.col)).or_insert(0);
                *found = places[variable].max(*found);
            }
        }
        let mut by_last = last.into_iter().collect::<Vec<_>>();
        by_last.sort_by_key(|&(position, place)| (Reverse(place), position));
        let met = (0..=places.len()).map(|from| by_last.partition_point(|&(_, place)| place >= from));
        let met = met.collect::<Vec<_>>();
        let mut parts = (0..cone.active.len()).collect::<Vec<_>>();
        parts.sort_by_key(|&at| places[cone.active[at]]);
        let (mut entries, mut height, mut found) = (Vec::new(), 0, Vec::with_capacity(parts.len()));
        let positions = by_last.into_iter().map(|(position, _)| position).collect();
        for at in parts {
            let (place, list) = (places[cone.active[at]], &cone.entries[at]);
            let rows = rows_of(list);
            for entry in list {
                let mut add = |row: usize, col: usize| {
                    entries.push(((height + rows.partition_point(|&other| other < row), col), &entry.value));
                };
                add(entry.row, entry.col);
                if entry.is_beside() {
                    add(entry.col, entry.row);
                }
            }
            height += rows.len();
            found.push(ConstraintPart { place, first_row: height - rows.len(), rows });
        }
        let rows = fitted(SparseMatrix::from_entries(height, cone.shape.order(), entries)?);
        Ok(ConeTables { shape: cone.shape, first, positions, met, parts: found, rows })
    }

    /// Nanoseconds that a constraint takes in this block, about.
    pub fn cost(&self, part: &ConstraintPart, bits: u32) -> f64 {
        let order = self.shape.order();
        match self.is_product(part, bits) {
            true => whole_ns(order, order, bits),
            false => self.positions_ns(part, bits),
        }
    }

    /// The estimated time of sums for the positions of the constraint.
    fn positions_ns(&self, part: &ConstraintPart, bits: u32) -> f64 {
        (2 * part.rows.len() * self.met[part.place]) as f64 * term_ns(bits)
    }

    /// Whether for a constraint a product of whole matrices takes less time than sums for only the positions.
    pub fn is_product(&self, part: &ConstraintPart, bits: u32) -> bool {
        let Shape::Dense(order) = self.shape else { return false };
        self.positions_ns(part, bits) > whole_ns(order, order, bits)
    }

    /// Whether some rows of the matrices have many entries, so that their product with a block is a product of whole
    /// matrices.
    pub fn is_full(&self, rows: SparseView<'_>, bits: u32) -> bool {
        let Shape::Dense(order) = self.shape else { return false };
        (rows.entries() * order) as f64 * term_ns(bits) > whole_ns(rows.rows(), order, bits)
    }

    /// The rows of the matrices of neighbouring constraints.
    ///
    /// # Errors
    /// The errors of [`SparseView::row_range`].
    pub fn rows_of(&self, parts: &[ConstraintPart]) -> Result<SparseView<'_>> {
        let first = parts.first().map_or(0, |part| part.first_row);
        self.rows.view().row_range(first..parts.last().map_or(0, |part| part.first_row + part.rows.len()))
    }

    /// Entries of a sum of the matrices, both triangles of it.
    pub fn entries(&self) -> usize {
        self.positions.iter().map(|(row, col)| 1 + usize::from(row != col)).sum()
    }

    /// Whether a sum of the matrices has so few entries that its product with a whole matrix is formed from these:
    /// for 100 rows and 256 bits on Zen 4 where they are up to one in twenty.
    pub fn is_sparse(&self, bits: u32) -> bool {
        let (Shape::Dense(order), entries) = (self.shape, self.entries()) else { return false };
        let (rows, terms) = (order as f64, entries as f64);
        let by_entries = rows * (terms * LONG_TERM * term_ns(bits) + rows * ENTRY_NS);
        by_entries < ALONE * whole_ns(order, order, bits)
    }

    /// Whether sums for all positions take less time than a product of whole matrices and its mirror image.
    pub fn meets_few(&self, bits: u32) -> bool {
        let Shape::Dense(order) = self.shape else { return false };
        let by_positions = (2 * order * self.positions.len()) as f64 * term_ns(bits);
        by_positions < whole_ns(order, order, bits)
    }
}
