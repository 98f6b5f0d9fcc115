//! What solves and factorisations allocate under a memory limit, counted by the allocator: never more than the limit,
//! at the least limit that they name and above it.

use crate::{alone, matrix, rise};
use sunzi::advanced::store::{allocated_bytes, peak_bytes, reset_peak_bytes};
use sunzi::advanced::testing::effort;
use sunzi::plans::{SolvePlan, plan_inverse, plan_solve, plan_solve_refined, plan_trsm};
use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Context, Error, Matrix, RefineOptions, Result, Symmetric, TrsmOptions,
    cholesky, inverse_with, ldlt, lu, solve, solve_refined_with, solve_with, syrk, trsm, trsm_with,
};

/// Bytes that the bookkeeping of threads and lists may add.
const SLACK_BYTES: u64 = 64 << 10;

/// Bytes that a thread takes when it starts: on a busy machine it may do so in the middle of a later call.
const START_BYTES: u64 = 8 << 10;

/// A triangle that is easy to solve, zero above its diagonal.
pub(crate) fn lower(order: usize, bits: u32) -> Matrix {
    let mut t = matrix(order, order, bits, 3);
    for col in 0..order {
        for row in 0..=col {
            t.set_f64(row, col, if row == col { 50.0 } else { 0.0 }).unwrap();
        }
    }
    t
}

/// A symmetric matrix with a heavy diagonal of both signs.
fn indefinite(order: usize, bits: u32) -> Matrix {
    let mut a = matrix(order, order, bits, 4);
    for i in 0..order {
        a.set_f64(i, i, if i % 2 == 0 { 1e4 } else { -1e4 }).unwrap();
    }
    a
}

/// On one thread and on two, each with limits above the least of its own: the bits of one thread without a limit. The
/// second round is of memory that is kept; it matters most at the least limit. These calls take most of the time of
/// this program: with little effort one thread has the second round, and two have a limit above the least.
fn check(label: &str, run: &dyn Fn(&Context) -> Result<Matrix>) {
    let want = run(&Context::builder().threads(1).build().unwrap()).unwrap();
    for threads in [1, 2] {
        let builder = || Context::builder().threads(threads);
        let least = match run(&builder().memory_bytes(1).build().unwrap()) {
            Err(Error::MemoryLimit { minimum_bytes, limit_bytes: 1 }) => minimum_bytes,
            other => panic!("{label}: one byte cannot be enough: {other:?}"),
        };
        let above = [least * 3 / 2, least * 4];
        let above = if effort() > 1 { &above[..] } else { &above[..threads - 1] };
        for &limit in [least].iter().chain(above) {
            let ctx = builder().memory_bytes(limit).build().unwrap();
            for round in 0..if effort() > 1 || limit == least && threads == 1 { 2 } else { 1 } {
                let (rise, result) = rise(|| run(&ctx).unwrap());
                let what = format!("{label}, {threads} threads, limit {limit} (least {least}), round {round}");
                assert!(rise <= limit + SLACK_BYTES, "{what}: {rise} bytes");
                assert!(result == want, "{what}");
            }
        }
        assert!(run(&builder().memory_bytes(least - 1).build().unwrap()).is_err(), "{label}: {least} is not the least");
    }
}

/// The memory that products keep must not count twice: one after another on the same context.
fn check_after_a_product(order: usize, bits: u32) {
    let mut a = matrix(order, order, bits, 4);
    (0..order).for_each(|i| a.set_f64(i, i, 1e4).unwrap());
    for threads in [1, 2] {
        let builder = || Context::builder().threads(threads);
        let least = match cholesky(&builder().memory_bytes(1).build().unwrap(), Symmetric::lower(&a), bits) {
            Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
            other => panic!("one byte cannot be enough: {other:?}"),
        };
        let ctx = builder().memory_bytes(least).build().unwrap();
        let before = allocated_bytes();
        for round in 0..2 {
            reset_peak_bytes();
            drop(syrk(&ctx, &a, bits).unwrap());
            drop(cholesky(&ctx, Symmetric::lower(&a), bits).unwrap());
            let rise = peak_bytes() - before;
            assert!(
                rise <= least + SLACK_BYTES,
                "{order} rows, {threads} threads, limit {least}, round {round}: {rise}"
            );
        }
    }
}

/// A symmetric matrix with a heavy diagonal.
pub(crate) fn definite(order: usize, bits: u32) -> Matrix {
    let mut a = matrix(order, order, bits, 4);
    for col in 0..order {
        (col + 1..order).for_each(|row| a.set_float(col, row, &a.float(row, col)).unwrap());
        a.set_f64(col, col, 1e4).unwrap();
    }
    a
}

/// A plan is what a call takes on a new context: never less, and at most a twentieth more, a third of refined solves.
fn check_plan(label: &str, plan: &dyn Fn(&Context) -> Result<SolvePlan>, run: &dyn Fn(&Context) -> Result<Matrix>) {
    for threads in [1, 2] {
        let builder = || Context::builder().threads(threads);
        let least = plan(&builder().build().unwrap()).unwrap().least_bytes;
        let limits = [None, Some(least), Some(least * 3 / 2)];
        // With little effort one number of threads has no limit, the other one the least, in turns.
        let at = (label.len() + threads) % 2;
        for &limit in if effort() > 1 { &limits[..] } else { &limits[at..][..1] } {
            let ctx = builder().build().unwrap().with_memory_bytes(limit);
            let before = allocated_bytes();
            reset_peak_bytes();
            let planned = plan(&ctx).unwrap().planned_bytes;
            drop(run(&ctx).unwrap());
            let rise = peak_bytes() - before;
            let what = format!("{label}, {threads} threads, limit {limit:?}: planned {planned}, taken {rise}");
            // A refined solve keeps the tables of three engines, of which its plan knows two.
            let refined = label.starts_with("refined");
            let (roomy, tables) = if refined { (rise / 3, 256 << 10) } else { (rise / 20, 0) };
            assert!(rise <= planned + SLACK_BYTES + tables, "{what}");
            assert!(limit.is_none_or(|limit| planned <= limit && rise <= limit + SLACK_BYTES), "{what}");
            assert!(planned <= rise + roomy + SLACK_BYTES || limit.is_some(), "{what}");
        }
        let short = builder().memory_bytes(least - 1).build().unwrap();
        match plan(&short) {
            Err(Error::MemoryLimit { minimum_bytes, .. }) => assert_eq!(minimum_bytes, least, "{label}"),
            other => panic!("{label}: {other:?}"),
        }
    }
}

#[test]
fn triangular_solves_keep_their_plan() {
    let _alone = alone();
    // The last one on the kernel of large solves, in two bands: it takes most of the time.
    let sizes = [(300, 200, 500), (400, 5, 800), (200, 600, 300), (300, 64, 1024), (700, 801, 60)];
    for (order, columns, bits) in sizes {
        let (t, b) = (lower(order, bits), matrix(order, columns, bits, 5));
        let few = effort() == 1 && columns >= 200;
        let accuracies =
            if order == 700 || few { &[Accuracy::Norm][..] } else { &[Accuracy::Norm, Accuracy::Entrywise] };
        for &accuracy in accuracies {
            let label = format!("plan of trsm {order} x {columns}, {accuracy:?}");
            let options = TrsmOptions::new().accuracy(accuracy);
            check_plan(&label, &|ctx| plan_trsm(ctx, (order, columns), bits, accuracy), &|ctx| {
                trsm_with(ctx, &t, &b, bits, &options).map(|outcome| outcome.result)
            });
        }
    }
}

#[test]
fn refined_solves_keep_their_plan() {
    let _alone = alone();
    // Residuals of fewer bits than planned, by small products that would take more memory for them.
    for (order, columns, bits, factor_bits) in
        [(50, 2, 1000, 200), (100, 2, 1290, 200), (100, 3, 450, 53), (33, 4, 450, 53), (5, 8, 2440, 30)]
    {
        let (a, b) = (definite(order, bits), matrix(order, columns, bits, 5));
        let options = RefineOptions::new().factor_bits(factor_bits);
        let label = format!("refined solve {order} x {columns}, {bits} bits");
        check_plan(&label, &|ctx| plan_solve_refined(ctx, (order, columns), bits, &options), &|ctx| {
            solve_refined_with(ctx, Symmetric::lower(&a), &b, bits, &options).map(|outcome| outcome.result)
        });
    }
}

#[test]
fn solves_keep_their_plan_and_the_memory_limit() {
    let _alone = alone();
    for (order, columns, bits) in [(300, 2, 500), (200, if effort() > 1 { 400 } else { 250 }, 300)] {
        let (a, b) = (definite(order, bits), matrix(order, columns, bits, 5));
        for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
            // Entry by entry, many columns are solved for like few.
            if effort() == 1 && columns > 2 && accuracy == Accuracy::Entrywise {
                continue;
            }
            let label = format!("solve {order} x {columns}, {accuracy:?}");
            // The entries lie up to 2^-26 below the diagonal, which no plan can know.
            let options = CholeskyOptions::new().accuracy(accuracy).range_bits(32);
            check_plan(&label, &|ctx| plan_solve(ctx, (order, columns), bits, &options), &|ctx| {
                solve_with(ctx, Symmetric::lower(&a), &b, bits, &options).map(|outcome| outcome.result)
            });
        }
        let options = RefineOptions::new().factor_bits(bits * 2 / 3);
        let label = format!("refined solve {order} x {columns}");
        check_plan(&label, &|ctx| plan_solve_refined(ctx, (order, columns), bits, &options), &|ctx| {
            solve_refined_with(ctx, Symmetric::lower(&a), &b, bits, &options).map(|outcome| outcome.result)
        });
        if order == 200 {
            let options = CholeskyOptions::new();
            check_plan("inverse", &|ctx| plan_inverse(ctx, order, bits, &options), &|ctx| {
                inverse_with(ctx, Symmetric::lower(&a), bits, &options).map(|outcome| outcome.result.into_matrix())
            });
        }
        let label = format!("solve {order} x {columns}");
        check(&label, &|ctx| solve(ctx, Symmetric::lower(&a), &b, bits));
    }
}

#[test]
fn solves_with_a_factor_keep_the_memory_limit() {
    let _alone = alone();
    for (order, columns, bits) in [(300, 200, 200), (100, 3, 300), (40, 500, 1000)] {
        let (t, b) = (lower(order, bits), matrix(order, columns, bits, 5));
        let factor = Cholesky::from_factor(t.clone()).unwrap();
        let label = |what: &str| format!("{what} {order} x {columns}");
        check(&label("trsm"), &|ctx| trsm(ctx, &t, &b, bits));
        check(&label("cholesky solve"), &|ctx| factor.solve(ctx, &b, bits));
    }
    // Unknowns that grow: tries with more and more bits, then by parts.
    let (mut t, b) = (lower(60, 3000), matrix(60, 20, 3000, 6));
    (1..60).for_each(|i| t.set_f64(i, i - 1, -1e12).unwrap());
    check("trsm of growing unknowns", &|ctx| trsm(ctx, &t, &b, 3000));
}

#[test]
fn factors_and_inverses_keep_the_memory_limit() {
    let _alone = alone();
    let factor = Cholesky::from_factor(lower(200, 150)).unwrap();
    check("inverse", &|ctx| Ok(factor.inverse(ctx, 150)?.into_matrix()));
    check_after_a_product(300, 300);
    let a = indefinite(200, 150);
    check("ldlt", &|ctx| Ok(ldlt(ctx, Symmetric::lower(&a), 150)?.lower().clone()));
    for (order, bits) in [(20, 900), (60, 150), (230, 300)] {
        let a = matrix(order, order, bits, 9);
        check(&format!("lu of {order} rows"), &|ctx| Ok(lu(ctx, &a, bits)?.into_parts().0));
        let (factors, b) = (lu(&Context::new().unwrap(), &a, bits).unwrap(), matrix(order, 30, bits, 8));
        check(&format!("solve with lu of {order} rows"), &|ctx| factors.solve(ctx, &b, bits));
    }
}

/// The digits of some rows and the sums of a block take more than the numbers of a few unknowns.
#[test]
fn dot_products_of_many_bits_keep_their_plan() {
    let _alone = alone();
    for (order, columns, bits) in [(24, 1, 5000), (24, 3, 5000), (60, 2, 2000)] {
        let (factor, b) = (Cholesky::from_factor(lower(order, bits)).unwrap(), matrix(order, columns, bits, 5));
        for threads in [1, 2] {
            let ctx = Context::builder().threads(threads).build().unwrap();
            let mut x = Matrix::empty();
            factor.solve_into(&ctx, &b, bits, &mut x).unwrap(); // norms of rows are kept
            x = Matrix::empty();
            let before = allocated_bytes();
            reset_peak_bytes();
            let planned = factor.solve_into(&ctx, &b, bits, &mut x).unwrap().planned_bytes;
            let rise = peak_bytes() - before;
            let what = format!("{order} x {columns}, {bits} bits, {threads} threads: {planned}, taken {rise}");
            assert!(rise <= planned + START_BYTES * (threads as u64 - 1), "{what}");
        }
    }
}

/// Residuals pass through the bits of several kernels: at the least limit each finds room.
#[test]
fn residuals_of_growing_bits_keep_their_plan() {
    let _alone = alone();
    for (order, columns, bits) in [(40, 4, 5400), (120, 1, 5400)] {
        let (a, b) = (definite(order, bits), matrix(order, columns, bits, 5));
        let options = RefineOptions::new().factor_bits(1300);
        let plan = |ctx: &Context| plan_solve_refined(ctx, (order, columns), bits, &options).unwrap();
        let least = plan(&Context::builder().threads(1).build().unwrap()).least_bytes;
        for limit in [None, Some(least)] {
            let ctx = Context::builder().threads(1).build().unwrap().with_memory_bytes(limit);
            let before = allocated_bytes();
            reset_peak_bytes();
            let planned = plan(&ctx).planned_bytes;
            drop(solve_refined_with(&ctx, Symmetric::lower(&a), &b, bits, &options).unwrap());
            let rise = peak_bytes() - before;
            println!("{order} x {columns}, {limit:?}: planned {planned}, taken {rise}");
            assert!(rise <= planned + SLACK_BYTES, "{order} x {columns}, {limit:?}: planned {planned}, taken {rise}");
        }
    }
}
