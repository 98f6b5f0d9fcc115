//! `cholesky`, `solve`, `inverse`, `trsm` and `verify cholesky`: right results pass, every bad input is one clear line.

use super::bad_input::refused;
use super::sandbox::{Sandbox, named_minimum};
use std::time::{Duration, Instant};

const GENERAL: &str = "%%MatrixMarket matrix array real general\n";
const SYMMETRIC: &str = "%%MatrixMarket matrix array real symmetric\n";

/// A sandbox with a Gram matrix `A.mtx`, symmetric in its file, and right-hand sides `B.mtx`.
fn gram(n: usize, bits: u32) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("gen random --rows {} --cols {n} --precision {bits} --seed 3 -o P.bin", n + 5));
    sandbox.run(&format!("syrk P.bin -o A.mtx --precision {bits}"));
    sandbox.run(&format!("gen random --rows {n} --cols 3 --precision {bits} --seed 4 -o B.mtx"));
    sandbox
}

/// The decimal after `name` in what a command printed.
fn printed(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_hilbert_matrix_is_factored_and_verified() {
    let sandbox = Sandbox::new();
    sandbox.run("gen hilbert --rows 80 --cols 80 --precision 800 --hex -o H.mtx");
    let line = sandbox.run("cholesky H.mtx -o L.mtx --precision 800");
    assert!(line.starts_with("L.mtx: 80 x 80, 800 bits ("), "{line}");
    let line = sandbox.run("verify cholesky H.mtx L.mtx --report v.json");
    assert!(line.starts_with("L.mtx: A = L L^T to 800 bits (all 3240 entries; largest residual 0."), "{line}");
    let report = sandbox.json("v.json");
    assert_eq!((&report["product"], &report["precision_bits"]), (&"cholesky".into(), &800.into()));
    assert!(report["verification"]["worst_entry"].as_f64().unwrap() <= 1.0);
    assert!(report["verification"]["worst_place"].is_array() && report["verification"]["prime"].is_u64());
    std::fs::remove_file(sandbox.path("L.mtx")).unwrap();
    let before = sandbox.names();
    let error = sandbox.fail("cholesky H.mtx -o L.mtx --precision 128 --trace t.json --report r.json", 3);
    let index: usize = error.split("index ").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
    assert!(
        (20..79).contains(&index) && error.contains("bits of precision give a factor; fewer may suffice"),
        "{error}"
    );
    assert_eq!(sandbox.names(), before);
}

#[test]
fn bits_do_not_depend_on_kernel_threads_tiles_or_triangle() {
    let sandbox = gram(40, 200);
    sandbox.run("cholesky A.mtx -o L.mtx --precision 200 --kernel reference --threads 1");
    let text = sandbox.text("L.mtx");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("%%MatrixMarket matrix array real general"));
    assert_eq!(lines.next(), Some("%sunzi precision_bits=200"));
    assert_eq!(lines.next(), Some("40 40"));
    assert_eq!(lines.nth(40), Some("0"), "the entry above the second diagonal entry");
    for choice in ["--threads 2", "--kernel f64", "--tile 7", "--tile 1e3 --lower", "--lower"] {
        sandbox.run(&format!("cholesky A.mtx -o R.mtx --precision 200 {choice}"));
        assert_eq!(sandbox.bytes("R.mtx"), sandbox.bytes("L.mtx"), "{choice}");
    }
    // Symmetric, general, coordinate and binary files of the same matrix.
    sandbox.run("gemm P.bin P.bin --transpose-a -o G.mtx --precision 200");
    sandbox.run("convert A.mtx S.bin");
    for file in ["G.mtx", "S.bin"] {
        sandbox.run(&format!("cholesky {file} -o R.bin --precision 200 --quiet"));
        assert!(sandbox.run("compare R.bin L.mtx").starts_with("equal"), "{file}");
    }
    sandbox.run("verify cholesky G.mtx R.bin --threads 1 --kernel reference --precision 200");
    sandbox.run("cholesky A.mtx -o U.mtx --upper --precision 200");
    sandbox.run("verify cholesky A.mtx U.mtx --upper");
    let error = sandbox.fail("verify cholesky A.mtx U.mtx", 5);
    assert!(error.contains("not lower triangular: the entry at row 1, column 2 (from 1)"), "{error}");
}

#[test]
fn a_memory_limit_names_the_least_that_works() {
    let sandbox = gram(60, 200);
    sandbox.run("cholesky A.mtx -o L.mtx --precision 200");
    let mut limit = String::from("100K");
    for _ in 0..4 {
        let line = format!("cholesky A.mtx -o M.mtx --precision 200 --threads 2 --memory {limit}");
        let output = sandbox.output(&line);
        if output.code == 0 {
            assert_eq!(sandbox.bytes("M.mtx"), sandbox.bytes("L.mtx"));
            assert_ne!(limit, "100K");
            return;
        }
        assert_eq!(output.code, 4, "{output:?}");
        assert!(!sandbox.names().contains(&"M.mtx".to_string()));
        limit = named_minimum(&output.stderr).to_string();
    }
    panic!("the named limits do not do: {limit}");
}

#[test]
fn one_triangle_is_enough() {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", format!("{GENERAL}2 2\n4\n2\n77\n10\n"));
    sandbox.write("C.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 2\n2 2 10\n");
    let line =
        sandbox.run("cholesky A.mtx -o L.mtx --precision 64 --lower --ignore-other-triangle --log-det --condition");
    assert!((printed(&line, "log det A =") - 36f64.ln()).abs() < 1e-14, "{line}");
    // The 1-norms of [[4, 2], [2, 10]] and of its inverse are 12 and 12 / 36.
    assert!(line.contains("condition of A in the 1-norm: about 4.00e0"), "{line}");
    assert_eq!(sandbox.text("L.mtx"), format!("{GENERAL}%sunzi precision_bits=64\n2 2\n2\n1\n0\n3\n"));
    sandbox.run("cholesky C.mtx -o R.mtx --precision 64");
    assert_eq!(sandbox.bytes("R.mtx"), sandbox.bytes("L.mtx"));
    sandbox.run("verify cholesky A.mtx L.mtx --lower --ignore-other-triangle");
    assert!(sandbox.fail("verify cholesky A.mtx L.mtx", 3).contains("not symmetric"));
    let error = sandbox.fail("cholesky A.mtx -o R.mtx --precision 64 --upper --ignore-other-triangle", 3);
    assert!(error.contains("index 2: pivot -1.47e3, diagonal entry 1.00e1"), "{error}");
}

#[test]
fn solutions_and_inverses_fit_their_matrix() {
    let sandbox = gram(25, 300);
    // So small a factor has tiles where a kernel is named.
    let options = "--report r.json --trace t.json --log-det --condition --kernel f64";
    let said = sandbox.run(&format!("solve A.mtx B.mtx -o X.mtx --precision 300 {options}"));
    assert!(said.contains("t.json: trace, to open in https://ui.perfetto.dev"), "{said}");
    let report = sandbox.json("r.json");
    assert_eq!((&report["operation"], &report["rows"], &report["cols"]), (&"solve".into(), &25.into(), &3.into()));
    assert!(report["log_det"].is_string() && report["condition"].is_string() && report["refinement"].is_null());
    let trace = sandbox.json("t.json");
    let names = trace["traceEvents"].as_array().unwrap().iter().map(|span| span["name"].as_str().unwrap());
    let names: Vec<&str> = names.collect();
    for name in ["read", "factor", "condition", "solve", "write"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(names.iter().any(|name| name.starts_with("potrf (0, 0)")), "{names:?}");
    let named = trace["traceEvents"].as_array().unwrap().iter().filter_map(|event| event["args"]["name"].as_str());
    let named = named.collect::<Vec<_>>();
    assert!(["sunzi", "steps of the command", "worker 1"].iter().all(|name| named.contains(name)), "{named:?}");
    assert_eq!(trace["otherData"]["viewer"], "https://ui.perfetto.dev");
    for key in ["primes", "tile_rows", "tiles", "planned_bytes", "working_bits"] {
        assert!(report["factorisation"][key].is_u64(), "{key}: {report}");
    }
    // A X, A X' and A (A^-1 B) are B to about 250 bits.
    sandbox.run("solve A.mtx B.mtx -o R.mtx --precision 300 --refine-from 80 --report r.json");
    assert!(sandbox.json("r.json")["refinement"]["iterations"].as_u64().unwrap() > 0);
    sandbox.run("inverse A.mtx -o I.mtx --precision 300");
    assert!(sandbox.text("I.mtx").starts_with(SYMMETRIC));
    sandbox.run("gemm I.mtx B.mtx -o V.mtx --precision 300");
    for name in ["X", "R", "V"] {
        sandbox.run(&format!("gemm A.mtx {name}.mtx -o C.mtx --precision 300"));
        close(&sandbox, "C.mtx", "B.mtx");
    }
    // The upper triangle of the same file.
    sandbox.run("solve A.mtx B.mtx -o Y.mtx --precision 300 --upper");
    assert_eq!(sandbox.bytes("Y.mtx"), sandbox.bytes("X.mtx"));
    sandbox.run("solve A.mtx B.mtx -o Y.mtx --precision 300 --upper --refine-from 80");
    assert_eq!(sandbox.bytes("Y.mtx"), sandbox.bytes("R.mtx"));
    sandbox.run("inverse A.mtx -o Y.mtx --precision 300 --lower");
    assert_eq!(sandbox.bytes("Y.mtx"), sandbox.bytes("I.mtx"));
}

/// Asserts that two files agree to about 70 digits of each entry.
fn close(sandbox: &Sandbox, left: &str, right: &str) {
    let output = sandbox.output(&format!("compare {left} {right} --report c.json"));
    assert!(output.code <= 1, "{output:?}");
    let relative = &sandbox.json("c.json")["largest_relative"]["relative"];
    let relative: f64 = relative.as_str().map_or(0.0, |text| text.parse().unwrap());
    assert!(relative < 1e-70, "{left} and {right}: {relative}");
}

#[test]
fn triangular_systems_of_every_form() {
    let sandbox = gram(17, 300);
    sandbox.run("cholesky A.mtx -o L.mtx --precision 300");
    sandbox.run("cholesky A.mtx -o U.mtx --precision 300 --upper");
    sandbox.run("gen random --rows 3 --cols 17 --precision 300 --seed 8 -o W.mtx");
    for (triangle, uplo) in [("L.mtx", ""), ("U.mtx", "--uplo upper")] {
        for transpose in ["", "--transpose"] {
            sandbox.run(&format!("trsm {triangle} B.mtx -o X.mtx --precision 300 {uplo} {transpose} --alpha -0.5"));
            let back = if transpose.is_empty() { "" } else { "--transpose-a" };
            sandbox.run(&format!("gemm {triangle} X.mtx -o C.mtx --precision 300 --alpha -2 {back}"));
            close(&sandbox, "C.mtx", "B.mtx");
            sandbox.run(&format!("trsm {triangle} W.mtx -o X.mtx --precision 300 {uplo} {transpose} --side right"));
            let back = if transpose.is_empty() { "" } else { "--transpose-b" };
            sandbox.run(&format!("gemm X.mtx {triangle} -o C.mtx --precision 300 {back}"));
            close(&sandbox, "C.mtx", "W.mtx");
        }
    }
    sandbox.write("T.mtx", format!("{GENERAL}2 2\n0\n3\n99\n5\n"));
    sandbox.write("b.mtx", format!("{GENERAL}2 1\n2\n7\n"));
    sandbox.run("trsm T.mtx b.mtx -o X.mtx --precision 64 --unit --report r.json");
    assert!(sandbox.text("X.mtx").ends_with("2 1\n2\n1\n"), "{}", sandbox.text("X.mtx"));
    assert_eq!(sandbox.json("r.json")["operation"], "trsm");
}

#[test]
fn a_wrong_factor_fails_verification() {
    let sandbox = gram(12, 150);
    sandbox.run("cholesky A.mtx -o L.mtx --precision 150");
    sandbox.run("verify cholesky A.mtx L.mtx --precision 140");
    let error = sandbox.fail("verify cholesky A.mtx L.mtx --precision 190", 5);
    assert!(error.contains("times its bound 2^(2-190) sqrt(a_ii a_jj)"), "{error}");
    let text = sandbox.text("L.mtx");
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    lines[3 + 12 * 2 + 5] = "0.25".into();
    sandbox.write("L.mtx", lines.join("\n"));
    let error = sandbox.fail("verify cholesky A.mtx L.mtx", 5);
    assert!(error.contains("verification failed: verify cholesky: A - L L^T at row 6, column"), "{error}");
    assert!(sandbox.fail("verify cholesky A.mtx B.mtx", 3).contains("12 x 12 against 12 x 3"));
}

/// One base for errors of files and of the library, results of verifications, reports and comparisons; each says it.
#[test]
fn rows_and_columns_count_from_one() {
    let sandbox = Sandbox::new();
    sandbox.write("A.csv", "4,1\n1,3\n");
    sandbox.write("bad.csv", "4,1\n1,x\n");
    sandbox.write("not.csv", "4,5\n5,3\n");
    let error = sandbox.fail("cholesky bad.csv -o L.mtx --precision 64", 3);
    assert!(error.contains("entry at row 2, column 2 (counted from 1)"), "{error}");
    let error = sandbox.fail("cholesky not.csv -o L.mtx --precision 64", 3);
    assert!(error.contains("index 2: pivot") && error.contains("(counted from 1)"), "{error}");
    sandbox.run("cholesky A.csv -o L.mtx --precision 64");
    let line = sandbox.run("verify cholesky A.csv L.mtx --report v.json");
    let place = sandbox.json("v.json")["verification"]["worst_place"].clone();
    assert!(line.contains(&format!("at row {}, column {} (from 1)", place[0], place[1])), "{line} {place}");
    let error = sandbox.fail("verify cholesky not.csv L.mtx", 5);
    assert!(error.contains("at row 2, column 1 (from 1) is"), "{error}");
    let text = sandbox.output("compare A.csv not.csv --precision 64").stdout;
    assert!(text.contains("row 2, column 1 (from 1): 1.0"), "{text}");
}

#[test]
fn matrices_that_cannot_be_factored() {
    let sandbox = Sandbox::new();
    sandbox.write("B.mtx", format!("{GENERAL}2 1\n1\n2\n"));
    sandbox.write("I.mtx", format!("{SYMMETRIC}2 2\n1\n0\n1\n"));
    let files = [
        (format!("{GENERAL}3 2\n1\n2\n3\n4\n5\n6\n"), "a symmetric matrix: the matrix is 3 x 2, but must be square"),
        (format!("{GENERAL}2 2\n4\n2\n1\n4\n"), "A.mtx: not symmetric: entry (2, 1) is 2.00000e0, entry (1, 2) is 1.0"),
        (format!("{GENERAL}2 2\n4\n2\n2.00000000000000000001\n4\n"), "entry (1, 2) is 2.0000000000000000000100000"),
        (format!("{GENERAL}2 2\n4\n2\nnan\n4\n"), "NaN"),
        (format!("{SYMMETRIC}2 2\n4\ninf\n4\n"), "row 2, column 1"),
        (format!("{GENERAL}2 2\n4\n2\n2\n"), "4"),
        (format!("{GENERAL}2 2\n1\n4\n4\n1\n"), "index 2: pivot -1.50e1, diagonal entry 1.00e0; rounding"),
        (format!("{SYMMETRIC}2 2\n-1\n0\n1\n"), "index 1: pivot -1.00e0"),
        (format!("{SYMMETRIC}2 2\n0\n0\n0\n"), "rounding cannot explain the pivot: more bits will not help"),
        ("hello\n".into(), "MatrixMarket"),
    ];
    for (text, needle) in files {
        sandbox.write("A.mtx", text);
        for command in ["cholesky A.mtx", "solve A.mtx B.mtx", "inverse A.mtx", "solve A.mtx B.mtx --refine-from 60"] {
            let line = format!("{command} -o Q.mtx --precision 100 --report r.json --condition --trace t.json");
            let line = if line.contains("refine") { line.replace("--condition", "") } else { line };
            refused(&sandbox, &line, 3, needle);
        }
    }
    refused(&sandbox, "solve I.mtx I.mtx -o Q.mtx --precision 1e5", 2, "supported range");
    refused(&sandbox, "cholesky missing.mtx -o Q.mtx --precision 100", 3, "missing.mtx");
}

#[test]
fn systems_that_cannot_be_solved() {
    let sandbox = Sandbox::new();
    sandbox.write("T.mtx", format!("{GENERAL}3 3\n1\n2\n3\n0\n0\n6\n0\n0\n0\n"));
    sandbox.write("B.mtx", format!("{GENERAL}2 1\n1\n2\n"));
    sandbox.run("gen hilbert --rows 20 --cols 20 --precision 400 -o H.mtx");
    sandbox.run("gen random --rows 20 --cols 2 --precision 400 -o C.mtx");
    refused(
        &sandbox,
        "trsm T.mtx T.mtx -o Q.mtx --precision 100",
        3,
        "zero on the diagonal at index 2: the triangular matrix is singular",
    );
    refused(&sandbox, "trsm T.mtx B.mtx -o Q.mtx --precision 100", 3, "trsm: shapes do not fit: 3 x 3 against 2 x 1");
    refused(&sandbox, "trsm T.mtx T.mtx -o Q.mtx --precision 100 --alpha nan", 2, "--alpha: 'nan'");
    refused(&sandbox, "solve H.mtx B.mtx -o Q.mtx", 3, "solve: shapes do not fit: 20 x 20 against 2 x 1");
    refused(&sandbox, "solve H.mtx C.mtx -o Q.mtx --precision 2000 --refine-from 60", 3, "refinement stalls after");
    refused(&sandbox, "solve H.mtx C.mtx -o Q.mtx --refine-from 20", 3, "not positive definite: index");
    sandbox.run("convert H.mtx H.bin");
    let whole = sandbox.bytes("H.bin");
    sandbox.write("H.bin", &whole[..whole.len() - 100]);
    for line in ["cholesky H.bin", "solve H.mtx H.bin", "inverse H.bin", "trsm H.bin C.mtx", "trsm H.mtx H.bin"] {
        refused(&sandbox, &format!("{line} -o Q.mtx --precision 400"), 3, "H.bin");
    }
}

#[test]
fn choices_that_make_no_sense() {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", format!("{SYMMETRIC}2 2\n4\n2\n4\n"));
    let cases = [
        ("cholesky A.mtx", "--output"),
        ("cholesky A.mtx -o Q.mtx", "does not state its precision"),
        ("cholesky A.mtx -o Q.xyz --precision 64", ".mtx"),
        ("cholesky A.mtx -o Q.mtx --precision 0", "precision of 0 bits"),
        ("cholesky A.mtx -o Q.mtx --precision 1e6", "supported range"),
        ("cholesky A.mtx -o Q.mtx --precision 64 --lower --upper", "--upper"),
        ("cholesky A.mtx -o Q.mtx --precision 64 --tile 0", "--tile"),
        ("cholesky A.mtx -o Q.mtx --precision 64 --tile few", "few"),
        ("cholesky A.mtx -o Q.mtx --precision 64 --threads 0", "0 threads"),
        ("cholesky A.mtx -o Q.mtx --precision 64 --kernel fastest", "unknown kernel 'fastest'"),
        ("solve A.mtx -o Q.mtx --precision 64", "<B>"),
        ("solve A.mtx A.mtx -o Q.mtx --precision 64 --refine-from 1", "precision of 1 bits"),
        ("solve A.mtx A.mtx -o Q.mtx --precision 64 --refine-from 60 --log-det", "--log-det"),
        ("solve A.mtx A.mtx -o Q.mtx --precision 64 --refine-from 60 --accuracy norm", "--accuracy"),
        ("plan solve --rows 9 --cols 2 --precision 64 --refine-from 60 --accuracy norm", "--accuracy"),
        ("plan solve --rows 9 --cols 2 --precision 64 --refine-from 60 --range-bits 9", "--range-bits"),
        ("inverse A.mtx -o Q.mtx --precision 64 --refine-from 60", "--refine-from"),
        (
            "trsm A.mtx A.mtx -o Q.mtx --precision 64 --side top",
            "'top' for '--side <SIDE>' [possible values: left, right]",
        ),
        (
            "trsm A.mtx A.mtx -o Q.mtx --precision 64 --uplo both",
            "'both' for '--uplo <TRIANGLE>' [possible values: lower, upper]",
        ),
        ("trsm A.mtx A.mtx -o Q.mtx --precision 64 --alpha ten", "ten"),
        ("verify cholesky A.mtx", "<L>"),
        ("verify cholesky A.mtx A.mtx --precision 64 --seed -1", "-1"),
    ];
    for (line, needle) in cases {
        refused(&sandbox, line, 2, needle);
    }
    refused(&sandbox, "cholesky A.mtx -o none/Q.mtx --precision 64", 3, "none/Q.mtx");
    refused(&sandbox, "cholesky A.mtx -o Q.mtx --precision 64 --trace none/t.json", 3, "none/t.json");
    refused(&sandbox, "cholesky A.mtx -o Q.mtx --precision 64 --memory 1K", 4, "(1024 bytes) is too small");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_factorisation_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    // The reference kernel needs a minute for this.
    sandbox.run("gen kms --rows 700 --cols 700 --precision 2000 -o A.bin");
    let line = "cholesky A.bin -o L.mtx --precision 2000 --kernel reference --threads 2 --report r.json --trace t.json";
    let child = sandbox.start(line);
    std::thread::sleep(Duration::from_millis(900));
    let start = Instant::now();
    sandbox.signal(&child, "INT");
    let output = sandbox.finish(child);
    assert_eq!((output.code, output.stderr.as_str()), (130, "sunzi: error: cancelled\n"));
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_eq!(sandbox.names(), ["A.bin"]);
}

#[test]
fn a_logarithm_needs_no_output() {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", format!("{GENERAL}2 2\n4\n2\n2\n10\n"));
    let before = sandbox.names();
    let told = sandbox.run("cholesky A.mtx --log-det --precision 64");
    assert!(told.starts_with("factor, not written: 2 x 2, 64 bits") && told.contains("log det A = 3.58"), "{told}");
    let asked = sandbox.run("cholesky A.mtx --log-det --condition --precision 64 --quiet");
    let lines = asked.lines().collect::<Vec<_>>();
    assert!(
        lines.len() == 2 && lines[0].starts_with("log det A = 3.58") && lines[1].starts_with("condition"),
        "{asked}"
    );
    assert_eq!(sandbox.names(), before);
    assert!(sandbox.fail("cholesky A.mtx --precision 64", 2).contains("--output <FILE>"));
    assert!(sandbox.fail("cholesky A.mtx --log-det --hex --precision 64", 2).contains("--output <FILE>"));
}

/// A matrix that is not symmetric is refused whatever triangle is named, and no advice leads to the answer for another
/// matrix. `(matrix, what no option, --lower and --upper come to)`.
#[test]
fn a_general_matrix_is_never_solved_as_a_symmetric_one() {
    let sandbox = Sandbox::new();
    sandbox.write("b.csv", "1\n1\n");
    let purpose = "accept only symmetric positive definite matrices";
    let cases = [
        ("4,1\n0,3\n", [Some("is zero, give --upper"), Some("names a triangle that is zero"), None]),
        ("4,0\n1,3\n", [Some("is zero, give --lower"), None, Some("names a triangle that is zero")]),
        ("4,1\n2,3\n", [Some(purpose), Some("--lower --ignore-other"), Some("--upper --ignore-other")]),
        (
            "4,1\n1.0000000000000000001,3\n",
            [Some("agree up to rounding: choose the triangle to read by --lower or --upper"), None, None],
        ),
        ("4,1\n1,3\n", [None, None, None]),
        ("4,0\n0,3\n", [None, None, None]),
    ];
    for (text, refusals) in cases {
        sandbox.write("A.csv", text);
        for (flag, refusal) in ["", "--lower", "--upper"].into_iter().zip(refusals) {
            let solve = format!("solve A.csv b.csv -o x.csv -p 64 --input-precision 64 --certified {flag}");
            match refusal {
                None => drop(sandbox.run(&solve)),
                Some(text) => {
                    let error = sandbox.fail(&solve, 3);
                    assert!(error.contains("A.csv: not symmetric: entry (") && error.contains(text), "{error}");
                    assert!(!error.contains("give --lower or"), "{error}");
                    assert!(sandbox.fail(&format!("cholesky A.csv -o L.csv -p 64 {flag}"), 3).contains(text));
                    assert!(sandbox.fail(&format!("inverse A.csv -o X.csv -p 64 {flag}"), 3).contains(text));
                    assert!(sandbox.fail(&format!("verify cholesky A.csv A.csv -p 64 {flag}"), 3).contains(text));
                }
            }
            if !flag.is_empty() {
                sandbox.run(&format!("{solve} --ignore-other-triangle"));
            }
        }
    }
    let error = sandbox.fail("solve A.csv b.csv -o x.csv -p 64 --ignore-other-triangle", 2);
    assert!(error.contains("--lower") && error.contains("--upper"), "{error}");
}

#[test]
fn the_other_triangle_counts_in_files_that_are_read_block_by_block_and_in_added_matrices() {
    let sandbox = gram(40, 200);
    sandbox.run("convert A.mtx A.bin");
    sandbox.run("gen random --rows 40 --cols 40 --precision 200 --seed 9 -o N.bin");
    sandbox.run("convert B.mtx B.bin");
    let error = sandbox.fail("cholesky N.bin -o L.bin --accuracy norm --storage tiles --lower", 3);
    assert!(error.contains("N.bin: not symmetric: entry (2, 1) is") && error.contains("--ignore-other"), "{error}");
    assert!(!sandbox.path("L.bin").exists());
    let error = sandbox.fail("solve N.bin B.bin -o X.bin --accuracy norm --storage tiles --lower", 3);
    assert!(error.contains("N.bin: not symmetric: entry (2, 1) is"), "{error}");
    sandbox.run("cholesky A.bin -o L.bin --accuracy norm --storage tiles --lower");
    // With the option the lower triangle is read as before, and is not positive definite.
    let line = "cholesky N.bin -o M.bin --accuracy norm --storage other --lower --ignore-other-triangle";
    assert!(sandbox.fail(line, 3).contains("not positive definite"));
    sandbox.run("gen random --rows 9 --cols 40 --precision 200 --seed 8 -o P2.bin");
    let syrk = "syrk P2.bin -o Q.bin --accumulate N.bin --accumulate-triangle lower";
    let error = sandbox.fail(syrk, 3);
    assert!(error.contains("must be symmetric") && error.contains("--accumulate-triangle lower --ignore"), "{error}");
    sandbox.run(&format!("{syrk} --ignore-other-triangle"));
}

#[test]
fn a_solution_without_a_file_is_printed() {
    let sandbox = gram(6, 128);
    sandbox.run("solve A.mtx B.mtx -o X.mtx --hex");
    let printed = sandbox.output("solve A.mtx B.mtx --hex");
    assert_eq!((printed.code, printed.stdout), (0, sandbox.text("X.mtx")));
    assert!(printed.stderr.starts_with("standard output: 6 x 3, 128 bits"), "{}", printed.stderr);
    sandbox.run("solve A.mtx B.mtx -o X.csv");
    assert_eq!(sandbox.run("solve A.mtx B.mtx --output-format csv --quiet"), sandbox.text("X.csv"));
    assert_eq!(sandbox.run("solve A.mtx B.mtx --quiet --refine-from 100").lines().next(), Some(GENERAL.trim_end()));
    let error = sandbox.fail("solve A.mtx B.mtx --storage tiles", 2);
    assert!(error.contains("--output"), "{error}");
}

#[test]
fn a_factorisation_in_one_process_is_drawn() {
    let sandbox = gram(40, 200);
    for line in [
        "cholesky A.mtx -o L.mtx",
        "cholesky A.mtx --log-det --threads 2 --tile 8 --trace t.json",
        "solve A.mtx B.mtx -o X.mtx --certified",
        "inverse A.mtx -o R.mtx --precision auto --digits 20",
    ] {
        sandbox.run(&format!("{line} --plot p.svg"));
        let picture = sandbox.text("p.svg");
        for words in ["<svg", "busy workers", "finished tiles", "seconds"] {
            assert!(picture.contains(words), "{line}: {words}");
        }
        std::fs::remove_file(sandbox.path("p.svg")).unwrap();
    }
    for (line, code, needle) in [
        ("solve A.mtx B.mtx -o Q.mtx --refine-from 150 --plot p.svg", 2, "--refine-from"),
        ("cholesky A.mtx -o Q.mtx --plot none/p.svg", 3, "none/p.svg"),
        ("cholesky A.mtx -o Q.mtx --plot A.mtx", 2, "the plot A.mtx would replace the input"),
        ("cholesky A.mtx -o Q.mtx --grid 1x1", 2, "start them with mpirun"),
    ] {
        refused(&sandbox, line, code, needle);
    }
}
