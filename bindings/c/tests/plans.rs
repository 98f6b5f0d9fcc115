//! Plans of calls over ranks, which are threads here, so that the bytes of all of them are counted together: as a limit
//! what a plan says of a node is not refused, and it is not exceeded.

mod common;
#[path = "collective/dealt.rs"]
mod dealt;

use common::{Array, Ctx, Kind, number};
use dealt::{Choice, Deal, Rng, Whole, on_ranks};
use rug::Float;
use std::ptr;
use sunzi_c::sunzi_status::*;
use sunzi_c::*;

/// Bytes beside what plans count: contexts, threads, lists of a few words for each tile.
const BESIDE: u64 = 256 << 10;

#[derive(Clone, Copy, Debug)]
enum Verb {
    Syrk,
    Gemm,
    Cholesky(i32),
    Trsm { side: i32, diag: i32 },
    Solve,
}

/// A call whose numbers are of one size, and how its operands are dealt out.
#[derive(Debug)]
struct Case {
    verb: Verb,
    shapes: Vec<(usize, usize)>,
    bits: u32,
    ranks: usize,
    deals: Vec<Deal>,
    kind: (Kind, i32),
}

fn any(seed: u64) -> Case {
    let mut rng = Rng(seed);
    let rng = &mut rng;
    let (n, m, k) = (rng.pick(&[1, 20, 64, 130, 200]), rng.pick(&[1, 5, 9, 40, 130]), rng.pick(&[1, 30, 150]));
    let side = rng.pick(&[SUNZI_LEFT, SUNZI_RIGHT]);
    let right = if side == SUNZI_LEFT { (n, m) } else { (m, n) };
    let (verb, shapes) = match rng.below(6) {
        0 => (Verb::Syrk, vec![(k, n), (n, n)]),
        1 => (Verb::Gemm, vec![(k, n), (k, m), (n, m)]),
        2 | 3 => (Verb::Cholesky(rng.pick(&[SUNZI_LOWER, SUNZI_UPPER, SUNZI_BOTH])), vec![(n, n)]),
        4 => (Verb::Trsm { side, diag: rng.pick(&[SUNZI_UNIT, SUNZI_NON_UNIT]) }, vec![(n, n), right]),
        _ => (Verb::Solve, vec![(n, n), (n, m)]),
    };
    let ranks = rng.pick(&[1, 2, 4]);
    let deals = shapes.iter().map(|&shape| match rng.below(3) {
        0 => Deal::on_first(shape, ranks),
        _ => Deal::any(rng, shape, ranks),
    });
    let deals = deals.collect();
    let kind = (rng.pick(&[Kind::Mpfr, Kind::Mpfr, Kind::Limbs]), rng.pick(&[SUNZI_ROW_MAJOR, SUNZI_COL_MAJOR]));
    Case { verb, shapes, bits: rng.pick(&[64, 200, 512]), ranks, deals, kind }
}

impl Case {
    fn wholes(&self) -> Vec<Whole> {
        let square = |at: usize| at == 0 && matches!(self.verb, Verb::Cholesky(_) | Verb::Trsm { .. } | Verb::Solve);
        let value = |at: usize, row: usize, col: usize| match square(at) {
            true if row == col => Float::with_val(self.bits, 9),
            true => Float::with_val(self.bits, 1) / (1000 + row + col) as u32,
            false => number((at * 7919 + row * 211 + col) as u64, self.bits),
        };
        let shapes = self.shapes.iter().enumerate();
        shapes.map(|(at, &shape)| Whole::new(shape, |row, col| value(at, row, col))).collect()
    }

    fn ask(&self, ctx: &Ctx, of: &[sunzi_dist_matrix]) -> (sunzi_status, sunzi_mpi_plan) {
        let (mut plan, bits, ctx) = (sunzi_mpi_plan::default(), i64::from(self.bits), ctx.0);
        // SAFETY: all are live.
        let status = unsafe {
            match self.verb {
                Verb::Syrk => sunzi_mpi_plan_syrk(ctx, SUNZI_TRANS, &of[0], &of[1], bits, bits, &mut plan),
                Verb::Gemm => {
                    let trans = [SUNZI_TRANS, SUNZI_NO_TRANS];
                    sunzi_mpi_plan_gemm(ctx, trans[0], trans[1], &of[0], &of[1], &of[2], bits, bits, &mut plan)
                }
                Verb::Cholesky(uplo) => sunzi_mpi_plan_cholesky(ctx, uplo, &of[0], bits, &mut plan),
                Verb::Trsm { side, diag } => {
                    sunzi_mpi_plan_trsm(ctx, side, diag, &of[0], &of[1], bits, bits, &mut plan)
                }
                Verb::Solve => sunzi_mpi_plan_solve(ctx, SUNZI_LOWER, &of[0], &of[1], bits, &mut plan),
            }
        };
        (status, plan)
    }

    fn call(&self, ctx: &Ctx, of: &[sunzi_dist_matrix]) -> sunzi_status {
        let (none, ctx) = (ptr::null(), ctx.0);
        // SAFETY: all are live.
        unsafe {
            match self.verb {
                Verb::Syrk => sunzi_mpi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, none, &of[0], none, &of[1]),
                Verb::Gemm => sunzi_mpi_gemm(ctx, SUNZI_TRANS, SUNZI_NO_TRANS, none, &of[0], &of[1], none, &of[2]),
                Verb::Cholesky(uplo) => sunzi_mpi_cholesky(ctx, uplo, &of[0]),
                Verb::Trsm { side, diag } => {
                    sunzi_mpi_trsm(ctx, side, SUNZI_LOWER, SUNZI_NO_TRANS, diag, none, &of[0], &of[1])
                }
                Verb::Solve => sunzi_mpi_solve(ctx, SUNZI_LOWER, &of[0], &of[1]),
            }
        }
    }

    /// On each rank what `work` gives for its parts, under a limit.
    fn on_ranks<R: Send>(&self, limit: u64, work: impl Fn(&Ctx, &[sunzi_dist_matrix]) -> R + Sync) -> Vec<R> {
        let wholes = self.wholes();
        on_ranks(self.ranks, Choice { accuracy: SUNZI_NORM, memory_bytes: limit }, |ctx, rank| {
            let parts = wholes.iter().zip(&self.deals).map(|(whole, deal)| deal.part(whole, rank, self.kind));
            let parts = parts.collect::<Vec<_>>();
            let described = parts.iter().map(Array::describe).zip(&self.deals);
            work(ctx, &described.map(|(part, deal)| deal.describe(part)).collect::<Vec<_>>())
        })
    }

    /// Asks, then calls without a limit and with the plan's as one; what was exceeded, by how much.
    fn check(&self) -> Option<String> {
        let asked = self.on_ranks(0, |ctx, of| self.ask(ctx, of));
        let node = asked[0].1.node_bytes;
        assert!(asked.iter().all(|(status, plan)| *status == SUNZI_OK && plan.node_bytes == node), "{self:?}");
        for limit in [0, node] {
            let called = self.on_ranks(limit, |ctx, of| {
                let (status, plan) = self.ask(ctx, of);
                ctx.ok(status, "the plan within its own bytes");
                ctx.ok(self.call(ctx, of), "the call within its plan");
                (plan.node_bytes, ctx.report().peak_bytes)
            });
            if called[0].0 > node {
                return Some(format!("{} of {node} planned within them: {self:?}", called[0].0));
            }
            let peak = called.iter().map(|of| of.1).max().unwrap_or(0);
            if peak > node + BESIDE {
                return Some(format!("{peak} of {node} within {limit}: {self:?}"));
            }
        }
        None
    }
}

/// A matrix on one rank, whose messages no limit counts: under one its tiles travel too.
fn on_one_rank(ranks: usize) -> Case {
    let (shape, kind) = ((200, 200), (Kind::Mpfr, SUNZI_ROW_MAJOR));
    let (verb, deals) = (Verb::Cholesky(SUNZI_LOWER), vec![Deal::on_first(shape, ranks)]);
    Case { verb, shapes: vec![shape], bits: 512, ranks, deals, kind }
}

#[test]
fn a_plan_of_a_node_is_neither_refused_nor_exceeded() {
    let cases = 0..60 * sunzi::advanced::testing::effort();
    let cases = (1..=4).map(on_one_rank).chain(cases.map(any));
    let exceeded = cases.filter_map(|case| case.check()).collect::<Vec<_>>();
    assert!(exceeded.is_empty(), "{} plans: {exceeded:#?}", exceeded.len());
}
