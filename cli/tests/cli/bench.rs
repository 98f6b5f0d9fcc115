//! `sunzi bench` of the operations with a triangular factor: reports, answers, edges.

use super::sandbox::{Sandbox, effort};
use serde_json::Value;

/// The baselines of an operation that this build has, by comma.
fn baselines(operation: &str) -> &'static str {
    match (operation, cfg!(feature = "flint")) {
        (_, false) => "mpfr",
        ("cholesky", true) => "flint,nfloat,mpfr",
        (_, true) => "flint,mpfr",
    }
}

/// Runs a benchmark with a report, whose answers must all have been found right.
fn bench(sandbox: &Sandbox, operation: &str, flags: &str) -> (String, Value) {
    let baselines = baselines(operation);
    let text = sandbox.run(&format!("bench {operation} {flags} --against {baselines} --report r.json"));
    let report = sandbox.json("r.json");
    assert_eq!((&report["operation"], &report["checked"]), (&operation.into(), &true.into()), "{text}");
    let names = report["baselines"].as_array().unwrap().iter().map(|baseline| baseline["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>().join(","), baselines);
    for baseline in report["baselines"].as_array().unwrap() {
        assert_eq!(baseline["checked"], true, "{text}");
    }
    (text, report)
}

#[test]
fn operations_with_a_factor_write_the_report_of_products() {
    let sandbox = Sandbox::new();
    for (operation, flags) in [
        ("cholesky", "--rows 40 --runs 3"),
        ("cholesky", "--rows 40 --runs 1 --tile 8 --threads 2"),
        ("cholesky", "--rows 40 --runs 1 --kernel reference"),
        ("trsm", "--rows 40 --cols 7 --runs 2"),
        ("solve", "--rows 40 --runs 2"),
        ("solve", "--rows 20 --cols 5 --runs 1 --threads 2"),
    ] {
        let (text, report) = bench(&sandbox, operation, &format!("{flags} --precision 128"));
        for key in ["rows", "cols", "precision_bits", "threads", "runs", "peak_bytes"] {
            assert!(report[key].is_u64(), "{key}: {report}");
        }
        assert!(report["kernel"].is_string() && report["phases"].is_object());
        for key in ["min", "median", "max"] {
            assert!(report["seconds"][key].as_f64().unwrap() > 0.0);
            assert!(report["baselines"][0]["seconds"][key].as_f64().unwrap() > 0.0);
        }
        let [ours, timed] = [&report, &report["baselines"][0]].map(|side| side["seconds"]["median"].as_f64().unwrap());
        assert!((report["baselines"][0]["ratio"].as_f64().unwrap() / (timed / ours) - 1.0).abs() < 1e-9);
        // Where no rate is measured all are null.
        assert_eq!(report["limit_seconds"].is_number(), report["multiply_adds_per_second"].is_object());
        assert_eq!(report["limit_seconds"].is_number(), report["limit_kernel"].is_string());
        assert_eq!(report["limit_ratio"].is_number(), report["limit_seconds"].is_number());
        // The limit of the kernel at work comes first, where its rate is measured; no limit is less than the machine's.
        let seconds = |key: &str| report[key].as_f64();
        let at_work = seconds("kernel_limit_seconds");
        assert!(at_work.is_none_or(|own| own >= seconds("limit_seconds").unwrap()), "{report}");
        assert_eq!(text.contains(", the kernel at work: sunzi takes"), at_work.is_some(), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert_eq!(report["read_bytes_per_second"].is_object(), operation == "solve");
        assert!(text.contains("every run right") && text.contains("MPFR "), "{text}");
    }
}

#[test]
fn a_factorisation_tells_its_plan() {
    let sandbox = Sandbox::new();
    let (text, report) = bench(&sandbox, "cholesky", "--rows 50 --precision 192 --runs 1 --tile 16 --accuracy norm");
    if report["primes"].is_null() {
        assert_eq!(report["kernel"], "definition");
        println!("skipped: no kernel with tiles on this CPU");
        return;
    }
    assert_eq!((&report["tile_rows"], &report["tiles"]), (&16.into(), &4.into()), "{text}");
    assert_eq!(report["working_bits"], 194);
    for key in ["load", "update", "potrf", "trsm", "store"] {
        assert!(report["phases"][key].is_number(), "{key}");
    }
    assert!(report["peak_bytes"].as_u64() <= report["planned_bytes"].as_u64(), "{text}");
    assert!(text.contains("in 4 tile rows of 16 rows") && text.contains("memory     planned"), "{text}");
}

#[test]
fn empty_and_single_operations_are_fine() {
    let sandbox = Sandbox::new();
    for operation in ["cholesky", "trsm", "solve"] {
        for rows in [0, 1] {
            let (_, report) = bench(&sandbox, operation, &format!("--rows {rows} --precision 64 --runs 1"));
            assert_eq!(report["rows"], rows);
            if rows == 0 {
                assert!(report["limit_seconds"].is_null(), "{report}");
            }
        }
    }
    bench(&sandbox, "trsm", "--rows 5 --cols 0 --precision 64 --runs 1");
    bench(&sandbox, "solve", "--rows 5 --cols 0 --precision 64 --runs 1");
}

#[test]
fn batches_are_timed_beside_calls() {
    let sandbox = Sandbox::new();
    for (operation, flags) in [
        ("syrk", "--rows 5 --cols 3 --threads 2"),
        ("gemm", "--rows 4 --cols 2"),
        ("cholesky", "--rows 4"),
        ("trsm", "--rows 4 --cols 2 --accuracy entrywise"),
        ("cholesky", "--rows 4 --count 0"),
        ("syrk", "--rows 0 --count 1"),
    ] {
        let count = if flags.contains("--count") { "" } else { "--count 7" };
        let flags = format!("--operation {operation} {flags} {count} --precision 128 --runs 2 --against mpfr,calls");
        let text = sandbox.run(&format!("bench batch {flags} --report r.json"));
        let report = sandbox.json("r.json");
        assert_eq!(report["operation"], format!("{operation}_batch"));
        assert!(report["checked"] == true && report["seconds"]["median"].as_f64().unwrap() > 0.0, "{text}");
        assert_eq!(report["baselines"][0]["name"], "calls");
        // A long line goes on below its second column.
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("every run right") && words.contains("one call of Sunzi for each problem"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }
    let error = sandbox.fail("bench batch --operation cholesky --rows 4 --cols 3", 2);
    assert!(error.contains("--cols 3 differs from --rows 4"), "{error}");
    let error = sandbox.fail("bench batch --rows 4 --count 2 --precision 64 --against nobody", 2);
    assert!(error.contains("unknown baseline 'nobody'"), "{error}");
}

#[cfg(feature = "flint")]
#[test]
fn packed_floats_are_refused_where_they_do_not_exist() {
    let sandbox = Sandbox::new();
    for bits in [100, 4288] {
        let error = sandbox.fail(&format!("bench cholesky --rows 4 --precision {bits} --against mpfr,nfloat"), 2);
        assert!(error.contains(&format!("nfloat has no precision of {bits} bits: only multiples of 64")), "{error}");
    }
}

#[cfg(not(feature = "flint"))]
#[test]
fn baselines_that_are_not_built_say_so() {
    let sandbox = Sandbox::new();
    for name in ["flint", "nfloat"] {
        let error = sandbox.fail(&format!("bench cholesky --rows 4 --against {name}"), 2);
        assert!(error.contains(&format!("baseline {name} needs the feature `flint`")), "{error}");
    }
}

#[test]
fn doubles_are_factored_on_devices() {
    let sandbox = Sandbox::new();
    // 45 tiles of 9 KiB, of which the device holds about half.
    let flags = "--rows 280 --tile 32 --runs 2 --device soft:256K --device-memory 176K --threads 2";
    let text = sandbox.run(&format!("bench cholesky --element-type double {flags} --report r.json"));
    let report = sandbox.json("r.json");
    assert_eq!((&report["operation"], &report["element"]), (&"cholesky".into(), &"double".into()));
    assert!(report["checked"] == true && report["residual"].as_f64().unwrap() < 0.1, "{text}");
    assert!(report["gflops"].as_f64().unwrap() > 0.0 && report["product_ratio"].as_f64().unwrap() > 0.0);
    let moved = report["moved"].as_array().unwrap();
    assert_eq!(moved.iter().map(|row| row["eviction"].as_str().unwrap()).collect::<Vec<_>>(), ["lru", "fifo"]);
    // What was counted without running is what the device moved.
    let counted = report["counted"].as_array().unwrap();
    for row in moved {
        let same = |other: &&Value| other["policy"] == "panels" && other["eviction"] == row["eviction"];
        let other = counted.iter().find(same).unwrap();
        assert_eq!((&row["h2d_bytes"], &row["d2h_bytes"]), (&other["h2d_bytes"], &other["d2h_bytes"]));
    }
    assert_eq!((counted.len(), report["factor"]["devices"][0]["room_tiles"].as_u64()), (18, Some(22)));
    let reason = report["not_measured"][0].as_str().unwrap();
    assert!(reason.starts_with("GPUs: "), "{reason}");
    assert!(text.contains("not measured: GPUs") && text.contains("% less (measured)"), "{text}");
    let several = "--device soft,soft:1M --policy greedy --eviction fifo --rows 100 --tile 16 --runs 1";
    let text = sandbox.run(&format!("bench cholesky --element-type double {several}"));
    assert!(text.contains("device     soft 1"), "{text}");
    for rows in [0, 1] {
        sandbox.run(&format!("bench cholesky --element-type double --rows {rows} --runs 1"));
    }
}

#[test]
fn options_of_doubles_are_checked() {
    let sandbox = Sandbox::new();
    for (flags, code, word) in [
        ("cholesky --element-type quad", 2, "[possible values: big, double]"),
        ("syrk --element-type double", 2, "unexpected argument '--element-type'"),
        ("cholesky --policy fifo", 2, "--policy cannot be used with --element-type big"),
        ("cholesky --element-type double --policy best", 2, "choose one of fifo, lifo"),
        ("cholesky --element-type double --eviction mru", 2, "[possible values: fifo, lru]"),
        ("cholesky --element-type double --device 99", 2, "device not available"),
        ("cholesky --element-type double --device gpu", 2, "invalid value 'gpu' for '--device <LIST>': none of"),
        ("cholesky --element-type double --against mpfr", 2, "--against cannot be used with --element-type double"),
        ("cholesky --element-type double --precision 64", 2, "--precision cannot be used with --element-type double"),
        ("cholesky --element-type double --window posix", 2, "unexpected argument '--window'"),
        ("kernel --window posix", 2, "unexpected argument '--window'"),
        ("kernel --memory-fractions 3", 2, "unexpected argument '--memory-fractions'"),
        ("kernel --self-check", 2, "unexpected argument '--self-check'"),
        ("kernel --against mpfr", 2, "unexpected argument '--against'"),
        ("kernel --precision 64", 2, "unexpected argument '--precision'"),
        ("cholesky --element-type double --kernel reference", 2, "--kernel cannot be used with --element-type double"),
        ("cholesky --element-type double --tile 0", 2, "choose 1 or more"),
        (
            "cholesky --element-type double --rows 100 --tile 16 --device soft --device-memory 6143",
            4,
            "at least 6144 bytes",
        ),
        ("cholesky --element-type double --rows 100 --tile 16 --device soft:1K", 4, "at least 6144 bytes"),
    ] {
        let error = sandbox.fail(&format!("bench {flags}"), code);
        assert!(error.contains(word), "{flags}: {error}");
    }
}

#[test]
fn a_step_is_checked_on_all_sides() {
    let sandbox = Sandbox::new();
    let has_sdpb = cfg!(all(feature = "blas", feature = "flint"));
    let against = if has_sdpb { "sdpb,mpfr" } else { "mpfr" };
    let line = "bench step --blocks 6 --order 5 --cols 21 --precision 128 --runs 2 --report r.json";
    let text = sandbox.run(&format!("{line} --against {against}"));
    let report = sandbox.json("r.json");
    assert_eq!((&report["same_bits"], &report["checked"]), (&true.into(), &true.into()), "{text}");
    let others = report["baselines"].as_array().unwrap();
    assert_eq!(others.len(), against.split(',').count(), "{text}");
    for side in std::iter::once(&report).chain(others) {
        let stages = ["v", "q", "cholesky", "solves"].map(|stage| side["phases"][stage].as_f64().unwrap());
        assert!(stages.iter().all(|&seconds| seconds > 0.0), "{text}");
        assert!(side["ratio"].as_f64().unwrap() > 0.0 && side["checked"] == true, "{text}");
    }
    let refused = [("--cols 20 --against nonsense", 2, "sdpb, mpfr"), ("--cols 31", 2, "would be singular")];
    for (options, code, text) in refused {
        let said = sandbox.fail(&format!("bench step --blocks 6 --order 5 {options}"), code);
        assert!(said.contains(text), "{said}");
    }
}

#[test]
fn times_are_drawn_against_bits_and_sizes() {
    let sandbox = Sandbox::new();
    let all = [
        ("syrk", "--rows 40 --cols 20"),
        ("cholesky", "--rows 24"),
        ("solve", "--rows 16"),
        ("gemm", "--rows 12 --cols 8"),
        ("trsm", "--rows 16 --cols 4"),
    ];
    // Eight benchmarks make a plot: with little effort one of products, one of factors, one of solves.
    for (operation, sizes) in all.into_iter().take(if effort() > 1 { 5 } else { 3 }) {
        let line = format!("bench {operation} {sizes} -p 256 --runs 1 --threads 1 --against mpfr");
        let text = sandbox.run(&format!("{line} --plot p.svg --report r.json"));
        let picture = sandbox.text("p.svg");
        for words in ["seconds against precision", "seconds against size", "bits", "sunzi", "mpfr"] {
            assert!(picture.contains(words), "{operation}: {words}");
        }
        let report = sandbox.json("r.json");
        let numbers = |list: &str, key: &str| -> Vec<u64> {
            report[list].as_array().unwrap().iter().map(|one| one[key].as_u64().unwrap()).collect()
        };
        assert_eq!(numbers("by_bits", "precision_bits"), [64, 128, 192, 256], "{operation}");
        let rows = numbers("by_bits", "rows")[0];
        assert_eq!(numbers("by_rows", "rows"), [rows / 4, rows / 2, 3 * rows / 4, rows], "{operation}");
        assert!(text.lines().count() == 10 && text.lines().all(|line| line.len() <= 80), "{text}");
    }
    let doubles = "cholesky --element-type double --rows 9 --plot p.svg";
    for (flags, code, needle) in [
        (doubles, 2, "--plot cannot be used with --element-type double"),
        ("batch --rows 4 --plot p.svg", 2, "--plot cannot be used with a batch"),
        ("kernel --plot p.svg", 2, "unexpected argument '--plot'"),
        ("syrk --rows 4 --cols 2 --plot none/p.svg", 3, "none/p.svg"),
    ] {
        let error = sandbox.fail(&format!("bench {flags}"), code);
        assert!(error.contains(needle), "{flags}: {error}");
    }
}
