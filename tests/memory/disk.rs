//! What solves above a disk, and factorisations of doubles there, allocate: never more than their plan, which keeps the
//! limit, at the least one and above it.

use crate::solves::{definite, lower};
use crate::{alone, matrix, rise};
use std::fs;
use sunzi::advanced::testing::effort;
use sunzi::io::{self, WriteOptions};
use sunzi::out_of_core::{self, OutOfCoreOptions, OutOfCoreSolveOptions, OutOfCoreSolveReport, SolvePaths};
use sunzi::{Accuracy, Context, Error, Matrix, Op, Result, TrsmOptions};

const BITS: u32 = 300;

/// A call on files whose solution is made anew each time.
fn check(
    (a, b): (&Matrix, &Matrix),
    call: &dyn Fn(&Context, SolvePaths<'_>) -> Result<OutOfCoreSolveReport>,
    what: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let [matrix, right, solution, storage] = &["a.bin", "b.bin", "x.bin", "work"].map(|name| folder.path().join(name));
    io::write(matrix, a, &WriteOptions::new()).unwrap();
    io::write(right, b, &WriteOptions::new()).unwrap();
    let run = |limit: Option<u64>| {
        let ctx = Context::builder().threads(2).build().unwrap().with_memory_bytes(limit);
        for panels in [storage.clone(), storage.join("solution")] {
            let groups = fs::read_dir(panels).into_iter().flatten().map(|entry| entry.unwrap().path());
            groups.filter(|path| path.extension().is_some_and(|end| end == "group")).for_each(|path| {
                fs::remove_file(path).unwrap();
            });
        }
        call(&ctx, SolvePaths { matrix, right, solution, storage })
    };
    run(None).unwrap(); // a factor is there from now on
    let least = match run(Some(1)) {
        Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
        other => panic!("{what}: {other:?}"),
    };
    for limit in [Some(least), Some(least + least / 4), None] {
        let (peak, report) = rise(|| run(limit).unwrap());
        let planned = report.planned_bytes;
        assert_eq!(report.bands.min(1), 1, "{what}");
        assert!(peak <= planned, "{what}, limit {limit:?}: {peak} bytes, planned {planned}");
        assert!(limit.is_none_or(|limit| planned <= limit), "{what}: planned {planned}, limit {limit:?}");
    }
}

#[test]
fn solves_above_a_disk_keep_their_plan() {
    let _alone = alone();
    // -8 times the diagonal below it: unknowns that outgrow fixed point.
    let mut growing = lower(400, BITS);
    for row in 1..400 {
        growing.set_f64(row, row - 1, -400.0).unwrap();
    }
    let trsm = |ctx: &Context, paths: SolvePaths<'_>| {
        let options = TrsmOptions::new().accuracy(Accuracy::Norm).op(Op::Transpose);
        out_of_core::trsm(ctx, paths, BITS, &options, &OutOfCoreSolveOptions::new())
    };
    // A few columns are solved for as vectors, and more together; both ways meet both matrices.
    let tame = lower(400, BITS);
    for columns in if effort() > 1 { &[1, 5, 24][..] } else { &[5, 24] } {
        let b = matrix(400, *columns, BITS, 5);
        check((&tame, &b), &trsm, &format!("trsm, {columns} columns"));
        check((&growing, &b), &trsm, &format!("trsm that outgrows, {columns} columns"));
    }
    let solve =
        |ctx: &Context, paths: SolvePaths<'_>| out_of_core::solve(ctx, paths, BITS, &OutOfCoreSolveOptions::new());
    let a = definite(300, BITS);
    for columns in if effort() > 1 { &[1, 3, 6][..] } else { &[1, 6] } {
        check((&a, &matrix(300, *columns, BITS, 5)), &solve, &format!("solve, {columns} columns"));
    }
}

#[test]
fn doubles_above_a_disk_keep_their_plan() {
    let _alone = alone();
    for (order, bits, tile_rows) in [(200, 53, None), (700, 53, Some(32)), (700, 53, Some(96)), (500, 300, None)] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        io::write(path("a.bin"), &definite(order, bits), &WriteOptions::new()).unwrap();
        let options = OutOfCoreOptions::new().tile_rows(tile_rows);
        let run = |limit: Option<u64>| {
            let ctx = Context::builder().threads(2).build().unwrap().with_memory_bytes(limit);
            out_of_core::double_cholesky(&ctx, (&path("a.bin"), &path("l.bin")), &path("tiles"), &options)
        };
        let least = match run(Some(1)) {
            Err(Error::MemoryLimit { minimum_bytes, .. }) => minimum_bytes,
            other => panic!("{other:?}"),
        };
        for limit in [Some(least), Some(least + least / 8), None] {
            let (peak, report) = rise(|| run(limit).unwrap());
            let (what, planned) = (format!("{order} rows, limit {limit:?}"), report.plan.planned_bytes);
            assert!(peak <= planned, "{what}: {peak} bytes, planned {planned}");
            assert!(limit.is_none_or(|limit| planned <= limit), "{what}: planned {planned}");
            fs::remove_dir_all(path("tiles")).unwrap();
        }
    }
}
