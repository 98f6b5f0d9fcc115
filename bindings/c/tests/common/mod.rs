//! Arrays as a C program holds them, filled with numbers that Rust knows as well.
#![allow(dead_code)]

use gmp_mpfr_sys::{gmp, mpfr};
use rug::{Assign, Float};
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use sunzi::Matrix;
use sunzi_c::*;

/// What the entries of an array are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Mpfr,
    Mpf,
    Limbs,
}

pub const KINDS: [Kind; 3] = [Kind::Mpfr, Kind::Mpf, Kind::Limbs];
pub const LAYOUTS: [i32; 2] = [SUNZI_ROW_MAJOR, SUNZI_COL_MAJOR];

/// A matrix of a C program: entries in a longer array, the gaps of which no call may touch.
pub struct Array {
    pub layout: i32,
    pub rows: usize,
    pub cols: usize,
    pub ld: usize,
    store: Store,
}

enum Store {
    Mpfr(Vec<Float>),
    Mpf(Vec<gmp::mpf_t>),
    Limbs { heads: Vec<u64>, limbs: Vec<u64>, bits: u32 },
}

/// Fills gaps of raw numbers.
const GARBAGE: u64 = 0xdead_beef_dead_beef;

impl Array {
    /// The numbers `value(row, col)`, each at the precision it has; raw numbers all at the largest.
    pub fn new(kind: Kind, layout: i32, (rows, cols): (usize, usize), value: impl Fn(usize, usize) -> Float) -> Array {
        let ld = if layout == SUNZI_ROW_MAJOR { cols + 2 } else { rows + 2 };
        let count = ld * rows.max(cols);
        let bits = (0..rows * cols).map(|at| value(at % rows, at / rows).prec()).max().unwrap_or(64);
        let store = match kind {
            Kind::Mpfr => Store::Mpfr(vec![Float::with_val(77, rug::float::Special::Nan); count]),
            Kind::Mpf => Store::Mpf((0..count).map(|_| mpf(64)).collect()),
            Kind::Limbs => {
                let width = bits.div_ceil(64) as usize;
                Store::Limbs { heads: vec![GARBAGE; count], limbs: vec![GARBAGE; count * width], bits }
            }
        };
        let mut array = Array { layout, rows, cols, ld, store };
        for col in 0..cols {
            for row in 0..rows {
                array.set(row, col, &value(row, col));
            }
        }
        array
    }

    /// The numbers of a matrix, at its precision.
    pub fn of(kind: Kind, layout: i32, matrix: &Matrix) -> Array {
        Array::new(kind, layout, (matrix.rows(), matrix.cols()), |row, col| matrix.float(row, col))
    }

    fn index(&self, row: usize, col: usize) -> usize {
        if self.layout == SUNZI_ROW_MAJOR { row * self.ld + col } else { row + col * self.ld }
    }

    /// Replaces an entry, its precision included (raw numbers keep theirs).
    pub fn set(&mut self, row: usize, col: usize, value: &Float) {
        let at = self.index(row, col);
        match &mut self.store {
            Store::Mpfr(entries) => entries[at] = value.clone(),
            Store::Mpf(entries) => {
                let mut entry = mpf(value.prec());
                // SAFETY: both are initialised, and the old entry goes once.
                unsafe {
                    mpfr::get_f(&mut entry, value.as_raw(), mpfr::rnd_t::RNDN);
                    gmp::mpf_clear(&mut entries[at]);
                }
                entries[at] = entry;
            }
            Store::Limbs { heads, limbs, bits } => {
                let mut one = Matrix::zeros(1, 1, *bits).unwrap();
                one.set_float(0, 0, value).unwrap();
                let number = one.get(0, 0);
                let width = number.limbs.len();
                heads[at] = number.head.0;
                limbs[at * width..(at + 1) * width].copy_from_slice(number.limbs);
            }
        }
    }

    /// Makes an entry of raw numbers one that is no number: it may not be looked at.
    pub fn spoil(&mut self, row: usize, col: usize) {
        let at = self.index(row, col);
        let Store::Limbs { heads, limbs, bits } = &mut self.store else { panic!("raw numbers only") };
        let width = bits.div_ceil(64) as usize;
        heads[at] = GARBAGE;
        limbs[at * width..(at + 1) * width].fill(GARBAGE);
    }

    /// Whether an entry is as [`Array::spoil`] made it.
    pub fn is_spoiled(&self, row: usize, col: usize) -> bool {
        let at = self.index(row, col);
        let Store::Limbs { heads, limbs, bits } = &self.store else { panic!("raw numbers only") };
        let width = bits.div_ceil(64) as usize;
        heads[at] == GARBAGE && limbs[at * width..(at + 1) * width].iter().all(|&limb| limb == GARBAGE)
    }

    /// An entry: exactly, at the precision it is stored with.
    pub fn get(&self, row: usize, col: usize) -> Float {
        let at = self.index(row, col);
        match &self.store {
            Store::Mpfr(entries) => entries[at].clone(),
            Store::Mpf(entries) => {
                let mut value = Float::new(entries[at].prec as u32 * 64 + 64);
                // SAFETY: both are initialised.
                unsafe { mpfr::set_f(value.as_raw_mut(), &entries[at], mpfr::rnd_t::RNDN) };
                value
            }
            Store::Limbs { heads, limbs, bits } => {
                let width = bits.div_ceil(64) as usize;
                let head = sunzi::Head(heads[at]);
                let number = sunzi::FloatRef { head, limbs: &limbs[at * width..(at + 1) * width] };
                number.to_float(*bits)
            }
        }
    }

    /// Bits of results in an entry.
    pub fn bits(&self, row: usize, col: usize) -> u32 {
        match &self.store {
            Store::Mpfr(entries) => entries[self.index(row, col)].prec(),
            Store::Mpf(entries) => entries[self.index(row, col)].prec as u32 * 64,
            Store::Limbs { bits, .. } => *bits,
        }
    }

    /// The array for a call.
    pub fn describe(&self) -> sunzi_matrix {
        let (rows, cols, ld) = (self.rows as i64, self.cols as i64, self.ld as i64);
        match &self.store {
            Store::Mpfr(entries) => sunzi_mpfr_matrix(self.layout, rows, cols, entries.as_ptr().cast(), ld),
            Store::Mpf(entries) => sunzi_mpf_matrix(self.layout, rows, cols, entries.as_ptr().cast(), ld),
            Store::Limbs { heads, limbs, bits } => {
                sunzi_limb_matrix(self.layout, rows, cols, heads.as_ptr(), limbs.as_ptr(), ld, (*bits).into())
            }
        }
    }

    /// Fails unless the gaps are as they were made.
    pub fn check_gaps(&self) {
        let used = |at: usize| {
            let (line, place) = (at / self.ld, at % self.ld);
            let (lines, places) =
                if self.layout == SUNZI_ROW_MAJOR { (self.rows, self.cols) } else { (self.cols, self.rows) };
            line < lines && place < places
        };
        for at in (0..self.ld * self.rows.max(self.cols)).filter(|&at| !used(at)) {
            match &self.store {
                Store::Mpfr(entries) => assert!(entries[at].is_nan() && entries[at].prec() == 77, "gap {at}"),
                Store::Mpf(entries) => assert_eq!((entries[at].size, entries[at].exp), (0, 0), "gap {at}"),
                Store::Limbs { heads, .. } => assert_eq!(heads[at], GARBAGE, "gap {at}"),
            }
        }
    }

    /// The matrix that Rust computes with: all numbers exactly, `part` telling which count.
    pub fn matrix(&self, part: impl Fn(usize, usize) -> bool) -> Matrix {
        let places = || (0..self.cols).flat_map(|col| (0..self.rows).map(move |row| (row, col)));
        let counted = places().filter(|&(row, col)| part(row, col));
        let bits = counted.map(|(row, col)| self.get(row, col).prec()).max().unwrap_or(64).max(2);
        let mut matrix = Matrix::zeros(self.rows, self.cols, bits).unwrap();
        for (row, col) in places().filter(|&(row, col)| part(row, col)) {
            matrix.set_float(row, col, &self.get(row, col)).unwrap();
        }
        matrix
    }

    /// The precision that a result in `part` is computed at.
    pub fn result_bits(&self, part: impl Fn(usize, usize) -> bool) -> u32 {
        let places = (0..self.cols).flat_map(|col| (0..self.rows).map(move |row| (row, col)));
        places.filter(|&(row, col)| part(row, col)).map(|(row, col)| self.bits(row, col)).max().unwrap_or(2).max(2)
    }

    /// Fails unless the entries of `part` are those of `want`, each rounded to its own precision, and all others those
    /// of `before`.
    pub fn check(&self, want: &Matrix, before: &Matrix, part: impl Fn(usize, usize) -> bool, what: &str) {
        self.check_gaps();
        for col in 0..self.cols {
            for row in 0..self.rows {
                let (found, bits) = (self.get(row, col), self.bits(row, col));
                let wanted =
                    if part(row, col) { Float::with_val(bits, &want.float(row, col)) } else { before.float(row, col) };
                assert!(found == wanted, "{what}: ({row}, {col}) at {bits} bits: {found} instead of {wanted}");
            }
        }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if let Store::Mpf(entries) = &mut self.store {
            for entry in entries {
                // SAFETY: initialised by `mpf`, and cleared once.
                unsafe { gmp::mpf_clear(entry) };
            }
        }
    }
}

fn mpf(bits: u32) -> gmp::mpf_t {
    let mut entry = MaybeUninit::uninit();
    // SAFETY: GMP initialises it.
    unsafe {
        gmp::mpf_init2(entry.as_mut_ptr(), bits.into());
        entry.assume_init()
    }
}

/// A context that is freed at the end.
pub struct Ctx(pub *mut sunzi_context);

// SAFETY: contexts may be used by several threads at the same time.
unsafe impl Send for Ctx {}
// SAFETY: as above.
unsafe impl Sync for Ctx {}

impl Ctx {
    /// A context of so many threads.
    pub fn new(threads: i64) -> Ctx {
        Ctx::with(&sunzi_options { threads, ..sunzi_options_default() })
    }

    /// A context of these options.
    pub fn with(options: &sunzi_options) -> Ctx {
        let mut ctx = ptr::null_mut();
        // SAFETY: both are live.
        assert_eq!(unsafe { sunzi_context_new(options, &mut ctx) }, sunzi_status::SUNZI_OK);
        Ctx(ctx)
    }

    /// The message of this thread's last call.
    pub fn message(&self) -> String {
        // SAFETY: the context is live, and the text until the next call.
        unsafe { CStr::from_ptr(sunzi_last_error(self.0)) }.to_string_lossy().into_owned()
    }

    /// The place of this thread's last failure.
    pub fn place(&self) -> (i64, i64) {
        let (mut row, mut col) = (0, 0);
        // SAFETY: all are live.
        unsafe { sunzi_last_place(self.0, &mut row, &mut col) };
        (row, col)
    }

    /// The report of the last call.
    pub fn report(&self) -> sunzi_report {
        let mut report = sunzi_report::default();
        // SAFETY: both are live.
        assert_eq!(unsafe { sunzi_last_report(self.0, &mut report) }, sunzi_status::SUNZI_OK);
        report
    }

    /// Fails unless the status is OK.
    pub fn ok(&self, status: sunzi_status, what: &str) {
        assert_eq!(status, sunzi_status::SUNZI_OK, "{what}: {}", self.message());
    }
}

impl Drop for Ctx {
    fn drop(&mut self) {
        // SAFETY: made by `sunzi_context_new`, freed once.
        unsafe { sunzi_context_free(self.0) };
    }
}

/// A number of `bits` bits with all of them used, below 1 in size, of both signs.
pub fn number(seed: u64, bits: u32) -> Float {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let digits = (0..bits.div_ceil(64) + 1).map(|_| next()).collect::<Vec<_>>();
    let integer = rug::Integer::from_digits(&digits, rug::integer::Order::Lsf);
    let mut value = Float::new(bits);
    value.assign(&integer);
    value >>= digits.len() as u32 * 64 + (next() % 7) as u32;
    if next() % 2 == 0 { -value } else { value }
}

/// A symmetric positive definite matrix of `bits` bits.
pub fn definite(order: usize, bits: u32, seed: u64) -> Matrix {
    let mut a = Matrix::zeros(order, order, bits).unwrap();
    for col in 0..order {
        for row in 0..=col {
            let mut value = number(seed + (row * 1000 + col) as u64, bits) >> 30u32;
            if row == col {
                value = value.abs() + 300u32;
            }
            a.set_float(row, col, &value).unwrap();
            a.set_float(col, row, &value).unwrap();
        }
    }
    a
}

/// A number as the argument of a call.
pub fn scalar(value: &Float) -> sunzi_matrix {
    sunzi_mpfr_matrix(SUNZI_COL_MAJOR, 1, 1, ptr::from_ref(value).cast::<c_void>(), 1)
}

/// Whether an entry belongs to a triangle.
pub fn within(uplo: i32, row: usize, col: usize) -> bool {
    uplo == SUNZI_BOTH || if uplo == SUNZI_LOWER { row >= col } else { row <= col }
}
