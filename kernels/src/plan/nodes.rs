//! How the rows of a product lie on the ranks of a node, and which rank's worker takes which job.

use std::ops::Range;

/// The ranks of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeShape {
    /// Contracted rows that each rank holds.
    pub rows: Vec<usize>,
    /// Worker threads of each rank.
    pub threads: Vec<usize>,
}

impl NodeShape {
    /// The node of a single process.
    pub fn alone(rows: usize, threads: usize) -> NodeShape {
        NodeShape { rows: vec![rows], threads: vec![threads] }
    }

    /// Ranks of the node.
    pub fn ranks(&self) -> usize {
        self.rows.len()
    }

    /// Contracted rows on the node.
    pub fn total_rows(&self) -> usize {
        self.rows.iter().sum()
    }

    /// Workers of the node.
    pub fn workers(&self) -> usize {
        self.threads.iter().sum()
    }

    /// The workers of `rank`, out of all workers of the node.
    pub fn workers_of(&self, rank: usize) -> Range<usize> {
        let first = self.threads[..rank].iter().sum::<usize>();
        first..first + self.threads[rank]
    }

    /// The rank of `worker`.
    pub fn rank_of(&self, worker: usize) -> usize {
        let mut end = 0;
        self.threads
            .iter()
            .position(|threads| {
                end += threads;
                worker < end
            })
            .expect("the worker is one of the node's")
    }

    /// Rows of chunk `index` out of `chunks`, stacked rank by rank: the first row of each rank, followed by the number
    /// of rows.
    pub fn chunk_starts(&self, chunks: usize, index: usize) -> Vec<usize> {
        let mut starts = Vec::with_capacity(self.ranks() + 1);
        starts.push(0);
        for &rows in &self.rows {
            starts.push(starts[starts.len() - 1] + rank_chunk(rows, chunks, index).len());
        }
        starts
    }

    /// Rows of chunk `index` out of `chunks` on the node.
    pub fn chunk_rows(&self, chunks: usize, index: usize) -> usize {
        self.rows.iter().map(|&rows| rank_chunk(rows, chunks, index).len()).sum()
    }
}

/// The rows of a rank that holds `rows` rows which belong to chunk `index` out of `chunks`.
///
/// Every rank divides its own rows evenly, so that all ranks are busy in every chunk.
pub fn rank_chunk(rows: usize, chunks: usize, index: usize) -> Range<usize> {
    let each = rows.div_ceil(chunks.max(1));
    (index * each).min(rows)..((index + 1) * each).min(rows)
}

/// The rows of `rank` if `rows` rows are distributed evenly over `ranks` ranks.
pub fn even_share(rows: usize, ranks: usize, rank: usize) -> Range<usize> {
    let (each, more) = (rows / ranks, rows % ranks);
    let start = |rank: usize| rank * each + rank.min(more);
    start(rank)..start(rank + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_rows_of_every_rank() {
        let shape = NodeShape { rows: vec![0, 1, 10, 1000, 7], threads: vec![1, 2, 3, 1, 1] };
        for chunks in 1..30 {
            let mut next = vec![0; shape.ranks()];
            let mut total = 0;
            for index in 0..chunks {
                let starts = shape.chunk_starts(chunks, index);
                assert_eq!(starts[shape.ranks()], shape.chunk_rows(chunks, index));
                assert!(shape.chunk_rows(chunks, index) <= shape.chunk_rows(chunks, 0));
                for (rank, &rows) in shape.rows.iter().enumerate() {
                    let chunk = rank_chunk(rows, chunks, index);
                    assert_eq!(chunk.len(), starts[rank + 1] - starts[rank]);
                    assert!(chunk.is_empty() || chunk.start == next[rank]);
                    next[rank] += chunk.len();
                    total += chunk.len();
                }
            }
            assert_eq!((next, total), (shape.rows.clone(), shape.total_rows()));
        }
        for worker in 0..shape.workers() {
            assert!(shape.workers_of(shape.rank_of(worker)).contains(&worker));
        }
    }
}
