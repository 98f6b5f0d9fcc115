//! The planes of one batch of primes, cut into jobs of equal load for all workers.
//!
//! As many primes as possible go whole to workers, evenly, since a kernel is fastest on a whole plane. The left-over
//! primes are laid end to end and cut into one share for each worker; a share is a piece of one plane, or the end of
//! one and the start of the next. Longest-processing-time-first finds these shares again: whole shares come first, then
//! the larger parts of the split shares, each to a worker of its own, and the largest smaller part meets the smallest
//! larger one. So loads differ only by the rounding of the cuts to whole blocks.

use crate::plan::lpt::{self, Assignment};
use std::ops::Range;

/// One kernel call: some blocks of the product plane of one prime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of the prime within the batch.
    pub prime: usize,
    /// Linear block indices, see [`crate::plan::BlockGrid`].
    pub blocks: Range<usize>,
}

/// The jobs of one batch, sorted by prime and first block, with their workers.
#[derive(Clone, Debug)]
pub struct JobList {
    /// All jobs; they cover every block of every prime once.
    pub jobs: Vec<Job>,
    /// Worker of each job and load of each worker, in blocks.
    pub assignment: Assignment,
}

impl JobList {
    /// Number of jobs of each worker.
    pub fn per_worker(&self) -> Vec<usize> {
        let mut counts = vec![0; self.assignment.loads.len()];
        self.assignment.worker.iter().for_each(|&worker| counts[worker] += 1);
        counts
    }
}

/// Divides `primes` planes of `blocks` blocks each into jobs for `workers` workers.
pub fn plan_jobs(primes: usize, blocks: usize, workers: usize) -> JobList {
    let left_over = primes % workers;
    let whole = primes - left_over;
    let mut jobs = Vec::with_capacity(whole + left_over + workers);
    jobs.extend((0..whole).map(|prime| Job { prime, blocks: 0..blocks }));
    let line = left_over as u128 * blocks as u128;
    for share in 0..if left_over == 0 { 0 } else { workers as u128 } {
        let (mut at, end) = (share * line / workers as u128, (share + 1) * line / workers as u128);
        while at < end {
            let (plane, first) = ((at / blocks as u128) as usize, (at % blocks as u128) as usize);
            let last = ((end - plane as u128 * blocks as u128) as usize).min(blocks);
            jobs.push(Job { prime: whole + plane, blocks: first..last });
            at += (last - first) as u128;
        }
    }
    let costs = jobs[whole..].iter().map(|job| job.blocks.len() as u64).collect::<Vec<_>>();
    let shares = lpt::assign(&costs, workers);
    // Neighbouring planes go to one worker, in whose memory they then lie.
    let mut worker = Vec::with_capacity(jobs.len());
    worker.extend((0..whole).map(|prime| prime / (whole / workers)));
    worker.extend(shares.worker);
    let whole_load = (whole / workers * blocks) as u64;
    let assignment = Assignment { worker, loads: shares.loads.into_iter().map(|load| load + whole_load).collect() };
    JobList { assignment, jobs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::BlockGrid;

    #[test]
    fn jobs_cover_every_block_once_and_balance() {
        let blocks = BlockGrid::triangle(1000).len();
        let mut worst = 1.0f64;
        for workers in 1..=128 {
            for primes in 5..=400 {
                let list = plan_jobs(primes, blocks, workers);
                let mut next = (0, 0);
                for job in &list.jobs {
                    assert_eq!((job.prime, job.blocks.start), next, "{primes} primes, {workers} workers");
                    assert!(!job.blocks.is_empty());
                    next = if job.blocks.end == blocks { (job.prime + 1, 0) } else { (job.prime, job.blocks.end) };
                }
                assert_eq!(next, (primes, 0));
                let whole = list.jobs.iter().filter(|job| job.blocks.len() == blocks).count();
                assert!(whole >= primes / workers * workers);
                let mut loads = vec![0; workers];
                for (job, &worker) in list.jobs.iter().zip(&list.assignment.worker) {
                    loads[worker] += job.blocks.len() as u64;
                }
                assert_eq!(loads, list.assignment.loads);
                worst = worst.max(list.assignment.max_over_mean());
            }
        }
        assert!(worst <= 1.005, "{worst}");
    }

    #[test]
    fn few_blocks_still_cover() {
        for (primes, blocks, workers) in [(1, 1, 8), (3, 2, 4), (7, 3, 2), (0, 5, 3), (1, 6, 1)] {
            let list = plan_jobs(primes, blocks, workers);
            assert_eq!(list.jobs.iter().map(|job| job.blocks.len()).sum::<usize>(), primes * blocks);
            assert_eq!(list.assignment.loads.len(), workers);
            let largest = list.assignment.loads.iter().max().copied().unwrap();
            assert!(largest as usize <= (primes * blocks).div_ceil(workers) + 1);
        }
    }
}
