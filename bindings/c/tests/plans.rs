//! Plans of calls over ranks, which are threads here, so that the bytes of all of them are counted together: as a limit
//! what a plan says of a node is not refused, and it is not exceeded.

mod common;
#[path = "calls/collective/dealt.rs"]
mod dealt;

use common::{Array, Ctx, Kind, number};
use dealt::{Choice, Deal, Rng, Whole, on_ranks};
use rug::Float;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use sunzi_c::sunzi_status::*;
use sunzi_c::*;

/// Held by a test: the bytes of all threads are counted together.
static ALONE: Mutex<()> = Mutex::new(());

/// Bytes beside what plans count: contexts, threads, lists of a few words for each tile.
const BESIDE: u64 = 256 << 10;

/// What plans count for each of several ranks as a process with MPI, and threads of one do not take.
const PROCESS: u64 = 512 << 10;

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

    /// Planned bytes without those that only processes take.
    fn of_threads(&self, planned: u64) -> u64 {
        if self.ranks > 1 { planned - self.ranks as u64 * PROCESS } else { planned }
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
            if peak > self.of_threads(node) + BESIDE {
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
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let cases = 0..60 * sunzi::advanced::testing::effort();
    let cases = (1..=4).map(on_one_rank).chain(cases.map(any));
    let exceeded = cases.filter_map(|case| case.check()).collect::<Vec<_>>();
    assert!(exceeded.is_empty(), "{} plans: {exceeded:#?}", exceeded.len());
}

/// Dealt out evenly, entry by entry, as a caller's own solver has it.
fn evenly(verb: Verb, shapes: &[(usize, usize)], ranks: usize) -> Case {
    let rows = if ranks == 4 { 2 } else { 1 };
    let deal = |&(length, width): &(usize, usize)| Deal {
        shape: [length, width],
        grid: [rows, ranks / rows],
        order: SUNZI_COL_MAJOR,
        along: [SUNZI_ALONG_GRID_ROW, SUNZI_ALONG_GRID_COL],
        block: [1; 2],
        first: [0; 2],
        counts: [Vec::new(), Vec::new()],
    };
    let deals = shapes.iter().map(deal).collect();
    Case { verb, shapes: shapes.to_vec(), bits: 512, ranks, deals, kind: (Kind::Mpfr, SUNZI_COL_MAJOR) }
}

/// What plans have on each rank for memory of messages that have gone, which the allocator keeps and does not count.
const FREED: u64 = 512 << 10;

/// Bytes of the pieces of messages that are on their way between threads.
fn mail(ranks: usize) -> u64 {
    (ranks * (ranks - 1)) as u64 * (64 << 10)
}

/// The plans that reports have of all ranks beside what these take together, without a limit and with the plan's.
#[test]
fn reports_of_all_ranks_have_what_they_take_and_not_much_more() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let n = 200;
    let trsm = Verb::Trsm { side: SUNZI_LEFT, diag: SUNZI_NON_UNIT };
    let mut wrong = Vec::new();
    for ranks in [2, 4] {
        for (verb, shapes) in [
            (Verb::Syrk, vec![(2 * n, n), (n, n)]),
            (Verb::Gemm, vec![(n, n), (n, n), (n, n)]),
            (Verb::Cholesky(SUNZI_LOWER), vec![(n, n)]),
            (trsm, vec![(n, n), (n, n)]),
            (trsm, vec![(n, n), (n, 5)]),
            (Verb::Solve, vec![(n, n), (n, n)]),
            (Verb::Solve, vec![(n, n), (n, 5)]),
        ] {
            let case = evenly(verb, &shapes, ranks);
            let asked = case.on_ranks(0, |ctx, of| case.ask(ctx, of));
            for limit in [0, asked[0].1.node_bytes] {
                let reports = case.on_ranks(limit, |ctx, of| {
                    // Behind a call of all ranks, each of which has its arrays then.
                    ctx.ok(case.ask(ctx, of).0, "the plan within its own bytes");
                    ctx.ok(case.call(ctx, of), "the call within its plan");
                    ctx.report()
                });
                let planned = case.of_threads(reports.iter().map(|report| report.planned_bytes).sum());
                let peak = reports.iter().map(|report| report.peak_bytes).max().unwrap_or(0);
                println!("{verb:?} {shapes:?} on {ranks} within {limit}: {peak} of {planned}");
                let kept = peak + FREED * ranks as u64;
                if peak > planned + BESIDE + mail(ranks) || planned * 10 > kept * 14 {
                    wrong.push(format!("{verb:?} {shapes:?} on {ranks} within {limit}: {peak} of {planned}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
