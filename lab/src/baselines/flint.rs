//! FLINT's product of integer matrices, between exact scalings by powers of two.
//!
//! Native numbers are `arf`. Column j becomes the integers `trunc(a_kj 2^(b - e_j))`, where
//! `2^e_j` is the least power of two above its largest entry, as FLINT's own `arb_mat_mul` does
//! it; the exact product of the integers is then scaled back and rounded to b bits. FLINT has no
//! symmetric product of two factors, so `P^T P` costs it the whole square.

use std::ffi::{c_int, c_long};
use std::marker::PhantomData;

use rug::Float;

use super::native::{Arf, Fmpz};
use super::problem::entry_index;
use super::sys::{self, fmpz, fmpz_mat_struct};
use super::{Baseline, Operation, Problem, Workers, flint_version, openblas, process_settings};

/// The baseline `flint`.
pub(super) struct Flint {
    operation: Operation,
    rows: usize,
    cols: usize,
    precision_bits: u32,
    threads: usize,
    workers: Workers,
    product: FlintProduct,
    left: FlintOperand,
    /// Absent for `Operation::Syrk`, where the left operand is also the right one.
    right: Option<FlintOperand>,
    /// Column-major and square; above the diagonal unused for `Operation::Syrk`.
    result: Vec<Arf>,
}

/// The FLINT function that multiplies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlintProduct {
    /// `fmpz_mat_mul`, which picks a method by FLINT's own tuning.
    Automatic,
    /// `fmpz_mat_mul_blas`: residues, one BLAS product per prime, CRT.
    Blas,
}

/// Least dimension from which the form with BLAS is called by name. `fmpz_mat_mul` itself takes
/// it only from about 290 on, yet with AVX-512 kernels it was 1.0 to 1.3 times as fast at 100 and
/// 1.2 to 1.7 times at 200, from 100 to 1024 bits.
const BLAS_MIN_DIMENSION: usize = 100;

impl Flint {
    /// Copies the operands and allocates the result.
    pub(super) fn new(problem: Problem) -> Result<Self, String> {
        let least = problem.rows.min(problem.cols);
        let product =
            if least >= BLAS_MIN_DIMENSION && flint_has_blas() { FlintProduct::Blas } else { FlintProduct::Automatic };
        Ok(Self {
            operation: problem.operation,
            rows: problem.rows,
            cols: problem.cols,
            precision_bits: problem.precision_bits,
            threads: problem.threads,
            workers: Workers::new(problem.threads)?,
            product,
            left: FlintOperand::new(problem.a, problem.cols),
            right: problem.b.map(|b| FlintOperand::new(b, problem.cols)),
            result: std::iter::repeat_with(Arf::zero).take(problem.cols * problem.cols).collect(),
        })
    }

    /// Scales the product back to big floats, only the wanted triangle.
    fn unscale(&mut self, product: &IntegerMatrix) {
        let (cols, operation) = (self.cols, self.operation);
        let bits = i64::from(self.precision_bits);
        let left = &self.left.exponents;
        let right = self.right.as_ref().map_or(left, |right| &right.exponents);
        let columns = self.result.chunks_mut(cols.max(1)).enumerate();
        self.workers.for_each(
            columns,
            || (),
            |(), (j, column)| {
                let top = if operation == Operation::Syrk { j } else { 0 };
                for (i, entry) in column.iter_mut().enumerate().skip(top) {
                    entry.set_scaled(product.entry(i, j), left[i] + right[j] - 2 * bits, bits);
                }
            },
        );
    }
}

impl Baseline for Flint {
    fn name(&self) -> &'static str {
        "flint"
    }

    fn form(&self) -> String {
        let version = flint_version();
        let product = match self.product {
            FlintProduct::Automatic => "fmpz_mat_mul".to_owned(),
            FlintProduct::Blas => format!("fmpz_mat_mul_blas ({})", blas_version()),
        };
        let blas = if flint_has_blas() { "with BLAS" } else { "no BLAS" };
        format!("FLINT {version} ({blas}) {product}, {} thread(s)", self.threads)
    }

    fn run(&mut self) {
        let _guard = process_settings();
        let threads = c_int::try_from(self.threads).unwrap_or(c_int::MAX);
        // SAFETY: no FLINT function that uses threads is running, as the guard is held.
        unsafe { sys::flint_set_num_threads(threads) };
        openblas::set_threads(self.threads);

        let bits = i64::from(self.precision_bits);
        self.left.scale(&self.workers, self.rows, bits);
        if let Some(right) = &mut self.right {
            right.scale(&self.workers, self.rows, bits);
        }
        let left = &self.left.integers;
        let right = &self.right.as_ref().unwrap_or(&self.left).integers;
        // Rows of the left factor and columns of the right one are columns of the operands.
        let factor = BorrowedMatrix::new(left, self.cols, self.rows);
        let transposed = BorrowedMatrix::transposed(right, self.rows, self.cols);
        let mut product = IntegerMatrix::new(self.cols, self.cols);
        product.multiply(&factor, &transposed, self.product);
        self.unscale(&product);
    }

    fn entry(&self, i: usize, j: usize) -> Float {
        let index = entry_index(self.operation, self.cols, i, j);
        self.result[index].to_float(self.precision_bits)
    }
}

/// Whether this FLINT was built with BLAS; otherwise its function for it returns 0.
fn flint_has_blas() -> bool {
    let owner = Fmpz::zeros(1);
    let one = BorrowedMatrix::new(&owner, 1, 1);
    let mut product = IntegerMatrix::new(1, 1);
    // SAFETY: the three matrices are distinct, 1 x 1 and initialised.
    unsafe { sys::fmpz_mat_mul_blas(&raw mut product.0, &one.view(), &one.view()) != 0 }
}

/// The BLAS behind FLINT, as far as it is known.
fn blas_version() -> String {
    #[cfg(any(feature = "blas", flint_blas))]
    return openblas::version();
    #[cfg(not(any(feature = "blas", flint_blas)))]
    "unknown BLAS".to_owned()
}

/// One operand, as big floats and as the integers they are scaled to, both column-major.
struct FlintOperand {
    entries: Vec<Arf>,
    exponents: Vec<i64>,
    integers: Vec<Fmpz>,
}

impl FlintOperand {
    /// Copies the entries; the integers are zero until `scale`.
    fn new(entries: &[Float], cols: usize) -> Self {
        Self {
            entries: entries.iter().map(Arf::from_float).collect(),
            exponents: vec![0; cols],
            integers: Fmpz::zeros(entries.len()),
        }
    }

    /// Finds each column's exponent and cuts its entries to integers below `2^bits`.
    fn scale(&mut self, workers: &Workers, rows: usize, bits: i64) {
        let columns = self.entries.chunks(rows.max(1));
        let targets = self.exponents.iter_mut().zip(self.integers.chunks_mut(rows.max(1)));
        workers.for_each(
            columns.zip(targets),
            || (),
            |(), (column, (exponent, integers))| {
                *exponent = column.iter().filter_map(Arf::exponent).max().unwrap_or(0);
                for (entry, integer) in column.iter().zip(integers) {
                    entry.truncate_to(integer, *exponent - bits);
                }
            },
        );
    }
}

/// A row-major matrix whose entries are bitwise copies of integers owned elsewhere: to be read
/// by FLINT while the owner is borrowed, never written or cleared.
struct BorrowedMatrix<'a> {
    entries: Vec<fmpz>,
    rows: usize,
    cols: usize,
    owner: PhantomData<&'a [Fmpz]>,
}

impl<'a> BorrowedMatrix<'a> {
    /// The matrix whose rows are the consecutive runs of `cols` numbers.
    fn new(owner: &'a [Fmpz], rows: usize, cols: usize) -> Self {
        Self { entries: owner.iter().map(|number| number.0).collect(), rows, cols, owner: PhantomData }
    }

    /// The matrix whose columns are the consecutive runs of `rows` numbers.
    fn transposed(owner: &'a [Fmpz], rows: usize, cols: usize) -> Self {
        let mut entries = vec![0; rows * cols];
        for (j, column) in owner.chunks(rows.max(1)).enumerate() {
            for (k, number) in column.iter().enumerate() {
                entries[k * cols + j] = number.0;
            }
        }
        Self { entries, rows, cols, owner: PhantomData }
    }

    /// The matrix as FLINT sees it.
    fn view(&self) -> fmpz_mat_struct {
        fmpz_mat_struct {
            entries: self.entries.as_ptr().cast_mut(),
            r: self.rows as c_long,
            c: self.cols as c_long,
            stride: self.cols as c_long,
        }
    }
}

/// A FLINT integer matrix that frees itself.
struct IntegerMatrix(fmpz_mat_struct);

// SAFETY: shared references only read entries, which changes nothing.
unsafe impl Sync for IntegerMatrix {}

impl IntegerMatrix {
    /// A matrix of zeros.
    fn new(rows: usize, cols: usize) -> Self {
        let mut raw = fmpz_mat_struct::default();
        // SAFETY: `raw` is ours and its old content needs no freeing.
        unsafe { sys::fmpz_mat_init(&raw mut raw, rows as c_long, cols as c_long) };
        Self(raw)
    }

    /// Entry (i, j), which must exist.
    fn entry(&self, i: usize, j: usize) -> &fmpz {
        let raw = &self.0;
        assert!(i < raw.r as usize && j < raw.c as usize);
        // SAFETY: the entry lies within the matrix by the assertion, and lives as long as it.
        unsafe { &*raw.entries.add(i * raw.stride as usize + j) }
    }

    /// Becomes the product of two matrices of fitting shape.
    fn multiply(&mut self, left: &BorrowedMatrix, right: &BorrowedMatrix, product: FlintProduct) {
        assert!(left.cols == right.rows && self.0.r as usize == left.rows && self.0.c as usize == right.cols);
        let (left, right) = (left.view(), right.view());
        // SAFETY: the shapes fit, and FLINT reads the factors without changing them, whose
        // integers the caller keeps borrowed.
        unsafe {
            let done = product == FlintProduct::Blas && sys::fmpz_mat_mul_blas(&raw mut self.0, &left, &right) != 0;
            if !done {
                sys::fmpz_mat_mul(&raw mut self.0, &left, &right);
            }
        }
    }
}

impl Drop for IntegerMatrix {
    fn drop(&mut self) {
        // SAFETY: the matrix is initialised and not used again.
        unsafe { sys::fmpz_mat_clear(&raw mut self.0) }
    }
}
