//! Jobs that go wrong: a rank is killed, a rank gives up. The job must end soon, with an error, and leave no window.

use crate::job::{Job, Launcher, wait, windows_left};
use crate::{Case, Run};
use std::process::Command;
use std::time::{Duration, Instant};
use sunzi::advanced::testing::effort;
use sunzi::comm::mpi::MpiRank;
use sunzi::comm::window::{SharedWindow, WindowKind};
use sunzi::comm::{Fence, Transport, barrier};

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "failures::a_killed_rank_ends_the_job", ranks: &[2, 4], run: Run::Alone(killed) },
    Case { name: "failures::a_launcher_that_outlives_its_ranks_is_ended", ranks: &[1], run: Run::Alone(outlived) },
    Case { name: "failures::a_rank_killed_while_windows_are_made", ranks: &[3], run: Run::Alone(killed_early) },
    Case { name: "failures::abort_ends_all_ranks_with_its_code", ranks: &[1, 3], run: Run::Launcher(aborted) },
    Case { name: KILLED, ranks: &[], run: Run::Part(be_killed) },
    Case { name: KILLED_EARLY, ranks: &[], run: Run::Part(be_killed_early) },
    Case { name: ABORTED, ranks: &[], run: Run::Part(abort) },
    Case { name: OPENED, ranks: &[], run: Run::Part(open) },
];

const KILLED: &str = "killed between phases";
const KILLED_EARLY: &str = "killed while windows are made";
const ABORTED: &str = "abort";
const OPENED: &str = "open one window";

/// How soon a job must end after a rank has died.
const SOON: Duration = Duration::from_secs(20);

fn killed(launcher: &Launcher, ranks: usize) {
    let ended = launcher.run(&Job::of_case(KILLED, ranks));
    assert!(ended.status.is_some_and(|status| !status.success()) && ended.took < SOON, "{}", ended.report());
    assert!(ended.output.contains("windows are open"), "{}", ended.report());
    assert!(ended.left.is_empty(), "left: {:?}", ended.left);
}

/// A program whose one child has died, and which does not ask for it.
fn outlived(_: &Launcher, _: usize) {
    let start = Instant::now();
    let mut child = Command::new("sh").args(["-c", "true & exec sleep 600"]).spawn().unwrap();
    let status = wait(&mut child, start, Duration::from_millis(500));
    assert!(status.is_some_and(|status| !status.success()) && start.elapsed() < SOON, "{status:?}");
}

fn be_killed(rank: MpiRank) {
    let _posix = SharedWindow::open(&rank, WindowKind::Posix, 1 << 16).unwrap();
    let mut window = SharedWindow::open(&rank, WindowKind::Mpi, 1 << 16).unwrap();
    if rank.rank() == 0 {
        println!("windows are open");
    }
    barrier(&rank).unwrap();
    if rank.rank() == 1 {
        std::thread::sleep(Duration::from_millis(100));
        kill_this_process();
    }
    let _ = window.read(&Fence::new(&rank), Ok(()));
    unreachable!("a rank is missing");
}

fn kill_this_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

/// The name of a POSIX object may outlive a rank that is killed before all have mapped it; the next window removes it.
fn killed_early(launcher: &Launcher, ranks: usize) {
    // Each is a job of its own.
    let all = [("posix", 300), ("posix", 5000), ("mpi", 1000), ("posix", 2000), ("mpi", 7000)];
    for &(kind, microseconds) in if effort() > 1 { &all[..] } else { &all[..3] } {
        let mut job = Job::of_case(KILLED_EARLY, ranks);
        job.variables.push(("TEST_WINDOW".into(), kind.into()));
        job.variables.push(("TEST_MICROSECONDS".into(), microseconds.to_string()));
        let ended = launcher.run(&job);
        assert!(ended.status.is_some_and(|status| !status.success()) && ended.took < SOON, "{}", ended.report());
        assert!(kind == "posix" || ended.left.is_empty(), "{kind}: left: {:?}", ended.left);
    }
    // A rank that the launcher has killed may take a moment to die, and objects of living processes stay.
    for _ in 0..10 {
        launcher.run(&Job::of_case(OPENED, ranks)).expect_success();
        if windows_left().is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    panic!("the next windows left {:?}", windows_left());
}

fn be_killed_early(rank: MpiRank) {
    let variable = |name: &str| std::env::var(name).expect("the launching program sets it");
    let kind = WindowKind::by_name(&variable("TEST_WINDOW")).unwrap();
    if rank.rank() == 1 {
        let delay = Duration::from_micros(variable("TEST_MICROSECONDS").parse().unwrap());
        std::thread::spawn(move || {
            std::thread::sleep(delay);
            kill_this_process();
        });
    }
    loop {
        SharedWindow::open(&rank, kind, 1 << 12).unwrap().close().unwrap();
    }
}

fn open(rank: MpiRank) {
    SharedWindow::open(&rank, WindowKind::Posix, 1000).unwrap().close().unwrap();
}

fn aborted(launcher: &Launcher, ranks: usize) {
    let ended = launcher.run(&Job::of_case(ABORTED, ranks));
    // MPICH's launcher may end with the status of a rank that it killed; then it names the code.
    let named = ended.errors.contains("Abort(42)") && ended.status.is_some_and(|status| !status.success());
    let code = ended.status.and_then(|status| status.code());
    assert!((code == Some(42) || named) && ended.took < SOON, "{}", ended.report());
}

fn abort(rank: MpiRank) {
    if rank.rank() == rank.size() - 1 {
        rank.abort(42);
    }
    let _ = barrier(&rank);
    unreachable!("a rank is missing");
}
