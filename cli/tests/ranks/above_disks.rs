//! Commands with `--storage` under a launcher: a directory for each rank, the file of one process.

use crate::harness::effort;
use crate::job::Launcher;
use crate::program::{SOON, alone, json, kill_one_when, on_ranks, refused, same};
use crate::{Case, Run};
use std::path::Path;

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "above_disks::a_factor_is_the_same_file", ranks: &[4], run: Run::Launcher(factors) },
    Case { name: "above_disks::products_are_the_same_files", ranks: &[3], run: Run::Launcher(products) },
    Case { name: "above_disks::solutions_are_the_same_files", ranks: &[2], run: Run::Launcher(solutions) },
    Case { name: "above_disks::killed_it_goes_on", ranks: &[3], run: Run::Alone(killed) },
];

/// Each rank has a directory of its own; what one finds there it does not compute again, on other ranks too.
fn factors(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen lehmer --rows 150 --cols 150 --precision 200 -o A.bin");
    alone(at, "cholesky A.bin -o L1.bin --accuracy norm");
    let line = "cholesky @/A.bin -o @/L.bin --accuracy norm --storage @/tiles --tile 16 --threads 1 --memory 400M \
                --report @/r.json";
    for (grid, found) in [("2x2", false), ("2x2", true), ("1x4", true)] {
        let ended = on_ranks(launcher, ranks, 2, at, &format!("{line} --grid {grid}"));
        ended.expect_success();
        assert!(ended.output.contains(&format!("{ranks} ranks as {}", grid.replace('x', " x "))), "{}", ended.report());
        same(at, "L1.bin", "L.bin");
        let report = json(&at.join("r.json"));
        assert_eq!(report["tiles_found"].as_u64().unwrap() > 0, found, "{}", ended.report());
        assert!((0..ranks).all(|rank| at.join(format!("tiles/rank-{rank}/identity.json")).exists()));
        std::fs::remove_file(at.join("L.bin")).unwrap();
    }
    let ended = on_ranks(
        launcher,
        ranks,
        2,
        at,
        "cholesky @/A.bin -o @/L.bin --accuracy norm --storage @/tiles --tile 16 --memory 9M",
    );
    refused(&ended, 4, "at least");
    assert!(!at.join("L.bin").exists());
    let doubles = |line: &str, storage: &str| format!("{line} --element-type double").replace("tiles", storage);
    alone(at, &doubles("cholesky A.bin -o D1.bin --storage tiles --tile 16", "one"));
    on_ranks(launcher, ranks, 2, at, &doubles(line, "doubles")).expect_success();
    same(at, "D1.bin", "L.bin");
}

/// Whether there is something in a directory for a later run to find.
fn keeps_a_tile(directory: &Path) -> bool {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    files.map(|file| file.path()).any(|path| path.extension().is_some_and(|end| end == "group"))
}

/// Killed as soon as the first tile is kept.
fn killed(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen minij --rows 400 --cols 400 --precision 512 -o A.bin");
    alone(at, "cholesky A.bin -o L1.bin --accuracy norm");
    let mark = "to-be-killed-above-disks.bin";
    let line = format!(
        "cholesky @/A.bin -o @/{mark} --accuracy norm --storage @/tiles --threads 1 --tile 16 --kernel reference"
    );
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            kill_one_when(mark, || (0..ranks).any(|rank| keeps_a_tile(&at.join(format!("tiles/rank-{rank}")))))
        });
        on_ranks(launcher, ranks, ranks, at, &line)
    });
    assert!(ended.status.is_some_and(|status| !status.success()) && ended.took < SOON, "{}", ended.report());
    assert!(ended.left.is_empty() && !at.join(mark).exists());
    let ended = on_ranks(launcher, ranks, ranks, at, &line.replace(" --kernel reference", " --report @/r.json"));
    ended.expect_success();
    same(at, "L1.bin", mark);
    assert!(json(&at.join("r.json"))["tiles_found"].as_u64().unwrap() > 0, "{}", ended.report());
}

fn products(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen random --rows 300 --cols 200 --precision 200 -o P.bin");
    alone(at, "gen random --rows 200 --cols 90 --precision 200 --seed 3 -o B.bin");
    for (command, name) in [("syrk @/P.bin --accuracy norm", "Q"), ("gemm @/P.bin @/B.bin --accuracy norm", "C")] {
        alone(at, &format!("{} -o {name}1.bin", command.replace("@/", "")));
        let line = format!("{command} -o @/{name}.bin --storage @/{name} --memory 400M --threads 1 --report @/r.json");
        for found in [false, true] {
            let ended = on_ranks(launcher, ranks, 2, at, &line);
            ended.expect_success();
            assert!(ended.output.contains(&format!("per rank, {ranks} ranks")), "{}", ended.report());
            same(at, &format!("{name}1.bin"), &format!("{name}.bin"));
            let report = json(&at.join("r.json"));
            assert_eq!((report["tiles_found"].as_u64().unwrap() > 0, report["ranks"].as_u64()), (found, Some(3)));
            assert!((0..ranks).all(|rank| at.join(format!("{name}/rank-{rank}/identity.json")).exists()));
            std::fs::remove_file(at.join(format!("{name}.bin"))).unwrap();
        }
        // With little effort one refusal for each command: a job takes half a second.
        if effort() > 1 || name == "Q" {
            refused(&on_ranks(launcher, ranks, 2, at, &line.replace("400M", "9M")), 4, "at least");
        }
        if effort() > 1 || name == "C" {
            let text = line.replace("@/P.bin", "@/P.mtx");
            refused(&on_ranks(launcher, ranks, 2, at, &text), 2, "--storage requires binary files");
        }
        assert!(!at.join(format!("{name}.bin")).exists());
    }
}

fn solutions(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    alone(at, "gen lehmer --rows 120 --cols 120 --precision 200 -o A.bin");
    alone(at, "cholesky A.bin -o L.bin");
    alone(at, "gen random --rows 120 --cols 40 --precision 200 -o B.bin");
    for (command, name) in
        [("trsm @/L.bin @/B.bin --accuracy norm", "Y"), ("solve @/A.bin @/B.bin --accuracy norm", "X")]
    {
        alone(at, &format!("{} -o {name}1.bin", command.replace("@/", "")));
        let line = format!("{command} -o @/{name}.bin --storage @/{name} --memory 400M --threads 1 --report @/r.json");
        for found in [false, true] {
            on_ranks(launcher, ranks, 2, at, &line).expect_success();
            same(at, &format!("{name}1.bin"), &format!("{name}.bin"));
            let report = json(&at.join("r.json"));
            assert_eq!(
                (report["tiles_found"].as_u64(), report["ranks"].as_u64()),
                (Some(if found { 5 } else { 0 }), Some(2))
            );
            std::fs::remove_file(at.join(format!("{name}.bin"))).unwrap();
        }
        refused(&on_ranks(launcher, ranks, 2, at, &line.replace("400M", "9M")), 4, "at least");
    }
}
