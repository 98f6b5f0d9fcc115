//! What a call allocates, counted by the allocator: the plan covers it closely, and a second call allocates nothing
//! new but its result.

use crate::{alone, matrix, plan_gemm, plan_syrk, rise};
use sunzi::advanced::store::{allocated_bytes, peak_bytes, reset_peak_bytes};
use sunzi::advanced::testing::effort;
use sunzi::plans::{ProductPlanOptions, plan_cholesky, plan_syrk_with, plan_weighted_gram};
use sunzi::rug::Float;
use sunzi::{
    Accuracy, CholeskyOptions, Context, GemmOptions, Matrix, Op, Symmetric, SyrkOptions, cholesky_with, gemm_into,
    gemm_with, syrk, syrk_into, syrk_with, weighted_gram_with,
};

fn assert_close(peak_bytes: u64, planned_bytes: u64, what: &str) {
    assert!(peak_bytes <= planned_bytes, "{what}: peak {peak_bytes} above planned {planned_bytes}");
    assert!(peak_bytes * 100 >= planned_bytes * 95, "{what}: peak {peak_bytes} far below planned {planned_bytes}");
}

#[test]
fn plans_cover_what_is_allocated_and_second_calls_allocate_only_the_result() {
    let _alone = alone();
    let (rows, cols, precision_bits) = (300, 220, 512);
    let p = matrix(rows, cols, precision_bits, 1);
    let options = SyrkOptions::new().accuracy(Accuracy::Norm);
    let (whole, least) = limits(rows, cols, precision_bits);
    let transposed = GemmOptions::new().accuracy(Accuracy::Norm).op_a(Op::Transpose);
    for (threads, limit) in
        [(1, None), (2, None), (2, Some(whole * 2 / 3)), (1, Some(least * 5 / 4)), (3, Some(least * 3 / 2))]
    {
        let what = format!("{threads} threads, limit {limit:?}");
        let builder = Context::builder().threads(threads);
        let ctx = limit.map_or(builder.clone(), |limit| builder.memory_bytes(limit)).build().unwrap();
        let (peak, first) = rise(|| syrk_with(&ctx, &p, precision_bits, &options).unwrap());
        assert_close(peak, first.report.planned_bytes, &what);
        assert_eq!(first.report.planned_bytes, plan_syrk(&ctx, rows, cols, precision_bits).unwrap().planned_bytes);
        assert!(limit.is_none_or(|limit| peak <= limit), "{what}: {peak}");
        let (peak, mut second) = rise(|| syrk_with(&ctx, &p, precision_bits, &options).unwrap());
        let extra = peak - second.result.bytes();
        assert!(extra < 64 << 10, "{what}: a second call allocates {extra} bytes beside its result");
        let (peak, _) = rise(|| syrk_into(&ctx, &p, precision_bits, &options, &mut second.result).unwrap());
        assert!(peak < 64 << 10, "{what}: a call into a result allocates {peak} bytes");
        assert_eq!(first.result, second.result);
    }
    let (a, b) = (matrix(500, 200, 300, 1), matrix(500, 90, 300, 1));
    let ctx = Context::builder().threads(2).build().unwrap();
    let (peak, first) = rise(|| gemm_with(&ctx, &a, &b, 300, &transposed).unwrap());
    assert_close(peak, first.report.planned_bytes, "gemm");
    assert_eq!(first.report.planned_bytes, plan_gemm(&ctx, 200, 90, 500, 300).unwrap().planned_bytes);
    let mut result = first.result;
    let (peak, _) = rise(|| gemm_into(&ctx, &a, &b, 300, &transposed, &mut result).unwrap());
    assert!(peak < 64 << 10, "gemm into a result allocates {peak} bytes");
}

#[test]
fn plans_cover_the_operands_of_a_weighted_gram_matrix() {
    let _alone = alone();
    let (rows, cols, bits) = (300, 220, 512);
    let (p, d) = (matrix(rows, cols, bits, 1), matrix(rows, 1, bits, 2));
    let by_norms = SyrkOptions::new().accuracy(Accuracy::Norm);
    let sizes = ProductPlanOptions::new().accuracy(Accuracy::Norm);
    let planned = |ctx: &Context| plan_weighted_gram(ctx, rows, cols, 2 * bits, bits, &sizes);
    let free = Context::builder().threads(2).build().unwrap();
    let whole = planned(&free).unwrap().planned_bytes;
    for (threads, limit) in [(1, None), (2, None), (2, Some(whole * 3 / 4))] {
        let builder = Context::builder().threads(threads);
        let ctx = limit.map_or(builder.clone(), |limit| builder.memory_bytes(limit)).build().unwrap();
        let (peak, made) = rise(|| weighted_gram_with(&ctx, &p, &d, bits, &by_norms).unwrap());
        assert_close(peak, made.report.planned_bytes, &format!("weighted, {threads} threads, limit {limit:?}"));
        assert_eq!(made.report.planned_bytes, planned(&ctx).unwrap().planned_bytes);
        assert!(limit.is_none_or(|limit| peak <= limit));
    }
}

/// Products entry by entry, tiny ones too, of entries of one size and of entries that fall off beside the diagonal:
/// with the bits that they took, the plan by sizes is theirs, and its least limit lets them run.
#[test]
fn plans_know_the_bits_of_ranges() {
    let _alone = alone();
    let bits = 256;
    // Numbers of 200 bits beside the diagonal: more than a hundred rows fall as far as they may.
    let last = if effort() > 1 { (200, 300, 2) } else { (110, 120, 2) };
    // Lists of moduli are made once in a process, by the first product that may want them.
    syrk(&Context::builder().threads(2).build().unwrap(), &matrix(40, 30, bits, 7), bits).unwrap();
    for (rows, cols, fall) in [(3, 2, 0), (12, 9, 0), (40, 30, 0), (150, 100, 0), (150, 100, 1), last] {
        let mut p = matrix(rows, cols, bits, 7);
        for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
            let size = fall * row.abs_diff(col).min(100);
            p.set_f64(row, col, (1.0 + (3 * row + col) as f64 / 7.0) * (-(size as f64)).exp2()).unwrap();
        }
        let options = SyrkOptions::new().accuracy(Accuracy::Entrywise);
        let context = |limit: Option<u64>| {
            let builder = Context::builder().threads(2);
            limit.map_or(builder.clone(), |limit| builder.memory_bytes(limit)).build().unwrap()
        };
        let what = format!("{rows} x {cols}, {fall} bits a row");
        let (peak, run) = rise(|| syrk_with(&context(None), &p, bits, &options).unwrap());
        assert!([0, (cols * (cols + 1) / 2) as u64].contains(&run.report.single_entries), "{what}: {:?}", run.report);
        let product = ProductPlanOptions::new().accuracy(Accuracy::Entrywise).range_bits(run.report.range_bits);
        let plan = |limit| plan_syrk_with(&context(limit), (rows, cols), bits, &product);
        let all = plan(None).unwrap();
        assert_eq!((all.planned_bytes, all.range_bits), (run.report.planned_bytes, run.report.range_bits), "{what}");
        assert_eq!((all.kernel, all.working_bits), (run.report.kernel, run.report.working_bits), "{what}");
        assert!(peak <= all.planned_bytes + (32 << 10), "{what}: peak {peak} above {}", all.planned_bytes);
        assert_eq!(fall > 0, all.range_bits > 24, "{what}: {}", all.range_bits);
        let Err(sunzi::Error::MemoryLimit { minimum_bytes, .. }) = plan(Some(1)) else { panic!("one byte is enough") };
        let tight = syrk_with(&context(Some(minimum_bytes)), &p, bits, &options).unwrap();
        assert_eq!(tight.result, run.result, "{what}");
        assert!(tight.report.planned_bytes <= minimum_bytes, "{what}");
        assert!(syrk_with(&context(Some(minimum_bytes - 1)), &p, bits, &options).is_err(), "{what}");
    }
}

/// Planned bytes without a limit, and the least limit that works.
fn limits(rows: usize, cols: usize, precision_bits: u32) -> (u64, u64) {
    let free = Context::builder().threads(3).build().unwrap();
    let tight = Context::builder().threads(3).memory_bytes(1).build().unwrap();
    let Err(sunzi::Error::MemoryLimit { minimum_bytes, .. }) = plan_syrk(&tight, rows, cols, precision_bits) else {
        panic!("one byte cannot be enough")
    };
    (plan_syrk(&free, rows, cols, precision_bits).unwrap().planned_bytes, minimum_bytes)
}

#[test]
fn every_kernel_keeps_its_plan() {
    let _alone = alone();
    let (tall, b) = (matrix(500, 64, 300, 1), matrix(500, 72, 300, 1));
    let transposed = GemmOptions::new().accuracy(Accuracy::Norm).op_a(Op::Transpose);
    for kernel in sunzi::advanced::kernels::available() {
        let ctx = Context::builder().threads(2).kernel(kernel.name()).build().unwrap();
        let (peak, outcome) =
            rise(|| syrk_with(&ctx, &tall, 300, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap());
        assert_close(peak, outcome.report.planned_bytes, kernel.name());
        let ctx = Context::builder().threads(2).kernel(kernel.name()).build().unwrap();
        let (peak, outcome) = rise(|| gemm_with(&ctx, &tall, &b, 300, &transposed).unwrap());
        assert_close(peak, outcome.report.planned_bytes, kernel.name());
        let (peak, again) = rise(|| gemm_with(&ctx, &tall, &b, 300, &transposed).unwrap());
        let extra = peak - again.result.bytes();
        // The library under `f64` packs up to 512 rows of 96 columns anew in each call, on each of the two threads.
        let packing = if kernel.name() == "f64" { 2 * 512 * 96 * 8 } else { 0 };
        let name = kernel.name();
        assert!(extra < (64 << 10) + packing, "{name}: a second call allocates {extra} bytes beside its result");
    }
}

/// Residues of 16 bits lie in whole words with their neighbours; bytes need more primes for the same modulus.
#[test]
fn small_residues_take_little_more_memory_than_those_of_52_bits() {
    let _alone = alone();
    let planned = |kernel: &str, (rows, cols, bits): (usize, usize, u32)| {
        let ctx = Context::builder().threads(1).kernel(kernel).build().ok()?;
        Some(plan_syrk(&ctx, rows, cols, bits).unwrap().planned_bytes)
    };
    for shape in [(4000, 1000, 1024), (2000, 2000, 768), (5000, 500, 512), (3000, 300, 2048), (1000, 1000, 256)] {
        let Some(base) = planned("ifma52", shape) else {
            println!("skipped: memory of small residues: this processor has no multiply-add of 52 bits");
            return;
        };
        for (kernel, percent) in [("i16", 103), ("i8", 140)] {
            let bytes = planned(kernel, shape).expect("these kernels run on every processor");
            assert!(bytes * 100 <= base * percent, "{shape:?}: {kernel} takes {bytes} bytes, ifma52 {base}");
        }
    }
}

/// About 80 primes or more on small planes: what a call lists for each prime weighs most here. Freivalds' test adds its
/// table and its vectors.
#[test]
fn checked_products_of_many_primes_keep_their_plan() {
    let _alone = alone();
    let (rows, precision_bits) = (150, 2048);
    let (p, b) = (matrix(rows, 64, precision_bits, 1), matrix(rows, 72, precision_bits, 1));
    let transposed = GemmOptions::new().accuracy(Accuracy::Norm).op_a(Op::Transpose);
    for kernel in sunzi::advanced::kernels::available() {
        let context = |threads| Context::builder().threads(threads).kernel(kernel.name()).freivalds(true);
        let ctx = context(1).build().unwrap();
        let (peak, outcome) =
            rise(|| syrk_with(&ctx, &p, precision_bits, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap());
        assert!(outcome.report.checked && outcome.report.primes >= 80, "{}: {:?}", kernel.name(), outcome.report);
        assert_close(peak, outcome.report.planned_bytes, &format!("tested syrk, {}", kernel.name()));
        let ctx = context(2).build().unwrap();
        let (peak, outcome) = rise(|| gemm_with(&ctx, &p, &b, precision_bits, &transposed).unwrap());
        assert_close(peak, outcome.report.planned_bytes, &format!("tested gemm, {}", kernel.name()));
    }
}

/// A tall product needs a large operand window, a wide one a large product window; both kept would break the limit.
#[test]
fn a_limit_holds_although_windows_of_another_shape_are_kept() {
    let _alone = alone();
    let (tall, wide) = (matrix(6000, 40, 200, 1), matrix(40, 400, 200, 1));
    let free = Context::builder().threads(1).build().unwrap();
    let planned = |p: &Matrix| plan_syrk(&free, p.rows(), p.cols(), 200).unwrap().planned_bytes;
    let limit = planned(&tall).max(planned(&wide));
    let before = allocated_bytes();
    let ctx = Context::builder().threads(1).memory_bytes(limit).build().unwrap();
    for p in [&tall, &wide, &tall] {
        reset_peak_bytes();
        syrk_with(&ctx, p, 200, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap();
        let peak = peak_bytes() - before;
        assert!(peak <= limit + (64 << 10), "kept windows raise the peak to {peak}, the limit is {limit}");
    }
}

/// Every kernel, tile sizes that leave a rest, several threads; a second call allocates the factor and little else.
#[test]
fn factorisations_keep_their_plan() {
    let _alone = alone();
    let (order, precision_bits) = (210, 300);
    let mut a = matrix(order, order, precision_bits, 1);
    (0..order).for_each(|i| a.set_f64(i, i, 200.0).unwrap());
    for kernel in sunzi::advanced::kernels::available() {
        for (threads, tile_rows) in [(1, None), (1, Some(64)), (2, Some(40))] {
            let ctx = Context::builder().threads(threads).kernel(kernel.name()).build().unwrap();
            let options = CholeskyOptions::new().accuracy(Accuracy::Norm).tile_rows(tile_rows);
            let what = format!("cholesky, {}, {threads} threads, tiles {tile_rows:?}", kernel.name());
            let (peak, first) = rise(|| cholesky_with(&ctx, Symmetric::lower(&a), precision_bits, &options).unwrap());
            let planned = first.report.planned_bytes;
            assert_close(peak, planned, &what);
            let (peak, second) =
                rise(|| cholesky_with(&ctx, Symmetric::lower(&a), precision_bits, &options).unwrap().result);
            assert_eq!(first.result.factor(), second.factor());
            if kernel.name() == "ifma52" {
                let extra = peak - second.factor().bytes();
                let diagonals = order as u64 * 2000; // made anew in each call: pivots and couplings
                assert!(extra < diagonals + (64 << 10), "{what}: a second call allocates {extra} bytes");
            }
        }
    }
}

/// Small tiles, in strips of up to 8 of a tile column: the locks on a strip's operands count too.
#[test]
fn factorisations_in_many_strips_keep_their_plan() {
    let _alone = alone();
    let order = 300;
    let options = CholeskyOptions::new().accuracy(Accuracy::Norm).tile_rows(8);
    for precision_bits in [64, 200] {
        let mut a = matrix(order, order, precision_bits, 1);
        (0..order).for_each(|i| a.set_f64(i, i, 300.0).unwrap());
        for (turn, kernel) in sunzi::advanced::kernels::available().iter().enumerate() {
            // Kernels and numbers of threads take turns at the precisions.
            for threads in
                (1..=3).filter(|threads| effort() > 1 || (turn + threads) % 2 == usize::from(precision_bits > 64))
            {
                let ctx = Context::builder().threads(threads).kernel(kernel.name()).build().unwrap();
                let (peak, factor) =
                    rise(|| cholesky_with(&ctx, Symmetric::lower(&a), precision_bits, &options).unwrap());
                let what = format!("{}, {threads} threads, {precision_bits} bits", kernel.name());
                let report = &factor.report;
                assert_eq!(report.tiles, 38, "{what}");
                assert!(peak <= report.planned_bytes, "{what}: peak {peak} above planned {}", report.planned_bytes);
                let planned = plan_cholesky(&ctx, order, precision_bits, &options).unwrap();
                assert_eq!(planned.planned_bytes, report.planned_bytes, "{what}");
            }
        }
    }
}

/// Factors that take more bits than were planned for are made number by number where tiles have no room: the same bits.
#[test]
fn factors_of_more_bits_than_planned_keep_the_limit() {
    let _alone = alone();
    let ctx = Context::builder().threads(1).build().unwrap();
    let options = CholeskyOptions::new().accuracy(Accuracy::Entrywise);
    // L with entries that fall by powers of two below the diagonal, so that products of small ones count.
    for order in [40, 104] {
        let entry = |row: usize, col: usize| {
            let value = Float::with_val(256, 2 + row * 7 + col * 3).sqrt();
            if row < col { Float::new(256) } else { value >> (9 * (row - col)).min(240) as u32 }
        };
        let factor = Matrix::from_fn(order, order, 256, entry).unwrap();
        let a = syrk(&ctx, factor.transposed(), 600).unwrap().into_matrix();
        let free = cholesky_with(&ctx, Symmetric::lower(&a), 256, &options).unwrap();
        let planned = plan_cholesky(&ctx, order, 256, &options).unwrap().planned_bytes;
        assert!(free.report.planned_bytes > planned, "{order}: {:?}", free.report);
        let limited = ctx.without_cache().with_memory_bytes(Some(planned));
        let (rose, found) = rise(|| cholesky_with(&limited, Symmetric::lower(&a), 256, &options).unwrap());
        assert!(found.result.factor() == free.result.factor(), "{order}");
        assert!(rose <= planned, "{order}: {rose} bytes, {planned} planned");
    }
}
