//! One call over ranks and its twin in one process: what each comes to, and whether that is the same.

use crate::common::{Array, Ctx, Kind, scalar};
use crate::dealt::{Choice, Deal, Whole, on_ranks};
use rug::Float;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use sunzi_c::sunzi_status::*;
use sunzi_c::*;

/// A function with its choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Syrk { uplo: i32, trans: i32 },
    Gemm { trans: [i32; 2] },
    Trsm { side: i32, uplo: i32, trans: i32, diag: i32 },
    Cholesky { uplo: i32 },
    Solve { uplo: i32 },
    Inverse { uplo: i32 },
    CholeskySolve { uplo: i32 },
    LogDet { uplo: i32 },
    FactorSolve { uplo: i32 },
    FactorInverse { uplo: i32 },
    FactorLogDet { uplo: i32 },
    FactorGet { uplo: i32, to: i32 },
}

/// A call: its operands, the last of which takes the result, and how ranks have them.
#[derive(Clone, Debug)]
pub struct Problem {
    pub verb: Verb,
    /// Whether it goes through the arguments of ScaLAPACK.
    pub scalapack: bool,
    pub alpha: Option<Float>,
    pub beta: Option<Float>,
    pub operands: Vec<Whole>,
    pub deals: Vec<Deal>,
    /// Of one process, and of each rank.
    pub alone: (Kind, i32),
    pub kinds: Vec<(Kind, i32)>,
    /// Bits of a number that is asked for, and which ranks ask.
    pub number_bits: u32,
    pub asks: Vec<bool>,
    pub choice: Choice,
    /// The operand, the row and the column of an entry that is at fault.
    pub fault: Option<[usize; 3]>,
    /// A rank whose description of an operand makes no sense, and how.
    pub wrong: Option<(usize, usize, Wrong)>,
}

/// What makes no sense in a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Format,
    Layout,
    Distance,
}

impl Wrong {
    fn into(self, matrix: &mut sunzi_matrix) {
        match self {
            Wrong::Format => matrix.format = 9,
            Wrong::Layout => matrix.layout = 7,
            Wrong::Distance => matrix.ld = -5,
        }
    }
}

/// What a call came to.
#[derive(Debug)]
pub struct Ended {
    pub info: i64,
    pub status: sunzi_status,
    pub place: (i64, i64),
    pub message: String,
    pub report: sunzi_report,
    /// The target afterwards, column by column, with the precisions of the entries.
    pub entries: Vec<Float>,
    pub number: Option<Float>,
}

/// The pointer of a scalar that may be left out.
fn pointer<T>(value: &Option<T>) -> *const T {
    value.as_ref().map_or(ptr::null(), ptr::from_ref)
}

fn letter(choice: i32) -> *const i8 {
    let text: &CStr = match choice {
        SUNZI_LOWER | SUNZI_LEFT => c"L",
        SUNZI_UPPER | SUNZI_UNIT => c"U",
        SUNZI_NO_TRANS | SUNZI_NON_UNIT => c"N",
        SUNZI_TRANS => c"T",
        _ => c"R",
    };
    text.as_ptr()
}

/// A description of ScaLAPACK, of a matrix that begins with its first row and column.
struct Described {
    entries: *mut c_void,
    numbers: [c_int; 9],
}

impl Described {
    fn new(part: &sunzi_dist_matrix, context: c_int) -> Described {
        let number = |value: i64| value as c_int;
        let (rows, cols, ld) = (number(part.rows), number(part.cols), number(part.local.ld));
        let blocks = [part.row_block, part.col_block, part.row_first, part.col_first].map(number);
        let [mb, nb, rsrc, csrc] = blocks;
        Described { entries: part.local.entries, numbers: [1, context, rows, cols, mb, nb, rsrc, csrc, ld] }
    }
}

impl Problem {
    fn ended(&self, ctx: &Ctx, info: i64, target: Option<&Array>, number: Option<Float>) -> Ended {
        // SAFETY: the context is live.
        let status = unsafe { sunzi_last_status(ctx.0) };
        let places = |array: &Array| {
            let places = (0..array.cols).flat_map(|col| (0..array.rows).map(move |row| (row, col)));
            places.map(|(row, col)| array.get(row, col)).collect()
        };
        let report = if status == SUNZI_OK { ctx.report() } else { sunzi_report::default() };
        if let Some(array) = target {
            array.check_gaps();
        }
        let entries = target.map(places).unwrap_or_default();
        Ended { info, status, place: ctx.place(), message: ctx.message(), report, entries, number }
    }

    /// The call in one process, without a memory limit.
    pub fn alone(&self) -> Ended {
        let ctx = Ctx::with(&Choice { memory_bytes: 0, ..self.choice }.options());
        let mut operands = self.operands.clone();
        if let (Verb::Inverse { .. } | Verb::FactorInverse { .. }, Some(x)) = (self.verb, operands.last_mut()) {
            for (at, entry) in x.entries.iter_mut().enumerate() {
                *entry = Float::with_val(entry.prec(), u32::from(at % x.rows == at / x.rows));
            }
        }
        let arrays = operands.iter().map(|whole| whole.array(self.alone.0, self.alone.1)).collect::<Vec<_>>();
        let mut matrices = arrays.iter().map(Array::describe).collect::<Vec<_>>();
        if let Some((_, at, wrong)) = self.wrong {
            wrong.into(&mut matrices[at]);
        }
        let number = Float::new(self.number_bits);
        let result = scalar(&number);
        let info = if self.scalapack { self.lapack(&ctx, &matrices) } else { 0 };
        if !self.scalapack {
            self.call_alone(&ctx, &matrices, &result);
        }
        self.ended(&ctx, info, arrays.last(), Some(number))
    }

    fn call_alone(&self, ctx: &Ctx, of: &[sunzi_matrix], number: &sunzi_matrix) -> sunzi_status {
        let (alpha, beta) = (self.alpha.as_ref().map(scalar), self.beta.as_ref().map(scalar));
        let (alpha, beta, ctx) = (pointer(&alpha), pointer(&beta), ctx.0);
        // SAFETY: all arrays are live, and results lie apart from operands.
        unsafe {
            match self.verb {
                Verb::Syrk { uplo, trans } => sunzi_syrk(ctx, uplo, trans, alpha, &of[0], beta, &of[1]),
                Verb::Gemm { trans: [a, b] } => sunzi_gemm(ctx, a, b, alpha, &of[0], &of[1], beta, &of[2]),
                Verb::Trsm { side, uplo, trans, diag } => {
                    sunzi_trsm(ctx, side, uplo, trans, diag, alpha, &of[0], &of[1])
                }
                Verb::Cholesky { uplo } => sunzi_cholesky(ctx, uplo, &of[0]),
                Verb::Solve { uplo } => sunzi_solve(ctx, uplo, &of[0], &of[1]),
                // The solution for the identity, which stands in the array.
                Verb::Inverse { uplo } => sunzi_solve(ctx, uplo, &of[0], &of[1]),
                Verb::CholeskySolve { uplo } => sunzi_cholesky_solve(ctx, uplo, &of[0], &of[1]),
                Verb::LogDet { .. } => sunzi_log_det(ctx, &of[0], number),
                Verb::FactorSolve { uplo } | Verb::FactorInverse { uplo } | Verb::FactorLogDet { uplo } => {
                    self.kept_alone(ctx, uplo, of, number)
                }
                Verb::FactorGet { uplo, .. } => self.kept_alone(ctx, uplo, of, number),
            }
        }
    }

    /// # Safety
    /// All arrays are live.
    unsafe fn kept_alone(
        &self,
        ctx: *const sunzi_context,
        uplo: i32,
        of: &[sunzi_matrix],
        number: &sunzi_matrix,
    ) -> sunzi_status {
        let mut factor = ptr::null_mut();
        // SAFETY: by contract.
        unsafe {
            let made = sunzi_factor_new(ctx, uplo, 0, &of[0], &mut factor);
            let status = match (made, self.verb) {
                (SUNZI_OK, Verb::FactorSolve { .. } | Verb::FactorInverse { .. }) => {
                    sunzi_factor_solve(ctx, factor, &of[1])
                }
                (SUNZI_OK, Verb::FactorGet { to, .. }) => sunzi_factor_get(ctx, factor, to, &of[1]),
                (SUNZI_OK, _) => sunzi_factor_log_det(ctx, factor, number),
                (refused, _) => refused,
            };
            sunzi_factor_free(factor);
            status
        }
    }

    /// The twin of ScaLAPACK's routine in one process.
    fn lapack(&self, ctx: &Ctx, of: &[sunzi_matrix]) -> i64 {
        let one = Float::with_val(64, 1);
        let (alpha, beta) = (self.alpha.as_ref().unwrap_or(&one), self.beta.as_ref().unwrap_or(&one));
        let (alpha, beta, ctx) = (ptr::from_ref(alpha).cast(), ptr::from_ref(beta).cast(), ctx.0);
        let (last, first) = (&of[of.len() - 1], &of[0]);
        let (m, n, a, c) = (last.rows, last.cols, first.entries, last.entries);
        // SAFETY: all arrays are live, column by column.
        unsafe {
            match self.verb {
                Verb::Syrk { uplo, trans } => {
                    let k = if trans == SUNZI_TRANS { first.rows } else { first.cols };
                    sunzi_rsyrk(ctx, letter(uplo), letter(trans), n, k, alpha, a, first.ld, beta, c, last.ld)
                }
                Verb::Gemm { trans: [of_a, of_b] } => {
                    let (k, b) = (if of_a == SUNZI_TRANS { first.rows } else { first.cols }, &of[1]);
                    let kinds = (letter(of_a), letter(of_b));
                    let b = (b.entries, b.ld);
                    sunzi_rgemm(ctx, kinds.0, kinds.1, m, n, k, alpha, a, first.ld, b.0, b.1, beta, c, last.ld)
                }
                Verb::Trsm { side, uplo, trans, diag } => {
                    let [side, uplo, trans, diag] = [side, uplo, trans, diag].map(letter);
                    sunzi_rtrsm(ctx, side, uplo, trans, diag, m, n, alpha, a, first.ld, c, last.ld)
                }
                Verb::Cholesky { uplo } => sunzi_rpotrf(ctx, letter(uplo), n, c, last.ld),
                Verb::CholeskySolve { uplo } => sunzi_rpotrs(ctx, letter(uplo), m, n, a, first.ld, c, last.ld),
                other => panic!("no twin of ScaLAPACK: {other:?}"),
            }
        }
    }

    /// The call on ranks; `change` may make a description of a rank wrong.
    pub fn over(&self, ranks: usize, change: impl Fn(usize, &mut [sunzi_dist_matrix]) + Sync) -> Vec<Ended> {
        on_ranks(ranks, self.choice, |ctx, rank| {
            let arrays = self.operands.iter().zip(&self.deals);
            let arrays = arrays.map(|(whole, deal)| deal.part(whole, rank, self.kinds[rank])).collect::<Vec<_>>();
            let mut parts =
                arrays.iter().zip(&self.deals).map(|(array, deal)| deal.describe(array.describe())).collect::<Vec<_>>();
            if let Some((_, at, wrong)) = self.wrong.filter(|of| of.0 == rank) {
                wrong.into(&mut parts[at].local);
            }
            change(rank, &mut parts);
            let number = self.asks[rank].then(|| Float::new(self.number_bits));
            let info = if self.scalapack { self.scalapack(ctx, &parts) } else { 0 };
            if !self.scalapack {
                self.call_over(ctx, &parts, pointer(&number.as_ref().map(scalar)));
            }
            self.ended(ctx, info, arrays.last(), number)
        })
    }

    fn call_over(&self, ctx: &Ctx, of: &[sunzi_dist_matrix], number: *const sunzi_matrix) -> sunzi_status {
        let (alpha, beta) = (self.alpha.as_ref().map(scalar), self.beta.as_ref().map(scalar));
        let (alpha, beta, ctx) = (pointer(&alpha), pointer(&beta), ctx.0);
        // SAFETY: all arrays are live, and results lie apart from operands.
        unsafe {
            match self.verb {
                Verb::Syrk { uplo, trans } => sunzi_mpi_syrk(ctx, uplo, trans, alpha, &of[0], beta, &of[1]),
                Verb::Gemm { trans: [a, b] } => sunzi_mpi_gemm(ctx, a, b, alpha, &of[0], &of[1], beta, &of[2]),
                Verb::Trsm { side, uplo, trans, diag } => {
                    sunzi_mpi_trsm(ctx, side, uplo, trans, diag, alpha, &of[0], &of[1])
                }
                Verb::Cholesky { uplo } => sunzi_mpi_cholesky(ctx, uplo, &of[0]),
                Verb::Solve { uplo } => sunzi_mpi_solve(ctx, uplo, &of[0], &of[1]),
                Verb::Inverse { uplo } => sunzi_mpi_inverse(ctx, uplo, &of[0], &of[1]),
                Verb::CholeskySolve { uplo } => sunzi_mpi_cholesky_solve(ctx, uplo, &of[0], &of[1]),
                Verb::LogDet { uplo } => sunzi_mpi_log_det(ctx, uplo, &of[0], number),
                Verb::FactorSolve { uplo } | Verb::FactorInverse { uplo } | Verb::FactorLogDet { uplo } => {
                    self.kept_over(ctx, uplo, of, number)
                }
                Verb::FactorGet { uplo, .. } => self.kept_over(ctx, uplo, of, number),
            }
        }
    }

    /// # Safety
    /// All arrays are live.
    unsafe fn kept_over(
        &self,
        ctx: *const sunzi_context,
        uplo: i32,
        of: &[sunzi_dist_matrix],
        number: *const sunzi_matrix,
    ) -> sunzi_status {
        let mut factor = ptr::null_mut();
        // SAFETY: by contract.
        unsafe {
            let made = sunzi_mpi_factor_new(ctx, uplo, 0, &of[0], &mut factor);
            let status = match (made, self.verb) {
                (SUNZI_OK, Verb::FactorSolve { .. }) => sunzi_mpi_factor_solve(ctx, factor, &of[1]),
                (SUNZI_OK, Verb::FactorGet { to, .. }) => sunzi_mpi_factor_get(ctx, factor, to, &of[1]),
                (SUNZI_OK, Verb::FactorInverse { .. }) => sunzi_mpi_factor_inverse(ctx, factor, &of[1]),
                (SUNZI_OK, _) => sunzi_mpi_factor_log_det(ctx, factor, number),
                (refused, _) => refused,
            };
            sunzi_mpi_factor_free(factor);
            status
        }
    }

    /// ScaLAPACK's routine, each operand on a grid of its own.
    fn scalapack(&self, ctx: &Ctx, of: &[sunzi_dist_matrix]) -> i64 {
        let one = Float::with_val(64, 1);
        let (alpha, beta) = (self.alpha.as_ref().unwrap_or(&one), self.beta.as_ref().unwrap_or(&one));
        let (alpha, beta) = (ptr::from_ref(alpha).cast(), ptr::from_ref(beta).cast());
        for (at, part) in of.iter().enumerate() {
            // SAFETY: the context is live.
            let made = unsafe { sunzi_mpi_grid(ctx.0, at as c_int, part.grid_rows, part.grid_cols, part.grid_order) };
            ctx.ok(made, "grid");
        }
        let described = of.iter().enumerate().map(|(at, part)| Described::new(part, at as c_int)).collect::<Vec<_>>();
        let desc = described.iter().map(|of| of.numbers.as_ptr()).collect::<Vec<_>>();
        let (first, last, ctx) = (&of[0], &of[of.len() - 1], ctx.0);
        let (m, n, a, c) = (last.rows, last.cols, described[0].entries, described[of.len() - 1].entries);
        // SAFETY: all arrays and descriptors are live.
        unsafe {
            match self.verb {
                Verb::Syrk { uplo, trans } => {
                    let k = if trans == SUNZI_TRANS { first.rows } else { first.cols };
                    let kind = (letter(uplo), letter(trans));
                    psunzi_rsyrk(ctx, kind.0, kind.1, n, k, alpha, a, 1, 1, desc[0], beta, c, 1, 1, desc[1])
                }
                Verb::Gemm { trans: [of_a, of_b] } => {
                    let k = if of_a == SUNZI_TRANS { first.rows } else { first.cols };
                    let (kinds, b) = ((letter(of_a), letter(of_b)), described[1].entries);
                    let (da, db, dc) = (desc[0], desc[1], desc[2]);
                    psunzi_rgemm(ctx, kinds.0, kinds.1, m, n, k, alpha, a, 1, 1, da, b, 1, 1, db, beta, c, 1, 1, dc)
                }
                Verb::Trsm { side, uplo, trans, diag } => {
                    let [side, uplo, trans, diag] = [side, uplo, trans, diag].map(letter);
                    psunzi_rtrsm(ctx, side, uplo, trans, diag, m, n, alpha, a, 1, 1, desc[0], c, 1, 1, desc[1])
                }
                Verb::Cholesky { uplo } => psunzi_rpotrf(ctx, letter(uplo), n, c, 1, 1, desc[0]),
                Verb::CholeskySolve { uplo } => {
                    psunzi_rpotrs(ctx, letter(uplo), m, n, a, 1, 1, desc[0], c, 1, 1, desc[1])
                }
                other => panic!("no routine of ScaLAPACK: {other:?}"),
            }
        }
    }
}
