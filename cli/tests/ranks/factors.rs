//! `sunzi cholesky` and `sunzi solve` under a launcher: the file of one process, what ranks did, and how they fail.

use crate::harness::effort;
use crate::job::{Ended, Launcher};
use crate::program::{SOON, SUNZI, alone, json, kill_one, on_ranks, refused, same};
use crate::{Case, Run};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use sunzi::advanced::runtime::protocol::DeliveryKind;
use sunzi::io::{self, ReadOptions, WriteOptions};

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "factors::cholesky_writes_the_file_of_one_process", ranks: &[4], run: Run::Launcher(factors) },
    Case { name: "factors::solve_writes_the_file_of_one_process", ranks: &[3], run: Run::Launcher(solutions) },
    Case { name: "factors::the_bad_minor_is_that_of_one_process", ranks: &[1, 3], run: Run::Launcher(indefinite) },
    Case { name: "factors::an_error_is_one_line_and_one_code", ranks: &[4], run: Run::Launcher(errors) },
    Case { name: "factors::a_killed_rank_ends_the_job", ranks: &[3], run: Run::Alone(killed) },
];

/// A grid of each kind with the deliveries, each on one of them or on both; what is asked for beside the factor is all
/// there.
fn factors(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen lehmer --rows 90 --cols 90 --precision 200 -o A.bin");
    alone(at, "cholesky A.bin -o L1.bin --log-det --report one.json");
    let log_det = json(&at.join("one.json"))["log_det"].clone();
    assert!(log_det.is_string());
    let all = ["1x4", "2x2"].into_iter().flat_map(|grid| DeliveryKind::ALL.map(|kind| (grid, kind)));
    // Of the five deliveries every other one on each grid.
    for (_, (grid, delivery)) in all.enumerate().filter(|(turn, _)| effort() > 1 || turn % 2 == 0) {
        let name = delivery.name();
        let line = format!(
            "cholesky @/A.bin -o @/L.bin --grid {grid} --broadcast {name} --tile 8 --threads 1 --log-det \
             --report @/r.json --trace @/t.json --plot @/p.svg"
        );
        let ended = on_ranks(launcher, ranks, 2, at, &line);
        ended.expect_success();
        assert!(ended.output.contains(&format!("{ranks} ranks as {}", grid.replace('x', " x "))), "{}", ended.report());
        same(at, "L1.bin", "L.bin");
        let report = json(&at.join("r.json"));
        assert_eq!((&report["log_det"], &report["factorisation"]["delivery"]), (&log_det, &name.into()));
        assert_eq!(report["factorisation"]["per_rank"].as_array().unwrap().len(), ranks);
        // Of 2 x 2 ranks, each row of them a node, one rank of a node has the columns in which tiles of the other node
        // are right operands.
        let receivers = if grid == "2x2" { BTreeSet::from([1, 2]) } else { (0..ranks as u64).collect() };
        expect_spans(&at.join("t.json"), ranks, &receivers);
        let plot = std::fs::read_to_string(at.join("p.svg")).unwrap();
        assert!(plot.starts_with("<svg") && plot.trim_end().ends_with("</svg>") && plot.contains("ready tiles"));
        for name in ["L.bin", "r.json", "t.json", "p.svg"] {
            std::fs::remove_file(at.join(name)).unwrap(); // the next run writes its own
        }
    }
}

/// Every rank has tasks that finish tiles, and messages beside them; `receivers` get tiles from another node.
fn expect_spans(path: &Path, ranks: usize, receivers: &BTreeSet<u64>) {
    let trace = json(path);
    let (spans, names): (Vec<_>, Vec<_>) =
        trace["traceEvents"].as_array().unwrap().iter().partition(|event| event["ph"] == "X");
    let named =
        |kind: &str, name: &str| names.iter().any(|event| event["name"] == kind && event["args"]["name"] == name);
    assert!(named("process_name", "rank 0") && named("thread_name", "worker 1") && named("thread_name", "messages"));
    let ranks_with = |part: &str| {
        let chosen = spans.iter().filter(|span| span["name"].as_str().unwrap().contains(part));
        chosen.map(|span| span["pid"].as_u64().unwrap()).collect::<BTreeSet<_>>()
    };
    let all = (0..ranks as u64).collect::<BTreeSet<_>>();
    for part in ["trsm (", "gemm (", "send to "] {
        assert_eq!(ranks_with(part), all, "{part}");
    }
    assert_eq!(ranks_with("receive from "), *receivers);
    assert!(spans.iter().all(|span| span["dur"].as_f64().unwrap() >= 0.0));
}

fn solutions(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen minij --rows 100 --cols 100 --precision 250 -o A.bin");
    let all = [(1, "entrywise"), (5, "norm"), (70, "norm"), (70, "entrywise"), (1, "norm")];
    for &(cols, accuracy) in if effort() > 1 { &all[..] } else { &all[..4] } {
        alone(at, &format!("gen random --rows 100 --cols {cols} --precision 250 -o B.bin"));
        alone(at, &format!("solve A.bin B.bin -o X1.bin --accuracy {accuracy}"));
        let line = "solve @/A.bin @/B.bin -o @/X.bin --tile 16 --threads 1 --report @/r.json --trace @/t.json";
        on_ranks(launcher, ranks, 2, at, &format!("{line} --accuracy {accuracy}")).expect_success();
        same(at, "X1.bin", "X.bin");
        let report = json(&at.join("r.json"));
        assert_eq!((report["operation"].as_str(), report["cols"].as_u64()), (Some("solve"), Some(cols)));
        assert!(json(&at.join("t.json"))["traceEvents"].is_array());
        std::fs::remove_file(at.join("X.bin")).unwrap();
    }
}

/// What the program says that went wrong, and its exit code.
fn complaint(errors: &str) -> Vec<String> {
    errors.lines().filter(|line| line.contains("sunzi: error")).map(str::to_string).collect()
}

fn indefinite(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen minij --rows 60 --cols 60 --precision 150 -o A.bin");
    // A job takes half a second: with little effort one rank meets one of them.
    for &index in if effort() > 1 || ranks > 1 { &[0, 37, 59][..] } else { &[37] } {
        let mut a = io::read(at.join("A.bin"), &ReadOptions::new(150)).unwrap().matrix;
        a.set_f64(index, index, -3.0).unwrap();
        io::write(at.join("bad.bin"), a.view(), &WriteOptions::default()).unwrap();
        let one = Command::new(SUNZI).current_dir(at).args(["cholesky", "bad.bin", "-o", "L.bin"]).output().unwrap();
        let want = complaint(&String::from_utf8_lossy(&one.stderr));
        assert!(want.len() == 1 && want[0].contains(&format!("index {}:", index + 1)), "{want:?}");
        let ended = on_ranks(launcher, ranks, 2, at, "cholesky @/bad.bin -o @/L.bin --tile 8 --threads 1");
        refused(&ended, one.status.code().unwrap(), "positive definite");
        assert_eq!(complaint(&ended.errors), want);
        assert!(!at.join("L.bin").exists());
    }
}

fn errors(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen minij --rows 60 --cols 60 --precision 150 -o A.bin");
    let expect = |ended: &Ended, text: &str| {
        refused(ended, 2, text);
        assert!(!at.join("L.bin").exists() && !at.join("p.svg").exists(), "{}", ended.report());
    };
    let cases = [
        ("--grid 5x5", "--grid 5x5 needs 25 ranks, but there are 4"),
        ("--remote-tiles 0", "0 tiles of other ranks are allowed in the memory of a rank"),
        ("--broadcast nonsense --plot @/p.svg", "invalid value 'nonsense' for '--broadcast <WAY>'"),
        ("--grid 2x2 --condition", "--termination and --remote-tiles require a factor"),
        // Refused where arguments are read, as the third.
        ("--grid 2x0", "'2x0' for '--grid <PxQ>': choose 1 or more"),
        ("--remote-tiles -1", "--remote-tiles"),
        ("--broadcast nonsense", "invalid value 'nonsense' for '--broadcast <WAY>'"),
    ];
    for (options, text) in cases.into_iter().take(if effort() > 1 { 7 } else { 4 }) {
        let line = format!("cholesky @/A.bin -o @/L.bin --tile 8 --threads 1 {options}");
        expect(&on_ranks(launcher, ranks, 2, at, &line), text);
    }
    let line = "cholesky @/A.bin -o @/L.bin --grid 1x1";
    expect(&on_ranks(launcher, 1, 1, at, line), "start them with mpirun");
}

/// The slow kernel and small tiles make the run far longer than the time until the kill.
fn killed(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen minij --rows 700 --cols 700 --precision 512 -o A.bin");
    let mark = "to-be-killed-factor.bin";
    let line = format!("cholesky @/A.bin -o @/{mark} --threads 1 --tile 16 --kernel reference");
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| kill_one(mark));
        on_ranks(launcher, ranks, ranks, at, &line)
    });
    assert!(ended.status.is_some_and(|status| !status.success()) && ended.took < SOON, "{}", ended.report());
    assert!((ended.output.clone() + &ended.errors).contains("signal"), "{}", ended.report());
    assert!(ended.left.is_empty() && !at.join(mark).exists());
}
