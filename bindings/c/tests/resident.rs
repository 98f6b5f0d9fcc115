//! Threads of the caller that come and go leave no memory behind.
//!
//! A program of its own, since the resident memory is that of the whole process.

mod common;

use common::{Array, Ctx, Kind, definite};
use rug::Float;
use sunzi_c::*;

const COL: i32 = SUNZI_COL_MAJOR;

/// Bytes of this process in memory.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn threads_that_come_and_go_leave_nothing_behind() {
    let ctx = Ctx::new(1);
    let matrix = definite(3, 4000, 1);
    // SAFETY: all arrays are live.
    let once = || unsafe {
        let (a, result) = (Array::of(Kind::Mpfr, COL, &matrix), Float::new(4000));
        let target = sunzi_mpfr_matrix(COL, 1, 1, (&raw const result).cast(), 1);
        ctx.ok(sunzi_log_det(ctx.0, &a.describe(), &target), "log_det");
    };
    let rounds = |count: usize| {
        for _ in 0..count {
            std::thread::scope(|scope| scope.spawn(once).join().unwrap());
        }
    };
    rounds(200);
    let before = resident_bytes();
    rounds(1000);
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 1 << 20, "{grown} bytes more");
}
