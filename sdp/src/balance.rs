//! The assignment of jobs to workers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The worker of each job: the most expensive jobs are assigned first, each to the worker with the least load so far,
/// and where several have it, to the first of them.
///
/// The largest load is at most 4/3 of the best possible one (Graham 1969). There must be a worker.
pub fn assign(costs: &[u64], workers: usize) -> Vec<usize> {
    let mut order = (0..costs.len()).collect::<Vec<_>>();
    order.sort_by_key(|&job| Reverse(costs[job])); // stable: equal costs keep their order
    let mut loads = (0..workers).map(|worker| Reverse((0u64, worker))).collect::<BinaryHeap<_>>();
    let mut given = vec![0; costs.len()];
    for job in order {
        let Some(mut least) = loads.peek_mut() else { break };
        let Reverse((load, worker)) = *least;
        given[job] = worker;
        *least = Reverse((load.saturating_add(costs[job]), worker));
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dear_jobs_go_first_to_who_has_least() {
        let costs = [7, 7, 6, 6, 5, 5, 4, 4, 4];
        let given = assign(&costs, 4);
        let load = |worker: usize| costs.iter().zip(&given).filter(|(_, w)| **w == worker).map(|(c, _)| c).sum::<u64>();
        // The best is 12; this rule gives 15, as Graham states.
        assert_eq!((0..4).map(load).max(), Some(15));
        assert_eq!(assign(&[5, 9], 4), [1, 0]);
        assert_eq!(assign(&[3, 3, 3], 2), [0, 1, 0]);
        assert_eq!(assign(&[u64::MAX, u64::MAX, u64::MAX], 1), [0, 0, 0]);
        assert!(assign(&[], 3).is_empty());
    }
}
