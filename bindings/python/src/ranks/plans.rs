//! The memory that calls over ranks would take, from the distributions of their matrices.

use super::failure::RankFailure;
use super::part::RankPart;
use super::team::{Answer, DescribedPart, RankArgument, RankTeam, matrix, symmetric};
use sunzi::advanced::calls::{
    CallPlan, Opening, PlannedBits, plan_cholesky_over, plan_gemm_over, plan_solve_over, plan_syrk_over, plan_trsm_over,
};
use sunzi::{Diag, MAXIMUM_PRECISION_BITS, Op, Side, Uplo};

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

/// The requested precisions of a planned call.
#[derive(Clone, Copy)]
pub struct AskedBits {
    /// The precision of the operands of a product, and of a triangle.
    pub operand: i64,
    /// The precision of the result.
    pub result: i64,
}

/// Records the argument `name` of a plan, with entries of these bits.
fn planned(
    open: &mut Opening<'_>,
    name: &'static str,
    planned: PlannedMatrix,
    bits: i64,
) -> Answer<DescribedPart<'static>> {
    let [rows, cols] = planned.shape;
    let (Ok(height), Ok(width)) = (usize::try_from(rows), usize::try_from(cols)) else {
        return Err(RankFailure::invalid(name, format!("the size {rows} x {cols} must not be negative")));
    };
    let known = u32::try_from(bits).ok().filter(|bits| (2..=MAXIMUM_PRECISION_BITS).contains(bits));
    let refused = || {
        let message = format!("the precision of {bits} bits is not valid; choose 2 to {MAXIMUM_PRECISION_BITS}");
        RankFailure::invalid(name, message)
    };
    let part = RankPart::planned(name, [height, width], known.ok_or_else(refused)?);
    matrix(open, RankArgument { part, numbers: planned.numbers })
}

/// Records a precision, which matrices were planned with.
fn recorded(open: &mut Opening<'_>, name: &'static str, bits: i64) -> u32 {
    open.say(name, "it is", bits);
    bits as u32
}

/// Records the precisions of a product or a triangular solve.
fn both_recorded(open: &mut Opening<'_>, bits: AskedBits) -> PlannedBits {
    let operand = recorded(open, "operand_bits", bits.operand);
    PlannedBits { operand, result: recorded(open, "precision_bits", bits.result) }
}

impl RankTeam {
    /// The bytes that a call would take. Collective.
    ///
    /// # Errors
    /// Refusals of the library.
    pub fn plan(&self, of: PlannedCall, bits: AskedBits) -> Answer<CallPlan> {
        match of {
            PlannedCall::Syrk(op, matrices) => self.plan_syrk(op, matrices, bits),
            PlannedCall::Gemm(ops, matrices) => self.plan_gemm(ops, matrices, bits),
            PlannedCall::Cholesky(uplo, a) => self.plan_cholesky(uplo, a, bits.result),
            PlannedCall::Trsm(side, diag, matrices) => self.plan_trsm(side, diag, matrices, bits),
            PlannedCall::Solve(uplo, a, b) => self.plan_solve(uplo, a, b, bits.result),
        }
    }

    fn plan_syrk(&self, op: Op, [a, c]: [PlannedMatrix; 2], bits: AskedBits) -> Answer<CallPlan> {
        let arguments = ["trans", "a", "c", "operand_bits", "precision_bits"];
        let check = |open: &mut Opening<'_>| {
            open.choice("trans", op);
            let a = planned(open, "a", a, bits.operand)?;
            let c = planned(open, "c", c, bits.result)?;
            Ok((a, c, both_recorded(open, bits)))
        };
        self.collective("plan_syrk", &arguments, check, |call, team, (a, c, bits), shapes| {
            let (a, c) = (a.place(shapes)?, c.place(shapes)?);
            plan_syrk_over(call, team, op, a, &c, bits)
        })
    }

    fn plan_gemm(&self, ops: [Op; 2], [a, b, c]: [PlannedMatrix; 3], bits: AskedBits) -> Answer<CallPlan> {
        let arguments = ["trans_a", "trans_b", "a", "b", "c", "operand_bits", "precision_bits"];
        let check = |open: &mut Opening<'_>| {
            open.choice("trans_a", ops[0]);
            open.choice("trans_b", ops[1]);
            let a = planned(open, "a", a, bits.operand)?;
            let b = planned(open, "b", b, bits.operand)?;
            let c = planned(open, "c", c, bits.result)?;
            Ok((a, b, c, both_recorded(open, bits)))
        };
        self.collective("plan_gemm", &arguments, check, |call, team, (a, b, c, bits), shapes| {
            let (a, b, c) = (a.place(shapes)?, b.place(shapes)?, c.place(shapes)?);
            plan_gemm_over(call, team, ops, a, b, &c, bits)
        })
    }

    fn plan_cholesky(&self, uplo: Option<Uplo>, a: PlannedMatrix, bits: i64) -> Answer<CallPlan> {
        let check = |open: &mut Opening<'_>| {
            symmetric(open, uplo);
            let a = planned(open, "a", a, bits)?;
            Ok((a, recorded(open, "precision_bits", bits)))
        };
        self.collective("plan_cholesky", &["uplo", "a", "precision_bits"], check, |call, team, (a, bits), shapes| {
            plan_cholesky_over(call, team, uplo, a.place(shapes)?, bits)
        })
    }

    fn plan_trsm(&self, side: Side, diag: Diag, [t, b]: [PlannedMatrix; 2], bits: AskedBits) -> Answer<CallPlan> {
        let arguments = ["side", "diag", "t", "b", "operand_bits", "precision_bits"];
        let check = |open: &mut Opening<'_>| {
            open.choice("side", side);
            open.choice("diag", diag);
            let t = planned(open, "t", t, bits.operand)?;
            let b = planned(open, "b", b, bits.result)?;
            Ok((t, b, both_recorded(open, bits)))
        };
        self.collective("plan_trsm", &arguments, check, |call, team, (t, b, bits), shapes| {
            let (t, b) = (t.place(shapes)?, b.place(shapes)?);
            plan_trsm_over(call, team, side, diag, &t, b, bits)
        })
    }

    fn plan_solve(
        &self,
        uplo: Option<Uplo>,
        a: Option<PlannedMatrix>,
        b: PlannedMatrix,
        bits: i64,
    ) -> Answer<CallPlan> {
        let check = |open: &mut Opening<'_>| {
            symmetric(open, uplo);
            open.say("a", "it is", if a.is_none() { "null" } else { "a matrix" });
            let b = planned(open, "b", b, bits)?;
            let a = a.map(|a| planned(open, "a", a, bits)).transpose()?;
            Ok((a, b, recorded(open, "precision_bits", bits)))
        };
        self.collective(
            "plan_solve",
            &["uplo", "a", "b", "precision_bits"],
            check,
            |call, team, (a, b, bits), shapes| {
                let (a, b) = (a.map(|a| a.place(shapes)).transpose()?, b.place(shapes)?);
                plan_solve_over(call, team, uplo, a, &b, bits)
            },
        )
    }
}
