//! Verification of stored factors and solutions: right ones pass, wrong ones are named and give exit code 5.

use super::sandbox::{Sandbox, named_minimum};

/// A definite matrix, right-hand sides, and the solution, inverse and factors of the matrix.
fn solved() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 60 --cols 20 --precision 200 --seed 4 -o P.bin");
    sandbox.run("syrk P.bin -o A.bin");
    sandbox.run("gen random --rows 20 --cols 3 --precision 200 --seed 5 -o B.bin");
    sandbox.run("solve A.bin B.bin -o X.mtx");
    sandbox.run("inverse A.bin -o I.mtx");
    sandbox.run("cholesky A.bin -o L.bin");
    sandbox.run("cholesky A.bin -o U.bin --upper");
    sandbox
}

/// Replaces the number on line `line` of a file.
fn spoil(sandbox: &Sandbox, file: &str, line: usize, number: &str) {
    let text = sandbox.text(file);
    let mut lines: Vec<&str> = text.lines().collect();
    lines[line] = number;
    sandbox.write(file, lines.join("\n"));
}

#[test]
fn solutions_and_inverses() {
    let sandbox = solved();
    let line = sandbox.run("verify solve A.bin B.bin X.mtx --seed 3 --report v.json");
    let start = "X.mtx: A X = B to 200 bits (4 random vectors, 60 entries; largest error 0.";
    assert!(line.starts_with(start) && line.trim_end().ends_with("seed 3)"), "{line}");
    let report = sandbox.json("v.json");
    assert_eq!((&report["operation"], &report["product"]), (&"verify".into(), &"solve".into()));
    let place = &report["verification"]["worst_place"];
    assert!((1..=20).contains(&place[0].as_u64().unwrap()) && (1..=3).contains(&place[1].as_u64().unwrap()));
    sandbox.run("verify solve A.bin B.bin X.mtx --lower --memory 64M --threads 1");
    let line = sandbox.run("verify inverse A.bin I.mtx");
    assert!(line.starts_with("I.mtx: A X = I to 200 bits (4 random vectors, 256 entries; "), "{line}");
    for (command, file) in [("solve A.bin B.bin X.mtx", "X.mtx"), ("inverse A.bin I.mtx", "I.mtx")] {
        let error = sandbox.fail(&format!("verify {command} --precision 230"), 5);
        assert!(error.contains("units of 2^(4-b)") && error.contains("(from 1)"), "{error}");
        let right = sandbox.text(file);
        spoil(&sandbox, file, 9, "0.125");
        let error = sandbox.fail(&format!("verify {command}"), 5);
        assert!(error.contains("the residual at row ") && error.contains("and at most 1 is allowed"), "{error}");
        sandbox.write(file, right);
    }
    let error = sandbox.fail("verify solve A.bin B.bin X.mtx --memory 1M", 4);
    assert!(error.contains("is too small: this operation needs at least"), "{error}");
    assert!(sandbox.fail("verify solve A.bin X.mtx I.mtx", 3).contains("shapes do not fit: 20 x 3 against 20 x 20"));
    assert!(sandbox.fail("verify solve P.bin B.bin X.mtx", 3).contains("the matrix is 60 x 20, but must be square"));
}

#[test]
fn triangular_solutions() {
    let sandbox = solved();
    sandbox.run("gen random --rows 3 --cols 20 --precision 200 --seed 6 -o C.bin");
    for options in [
        "L.bin B.bin {} --transpose",
        "U.bin B.bin {} --uplo upper --alpha -0.1 --unit",
        "L.bin C.bin {} --side right",
        "U.bin C.bin {} --side right --uplo upper --transpose --alpha 3",
    ] {
        let (solve, verify) = (options.replace("{}", "-o Y.mtx"), options.replace("{}", "Y.mtx"));
        sandbox.run(&format!("trsm {solve}"));
        let line = sandbox.run(&format!("verify trsm {verify}"));
        let equation = if options.contains("right") { "X op(T) = alpha B" } else { "op(T) X = alpha B" };
        assert!(line.starts_with(&format!("Y.mtx: {equation} to 200 bits (")), "{line}");
        // The system of another option is another one.
        let other =
            if options.contains("transpose") { verify.replace(" --transpose", "") } else { verify + " --transpose" };
        assert!(sandbox.fail(&format!("verify trsm {other}"), 5).contains("verification failed: verify trsm: "));
    }
    // Line 0 is the heading, 1 the precision, 2 the shape; row 2, column 3 of a 3 x 20 matrix.
    sandbox.run("trsm L.bin C.bin -o Y.mtx --side right");
    spoil(&sandbox, "Y.mtx", 3 + 2 * 3 + 1, "7");
    let error = sandbox.fail("verify trsm L.bin C.bin Y.mtx --side right", 5);
    assert!(error.contains("the residual at row 2, column ") && error.contains("(from 1)"), "{error}");
}

#[test]
fn a_factor_of_the_other_kind_is_named() {
    let sandbox = solved();
    sandbox.run("verify cholesky A.bin U.bin --upper");
    let error = sandbox.fail("verify cholesky A.bin U.bin", 5);
    assert!(error.contains("it is upper triangular: check it as an upper factor (with --upper)"), "{error}");
    let error = sandbox.fail("verify cholesky A.bin L.bin --upper", 5);
    assert!(error.contains("it is lower triangular: check it as a lower factor (without --upper)"), "{error}");
    let error = sandbox.fail("verify cholesky A.bin A.bin", 5);
    assert!(error.contains("not lower triangular") && !error.contains("--upper"), "{error}");
}

#[test]
fn a_factor_larger_than_the_limit() {
    let sandbox = Sandbox::new();
    sandbox.run("gen lehmer --rows 500 --cols 500 --precision 300 --symmetric -o A.bin");
    sandbox.run("cholesky A.bin -o L.bin");
    let in_memory = sandbox.run("verify cholesky A.bin L.bin --seed 1");
    let line = "verify cholesky A.bin L.bin --seed 1 --threads 2";
    let least = named_minimum(&sandbox.fail(&format!("{line} --memory 1M"), 4));
    assert!(least < 60 << 20, "{least} bytes");
    assert_eq!(sandbox.run(&format!("{line} --memory {least}")), in_memory);
    sandbox.fail(&format!("{line} --memory {}", least - 1), 4);
    let mut bytes = sandbox.bytes("L.bin");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(sandbox.path("L.bin"), bytes).unwrap();
    let error = sandbox.fail(&format!("{line} --memory {least}"), 3);
    assert!(error.contains("damaged") || error.contains("not a valid number"), "{error}");
}
