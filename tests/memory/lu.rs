//! What LU factors and solutions by them allocate: their plans cover it closely.

use crate::{alone, matrix, rise};
use sunzi::plans::{plan_lu, plan_lu_solve};
use sunzi::report::LuReport;
use sunzi::{Accuracy, Context, Error, LuOptions, Matrix, lu_into, lu_with};

/// The report without what only a run knows.
fn planned(report: &LuReport) -> (u64, u32, u32, &'static str, usize, usize) {
    let LuReport { planned_bytes, working_bits, range_bits, kernel, primes, threads, .. } = *report;
    (planned_bytes, working_bits, range_bits, kernel, primes, threads)
}

#[test]
fn plans_of_lu_factors_are_the_reports_and_cover_what_is_allocated() {
    let _alone = alone();
    for (order, bits, kernel, threads) in [
        (12, 200, None, 1),
        (25, 200, None, 2),
        (120, 300, None, 1),
        (250, 512, None, 2),
        (250, 512, Some("reference"), 1),
        (200, 256, Some("ifma52-portable"), 1),
    ] {
        let builder = Context::builder().threads(threads);
        let Ok(ctx) = kernel.map_or(builder.clone(), |name| builder.kernel(name)).build() else { continue };
        let a = matrix(order, order, bits, 1);
        for accuracy in [Accuracy::Norm, Accuracy::Entrywise] {
            let what = format!("{order} rows, {kernel:?}, {accuracy:?}");
            let made = lu_with(&ctx, &a, bits, &LuOptions::new().accuracy(accuracy)).unwrap().report;
            let options = LuOptions::new().accuracy(accuracy).range_bits(made.range_bits);
            let plan = plan_lu(&ctx, order, bits, bits, &options).unwrap();
            assert_eq!(planned(&plan), planned(&made), "{what}");
            assert!(plan.growth_bits >= made.growth_bits && plan.seconds == 0.0, "{what}");
            let fresh = Context::builder().threads(threads);
            let fresh = kernel.map_or(fresh.clone(), |name| fresh.kernel(name)).build().unwrap();
            let (peak, _) = rise(|| lu_with(&fresh, &a, bits, &options).unwrap());
            let (most, least) = (plan.planned_bytes + (16 << 10), plan.planned_bytes * 9 / 10);
            assert!((least..=most).contains(&peak), "{what}: peak {peak}, planned {}", plan.planned_bytes);
            // The least limit that a refusal names is enough.
            let limit = |bytes| Context::with_memory_bytes(&ctx, Some(bytes));
            let refused = plan_lu(&limit(plan.planned_bytes / 2), order, bits, bits, &options);
            let Err(Error::MemoryLimit { minimum_bytes, .. }) = refused else { panic!("{what}: {refused:?}") };
            assert_eq!(minimum_bytes, plan.planned_bytes, "{what}");
            assert!(lu_with(&limit(minimum_bytes), &a, bits, &options).is_ok(), "{what}");
            assert!(lu_with(&limit(minimum_bytes - 1), &a, bits, &options).is_err(), "{what}");
        }
    }
}

#[test]
fn plans_of_general_solves_cover_what_is_allocated() {
    let _alone = alone();
    for (order, columns, bits, threads) in [(12, 3, 200, 1), (120, 1, 300, 1), (120, 120, 300, 2), (250, 40, 512, 1)] {
        let (a, b) = (matrix(order, order, bits, 1), matrix(order, columns, bits, 2));
        let range_bits = lu_with(&Context::new().unwrap(), &a, bits, &LuOptions::new()).unwrap().report.range_bits;
        let options = LuOptions::new().range_bits(range_bits);
        let ctx = Context::builder().threads(threads).build().unwrap();
        let plan = plan_lu_solve(&ctx, order, columns, bits, &options).unwrap();
        assert_eq!((plan.operation, plan.order, plan.columns), ("solve", order, columns));
        let fresh = Context::builder().threads(threads).build().unwrap();
        let (peak, _) = rise(|| {
            let factors = lu_with(&fresh, &a, bits, &options).unwrap().result;
            (factors.solve(&fresh, &b, bits).unwrap(), factors)
        });
        let what = format!("{order} rows, {columns} columns: peak {peak}, planned {}", plan.planned_bytes);
        assert!(peak <= plan.planned_bytes + (16 << 10), "{what}");
        assert!(peak >= plan.planned_bytes / 2, "{what}");
    }
}

/// Into the memory of earlier factors a call allocates less by the factors; the rest stays in the context but the
/// integers of a leaf.
#[test]
fn factors_in_the_memory_of_earlier_ones_allocate_little() {
    let _alone = alone();
    let (order, bits) = (200, 512);
    let ctx = Context::builder().threads(1).build().unwrap();
    let a = matrix(order, order, bits, 1);
    let mut factors = lu_with(&ctx, &a, bits, &LuOptions::new()).unwrap().result;
    let (again, _) = rise(|| lu_with(&ctx, &a, bits, &LuOptions::new()).unwrap());
    let (into, _) = rise(|| lu_into(&ctx, &a, bits, &LuOptions::new(), &mut factors).unwrap());
    let factors_bytes = Matrix::bytes_for(order, order, bits);
    assert!(again - into >= factors_bytes, "{again} and {into} bytes, {factors_bytes} of the factors");
    assert!(into < factors_bytes, "{into} bytes");
}
