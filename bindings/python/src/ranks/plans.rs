//! The memory that calls over ranks would take, from the distributions of their matrices.

use super::failure::RankFailure;
use super::part::RankPart;
use super::team::{Answer, RankArgument, RankTeam, matrix, symmetric};
use sunzi::advanced::calls::{
    CallFailure, CallPlan, Opening, PlannedBits, plan_cholesky_over, plan_gemm_over, plan_solve_over, plan_syrk_over,
    plan_trsm_over,
};
use sunzi::{Diag, Matrix, Op, Side, Uplo};

/// A matrix that a plan is made for: the rows and columns of this rank's part, and the numbers of its distribution.
#[derive(Clone, Copy)]
pub struct PlannedMatrix {
    pub shape: [i64; 2],
    pub numbers: [i64; 11],
}

/// The call that a plan is made for.
#[derive(Clone, Copy)]
pub enum PlannedCall {
    /// `op`, A and C.
    Syrk(Op, [PlannedMatrix; 2]),
    /// `op` of A and of B; A, B and C.
    Gemm([Op; 2], [PlannedMatrix; 3]),
    /// The triangle; A.
    Cholesky(Option<Uplo>, PlannedMatrix),
    /// The side and the diagonal; T and B.
    Trsm(Side, Diag, [PlannedMatrix; 2]),
    /// The triangle; A, `None` for a factor that is kept, and B.
    Solve(Option<Uplo>, Option<PlannedMatrix>, PlannedMatrix),
}

/// The argument `name` of a plan, with entries of these bits.
fn argument(name: &'static str, planned: PlannedMatrix, bits: u32) -> Answer<RankArgument<'static>> {
    let [rows, cols] = planned.shape;
    let (Ok(height), Ok(width)) = (usize::try_from(rows), usize::try_from(cols)) else {
        return Err(RankFailure::invalid(name, format!("the size {rows} x {cols} must not be negative")));
    };
    Ok(RankArgument { part: RankPart::planned(name, [height, width], bits), numbers: planned.numbers })
}

/// Records a precision.
fn checked_bits(open: &mut Opening<'_>, name: &'static str, bits: u32) -> Answer<()> {
    Matrix::zeros(0, 0, bits).map_err(|error| RankFailure::about(name, error))?;
    open.say(name, "it is", bits);
    Ok(())
}

/// Records the precisions of a product or a triangular solve.
fn both_bits(open: &mut Opening<'_>, bits: PlannedBits) -> Answer<()> {
    checked_bits(open, "operand_bits", bits.operand)?;
    checked_bits(open, "precision_bits", bits.result)
}

impl RankTeam {
    /// The bytes that a call would take. Collective.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn plan(&self, of: PlannedCall, bits: PlannedBits) -> Answer<CallPlan> {
        match of {
            PlannedCall::Syrk(op, matrices) => self.plan_syrk(op, matrices, bits),
            PlannedCall::Gemm(ops, matrices) => self.plan_gemm(ops, matrices, bits),
            PlannedCall::Cholesky(uplo, a) => self.plan_cholesky(uplo, a, bits.result),
            PlannedCall::Trsm(side, diag, matrices) => self.plan_trsm(side, diag, matrices, bits),
            PlannedCall::Solve(uplo, a, b) => self.plan_solve(uplo, a, b, bits.result),
        }
    }

    fn plan_syrk(&self, op: Op, [a, c]: [PlannedMatrix; 2], bits: PlannedBits) -> Answer<CallPlan> {
        let arguments = ["trans", "a", "c", "operand_bits", "precision_bits"];
        let check = |open: &mut Opening<'_>| {
            open.choice("trans", op);
            let a = matrix(open, argument("a", a, bits.operand)?)?;
            let c = matrix(open, argument("c", c, bits.result)?)?;
            both_bits(open, bits).map(|()| (a, c))
        };
        self.collective("plan_syrk", &arguments, check, |call, team, (a, c), shapes| {
            let (a, c) = (a.place(shapes)?, c.place(shapes)?);
            plan_syrk_over(call, team, op, a, &c, bits)
        })
    }

    fn plan_gemm(&self, ops: [Op; 2], [a, b, c]: [PlannedMatrix; 3], bits: PlannedBits) -> Answer<CallPlan> {
        let arguments = ["trans_a", "trans_b", "a", "b", "c", "operand_bits", "precision_bits"];
        let check = |open: &mut Opening<'_>| {
            open.choice("trans_a", ops[0]);
            open.choice("trans_b", ops[1]);
            let a = matrix(open, argument("a", a, bits.operand)?)?;
            let b = matrix(open, argument("b", b, bits.operand)?)?;
            let c = matrix(open, argument("c", c, bits.result)?)?;
            both_bits(open, bits).map(|()| (a, b, c))
        };
        self.collective("plan_gemm", &arguments, check, |call, team, (a, b, c), shapes| {
            let (a, b, c) = (a.place(shapes)?, b.place(shapes)?, c.place(shapes)?);
            plan_gemm_over(call, team, ops, a, b, &c, bits)
        })
    }

    fn plan_cholesky(&self, uplo: Option<Uplo>, a: PlannedMatrix, bits: u32) -> Answer<CallPlan> {
        let check = |open: &mut Opening<'_>| {
            symmetric(open, uplo);
            let a = matrix(open, argument("a", a, bits)?)?;
            checked_bits(open, "precision_bits", bits).map(|()| a)
        };
        self.collective("plan_cholesky", &["uplo", "a", "precision_bits"], check, |call, team, a, shapes| {
            plan_cholesky_over(call, team, uplo, a.place(shapes)?, bits)
        })
    }

    fn plan_trsm(&self, side: Side, diag: Diag, [t, b]: [PlannedMatrix; 2], bits: PlannedBits) -> Answer<CallPlan> {
        let arguments = ["side", "diag", "t", "b", "operand_bits", "precision_bits"];
        let check = |open: &mut Opening<'_>| {
            open.choice("side", side);
            open.choice("diag", diag);
            let t = matrix(open, argument("t", t, bits.operand)?)?;
            let b = matrix(open, argument("b", b, bits.result)?)?;
            both_bits(open, bits).map(|()| (t, b))
        };
        self.collective("plan_trsm", &arguments, check, |call, team, (t, b), shapes| {
            let (t, b) = (t.place(shapes)?, b.place(shapes)?);
            plan_trsm_over(call, team, side, diag, &t, b, bits)
        })
    }

    fn plan_solve(
        &self,
        uplo: Option<Uplo>,
        a: Option<PlannedMatrix>,
        b: PlannedMatrix,
        bits: u32,
    ) -> Answer<CallPlan> {
        let check = |open: &mut Opening<'_>| {
            symmetric(open, uplo);
            open.say("a", "it is", if a.is_none() { "null" } else { "a matrix" });
            let b = matrix(open, argument("b", b, bits)?)?;
            let a = a.map(|a| matrix(open, argument("a", a, bits)?)).transpose()?;
            checked_bits(open, "precision_bits", bits).map(|()| (a, b))
        };
        self.collective("plan_solve", &["uplo", "a", "b", "precision_bits"], check, |call, team, (a, b), shapes| {
            let (a, b) = (a.map(|a| a.place(shapes)).transpose()?, b.place(shapes)?);
            plan_solve_over(call, team, uplo, a, &b, bits)
        })
    }
}
