//! Tall dense matrices of a few columns, vectors among them.

use super::small::{Small, read};
use super::{Handle, NewTask, Session, numbers, numbers_mut};
use crate::chunks::Chunks;
use crate::dense::{self, Tall};
use crate::engine::Operands;
use crate::small::SmallMatrix;
use std::rc::Rc;
use sunzi::{Error, Result};

/// A tall matrix in chunks of rows, which is computed when needed.
#[derive(Clone)]
pub struct TallMatrix {
    pub(super) session: Session,
    pub(super) chunks: Chunks,
    pub(super) cols: usize,
    pub(super) parts: Vec<Rc<Handle>>,
}

impl Session {
    /// A matrix of uniform random numbers in `[-1, 1)` that depend only on `seed`, row and column.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no columns.
    pub fn random(&self, rows: usize, cols: usize, seed: u64) -> Result<TallMatrix> {
        self.tall(rows, cols, &[], move |first_row, mut operands| {
            dense::fill_random(seed, first_row, cols, numbers_mut(operands.writes[0]));
            Ok(())
        })
    }

    /// The matrix with these numbers, row by row.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::InvalidArgument`] for no columns.
    pub fn tall_from(&self, cols: usize, all: &[f64]) -> Result<TallMatrix> {
        let rows = all.len() / cols.max(1);
        if rows * cols != all.len() {
            let (left_rows, left_cols, right_rows, right_cols) = (rows, cols, all.len(), 1);
            return Err(Error::ShapeMismatch {
                operation: "tall matrix",
                left_rows,
                left_cols,
                right_rows,
                right_cols,
            });
        }
        let all = std::sync::Arc::new(all.to_vec());
        self.tall(rows, cols, &[], move |first_row, mut operands| {
            let out = numbers_mut(operands.writes[0]);
            out.copy_from_slice(&all[first_row * cols..][..out.len()]);
            Ok(())
        })
    }

    /// A new matrix of which each chunk is made of the same chunks of others.
    fn tall(
        &self,
        rows: usize,
        cols: usize,
        from: &[&TallMatrix],
        kernel: impl Fn(usize, Operands<'_>) -> Result<()> + Clone + Send + 'static,
    ) -> Result<TallMatrix> {
        let chunks = self.chunks(rows)?;
        if cols == 0 {
            return Err(Error::InvalidArgument(format!(
                "a matrix of {rows} rows and 0 columns is not possible; choose at least 1 column"
            )));
        }
        if rows.checked_mul(cols).is_none_or(|count| count > isize::MAX as usize / 16) {
            return Err(Error::DimensionOverflow { rows, cols, precision_bits: 53 });
        }
        self.check_rows(rows, cols, from)?;
        let mut parts = Vec::with_capacity(chunks.count());
        for chunk in 0..chunks.count() {
            let part = self.declare(chunks.len(chunk) * cols);
            let reads = from.iter().map(|other| &other.parts[chunk]).collect::<Vec<_>>();
            let (first_row, kernel) = (chunks.range(chunk).start, kernel.clone());
            let node = self.owner(chunks, chunk);
            let task = NewTask { reads: &reads, creates: &[&part], node, ..NewTask::default() };
            self.add(task, Box::new(move |operands| kernel(first_row, operands)));
            parts.push(part);
        }
        Ok(TallMatrix { session: self.clone(), chunks, cols, parts })
    }
}

/// The product `[X_1 X_2 ...] C` with a small right operand (MM).
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::InvalidArgument`] for no operands, operands of different sessions, or a `C`
/// without columns.
pub fn times_small(parts: &[&TallMatrix], c: &SmallMatrix) -> Result<TallMatrix> {
    let first = first_of(parts)?;
    let widths = parts.iter().map(|part| part.cols).collect::<Vec<_>>();
    if widths.iter().sum::<usize>() != c.rows() {
        let (left_rows, left_cols) = (first.rows(), widths.iter().sum());
        let (right_rows, right_cols) = (c.rows(), c.cols());
        let operation = "product with a small matrix";
        return Err(Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols });
    }
    let c = c.clone();
    first.session.tall(first.rows(), c.cols(), parts, move |_, mut operands| {
        let parts = operands.reads.iter().zip(&widths).map(|(words, &cols)| Tall { numbers: numbers(words), cols });
        dense::times_small(&parts.collect::<Vec<_>>(), &c, false, numbers_mut(operands.writes[0]))
    })
}

/// The product `[X_1 X_2 ...]^T [Y_1 Y_2 ...]`, evaluated by [`Small::get`]; `dot` for vectors.
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::InvalidArgument`] for no operands, or operands of different sessions.
pub fn inner(left: &[&TallMatrix], right: &[&TallMatrix]) -> Result<Small> {
    let (first, all) = (first_of(left)?, left.iter().chain(right).copied().collect::<Vec<_>>());
    let [rows, cols] = [left, right].map(|list| list.iter().map(|part| part.cols).sum::<usize>());
    first_of(right)?;
    // One operand for each matrix, however often it is named.
    let mut distinct: Vec<&TallMatrix> = Vec::new();
    let mut places = Vec::new();
    for one in &all {
        let known = distinct.iter().position(|other| one.is_same(other));
        places.push(known.unwrap_or(distinct.len()));
        if known.is_none() {
            distinct.push(one);
        }
    }
    let widths = distinct.iter().map(|one| one.cols).collect::<Vec<_>>();
    let lefts = left.len();
    let products = first.session.per_chunk(&distinct, rows * cols, move |operands| {
        let tall = |&place: &usize| Tall { numbers: numbers(operands.reads[place]), cols: widths[place] };
        let all = places.iter().map(tall).collect::<Vec<_>>();
        let product = dense::inner(&all[..lefts], &all[lefts..])?;
        let mut operands = operands;
        numbers_mut(operands.writes[0]).copy_from_slice(product.numbers());
        Ok(())
    })?;
    Ok(Small::sum(&first.session, products, rows, cols))
}

fn first_of<'a>(parts: &[&'a TallMatrix]) -> Result<&'a TallMatrix> {
    let first = parts.first().copied();
    first.ok_or_else(|| Error::InvalidArgument("an operation needs at least one matrix".to_string()))
}

impl Session {
    /// Checks that all matrices belong to this session and have as many rows as a matrix of the shape
    /// `left_rows x left_cols`; then their chunks are the same.
    fn check_rows(&self, left_rows: usize, left_cols: usize, all: &[&TallMatrix]) -> Result<()> {
        for other in all {
            other.check_session(self)?;
            if other.rows() != left_rows {
                let (right_rows, right_cols) = (other.rows(), other.cols);
                let operation = "matrices with the same rows";
                return Err(Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols });
            }
        }
        Ok(())
    }

    /// A small object for each chunk.
    fn per_chunk(
        &self,
        from: &[&TallMatrix],
        words: usize,
        kernel: impl Fn(Operands<'_>) -> Result<()> + Clone + Send + 'static,
    ) -> Result<Vec<Rc<Handle>>> {
        let first = first_of(from)?;
        self.check_rows(first.rows(), first.cols, from)?;
        let one = |chunk: usize| {
            let part = self.declare(words);
            let reads = from.iter().map(|other| &other.parts[chunk]).collect::<Vec<_>>();
            let node = self.owner(first.chunks, chunk);
            self.add(
                NewTask { reads: &reads, creates: &[&part], node, ..NewTask::default() },
                Box::new(kernel.clone()),
            );
            part
        };
        Ok((0..first.chunks.count()).map(one).collect())
    }
}

impl TallMatrix {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.chunks.rows()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Refuses a matrix of another session.
    pub(super) fn check_session(&self, session: &Session) -> Result<()> {
        if self.session.is_same(session) {
            return Ok(());
        }
        Err(Error::InvalidArgument("the matrices belong to different sessions; create them in one session".to_string()))
    }

    /// Whether two handles are of one matrix.
    pub(super) fn is_same(&self, other: &TallMatrix) -> bool {
        self.chunks == other.chunks
            && self.session.is_same(&other.session)
            && self.parts.iter().zip(&other.parts).all(|(one, other)| one.object == other.object)
    }

    /// The sum `alpha self + beta other`: addM, addV, axpyM, axpyV.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::InvalidArgument`] for a matrix of another session.
    pub fn add_scaled(&self, alpha: f64, other: &TallMatrix, beta: f64) -> Result<TallMatrix> {
        if self.cols != other.cols {
            let (left_rows, left_cols, right_rows, right_cols) = (self.rows(), self.cols, other.rows(), other.cols);
            let operation = "sum of matrices";
            return Err(Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols });
        }
        if self.is_same(other) {
            return self.session.tall(self.rows(), self.cols, &[self], move |_, mut operands| {
                dense::axpby(alpha + beta, numbers(operands.reads[0]), 0.0, numbers_mut(operands.writes[0]))
            });
        }
        self.session.tall(self.rows(), self.cols, &[self, other], move |_, mut operands| {
            let out = numbers_mut(operands.writes[0]);
            out.copy_from_slice(numbers(operands.reads[1]));
            dense::axpby(alpha, numbers(operands.reads[0]), beta, out)
        })
    }

    /// The matrix with each row divided by the entry of a vector.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::InvalidArgument`] for a vector of another session; when evaluated,
    /// [`Error::Singular`] with the row of a zero.
    pub fn divide_rows(&self, divisors: &TallMatrix) -> Result<TallMatrix> {
        if divisors.cols != 1 {
            let (left_rows, left_cols, right_rows, right_cols) = (self.rows(), 1, divisors.rows(), divisors.cols);
            let operation = "division of rows";
            return Err(Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols });
        }
        let cols = self.cols;
        self.session.tall(self.rows(), cols, &[self, divisors], move |first_row, mut operands| {
            let out = numbers_mut(operands.writes[0]);
            out.copy_from_slice(numbers(operands.reads[0]));
            dense::divide_rows(numbers(operands.reads[1]), cols, out).map_err(|error| match error {
                Error::Singular { index } => Error::Singular { index: first_row + index },
                other => other,
            })
        })
    }

    /// Requests its computation together with the next evaluation: operands of both are brought to memory once and
    /// released afterwards.
    pub fn want(&self) {
        let mut engine = self.session.inner.engine.borrow_mut();
        self.parts.iter().for_each(|part| engine.want(part.object));
    }

    /// Computes it and copies its numbers, row by row.
    ///
    /// # Errors
    /// As [`Small::get`].
    pub fn numbers(&self) -> Result<Vec<f64>> {
        let mut all = sunzi::advanced::store::with_room(self.rows() * self.cols)?;
        for (chunk, part) in self.parts.iter().enumerate() {
            all.extend(read(part, self.chunks.len(chunk) * self.cols)?);
        }
        Ok(all)
    }
}
