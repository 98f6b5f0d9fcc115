//! What the ranks of nodes allocate together, counted by the allocator: no more than the plan of their nodes.
//!
//! The ranks are threads here, so that their windows and messages are on the one heap that is counted.

use crate::{alone, matrix, rise};
use sunzi::Context;
use sunzi::advanced::kernels;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{ClusterShape, DistOptions, Team, TeamOptions, even_share, plan_syrk_cluster, syrk};

/// Bytes of the longest message between nodes.
const MESSAGE_BYTES: u64 = 8 << 16;

#[test]
fn nodes_keep_their_plan() {
    let _alone = alone();
    let (rows, cols, bits) = (600, 300, 400);
    let p = matrix(rows, cols, bits, 4);
    for kernel in kernels::available().iter().map(|kernel| kernel.name()).filter(|kernel| *kernel != "reference") {
        for (nodes, ranks_per_node, threads) in [(1, 1, 2), (1, 3, 1), (2, 2, 1), (4, 1, 2)] {
            let cluster = ClusterShape { nodes, ranks_per_node, threads };
            let free = Context::builder().threads(1).kernel(kernel).build().unwrap();
            let whole = plan_syrk_cluster(&free, cluster, rows, cols, bits).unwrap().planned_bytes;
            for limit in [None, Some(whole * 3 / 4)] {
                let on_rank = |rank: &local::LocalRank| {
                    let options = TeamOptions::new().ranks_per_node(ranks_per_node);
                    let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
                    let builder = Context::builder().threads(threads).kernel(kernel);
                    let ctx = limit.map_or(builder.clone(), |limit| builder.memory_bytes(limit)).build().unwrap();
                    let block = p.view().block(even_share(rows, rank.size(), rank.rank()), 0..cols).unwrap();
                    let outcome = syrk(&ctx, &mut team, &[block], bits, &DistOptions::default()).unwrap();
                    team.close().unwrap();
                    outcome.report.team.unwrap().plan
                };
                let (peak, plans) = rise(|| local::run(nodes * ranks_per_node, on_rank));
                let planned = plans[0].per_node.iter().map(|node| node.count as u64 * node.planned_bytes).sum::<u64>();
                let what = format!("{kernel}, {cluster:?}, limit {limit:?}");
                println!("{what}: peak {peak}, planned {planned}");
                // A message between threads is copied once more on its way; each rank has at most one such copy.
                let mail = if nodes > 1 { (nodes * ranks_per_node) as u64 * MESSAGE_BYTES } else { 0 };
                assert!(peak <= planned + mail, "{what}: peak {peak} above planned {planned}");
                assert!(peak * 10 >= planned * 8, "{what}: peak {peak} far below planned {planned}");
            }
        }
    }
}
