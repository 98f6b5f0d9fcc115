//! Longest processing time first: which worker takes which job.

/// The worker of each job, in the order of `costs`, and the load of each worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Worker of each job.
    pub worker: Vec<usize>,
    /// Sum of the costs of each worker's jobs.
    pub loads: Vec<u64>,
}

impl Assignment {
    /// Largest load divided by the mean load; 1 if there is no load.
    pub fn max_over_mean(&self) -> f64 {
        let total: u64 = self.loads.iter().sum();
        let largest = self.loads.iter().max().copied().unwrap_or(0);
        if total == 0 { 1.0 } else { largest as f64 * self.loads.len() as f64 / total as f64 }
    }
}

/// Assigns each job, the most expensive first, to the worker with the smallest load so far; for equal loads to the
/// first.
///
/// At most 4/3 of the best possible largest load (Graham 1969). Cost: `jobs * (log jobs + log workers)`.
pub fn assign(costs: &[u64], workers: usize) -> Assignment {
    assert!(workers > 0);
    let mut order = (0..costs.len()).collect::<Vec<_>>();
    order.sort_by_key(|&job| std::cmp::Reverse(costs[job])); // stable: equal costs keep their order
    let mut heap =
        (0..workers).map(|worker| std::cmp::Reverse((0u64, worker))).collect::<std::collections::BinaryHeap<_>>();
    let mut result = Assignment { worker: vec![0; costs.len()], loads: vec![0; workers] };
    for job in order {
        let mut least = heap.peek_mut().expect("there is a worker");
        let std::cmp::Reverse((load, worker)) = *least;
        result.worker[job] = worker;
        result.loads[worker] = load + costs[job];
        *least = std::cmp::Reverse((load + costs[job], worker));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classic_example_is_within_four_thirds() {
        let assignment = assign(&[7, 7, 6, 6, 5, 5, 4, 4, 4], 4);
        assert_eq!(assignment.loads.iter().sum::<u64>(), 48);
        assert_eq!(assignment.loads.iter().max(), Some(&15)); // the best is 12; LPT gives 15, as Graham states
    }

    #[test]
    fn no_job_and_more_workers_than_jobs_work() {
        assert_eq!(assign(&[], 3).max_over_mean(), 1.0);
        let assignment = assign(&[5, 9], 4);
        assert_eq!(assignment.max_over_mean(), 9.0 / (14.0 / 4.0));
        assert_eq!((assignment.worker, assignment.loads), (vec![1, 0], vec![9, 5, 0, 0]));
    }
}
