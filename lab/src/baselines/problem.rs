//! The problem that a baseline is given: an operation, its operands, and the checks that they fit.
//!
//! Depends on: shapes and values. Independent of: any baseline.

use rug::Float;

/// The operation of a baseline. Each error bound is the one that baselines promise at `precision_bits = b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `Q = P^T P` of a `rows x cols` matrix P; either triangle of the result may be requested.
    /// `|error_ij| <= 2^(4-b) rows ||p_i|| ||p_j||`.
    Syrk,
    /// `C = A^T B` of two `rows x cols` matrices. `|error_ij| <= 2^(4-b) rows ||a_i|| ||b_j||`.
    Gemm,
    /// `A = F G` of a symmetric positive definite `rows x rows` matrix with a dominant diagonal (so
    /// that pivoting leaves it as it is), where F is lower and G upper triangular, with the same
    /// diagonal. Entry (i, j) of the result is that of F for `i >= j`, else that of G: a Cholesky
    /// factorisation is `G = F^T`. `|A - F G|_ij <= 2^(8-b) rows sqrt(a_ii a_jj)`.
    Cholesky,
    /// `L X = B` of a lower triangular `rows x rows` matrix L and a `rows x cols` matrix B.
    /// `|L X - B|_ij <= 2^(8-b) rows (||l_i|| ||x_j|| + |b_ij|)`, `l_i` being row i of L.
    Trsm,
    /// `L L^T X = B` of the same operands.
    /// `|A X - B|_ij <= 2^(8-b) rows (sqrt(a_ii) sum_k sqrt(a_kk) |x_kj| + |b_ij|)` with `A = L L^T`.
    Solve,
}

impl Operation {
    /// The name in the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Syrk => "syrk",
            Operation::Gemm => "gemm",
            Operation::Cholesky => "cholesky",
            Operation::Trsm => "trsm",
            Operation::Solve => "solve",
        }
    }
}

/// Input of one baseline: column-major entries, all of `precision_bits`.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// The requested operation.
    pub operation: Operation,
    /// Rows of each operand.
    pub rows: usize,
    /// The columns of the operands of a product, or the right-hand sides of a triangular system; equal to `rows` for a
    /// factorisation.
    pub cols: usize,
    /// Precision of the entries and of the result.
    pub precision_bits: u32,
    /// The first operand: P or A of a product, A of a factorisation, L of a system, whose upper triangle is not read.
    pub a: &'a [Float],
    /// The second operand, B, where the operation has one.
    pub b: Option<&'a [Float]>,
    /// The number of threads that a run may use, at least one.
    pub threads: usize,
}

impl Problem<'_> {
    /// Refuses shapes, precisions and values that the baselines cannot take.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.threads == 0 {
            return Err("a baseline needs at least one thread".into());
        }
        if i32::try_from(self.rows).is_err() || i32::try_from(self.cols).is_err() {
            return Err(format!("{} x {} is too large for the baselines", self.rows, self.cols));
        }
        let (left_cols, has_right) = match self.operation {
            Operation::Syrk => (self.cols, false),
            Operation::Gemm => (self.cols, true),
            Operation::Cholesky => (self.rows, false),
            Operation::Trsm | Operation::Solve => (self.rows, true),
        };
        if self.b.is_some() != has_right {
            return Err(format!("{} takes {} operand(s)", self.operation.name(), 1 + usize::from(has_right)));
        }
        if self.operation == Operation::Cholesky && self.cols != self.rows {
            return Err(format!("a matrix of {} x {} cannot be factored", self.rows, self.cols));
        }
        self.check_entries(self.a, left_cols)?;
        self.check_entries(self.b.unwrap_or_default(), if has_right { self.cols } else { 0 })?;
        let is_system = matches!(self.operation, Operation::Trsm | Operation::Solve);
        match (0..self.rows).find(|i| is_system && self.a[i * (self.rows + 1)].is_zero()) {
            Some(index) => Err(format!("the triangular matrix has a zero on its diagonal, at index {index}")),
            None => Ok(()),
        }
    }

    /// Refuses an operand that does not have `rows x cols` finite entries of the right precision.
    fn check_entries(&self, entries: &[Float], cols: usize) -> Result<(), String> {
        if entries.len() != self.rows * cols {
            return Err(format!("{} entries do not fill {} x {cols}", entries.len(), self.rows));
        }
        if let Some(entry) = entries.iter().find(|entry| entry.prec() != self.precision_bits) {
            return Err(format!("an entry has {} bits instead of {}", entry.prec(), self.precision_bits));
        }
        if !entries.iter().all(Float::is_finite) {
            return Err("an entry is infinite or not a number".into());
        }
        Ok(())
    }
}

/// Where entry (i, j) of a product lies in a column-major square result, of which `Syrk` fills the lower triangle only.
/// Panics outside the result.
pub(super) fn entry_index(operation: Operation, cols: usize, i: usize, j: usize) -> usize {
    assert!(i < cols && j < cols, "({i}, {j}) is outside a result of dimension {cols}");
    match operation {
        Operation::Syrk => i.min(j) * cols + i.max(j),
        _ => j * cols + i,
    }
}
