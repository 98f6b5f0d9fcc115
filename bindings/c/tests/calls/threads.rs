//! Several threads on one context, progress, and cancelling.

use crate::common::{Array, Ctx, Kind, number};
use rug::Float;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use sunzi_c::sunzi_status::*;
use sunzi_c::*;

fn filled(rows: usize, cols: usize, seed: u64) -> Array {
    Array::new(Kind::Mpfr, SUNZI_COL_MAJOR, (rows, cols), |row, col| number(seed + (row + 1000 * col) as u64, 256))
}

fn syrk(ctx: &Ctx, a: &Array, c: &Array) -> sunzi_status {
    let (a, c, none) = (a.describe(), c.describe(), ptr::null());
    // SAFETY: all arrays are live.
    unsafe { sunzi_syrk(ctx.0, SUNZI_LOWER, SUNZI_TRANS, none, &a, none, &c) }
}

#[test]
fn threads_share_a_context_and_read_their_own_errors() {
    let ctx = Ctx::new(2);
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let ctx = &ctx;
            scope.spawn(move || {
                let mut a = filled(40, 30, thread);
                let (c, want) = (filled(30, 30, 1), filled(30, 30, 1));
                ctx.ok(syrk(&Ctx::new(1), &a, &want), "alone");
                for round in 0..8 {
                    ctx.ok(syrk(ctx, &a, &c), "together");
                    assert_eq!(ctx.message(), "");
                    for row in 0..30 {
                        assert!((0..=row).all(|col| c.get(row, col) == want.get(row, col)), "{thread}, {round}");
                    }
                    let (row, kept) = (thread as usize + 3, a.get(thread as usize + 3, round));
                    a.set(row, round, &Float::with_val(256, rug::float::Special::Nan));
                    assert_eq!(syrk(ctx, &a, &c), SUNZI_NOT_FINITE);
                    assert!(ctx.message().contains(&format!("row {row}, column {round}")), "{}", ctx.message());
                    a.set(row, round, &kept);
                }
            });
        }
    });
}

/// Counts calls and says stop at the count that it holds.
struct Watch {
    calls: AtomicU64,
    stop_at: u64,
}

/// # Safety
/// `user` is a live `Watch`, `phase` ends with a zero.
unsafe extern "C" fn watch(user: *mut c_void, phase: *const c_char, done: u64, total: u64) -> c_int {
    // SAFETY: the test passes a `Watch` that outlives the context, the library a text that ends with a zero.
    let (watch, phase) = unsafe { (&*user.cast::<Watch>(), CStr::from_ptr(phase)) };
    assert!(!phase.is_empty() && done <= total);
    (watch.calls.fetch_add(1, Ordering::Relaxed) + 1 == watch.stop_at).into()
}

#[test]
fn progress_is_told_and_may_cancel() {
    let (a, c) = (filled(80, 60, 1), filled(60, 60, 2));
    let before = c.matrix(|_, _| true);
    for stop_at in [1, 0] {
        let mut state = Watch { calls: AtomicU64::new(0), stop_at };
        let user = ptr::from_mut(&mut state).cast();
        let ctx = Ctx::with(&sunzi_options { progress: Some(watch), user, ..sunzi_options_default() });
        let status = syrk(&ctx, &a, &c);
        assert!(state.calls.load(Ordering::Relaxed) > 0);
        assert_eq!(status, if stop_at > 0 { SUNZI_CANCELLED } else { SUNZI_OK });
        // A call that is stopped leaves its result as it was.
        assert_eq!(c.matrix(|_, _| true) == before, stop_at > 0);
    }
}

/// A checked call has the same bits.
#[test]
fn options_reach_the_library() {
    let (a, c, want) = (filled(50, 20, 3), filled(20, 20, 4), filled(20, 20, 4));
    ctx_ok(&sunzi_options_default(), &a, &want);
    for kernel in [c"reference", c"f64"] {
        let options = sunzi_options {
            threads: 1,
            kernel: kernel.as_ptr(),
            self_check: 1,
            freivalds: 1,
            ..sunzi_options_default()
        };
        ctx_ok(&options, &a, &c);
        assert!(c.matrix(|_, _| true) == want.matrix(|_, _| true), "{kernel:?}");
    }
}

fn ctx_ok(options: &sunzi_options, a: &Array, c: &Array) {
    let ctx = Ctx::with(options);
    ctx.ok(syrk(&ctx, a, c), "syrk");
}

/// Takes the exit status of this child within a minute; kills it after that.
fn status_of(child: libc::pid_t) -> Option<c_int> {
    for _ in 0..600 {
        let mut status = 0;
        // SAFETY: `child` is a child of this process, `status` is live.
        if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == child {
            return libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    // SAFETY: as above.
    unsafe { libc::kill(child, libc::SIGKILL) };
    None
}

/// A fork has none of the parent's threads: its calls start threads of their own, and so do those of its forks. Each
/// may free the context, which waits for the threads of its own process alone.
#[test]
fn a_fork_computes_on_threads_of_its_own() {
    let ctx = Ctx::new(3);
    let (a, c, want) = (filled(200, 150, 1), filled(150, 150, 1), filled(150, 150, 1));
    ctx.ok(syrk(&ctx, &a, &want), "before the fork");
    let equal = || (0..150).all(|row| (0..=row).all(|col| c.get(row, col) == want.get(row, col)));
    // SAFETY: the children call the library alone, and leave by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = syrk(&ctx, &a, &c) == SUNZI_OK && equal();
        // SAFETY: as above.
        let grandchild = unsafe { libc::fork() };
        if grandchild == 0 {
            let right = syrk(&ctx, &a, &c) == SUNZI_OK && equal();
            // SAFETY: nobody uses the context in this process any more, which ends here.
            unsafe {
                sunzi_context_free(ctx.0);
                libc::_exit(if right { 0 } else { 1 })
            };
        }
        let right = right && status_of(grandchild) == Some(0);
        // SAFETY: as above.
        unsafe {
            sunzi_context_free(ctx.0);
            libc::_exit(if right { 0 } else { 1 })
        };
    }
    assert_eq!(status_of(child), Some(0), "the fork");
    ctx.ok(syrk(&ctx, &a, &c), "after the fork");
    assert!(equal());
}
