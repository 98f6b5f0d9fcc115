//! The assignment of chunks of vectors, and of blocks of a symmetric matrix, to nodes.
//!
//! Of a block and its mirror image only one is stored, and one node multiplies with both. In one dimension a node has a
//! band of rows, and in each row of blocks the blocks in the half of the matrix that follows the diagonal cyclically.
//! In two dimensions `k^2` nodes share `k` bands: a diagonal node has the blocks of its own band, and the blocks of two
//! different bands are divided equally between the two nodes of that pair. Every node owns a part of the vector that it
//! needs for its own blocks. Source: figure 4 of Saule, Aktulga, Yang, Ng, Catalyurek, "An Out-of-Core Task-based
//! Middleware for Data-Intensive Scientific Computing", 2015.

use crate::chunks::Chunks;
use sunzi::{Error, Result};

/// The partition of blocks over the nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// By bands of rows.
    #[default]
    OneDimensional,
    /// By pairs of bands; the number of nodes is a square.
    TwoDimensional,
}

/// The owners of chunks and blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    layout: Layout,
    nodes: usize,
    /// Bands.
    side: usize,
}

impl Partition {
    /// # Errors
    /// [`Error::InvalidArgument`] for no nodes, and in two dimensions for a number of nodes that is not a square.
    pub fn new(layout: Layout, nodes: usize) -> Result<Partition> {
        let side = match layout {
            Layout::OneDimensional => nodes,
            Layout::TwoDimensional => nodes.isqrt(),
        };
        if nodes == 0 || (layout == Layout::TwoDimensional && side * side != nodes) {
            let message = format!(
                "{nodes} nodes are not possible; choose at least 1, and in two dimensions a square number such as 4 or \
                 9"
            );
            return Err(Error::InvalidArgument(message));
        }
        Ok(Partition { layout, nodes, side })
    }

    /// Number of nodes.
    pub fn nodes(self) -> usize {
        self.nodes
    }

    /// The node of a chunk of vectors.
    pub fn owner(self, chunks: Chunks, chunk: usize) -> usize {
        match self.layout {
            Layout::OneDimensional => self.part(chunks, chunk).0,
            Layout::TwoDimensional => {
                let (band, part) = self.part(chunks, chunk);
                self.node(band, self.partner(band, part))
            }
        }
    }

    /// The node of the block in these chunks of rows and columns; the same for its mirror image.
    pub fn block_owner(self, chunks: Chunks, row: usize, col: usize) -> usize {
        let (low, high) = (row.min(col), row.max(col));
        match self.layout {
            Layout::OneDimensional => {
                // The later one of the pair lies behind the earlier one, or in front of it around the end.
                let is_behind = 2 * (high - low) <= chunks.count();
                self.part(chunks, if is_behind { low } else { high }).0
            }
            Layout::TwoDimensional => {
                let ((low_band, low_part), (high_band, _)) = (self.part(chunks, low), self.part(chunks, high));
                if low_band == high_band {
                    return self.node(low_band, low_band);
                }
                // The lower band is halved; its node has the half in which its own part of the vector lies.
                let own = (0..self.side).find(|&part| self.partner(low_band, part) == high_band).unwrap_or(0);
                let half = |part: usize| 2 * part + 1 > self.side;
                let is_upper = if self.side % 2 == 1 && low_part == self.side / 2 {
                    self.is_upper_half(chunks, low)
                } else {
                    half(low_part)
                };
                if is_upper == half(own) { self.node(low_band, high_band) } else { self.node(high_band, low_band) }
            }
        }
    }

    /// Number of chunks of vectors that a node needs for its blocks, and number of those that it does not own, for a
    /// full matrix.
    pub fn touched(self, chunks: Chunks, node: usize) -> (usize, usize) {
        let count = chunks.count();
        let mut touched = vec![false; count];
        for row in 0..count {
            for col in 0..=row {
                if self.block_owner(chunks, row, col) == node {
                    (touched[row], touched[col]) = (true, true);
                }
            }
        }
        let foreign = (0..count).filter(|&chunk| touched[chunk] && self.owner(chunks, chunk) != node).count();
        (touched.into_iter().filter(|&one| one).count(), foreign)
    }

    /// The band of a chunk, and the part of the band.
    fn part(self, chunks: Chunks, chunk: usize) -> (usize, usize) {
        let count = chunks.count().max(1);
        let band = chunk * self.side / count;
        let (start, end) = ((band * count).div_ceil(self.side), ((band + 1) * count).div_ceil(self.side));
        (band, (chunk - start) * self.side / (end - start).max(1))
    }

    /// Whether a chunk lies in the upper half of its band.
    fn is_upper_half(self, chunks: Chunks, chunk: usize) -> bool {
        let count = chunks.count().max(1);
        let band = chunk * self.side / count;
        let (start, end) = ((band * count).div_ceil(self.side), ((band + 1) * count).div_ceil(self.side));
        2 * (chunk - start) >= end - start
    }

    /// The band whose pair with `band` owns a part of it: the middle part is the diagonal node's.
    fn partner(self, band: usize, part: usize) -> usize {
        let middle = self.side / 2;
        match part.cmp(&middle) {
            std::cmp::Ordering::Equal => band,
            // The others in order, without the band itself.
            _ => {
                let rank = if part < middle { part } else { part - 1 };
                if rank < band { rank } else { rank + 1 }
            }
        }
    }

    fn node(self, row: usize, col: usize) -> usize {
        row * self.side + col
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(layout: Layout, nodes: usize, chunks: Chunks) -> f64 {
        let partition = Partition::new(layout, nodes).unwrap();
        (0..nodes).map(|node| partition.touched(chunks, node).1).sum::<usize>() as f64
    }

    #[test]
    fn two_dimensions_move_less_than_one() {
        for (nodes, count, ratio) in [(4, 32, 0.75), (4, 64, 0.75), (9, 36, 2.0 / 3.0), (9, 72, 2.0 / 3.0)] {
            let chunks = Chunks::new(10 * count, 10).unwrap();
            let found = volume(Layout::TwoDimensional, nodes, chunks) / volume(Layout::OneDimensional, nodes, chunks);
            assert!((found / ratio - 1.0).abs() < 0.05, "{nodes} {count}: {found}");
        }
    }

    #[test]
    fn nodes_have_like_shares() {
        for (layout, nodes, count) in [
            (Layout::OneDimensional, 4, 64),
            (Layout::OneDimensional, 5, 65),
            (Layout::TwoDimensional, 4, 64),
            (Layout::TwoDimensional, 9, 72),
            (Layout::TwoDimensional, 16, 64),
        ] {
            let partition = Partition::new(layout, nodes).unwrap();
            let chunks = Chunks::new(count, 1).unwrap();
            let (mut blocks, mut parts) = (vec![0; nodes], vec![0; nodes]);
            for row in 0..count {
                parts[partition.owner(chunks, row)] += 1;
                for col in 0..=row {
                    blocks[partition.block_owner(chunks, row, col)] += 1;
                    assert_eq!(partition.block_owner(chunks, row, col), partition.block_owner(chunks, col, row));
                }
            }
            let (least, most) = (blocks.iter().min().unwrap(), blocks.iter().max().unwrap());
            assert!(*most as f64 <= 1.25 * *least as f64, "{layout:?} {nodes}: {blocks:?}");
            assert!(parts.iter().all(|&part| part == count / nodes), "{layout:?} {nodes}: {parts:?}");
        }
    }

    #[test]
    fn small_and_odd_numbers_of_chunks_have_owners() {
        for (layout, nodes) in [(Layout::OneDimensional, 7), (Layout::TwoDimensional, 9)] {
            let partition = Partition::new(layout, nodes).unwrap();
            for count in 1..40 {
                let chunks = Chunks::new(count, 1).unwrap();
                for row in 0..count {
                    assert!(partition.owner(chunks, row) < nodes);
                    assert!((0..count).all(|col| partition.block_owner(chunks, row, col) < nodes));
                }
            }
        }
        let error = Partition::new(Layout::TwoDimensional, 8).unwrap_err().to_string();
        assert_eq!(
            error,
            "8 nodes are not possible; choose at least 1, and in two dimensions a square number such as 4 or 9"
        );
    }
}
