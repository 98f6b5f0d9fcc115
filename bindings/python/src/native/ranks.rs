//! Calls of the C library on the ranks of a communicator: the verbs over ranks are written there, once.
//!
//! Promise: for the whole call, every array that is described lives, and no other code uses it where it is written to.

use super::factor::Factor;
use super::verbs::{Failed, PlanOf, Planned, RankOptions, RankPart, ScalarTerms, Target, Verb};
use std::ffi::{CStr, CString};
use std::ptr::null;
use sunzi::{Matrix, MatrixView};
use sunzi_c::*;

/// A communicator with a context of the C library.
pub struct Ranks(*mut sunzi_context);

// SAFETY: a context may be used by any thread, several at a time.
unsafe impl Send for Ranks {}
// SAFETY: as above.
unsafe impl Sync for Ranks {}

/// The description of a matrix, a block of one or a transpose, as the C library takes it: where it lies.
fn described(view: MatrixView<'_>) -> sunzi_matrix {
    let (rows, cols, bits) = (view.rows() as i64, view.cols() as i64, view.precision_bits().into());
    let first = if rows == 0 || cols == 0 { 0 } else { view.element_index(0, 0) };
    let (heads, limbs) = (&view.all_heads()[first..], &view.all_limbs()[first * view.limbs_per_element()..]);
    let (layout, line, ld) = match view.row_stride() {
        1 => (SUNZI_COL_MAJOR, rows, view.col_stride()),
        ld => (SUNZI_ROW_MAJOR, cols, ld),
    };
    sunzi_limb_matrix(layout, rows, cols, heads.as_ptr(), limbs.as_ptr(), (ld as i64).max(line).max(1), bits)
}

/// The same of one that is written to.
fn described_mut(matrix: &mut Matrix) -> sunzi_matrix {
    let (rows, cols, bits) = (matrix.rows() as i64, matrix.cols() as i64, matrix.precision_bits().into());
    let (heads, limbs) = matrix.parts_mut();
    sunzi_limb_matrix(SUNZI_COL_MAJOR, rows, cols, heads.as_mut_ptr(), limbs.as_mut_ptr(), rows.max(1), bits)
}

fn dist(local: sunzi_matrix, numbers: [i64; 11]) -> sunzi_dist_matrix {
    let [rows, cols, grid_rows, grid_cols, order, row_along, col_along, row_block, col_block, row_first, col_first] =
        numbers;
    sunzi_dist_matrix {
        local,
        rows,
        cols,
        grid_rows,
        grid_cols,
        grid_order: order as i32,
        row_along: row_along as i32,
        col_along: col_along as i32,
        row_block,
        col_block,
        row_first,
        col_first,
    }
}

fn part(RankPart { local, numbers }: &RankPart<'_>) -> sunzi_dist_matrix {
    dist(described(*local), *numbers)
}

fn target(Target { local, numbers }: Target<'_>) -> sunzi_dist_matrix {
    dist(described_mut(local), numbers)
}

/// The description of a matrix that is not there.
fn planned_for(Planned { shape: [rows, cols], numbers }: Planned, bits: i64) -> sunzi_dist_matrix {
    dist(sunzi_limb_matrix(SUNZI_COL_MAJOR, rows, cols, null(), null(), rows.max(1), bits), numbers)
}

/// Described scalars: alpha and beta.
fn scalars(terms: &ScalarTerms<'_>) -> [Option<sunzi_matrix>; 2] {
    [terms.alpha, terms.beta].map(|scalar| scalar.map(|scalar| described(scalar.view())))
}

fn pointer<T>(value: &Option<T>) -> *const T {
    value.as_ref().map_or(null(), std::ptr::from_ref)
}

impl Ranks {
    /// The ranks of the communicator with a Fortran handle. Collective.
    ///
    /// # Errors
    /// Refusals of the library; MPI must be initialised.
    pub fn new(handle: i32, options: &RankOptions) -> Result<Ranks, Failed> {
        let kernel = options.kernel.as_ref().and_then(|name| CString::new(name.as_str()).ok());
        let devices = options.devices.as_ref().and_then(|names| CString::new(names.as_str()).ok());
        let chosen = sunzi_options {
            threads: options.threads,
            memory_bytes: options.memory_bytes,
            kernel: kernel.as_ref().map_or(null(), |name| name.as_ptr()),
            self_check: 0,
            freivalds: options.freivalds.into(),
            progress: None,
            user: std::ptr::null_mut(),
            accuracy: if options.entrywise { SUNZI_ENTRYWISE } else { SUNZI_NORM },
            devices: devices.as_ref().map_or(null(), |names| names.as_ptr()),
            device_memory_bytes: 0,
        };
        let mut ctx = std::ptr::null_mut();
        // SAFETY: a handle of mpi4py's; the options and their text live until the call ends.
        let status = unsafe { sunzi_context_from_mpi(handle, &chosen, &mut ctx) };
        let ranks = Ranks(ctx);
        match ranks.answer(status) {
            Ok(()) => Ok(ranks),
            Err(failed) => {
                ranks.close();
                Err(failed)
            }
        }
    }

    /// Frees the context. Collective.
    pub fn close(self) {
        // SAFETY: made by `sunzi_context_from_mpi`, and freed nowhere else.
        unsafe { sunzi_context_free(self.0) }
    }

    /// One verb. Collective.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn call(&self, verb: Verb<'_>) -> Result<(), Failed> {
        // SAFETY: the context is live; the arrays described outlive the call, as the verb borrows it.
        let status = unsafe {
            match verb {
                Verb::Syrk { uplo, trans, terms, a, c } => {
                    let [alpha, beta] = scalars(&terms);
                    let (a, c) = (part(&a), target(c));
                    sunzi_mpi_syrk(self.0, uplo, trans, pointer(&alpha), &a, pointer(&beta), &c)
                }
                Verb::Gemm { trans: [of_a, of_b], terms, a, b, c } => {
                    let [alpha, beta] = scalars(&terms);
                    let (a, b, c) = (part(&a), part(&b), target(c));
                    sunzi_mpi_gemm(self.0, of_a, of_b, pointer(&alpha), &a, &b, pointer(&beta), &c)
                }
                Verb::Trsm { kind: [side, uplo, trans, diag], alpha, t, b } => {
                    let (alpha, t, b) = (alpha.map(|alpha| described(alpha.view())), part(&t), target(b));
                    sunzi_mpi_trsm(self.0, side, uplo, trans, diag, pointer(&alpha), &t, &b)
                }
                Verb::Solve { uplo, a, b } => sunzi_mpi_solve(self.0, uplo, &part(&a), &target(b)),
                Verb::FactorSolve { factor, b } => sunzi_mpi_factor_solve(self.0, factor.0, &target(b)),
                Verb::Inverse { factor, x } => sunzi_mpi_factor_inverse(self.0, factor.0, &target(x)),
                Verb::LogDet { factor, result } => sunzi_mpi_factor_log_det(self.0, factor.0, &described_mut(result)),
                Verb::Lower { factor, a } => sunzi_mpi_factor_get(self.0, factor.0, SUNZI_LOWER, &target(a)),
            }
        };
        self.answer(status)
    }

    /// The factor of a matrix, kept. Collective.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn factor(&self, uplo: i32, precision_bits: i64, a: &RankPart<'_>) -> Result<Factor, Failed> {
        let mut factor = std::ptr::null_mut();
        // SAFETY: the context is live, and the arrays described outlive the call.
        let status = unsafe { sunzi_mpi_factor_new(self.0, uplo, precision_bits, &part(a), &mut factor) };
        let factor = Factor(factor);
        self.answer(status).map(|()| factor)
    }

    /// The factor of another matrix in the memory of one that is kept. Collective.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn renew(&self, uplo: i32, precision_bits: i64, a: &RankPart<'_>, factor: &mut Factor) -> Result<(), Failed> {
        // SAFETY: as above, and nothing else uses the factor meanwhile.
        let status = unsafe { sunzi_mpi_factor_renew(self.0, uplo, precision_bits, &part(a), factor.0) };
        self.answer(status)
    }

    /// Bytes of copies on this rank, of all on this rank, and of all on its node, that a call would take. Collective.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn plan(&self, of: PlanOf, [operand_bits, bits]: [i64; 2]) -> Result<[u64; 3], Failed> {
        let mut plan = sunzi_mpi_plan::default();
        let operand = |planned: Planned| planned_for(planned, operand_bits);
        let result = |planned: Planned| planned_for(planned, bits);
        // SAFETY: the context is live, and plans look at no entry.
        let status = unsafe {
            match of {
                PlanOf::Syrk(trans, [a, c]) => {
                    sunzi_mpi_plan_syrk(self.0, trans, &operand(a), &result(c), operand_bits, bits, &mut plan)
                }
                PlanOf::Gemm([of_a, of_b], [a, b, c]) => {
                    let (a, b, c) = (operand(a), operand(b), result(c));
                    sunzi_mpi_plan_gemm(self.0, of_a, of_b, &a, &b, &c, operand_bits, bits, &mut plan)
                }
                PlanOf::Cholesky(uplo, a) => sunzi_mpi_plan_cholesky(self.0, uplo, &result(a), bits, &mut plan),
                PlanOf::Trsm([side, diag], [t, b]) => {
                    sunzi_mpi_plan_trsm(self.0, side, diag, &operand(t), &result(b), operand_bits, bits, &mut plan)
                }
                PlanOf::Solve(uplo, a, b) => {
                    let a = a.map(result);
                    sunzi_mpi_plan_solve(self.0, uplo, pointer(&a), &result(b), bits, &mut plan)
                }
            }
        };
        self.answer(status).map(|()| [plan.copied_bytes, plan.rank_bytes, plan.node_bytes])
    }

    fn answer(&self, status: sunzi_status) -> Result<(), Failed> {
        if status == sunzi_status::SUNZI_OK {
            return Ok(());
        }
        let mut place = [-1, -1];
        let [row, column] = &mut place;
        // SAFETY: the context is live, and its text stays until this thread's next call.
        let message = unsafe {
            sunzi_last_place(self.0, row, column);
            CStr::from_ptr(sunzi_last_error(self.0)).to_string_lossy().into_owned()
        };
        Err(Failed { status: status as i32, message, place })
    }
}
