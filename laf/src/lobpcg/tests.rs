//! The same bits on any nodes, threads, memory and disk; eigenpairs against those of dense matrices.

use super::*;
use crate::front::fixture::{dense, matrix, plain};
use crate::front::{Session, SessionOptions};
use crate::gallery::GrowingDiagonal;
use crate::partition::Layout;
use crate::small::symmetric_eigen;

/// The lowest pairs after a few iterations, as bits, and the traffic of the nodes.
fn few_iterations(options: &SessionOptions) -> (Vec<u64>, Vec<crate::engine::NodeTraffic>) {
    let session = Session::new(options).unwrap();
    let a = matrix(&session, GrowingDiagonal::new(360, 12, 7).unwrap());
    let diagonal = a.diagonal().unwrap();
    let preconditioner = Preconditioner::Diagonal(&diagonal);
    let found =
        lobpcg(&a, &LobpcgOptions { count: 4, preconditioner, iterations: 2, ..LobpcgOptions::default() }, |step| {
            step.iteration < 9
        });
    let found = found.unwrap();
    assert_eq!((found.iterations, found.converged), (2, false));
    let numbers = found.vectors.numbers().unwrap();
    (numbers.into_iter().chain(found.values).map(f64::to_bits).collect(), session.traffic())
}

#[test]
fn bits_do_not_depend_on_nodes_threads_memory_or_disk() {
    let folder = tempfile::tempdir().unwrap();
    let chunked = SessionOptions { chunk_rows: 20, ..SessionOptions::default() };
    let (bits, _) = few_iterations(&chunked);
    for (nodes, layout, threads, has_disk) in [
        (1, Layout::OneDimensional, 3, false),
        (1, Layout::OneDimensional, 2, true),
        (3, Layout::OneDimensional, 1, false),
        (4, Layout::TwoDimensional, 1, true),
        (9, Layout::TwoDimensional, 2, false),
    ] {
        let disk = has_disk.then(|| folder.path().to_path_buf());
        let memory_bytes = if has_disk { 1_200_000 / nodes as u64 } else { u64::MAX / 2 };
        let options = SessionOptions { nodes, layout, threads, memory_bytes, folder: disk, ..chunked.clone() };
        let (found, traffic) = few_iterations(&options);
        assert!(found == bits, "{nodes} nodes {layout:?}");
        assert!(traffic.iter().all(|node| node.peak_bytes <= memory_bytes));
        let written = traffic.iter().map(|node| node.written_bytes).sum::<u64>();
        assert_eq!(written > 0, has_disk, "{written} bytes were written");
        assert_eq!(traffic.iter().any(|node| node.received_bytes > 0), nodes > 1);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "directories go with their session");
}

#[test]
fn the_lowest_eigenpairs_of_a_small_matrix() {
    let generated = GrowingDiagonal::new(240, 25, 1).unwrap();
    let exact = symmetric_eigen(&dense(generated)).unwrap().values;
    let session = plain(50);
    let a = matrix(&session, generated);
    let diagonal = a.diagonal().unwrap();
    for (preconditioner, most) in [(Preconditioner::Diagonal(&diagonal), 40), (Preconditioner::Identity, 90)] {
        let options = LobpcgOptions { preconditioner, tolerance: 1e-7, ..LobpcgOptions::default() };
        let mut last = f64::INFINITY;
        let found = lobpcg(&a, &options, |step| {
            let sum = step.values.iter().sum::<f64>();
            assert!(sum <= last + 1e-9, "the sum of the Ritz values falls");
            last = sum;
            true
        });
        let found = found.unwrap();
        assert!(found.converged && found.iterations <= most, "{} iterations", found.iterations);
        for (value, exact) in found.values.iter().zip(&exact) {
            assert!((value / exact - 1.0).abs() < 1e-12, "{value} {exact}");
        }
        let unit = inner(&[&found.vectors], &[&found.vectors]).unwrap().get().unwrap();
        for (row, col) in (0..8).flat_map(|row| (0..8).map(move |col| (row, col))) {
            assert!((unit.at(row, col) - f64::from(u8::from(row == col))).abs() < 1e-9);
        }
    }
    let cancelled = lobpcg(&a, &LobpcgOptions::default(), |_| false);
    assert!(matches!(cancelled, Err(Error::Cancelled)));
    let many = LobpcgOptions { count: 81, ..LobpcgOptions::default() };
    let error = lobpcg(&a, &many, |_| true).err().unwrap().to_string();
    assert_eq!(error, "81 eigenpairs of a matrix of 240 rows are not possible; choose 1 to a third of the rows");
}
