//! What stands in the folder of an output after the program was stopped in the middle of it.

use crate::sandbox::Sandbox;
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

/// Decimals that take seconds to write.
const LONG: &str = "gen random --rows 300 --cols 800 --precision 3000 -o P.mtx";

/// Waits until `child` has written part of a file without a name; `None` where the file system has none.
fn wait_for_writing(sandbox: &Sandbox, child: &Child) -> Option<()> {
    let start = Instant::now();
    let folder = sandbox.path("").canonicalize().unwrap();
    loop {
        let files = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().flatten();
        let begun = files.map(|entry| entry.path()).any(|file| {
            let is_output = fs::read_link(&file)
                .is_ok_and(|name| name.starts_with(&folder) && name.to_string_lossy().ends_with(" (deleted)"));
            is_output && fs::metadata(&file).is_ok_and(|data| data.len() > 0)
        });
        if begun {
            return Some(());
        }
        if sandbox.names().iter().any(|name| name.ends_with(".tmp")) {
            println!("skipped: the file system has no unnamed files");
            return None;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "nothing was written");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether this process ignores a signal, as under `nohup`; the programs that it starts do so too then.
fn is_ignored(number: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() >> (number - 1) & 1 == 1
}

#[test]
fn no_signal_leaves_a_part_of_a_file() {
    let sandbox = Sandbox::new();
    for (signal, number) in [("HUP", 1), ("QUIT", 3), ("XCPU", 24), ("ALRM", 14), ("KILL", 9)] {
        if is_ignored(number) {
            println!("skipped: SIG{signal} is ignored here");
            continue;
        }
        let child = sandbox.start_within("true", LONG);
        let writing = wait_for_writing(&sandbox, &child);
        sandbox.signal(&child, signal);
        assert_eq!(sandbox.finish(child).code, -1, "{signal} ends the program");
        if writing.is_none() {
            return;
        }
        assert_eq!(sandbox.names(), Vec::<String>::new(), "{signal}");
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let sandbox = Sandbox::new();
    for (name, line) in [("P.mtx", LONG), ("P.bin", "gen random --rows 300 --cols 300 --precision 300 -o P.bin")] {
        let output = sandbox.finish(sandbox.start_within("ulimit -f 100", line));
        let told = format!("sunzi: error: {name}: cannot write: File too large (os error 27)\n");
        assert_eq!((output.code, output.stderr), (3, told));
        assert_eq!(sandbox.names(), Vec::<String>::new());
    }
}

#[test]
fn what_a_killed_process_left_is_removed() {
    let sandbox = Sandbox::new();
    sandbox.write(".sunzi-Abc123.tmp", "half a matrix");
    sandbox.write("mine.tmp", "not a temporary file of the program");
    sandbox.run("gen hilbert --rows 3 --cols 3 --precision 64 -o H.mtx");
    assert_eq!(sandbox.names(), ["H.mtx", "mine.tmp"]);
}

#[test]
fn a_private_output_is_private_while_it_is_written() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    sandbox.write("P.mtx", "secret");
    fs::set_permissions(sandbox.path("P.mtx"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut child = sandbox.start(LONG);
    if wait_for_writing(&sandbox, &child).is_some() {
        let files = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().flatten();
        let parts = files.filter(|entry| {
            fs::read_link(entry.path()).is_ok_and(|name| name.to_string_lossy().ends_with(" (deleted)"))
        });
        let modes: Vec<u32> =
            parts.map(|entry| fs::metadata(entry.path()).unwrap().permissions().mode() & 0o777).collect();
        assert_eq!(modes, [0o600]);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(sandbox.text("P.mtx"), "secret");
}

#[test]
fn a_signal_after_the_result_is_complete_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 40 --cols 20 --precision 100 -o P.bin");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        sandbox.path("report"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let child = sandbox.start("syrk P.bin -o Q.mtx --report report");
    // The report waits for its reader, and the result is complete before.
    let start = Instant::now();
    while !sandbox.path("Q.mtx").exists() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    for _ in 0..2 {
        sandbox.signal(&child, "INT");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(sandbox.text("report").contains("\"syrk\""));
    let output = sandbox.finish(child);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert!(output.stdout.starts_with("Q.mtx: 20 x 20"), "{}", output.stdout);
}

#[cfg(unix)]
#[test]
fn a_binary_matrix_larger_than_memory_is_generated() {
    let sandbox = Sandbox::new();
    let line = "gen random --rows 1100 --cols 1300 --precision 768 -o P.bin";
    // Threads of OpenBLAS that are refused memory try again for ever.
    let limits = "export OPENBLAS_NUM_THREADS=1; ulimit -v 140000";
    let output = sandbox.finish(sandbox.start_within(limits, line));
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert!(fs::metadata(sandbox.path("P.bin")).unwrap().len() > 140_000 << 10);
    let refused = sandbox.finish(sandbox.start_within(limits, &line.replace(".bin", ".mtx")));
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    sandbox.run("gen hilbert --rows 60 --cols 60 --precision 99 --symmetric -o H.bin");
    sandbox.run("gen hilbert --rows 60 --cols 60 --precision 99 --symmetric -o H.mtx");
    sandbox.run("convert H.mtx again.bin");
    assert!(sandbox.bytes("H.bin") == sandbox.bytes("again.bin"));
    sandbox.run("gen lehmer --rows 60 --cols 60 --precision 99 --symmetric -o A.bin");
    sandbox.run("cholesky A.bin -o L.bin");
    let error = sandbox.fail("gen random --rows 6 --cols 6 --precision 99 --symmetric -o X.bin", 2);
    assert!(error.contains("a 6 x 6 matrix of the kind random is not symmetric"), "{error}");
}
