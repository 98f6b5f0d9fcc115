//! `sunzi eigenvalue`: intervals that hold eigenvalues known in closed form, and refusals.

use super::bad_input::refused;
use super::sandbox::{Sandbox, named_minimum};
use rug::Float;
use rug::float::Round;

const BITS: u32 = 2000;

fn number(text: &str, round: Round) -> Float {
    Float::with_val_round(BITS, Float::parse(text).unwrap(), round).0
}

/// The intervals of a report, each with its end of the spectrum.
fn intervals(sandbox: &Sandbox) -> Vec<(String, Float, Float)> {
    let report = sandbox.json("r.json");
    let ends = report["eigenvalues"].as_array().unwrap().iter().map(|end| {
        let text = |key: &str| end[key].as_str().unwrap();
        (text("which").into(), number(text("lower"), Round::Down), number(text("upper"), Round::Up))
    });
    ends.collect()
}

/// Runs the command on `A.mtx`, whose eigenvalues are between these two: the intervals hold them, and determine `bits`
/// bits.
fn expect(sandbox: &Sandbox, options: &str, bits: u32, ends: [Float; 2], sign: &str) {
    let text = sandbox.run(&format!("eigenvalue A.mtx -p {bits} {options} --report r.json"));
    let found = intervals(sandbox);
    assert_eq!(found.iter().map(|end| end.0.as_str()).collect::<Vec<_>>(), ["smallest", "largest"]);
    for ((_, lower, upper), wanted) in found.iter().zip(ends) {
        assert!(*lower <= wanted && wanted <= *upper, "{wanted}: {text}");
        // The decimals of a report add little to the width.
        let width = Float::with_val(BITS, upper - lower);
        assert!(width <= wanted.abs() >> (bits - 1), "{text}");
    }
    assert!(text.contains("smallest eigenvalue  at least ") && text.ends_with(&format!("{sign} (proven)\n")), "{text}");
    assert_eq!(sandbox.json("r.json")["definiteness"], sign);
}

fn symmetric(sandbox: &Sandbox, entries: [&str; 3]) {
    let [a, b, c] = entries;
    sandbox.write("A.mtx", format!("%%MatrixMarket matrix array real symmetric\n2 2\n{a}\n{b}\n{c}\n"));
}

#[test]
fn intervals_hold_eigenvalues_known_in_closed_form() {
    let sandbox = Sandbox::new();
    let float = |value: f64| Float::with_val(BITS, value);
    let both = |least: f64, most: f64| [float(least), float(most)];
    for bits in [20, 60, 300] {
        symmetric(&sandbox, ["2", "1", "2"]);
        expect(&sandbox, "", bits, both(1.0, 3.0), "positive definite");
        symmetric(&sandbox, ["1", "2", "1"]);
        expect(&sandbox, "--threads 2", bits, both(-1.0, 3.0), "indefinite");
        symmetric(&sandbox, ["-2", "1", "-2"]);
        expect(&sandbox, "--lower", bits, both(-3.0, -1.0), "negative definite");
        // Of min(i, j): (3 -+ sqrt 5) / 2.
        symmetric(&sandbox, ["1", "1", "2"]);
        let root = float(5.0).sqrt();
        let ends = [Float::with_val(BITS, 3 - &root) >> 1, Float::with_val(BITS, 3 + &root) >> 1];
        expect(&sandbox, "--which both", bits, ends, "positive definite");
        // X v = t L L^T v with L L^T = 4 I.
        symmetric(&sandbox, ["0", "2", "0"]);
        sandbox.write("L.mtx", "%%MatrixMarket matrix array real general\n2 2\n2\n0\n0\n2\n");
        expect(&sandbox, "--factor L.mtx", bits, both(-0.5, 0.5), "indefinite");
    }
}

#[test]
fn the_plan_of_an_interval_names_a_limit_that_is_enough() {
    let sandbox = Sandbox::new();
    sandbox.run("gen kms --rows 60 --cols 60 --precision 200 -o A.bin");
    let line = "plan eigenvalue --rows 60 --precision 200 --threads 1";
    let text = sandbox.run(&format!("{line} --report p.json"));
    for words in ["search", "factorisation", "tiles", "planned"] {
        assert!(text.lines().any(|line| line.starts_with(words)), "{words}: {text}");
    }
    sandbox.run("eigenvalue A.bin --threads 1 --report r.json");
    let planned = sandbox.json("p.json")["planned_bytes"].as_u64();
    let taken = sandbox.json("r.json")["eigenvalues"][0]["planned_bytes"].as_u64();
    assert!(taken <= planned, "{taken:?}, planned {planned:?}");
    let least = named_minimum(&sandbox.fail(&format!("{line} --memory 1K"), 4));
    sandbox.run(&format!("{line} --memory {least}"));
    let least = named_minimum(&sandbox.fail("eigenvalue A.bin --threads 1 --memory 1K", 4));
    // A refusal comes from the header, and pages of the process may take some more.
    sandbox.run(&format!("eigenvalue A.bin --threads 1 --memory {}", least + (8 << 20)));
    // A file of more bits than the interval has is kept with them.
    sandbox.run("gen kms --rows 60 --cols 60 --precision 200 -o wide.mtx");
    sandbox.run("gen kms --rows 60 --cols 60 --precision 100 -o narrow.mtx");
    let [wide, narrow] = ["wide", "narrow"]
        .map(|name| named_minimum(&sandbox.fail(&format!("eigenvalue {name}.mtx -p 100 --threads 1 --memory 1K"), 4)));
    assert!(wide > narrow, "{wide} and {narrow}");
    assert!(sandbox.fail("plan eigenvalue --rows 0 --precision 200", 2).contains("order 0"));
    assert!(sandbox.fail("plan eigenvalue --rows 10 --cols 10 --precision 200", 2).contains("'--cols'"));
}

#[test]
fn the_rounding_of_decimals_is_inside_the_interval() {
    let sandbox = Sandbox::new();
    sandbox.write("A.csv", "0.1,0\n0,0.3\n");
    for (options, rounded) in [("-p 30", 94), ("-p 30 --input-precision 32", 32)] {
        sandbox.run(&format!("eigenvalue A.csv {options} --report r.json"));
        assert_eq!(sandbox.json("r.json")["rounded_bits"], rounded);
        for ((name, lower, upper), wanted) in intervals(&sandbox).iter().zip(["0.1", "0.3"]) {
            let [below, above] = [Round::Down, Round::Up].map(|round| number(wanted, round));
            assert!(*lower <= below && above <= *upper, "{options}, {name}: {lower} to {upper}");
        }
    }
    // Of a factor no such bound is made, and the program says so.
    sandbox.write("L.csv", "0.1,0\n0,1\n");
    let output = sandbox.output("eigenvalue A.csv --factor L.csv -p 30 --input-precision 64");
    assert!(output.code == 0 && output.stderr.contains("as they were read, with decimals rounded to 64 bits"));
    sandbox.write("D.csv", "2.1,0\n0,1\n");
    sandbox.write("L.csv", "1,0\n0,1\n");
    let definite = |options: &str| sandbox.output(&format!("eigenvalue D.csv -p 30 {options}")).stdout;
    assert!(definite("--factor L.csv").contains("positive definite (proven for the matrices as they were read)"));
    assert!(definite("").contains("positive definite (proven)"));
}

#[test]
fn one_end_is_enough_and_bad_input_is_refused() {
    let sandbox = Sandbox::new();
    symmetric(&sandbox, ["2", "1", "2"]);
    sandbox.run("gen random --rows 4 --cols 3 --precision 100 -o B.mtx");
    sandbox.run("gen random --rows 3 --cols 3 --precision 100 -o N.mtx");
    let text = sandbox.run("eigenvalue A.mtx -p 64 --which largest --quiet");
    assert!(text.starts_with("largest eigenvalue   at least ") && !text.contains("smallest"), "{text}");
    assert!(text.ends_with("not negative semidefinite (proven)\n") && text.lines().all(|line| line.len() <= 80));
    for (line, code, needle) in [
        ("eigenvalue B.mtx", 3, "B.mtx: a symmetric matrix: the matrix is 4 x 3, but must be square"),
        ("eigenvalue N.mtx", 3, "N.mtx: not symmetric: entry (2, 1) is "),
        ("eigenvalue A.mtx", 2, "A.mtx does not state its precision"),
        ("eigenvalue A.mtx -p 1e6", 2, "precision of 1000000 bits"),
        ("eigenvalue A.mtx -p 64 --which middle", 2, "[possible values: both, smallest, largest]"),
        ("eigenvalue A.mtx -p 64 --factor N.mtx", 3, "(A is A.mtx, 2 x 2; --factor is N.mtx, 3 x 3)"),
        ("eigenvalue A.mtx -p 64 --memory 1K", 4, "is too small"),
    ] {
        refused(&sandbox, line, code, needle);
    }
}
