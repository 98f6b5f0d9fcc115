//! `Call`: one call on a context, from the first check to its report. Every entry point that computes goes through
//! [`run`], so that no panic leaves the library, and every failure is remembered.

use crate::array::{Array, Operand, Part};
use crate::context::sunzi_context;
use crate::convert;
use crate::failure::{Failure, Outcome};
use crate::types::{accuracy_code, sunzi_report, sunzi_status};
use rug::Float;
use std::borrow::Cow;
use std::cell::Cell;
use std::time::Instant;
use sunzi::advanced::calls::{CallAccount, CallNote, Caller, LocalTriangle};
pub use sunzi::advanced::calls::{LocalInput as Input, caught as catch};
use sunzi::advanced::store::{allocated_bytes, peak_bytes, reset_peak_bytes};
use sunzi::{Accuracy, Context, Matrix, MatrixView};

/// Entries that take longer to copy than a clock to read.
const TIMED_ENTRIES: usize = 256;

/// One call under way.
pub struct Call<'a> {
    owner: &'a sunzi_context,
    ctx: &'a Context,
    report: Cell<sunzi_report>,
    account: CallAccount<'a>,
}

/// Runs `work` as one call on `ctx`, also where it fails or panics.
///
/// # Safety
/// `ctx` is null or a live context.
pub unsafe fn run(ctx: *const sunzi_context, work: impl FnOnce(&Call<'_>) -> Outcome<()>) -> Outcome<()> {
    // SAFETY: null or live by contract.
    let Some(owner) = (unsafe { ctx.as_ref() }) else { return Err(Failure::null("ctx")) };
    let outcome = catch(|| {
        let accuracy = owner.accuracy();
        let ctx = owner.made()?;
        let call = Call { owner, ctx, report: Cell::default(), account: CallAccount::new(ctx, accuracy) };
        let (start, before) = (Instant::now(), allocated_bytes());
        reset_peak_bytes();
        work(&call)?;
        call.note(|report| {
            report.peak_bytes = peak_bytes().saturating_sub(before);
            report.seconds = start.elapsed().as_secs_f64();
        });
        owner.set_report(call.report.get());
        Ok(())
    });
    owner.answer(&outcome);
    outcome
}

/// [`run`] as a status.
///
/// # Safety
/// As [`run`].
pub unsafe fn enter(ctx: *const sunzi_context, work: impl FnOnce(&Call<'_>) -> Outcome<()>) -> sunzi_status {
    // SAFETY: by contract.
    status(&unsafe { run(ctx, work) })
}

/// The code of an outcome.
pub fn status(outcome: &Outcome<()>) -> sunzi_status {
    outcome.as_ref().err().map_or(sunzi_status::SUNZI_OK, |failure| failure.status)
}

impl<'a> Call<'a> {
    /// The context, with the part of the memory limit that the copies of operands leave.
    pub fn context(&self) -> Cow<'a, Context> {
        self.account.context()
    }

    /// Whether the context has devices.
    pub fn has_devices(&self) -> bool {
        !self.ctx.devices().is_empty()
    }

    /// The memory limit of this rank's context.
    pub fn limit_bytes(&self) -> Option<u64> {
        self.ctx.memory_bytes()
    }

    /// The context whose ranks and answers these are.
    pub fn owner(&self) -> &'a sunzi_context {
        self.owner
    }

    /// Changes the report.
    pub fn note(&self, change: impl FnOnce(&mut sunzi_report)) {
        let mut report = self.report.get();
        change(&mut report);
        self.report.set(report);
    }

    /// The accuracy that the call promises for entries.
    pub fn accuracy(&self) -> Accuracy {
        self.account.accuracy()
    }

    /// Notes the accuracy reached for entries, and the bits that it took beyond those of norms.
    pub fn note_accuracy(&self, reached: Accuracy, range_bits: u32) {
        self.note(|report| {
            report.accuracy = accuracy_code(reached);
            report.range_bits = range_bits.into();
        });
    }

    /// Notes the memory and bits that a product took.
    pub fn note_product(&self, product: &sunzi::report::Report) {
        self.note_plan(product.planned_bytes);
        self.note_accuracy(product.accuracy, product.range_bits);
    }

    /// Notes the memory and bits that a solve took.
    pub fn note_solve(&self, solve: &sunzi::report::SolveReport) {
        self.note_plan(solve.planned_bytes);
        self.note_accuracy(
            solve.accuracy,
            solve.factorisation.as_ref().map_or(0, |factorisation| factorisation.range_bits),
        );
    }

    /// Notes the plan of all steps of a call over ranks.
    pub fn note_steps(&self) {
        self.note(|report| report.planned_bytes = self.account.most_bytes());
    }

    /// Notes the plan of the operation itself, in bytes.
    pub fn note_plan(&self, planned_bytes: u64) {
        let held = self.account.held_bytes();
        self.note(|report| report.planned_bytes = report.planned_bytes.max(planned_bytes.saturating_add(held)));
    }

    /// A result of the library on the reduced limit, its limits in terms of the whole one.
    pub fn done<T>(&self, result: sunzi::Result<T>) -> Outcome<T> {
        Ok(self.account.done(result)?)
    }

    /// A matrix for a copy of an operand, of arbitrary contents.
    fn copy_of(&self, rows: usize, cols: usize, precision_bits: u32) -> Outcome<Matrix> {
        let bytes = Matrix::bytes_for(rows, cols, precision_bits);
        self.hold_bytes(bytes)?;
        self.note(|report| report.copied_bytes += bytes);
        self.owner.take_matrix(rows, cols, precision_bits)
    }

    /// A matrix for a result; the operation's own plan counts it.
    pub fn result(&self, rows: usize, cols: usize, precision_bits: u32) -> Outcome<Matrix> {
        self.note(|report| {
            report.copied_bytes += Matrix::bytes_for(rows, cols, precision_bits);
            report.precision_bits = precision_bits.into();
        });
        match self.ctx.memory_bytes() {
            // Under a limit the operation allocates its result after it has planned.
            Some(_) => Ok(Matrix::zeros(0, 0, 2)?),
            None => self.owner.take_matrix(rows, cols, precision_bits),
        }
    }

    /// Notes a result that the library has allocated.
    pub fn note_allocated(&self, result: &Matrix) {
        self.note(|report| {
            report.copied_bytes += result.bytes();
            report.precision_bits = result.precision_bits().into();
        });
    }

    /// Keeps the memory of a matrix for the next call.
    pub fn keep(&self, matrix: Matrix) {
        self.owner.give_matrix(matrix);
    }

    /// Takes `bytes` bytes of the memory limit.
    pub fn hold_bytes(&self, bytes: u64) -> Outcome<()> {
        Ok(self.account.hold_bytes(bytes)?)
    }

    /// Keeps the memory of a copy for the next call.
    pub fn keep_input(&self, input: Input<'_>) {
        if let Input::Copied(matrix, _) = input {
            self.keep(matrix);
        }
    }

    /// Reads an operand: copies its numbers, or checks them in place.
    ///
    /// # Safety
    /// The entries of `part` are live, and no thread writes to them while the input is in use.
    pub unsafe fn read<'b>(&self, operand: &Operand, part: Part) -> Outcome<Input<'b>> {
        let row_major = match &operand.array {
            Array::Mpfr(grid) => grid.is_row_major(),
            Array::Mpf(grid) => grid.is_row_major(),
            Array::Limbs(array) => {
                // SAFETY: by contract.
                let view = || unsafe { convert::view(self.ctx, operand.name, array, part) };
                return self.timed_read(operand.rows() * operand.cols(), view).map(Input::InPlace);
            }
        };
        // Along the memory: a row-major matrix becomes a copy of its transpose.
        let along = if row_major { operand.transposed() } else { *operand };
        let part = if row_major { part.transposed() } else { part };
        // SAFETY: by contract.
        Ok(Input::Copied(unsafe { self.read_copy(&along, part) }?, row_major))
    }

    /// A copy of an operand as a matrix of its own, zero outside of `part`.
    ///
    /// # Safety
    /// As [`Call::read`].
    pub unsafe fn read_copy(&self, operand: &Operand, part: Part) -> Outcome<Matrix> {
        let (rows, cols) = (operand.rows(), operand.cols());
        self.timed_read(rows * cols, || {
            // SAFETY: by contract, for all below.
            unsafe {
                let first = match &operand.array {
                    Array::Mpfr(grid) => convert::first_bits(operand.name, grid, part)?,
                    Array::Mpf(grid) => convert::first_bits(operand.name, grid, part)?,
                    Array::Limbs(array) => {
                        let view = convert::view(self.ctx, operand.name, array, part)?;
                        let mut copy = self.copy_of(rows, cols, array.precision_bits())?;
                        copy_part(&view, part, &mut copy);
                        return Ok(copy);
                    }
                };
                let mut copy = self.copy_of(rows, cols, first)?;
                let read = |copy: &mut Matrix| match &operand.array {
                    Array::Mpfr(grid) => convert::read(self.ctx, operand.name, grid, part, copy),
                    Array::Mpf(grid) => convert::read(self.ctx, operand.name, grid, part, copy),
                    Array::Limbs(_) => Ok(true),
                };
                if read(&mut copy)? {
                    return Ok(copy);
                }
                self.give_up(copy);
                let widest = match &operand.array {
                    Array::Mpfr(grid) => convert::widest(operand.name, grid, part, crate::array::Entry::bits)?,
                    Array::Mpf(grid) => convert::widest(operand.name, grid, part, crate::array::Entry::bits)?,
                    Array::Limbs(array) => array.precision_bits(),
                };
                let mut copy = self.copy_of(rows, cols, widest)?;
                read(&mut copy)?;
                Ok(copy)
            }
        })
    }

    /// The only entry of an operand, exactly.
    ///
    /// # Safety
    /// As [`Call::read`].
    pub unsafe fn read_number(&self, operand: &Operand) -> Outcome<Float> {
        // SAFETY: by contract, for all below.
        unsafe {
            match &operand.array {
                Array::Mpfr(grid) => convert::read_number(operand.name, grid),
                Array::Mpf(grid) => convert::read_number(operand.name, grid),
                Array::Limbs(array) => {
                    let view = convert::view(self.ctx, operand.name, array, Part::All)?;
                    Ok(view.get(0, 0).to_float(view.precision_bits()))
                }
            }
        }
    }

    /// Takes a copy back that turned out too narrow.
    fn give_up(&self, copy: Matrix) {
        self.account.release_bytes(copy.bytes());
        self.note(|report| report.copied_bytes -= copy.bytes());
    }

    fn timed_read<T>(&self, entries: usize, read: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        if entries < TIMED_ENTRIES {
            return read();
        }
        let start = Instant::now();
        let result = read();
        self.note(|report| report.read_seconds += start.elapsed().as_secs_f64());
        result
    }

    /// The precision of a result that goes to `part` of `operand`: the largest of its entries, and at least 2.
    ///
    /// # Safety
    /// The entries of `part` are live.
    pub unsafe fn result_bits(&self, operand: &Operand, part: Part) -> Outcome<u32> {
        // SAFETY: by contract.
        unsafe {
            match &operand.array {
                Array::Mpfr(grid) => convert::widest(operand.name, grid, part, crate::array::Entry::result_bits),
                Array::Mpf(grid) => convert::widest(operand.name, grid, part, crate::array::Entry::result_bits),
                // An array without entries of the part may have any precision.
                Array::Limbs(array) => Ok(if part.is_empty(&array.heads) { 2 } else { array.precision_bits() }),
            }
        }
    }

    /// Stores numbers of the operand's shape, each rounded to the precision of its entry.
    ///
    /// # Safety
    /// The entries of `part` are live and apart from each other, and no other thread uses them.
    pub unsafe fn store(&self, operand: &Operand, part: Part, matrix: &Matrix) -> Outcome<()> {
        let start = (operand.rows() * operand.cols() >= TIMED_ENTRIES).then(Instant::now);
        // SAFETY: by contract.
        unsafe {
            match &operand.array {
                Array::Mpfr(grid) => convert::write(self.ctx, operand.name, grid, part, matrix)?,
                Array::Mpf(grid) => convert::write(self.ctx, operand.name, grid, part, matrix)?,
                Array::Limbs(array) => convert::write_limbs(array, part, matrix),
            }
        }
        if let Some(start) = start {
            self.note(|report| report.write_seconds += start.elapsed().as_secs_f64());
        }
        Ok(())
    }

    /// [`Call::store`] of a matrix whose memory is then kept for the next call.
    ///
    /// # Safety
    /// As [`Call::store`].
    pub unsafe fn write(&self, operand: &Operand, part: Part, matrix: Matrix) -> Outcome<()> {
        // SAFETY: by contract.
        unsafe { self.store(operand, part, &matrix) }?;
        self.keep(matrix);
        Ok(())
    }

    /// [`Call::write`] of a solution that the library has allocated, with its numbers in the report.
    ///
    /// # Safety
    /// As [`Call::store`].
    pub unsafe fn write_solution(
        &self,
        operand: &Operand,
        part: Part,
        solution: Matrix,
        solve: &sunzi::report::SolveReport,
    ) -> Outcome<()> {
        self.note_allocated(&solution);
        self.note_solve(solve);
        // SAFETY: by contract.
        unsafe { self.write(operand, part, solution) }
    }
}

impl Caller for Call<'_> {
    type Array = Operand;
    type Failure = Failure;

    fn account(&self) -> &CallAccount<'_> {
        &self.account
    }

    fn read<'b>(&self, array: &'b Operand, triangle: Option<LocalTriangle>) -> Outcome<Input<'b>> {
        // SAFETY: the entries of an operand stay live while it is in use, by the contract of `Operand::new`.
        unsafe { self.read(array, triangle.into()) }
    }

    fn result_bits(&self, array: &Operand, triangle: Option<LocalTriangle>) -> Outcome<u32> {
        // SAFETY: as above.
        unsafe { self.result_bits(array, triangle.into()) }
    }

    fn write(&self, array: &mut Operand, triangle: Option<LocalTriangle>, matrix: Matrix) -> Outcome<()> {
        // SAFETY: as above; the header's rules keep other threads away from a result, whose entries lie apart.
        unsafe { self.write(array, triangle.into(), matrix) }
    }

    fn space(&self, rows: usize, cols: usize, precision_bits: u32) -> Outcome<Matrix> {
        self.note(|report| report.copied_bytes += Matrix::bytes_for(rows, cols, precision_bits));
        self.owner.take_matrix(rows, cols, precision_bits)
    }

    fn keep(&self, matrix: Matrix) {
        self.keep(matrix);
    }

    fn note(&self, note: CallNote) {
        match note {
            CallNote::Precision(bits) => self.note(|report| report.precision_bits = bits.into()),
            CallNote::Reached(accuracy, range_bits) => self.note_accuracy(accuracy, range_bits),
            CallNote::Solution(bits) => self.note(|report| {
                report.precision_bits = bits.into();
                // By norms where the factorisation had too few bits for more.
                let promised = accuracy_code(self.accuracy());
                report.accuracy = if report.accuracy == 0 { promised } else { report.accuracy.min(promised) };
            }),
        }
    }
}

/// Copies the numbers of `part` and sets the rest to 0.
fn copy_part(view: &MatrixView<'_>, part: Part, copy: &mut Matrix) {
    copy.clear();
    for col in Part::columns(view.rows(), view.cols()) {
        for row in part.rows(col, view.rows()) {
            copy.set(row, col, view.get(row, col));
        }
    }
}
