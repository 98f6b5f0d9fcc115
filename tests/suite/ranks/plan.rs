//! Plans for clusters that are not there: within the limit of a node, the same as a run on such a cluster makes.

use crate::common::{Kind, Rng, in_turn, matrix, seeds};
use std::cell::RefCell;
use sunzi::advanced::kernels::{self, EngineSpec};
use sunzi::comm::{Reduction, Transport, local};
use sunzi::distributed::{
    ClusterShape, DistOptions, PlanHook, Team, TeamOptions, TeamPlan, cholesky, even_operand_bytes, even_share,
    plan_syrk_cluster, plan_syrk_cluster_with, syrk,
};
use sunzi::plans::{Plan, ProductPlanOptions};
use sunzi::{Accuracy, Context, Error, Matrix};

fn context(limit: Option<u64>) -> Context {
    let builder = Context::builder().threads(1);
    limit.map_or(builder.clone(), |limit| builder.memory_bytes(limit)).build().unwrap()
}

fn random_cluster(rng: &mut Rng) -> ClusterShape {
    ClusterShape {
        nodes: 1 + rng.below(20),
        ranks_per_node: rng.pick(&[1, 2, 3, 7, 16, 64, 128]),
        threads: rng.pick(&[1, 1, 2, 5]),
    }
}

fn team(plan: &Plan) -> &TeamPlan {
    plan.team.as_ref().unwrap()
}

/// Cuts, of which a finer one has more.
fn pieces(plan: &Plan) -> usize {
    plan.batches * plan.bands * plan.chunks
}

#[test]
fn limits_are_respected_and_the_least_one_named_works() {
    for seed in seeds(30) {
        let mut rng = Rng::new(seed);
        let cluster = random_cluster(&mut rng);
        let (rows, cols) = (1 + rng.below(40_000), 1 + rng.below(1500));
        let bits = rng.pick(&[64, 200, 700, 1500]);
        let plan = |limit: Option<u64>| plan_syrk_cluster(&context(limit), cluster, rows, cols, bits);
        let label = format!("seed {seed}: {cluster:?}, {rows} x {cols}, {bits} bits");
        let whole = plan(None).unwrap();
        assert_eq!(pieces(&whole), 1, "{label}");
        let Err(Error::MemoryLimit { limit_bytes: 1, minimum_bytes: least }) = plan(Some(1)) else {
            panic!("{label}: one byte cannot do")
        };
        let finest = plan(Some(least)).unwrap();
        assert!(finest.planned_bytes <= least, "{label}: {} bytes of {least}", finest.planned_bytes);
        match plan(Some(least - 1)) {
            Err(Error::MemoryLimit { minimum_bytes, .. }) => assert_eq!(minimum_bytes, least, "{label}"),
            other => panic!("{label}: {least} is not the least: {other:?}"),
        }
        for _ in 0..5 {
            let limit = least + rng.word() % (whole.planned_bytes.max(least) - least + 1);
            let plan = plan(Some(limit)).unwrap();
            let largest = team(&plan).per_node.iter().map(|node| node.bytes.total()).max();
            assert_eq!(Some(plan.planned_bytes), largest, "{label}");
            assert!(plan.planned_bytes <= limit, "{label}: {} bytes of {limit}", plan.planned_bytes);
            assert_eq!(team(&plan).per_node.iter().map(|node| node.count).sum::<usize>(), cluster.nodes, "{label}");
            let node_rows = team(&plan).per_node.iter().map(|node| node.count * node.rows).sum::<usize>();
            assert!(team(&plan).per_node.len() > 2 || node_rows == rows, "{label}: {:?}", team(&plan).per_node);
        }
    }
}

#[test]
fn a_run_on_such_a_cluster_makes_the_same_plan() {
    let shapes = [(1, 3, 1, 200, 67), (2, 1, 2, 150, 40), (3, 2, 1, 301, 90), (2, 3, 1, 4, 33)];
    for (turn, (nodes, ranks_per_node, threads, rows, cols)) in shapes.into_iter().enumerate() {
        let cluster = ClusterShape { nodes, ranks_per_node, threads };
        // Entry by entry the bits depend on the entries.
        let options = ProductPlanOptions::new().accuracy(Accuracy::Norm);
        let by_norms = |limit| plan_syrk_cluster_with(&context(limit), cluster, (rows, cols), 128, &options);
        let whole = by_norms(None).unwrap();
        let Err(Error::MemoryLimit { minimum_bytes, .. }) = by_norms(Some(1)) else { panic!("one byte cannot do") };
        let p = matrix(Kind::Unit, rows, cols, 128, 4);
        let limits = [Some(minimum_bytes), Some((minimum_bytes + whole.planned_bytes) / 2)];
        for limit in in_turn(2, turn).map(|which| limits[which]).chain([None]) {
            let want = by_norms(limit).unwrap();
            let plans = local::run(nodes * ranks_per_node, |rank| {
                let options = TeamOptions::new().ranks_per_node(ranks_per_node);
                let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
                let builder = Context::builder().threads(threads);
                let ctx = limit.map_or(builder.clone(), |limit| builder.memory_bytes(limit)).build().unwrap();
                let own = even_share(rows, rank.size(), rank.rank());
                let block = p.view().block(own, 0..cols).unwrap();
                let held = block.to_matrix().unwrap().bytes();
                assert!(held <= even_operand_bytes(rows, rank.size(), cols, 128));
                let told = RefCell::new(Plan::default());
                let tell = |plan: &Plan| *told.borrow_mut() = plan.clone();
                let options = DistOptions::new().accuracy(Accuracy::Norm).on_plan(PlanHook(&tell));
                syrk(&ctx, &mut team, &[block], 128, &options).unwrap();
                told.into_inner()
            });
            for plan in plans {
                assert_eq!(format!("{plan:?}"), format!("{want:?}"), "{cluster:?}, {rows} x {cols}, limit {limit:?}");
            }
        }
    }
}

/// What earlier calls have kept is given back under a limit, also where no product is formed, and what is formed then
/// counts.
#[test]
fn limits_know_of_no_kept_window() {
    let (order, bits) = (40, 128);
    let (p, nothing) = (matrix(Kind::Unit, 60, order, bits, 4), matrix(Kind::Unit, 0, order, bits, 4));
    local::run(3, |rank| {
        let mut team = Team::new(rank.split(0).unwrap(), TeamOptions::new().ranks_per_node(2)).unwrap();
        let (free, options) = (context(None), DistOptions::new().accuracy(Accuracy::Norm));
        let product = |team: &mut Team, ctx: &Context, p: &Matrix| {
            syrk(ctx, team, &[p.view()], bits, &options).map(|outcome| outcome.result)
        };
        let l = product(&mut team, &free, &p).unwrap();
        assert!(team.window_bytes() > 0);
        let none = product(&mut team, &context(Some(1 << 30)), &nothing).unwrap();
        assert_eq!(team.window_bytes(), 0, "no product is formed");
        product(&mut team, &free, &p).unwrap();
        cholesky(&context(Some(1 << 30)), &team, &l, bits).unwrap();
        assert_eq!(team.window_bytes(), 0, "a factor");
        let mut least = [none.bytes()];
        team.node().all_reduce(Reduction::Sum, &mut least).unwrap();
        team.world().all_reduce(Reduction::Max, &mut least).unwrap();
        match product(&mut team, &context(Some(least[0] - 1)), &nothing) {
            Err(Error::MemoryLimit { minimum_bytes, .. }) => assert_eq!(minimum_bytes, least[0]),
            other => panic!("a byte too few: {}", other.is_ok()),
        }
        product(&mut team, &context(Some(least[0])), &nothing).unwrap();
        team.close().unwrap();
    });
}

/// Bits of one residue modulo each of the first moduli of a kernel together.
fn residue_bits(kernel: &str, primes: usize) -> u64 {
    let spec = EngineSpec { operand_bits: 256, modulus_bits: 4000, redundant: false };
    let engine = kernels::by_name(kernel).unwrap().prepare(&spec).unwrap();
    assert!(engine.moduli().len() >= primes);
    engine.moduli()[..primes].iter().map(|modulus| u64::from(64 - (modulus - 1).leading_zeros())).sum()
}

#[test]
fn what_nodes_send_is_what_they_do_not_own() {
    let plan = |nodes| {
        let cluster = ClusterShape { nodes, ranks_per_node: 4, threads: 1 };
        plan_syrk_cluster(&context(None), cluster, 5000, 1024, 256).unwrap()
    };
    assert_eq!(team(&plan(1)).sent_bytes, 0);
    let planes = |plan: &Plan| (128 * 129 / 2) * 8 * residue_bits(plan.kernel, plan.primes);
    for nodes in [2, 4, 9] {
        let plan = plan(nodes);
        let share = planes(&plan) - team(&plan).sent_bytes;
        // The node with the fewest blocks owns at least half of an even share.
        let even = planes(&plan) / nodes as u64;
        assert!(share <= even && share >= even / 2, "{nodes} nodes: {share} of {even}");
    }
}

#[test]
fn clusters_that_cannot_be_are_refused() {
    let cases = [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1 << 21, 1, 1), (usize::MAX, 2, 1), (1, 1, 1 << 17)];
    for (nodes, ranks_per_node, threads) in cases {
        let cluster = ClusterShape { nodes, ranks_per_node, threads };
        let refused = plan_syrk_cluster(&context(None), cluster, 10, 10, 64);
        assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{cluster:?}: {refused:?}");
    }
    // Empty products and more ranks than rows are no reason to refuse.
    for (rows, cols) in [(0, 5), (5, 0), (0, 0), (1, 1)] {
        let cluster = ClusterShape { nodes: 3, ranks_per_node: 2, threads: 1 };
        plan_syrk_cluster(&context(None), cluster, rows, cols, 64).unwrap();
    }
}
