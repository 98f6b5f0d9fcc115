//! The program under a launcher when a signal comes to all its ranks: a complete result and code 0, or neither.

use crate::job::{Ended, Launcher};
use crate::program::{SUNZI, alone, json, on_ranks, refused};
use crate::{Case, Run};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "signals::a_complete_result_is_not_cancelled", ranks: &[3], run: Run::Launcher(late) },
    Case { name: "signals::a_cancelled_result_is_absent", ranks: &[2], run: Run::Launcher(in_the_middle) },
    Case { name: "signals::a_stopped_solver_keeps_its_state", ranks: &[2], run: Run::Launcher(solver) },
];

/// Processes of the program, but for the launcher, whose arguments contain `mark`.
fn ranks_of(mark: &str) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ranks = processes.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse::<i32>().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        (line.starts_with(SUNZI) && line.contains(mark)).then_some(pid)
    });
    ranks.filter_map(Pid::from_raw).collect()
}

/// Runs `line` on ranks and `meanwhile` beside them.
fn with(launcher: &Launcher, ranks: usize, at: &Path, line: &str, meanwhile: impl FnOnce() + Send) -> Ended {
    std::thread::scope(|scope| {
        let beside = scope.spawn(meanwhile);
        let ended = on_ranks(launcher, ranks, ranks, at, line);
        beside.join().unwrap();
        ended
    })
}

fn wait_until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn interrupt(mark: &str) {
    ranks_of(mark).into_iter().for_each(|pid| kill_process(pid, Signal::INT).unwrap_or_default());
}

/// The report goes to a pipe, which waits for its reader when the result is complete.
fn late(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen random --rows 60 --cols 20 --precision 200 -o P.bin");
    let pipe = at.join("report-of-an-interrupted-run");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let line = "syrk @/P.bin -o @/Q.mtx --threads 1 --report @/report-of-an-interrupted-run";
    let ended = with(launcher, ranks, at, line, || {
        wait_until(|| at.join("Q.mtx").exists());
        std::thread::sleep(Duration::from_millis(200));
        interrupt("report-of-an-interrupted-run");
        std::thread::sleep(Duration::from_millis(200));
        let reader = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        wait_until(|| ranks_of("report-of-an-interrupted-run").is_empty());
        drop(reader);
    });
    ended.expect_success();
    assert!(ended.output.contains("Q.mtx: 20 x 20") && !ended.errors.contains("cancelled"), "{}", ended.report());
    let line = "syrk @/P.bin -o @/R.mtx --threads 1 --report @/r.json";
    on_ranks(launcher, ranks, ranks, at, line).expect_success();
    assert_eq!(json(&at.join("r.json"))["ranks"], ranks);
    assert_eq!(fs::read(at.join("Q.mtx")).unwrap(), fs::read(at.join("R.mtx")).unwrap());
}

/// The root writes for seconds; the other ranks wait for it.
fn in_the_middle(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().canonicalize().unwrap();
    let writes = |pid: &Pid| {
        let files = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).into_iter().flatten().flatten();
        files.map(|entry| entry.path()).any(|file| {
            fs::read_link(&file).is_ok_and(|name| name.starts_with(&at))
                && fs::metadata(&file).is_ok_and(|data| data.len() > 0)
        })
    };
    let line = "gen random --rows 800 --cols 800 --precision 3000 -o @/interrupted-in-the-middle.mtx";
    let ended = with(launcher, ranks, &at, line, || {
        wait_until(|| ranks_of("interrupted-in-the-middle").iter().any(writes));
        interrupt("interrupted-in-the-middle");
    });
    refused(&ended, 130, "cancelled");
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0);
}

/// All ranks stop behind the same iteration, and the root writes what there is.
fn solver(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    crate::sdp::paths(at, 24);
    let line = "sdp -s @/paths.dat-s -o @/stopped-solver --precision 2000 --no-ramp --threads 1 --checkpointInterval 0";
    let ended = with(launcher, ranks, at, line, || {
        wait_until(|| at.join("paths.dat-s.ck/checkpoint.bin").exists());
        interrupt("stopped-solver");
    });
    refused(&ended, 130, "cancelled");
    let text = fs::read_to_string(at.join("stopped-solver/out.txt")).unwrap();
    assert!(text.contains("SIGINT signal received"), "{text}");
    let again = on_ranks(launcher, ranks, 1, at, &format!("{line} --maxIterations 1"));
    again.expect_success();
    assert!(again.output.contains("resumes from the checkpoint"), "{}", again.report());
}
