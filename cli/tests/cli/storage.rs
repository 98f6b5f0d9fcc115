//! Factorisations and products with their tiles in a directory: killed, begun again, damaged, refused.
//! With `SUNZI_TEST_EFFORT` above 1 there are hundreds of kills.

use super::sandbox::{Sandbox, effort, named_minimum};
use std::process::Child;
use std::time::{Duration, Instant};

/// A matrix in `Q.bin`, and its factor of one call in memory in `L.bin`.
fn factored(order: usize, bits: u32) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("gen random --rows {} --cols {order} --precision {bits} -o P.bin", order + 20));
    sandbox.run("syrk P.bin -o Q.bin");
    sandbox.run("cholesky Q.bin -o L.bin --accuracy norm");
    sandbox
}

/// The result in `X.bin` is that of memory in `expected`.
fn check(sandbox: &Sandbox, expected: &str) {
    assert!(sandbox.bytes("X.bin") == sandbox.bytes(expected), "another result than {expected}");
    std::fs::remove_file(sandbox.path("X.bin")).unwrap();
}

/// Two operands, and in `S.bin` and `G.bin` their products of calls in memory: long enough for kills at all times.
fn multiplied() -> Sandbox {
    let thorough = effort() > 1;
    if thorough { multiplied_of(280, 700, 300) } else { multiplied_of(160, 350, 200) }
}

/// Files A (`m x k`), P (`k x n`), and both products formed in memory.
fn multiplied_of(m: usize, k: usize, n: usize) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("gen random --rows {k} --cols {n} --precision 400 -o P.bin"));
    sandbox.run(&format!("gen random --rows {m} --cols {k} --precision 400 --seed 5 -o A.bin"));
    sandbox.run("syrk P.bin -o S.bin --accuracy norm");
    sandbox.run("gemm A.bin P.bin -o G.bin --accuracy norm");
    sandbox
}

const SYRK: &str = "syrk P.bin -o X.bin --accuracy norm --storage tiles --memory 44M --threads 2";

const GEMM: &str = "gemm A.bin P.bin -o X.bin --accuracy norm --storage tiles --memory 46M --threads 2";

const LINE: &str = "cholesky Q.bin -o X.bin --accuracy norm --storage tiles --tile 24 --memory 46M --threads 2";

/// Waits until a run has opened its directory, or has ended.
fn wait_for_tiles(sandbox: &Sandbox, child: &mut Child) {
    while !sandbox.path("tiles").is_dir() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills a command at all times of its run, and lets it end now and then.
fn kill_and_go_on(sandbox: &Sandbox, line: &str, expected: &str) {
    let start = Instant::now();
    sandbox.run(line);
    let mut whole = start.elapsed();
    check(sandbox, expected);
    std::fs::remove_dir_all(sandbox.path("tiles")).unwrap();
    let (mut kills, mut resumes, mut inside) = (0, 0, 0);
    let wanted = if effort() > 1 { (100 * effort()).min(300) } else { 8 };
    while kills < wanted {
        let mut child = sandbox.start(line);
        // From the start of the program to its end, in steps that do not repeat.
        std::thread::sleep(whole.mul_f64(f64::from(kills * 37 % 100) / 100.0) + Duration::from_millis(2));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            kills += 1;
        } else {
            // The run that was timed had less of the machine than this one: later kills would never come in time.
            whole = whole.mul_f64(0.9);
        }
        sandbox.finish(child);
        inside += u32::from(has_begun_a_write(sandbox));
        // A file that has its temporary name when the program is killed keeps it until the next output takes it away.
        let left = |name: &String| name.contains("tmp") && !name.starts_with(".sunzi-");
        assert!(!sandbox.names().iter().any(left), "{:?}", sandbox.names());
        if sandbox.path("X.bin").exists() || kills % 4 == 0 {
            let start = Instant::now();
            sandbox.run(&format!("{line} --report r.json"));
            assert!(sandbox.names().iter().all(|name| !name.contains("tmp")), "{:?}", sandbox.names());
            resumes += usize::from(sandbox.json("r.json")["tiles_found"].as_u64().unwrap() > 0);
            // Kills come too early where a run that ended before its kill was short by chance, or found many tiles.
            whole = whole.max(start.elapsed());
            check(sandbox, expected);
            std::fs::remove_dir_all(sandbox.path("tiles")).unwrap();
        }
    }
    println!("{line}: {kills} kills, {inside} inside a write; {resumes} runs found tiles of one that was killed");
    assert!(resumes > 0, "no run found tiles of one that was killed");
    // A product writes at the ends of its pairs of bands, a factorisation all the time.
    let least = if line.starts_with("cholesky") { kills / 4 } else { kills / 20 };
    assert!(effort() == 1 || inside >= least, "{inside} of {kills} kills were inside a write");
}

/// Whether a file of the directory has not got its name yet.
fn has_begun_a_write(sandbox: &Sandbox) -> bool {
    let Ok(entries) = std::fs::read_dir(sandbox.path("tiles")) else { return false };
    entries.into_iter().any(|entry| entry.unwrap().file_name().to_string_lossy().ends_with(".tmp"))
}

#[test]
fn a_killed_run_goes_on_and_ends_with_the_same_file() {
    // Small tiles: more of the time is spent in writes.
    let (order, bits) = if effort() > 1 { (400, 400) } else { (300, 300) };
    kill_and_go_on(&factored(order, bits), &LINE.replace("--tile 24", "--tile 16"), "L.bin");
}

/// Q.bin in doubles: the factor of one run without a limit in `L.bin`.
const DOUBLE_LINE: &str = "cholesky Q.bin -o X.bin --storage tiles --tile 24 --element-type double --threads 2";

/// A matrix of doubles in `Q.bin`, and its factor, made without a limit on memory, in `L.bin`.
fn factored_in_doubles(order: usize) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("gen lehmer --rows {order} --cols {order} --precision 53 --symmetric -o Q.bin"));
    sandbox
        .run(&DOUBLE_LINE.replace("X.bin", "L.bin").replace("tiles", "others").replace("--threads 2", "--threads 1"));
    std::fs::remove_dir_all(sandbox.path("others")).unwrap();
    sandbox
}

#[test]
fn doubles_that_were_killed_go_on_and_end_with_the_same_file() {
    let sandbox = factored_in_doubles(if effort() > 1 { 700 } else { 500 });
    let least = named_minimum(&sandbox.fail(&format!("{DOUBLE_LINE} --memory 1M"), 4));
    kill_and_go_on(&sandbox, &format!("{DOUBLE_LINE} --memory {}", least + (1 << 20)), "L.bin");
}

#[test]
fn doubles_are_factored_within_the_limit_or_refused_in_one_line() {
    let sandbox = factored_in_doubles(300);
    let line = "cholesky Q.bin -o X.bin --element-type double";
    let refused = |line: &str, code: i32, words: &str| {
        let error = sandbox.fail(line, code);
        assert!(error.contains(words), "{line}: {error}");
    };
    refused(line, 2, "--element-type double requires --storage DIR");
    for option in ["--precision 53", "--kernel reference", "--device soft"] {
        refused(&format!("{line} --storage tiles {option}"), 2, "cannot be used with --element-type double");
    }
    run_within_least(&sandbox, DOUBLE_LINE, "L.bin");
    let report = sandbox.json("r.json");
    assert_eq!((report["element"].as_str(), report["plan"]["tile_rows"].as_u64()), (Some("double"), Some(24)));
    refused("cholesky Q.bin -o X.bin --accuracy norm --storage tiles --tile 24", 3, "'cholesky of doubles' there");
}

#[test]
fn a_killed_product_goes_on_and_ends_with_the_same_file() {
    let sandbox = multiplied();
    kill_and_go_on(&sandbox, SYRK, "S.bin");
    kill_and_go_on(&sandbox, GEMM, "G.bin");
}

fn interrupt_and_go_on(sandbox: &Sandbox, line: &str, expected: &str) {
    for name in ["INT", "TERM"] {
        let mut child = sandbox.start(line);
        wait_for_tiles(sandbox, &mut child);
        sandbox.signal(&child, name);
        let output = sandbox.finish(child);
        if output.code != 0 {
            assert!(!sandbox.path("X.bin").exists());
            assert!(output.stderr.contains("the same command resumes from them"), "{}", output.stderr);
        }
        sandbox.run(line);
        check(sandbox, expected);
        std::fs::remove_dir_all(sandbox.path("tiles")).unwrap();
    }
}

#[test]
fn a_signal_leaves_tiles_and_says_how_to_go_on() {
    interrupt_and_go_on(&factored(400, 400), LINE, "L.bin");
    interrupt_and_go_on(&multiplied(), SYRK, "S.bin");
}

/// The least limit named for a command with `--storage` is enough, for the memory of the process as well.
fn run_within_least(sandbox: &Sandbox, line: &str, expected: &str) {
    let least = named_minimum(&sandbox.fail(&format!("{line} --memory 1M"), 4));
    let error = sandbox.fail(&format!("{line} --memory {}", least - 1), 4);
    assert!(error.contains("at least"), "{error}");
    sandbox.run(&format!("{line} --memory {least} --report r.json"));
    let peak = sandbox.json("r.json")["peak_resident_bytes"].as_u64().unwrap();
    assert!(peak <= least, "{line}: {peak} bytes, limit {least}");
    check(sandbox, expected);
}

#[test]
fn what_cannot_work_is_refused_in_one_line() {
    let sandbox = factored(60, 128);
    sandbox.run("convert Q.bin Q.mtx");
    let files = sandbox.names();
    let refused = |line: &str, code: i32, words: &str| {
        let error = sandbox.fail(line, code);
        assert!(error.contains(words), "{line}: {error}");
    };
    refused("cholesky Q.mtx -o X.bin --accuracy norm --storage tiles", 2, "sunzi convert writes them");
    refused("cholesky Q.bin -o X.mtx --accuracy norm --storage tiles", 2, "sunzi convert writes them");
    refused("cholesky Q.bin -o X.bin --storage tiles", 2, "requires --accuracy norm");
    refused("cholesky Q.bin -o X.bin --accuracy norm --storage no/tiles", 3, "no/tiles");
    refused("cholesky P.bin -o X.bin --accuracy norm --storage tiles", 3, "square");
    assert_eq!(sandbox.names(), files);
    run_within_least(&sandbox, "cholesky Q.bin -o X.bin --accuracy norm --storage tiles", "L.bin");
    refused("cholesky Q.bin -o X.bin --accuracy norm --storage tiles --precision 100", 3, "precision_bits");
}

#[test]
fn products_that_cannot_work_are_refused_in_one_line() {
    // Within the least limit every residue is made again for each prime: a small product shows it as well.
    let sandbox = multiplied_of(70, 160, 90);
    sandbox.run("convert A.bin A.mtx");
    let files = sandbox.names();
    let refused = |line: &str, code: i32, words: &str| {
        let error = sandbox.fail(line, code);
        assert!(error.contains(words), "{line}: {error}");
    };
    refused("syrk A.mtx -o X.bin --accuracy norm --storage tiles", 2, "sunzi convert writes them");
    refused("gemm A.bin P.bin -o X.mtx --accuracy norm --storage tiles", 2, "sunzi convert writes them");
    refused("syrk P.bin -o X.bin --storage tiles", 2, "requires --accuracy norm");
    for option in ["--freivalds", "--exact-integers", "--alpha 2", "--accumulate S.bin", "--trace t.json", "--hex"] {
        refused(&format!("syrk P.bin -o X.bin --accuracy norm --storage tiles {option}"), 2, "cannot be used with");
    }
    refused("syrk P.bin -o X.bin --accuracy norm --storage no/tiles", 3, "no/tiles");
    refused("gemm P.bin A.bin -o X.bin --accuracy norm --storage tiles --transpose-a", 3, "160");
    assert_eq!(sandbox.names(), files);
    run_within_least(&sandbox, "syrk P.bin -o X.bin --accuracy norm --storage tiles", "S.bin");
    refused("syrk P.bin -o X.bin --accuracy norm --storage tiles --precision 300", 3, "precision_bits");
    refused("syrk P.bin -o X.bin --accuracy norm --storage tiles --transpose", 3, "tiles");
    refused("gemm A.bin P.bin -o X.bin --accuracy norm --storage tiles", 3, "gemm");
    std::fs::remove_dir_all(sandbox.path("tiles")).unwrap();
    run_within_least(&sandbox, "gemm A.bin P.bin -o X.bin --accuracy norm --storage tiles --self-check", "G.bin");
}

#[test]
fn two_runs_on_one_directory_do_not_meet() {
    let sandbox = factored(400, 400);
    let mut child = sandbox.start(LINE);
    wait_for_tiles(&sandbox, &mut child);
    let second = sandbox.output(&LINE.replace("X.bin", "Y.bin"));
    let first = sandbox.finish(child);
    assert_eq!(first.code, 0, "{}", first.stderr);
    // The second one came too late where the first was quicker.
    assert!(second.code == 0 || second.stderr.contains("tiles"), "{}", second.stderr);
    check(&sandbox, "L.bin");
}

#[test]
fn solves_are_those_of_memory_and_keep_the_limit() {
    let sandbox = factored(150, 300);
    sandbox.run("gen random --rows 150 --cols 40 --precision 300 --seed 3 -o B.bin");
    sandbox.run("gen random --rows 150 --cols 1 --precision 300 --seed 4 -o b.bin");
    for (command, line) in [
        (
            "trsm L.bin B.bin --transpose --alpha -0.1 --accuracy norm",
            "trsm L.bin B.bin --transpose --alpha -0.1 --accuracy norm --storage work",
        ),
        ("solve Q.bin B.bin --accuracy norm --no-estimate", "solve Q.bin B.bin --accuracy norm --storage work"),
        ("solve Q.bin b.bin --accuracy norm --no-estimate", "solve Q.bin b.bin --accuracy norm --storage work"),
        ("trsm L.bin b.bin --accuracy norm", "trsm L.bin b.bin --accuracy norm --storage work"),
    ] {
        sandbox.run(&format!("{command} -o X.bin --quiet"));
        let right = sandbox.bytes("X.bin");
        let line = format!("{line} -o X.bin --threads 2 --report r.json");
        let least = named_minimum(&sandbox.fail(&format!("{line} --memory 1M"), 4));
        sandbox.fail(&format!("{line} --memory {}", least - 1), 4);
        sandbox.run(&format!("{line} --memory {least}"));
        assert!(sandbox.bytes("X.bin") == right, "{command}: another solution");
        let peak = sandbox.json("r.json")["peak_resident_bytes"].as_u64().unwrap();
        assert!(peak <= least, "{command}: {peak} bytes, limit {least}");
        // Killed at any time, it goes on.
        std::fs::remove_dir_all(sandbox.path("work")).unwrap();
        for wait in [5, 20, 60, 120] {
            let mut child = sandbox.start(&line);
            std::thread::sleep(Duration::from_millis(wait));
            let _ = child.kill();
            sandbox.finish(child);
        }
        sandbox.run(&line);
        assert!(sandbox.bytes("X.bin") == right, "{command}: another solution after kills");
        std::fs::remove_dir_all(sandbox.path("work")).unwrap();
    }
    let error = sandbox.fail("solve Q.bin B.bin -o Y.bin --storage work", 2);
    assert!(error.contains("requires --accuracy norm"), "{error}");
    sandbox.run("gen random --rows 150 --cols 5 --precision 300 -o C.bin");
    let error = sandbox.fail("trsm L.bin C.bin -o Y.bin --accuracy entrywise --storage work", 2);
    assert!(error.contains("are too few for entrywise accuracy"), "{error}");
    sandbox.run("convert L.bin L.mtx");
    let error = sandbox.fail("trsm L.mtx B.bin -o Y.bin --storage work", 2);
    assert!(error.contains("sunzi convert writes them"), "{error}");
}
