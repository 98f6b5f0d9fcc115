//! Products and triangular solves as a device runs them, with their bounds checked.

use crate::device::Region;

/// The types of the elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// Operands and products in doubles.
    F64,
    /// Operands in signed bytes, products in 32-bit integers.
    I8,
}

impl Element {
    /// Bytes of an element of an operand.
    pub fn operand_bytes(self) -> usize {
        match self {
            Element::F64 => 8,
            Element::I8 => 1,
        }
    }

    /// Bytes of an element of a product.
    pub fn product_bytes(self) -> usize {
        match self {
            Element::F64 => 8,
            Element::I8 => 4,
        }
    }
}

/// One matrix of each product of a batch: column-major, columns `ld` elements apart, matrices `stride` elements apart.
#[derive(Clone)]
pub struct GemmOperand {
    /// The region from the first element of the first matrix on.
    pub region: Region,
    /// Distance in elements from one column to the next.
    pub ld: usize,
    /// Distance in elements from one matrix of the batch to the next; 0 for the same matrix in every product.
    pub stride: usize,
}

impl GemmOperand {
    /// Whether `batch` matrices of `rows x cols` elements lie inside the region, which begins at a whole element.
    fn holds(&self, rows: usize, cols: usize, batch: usize, element_bytes: usize) -> bool {
        if rows == 0 || cols == 0 || batch == 0 {
            return true;
        }
        let begin = (batch - 1).checked_mul(self.stride).zip((cols - 1).checked_mul(self.ld));
        let end = begin.and_then(|(matrix, column)| matrix.checked_add(column)?.checked_add(rows));
        let bytes = end.and_then(|end| end.checked_mul(element_bytes));
        let whole = self.region.address().is_multiple_of(element_bytes as u64);
        whole && self.ld >= rows && bytes.is_some_and(|bytes| bytes <= self.region.bytes())
    }
}

/// A batch of products `C := sign A^T B`, or `C := C + sign A^T B` (`A B^T` if `by_rows` is set).
///
/// `A^T B` with the contracted index running down the columns of both is the form that tensor cores need; for bytes it
/// is the only form, `ld` and `stride` are multiples of 16 and regions begin at multiples of 16 bytes.
#[derive(Clone)]
pub struct Gemm {
    /// Doubles or bytes.
    pub element: Element,
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Contracted length.
    pub k: usize,
    /// Shape `k x m`, or `m x k` if `by_rows` is set.
    pub a: GemmOperand,
    /// Shape `k x n`, or `n x k` if `by_rows` is set.
    pub b: GemmOperand,
    /// `m x n`.
    pub c: GemmOperand,
    /// Number of products in the batch.
    pub batch: usize,
    /// Whether the product is subtracted.
    pub negate: bool,
    /// Whether the product is added to C.
    pub accumulate: bool,
    /// Whether operands are contracted along their rows; only for doubles.
    pub by_rows: bool,
}

impl Gemm {
    /// Panics if an operand does not lie in its region; implementations call it first.
    pub fn check(&self) {
        let (inner, outer) = (self.element.operand_bytes(), self.element.product_bytes());
        let (rows_a, cols_a) = if self.by_rows { (self.m, self.k) } else { (self.k, self.m) };
        let (rows_b, cols_b) = if self.by_rows { (self.n, self.k) } else { (self.k, self.n) };
        assert!(self.a.holds(rows_a, cols_a, self.batch, inner), "A of {} x {} x {}", self.m, self.n, self.k);
        assert!(self.b.holds(rows_b, cols_b, self.batch, inner), "B of {} x {} x {}", self.m, self.n, self.k);
        assert!(self.c.holds(self.m, self.n, self.batch, outer), "C of {} x {} x {}", self.m, self.n, self.k);
        assert!(
            self.batch <= 1
                || self.c.stride >= self.n.saturating_sub(1).saturating_mul(self.c.ld).saturating_add(self.m),
            "C overlaps"
        );
        if self.element == Element::I8 {
            assert!(!self.by_rows && !self.negate, "bytes are multiplied as A^T B");
            let aligned = |operand: &GemmOperand| {
                [operand.region.address(), operand.ld as u64, operand.stride as u64]
                    .iter()
                    .all(|n| n.is_multiple_of(16))
            };
            assert!(aligned(&self.a) && aligned(&self.b), "operands of bytes begin at multiples of 16");
        }
    }

    /// Multiply-adds.
    pub fn work(&self) -> u64 {
        self.m as u64 * self.n as u64 * self.k as u64 * self.batch as u64
    }
}

/// `B := B L^-T` in doubles: L is `n x n` lower triangular, B is `m x n`.
#[derive(Clone)]
pub struct Trsm {
    /// Rows of B.
    pub m: usize,
    /// Columns of B.
    pub n: usize,
    /// The triangle.
    pub l: GemmOperand,
    /// The right-hand sides.
    pub b: GemmOperand,
}

impl Trsm {
    /// Panics where an operand does not lie in its region: implementations call it first.
    pub fn check(&self) {
        assert!(self.l.holds(self.n, self.n, 1, 8) && self.b.holds(self.m, self.n, 1, 8), "{} x {}", self.m, self.n);
    }
}
