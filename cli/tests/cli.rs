//! The program as users run it: every command, every option that a script relies on, and what happens on a signal.
//!
//! Depends on: the binary, files and exit codes. Numbers are checked through `sunzi verify` and `sunzi compare`, whose
//! own failures are tested here too.

#[path = "cli/arguments.rs"]
mod arguments;
#[path = "cli/bad_input.rs"]
mod bad_input;
#[path = "cli/bench.rs"]
mod bench;
#[path = "cli/certificates.rs"]
mod certificates;
#[path = "cli/claims.rs"]
mod claims;
#[path = "cli/devices.rs"]
mod devices;
#[path = "cli/digits.rs"]
mod digits;
#[path = "cli/eigenvalue.rs"]
mod eigenvalue;
#[path = "cli/factor.rs"]
mod factor;
#[path = "cli/formats.rs"]
mod formats;
#[path = "cli/general.rs"]
mod general;
#[path = "cli/listed_options.rs"]
mod listed_options;
#[cfg(target_os = "linux")]
#[path = "cli/memory.rs"]
mod memory;
#[path = "cli/oracle.rs"]
mod oracle;
#[cfg(target_os = "linux")]
#[path = "cli/outputs.rs"]
mod outputs;
#[path = "cli/pages/mod.rs"]
mod pages;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/processors.rs"]
mod processors;
#[path = "cli/progress.rs"]
mod progress;
#[cfg(target_os = "linux")]
#[path = "cli/refusals.rs"]
mod refusals;
#[path = "cli/sandbox.rs"]
mod sandbox;
#[path = "cli/sdp.rs"]
mod sdp;
#[path = "cli/sdp_ends.rs"]
mod sdp_ends;
#[cfg(unix)]
#[path = "cli/setup.rs"]
mod setup;
#[path = "cli/simulate.rs"]
mod simulate;
#[cfg(target_os = "linux")]
#[path = "cli/storage.rs"]
mod storage;
#[path = "cli/verify.rs"]
mod verify;

use sandbox::{Sandbox, named_minimum};
use std::time::{Duration, Instant};

#[test]
fn a_product_is_computed_stored_and_verified() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 60 --cols 20 --precision 200 --seed 4 -o P.mtx");
    let line = sandbox.run("syrk P.mtx -o Q.mtx --precision 200 --self-check --report r.json");
    assert!(line.starts_with("Q.mtx: 20 x 20, 200 bits"), "{line}");
    let text = sandbox.text("Q.mtx");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("%%MatrixMarket matrix array real symmetric"));
    assert_eq!(lines.next(), Some("%sunzi precision_bits=200"));
    assert_eq!(lines.next(), Some("20 20"));
    assert_eq!(lines.count(), 210, "the lower triangle");
    let report = sandbox.json("r.json");
    assert_eq!(report["operation"], "syrk");
    assert_eq!((report["rows"].as_u64(), report["cols"].as_u64()), (Some(60), Some(20)));
    assert!(report["seconds"].as_f64().unwrap() > 0.0 && report["phases"]["product"].is_number());
    assert!(sandbox.run("verify syrk P.mtx Q.mtx").contains("Q.mtx: P^T P to 200 bits"));
    assert_eq!(sandbox.run("verify syrk P.mtx Q.mtx --precision 190 --quiet"), "");
}

#[test]
fn a_weighted_product_is_computed_and_verified() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 60 --cols 20 --precision 200 --seed 4 -o P.mtx");
    sandbox.run("gen random --rows 60 --cols 1 --precision 200 --seed 5 -o d.mtx");
    sandbox.run("syrk P.mtx --weights d.mtx -o Q.mtx --precision 200 --self-check --report r.json");
    let report = sandbox.json("r.json");
    assert_eq!((&report["operation"], report["rows"].as_u64()), (&"weighted_gram".into(), Some(60)));
    let minimum = sandbox.fail("syrk P.mtx --weights d.mtx -o X.mtx --precision 200 --memory 1K", 4);
    let minimum = named_minimum(&minimum);
    for choice in [format!("--memory {minimum}"), "--upper --kernel f64".into(), "--window heap --threads 2 -q".into()]
    {
        sandbox.run(&format!("syrk P.mtx --weights d.mtx -o R.mtx --precision 200 {choice}"));
        assert!(sandbox.bytes("Q.mtx") == sandbox.bytes("R.mtx"), "{choice}");
    }
    assert!(sandbox.run("verify syrk P.mtx Q.mtx --weights d.mtx").contains("Q.mtx: P^T diag(d) P to 200 bits"));
    sandbox.fail("verify syrk P.mtx Q.mtx", 5);
    sandbox.fail("syrk P.mtx --weights d.mtx -o R.mtx --transpose --precision 200", 3);
    let plan = sandbox.run("plan syrk --rows 60 --cols 20 --precision 200 --weights");
    assert!(plan.contains("Q := P^T diag(d) P: 20 x 20, summed over 60 rows"), "{plan}");
}

#[test]
fn a_wrong_entry_fails_verification() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 30 --cols 6 --precision 120 -o P.mtx");
    sandbox.run("syrk P.mtx -o Q.mtx --precision 120");
    let text = sandbox.text("Q.mtx");
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let digit = lines[7].find('.').unwrap() + 5;
    let other = if lines[7].as_bytes()[digit] == b'3' { "4" } else { "3" };
    lines[7].replace_range(digit..=digit, other);
    sandbox.write("Q.mtx", lines.join("\n"));
    let error = sandbox.fail("verify syrk P.mtx Q.mtx", 5);
    assert!(error.contains("verification failed"), "{error}");
}

#[test]
fn every_form_of_a_product_verifies() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 9 --cols 14 --precision 100 --seed 1 -o A.mtx");
    sandbox.run("gen graded --rows 14 --cols 9 --precision 100 --seed 2 -o B.bin");
    sandbox.run("syrk A.mtx -o Q.mtx -p 100");
    sandbox.run("syrk A.mtx --upper -o U.mtx -p 100");
    assert_eq!(sandbox.bytes("Q.mtx"), sandbox.bytes("U.mtx"), "a triangle cannot change the file");
    sandbox.run("syrk B.bin --transpose -o R.bin -p 100");
    sandbox.run("verify syrk B.bin R.bin --transpose");
    sandbox.run("gemm A.mtx B.bin -o C.mtx -p 100 --threads 2");
    sandbox.run("verify gemm A.mtx B.bin C.mtx");
    for (flags, left, right) in
        [("--transpose-a", "A", "A"), ("--transpose-b", "A", "A"), ("--transpose-a --transpose-b", "A", "B")]
    {
        let files = format!("{left}.mtx {}", if right == "A" { "A.mtx" } else { "B.bin" });
        sandbox.run(&format!("gemm {files} -o D.mtx {flags} -p 100"));
        sandbox.run(&format!("verify gemm {files} D.mtx {flags}"));
    }
    let error = sandbox.fail("verify gemm A.mtx A.mtx D.mtx", 3);
    assert!(error.contains("shapes do not fit"), "{error}");
}

#[test]
fn bits_do_not_depend_on_kernel_threads_or_memory() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 300 --cols 70 --precision 300 --seed 9 -o P.bin");
    sandbox.run("syrk P.bin -o Q.mtx --precision 300 --kernel reference --threads 1");
    let minimum = sandbox.fail("syrk P.bin -o X.mtx --precision 300 --memory 1K", 4);
    let minimum = named_minimum(&minimum);
    let choices =
        ["--freivalds", "--threads 2", "--kernel f64 --threads 3", "--self-check", "--kernel f64 --self-check"];
    let limited = format!("--threads 1 --memory {minimum}");
    for choice in choices.into_iter().chain([limited.as_str()]) {
        sandbox.run(&format!("syrk P.bin -o R.mtx --precision 300 {choice}"));
        assert_eq!(sandbox.bytes("R.mtx"), sandbox.bytes("Q.mtx"), "{choice}");
    }
}

#[test]
fn one_process_takes_the_window_that_is_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 50 --cols 20 --precision 150 --seed 4 -o P.bin");
    sandbox.run("gen random --rows 20 --cols 20 --precision 150 --seed 5 -o C.bin");
    let more = "--accumulate C.bin --beta -0.5 --alpha 3 --freivalds";
    for (product, kind) in [
        ("syrk P.bin".to_string(), "heap"),
        ("gemm P.bin P.bin --transpose-a".to_string(), "posix"),
        (format!("syrk P.bin --upper {more} --accumulate-triangle upper --ignore-other-triangle"), "heap"),
        (format!("gemm P.bin P.bin --transpose-a {more}"), "posix"),
    ] {
        sandbox.run(&format!("{product} -o Q.mtx --precision 150"));
        sandbox.run(&format!("{product} -o R.mtx --precision 150 --window {kind} --report r.json --quiet"));
        assert_eq!(sandbox.json("r.json")["window"], kind, "{product}");
        assert_eq!(sandbox.bytes("R.mtx"), sandbox.bytes("Q.mtx"), "{product}");
    }
}

#[test]
fn a_report_says_whether_the_product_was_checked() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 30 --cols 12 --precision 150 --seed 3 -o P.mtx");
    for product in ["syrk P.mtx", "gemm P.mtx P.mtx --transpose-a"] {
        for (flags, checked) in [("", false), ("--freivalds", true), ("--self-check", true)] {
            let line = sandbox.run(&format!("{product} -o Q.mtx --precision 150 {flags} --report r.json"));
            assert_eq!(sandbox.json("r.json")["checked"], checked, "{product} {flags}");
            assert_eq!(line.contains("self-checked"), checked, "{product} {flags}: {line}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_process_stays_below_its_memory_limit() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 700 --cols 120 --precision 400 -o P.bin");
    let line = "syrk P.bin -o Q.bin --precision 400 --report r.json";
    let least = sandbox.fail(&format!("{line} --memory 30M"), 4);
    let least = named_minimum(&least);
    for limit in [least, 2 * least] {
        sandbox.run(&format!("{line} --memory {limit}"));
        let peak = sandbox.json("r.json")["peak_resident_bytes"].as_u64().unwrap();
        assert!(peak > 0 && peak <= limit, "{peak} bytes with a limit of {limit}");
    }
}

#[test]
fn exact_integers_scale_and_accumulate() {
    let sandbox = Sandbox::new();
    sandbox.run("gen pascal --rows 12 --cols 5 --precision 80 -o P.mtx");
    sandbox.run("syrk P.mtx -o Q.mtx --exact-integers --precision 80");
    sandbox.run("verify syrk P.mtx Q.mtx --exact-integers");
    // 3 Q - Q - Q = Q, all exact.
    sandbox.run("syrk P.mtx -o T.mtx --exact-integers --precision 80 --alpha 3");
    sandbox.run("syrk P.mtx -o S.mtx --exact-integers --precision 80 --alpha -2 --beta 1 --accumulate T.mtx");
    let compared = sandbox.run("compare Q.mtx S.mtx --precision 80");
    assert!(compared.starts_with("equal: all 25 entries"), "{compared}");
    // In floats: 0.5 * 2 * Q.
    sandbox.run("gemm P.mtx P.mtx --transpose-a -o F.mtx -p 200 --alpha 0x1p-1");
    sandbox.run("gemm P.mtx P.mtx --transpose-a -o G.mtx -p 200 --alpha 0.25 --beta 0.5 --accumulate F.mtx");
    assert!(sandbox.run("compare F.mtx G.mtx").starts_with("equal"));
}

#[test]
fn accuracy_is_by_norms_or_entry_by_entry() {
    let sandbox = Sandbox::new();
    // The off-diagonal entry of P^T P is 2^-60 + 2^-60, below the norms at 53 bits.
    let tiny = "8.673617379884035e-19";
    sandbox.write("P.mtx", format!("%%MatrixMarket matrix array real general\n2 2\n1\n{tiny}\n{tiny}\n1\n"));
    let line = |more: &str| format!("syrk P.mtx -o Q.mtx --precision 53 {more}");
    sandbox.run(&line("--accuracy norm"));
    assert!(sandbox.text("Q.mtx").contains("\n0\n"), "{}", sandbox.text("Q.mtx"));
    for entrywise in ["", "--accuracy entrywise"] {
        sandbox.run(&line(&format!("{entrywise} --report r.json")));
        assert!(sandbox.text("Q.mtx").contains("\n1.7347234759768071e-18\n"), "{}", sandbox.text("Q.mtx"));
        assert!(sandbox.text("r.json").contains("\"accuracy\": \"entrywise\""), "{}", sandbox.text("r.json"));
    }
    assert!(sandbox.fail(&line("--accuracy best"), 2).contains("norm, entrywise"));
}

#[test]
fn solves_are_entry_by_entry_unless_norms_are_asked_for() {
    let sandbox = Sandbox::new();
    let tiny = "8.673617379884035e-19";
    sandbox.write("A.mtx", format!("%%MatrixMarket matrix array real symmetric\n2 2\n1\n{tiny}\n1\n"));
    sandbox.write("B.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n0\n");
    let line = |more: &str| format!("solve A.mtx B.mtx -o X.mtx --precision 53 --report r.json {more}");
    for entrywise in ["", "--accuracy entrywise"] {
        assert!(sandbox.run(&line(entrywise)).contains("entrywise"));
        assert!(sandbox.text("X.mtx").contains("\n-8.6736173798840355e-19\n"), "{}", sandbox.text("X.mtx"));
        assert!(sandbox.text("r.json").contains("\"range_bits\": 64"), "{}", sandbox.text("r.json"));
    }
    sandbox.run(&line("--accuracy norm"));
    assert!(sandbox.text("X.mtx").ends_with("\n0\n"), "{}", sandbox.text("X.mtx"));
    sandbox.run("cholesky A.mtx -o L.mtx --precision 53");
    assert!(sandbox.text("L.mtx").contains("8.6736173798840"), "{}", sandbox.text("L.mtx"));
    sandbox.run("trsm L.mtx B.mtx -o Y.mtx --precision 53");
    assert!(sandbox.text("Y.mtx").contains("-8.6736173798840"), "{}", sandbox.text("Y.mtx"));
    // An entry so small that no number of bits is tried for it.
    sandbox.write("A.mtx", "%%MatrixMarket matrix array real symmetric\n2 2\n1\n1e-1000\n1\n");
    let said = sandbox.run("cholesky A.mtx -o L.mtx --precision 53");
    assert!(
        said.contains("the error is bounded by norms only: for componentwise accuracy the range of exponents requires"),
        "{said}"
    );
}

#[test]
fn a_matrix_added_to_a_syrk_is_symmetric_or_has_a_triangle_named() {
    let sandbox = Sandbox::new();
    let entries = |upper: i32| format!("%%MatrixMarket matrix array real general\n2 2\n4\n1\n{upper}\n5\n");
    sandbox.write("A.mtx", entries(2));
    sandbox.write("L.mtx", entries(1));
    sandbox.write("U.mtx", entries(2).replace("\n1\n", "\n2\n"));
    sandbox.write("P.mtx", entries(7));
    let syrk = |options: &str| format!("syrk P.mtx --precision 64 -o Q.mtx {options}");
    for more in ["", "--upper", "--trace t.json --quiet", "--window heap --exact-integers --quiet"] {
        let error = sandbox.fail(&syrk(&format!("--accumulate A.mtx {more}")), 3);
        for part in [
            "A.mtx: not symmetric: entry (2, 1) is 1.00",
            "entry (1, 2) is 2.00",
            "the matrix to add to a symmetric product must be symmetric",
        ] {
            assert!(error.contains(part), "{error}");
        }
        for (triangle, same) in [("lower", "L"), ("upper", "U")] {
            let named = syrk(&format!("--accumulate A.mtx --accumulate-triangle {triangle} {more}"));
            assert!(sandbox.fail(&named, 3).contains("A.mtx: not symmetric: entry ("), "{named}");
            sandbox.run(&format!("{named} --ignore-other-triangle"));
            let found = sandbox.bytes("Q.mtx");
            sandbox.run(&syrk(&format!("--accumulate {same}.mtx {more}")));
            assert_eq!(found, sandbox.bytes("Q.mtx"), "{triangle} {more}");
        }
    }
    // P P^T + A: what is added to a general product may be any matrix.
    sandbox.run("gemm P.mtx P.mtx --transpose-b --precision 64 -o C.mtx --accumulate A.mtx");
    assert!(sandbox.text("C.mtx").ends_with("2 2\n6.9e1\n4e1\n4.1e1\n3.1e1\n"), "{}", sandbox.text("C.mtx"));
    let error = sandbox.fail(&syrk("--accumulate-triangle lower"), 2);
    assert!(error.contains("--accumulate"), "{error}");
}

#[test]
fn convert_and_compare_keep_every_bit() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 7 --cols 3 --precision 77 --hex -o A.mtx");
    assert!(sandbox.text("A.mtx").contains("0x"));
    sandbox.run("convert A.mtx A.bin");
    sandbox.run("convert A.bin D.mtx");
    sandbox.run("convert D.mtx H.mtx --hex");
    assert_eq!(sandbox.bytes("H.mtx"), sandbox.bytes("A.mtx"));
    sandbox.run("gen random --rows 7 --cols 3 --precision 77 --seed 1 -o B.mtx");
    let output = sandbox.output("compare A.mtx B.mtx --report r.json");
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stdout.contains("different: 21 of 21") && output.stdout.contains("largest absolute"));
    assert_eq!(output.stderr, "");
    assert_eq!(sandbox.json("r.json")["differing_entries"], 21);
}

#[test]
fn compare_lets_a_tolerance_pass() {
    let sandbox = Sandbox::new();
    sandbox.write("A.csv", "1000,2\n3,0\n");
    sandbox.write("B.csv", "1000.0001,2\n3,1e-30\n");
    for (tolerance, code, start) in [
        ("", 1, "different: 2 of 4 entries of the 2 x 2 matrices\nfirst:            row 1, column 1 (from 1): "),
        (
            "--digits 7",
            0,
            "equal within the tolerance: all 4 entries of the 2 x 2 matrices, of which 2 differ\nlargest",
        ),
        (
            "--digits 8",
            1,
            "different: 1 of 4 entries of the 2 x 2 matrices differ by more than the tolerance, 2 differ at \
             all\nfirst:",
        ),
        (
            "--relative 1e-6",
            1,
            "different: 1 of 4 entries of the 2 x 2 matrices differ by more than the tolerance, 2 differ at \
             all\nfirst: ",
        ),
        ("--relative 1e-6 --absolute 1e-29", 0, "equal within"),
        ("--absolute 1.1e-4", 0, "equal within"),
        ("--absolute 0", 1, "different: 2 of 4"),
    ] {
        let output = sandbox.output(&format!("compare A.csv B.csv --precision 128 --report r.json {tolerance}"));
        assert!(output.code == code && output.stdout.starts_with(start), "{tolerance}: {output:?}");
        let last = "digits that agree: 7.0 in the maximum norm, 0.0 in the worst entry\n";
        assert!(output.stdout.ends_with(last), "{output:?}");
        assert_eq!(sandbox.json("r.json")["within_tolerance"], code == 0);
    }
    for wrong in ["--relative -1", "--absolute x", "--digits 0", "--relative nan"] {
        sandbox.fail(&format!("compare A.csv B.csv {wrong}"), 2);
    }
    assert_eq!(sandbox.run("compare A.csv A.csv --precision 9"), "equal: all 4 entries of the 2 x 2 matrices\n");
}

#[test]
fn a_seed_gives_the_same_file_again() {
    let sandbox = Sandbox::new();
    for kind in
        ["random", "graded", "hilbert", "cauchy", "lehmer", "minij", "pascal", "moler", "kms", "lauchli", "bootstrap1d"]
    {
        sandbox.run(&format!("gen {kind} --rows 1.1e1 --cols 10 --precision 90 --seed 7 -o A.mtx"));
        sandbox.run(&format!("gen {kind} --rows 11 --cols 1e1 --precision 90 --seed 7 -o B.mtx"));
        assert_eq!(sandbox.bytes("A.mtx"), sandbox.bytes("B.mtx"), "{kind}");
        assert!(sandbox.text("A.mtx").lines().nth(2) == Some("11 10"), "{kind}");
    }
}

#[test]
fn empty_shapes_are_fine() {
    let sandbox = Sandbox::new();
    for (rows, cols) in [(0, 4), (4, 0), (0, 0), (1, 1)] {
        sandbox.run(&format!("gen random --rows {rows} --cols {cols} --precision 64 -o P.mtx"));
        sandbox.run("syrk P.mtx -o Q.mtx --self-check");
        sandbox.run("verify syrk P.mtx Q.mtx");
    }
}

#[test]
fn info_and_plan_tell_what_they_promise() {
    let sandbox = Sandbox::new();
    let info = sandbox.run("info --report info.json");
    for word in ["cpu", "features", "memory", "kernels", "reference", "f64", "blas", "bits"] {
        assert!(info.contains(word), "{word}: {info}");
    }
    assert!(sandbox.json("info.json")["kernels"].as_array().unwrap().len() >= 3);
    let plan = sandbox.run("plan syrk --rows 2e3 --cols 300 --precision 512 --threads 2 --report plan.json");
    for word in ["to_residues", "product", "reconstruct", "batches", "bands", "chunks", "jobs", "balance", "planned"] {
        assert!(plan.contains(word), "{word}: {plan}");
    }
    let bytes = |sandbox: &Sandbox| sandbox.json("plan.json")["planned_bytes"].as_u64().unwrap();
    let whole = bytes(&sandbox);
    sandbox.run("plan syrk --rows 2e3 --cols 300 --precision 512 --threads 2 --memory 92M --report plan.json");
    assert!(bytes(&sandbox) < whole && sandbox.json("plan.json")["batches"].as_u64().unwrap() > 1);
    sandbox.run("plan gemm --rows 100 --cols 30 --result-rows 50 --precision 100 --kernel reference");
    let help = sandbox.run("--help");
    for command in [
        "info", "gen", "syrk", "gemm", "cholesky", "solve", "inverse", "trsm", "verify", "convert", "compare", "plan",
        "bench", "demo",
    ] {
        assert!(help.contains(command), "{command}");
    }
    assert!(sandbox.run("--version").starts_with("sunzi "));
}

#[test]
fn bench_writes_the_report_that_scripts_read() {
    let sandbox = Sandbox::new();
    let line = "--rows 40 --cols 20 --precision 128 --threads 1 --against mpfr --runs 3 --report r.json";
    for (operation, flags) in [("syrk", ""), ("gemm", "--kernel reference"), ("syrk", "--kernel f64 --self-check")] {
        sandbox.run(&format!("bench {operation} {line} {flags}"));
        let report = sandbox.json("r.json");
        for key in [
            "rows",
            "cols",
            "precision_bits",
            "threads",
            "primes",
            "batches",
            "bands",
            "chunks",
            "planned_bytes",
            "peak_bytes",
        ] {
            assert!(report[key].is_u64(), "{key}: {report}");
        }
        assert_eq!((&report["operation"], &report["checked"]), (&operation.into(), &true.into()));
        assert!(report["kernel"].is_string());
        for key in ["min", "median", "max"] {
            assert!(report["seconds"][key].as_f64().unwrap() > 0.0);
            assert!(report["baselines"][0]["seconds"][key].as_f64().unwrap() > 0.0);
        }
        for key in ["scale", "to_residues", "product", "reconstruct", "unscale"] {
            assert!(report["phases"][key].is_number(), "{key}");
        }
        // Where no rate is measured both are null.
        assert_eq!(report["limit_seconds"].is_number(), report["limit_ratio"].is_number());
        let ratio = report["baselines"][0]["seconds"]["median"].as_f64().unwrap()
            / report["seconds"]["median"].as_f64().unwrap();
        assert!((report["baselines"][0]["ratio"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-9);
        assert_eq!(report["baselines"][0]["name"], "mpfr");
    }
    for kernel in ["reference", "i16", "i8"] {
        let line =
            sandbox.run(&format!("bench kernel --rows 100 --cols 40 --runs 2 --kernel {kernel} --report k.json"));
        assert!(line.contains("result checked"), "{line}");
        assert_eq!(sandbox.json("k.json")["checked"], true);
    }
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_product_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    // The reference kernel needs minutes for this.
    sandbox.run("gen random --rows 2000 --cols 300 --precision 1000 -o P.bin");
    for signal in ["INT", "TERM"] {
        let child =
            sandbox.start("syrk P.bin -o Q.mtx --precision 1000 --kernel reference --threads 2 --report r.json");
        std::thread::sleep(Duration::from_millis(700));
        let start = Instant::now();
        sandbox.signal(&child, signal);
        let output = sandbox.finish(child);
        assert_eq!((output.code, output.stderr.as_str()), (130, "sunzi: error: cancelled\n"));
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        assert_eq!(sandbox.names(), ["P.bin"]);
    }
}

#[cfg(unix)]
#[test]
fn a_signal_while_a_file_is_written_leaves_nothing() {
    let sandbox = Sandbox::new();
    for milliseconds in [100, 700] {
        // Seconds of work, most of it writing decimals.
        let child = sandbox.start("gen random --rows 800 --cols 800 --precision 3000 -o P.mtx --report r.json");
        std::thread::sleep(Duration::from_millis(milliseconds));
        sandbox.signal(&child, "INT");
        let output = sandbox.finish(child);
        assert_eq!((output.code, output.stderr.as_str()), (130, "sunzi: error: cancelled\n"));
        assert_eq!(sandbox.names(), Vec::<String>::new());
    }
}

#[test]
fn bench_starts_again_where_openblas_is_held_back() {
    let sandbox = Sandbox::new();
    sandbox.run("info --report info.json");
    let machine = &sandbox.json("info.json")["machine"];
    let has_avx512 = machine["features"].as_array().unwrap().iter().any(|feature| feature == "avx512f");
    let line =
        ["bench", "syrk", "--rows", "9", "--cols", "9", "--precision", "64", "--runs", "1", "--report", "r.json"];
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_sunzi"));
    program.args(line).current_dir(sandbox.path("")).env("OPENBLAS_CORETYPE", "Haswell");
    let output = program.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let core = &sandbox.json("r.json")["machine"]["openblas_core"];
    assert_eq!(core.is_string(), machine["openblas_core"].is_string());
    assert!(core.is_string() || !cfg!(feature = "blas"), "a build with OpenBLAS names its kernels: {machine}");
    if core.is_null() || !has_avx512 {
        println!("skipped: no OpenBLAS in this build, or no kernels of this CPU that it could be held back from");
    } else {
        assert_ne!(core, "Haswell");
        assert!(
            String::from_utf8_lossy(&output.stdout).contains(&format!("openblas   {} kernels", core.as_str().unwrap()))
        );
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.start("info");
    drop(child.stdout.take()); // before the program prints, which takes it some milliseconds
    let output = sandbox.finish(child);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_under_standard_output_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_sunzi")).arg("info").stdout(full).output().unwrap();
    assert_eq!(child.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&child.stderr).starts_with("sunzi: error: standard output: cannot write"));
}
