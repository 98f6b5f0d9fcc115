//! `sunzi sdp --certify` and `sunzi verify sdp`: a proof beside the results or none, and a check that any change fails.

#[path = "../../../sdp/tests/inputs/blocks.rs"]
mod blocks;

use super::sandbox::Sandbox;
use blocks::{Layout, block};
use std::path::Path;
use sunzi::Matrix;

/// The largest eigenvalue of `[[0, 1], [1, 0]]`, 1, in a file with a comment.
const PROGRAM: &str = "\"test 7\n1 = m\n1\n2\n1\n0 1 1 2 1\n1 1 1 1 1\n1 1 2 2 1\n";

const RUN: &str = "sdp -s a.dat-s -o out --precision 160 --threads 1 --noFinalCheckpoint --certify";

/// A whole number below `end`, another one for each `step`.
fn random(step: usize, end: usize) -> usize {
    let mixed = (step as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize % end
}

/// The text with a digit, or what else stands there, replaced by another digit.
fn changed(text: &str, step: usize) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let digits = (0..bytes.len()).filter(|&at| bytes[at].is_ascii_hexdigit()).collect::<Vec<_>>();
    let at = digits[random(step, digits.len())];
    let new = b'0' + random(step + 1000, 10) as u8;
    bytes[at] = if new == bytes[at] { b'0' + (new - b'0' + 1) % 10 } else { new };
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_bound_is_proven_and_any_changed_digit_is_found() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", PROGRAM);
    let text = sandbox.run(&format!("{RUN} --report r.json"));
    assert!(text.contains("out/certificate: proven: 9.9999999999999999"), "{text}");
    assert!(text.contains(" <= optimum <= 1.0000000000000000000"), "{text}");
    let report = sandbox.json("r.json");
    assert_eq!(report["certificate"]["file"], "out/certificate");
    assert!(report["certificate"]["without_lower_bound"].is_null());
    let said = sandbox.run("verify sdp a.dat-s out/certificate --report v.json --threads 2");
    assert!(said.starts_with("out/certificate: proven for a.dat-s: 9.999999999"), "{said}");
    assert_eq!(sandbox.json("v.json")["lower_bound"], report["certificate"]["lower_bound"]);
    let proof = sandbox.text("out/certificate");
    for step in 0..12 {
        sandbox.write("b.dat-s", changed(PROGRAM, step));
        let output = sandbox.output("verify sdp b.dat-s out/certificate");
        assert!([3, 5].contains(&output.code), "{output:?}\n{}", sandbox.text("b.dat-s"));
        sandbox.write("p", changed(&proof, step));
        let error = sandbox.fail("verify sdp a.dat-s p", 3);
        assert!(error.contains("damaged"), "{error}");
    }
    // The same proof again, with the same bytes on any number of threads.
    sandbox.run(&RUN.replace("--threads 1", "--threads 3"));
    assert_eq!(sandbox.text("out/certificate"), proof);
}

#[test]
fn where_nothing_is_proven_the_results_are_there_and_no_certificate() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", PROGRAM);
    sandbox.run(RUN);
    assert!(sandbox.path("out/certificate").exists());
    // Neither side has an interior.
    sandbox.write("a.dat-s", "1\n1\n2\n0\n1 1 1 1 1\n");
    let output = sandbox.output(&format!("{RUN} --report r.json"));
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stderr.contains("no certificate was found; no lower bound: block 1 of Y"), "{output:?}");
    assert!(sandbox.path("out/out.txt").exists() && !sandbox.path("out/certificate").exists());
    assert!(sandbox.json("r.json")["certificate"]["file"].is_null());
    // Nothing is feasible, which a ray shows.
    sandbox.write("a.dat-s", "1\n1\n-2\n1\n1 1 1 1 1\n1 1 2 2 -1\n0 1 1 1 1\n0 1 2 2 1\n");
    let text = sandbox.run(&format!("{RUN} --report r.json"));
    assert!(text.contains(" <= optimum, no primal point is feasible\n"), "{text}");
    assert!(text.ends_with("no upper bound: no primal point is feasible\n"), "{text}");
    assert_eq!(sandbox.json("r.json")["certificate"]["primal_infeasible"], true);
    assert!(sandbox.run("verify sdp a.dat-s out/certificate").contains("no primal point is feasible\n"));
    // One side has an interior.
    sandbox.write("a.dat-s", "2\n1\n2\n1 0\n0 1 1 1 1\n1 1 1 1 1\n2 1 2 2 1\n");
    let text = sandbox.run(RUN);
    assert!(text.contains("proven: optimum <= 1.0") && text.contains("no lower bound: "), "{text}");
    let said = sandbox.run("verify sdp a.dat-s out/certificate");
    assert!(said.contains("proven for a.dat-s: optimum <= 1.0"), "{said}");
}

#[test]
fn what_cannot_be_proven_or_checked_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", PROGRAM);
    sandbox.run(RUN);
    sandbox.write("other.dat-s", PROGRAM.replace("test 7", "test 8"));
    let error = sandbox.fail("verify sdp other.dat-s out/certificate", 5);
    assert!(error.contains("to another program"), "{error}");
    assert!(sandbox.fail("verify sdp a.dat-s nothing", 3).contains("nothing"));
    assert!(sandbox.fail("verify sdp nothing out/certificate", 3).contains("nothing"));
    assert!(sandbox.fail("verify sdp . out/certificate", 3).contains("control.json"));
    assert!(sandbox.fail("verify sdp out/certificate a.dat-s", 3).contains("certificate"));
    assert!(sandbox.fail("verify sdp a.dat-s a.dat-s", 3).contains("damaged"));
    sandbox.write("a.dat-s", PROGRAM.replace("1 1 1 1 1\n", "1 1 1 1 1e30000\n"));
    assert!(sandbox.fail("verify sdp a.dat-s out/certificate", 3).contains("exponent 30000"));
}

/// A program of SDPLIB, where `../shared/data` stands beside the repository.
#[test]
fn a_stored_program_is_proven_as_it_is() {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/sdplib/truss1.dat-s");
    if !stored.exists() {
        println!("skipped: a program of SDPLIB: there is no ../shared/data");
        return;
    }
    let sandbox = Sandbox::new();
    std::fs::copy(stored, sandbox.path("a.dat-s")).unwrap();
    let text = sandbox.run(RUN);
    assert!(text.contains("out/certificate: proven: -8.99999631528689"), "{text}");
    let said = sandbox.run("verify sdp a.dat-s out/certificate");
    assert!(said.contains("proven for a.dat-s: -8.99999631528689"), "{said}");
    assert!(said.contains(" <= optimum <= -8.99999631528689"), "{said}");
}

/// `x^2 - 4 x + 7 - y >= 0` for all `x >= 0`: y is at most 3.
const POLYNOMIAL: &str = r#"{"objective": ["0", "1"],
 "PositiveMatrixWithPrefactorArray": [{"polynomials": [[[["7", "-4", "1"], ["-1"]]]]}]}"#;

#[test]
fn bounds_of_polynomial_programs_are_proven_and_any_changed_digit_is_found() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", POLYNOMIAL);
    let text = sandbox.run(&RUN.replace("a.dat-s", "a.json").replace("160", "300"));
    assert!(text.contains("out/certificate: proven: 2.9999999999999999"), "{text}");
    let said = sandbox.run("verify sdp a.json out/certificate");
    assert!(said.starts_with("out/certificate: proven for a.json: 2.99999999999"), "{said}");
    assert!(said.contains(" <= optimum <= 3.00000000000"), "{said}");
    let proof = sandbox.text("out/certificate");
    for step in 0..8 {
        // Letters of names count as digits here, and make names that are unknown.
        sandbox.write("b.json", changed(POLYNOMIAL, step));
        let output = sandbox.output("verify sdp b.json out/certificate");
        assert!([3, 5].contains(&output.code), "{output:?}\n{}", sandbox.text("b.json"));
        sandbox.write("p", changed(&proof, step));
        assert!(sandbox.fail("verify sdp a.json p", 3).contains("damaged"));
    }
    sandbox.write("all.nsv", "a.json\0");
    assert!(sandbox.fail("verify sdp all.nsv out/certificate", 5).contains("to another program"));
    // The same program in Mathematica's text has other bytes; one without matrices, and XML, are none to prove.
    sandbox.write(
        "a.m",
        "SDP[{0, 1}, {}, {PositiveMatrixWithPrefactor[DampedRational[1, {}, 1/2, x], {{{7 - 4 x + x^2, -1}}}]}]",
    );
    assert!(sandbox.fail("verify sdp a.m out/certificate", 5).contains("to another program"));
    sandbox.write("a.m", "SDP[{0, 1}, {1, 0}, {}]");
    assert!(sandbox.fail("verify sdp a.m out/certificate", 3).contains("there are no matrices"));
    sandbox.write("a.xml", "<sdp></sdp>");
    assert!(sandbox.fail("verify sdp a.xml out/certificate", 3).contains("certificates exist only"));
}

/// Mathematica's text, and blocks in SDPB's binary form and in JSON without quotation marks, from file to check.
#[test]
fn bounds_of_other_forms_are_proven() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "a.m",
        "(* at most 3 *) p = SDP[{0, 1}, {1, 0}, {PositiveMatrixWithPrefactor[DampedRational[1, {}, 1/2, x],\n\
         {{{7 - 4 x + x^2, -1}}}]}];",
    );
    // The same polynomial at 0, 1 and 4, whose roots are whole.
    let matrix = |rows, cols, values: &[f64]| Matrix::from_f64s(rows, cols, 320, values).unwrap();
    let (free, costs) = (matrix(3, 1, &[1.0; 3]), matrix(3, 1, &[7.0, 4.0, 7.0]));
    let bases = [matrix(2, 3, &[1.0, 0.0, 1.0, 1.0, 1.0, 4.0]), matrix(1, 3, &[0.0, 1.0, 2.0])];
    let data = block(320, Layout::default(), [&free, &costs, &bases[0], &bases[1]]);
    for folder in ["bin", "json"] {
        std::fs::create_dir(sandbox.path(folder)).unwrap();
        sandbox.write(&format!("{folder}/control.json"), r#"{"num_blocks": 1, "command": "none"}"#);
        sandbox.write(&format!("{folder}/objectives.json"), r#"{"constant": "0", "b": ["1"]}"#);
        sandbox.write(&format!("{folder}/block_info_0.json"), r#"{"dim": 1, "num_points": 3}"#);
    }
    sandbox.write("bin/block_data_0.bin", data);
    let text = r#"{"bilinear_bases_even": [[1, 1, 1], [0, 1, 4.0]], "bilinear_bases_odd": [[0, 1, 2e0]],
        "c": [7, 4, 7.0], "B": [[1], [1], [1]]}"#;
    sandbox.write("json/block_data_0.json", text);
    for (input, changed) in [("a.m", "a.m"), ("bin", "bin/block_data_0.bin"), ("json", "json/block_data_0.json")] {
        let text = sandbox.run(&RUN.replace("a.dat-s", input).replace("160", "320"));
        assert!(text.contains("out/certificate: proven: 2.9999999999999999"), "{input}: {text}");
        let check = format!("verify sdp {input} out/certificate");
        let said = sandbox.run(&check);
        assert!(said.contains(&format!("proven for {input}: 2.99999999999")), "{said}");
        assert!(said.contains(" <= optimum <= 3.00000000000"), "{said}");
        // Another byte, where none changes the numbers: behind the precision in the head, or in a blank.
        let mut bytes = sandbox.bytes(changed);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        sandbox.write(changed, &bytes);
        assert!([3, 5].contains(&sandbox.output(&check).code), "{input}");
    }
}
