//! The program `sunzi` under a launcher: files in, the file of one process out, one voice, one exit code.

use crate::harness::effort;
use crate::job::{Ended, Job, Launcher};
use crate::{Case, Run};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use sunzi::io::{self, ReadOptions, WriteOptions};

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "program::syrk_writes_the_file_of_one_process", ranks: &[2, 3, 4], run: Run::Launcher(products) },
    Case { name: "program::each_rank_reads_its_own_file", ranks: &[3], run: Run::Launcher(own_files) },
    Case { name: "program::an_error_is_one_line_and_one_code", ranks: &[2, 4], run: Run::Launcher(errors) },
    Case { name: "program::different_arguments_are_refused", ranks: &[2], run: Run::Launcher(different) },
    Case { name: "program::a_killed_rank_ends_the_job", ranks: &[3], run: Run::Alone(killed) },
    Case { name: "program::other_commands_run_once", ranks: &[2], run: Run::Launcher(others) },
    Case { name: "program::doubles_run_on_devices", ranks: &[2], run: Run::Launcher(doubles_on_devices) },
    Case { name: "program::bench_compares_with_one_process", ranks: &[2], run: Run::Launcher(bench) },
    Case {
        name: "program::bench_times_factors_solves_and_a_step",
        ranks: &[1, 2, 3, 4],
        run: Run::Launcher(bench_solves),
    },
];

/// The program.
pub const SUNZI: &str = env!("CARGO_BIN_EXE_sunzi");

/// How soon a job must end after an error.
pub const SOON: Duration = Duration::from_secs(60);

/// Runs the program alone in `folder`.
pub fn alone(folder: &Path, line: &str) {
    let done = Command::new(SUNZI).current_dir(folder).args(line.split(' ')).arg("-q").status().unwrap();
    assert!(done.success(), "{line}");
}

/// Runs it on ranks; `@` in a line stands for the folder.
pub fn on_ranks(launcher: &Launcher, ranks: usize, per_node: usize, folder: &Path, line: &str) -> Ended {
    let line = line.replace('@', &folder.display().to_string());
    let mut job = Job::of_program(SUNZI, ranks, &line.split(' ').collect::<Vec<_>>());
    job.variables.push(("SUNZI_RANKS_PER_NODE".into(), per_node.to_string()));
    launcher.run(&job)
}

/// Two files of `folder` have the same bytes.
pub fn same(folder: &Path, left: &str, right: &str) {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(read(left) == read(right), "{left} and {right} differ");
}

fn products(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen random --rows 300 --cols 67 --precision 300 -o P.bin");
    alone(at, "gen random --rows 300 --cols 20 --precision 300 --seed 5 -o B.bin");
    alone(at, "syrk P.bin -o Q1.mtx --hex");
    alone(at, "syrk P.bin --transpose --upper -o T1.mtx --hex --alpha -2.5");
    alone(at, "gemm P.bin B.bin --transpose-a -o C1.bin");
    // Two ranks on a node and one on the next are enough for what is multiplied like the rest.
    if effort() > 1 || ranks == 3 {
        alone(at, "gemm P.bin B.bin --transpose-a -o E1.bin --accuracy entrywise");
        let line = "gemm @/P.bin @/B.bin --transpose-a -o @/E.bin --accuracy entrywise --threads 1";
        on_ranks(launcher, ranks, 2, at, line).expect_success();
        same(at, "E1.bin", "E.bin");
    }
    for (turn, (per_node, window)) in [(ranks, "auto"), (2, "posix"), (1, "mpi")].into_iter().enumerate() {
        let options = format!("--threads 1 --window {window} --report @/r.json --trace @/t.json");
        let calls = [
            ("Q1.mtx", "syrk @/P.bin --hex --self-check -o @/Q.mtx"),
            ("T1.mtx", "syrk @/P.bin --transpose --upper --hex --alpha -2.5 --memory 300M -o @/T.mtx"),
            ("C1.bin", "gemm @/P.bin @/B.bin --transpose-a -o @/C.bin"),
        ];
        for (call, (expected, line)) in calls.into_iter().enumerate() {
            // The windows and the numbers of ranks take turns at the calls.
            if effort() <= 1 && !(call + turn + ranks).is_multiple_of(calls.len()) {
                continue;
            }
            let line = format!("{line} {options}");
            let ended = on_ranks(launcher, ranks, per_node, at, &line);
            ended.expect_success();
            assert_eq!(ended.output.lines().count(), 2, "the trace and the result: {}", ended.report());
            let report = json(&at.join("r.json"));
            let count = |name: &str| report[name].as_u64().unwrap();
            assert_eq!((count("ranks"), count("nodes")), (ranks as u64, ranks.div_ceil(per_node) as u64));
            let windows = report["per_node"].as_array().unwrap().iter().map(|node| {
                let part = |name: &str| node["bytes"][name].as_u64().unwrap();
                part("operand_window") + part("product_window")
            });
            assert_eq!(windows.max(), Some(count("window_bytes")), "windows as planned");
            for peak in report["node_peak_bytes"].as_array().unwrap() {
                assert!(peak.as_u64().unwrap() <= count("planned_bytes"), "{line}: {report}");
            }
            let trace = json(&at.join("t.json"));
            let threads = trace["traceEvents"].as_array().unwrap().iter().map(|span| span["tid"].as_u64().unwrap());
            assert_eq!(threads.max(), Some(ranks as u64), "a line for each rank");
            let events = trace["traceEvents"].as_array().unwrap();
            let names = events.iter().filter_map(|event| event["args"]["name"].as_str()).collect::<Vec<_>>();
            let last = format!("rank {}", ranks - 1);
            assert!(["sunzi", "node 0", "rank 0", &last].iter().all(|name| names.contains(name)), "{names:?}");
            same(at, expected, &expected.replace('1', ""));
        }
    }
    accumulated(launcher, ranks, at);
}

/// Products of `P.bin` that are added to a matrix.
fn accumulated(launcher: &Launcher, ranks: usize, at: &Path) {
    alone(at, "syrk P.bin -o D.bin");
    alone(at, "syrk P.bin -o A1.bin --accumulate D.bin --beta 3");
    // The numbers of ranks take turns at the devices.
    for (turn, devices) in ["", " --device soft", " --device soft,soft --kernel cuda-i8"].into_iter().enumerate() {
        if effort() <= 1 && turn != ranks % 3 {
            continue;
        }
        let line = format!("syrk @/P.bin -o @/A.bin --accumulate @/D.bin --beta 3 --freivalds --threads 1{devices}");
        on_ranks(launcher, ranks, 2, at, &line).expect_success();
        same(at, "A1.bin", "A.bin");
    }
    if effort() <= 1 && ranks != 3 {
        return;
    }
    // A matrix that is not symmetric counts only with its triangle named.
    alone(at, "gen random --rows 67 --cols 67 --precision 300 --seed 8 -o E.bin");
    alone(at, "syrk P.bin -o A1.bin --accumulate E.bin --accumulate-triangle upper --ignore-other-triangle");
    let line = "syrk @/P.bin -o @/A.bin --accumulate @/E.bin --threads 1";
    std::fs::remove_file(at.join("A.bin")).unwrap();
    refused(&on_ranks(launcher, ranks, 2, at, line), 3, "E.bin: not symmetric: entry (2, 1) is");
    assert!(!at.join("A.bin").exists());
    let named = format!("{line} --accumulate-triangle upper");
    refused(&on_ranks(launcher, ranks, 2, at, &named), 3, "E.bin: not symmetric: entry (1, 2) is");
    on_ranks(launcher, ranks, 2, at, &format!("{named} --ignore-other-triangle")).expect_success();
    same(at, "A1.bin", "A.bin");
}

/// Doubles on devices of every rank, which hold fewer tiles than it has.
fn doubles_on_devices(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let line = "bench cholesky --element-type double --rows 300 --tile 25 --threads 1 --runs 1 --report @/r.json";
    let devices = "--device soft,soft:30K --device-memory 28K --policy greedy --eviction fifo";
    on_ranks(launcher, ranks, 2, at, &format!("{line} {devices}")).expect_success();
    let report = json(&at.join("r.json"));
    let moved = |name: &str| report["moved"][0][name].as_u64().unwrap();
    assert_eq!(moved("devices"), 2 * ranks as u64, "{report}");
    assert!(moved("h2d_bytes") > 0 && moved("h2d_bytes") < moved("baseline_h2d_bytes"), "{report}");
    let factor = &report["factor"];
    assert_eq!((&factor["policy"], &factor["eviction"]), (&"greedy".into(), &"fifo".into()), "{report}");
    assert_eq!(factor["devices"][1]["room_tiles"], 5, "28 KB hold so many tiles of 5000 bytes");
    on_ranks(launcher, ranks, 2, at, line).expect_success();
    assert_eq!(
        json(&at.join("r.json"))["moved"],
        serde_json::json!([]),
        "the processors factor where no device is named"
    );
}

/// What a file of JSON holds.
pub fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn own_files(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // The binary file of all rows is made of those of the ranks by a product with rows of the identity.
    alone(at, "gen random --rows 90 --cols 15 --precision 120 -o P.bin");
    let whole = io::read(at.join("P.bin"), &ReadOptions::new(120)).unwrap();
    for (rank, rows) in [0..10, 10..10, 10..90].into_iter().enumerate() {
        let block = whole.matrix.view().block(rows, 0..15).unwrap();
        let options = WriteOptions::default();
        io::write(at.join(format!("P.{rank}.bin")), block, &options).unwrap();
    }
    alone(at, "syrk P.bin -o Q1.bin");
    on_ranks(launcher, ranks, 2, at, "syrk @/P.{rank}.bin -o @/Q.bin --threads 1").expect_success();
    same(at, "Q1.bin", "Q.bin");
    std::fs::remove_file(at.join("P.2.bin")).unwrap();
    let ended = on_ranks(launcher, ranks, 2, at, "syrk @/P.{rank}.bin -o @/none.bin --threads 1");
    refused(&ended, 3, "rank 2: ");
    assert!(!at.join("none.bin").exists());
}

/// One line of error, the exit code, no hang.
pub fn refused(ended: &Ended, code: i32, text: &str) {
    assert_eq!(ended.status.and_then(|status| status.code()), Some(code), "{}", ended.report());
    let said = ended.errors.lines().filter(|line| line.contains("sunzi: error")).collect::<Vec<_>>();
    assert!(said.len() == 1 && said[0].contains(text) && ended.took < SOON, "{}", ended.report());
    assert!(ended.left.is_empty());
}

fn errors(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen random --rows 300 --cols 67 --precision 300 -o P.bin");
    let cases = [
        ("syrk @/missing.bin -o @/Q.mtx", 3, "missing.bin: cannot open"),
        ("syrk @/P.bin -o @/none/Q.mtx", 3, "none/Q.mtx: cannot create"),
        ("syrk @/P.bin -o @/Q.mtx --threads 0", 2, "choose 1 to 4096"),
        ("syrk @/P.bin -o @/Q.mtx --exact-integers", 3, "is not an integer"),
        ("syrk @/P.bin -o @/Q.mtx --window heap", 2, "heap"),
        ("bench syrk --rows 9 --cols 9 --device soft", 2, "--device: a product on several ranks"),
        ("bench cholesky --rows 9 --device soft", 2, "--device: a factorisation on several ranks"),
        (
            "bench cholesky --element-type double --rows 9 --eviction fifo",
            2,
            "--eviction on several ranks requires --device",
        ),
        ("bench cholesky --element-type double --rows 300 --tile 25 --device soft:1K", 4, "at least"),
        ("bench cholesky --element-type double --rows 2000 --memory 40M", 4, "this operation needs at least"),
        ("syrk @/P.bin -o @/Q.mtx --memory 40M --threads 1", 4, "this operation needs at least"),
        ("nonsense", 2, "nonsense"),
    ];
    // A job takes half a second: with little effort two ranks have a third of the cases, and four another one.
    for (case, (line, code, text)) in cases.into_iter().enumerate() {
        if effort() <= 1 && case % 3 != ranks / 2 - 1 {
            continue;
        }
        refused(&on_ranks(launcher, ranks, 2, at, line), code, text);
        assert!(!at.join("Q.mtx").exists());
    }
}

/// Ranks that are asked for different things, as in a farm of tasks, are refused rather than joined to one.
fn different(launcher: &Launcher, ranks: usize) {
    let script = format!("{SUNZI} gen hilbert --rows 3 --cols 3 --precision 64 -o $OMPI_COMM_WORLD_RANK$PMI_RANK.mtx");
    let folder = tempfile::tempdir().unwrap();
    let line = format!("cd {} && {script}", folder.path().display());
    let ended = launcher.run(&Job::of_program("/bin/sh", ranks, &["-c", &line]));
    refused(&ended, 2, "ranks were started with different arguments");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let ended = launcher.run(&Job::of_program(
        "/bin/sh",
        ranks,
        &["-c", &line.replace(SUNZI, &format!("SUNZI_ALONE=1 {SUNZI}"))],
    ));
    ended.expect_success();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), ranks);
}

fn killed(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen random --rows 3000 --cols 400 --precision 1024 -o P.bin");
    for window in ["posix", "mpi"] {
        let mark = format!("to-be-killed-{window}.bin");
        let line = format!("syrk @/P.bin -o @/{mark} --threads 1 --window {window}");
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| kill_one(&mark));
            on_ranks(launcher, ranks, ranks, at, &line)
        });
        assert!(ended.status.is_some_and(|status| !status.success()) && ended.took < SOON, "{}", ended.report());
        // Open MPI tells it on one stream, MPICH on the other.
        assert!((ended.output.clone() + &ended.errors).contains("signal"), "{}", ended.report());
        assert!(ended.left.is_empty() && !at.join(&mark).exists());
    }
}

/// Kills one process whose command line contains `mark`, but not the launcher, once it is at work: after some time.
pub fn kill_one(mark: &str) {
    kill_one_when(mark, || {
        std::thread::sleep(Duration::from_millis(700));
        true
    });
}

/// The same, once it is `ready`.
pub fn kill_one_when(mark: &str, ready: impl Fn() -> bool) {
    let start = Instant::now();
    while start.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(10));
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let ranks = processes.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse::<i32>().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).into_owned();
            (line.starts_with(SUNZI) && line.contains(mark)).then_some(pid)
        });
        if let Some(pid) = ranks.max().and_then(rustix::process::Pid::from_raw) {
            if !ready() {
                continue;
            }
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            return;
        }
    }
}

fn others(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let made = on_ranks(launcher, ranks, 2, at, "gen hilbert --rows 20 --cols 20 --precision 300 -o @/A.mtx");
    made.expect_success();
    assert_eq!(made.output.lines().count(), 1, "{}", made.report());
    alone(at, "gen random --rows 20 --cols 1 --precision 300 -o B.mtx");
    for (line, name) in [
        ("cholesky @/A.mtx -o @/L.mtx --precision 300 --condition", "--condition"),
        ("solve @/A.mtx @/B.mtx -o @/X.mtx --certified", "--certified"),
        ("solve @/A.mtx @/B.mtx -o @/X.mtx --digits 20", "--digits"),
        ("cholesky @/A.mtx -o @/K.mtx --precision auto", "--precision auto"),
        ("solve @/A.mtx @/B.mtx -o @/X.mtx --refine-from 250", "--refine-from"),
        ("solve @/A.mtx @/B.mtx -o @/X.mtx --log-det", "solve with --log-det"),
        ("inverse @/A.mtx -o @/X.mtx", "inverse"),
        ("trsm @/L.mtx @/B.mtx -o @/X.mtx", "trsm without --storage"),
        ("verify cholesky @/A.mtx @/L.mtx", "verify"),
    ] {
        let ended = on_ranks(launcher, ranks, 2, at, line);
        ended.expect_success();
        let remark = format!("sunzi: {name} runs in one process: the first of 2 ranks computes, the others wait; ");
        assert_eq!(ended.errors.matches("runs in one process").count(), 1, "{}", ended.report());
        assert!(ended.errors.contains(&remark), "{line}: {}", ended.report());
    }
    let shared = on_ranks(launcher, ranks, 2, at, "solve @/A.mtx @/B.mtx -o @/X.mtx");
    shared.expect_success();
    assert!(!shared.errors.contains("in one process"), "{}", shared.report());
    let different = on_ranks(launcher, ranks, 2, at, "compare @/A.mtx @/L.mtx");
    assert_eq!(different.status.and_then(|status| status.code()), Some(1), "{}", different.report());
    assert_eq!(on_ranks(launcher, ranks, 2, at, "--version").output.lines().count(), 1);
}

fn bench(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let line =
        "bench syrk --rows 2000 --cols 67 --precision 128 --runs 1 --threads 1 --memory-fractions 2 --report @/r.json";
    on_ranks(launcher, ranks, 1, folder.path(), line).expect_success();
    let report = json(&folder.path().join("r.json"));
    let comparisons = report["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 3, "as they are, as one node, in half the memory");
    assert!(comparisons.iter().all(|comparison| comparison["same_bits"] == true), "{report}");
}

fn bench_solves(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let operations = ["cholesky --rows 100", "trsm --rows 150 --cols 20", "solve --rows 40 --cols 1"];
    for (turn, operation) in operations.into_iter().enumerate() {
        // The numbers of ranks above one share the operations, and one rank has the first.
        if effort() <= 1 && (ranks == 1 && turn > 0 || ranks > 1 && turn % 2 == usize::from(ranks == 4)) {
            continue;
        }
        let line = format!("bench {operation} --precision 128 --runs 1 --threads 1 --report @/r.json");
        on_ranks(launcher, ranks, 2, at, &line).expect_success();
        let report = json(&at.join("r.json"));
        let said = if ranks > 1 { &report["ratio"] } else { &report["seconds"]["min"] };
        assert!(said.as_f64().unwrap() > 0.0, "{report}");
    }
    let line = "bench step --blocks 5 --order 7 --cols 19 --precision 128 --runs 1 --threads 1 --against mpfr";
    on_ranks(launcher, ranks, 2, at, &format!("{line} --report @/r.json")).expect_success();
    let report = json(&at.join("r.json"));
    let told = [&report["same_bits"], &report["checked"], &report["baselines"][0]["checked"]];
    assert!(report["ranks"] == ranks && told.into_iter().all(|told| told == true), "{report}");
}
