//! Files of every format in every command, standard input and output, and what is refused of them.

use super::sandbox::{Output, Sandbox};
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs `sunzi` with these bytes on standard input.
fn piped(sandbox: &Sandbox, line: &str, input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sunzi"))
        .args(line.split_whitespace())
        .current_dir(sandbox.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may leave before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input);
    sandbox.finish(child)
}

/// The same; it must succeed.
fn ran(sandbox: &Sandbox, line: &str, input: &[u8]) -> Output {
    let output = piped(sandbox, line, input);
    assert_eq!(output.code, 0, "sunzi {line}: {output:?}");
    output
}

const SPD: &str = "4,1,0.5\n1,3,0.25\n0.5,0.25,2\n";

#[test]
fn every_command_takes_a_table() {
    let sandbox = Sandbox::new();
    sandbox.write("A.csv", SPD);
    sandbox.write("b.txt", "1\n2\n3\n");
    let info = sandbox.run("info A.csv b.txt --report i.json");
    assert!(info.starts_with("A.csv: 3 x 3, csv, general, 9 entries stored, no precision stated, numbers of up to 2"));
    assert_eq!(sandbox.json("i.json")[1]["rows"], 3);
    for line in [
        "cholesky A.csv -o L.csv -p 200",
        "verify cholesky A.csv L.csv -p 200",
        "solve A.csv b.txt -o x.csv.gz -p 200",
        "gemm A.csv x.csv.gz -o c.json -p 190",
        "verify gemm A.csv x.csv.gz c.json -p 190",
        "inverse A.csv -o R.npy -p 200",
        "trsm L.csv b.txt -o z.m -p 200",
        "syrk A.csv -o Q.tsv -p 200",
        "verify syrk A.csv Q.tsv -p 200",
        "convert Q.tsv Q.mtx.zst -p 200",
        "compare Q.tsv Q.mtx.zst",
    ] {
        assert!(!sandbox.run(line).is_empty(), "{line}");
    }
    let error = sandbox.fail("cholesky A.csv -o M.csv", 2);
    assert!(
        error.contains(
            "A.csv does not state its precision: give --precision, or --digits with the number of correct digits that \
             you need (its longest number has 2 digits"
        ),
        "{error}"
    );
    sandbox.run("cholesky A.csv -o M.csv --digits 20");
    // Products have no digits to reach.
    let error = sandbox.fail("syrk A.csv -o M.csv", 2);
    assert!(error.contains("A.csv does not state its precision: give --precision (its longest"), "{error}");
    sandbox.write("N.csv", SPD.replace("1,3", "1.5,3"));
    let error = sandbox.fail("cholesky N.csv -o M.csv -p 100", 3);
    assert!(
        error.contains("N.csv: not symmetric: entry (2, 1) is 1.50") && error.ends_with("positive definite matrices\n"),
        "{error}"
    );
    sandbox.run("cholesky N.csv -o M.csv -p 100 --lower --ignore-other-triangle");
    let error = sandbox.fail("convert A.csv A.xyz -p 64", 2);
    assert!(
        error.contains("A.xyz: the name does not determine the format: it must end in one of .mtx, .bin, .csv"),
        "{error}"
    );
    let error = sandbox.fail("convert A.csv A.dat-s -p 64", 2);
    assert!(error.contains("A.dat-s: this format can be read, but not written"), "{error}");
    sandbox.run("convert A.csv A.xyz -p 64 --output-format csv");
    assert!(sandbox.run("compare A.xyz A.csv -p 64 --input-format txt").starts_with("equal"));
}

#[test]
fn convert_takes_its_output_as_other_commands_do() {
    let sandbox = Sandbox::new();
    sandbox.write("A.csv", SPD);
    sandbox.run("convert A.csv A.mtx -p 64");
    assert_eq!(sandbox.run("convert A.csv -o B.mtx -p 64"), "B.mtx: general, 3 x 3, 64 bits\n");
    assert_eq!(sandbox.bytes("A.mtx"), sandbox.bytes("B.mtx"));
    for (line, needle) in [
        ("convert A.csv -p 64", "<OUTPUT>"),
        ("convert A.csv C.mtx -o D.mtx -p 64", "cannot be used with"),
        ("convert A.csv -o A.csv -p 64", "would replace the input A.csv"),
        ("convert A.csv -o A.xyz -p 64", "A.xyz: the name does not determine the format"),
    ] {
        let error = sandbox.fail(line, 2);
        assert!(error.contains(needle), "{line}: {error}");
    }
    assert_eq!(sandbox.names(), ["A.csv", "A.mtx", "B.mtx"]);
}

#[test]
fn standard_input_and_output() {
    let sandbox = Sandbox::new();
    sandbox.write("A.csv", SPD);
    let text = ran(&sandbox, "convert - - -p 64 --output-format csv", SPD.as_bytes());
    assert_eq!(text.stdout, "4,1,5e-1\n1,3,2.5e-1\n5e-1,2.5e-1,2\n");
    assert_eq!(text.stderr, "-: general, 3 x 3, 64 bits\n");
    // What a stream states is known before it is read again, whatever its format.
    let mtx = ran(&sandbox, "convert A.csv - -p 77", b"").stdout;
    assert!(mtx.starts_with("%%MatrixMarket matrix array real general\n%sunzi precision_bits=77\n"), "{mtx}");
    for line in ["cholesky - -o L.mtx", "syrk - -o Q.mtx", "info -", "compare - A.csv", "inverse - -o R.mtx"] {
        ran(&sandbox, line, mtx.as_bytes());
    }
    assert!(sandbox.text("L.mtx").contains("precision_bits=77"));
    sandbox.run("convert A.csv A.bin.gz -p 77");
    assert!(ran(&sandbox, "compare - A.csv -p 77", &sandbox.bytes("A.bin.gz")).stdout.starts_with("equal"));
    assert_eq!(ran(&sandbox, "convert - - -p 64 --output-format txt", br#"[["1", "2"]]"#).stdout, "1 2\n");
    let error = piped(&sandbox, "cholesky - -o X.mtx", SPD.as_bytes());
    assert_eq!(error.code, 3, "{error:?}");
    assert!(error.stderr.contains("standard input: line 1: entry at row 1, column 3"), "{error:?}");
    let error = piped(&sandbox, "gemm - - -o X.mtx -p 64", SPD.as_bytes());
    assert!(error.code == 2 && error.stderr.contains("standard input (-) can be read only once, but is given twice"));
    let report = ran(&sandbox, "syrk A.csv -o - -p 64 --output-format csv --report r.json --quiet", b"");
    assert!(report.stderr.is_empty() && sandbox.json("r.json")["operation"] == "syrk");
    assert!(!sandbox.path("X.mtx").exists());
}

#[test]
fn blocks_inside_of_files_and_inputs_that_are_kept() {
    let sandbox = Sandbox::new();
    sandbox.write("b.json", r#"{"c": [1, 2], "B": [["1.5"], ["-2"]]}"#);
    sandbox.write("t.dat-s", "1\n1\n2\n1\n0 1 1 1 2\n0 1 2 2 3\n");
    sandbox.run("gemm t.dat-s:0/1 b.json:B -o C.csv -p 64");
    assert_eq!(sandbox.text("C.csv"), "3\n-6\n");
    sandbox.run("cholesky t.dat-s:0/1 -o L.mtx -p 64");
    let error = sandbox.fail("gemm t.dat-s:0/1 b.json:B -o b.json -p 64", 2);
    assert!(error.contains("the output b.json would replace the input b.json"), "{error}");
    let error = sandbox.fail("convert b.json C.mtx -p 64", 3);
    assert!(error.contains("name one of its values, such as b.json:c; its keys are 'c', 'B'"), "{error}");
    let error = sandbox.fail("convert t.dat-s C.mtx -p 64", 2);
    assert!(error.contains("t.dat-s holds several matrices: name one, such as t.dat-s:1/1"), "{error}");
}

#[test]
fn damaged_and_growing_inputs() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 30 --cols 30 -p 100 -o A.csv.gz");
    let whole = sandbox.bytes("A.csv.gz");
    sandbox.write("cut.csv.gz", &whole[..whole.len() - 3]);
    let error = sandbox.fail("syrk cut.csv.gz -o Q.mtx -p 100", 3);
    assert!(error.contains("cut.csv.gz: cannot read: the gzip stream is truncated"), "{error}");
    // 6 MB of text in a few KB, for numbers that take 60 MB at least.
    let row = [b"0,".repeat(999), b"0\n".to_vec()].concat();
    sandbox.write("zeros.csv", row.repeat(3000));
    let packed = Command::new("gzip").arg("zeros.csv").current_dir(sandbox.path("")).status();
    if packed.is_ok_and(|status| status.success()) {
        assert!(sandbox.bytes("zeros.csv.gz").len() < 50_000);
        let error = sandbox.fail("syrk zeros.csv.gz -o Q.mtx -p 100 --memory 60M", 4);
        assert!(error.contains("memory limit"), "{error}");
        let error = piped(&sandbox, "syrk - -o Q.mtx -p 100 --memory 60M", &sandbox.bytes("zeros.csv.gz"));
        assert!(error.code == 4 && error.stderr.contains("memory limit"), "{error:?}");
    }
    assert!(!sandbox.path("Q.mtx").exists());
}

/// A first line that counts the columns, as pandas writes it for columns without names, is no row of the matrix unless
/// the command says so; matrices that happen to begin like that are read.
#[test]
fn a_first_line_that_counts_is_asked_about() {
    let sandbox = Sandbox::new();
    let counts = "which may be headings or a row of the matrix: choose --header or --no-header";
    let shape = |line: &str| sandbox.run(line).split(", ").next().unwrap().to_string();
    for (text, with, without) in [
        ("0,1,2\n4.5,1,0\n1,3,2\n0,2,5\n", "3 x 3", "4 x 3"),
        ("0,1\n4,1\n1,3\n", "2 x 2", "3 x 2"),
        ("1 2 3\n4 1 0\n1 3 2\n0 2 5\n", "3 x 3", "4 x 3"),
        ("# from pandas\n0;1\n0.5;0.25\n", "1 x 2", "2 x 2"),
        ("\"0\",\"1\"\n4,1\n1,3\n", "2 x 2", "3 x 2"),
    ] {
        sandbox.write("A.csv", text);
        for line in ["info A.csv", "convert A.csv B.csv -p 64", "syrk A.csv -o Q.csv -p 64"] {
            let error = sandbox.fail(line, 3);
            assert!(error.contains("A.csv: line ") && error.contains(counts), "{text}: {error}");
        }
        // What the program itself writes is read without asking.
        sandbox.run("convert A.csv C.csv -p 64 --no-header");
        assert_eq!(shape("info C.csv"), format!("C.csv: {without}"), "{text}");
        sandbox.run("compare A.csv C.csv -p 64 --no-header");
        assert_eq!(shape("info A.csv --header"), format!("A.csv: {with}"), "{text}");
        assert_eq!(shape("info A.csv --no-header"), format!("A.csv: {without}"), "{text}");
        sandbox.run("convert A.csv B.csv -p 64 --header --quiet");
        assert_eq!(shape("info B.csv --no-header"), format!("B.csv: {with}"), "{text}");
        sandbox.run("syrk A.csv -o Q.csv -p 64 --no-header");
        let piped = piped(&sandbox, "convert - B.csv -p 64", text.as_bytes());
        assert!(piped.code == 3 && piped.stderr.contains(counts), "{piped:?}");
    }
    for (text, shape_of) in [
        ("0,1\n1,0\n", "2 x 2"),
        ("1 2\n3 4\n", "2 x 2"),
        ("1,2\n2,4.5\n", "2 x 2"),
        ("0,1,2\n", "1 x 3"),
        ("0\n1\n2\n", "3 x 1"),
        ("0.0,1.0\n4,1\n1,3\n", "3 x 2"),
        ("0,1,3\n4,1,3\n", "2 x 3"),
        ("x,y\n0,1\n2,3\n4,5\n", "3 x 2"),
    ] {
        sandbox.write("A.csv", text);
        assert_eq!(shape("info A.csv"), format!("A.csv: {shape_of}"), "{text}");
    }
    assert!(sandbox.fail("info A.csv --header --no-header", 2).contains("--no-header"));
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let sandbox = Sandbox::new();
    for (name, text) in [
        ("A.csv", "4,1\n1,3\n"),
        ("A.json", "[[\"4\", 1], [1, 3]]"),
        ("M.json", "{\"x\": [1], \"A\": [[4, 1], [1, 3]]}"),
        ("A.m", "{{4, 1}, {1, 3}}"),
        ("A.mtx", "%%MatrixMarket matrix array integer general\n2 2\n4\n1\n1\n3\n"),
    ] {
        sandbox.write(name, format!("\u{feff}{text}"));
        let matrix = if name == "M.json" { "M.json:A" } else { name };
        assert_eq!(
            sandbox.run(&format!("convert {matrix} - -p 64 --output-format csv --quiet")),
            "4,1\n1,3\n",
            "{name}"
        );
        assert!(sandbox.run(&format!("info {matrix}")).contains("2 x 2"), "{name}");
    }
    let piped = piped(&sandbox, "convert - - -p 64 --output-format csv --quiet", "\u{feff}[[4, 1], [1, 3]]".as_bytes());
    assert_eq!((piped.code, piped.stdout.as_str()), (0, "4,1\n1,3\n"), "{piped:?}");
}
