//! Files of a few kilobytes that demand more memory or time than there is: each is refused, by a limit that it names.

use super::*;
use crate::proof::{Fixed, GramProof, LowerGroup, LowerProof, ProofSampling, Witness};
use std::fmt::Write as _;
use std::io::Write as _;

fn at(name: &str, text: impl AsRef<[u8]>) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn error_of(path: &Path) -> String {
    read_exact(path).map(drop).unwrap_err().to_string()
}

fn refused(name: &str, text: impl AsRef<[u8]>) -> String {
    let (_folder, path) = at(name, text);
    error_of(&path)
}

/// A program with a constraint for each of these costs.
fn costly(costs: &[String]) -> String {
    let count = costs.len();
    let mut text = format!("{count}\n1\n-{count}\n{}\n", costs.join(" "));
    (1..=count).for_each(|at| writeln!(text, "{at} 1 {at} {at} 1").unwrap());
    text
}

#[test]
fn words_and_powers_that_multiply_are_refused() {
    let long = "7".repeat(65_537);
    assert!(refused("a.dat-s", costly(&[long])).contains("65537 characters, but the limit is 65536"));
    assert!(refused("a.dat-s", costly(&["1e20001".into()])).contains("beyond 20000"));
    // Each of eight letters has eight kilobytes: some fit, many do not.
    let many = |count: usize| costly(&vec!["1e20000".to_string(); count]);
    let (_folder, path) = at("a.dat-s", many(500));
    read_exact(&path).unwrap();
    assert!(refused("a.dat-s", many(20_000)).contains("256 for each of the"));
    // One of them among the rest, as a denominator of all.
    let mut costs = vec!["1".to_string(); 40_000];
    costs[7] = "1e-20000".into();
    assert!(refused("a.dat-s", costly(&costs)).contains("would take more than 67108864 bytes"));
    // Each of two words is short, and their quotient long, in each number of the objective and of an entry.
    let quotients = |count: usize, polynomials: &str| {
        let ones = ",\"1\"".repeat(count);
        format!(
            "{{\"objective\": [\"1e-20000\"{ones}], \"normalization\": [\"1e20000\"{ones}],\
             \"PositiveMatrixWithPrefactorArray\": [{{\"polynomials\": [[[{polynomials}]]]}}]}}"
        )
    };
    let entry = |count: usize| format!("[\"1\"]{}", ",[\"0\"]".repeat(count));
    assert!(refused("a.json", quotients(20_000, "[\"1\"]")).contains("must be 20001 polynomials"));
    assert!(refused("a.json", quotients(20_000, &entry(20_000))).contains("would take more"));
    let (_folder, path) = at("a.json", quotients(100, &entry(100)));
    read_exact(&path).unwrap();
    // A sum of fractions that have nothing in common becomes longer with each.
    let sum = |count: usize| {
        let terms = (0..count).map(|at| format!("1/{}", 1_000_003 + 2 * at)).collect::<Vec<_>>().join("+");
        format!("SDP[{{1}}, {{}}, {{PositiveMatrixWithPrefactor[1, {{{{{{{terms}}}}}}}]}}]")
    };
    let (_folder, path) = at("a.m", sum(300));
    read_exact(&path).unwrap();
    assert!(refused("a.m", sum(20_000)).contains("would take more"));
    let power = |count: usize| {
        let terms = vec!["x^16384"; count].join(", ");
        format!(
            "SDP[{{{}}}, {{}}, {{PositiveMatrixWithPrefactor[1, {{{{{{{terms}}}}}}}]}}]",
            "0, ".repeat(count - 1) + "1"
        )
    };
    assert!(refused("a.m", power(1000)).contains("would take more"));
    assert!(refused("a.m", "SDP[{1}, {}, {PositiveMatrixWithPrefactor[1, {{{x^16385}}}]}]").contains("at most 16384"));
}

#[test]
fn denominators_that_have_nothing_in_common_are_refused() {
    let coprime = |count: usize| {
        let under = |at: usize| format!("1/1{}{:05}", "0".repeat(300), 2 * at + 1);
        costly(&(0..count).map(under).collect::<Vec<_>>())
    };
    let (_folder, path) = at("a.dat-s", coprime(300));
    read_exact(&path).unwrap();
    assert!(refused("a.dat-s", coprime(700)).contains("more bits than the limit of 524288 bits"));
}

#[test]
fn lists_that_multiply_are_refused() {
    let (folder, path) = at("a.nsv", "b.nsv\0b.nsv\0");
    std::fs::write(folder.path().join("b.nsv"), "c.json\0").unwrap();
    std::fs::write(folder.path().join("c.json"), "{\"objective\": [1]}").unwrap();
    assert!(error_of(&path).contains("named twice"));
    std::fs::write(&path, "b.nsv\0c.json\0").unwrap();
    assert!(error_of(&path).contains("named twice"));
    std::fs::write(&path, "a.nsv\0").unwrap();
    assert!(error_of(&path).contains("named twice"));
    // Seventeen lists in each other; sixteen are read.
    for depth in 0..17 {
        std::fs::write(folder.path().join(format!("{depth}.nsv")), format!("{}.nsv\0", depth + 1)).unwrap();
    }
    std::fs::write(folder.path().join("17.nsv"), "c.json\0").unwrap();
    assert!(error_of(&folder.path().join("1.nsv")).contains("16 deep"));
    assert!(error_of(&folder.path().join("2.nsv")).contains("no matrices"));
    // A stream without an end is no file.
    #[cfg(target_os = "linux")]
    {
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.json")).unwrap();
        assert!(error_of(&folder.path().join("zero.json")).contains("not a regular file"));
    }
}

#[test]
fn many_keys_are_compared_each_once() {
    let mut text = String::from("{\"num_blocks\": 1");
    (0..200_000).for_each(|key| write!(text, ", \"k{key}\": 0").unwrap());
    let (folder, _) = at("control.json", text.clone() + "}");
    assert!(error_of(folder.path()).contains("objectives.json"));
    let (folder, _) = at("control.json", text + ", \"k77\": 1}");
    assert!(error_of(folder.path()).contains("'k77' occurs twice"));
}

#[test]
fn archives_that_inflate_are_refused() {
    let archive = |blanks: usize| {
        let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        writer.start_file("control.json", zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(&vec![b' '; blanks]).unwrap();
        writer.write_all(b"{\"num_blocks\": 1}").unwrap();
        writer.finish().unwrap().into_inner()
    };
    let small = archive(1 << 20);
    assert!(small.len() < 8 << 10);
    assert!(refused("a.zip", small).contains("objectives.json"));
    assert!(refused("a.zip", archive(5 << 18)).contains("more than 1048576 bytes plus 8 for each"));
}

/// A proof for a polynomial of this degree, with points and weights of `bits` bits.
fn sampled(degree: usize, bits: u32, exponent: i64) -> (Program, Proof) {
    let coefficients = vec!["1"; degree + 1].join(",");
    let text = format!(
        "{{\"objective\": [0, 1], \"PositiveMatrixWithPrefactorArray\": \
         [{{\"polynomials\": [[[[{coefficients}], [-1]]]]}}]}}"
    );
    let (_folder, path) = at("pmp.json", text);
    let program = read_exact(&path).unwrap();
    let numbers = |count: usize| Fixed { bits, values: (1..=count).map(Integer::from).collect() };
    let rows = degree / 2 + 1;
    let sampling = ProofSampling {
        points: numbers(degree + 1),
        exponents: (0..=degree).map(|at| if at % 2 == 0 { exponent } else { -exponent }).collect(),
        basis: numbers(rows * (rows + 1) / 2),
    };
    let lower = LowerProof { claim: Rational::new(), y: numbers(1), groups: Vec::new() };
    (program.clone(), Proof { samplings: vec![sampling], lower: Some(lower), ..Proof::new(&program.digest) })
}

#[test]
fn certificates_whose_numbers_multiply_are_refused() {
    let refused = |(program, proof): (Program, Proof)| verify(&program, &proof, 1).unwrap_err().to_string();
    // These are not refused for lack of room.
    assert!(refused(sampled(20, 60, 9)).contains("groups: 0 in the proof"));
    assert!(refused(sampled(20, 1 << 14, 9)).contains("groups: 0 in the proof"));
    assert!(refused(sampled(200, 1 << 14, 9)).contains("would take more"));
    assert!(refused(sampled(20, (1 << 14) + 1, 9)).contains("more than 16384 bits"));
    assert!(refused(sampled(3000, 9, 1 << 16)).contains("would take more"));
    assert!(refused(sampled(20, 9, (1 << 16) + 1)).contains(", but exponents are limited to +-65536"));
}

#[test]
fn blocks_of_which_a_file_says_only_the_order_are_refused() {
    let (_folder, path) = at("a.dat-s", "1\n1\n-9999999\n1\n1 1 1 1 1\n");
    let program = read_exact(&path).unwrap();
    let nothing = || Fixed { bits: 0, values: Vec::new() };
    let upper = UpperProof {
        claim: Rational::from(1),
        x: vec![Fixed { bits: 0, values: vec![Integer::from(1)] }],
        gram: None,
        blocks: vec![vec![Witness { exponent: -1, factor: nothing() }]],
    };
    let proof = Proof { upper: Some(upper), ..Proof::new(&program.digest) };
    assert!(verify(&program, &proof, 1).unwrap_err().to_string().contains("would take more"));
    assert!(refused("a.dat-s", "1\n1\n-10000001\n1\n1 1 1 1 1\n").contains("order '-10000001'"));
}

/// A factor of short numbers with very many bits behind the point: the number subtracted from it has all of them.
#[test]
fn factors_whose_rests_are_long_are_refused() {
    let (_folder, path) = at("a.dat-s", "1\n1\n400\n1\n1 1 1 1 1\n");
    let program = read_exact(&path).unwrap();
    let proof = |bits: u32| {
        let factor = Fixed { bits, values: vec![Integer::from(1); 400 * 401 / 2] };
        let upper = UpperProof {
            claim: Rational::from(1),
            x: vec![Fixed { bits: 0, values: vec![Integer::from(1)] }],
            gram: None,
            blocks: vec![vec![Witness { exponent: -1, factor }]],
        };
        Proof { upper: Some(upper), ..Proof::new(&program.digest) }
    };
    let refused = |bits: u32| verify(&program, &proof(bits), 1).unwrap_err().to_string();
    assert!(refused(64).contains("does not show that X is positive definite"));
    assert!(refused(1 << 15).contains("would take more"));
}

/// Proofs of `0 <= ...` and `... <= 1` for `min x` with `x >= 1` at the first place of a block of `order` rows, whose
/// factors have the same number everywhere.
fn factored(order: usize, value: i32) -> (Program, [Proof; 2]) {
    let (_folder, path) = at("a.dat-s", format!("1\n1\n{order}\n1\n0 1 1 1 0\n1 1 1 1 1\n"));
    let program = read_exact(&path).unwrap();
    let factor = |value: i32| Fixed { bits: 8, values: vec![Integer::from(value); order * (order + 1) / 2] };
    let fixed = |bits: u32, values: &[i32]| Fixed { bits, values: values.iter().copied().map(Integer::from).collect() };
    // 1 = 181^2 / 2^16 + 1/2 but for 2^-12.
    let gram = GramProof { scales: vec![0], witness: Witness { exponent: -1, factor: fixed(8, &[181]) } };
    let blocks = vec![Witness { exponent: 0, factor: factor(value) }];
    let lower = LowerProof { claim: Rational::from(-1), y: fixed(0, &[]), groups: vec![LowerGroup { gram, blocks }] };
    let blocks = vec![vec![Witness { exponent: 0, factor: factor(value) }]];
    let upper = UpperProof { claim: Rational::from(1), x: vec![fixed(0, &[1])], gram: None, blocks };
    let nothing = || Proof::new(&program.digest);
    let proofs = [Proof { lower: Some(lower), ..nothing() }, Proof { upper: Some(upper), ..nothing() }];
    (program, proofs)
}

/// Zeros take no products, and as many ones would take more than files of that size may demand.
#[test]
fn factors_of_zeros_take_no_products_and_those_of_short_numbers_are_refused() {
    let order = 1600;
    let (program, [lower, _]) = factored(order, 0);
    verify(&program, &lower, 1).unwrap();
    assert_eq!(lower.lower.unwrap().groups[0].blocks[0].steps(order), 0);
    let (program, proofs) = factored(order, 1);
    for proof in proofs {
        let refused = verify(&program, &proof, 1).unwrap_err().to_string();
        assert!(refused.contains("would take more than 134217728 products of numbers plus 128 for each"), "{refused}");
    }
    // Of fewer rows the products are let be.
    let (program, [lower, upper]) = factored(300, 1);
    verify(&program, &lower, 1).unwrap();
    assert!(verify(&program, &upper, 1).unwrap_err().to_string().contains("does not show that X is positive definite"));
}
