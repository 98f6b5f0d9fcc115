//! The operations with a triangular factor as tasks: `A = L L^T`, `L X = B`, and `L L^T X = B` with the factor given.
//!
//! Each is one call of the library; the report of the call becomes an account in one place per operation.

use super::task::{Account, Cut, Phases, Task};
use rug::Float;
use sunzi::report::CholeskyReport;
use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Context, Matrix, Result, Symmetric, TrsmOptions, cholesky_into, trsm_into,
};

/// A factorisation.
pub struct Factorisation<'a> {
    a: &'a Matrix,
    options: CholeskyOptions,
    factor: Cholesky,
}

impl<'a> Factorisation<'a> {
    /// `A = L L^T` with tiles of `tile_rows` rows; `None` leaves the choice to the library.
    pub fn new(a: &'a Matrix, tile_rows: Option<usize>, accuracy: Accuracy) -> Factorisation<'a> {
        let options = CholeskyOptions::new().tile_rows(tile_rows).accuracy(accuracy);
        Factorisation { a, options, factor: Cholesky::default() }
    }
}

impl Task for Factorisation<'_> {
    fn run(&mut self, ctx: &Context) -> Result<Account> {
        let (a, bits) = (Symmetric::lower(self.a), self.a.precision_bits());
        Ok(account(&cholesky_into(ctx, a, bits, &self.options, &mut self.factor)?))
    }

    fn result(&self) -> &Matrix {
        self.factor.factor()
    }

    fn clear(&mut self) {
        let mut memory = std::mem::take(&mut self.factor).into_factor();
        memory.clear();
        self.factor = Cholesky::with_memory(memory);
    }

    fn entry(&self, i: usize, j: usize) -> Float {
        self.factor.factor().float(i.max(j), i.min(j))
    }
}

/// The account of a factorisation's report. One that ran by its definition, for want of a kernel with tiles, reports
/// nothing.
fn account(report: &CholeskyReport) -> Account {
    if report.operation.is_empty() {
        return Account::of_kernel("definition");
    }
    let tasks = &report.tasks;
    Account {
        kernel: report.kernel,
        working_bits: Some(report.working_bits),
        primes: Some(report.primes),
        cut: Cut::Tiles { tile_rows: report.tile_rows, tiles: report.tiles },
        phases: Phases(vec![
            ("load", tasks.load),
            ("update", tasks.update),
            ("potrf", tasks.potrf),
            ("trsm", tasks.trsm),
            ("store", tasks.store),
        ]),
        planned_bytes: Some(report.planned_bytes),
        devices: Vec::new(),
        tiles: report.devices.clone(),
    }
}

/// Systems with a triangular matrix, or with the matrix that a Cholesky factor represents.
pub struct System<'a> {
    method: Method<'a>,
    b: &'a Matrix,
    solution: Matrix,
}

enum Method<'a> {
    /// `L X = B`.
    Triangular(&'a Matrix, Accuracy),
    /// `L L^T X = B`.
    Factored(Box<Cholesky>),
}

impl<'a> System<'a> {
    /// `L X = B`.
    ///
    /// # Errors
    /// The errors of [`Matrix::zeros`].
    pub fn triangular(l: &'a Matrix, b: &'a Matrix, accuracy: Accuracy) -> Result<System<'a>> {
        System::new(Method::Triangular(l, accuracy), b)
    }

    /// `L L^T X = B`; the factor is imported outside the clock.
    ///
    /// # Errors
    /// The errors of [`Cholesky::from_factor`] and [`Matrix::zeros`].
    pub fn factored(l: &Matrix, b: &'a Matrix, accuracy: Accuracy) -> Result<System<'a>> {
        let factor = Cholesky::from_factor(l.clone())?.with_accuracy(accuracy);
        System::new(Method::Factored(Box::new(factor)), b)
    }

    fn new(method: Method<'a>, b: &'a Matrix) -> Result<System<'a>> {
        Ok(System { method, b, solution: Matrix::zeros(0, 0, b.precision_bits())? })
    }
}

impl Task for System<'_> {
    fn run(&mut self, ctx: &Context) -> Result<Account> {
        let bits = self.b.precision_bits();
        let report = match &self.method {
            Method::Triangular(l, accuracy) => {
                let options = TrsmOptions::new().accuracy(*accuracy);
                trsm_into(ctx, *l, self.b, bits, &options, &mut self.solution)?
            }
            Method::Factored(cholesky) => cholesky.solve_into(ctx, self.b, bits, &mut self.solution)?,
        };
        let (working_bits, planned_bytes) = (Some(report.working_bits), Some(report.planned_bytes));
        Ok(Account { working_bits, planned_bytes, ..Account::of_kernel(report.kernel) })
    }

    fn result(&self) -> &Matrix {
        &self.solution
    }

    fn clear(&mut self) {
        self.solution.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baselines::{Operation, Problem, admit, by_name, names};
    use crate::bench::operands::Operands;
    use sunzi::gallery::Size;

    /// All matrices have small condition numbers and entries below 2^4, so answers agree nearly to their last bits.
    #[test]
    fn baselines_give_our_answer() {
        let (bits, ctx) = (256, Context::builder().threads(1).build().unwrap());
        for operation in [Operation::Cholesky, Operation::Trsm, Operation::Solve] {
            for (rows, cols) in [(0, 0), (1, 1), (20, 20), (20, 1)] {
                let cols = if operation == Operation::Cholesky { rows } else { cols };
                let operands = Operands::new(operation, Size { rows, cols, precision_bits: bits }).unwrap();
                let (a, b) = (operands.a.view().to_floats(), operands.b.as_ref().map(|b| b.view().to_floats()));
                let right = || operands.b.as_ref().unwrap();
                let mut ours: Box<dyn Task> = match operation {
                    Operation::Cholesky => Box::new(Factorisation::new(&operands.a, None, Accuracy::Norm)),
                    Operation::Trsm => Box::new(System::triangular(&operands.a, right(), Accuracy::Norm).unwrap()),
                    _ => Box::new(System::factored(&operands.a, right(), Accuracy::Norm).unwrap()),
                };
                ours.run(&ctx).unwrap();
                for name in names(operation).iter().filter(|name| admit(name, operation, bits).is_ok()) {
                    let b = b.as_deref();
                    let problem = Problem { operation, rows, cols, precision_bits: bits, a: &a, b, threads: 1 };
                    let mut baseline = by_name(name, problem).unwrap();
                    baseline.run();
                    for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
                        let error = Float::with_val(400, baseline.entry(i, j) - ours.entry(i, j)).abs();
                        assert!(error <= Float::with_val(64, 1) >> 240, "{name} {operation:?} {rows} ({i}, {j})");
                    }
                }
            }
        }
    }
}
