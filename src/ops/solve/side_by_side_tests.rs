//! Systems side by side against single calls.

use super::*;
use crate::kernels::problem_lanes::on_all_lanes;
use crate::matrix::{Diag, MAXIMUM_EXPONENT, Matrix, Op, Side, Uplo};
use crate::ops::product::problem::Accuracy;
use crate::ops::trsm::{TrsmOptions, oriented, trsm_with};
use rug::{Float, Integer, rand::RandState};

/// The special property of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Plain,
    /// Exponents of rows and columns far apart, some entries 0.
    Spread,
    /// Right-hand sides of which one is 0, and zeros below the diagonal.
    Zeros,
    /// Pivots so small that the first try takes more bits.
    SmallPivots,
    /// Unknowns that outgrow their right side.
    Growing,
    /// A right side of more bits than the unknowns.
    LongRight,
    /// A zero on the diagonal.
    Singular,
    /// Solutions beyond the exponent range.
    Beyond,
}

const KINDS: [Kind; PROBLEMS] = [
    Kind::Plain,
    Kind::Spread,
    Kind::Zeros,
    Kind::SmallPivots,
    Kind::Growing,
    Kind::LongRight,
    Kind::Singular,
    Kind::Beyond,
];

/// A triangle, stored as a whole matrix so that either part can be used, and right-hand sides of that shape.
fn system(kind: Kind, (order, shape): (usize, (usize, usize)), bits: u32, rng: &mut RandState<'_>) -> [Matrix; 2] {
    let mut t = Matrix::zeros(order, order, bits).unwrap();
    let mut random = |bits: u32| Float::with_val(bits, Float::random_bits(rng)) - 0.5f64;
    for (row, col) in (0..order).flat_map(|row| (0..order).map(move |col| (row, col))) {
        let mut value = random(bits) >> 2u32;
        if row == col {
            value = Float::with_val(bits, value.abs_ref()) + 0.75f64;
            value = if row % 3 == 1 { -value } else { value };
            match kind {
                Kind::SmallPivots if row == order / 2 => value >>= 40u32,
                Kind::Beyond if row == order / 2 => value >>= 8u32,
                Kind::Growing if row > 0 => value >>= 18u32,
                Kind::Singular if row == 2 => value = Float::new(bits),
                _ => (),
            }
        } else if kind == Kind::Zeros && (row + col) % 4 == 0 {
            value = Float::new(bits);
        }
        let shift = if kind == Kind::Spread { 700 * (row as i32 % 5) } else { 0 };
        t.set_float(row, col, &(value << shift)).unwrap();
    }
    let right_bits = if kind == Kind::LongRight { 2 * bits + 64 } else { bits };
    let mut b = Matrix::zeros(shape.0, shape.1, right_bits).unwrap();
    for (row, col) in (0..shape.0).flat_map(|row| (0..shape.1).map(move |col| (row, col))) {
        let value = random(right_bits);
        let value = if kind == Kind::Zeros && (row == 1 || col == 1) { Float::new(bits) } else { value };
        let shift = match kind {
            Kind::Spread => 31 * (row as i32 % 4) - 900 * (col as i32 % 3),
            Kind::Beyond => MAXIMUM_EXPONENT as i32 - 3,
            _ => 0,
        };
        b.set_float(row, col, &(value << shift)).unwrap();
    }
    [t, b]
}

/// The systems side by side: a bit for each that is done, and the results.
fn run_all(
    ctx: &Context,
    together: LaneSolves,
    pairs: &[[Matrix; 2]; PROBLEMS],
    (bits, options): (u32, &TrsmOptions<'_>),
) -> (u8, Vec<Matrix>) {
    let systems = std::array::from_fn(|lane| {
        let [t, b] = &pairs[lane];
        oriented(t.view(), b.view(), bits, options).ok()
    });
    let mut results = vec![Matrix::empty(); PROBLEMS];
    let mut places = results.iter_mut().map(|result| Some(Destination::Matrix(result)));
    let destinations = std::array::from_fn(|_| places.next().flatten());
    drop(places);
    let done = together.run(ctx, &systems, destinations).unwrap();
    (done, results)
}

/// All sides, triangles, transposes and diagonals; all lanes are done except those that must be left to the single
/// call.
#[test]
fn systems_side_by_side_are_those_of_single_calls() {
    on_all_lanes(check_systems);
}

fn check_systems() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let mut rng = RandState::new();
    rng.seed(&Integer::from(77));
    let mut groups = 0;
    for (case, (order, columns, bits)) in
        [(17, 8, 64), (17, 9, 150), (20, 8, 256), (18, 12, 400), (24, 8, 768), (31, 8, 300), (17, 8, 1100)]
            .into_iter()
            .cycle()
            .take(28)
            .enumerate()
    {
        let options = TrsmOptions::new()
            .accuracy(Accuracy::Norm)
            .side(if case % 2 == 0 { Side::Left } else { Side::Right })
            .uplo(if case / 2 % 2 == 0 { Uplo::Lower } else { Uplo::Upper })
            .op(if case / 4 % 2 == 0 { Op::NoTranspose } else { Op::Transpose })
            .diag(if case % 5 == 4 { Diag::Unit } else { Diag::NonUnit });
        let shape = if options.side == Side::Left { (order, columns) } else { (columns, order) };
        let Some(together) = LaneSolves::choose(&ctx, SystemShape { order, columns }, bits) else { continue };
        groups += 1;
        let pairs = KINDS.map(|kind| system(kind, (order, shape), bits, &mut rng));
        let (done, results) = run_all(&ctx, together, &pairs, (bits, &options));
        // The entries of a row have its exponent where rows are those of the system that is solved.
        let rows_stay = (options.side == Side::Left) == (options.op == Op::NoTranspose);
        for (lane, ([t, b], got)) in pairs.iter().zip(&results).enumerate() {
            let (kind, is_done) = (KINDS[lane], done >> lane & 1 == 1);
            let what = format!("{order} x {columns}, {bits} bits, {options:?}, {kind:?}");
            let want = trsm_with(&ctx, t, b, bits, &options).map(|outcome| outcome.result);
            let unit = options.diag == Diag::Unit;
            match kind {
                Kind::Plain | Kind::Zeros => assert!(is_done, "{what}"),
                Kind::Spread => assert_eq!(is_done, rows_stay && !unit, "{what}"),
                Kind::SmallPivots | Kind::Growing | Kind::Singular | Kind::Beyond if !unit => {
                    assert!(!is_done, "{what}");
                    assert!(kind == Kind::SmallPivots || kind == Kind::Growing || want.is_err(), "{what}");
                }
                Kind::LongRight => assert!(!is_done, "{what}"),
                _ => (),
            }
            // A lane that is given up leaves only entries that a matrix may hold.
            let entries = (0..got.rows()).flat_map(|row| (0..got.cols()).map(move |col| (row, col)));
            for (row, col) in entries {
                let head = got.view().get(row, col).head;
                assert!(head.is_zero() || check_exponent(head.exponent(), row, col).is_ok(), "{what}");
            }
            assert!(!is_done || *got == want.unwrap(), "{what}");
        }
    }
    assert!(groups > 20 || ProblemLanes::new(100).is_none(), "no system goes side by side");
}

/// Systems that all take more bits go side by side with these, if there are enough of them.
#[test]
fn systems_of_small_pivots_go_side_by_side_with_more_bits() {
    on_all_lanes(check_small_pivots);
}

fn check_small_pivots() {
    let ctx = Context::builder().threads(1).build().unwrap();
    let mut rng = RandState::new();
    rng.seed(&Integer::from(78));
    let options = TrsmOptions::new().accuracy(Accuracy::Norm);
    for count in [PROBLEMS, LEAST_TOGETHER, LEAST_TOGETHER - 1] {
        let of_all = SystemShape { order: 20, columns: 8 };
        let Some(together) = LaneSolves::choose(&ctx, of_all, 256) else { return println!("skipped: no lanes") };
        let pairs: [_; PROBLEMS] = std::array::from_fn(|lane| {
            let kind = if lane < count { Kind::SmallPivots } else { Kind::LongRight };
            system(kind, (20, (20, 8)), 256, &mut rng)
        });
        let (done, results) = run_all(&ctx, together, &pairs, (256, &options));
        assert_eq!(done, if count < LEAST_TOGETHER { 0 } else { u8::MAX >> (PROBLEMS - count) });
        for ([t, b], got) in pairs.iter().zip(&results).take(done.count_ones() as usize) {
            assert!(*got == trsm_with(&ctx, t, b, 256, &options).unwrap().result);
        }
    }
}
