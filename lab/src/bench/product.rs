//! The products as tasks: `P^T P` and `A^T B`, into a result that is kept, as the baselines keep theirs.

use super::task::{Account, Cut, Phases, Task};
use sunzi::report::Report;
use sunzi::verify::{VerifyOptions, verify_gemm, verify_syrk};
use sunzi::{Accuracy, Context, GemmOptions, Matrix, Op, Result, SymmetricMatrix, SyrkOptions, gemm_into, syrk_into};

/// Random vectors of the verification of our result.
const VECTORS: usize = 3;

/// A product of one operand with itself, or of two.
pub struct Product<'a> {
    a: &'a Matrix,
    b: Option<&'a Matrix>,
    accuracy: Accuracy,
    result: Matrix,
    /// The result of a product of one operand with itself.
    gram: SymmetricMatrix,
}

impl<'a> Product<'a> {
    /// `A^T A`, or `A^T B`.
    pub fn new(a: &'a Matrix, b: Option<&'a Matrix>, accuracy: Accuracy) -> Product<'a> {
        Product { a, b, accuracy, result: Matrix::empty(), gram: SymmetricMatrix::default() }
    }
}

impl Task for Product<'_> {
    fn run(&mut self, ctx: &Context) -> Result<Account> {
        let bits = self.a.precision_bits();
        let report = match self.b {
            None => {
                let options = SyrkOptions::new().accuracy(self.accuracy);
                syrk_into(ctx, self.a, bits, &options, &mut self.gram)?
            }
            Some(b) => {
                let options = GemmOptions::new().op_a(Op::Transpose).accuracy(self.accuracy);
                gemm_into(ctx, self.a, b, bits, &options, &mut self.result)?
            }
        };
        Ok(account(&report))
    }

    fn result(&self) -> &Matrix {
        if self.b.is_none() { &self.gram } else { &self.result }
    }

    fn clear(&mut self) {
        self.result.clear();
        self.gram.clear();
    }

    /// Exact residuals.
    fn verify(&self, ctx: &Context) -> Result<()> {
        let options = VerifyOptions::new().vector_count(VECTORS);
        let bits = self.a.precision_bits();
        match self.b {
            None => verify_syrk(ctx, self.a, &self.gram, bits, &options),
            Some(b) => {
                let options = options.op(Op::Transpose);
                verify_gemm(ctx, (self.a, b), &self.result, bits, &options)
            }
        }
        .map(drop)
    }
}

fn account(report: &Report) -> Account {
    let phases = &report.phases;
    Account {
        kernel: report.kernel,
        working_bits: Some(report.working_bits),
        primes: Some(report.primes),
        cut: Cut::Windows { batches: report.batches, bands: report.bands, chunks: report.chunks },
        phases: Phases(vec![
            ("scale", phases.scale),
            ("to_residues", phases.to_residues),
            ("product", phases.product),
            ("reconstruct", phases.reconstruct),
            ("unscale", phases.unscale),
        ]),
        planned_bytes: Some(report.planned_bytes),
        devices: report.devices.clone(),
        tiles: Vec::new(),
    }
}
