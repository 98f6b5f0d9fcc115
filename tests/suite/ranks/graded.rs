//! Triangles whose rows and columns lie far apart, entry by entry: their products take more bits than plans take them
//! to, and so more memory.

use super::solve::{Lie, scatter, threads};
use crate::common::Rng;
use sunzi::comm::{Transport, local};
use sunzi::distributed::{Team, TeamOptions, trsm_with};
use sunzi::rug::Float;
use sunzi::{Error, Matrix, Result, TrsmOptions};

fn graded(order: usize, bits: u32, step: i32) -> Matrix {
    let mut t = Matrix::zeros(order, order, bits).unwrap();
    for (i, j) in (0..order).flat_map(|i| (0..=i).map(move |j| (i, j))) {
        let value = if i == j { Float::with_val(bits, 2.5) } else { Float::with_val(bits, 0.25) / (i + j) as u32 };
        let apart = (5 * i as i32 % 7 - 5 * j as i32 % 7) * step;
        t.set_float(i, j, &(value << apart)).unwrap();
    }
    t
}

/// A solve on ranks: what the first one gathers, or what all are told.
fn solved(ranks: usize, [t, b]: [&Matrix; 2], limit_bytes: Option<u64>) -> Result<Matrix> {
    let lie = Lie::random(ranks, &mut Rng::new(ranks as u64));
    let found = local::run(ranks, |rank| {
        let team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
        let [t, b] = [t, b].map(|whole| scatter(rank, whole, lie.map(whole.rows(), whole.cols(), None)));
        let ctx = threads(1).with_memory_bytes(limit_bytes);
        trsm_with(&ctx, &team, &t, &b, b.precision_bits(), &TrsmOptions::default())?.solution.gather(rank, 0)
    });
    let told = found.iter().map(|found| found.as_ref().err().map(Error::to_string)).collect::<Vec<_>>();
    assert!(told.iter().all(|error| *error == told[0]), "{told:?}");
    found.into_iter().next().unwrap().map(|found| found.expect("on the first rank"))
}

/// Without a limit nothing is refused; what a limit refuses asks for more than it, and is solved with that.
#[test]
fn a_plan_is_no_limit_where_there_is_none() {
    for (order, columns, bits) in [(20, 2, 64), (16, 1, 53), (120, 7, 200), (60, 40, 100)] {
        let mut b = Matrix::zeros(order, columns, bits).unwrap();
        (0..order * columns).for_each(|at| b.set_f64(at % order, at / order, 1.0).unwrap());
        let t = graded(order, bits, 100);
        let want = sunzi::trsm_with(&threads(1), &t, &b, bits, &TrsmOptions::default()).unwrap().result;
        for ranks in 1..=4 {
            let what = format!("{order} x {columns}, {bits} bits, {ranks} ranks");
            for limit in [None, Some(1 << 40), Some(1 << 30)] {
                assert!(solved(ranks, [&t, &b], limit).unwrap() == want, "{what}, {limit:?}");
            }
            let mut limit = 1;
            let found = loop {
                match solved(ranks, [&t, &b], Some(limit)) {
                    Err(Error::MemoryLimit { limit_bytes, minimum_bytes }) => {
                        let explained = limit_bytes == limit && minimum_bytes > limit;
                        assert!(explained, "{what}: {minimum_bytes} of {limit_bytes} within {limit}");
                        limit = minimum_bytes;
                    }
                    other => break other.unwrap(),
                }
            };
            assert!(found == want, "{what} within {limit}");
        }
    }
}
