//! The ranks of a communicator with a context: calls of the library's verbs over ranks.

use super::failure::RankFailure;
use super::part::{NUMBERS, RankPart, distribution};
use crate::native::communicator::ranks_of;
use rug::Float;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use sunzi::advanced::calls::{
    CallAccount, CallFailure, Caller, CopyPool, DescribedMatrix, KeptFactor, LocalArray, LocalInput, LocalTriangle,
    Opening, ProductTerms, RankShapes, Routine, TriangularKind, caught, check_process, gemm_over, solve_over,
    stored_log_det, syrk_over, together, trsm_over,
};
use sunzi::advanced::device::{Device, DeviceName};
use sunzi::distributed::{Team, TeamOptions};
use sunzi::{Accuracy, Context, Matrix, Op, Uplo};

/// The result of a call, or why it failed.
pub type Answer<T> = Result<T, RankFailure>;

/// Choices of a context on ranks.
pub struct RankOptions {
    pub threads: usize,
    /// 0 sets no limit.
    pub memory_bytes: u64,
    pub kernel: Option<String>,
    /// Names with commas between them.
    pub devices: Option<String>,
    pub accuracy: Accuracy,
    pub freivalds: bool,
}

impl RankOptions {
    fn open(&self) -> Answer<Context> {
        let mut builder = Context::builder().freivalds(self.freivalds);
        if self.threads > 0 {
            builder = builder.threads(self.threads);
        }
        if self.memory_bytes > 0 {
            builder = builder.memory_bytes(self.memory_bytes);
        }
        if let Some(kernel) = &self.kernel {
            builder = builder.kernel(kernel);
        }
        if let Some(names) = &self.devices {
            builder = builder.devices(self.opened(names)?);
        }
        builder.build().map_err(about_options)
    }

    /// The devices of these names; the CPU as a device takes the threads of the context.
    fn opened(&self, names: &str) -> Answer<Vec<Arc<dyn Device>>> {
        let bytes = |text: &str| {
            text.parse::<u64>().map_err(|_| format!("a software device, but '{text}' is not a number of bytes"))
        };
        let read = |name: &str| {
            let refused = |why| RankFailure::invalid("options", format!("device '{name}' is {why}"));
            DeviceName::parse(name.trim(), bytes).map_err(refused)
        };
        let found = names.split(',').map(read).collect::<Answer<Vec<_>>>()?;
        DeviceName::open(&found, Some(self.threads).filter(|&count| count > 0)).map_err(about_options)
    }
}

fn about_options(error: sunzi::Error) -> RankFailure {
    RankFailure::about("options", error)
}

/// The ranks of a communicator with a context.
pub struct RankTeam {
    ctx: Context,
    accuracy: Accuracy,
    copies: CopyPool,
    team: Mutex<Team>,
    /// The process that made the object: a fork is not one of the ranks.
    process: u32,
}

/// An argument that is a matrix over ranks: this rank's part, and the numbers of its distribution.
pub struct RankArgument<'p> {
    pub part: RankPart<'p>,
    pub numbers: [i64; 11],
}

/// The scalars of a product, each a matrix of one entry; `None` is 1, and 0 for beta.
#[derive(Clone, Copy)]
pub struct RankScalars<'a> {
    pub alpha: Option<&'a Matrix>,
    pub beta: Option<&'a Matrix>,
}

/// One call: its account, and the copies that it may use.
pub struct RankCall<'c, 'p> {
    account: CallAccount<'c>,
    copies: &'c CopyPool,
    parts: PhantomData<fn() -> RankPart<'p>>,
}

impl<'p> Caller for RankCall<'_, 'p> {
    type Array = RankPart<'p>;
    type Failure = RankFailure;

    fn account(&self) -> &CallAccount<'_> {
        &self.account
    }

    fn read<'b>(&self, array: &'b RankPart<'p>, _: Option<LocalTriangle>) -> Answer<LocalInput<'b>> {
        array.view().map(LocalInput::InPlace).ok_or_else(|| RankFailure::elsewhere("a plan reads no numbers"))
    }

    fn result_bits(&self, array: &RankPart<'p>, triangle: Option<LocalTriangle>) -> Answer<u32> {
        let (rows, cols) = (array.rows(), array.cols());
        let is_empty = triangle.map_or(rows == 0 || cols == 0, |triangle| triangle.is_empty(rows, cols));
        // A part without entries may have any precision.
        Ok(if is_empty { 2 } else { array.precision_bits() })
    }

    fn write(&self, array: &mut RankPart<'p>, triangle: Option<LocalTriangle>, matrix: Matrix) -> Answer<()> {
        let rows = matrix.rows();
        for col in 0..matrix.cols() {
            for row in triangle.map_or(0..rows, |triangle| triangle.rows(col, rows)) {
                array.set(row, col, matrix.get(row, col), matrix.precision_bits())?;
            }
        }
        self.keep(matrix);
        Ok(())
    }

    fn space(&self, rows: usize, cols: usize, precision_bits: u32) -> Answer<Matrix> {
        Ok(self.copies.take(rows, cols, precision_bits)?)
    }

    fn keep(&self, matrix: Matrix) {
        if self.account.limit_bytes().is_none() {
            self.copies.give(matrix);
        }
    }
}

/// A matrix over ranks before the ranks have exchanged the sizes of their parts.
pub(super) type DescribedPart<'p> = DescribedMatrix<RankPart<'p>, RankFailure>;

/// Records a matrix of a call.
pub(super) fn matrix<'p>(open: &mut Opening<'_>, argument: RankArgument<'p>) -> Answer<DescribedPart<'p>> {
    let RankArgument { part, numbers } = argument;
    let name = part.name();
    let described = open.matrix(part, &distribution(name, &numbers)?)?;
    for (what, number) in NUMBERS.iter().zip(numbers) {
        open.say(name, what, number);
    }
    Ok(described)
}

/// Records the triangle of a symmetric matrix that counts; `None` for both.
pub(super) fn symmetric(open: &mut Opening<'_>, uplo: Option<Uplo>) {
    open.say("uplo", "it is", uplo.map_or("both triangles".into(), |uplo| format!("{uplo:?}")));
}

/// Records a scalar.
fn number(open: &mut Opening<'_>, name: &'static str, scalar: Option<&Matrix>) -> Option<Float> {
    open.number(name, scalar.map(|scalar| scalar.float(0, 0)))
}

impl RankTeam {
    /// The ranks of the communicator with a Fortran handle. Collective.
    ///
    /// # Errors
    /// Refusals of the library; MPI must be initialised.
    pub fn new(handle: i32, options: &RankOptions) -> Answer<RankTeam> {
        caught(|| {
            let missing =
                || RankFailure::elsewhere("this package was built without MPI; build it with the feature mpi");
            let world = ranks_of(handle)?.ok_or_else(missing)?;
            // A refusal on one rank is one on all.
            let own = options.open().and_then(|ctx| Ok((ctx, TeamOptions::from_environment()?)));
            let (ctx, team_options) = together(&*world, own)?;
            let team = Mutex::new(Team::new(world, team_options)?);
            let (copies, process) = (CopyPool::default(), std::process::id());
            Ok(RankTeam { ctx, accuracy: options.accuracy, copies, team, process })
        })
    }

    /// Frees what the ranks share. Collective; a fork gives back only its own memory.
    pub fn close(self) {
        let _: Answer<()> = caught(|| {
            check_process::<RankFailure>(self.process)?;
            Ok(self.team.into_inner().unwrap_or_else(PoisonError::into_inner).close()?)
        });
    }

    /// One call of all ranks: `check` looks at the arguments only on this rank, and `work` goes on where they are right
    /// and the same on all ranks. Collective.
    pub(super) fn collective<'p, T, R>(
        &self,
        name: &str,
        arguments: &[&'static str],
        check: impl FnOnce(&mut Opening<'_>) -> Answer<T>,
        work: impl FnOnce(&RankCall<'_, 'p>, &mut Team, T, &RankShapes) -> Answer<R>,
    ) -> Answer<R> {
        caught(|| {
            let mut team = self.team.lock().unwrap_or_else(PoisonError::into_inner);
            check_process::<RankFailure>(self.process)?;
            let account = CallAccount::new(&self.ctx, self.accuracy);
            let call = RankCall { account, copies: &self.copies, parts: PhantomData };
            let mut open = Opening::new(team.world());
            open.choice("accuracy", self.accuracy);
            open.say("devices", "there are", if self.ctx.devices().is_empty() { "none" } else { "some" });
            // A defect that shows on one rank must not leave the others waiting.
            let own = caught(|| check(&mut open));
            let (checked, shapes) =
                open.agreed(Routine { name, arguments }, call.account.limit_bytes().is_some(), own)?;
            call.account.note_limited(shapes.limited());
            call.account.count_ranks(team.size());
            work(&call, &mut team, checked, &shapes)
        })
    }

    /// `C := alpha op(A) op(A)^T + beta C`. Collective, as all below.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn syrk(
        &self,
        uplo: Option<Uplo>,
        op: Op,
        scalars: RankScalars<'_>,
        a: RankArgument<'_>,
        c: RankArgument<'_>,
    ) -> Answer<()> {
        let check = |open: &mut Opening<'_>| {
            symmetric(open, uplo);
            open.choice("trans", op);
            let (alpha, beta) = (number(open, "alpha", scalars.alpha), number(open, "beta", scalars.beta));
            Ok((alpha, beta, matrix(open, a)?, matrix(open, c)?))
        };
        self.collective("syrk", &["uplo", "trans", "alpha", "a", "beta", "c"], check, |call, team, checked, shapes| {
            let (alpha, beta, a, c) = checked;
            let (a, mut c) = (a.place(shapes)?, c.place(shapes)?);
            let terms = ProductTerms { alpha: alpha.as_ref(), beta: beta.as_ref() };
            syrk_over(call, team, uplo, op, terms, a, &mut c)
        })
    }

    /// `C := alpha op(A) op(B) + beta C`.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn gemm(
        &self,
        ops: [Op; 2],
        scalars: RankScalars<'_>,
        a: RankArgument<'_>,
        b: RankArgument<'_>,
        c: RankArgument<'_>,
    ) -> Answer<()> {
        let arguments = ["trans_a", "trans_b", "alpha", "a", "b", "beta", "c"];
        let check = |open: &mut Opening<'_>| {
            open.choice("trans_a", ops[0]);
            open.choice("trans_b", ops[1]);
            let (alpha, beta) = (number(open, "alpha", scalars.alpha), number(open, "beta", scalars.beta));
            Ok((alpha, beta, matrix(open, a)?, matrix(open, b)?, matrix(open, c)?))
        };
        self.collective("gemm", &arguments, check, |call, team, checked, shapes| {
            let (alpha, beta, a, b, c) = checked;
            let (a, b, mut c) = (a.place(shapes)?, b.place(shapes)?, c.place(shapes)?);
            let terms = ProductTerms { alpha: alpha.as_ref(), beta: beta.as_ref() };
            gemm_over(call, team, ops, terms, a, b, &mut c)
        })
    }

    /// `B := alpha op(T)^-1 B`, or from the right.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn trsm(
        &self,
        kind: TriangularKind,
        alpha: Option<&Matrix>,
        t: RankArgument<'_>,
        b: RankArgument<'_>,
    ) -> Answer<()> {
        let arguments = ["side", "uplo", "trans", "diag", "alpha", "t", "b"];
        let check = |open: &mut Opening<'_>| {
            open.choice("side", kind.side);
            open.choice("uplo", kind.uplo);
            open.choice("trans", kind.op);
            open.choice("diag", kind.diag);
            Ok((number(open, "alpha", alpha), matrix(open, t)?, matrix(open, b)?))
        };
        self.collective("trsm", &arguments, check, |call, team, (alpha, t, b), shapes| {
            trsm_over(call, team, kind, alpha.as_ref(), t.place(shapes)?, b.place(shapes)?)
        })
    }

    /// `B := A^-1 B`.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn solve(&self, uplo: Option<Uplo>, a: RankArgument<'_>, b: RankArgument<'_>) -> Answer<()> {
        let check = |open: &mut Opening<'_>| {
            symmetric(open, uplo);
            Ok((matrix(open, a)?, matrix(open, b)?))
        };
        self.collective("solve", &["uplo", "a", "b"], check, |call, team, (a, b), shapes| {
            solve_over(call, team, uplo, a.place(shapes)?, b.place(shapes)?)
        })
    }

    /// The factor of a matrix, for several solves.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn factor(&self, uplo: Option<Uplo>, bits: u32, a: RankArgument<'_>) -> Answer<KeptFactor> {
        let check = |open: &mut Opening<'_>| {
            symmetric(open, uplo);
            open.choice("precision_bits", bits);
            matrix(open, a)
        };
        self.collective("factor", &["uplo", "precision_bits", "a"], check, |call, team, a, shapes| {
            KeptFactor::new(call, team, uplo, bits, a.place(shapes)?)
        })
    }

    /// The factor of another matrix in the memory of one that is kept.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn renew(&self, uplo: Option<Uplo>, bits: u32, a: RankArgument<'_>, factor: &mut KeptFactor) -> Answer<()> {
        let arguments = ["uplo", "precision_bits", "a", "factor"];
        let check = |open: &mut Opening<'_>| {
            symmetric(open, uplo);
            open.choice("precision_bits", bits);
            let a = matrix(open, a)?;
            factor.describe(open);
            Ok((a, factor))
        };
        self.collective("renew", &arguments, check, |call, team, (a, factor), shapes| {
            factor.renew(call, team, uplo, bits, a.place(shapes)?)
        })
    }

    /// `B := A^-1 B` with a kept factor.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn factor_solve(&self, factor: &KeptFactor, b: RankArgument<'_>) -> Answer<()> {
        let check = |open: &mut Opening<'_>| Ok((factor.usable::<RankFailure>(open)?, matrix(open, b)?));
        self.collective("factor_solve", &["factor", "b"], check, |call, team, (factor, b), shapes| {
            factor.solve(call, team, b.place(shapes)?)
        })
    }

    /// `X := A^-1` with a kept factor.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn inverse(&self, factor: &KeptFactor, x: RankArgument<'_>) -> Answer<()> {
        let check = |open: &mut Opening<'_>| Ok((factor.usable::<RankFailure>(open)?, matrix(open, x)?));
        self.collective("inverse", &["factor", "x"], check, |call, team, (factor, x), shapes| {
            factor.inverse(call, team, x.place(shapes)?)
        })
    }

    /// The logarithm of the determinant, a matrix of one entry of `bits` bits.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn log_det(&self, factor: &KeptFactor, bits: u32) -> Answer<Matrix> {
        let check = |open: &mut Opening<'_>| factor.usable::<RankFailure>(open);
        self.collective("log_det", &["factor"], check, |_, team, factor, _| {
            let mut found = None;
            factor.log_det::<RankCall<'_, '_>>(team, |pivots| {
                found = Some(stored_log_det(pivots, bits)?);
                Ok(())
            })?;
            Ok(found.unwrap_or_default())
        })
    }

    /// The factor in the lower triangle of `a`.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn lower(&self, factor: &KeptFactor, a: RankArgument<'_>) -> Answer<()> {
        let check = |open: &mut Opening<'_>| Ok((factor.usable::<RankFailure>(open)?, matrix(open, a)?));
        self.collective("lower", &["factor", "a"], check, |call, team, (factor, a), shapes| {
            factor.store(call, team, Uplo::Lower, a.place(shapes)?)
        })
    }
}
