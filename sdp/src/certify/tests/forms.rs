//! Certificates of archives, binary blocks and Mathematica's text: the proven bounds, and the effects of changes in a
//! file.

#[path = "../../../tests/inputs/blocks.rs"]
mod blocks;

use super::*;
use blocks::{Layout, block};
use std::io::Write as _;
use std::path::PathBuf;
use sunzi::Matrix;

/// `[[x^2 + 2 - y, x], [x, x^2 + 1]] >= 0`, so `y <= 2`, in all the forms of a term.
const TEXT: &str = "(* a (* nested *) comment *) pair = SDP[{0, 1}, {},\n {PositiveMatrixWithPrefactor[\n\
    DampedRational[3/2, {-0.5`20, -2.5`30*^1}, 0.3\\\n  75, x], {{{2 + x^2, -1.`10}, {2 x/2, 0}}, {{x, -0}, \
    {1.000*^0 - - x^2/2 + 1/2*x^2, 0}}}]}];\n";

/// Files of a folder, and the program that is read from them.
struct Case {
    _folder: tempfile::TempDir,
    /// The path that is given to the program.
    path: PathBuf,
    /// The file that is changed.
    file: PathBuf,
    optimum: u32,
    bits: u32,
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_path_buf();
    (folder, path)
}

fn text() -> Case {
    let (folder, path) = folder();
    let file = path.join("pair.m");
    std::fs::write(&file, TEXT).unwrap();
    Case { _folder: folder, path: file.clone(), file, optimum: 2, bits: 300 }
}

fn archive() -> Case {
    let (folder, path) = folder();
    Polynomial::new(2).write(&path);
    let file = path.join("sdp.zip");
    let mut writer = zip::ZipWriter::new(std::fs::File::create(&file).unwrap());
    for name in ["control.json", "objectives.json", "block_info_0.json", "block_data_0.json"] {
        writer.start_file(format!("sdp/{name}"), zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(&std::fs::read(path.join(name)).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    Case { _folder: folder, path: file.clone(), file, optimum: 2, bits: 250 }
}

/// The matrices of the only block in the order of its binary form.
fn parts(path: &Path, bits: u32) -> [Matrix; 4] {
    let problem = read_problem(path, bits).unwrap();
    let group = &problem.groups[0];
    let Constraints::Sampled(sampled) = &group.constraints else { panic!("sampled") };
    [group.free.clone(), group.costs.clone(), sampled.basis(0).clone(), sampled.basis(1).clone()]
}

fn binary(layout: Layout) -> (Case, [Matrix; 4]) {
    let (folder, path) = folder();
    Polynomial::new(2).write(&path);
    let parts = parts(&path, 256);
    std::fs::remove_file(path.join("block_data_0.json")).unwrap();
    let file = path.join("block_data_0.bin");
    std::fs::write(&file, block(256, layout, [&parts[0], &parts[1], &parts[2], &parts[3]])).unwrap();
    (Case { _folder: folder, path, file, optimum: 2, bits: 256 }, parts)
}

/// The bounds enclose the optimum; and any change of a byte of the file is refused, or, where the checksum of the
/// changed program is put into the proof, has changed none of the numbers that count, or is refused by these.
fn holds_and_notices_changes(case: &Case, seed: u64, changes: usize) -> Result<()> {
    let (program, certificate) = certified(&case.path, case.bits)?;
    encloses(&program, &certificate, &Float::with_val(64, case.optimum));
    let proof = certificate.proof.unwrap();
    let whole = std::fs::read(&case.file).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut refused, mut unread) = (0, 0);
    for _ in 0..changes * effort() {
        let mut bytes = whole.clone();
        let at = random.random_range(0..bytes.len());
        bytes[at] ^= 1 << random.random_range(0..8u32);
        std::fs::write(&case.file, &bytes).unwrap();
        let Ok(other) = read_exact(&case.path) else {
            unread += 1;
            continue;
        };
        let error = verify(&other, &proof, 1).unwrap_err().to_string();
        assert!(error.contains("another program"), "{error}");
        let forged = Proof { digest: other.digest.clone(), ..proof.clone() };
        match verify(&other, &forged, 1) {
            Err(_) => refused += 1,
            Ok(()) => still_true(case, (&program, other), &proof)?,
        }
    }
    assert!(3 * (refused + unread) > changes * effort(), "{refused} refused, {unread} unread");
    std::fs::write(&case.file, &whole).unwrap();
    verify(&read_exact(&case.path)?, &proof, 1)
}

/// A proof that holds for both programs: either they have the same numbers, or its bounds are around the optimum of the
/// other one too, so that the bounds proven for that one do not contradict them.
fn still_true(case: &Case, (program, other): (&Program, Program), proof: &Proof) -> Result<()> {
    let same = Program { digest: program.digest.clone(), bytes: program.bytes, ..other };
    if same == *program {
        return Ok(());
    }
    let (lower, upper) = (proof.lower.as_ref().unwrap(), proof.upper.as_ref().unwrap());
    if let Some(own) = certified(&case.path, case.bits)?.1.proof {
        assert!(own.lower.is_none_or(|own| own.claim <= upper.claim));
        assert!(own.upper.is_none_or(|own| own.claim >= lower.claim));
    }
    Ok(())
}

#[test]
fn mathematicas_text() -> Result<()> {
    holds_and_notices_changes(&text(), 1, 120)
}

#[test]
fn archives() -> Result<()> {
    holds_and_notices_changes(&archive(), 2, 120)
}

/// Most changes are of a last digit, and leave programs that are solved again: few of them take seconds.
#[test]
fn binary_blocks() -> Result<()> {
    holds_and_notices_changes(&binary(Layout::default()).0, 3, 30)
}

/// The numbers of binary blocks are the dyadic ones of their limbs, in every layout.
#[test]
fn binary_numbers_are_exact() -> Result<()> {
    for integer_bytes in [4, 8] {
        for (exponent_first, version, padding) in [(false, 1, 0), (true, 1, 3), (false, 0, 0), (true, 0, 1)] {
            let (case, [free, costs, even, odd]) = binary(Layout { integer_bytes, exponent_first, version, padding });
            let program = read_exact(&case.path)?;
            let group = &program.groups[0];
            let exact = |matrix: &Matrix, row, col| matrix.float(row, col).to_rational().unwrap();
            let proof::ProofConstraints::Sampled(_) = &group.constraints else { panic!("sampled") };
            for row in 0..costs.rows() {
                assert_eq!(group.costs.get(row), exact(&costs, row, 0));
                for col in 0..free.cols() {
                    assert_eq!(group.free.get(row * free.cols() + col), exact(&free, row, col));
                }
            }
            // Each diagonal of the Gram matrix is a sum of squares of the bases.
            let gram = group.gram();
            for k in 0..even.cols() {
                let norm = |basis: &Matrix| {
                    (0..basis.rows()).fold(Rational::new(), |sum, row| sum + exact(basis, row, k).square()).square()
                };
                assert_eq!(gram.matrix.get(proof::packed(k, k)), norm(&even) + norm(&odd));
            }
        }
    }
    Ok(())
}

/// One text is the same program in both forms, to the last digit.
#[test]
fn mathematicas_text_is_the_program_of_its_json() -> Result<()> {
    let (case, (_folder, folder)) = (text(), folder());
    let json = folder.join("pair.json");
    std::fs::write(
        &json,
        r#"{"objective": ["0", "1"], "PositiveMatrixWithPrefactorArray": [{"polynomials": [[[["2", "0", "1"], ["-1"]],
            [["0", "1"], ["0"]]], [[["0", "1"], ["0"]], [["1", "0", "1"], ["0"]]]],
            "prefactor": {"constant": "1.5", "base": "0.375", "poles": ["-0.5", "-25"]}}]}"#,
    )
    .unwrap();
    let (text, json) = (read_exact(&case.path)?, read_exact(&json)?);
    assert_eq!(
        (&text.polynomials, &text.objective, &text.constant),
        (&json.polynomials, &json.objective, &json.constant)
    );
    Ok(())
}
