//! Polynomial programs: bounds of their own optima, which are known, and changes in every digit.

use super::*;
use crate::proof::{Fixed, ProofSampling};

/// `x^2 - 4 x + 7 - y >= 0`, in files of several forms; the largest y is 3.
pub fn parabola(sampling: &str) -> String {
    format!(
        r#"{{"objective": ["0", "1"],
            "PositiveMatrixWithPrefactorArray": [{{"polynomials": [[[["7", "-4", "1"], ["-1"]]]] {sampling}}}]}}"#
    )
}

/// `[[x^2 + 2 - y, x], [x, x^2 + 1]] >= 0`, so `y <= 2`.
pub const PAIR: &str = r#"{"objective": ["0", "1"], "PositiveMatrixWithPrefactorArray": [{"polynomials":
    [[[["2", "0", "1"], ["-1"]], [["0", "1"], ["0"]]], [[["0", "1"], ["0"]], [["1", "0", "1"], ["0"]]]]}]}"#;

/// `max z_0` with `2 z_0 + 4 z_1 = 1`, `z_0 + z_1 >= 0` and `3 z_1 >= z_0`: 3/10.
const NORMALIZED: &str = r#"{"objective": ["1", "0"], "normalization": ["2", "4"], "PositiveMatrixWithPrefactorArray":
    [{"polynomials": [[[["1"], ["1"]]]]}, {"polynomials": [[[["-1"], ["3"]]]]}]}"#;

/// `x^3 - 3 x + z_1 (1 + x) >= 0` with the least `z_1`.
pub const CUBIC: &str = r#"{"objective": ["0", "-1"], "PositiveMatrixWithPrefactorArray": [{"polynomials":
    [[[["0", "-3", "0", "1"], ["1", "1"]]]]}]}"#;

fn json(text: &str, bits: u32) -> Result<(Program, Certificate)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pmp.json");
    std::fs::write(&path, text).unwrap();
    certified(&path, bits)
}

#[test]
fn optima_of_polynomial_programs_lie_between_the_bounds() -> Result<()> {
    let three = Float::with_val(64, 3);
    for sampling in [
        "",
        r#", "prefactor": {"constant": "2", "base": "0.5", "poles": ["-1", "-2.5"]}"#,
        r#", "samplePoints": ["0", "1", "5/2"], "sampleScalings": ["1", "0.5", "0.25"]"#,
        r#", "samplePoints": ["0.5", "1", 3], "sampleScalings": [1, 2, 3], "reducedSampleScalings": [2, 4, 6]"#,
        r#", "bilinearBasis": [["1"], ["1", "2"]]"#,
    ] {
        let (program, certificate) = json(&parabola(sampling), 300)?;
        encloses(&program, &certificate, &three);
    }
    let (program, certificate) = json(PAIR, 300)?;
    encloses(&program, &certificate, &Float::with_val(64, 2));
    let (program, certificate) = json(NORMALIZED, 300)?;
    encloses(&program, &certificate, &(Float::with_val(600, 3) / 10u32));
    // z = (3 x - x^3) / (1 + x) is largest where 2 x^3 + 3 x^2 = 3.
    let mut x = Float::with_val(600, 0.8);
    for _ in 0..12 {
        let value: Float = (Float::with_val(600, &x * 2u32) + 3u32) * x.clone().square() - 3u32;
        let slope = Float::with_val(600, &x + 1u32) * &x * 6u32;
        x -= value / slope;
    }
    let least = Float::with_val(600, 3u32 - x.clone().square()) * &x / (x + 1u32);
    let (program, certificate) = json(CUBIC, 300)?;
    encloses(&program, &certificate, &-least);
    Ok(())
}

/// Fewer points than the degree needs make another program, about which nothing is proven.
#[test]
fn fewer_points_than_the_degree_asks_for_prove_nothing() -> Result<()> {
    let fewer = r#", "prefactor": {"constant": "1", "base": "0.5", "poles": ["-1", "-3"]}, "maxNumPoles": 1"#;
    let (_, certificate) = json(&parabola(fewer), 200)?;
    assert!(certificate.proof.is_none());
    assert!(certificate.without_lower.unwrap().contains("degree 2 requires 3"));
    Ok(())
}

#[test]
fn samplings_that_do_not_fit_are_refused() -> Result<()> {
    let (program, certificate) = json(&parabola(""), 200)?;
    let proof = certificate.proof.unwrap();
    let refused = |change: &dyn Fn(&mut Vec<ProofSampling>)| {
        let mut other = proof.clone();
        change(&mut other.samplings);
        verify(&program, &other, 1).unwrap_err().to_string()
    };
    assert!(refused(&|all| all.clear()).contains("samplings: 0"));
    assert!(refused(&|all| all[0].points.values[1] = all[0].points.values[0].clone()).contains("the same"));
    assert!(refused(&|all| all[0].basis.values[2] = Integer::new()).contains("polynomial 1"));
    assert!(refused(&|all| all[0].exponents.truncate(2)).contains("weights: 2"));
    assert!(refused(&|all| all[0].points.values.truncate(2)).contains("points: 2"));
    assert!(refused(&|all| all[0].basis = Fixed::zeros(1, 3)).contains("basis: 1"));
    assert!(refused(&|all| all[0].points.bits = 1 << 19).contains("more than"));
    Ok(())
}

/// Any change is refused or leaves true statements, also where checksums are corrected.
#[test]
fn changed_samplings_and_programs_prove_nothing_wrong() -> Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(23);
    let (program, certificate) = json(CUBIC, 250)?;
    let proof = certificate.proof.unwrap();
    let (lower, upper) = (proof.lower.as_ref().unwrap().claim.clone(), proof.upper.as_ref().unwrap().claim.clone());
    let mut refused = 0;
    for _ in 0..40 * effort() {
        let mut other = changed(&proof, &mut random);
        let sampling = &mut other.samplings[0];
        let list = if random.random() { &mut sampling.points } else { &mut sampling.basis };
        let at = random.random_range(0..list.values.len());
        list.values[at] += Integer::from(1) << random.random_range(0..60u32);
        match verify(&program, &other, 1) {
            Err(_) => refused += 1,
            Ok(()) => {
                assert!(other.lower.unwrap().claim <= upper && other.upper.unwrap().claim >= lower);
            }
        }
    }
    assert!(refused > 20, "{refused}");
    // A smaller program by the last of many digits, with its checksum put into the proof.
    let other = CUBIC.replace(r#""-3""#, r#""-3.00000000000000000001""#);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pmp.json");
    std::fs::write(&path, other).unwrap();
    let other = read_exact(&path)?;
    assert!(verify(&other, &proof, 1).unwrap_err().to_string().contains("another program"));
    let forged = Proof { digest: other.digest.clone(), ..proof };
    assert!(verify(&other, &forged, 1).is_err());
    Ok(())
}

/// The exact reader's program at the solver's points is the program of the solver, and lists of files are one program.
#[test]
fn files_in_a_list_and_bad_files() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    write("a.json", r#"{"objective": ["1", "0"], "normalization": ["2", "4"]}"#);
    write("b.json", r#"{"PositiveMatrixWithPrefactorArray": [{"polynomials": [[[["1"], ["1"]]]]}]}"#);
    write(
        "c.json",
        r#"{"objective": ["1.0", "0"], "PositiveMatrixWithPrefactorArray":
        [{"polynomials": [[[["-1"], ["3"]]]]}]}"#,
    );
    let list = write("all.nsv", "a.json\0b.json\0c.json\0");
    let (program, certificate) = certified(&list, 250)?;
    encloses(&program, &certificate, &(Float::with_val(600, 3) / 10u32));
    let before = program.digest;
    write("b.json", r#"{"PositiveMatrixWithPrefactorArray": [{"polynomials": [[[["1"], ["1.0"]]]]}]}"#);
    assert_ne!(read_exact(&list)?.digest, before);
    let refused = |text: &str| read_exact(&write("bad.json", text)).unwrap_err().to_string();
    assert!(refused(&NORMALIZED.replace("normalization", "normalisation")).contains("'normalisation' is unknown"));
    assert!(refused(&NORMALIZED.replace(r#"["2", "4"]"#, r#"["0", "0"]"#)).contains("normalization is 0"));
    assert!(refused(&PAIR.replacen(r#"["0", "1"], ["0"]"#, r#"["0", "2"], ["0"]"#, 1)).contains("differ"));
    assert!(refused(&NORMALIZED.replace(r#"["3"]"#, r#"["x"]"#)).contains("'x' is not a number"));
    assert!(refused(r#"{"objective": ["1"]}"#).contains("no matrices"));
    assert!(read_exact(&write("a.m", "SDP[{1}, {1}, {}]")).unwrap_err().to_string().contains("no matrices"));
    Ok(())
}
