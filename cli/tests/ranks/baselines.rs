//! ScaLAPACK as a baseline: its factors on every grid against a plain loop.

use crate::Case;
#[cfg(feature = "scalapack")]
use crate::Run;

/// The cases of this file: none without the cargo feature `scalapack`.
#[cfg(not(feature = "scalapack"))]
pub const CASES: &[Case] = &[];

/// The cases of this file.
#[cfg(feature = "scalapack")]
pub const CASES: &[Case] = &[
    Case { name: "baselines::pdpotrf_factors_on_every_grid", ranks: &[1, 2, 4], run: Run::Group(scalapack::grids) },
    Case { name: "baselines::pdpotrf_refuses_and_fails_alike", ranks: &[2, 3], run: Run::Group(scalapack::errors) },
];

#[cfg(feature = "scalapack")]
mod scalapack {
    use sunzi::comm::mpi::MpiRank;
    use sunzi::comm::{Reduction, Transport, barrier};
    use sunzi_lab::baselines::scalapack::{BlockCyclicLayout, Pdpotrf};

    /// Entries of `L` that are exact in doubles, as are all sums of `L L^T`.
    fn factor(i: usize, j: usize) -> f64 {
        match i.cmp(&j) {
            std::cmp::Ordering::Equal => 1.0 + (i % 3) as f64,
            std::cmp::Ordering::Greater => ((i * 7 + j * 13) % 5) as f64 - 2.0,
            std::cmp::Ordering::Less => 0.0,
        }
    }

    fn gram(i: usize, j: usize) -> f64 {
        (0..=i.min(j)).map(|k| factor(i, k) * factor(j, k)).sum()
    }

    /// The library may multiply by a rounded inverse where exact arithmetic divides.
    const TOLERANCE: f64 = 1e-9;

    pub fn grids(rank: MpiRank) {
        for grid_rows in (1..=rank.size()).filter(|rows| rank.size().is_multiple_of(*rows)) {
            for (order, block_rows) in [(0, 4), (1, 4), (17, 4), (100, 16), (150, 64), (30, 64)] {
                let layout = BlockCyclicLayout { order, block_rows, grid_rows, grid_cols: rank.size() / grid_rows };
                let mut baseline = Pdpotrf::new(&rank, layout).unwrap();
                let seconds = baseline.measure(2, gram).unwrap();
                assert!(0.0 < seconds.min && seconds.min <= seconds.median);
                let mut found = vec![0u64; order * order];
                for (at, owners) in found.iter_mut().enumerate() {
                    let (i, j) = (at % order, at / order);
                    let Some(entry) = baseline.entry(i, j) else { continue };
                    *owners = 1;
                    assert!(i < j || (entry - factor(i, j)).abs() < TOLERANCE, "{layout:?}: ({i}, {j}) is {entry}");
                }
                rank.all_reduce(Reduction::Sum, &mut found).unwrap();
                assert!(found.iter().all(|&owners| owners == 1), "{layout:?}: entries without an owner");
            }
        }
        barrier(&rank).unwrap();
    }

    pub fn errors(rank: MpiRank) {
        let good = BlockCyclicLayout { order: 40, block_rows: 8, grid_rows: 1, grid_cols: rank.size() };
        for bad in [
            BlockCyclicLayout { grid_rows: 2, ..good },
            BlockCyclicLayout { block_rows: 0, ..good },
            BlockCyclicLayout { order: 1 << 40, ..good },
        ] {
            assert!(Pdpotrf::new(&rank, bad).is_err(), "{bad:?}");
        }
        let mut baseline = Pdpotrf::new(&rank, good).unwrap();
        baseline.fill(|i, j| if i == j && i == 25 { -1.0 } else { gram(i, j) });
        assert!(baseline.factor().unwrap_err().to_string().contains("info = 26"));
        assert!(baseline.measure(0, gram).is_err());
        assert!(baseline.measure(1, gram).is_ok());
    }
}
