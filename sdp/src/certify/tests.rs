//! Proofs of small programs: compared with known optima, with points worked out in rational numbers, and changed in
//! every way.

mod distance;
mod explicit;
mod forms;
mod hostile;
mod polynomial;

use super::{Certificate, certify};
use crate::iterate::{Control, Solver};
use crate::options::SolverOptions;
use crate::problem::{Constraints, Problem};
use crate::proof::{self, MAXIMUM_EXPONENT, Program, Proof, UpperProof, power_of_two, read_exact, verify};
use crate::read::read_problem;
use explicit::{Polynomial, random_program};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rug::{Float, Integer, Rational};
use std::path::Path;
use sunzi::{Context, Result};

/// The largest eigenvalue of the path on three points, `sqrt(2)`, together with a diagonal block.
const PATH: &str = "1\n2\n3 -2\n1\n0 1 1 2 1\n0 1 2 3 1\n1 1 1 1 1\n1 1 2 2 1\n1 1 3 3 1\n1 2 1 1 1\n0 2 2 2 -5\n";

/// More trials in long runs.
fn effort() -> usize {
    sunzi::advanced::testing::effort() as usize
}

/// Reads, solves and certifies the program at `path`.
fn certified(path: &Path, bits: u32) -> Result<(Program, Certificate)> {
    let (program, problem) = (read_exact(path)?, read_problem(path, bits)?);
    let found = solve(&program, &problem)?;
    Ok((program, found))
}

fn solve(program: &Program, problem: &Problem) -> Result<Certificate> {
    let ctx = Context::builder().threads(1).build()?;
    let solver = Solver::new(ctx.clone(), problem, SolverOptions::new(problem.form))?;
    let solution = solver.run(solver.begin()?, |_, _| Ok(Control::Continue))?;
    certify(&ctx, program, problem, &solution.point)
}

fn sdpa(text: &str, bits: u32) -> Result<(Program, Certificate)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dat-s");
    std::fs::write(&path, text).unwrap();
    certified(&path, bits)
}

/// Both bounds, with the known optimum between them and as close to each other as the solver comes.
fn encloses(program: &Program, certificate: &Certificate, optimum: &Float) {
    let Certificate { proof, without_lower, without_upper } = certificate;
    assert_eq!((without_lower, without_upper), (&None, &None));
    let proof = proof.as_ref().unwrap();
    verify(program, proof, 2).unwrap();
    assert_eq!(Proof::parse(&proof.text()).as_ref(), Ok(proof));
    let (lower, upper) = (&proof.lower.as_ref().unwrap().claim, &proof.upper.as_ref().unwrap().claim);
    assert!(lower <= optimum && upper >= optimum, "{lower} {optimum} {upper}");
    let width = Float::with_val(64, Rational::from(upper - lower));
    assert!(width < 1e-29, "{width:e}");
}

#[test]
fn known_optima_lie_between_the_bounds() -> Result<()> {
    let (program, certificate) = sdpa(PATH, 200)?;
    encloses(&program, &certificate, &Float::with_val(400, 2).sqrt());
    for (dim, optimum) in [(1, 3), (2, 2)] {
        let folder = tempfile::tempdir().unwrap();
        Polynomial::new(dim).write(folder.path());
        let (program, certificate) = certified(folder.path(), 250)?;
        encloses(&program, &certificate, &Float::with_val(64, optimum));
    }
    Ok(())
}

#[test]
fn points_worked_out_in_rational_numbers_confirm_the_proofs() -> Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..3 * effort() {
        let (text, explicit) = random_program(&mut random);
        let (program, certificate) = sdpa(&text, 160)?;
        let proof = certificate
            .proof
            .unwrap_or_else(|| panic!("{:?} {:?}\n{text}", certificate.without_lower, certificate.without_upper));
        verify(&program, &proof, 1)?;
        explicit.confirms(&proof);
    }
    for dim in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let polynomial = Polynomial::new(dim);
        polynomial.write(folder.path());
        let explicit = polynomial.explicit();
        explicit.confirms(&certified(folder.path(), 250)?.1.proof.unwrap());
    }
    Ok(())
}

/// A proof with a change in one number, or in a claim.
fn changed(proof: &Proof, random: &mut ChaCha8Rng) -> Proof {
    let mut proof = proof.clone();
    let (Some(lower), Some(upper)) = (&mut proof.lower, &mut proof.upper) else { panic!("both") };
    let size = Integer::from(1) << random.random_range(0..300u32);
    let by = if random.random() { size } else { -size };
    let exponent = random.random_range(-9..9i64);
    let mut numbers = vec![&mut lower.y];
    let mut witnesses = Vec::new();
    for group in &mut lower.groups {
        witnesses.push(&mut group.gram.witness);
        witnesses.extend(&mut group.blocks);
        group.gram.scales[0] += exponent * i64::from(random.random_range(0..8) == 0);
    }
    numbers.extend(&mut upper.x);
    witnesses.extend(upper.gram.as_mut().map(|gram| &mut gram.witness));
    witnesses.extend(upper.blocks.iter_mut().flatten());
    match random.random_range(0..12) {
        0 => lower.claim += Rational::from(&by) * power_of_two(-200),
        1 => upper.claim += Rational::from(&by) * power_of_two(-200),
        2 | 3 => {
            let at = random.random_range(0..witnesses.len());
            witnesses[at].exponent += exponent;
        }
        4 => {
            let at = random.random_range(0..witnesses.len());
            witnesses[at].factor.bits = witnesses[at].factor.bits.saturating_add_signed(exponent as i32);
        }
        _ => {
            numbers.extend(witnesses.into_iter().map(|witness| &mut witness.factor));
            let filled = numbers.into_iter().filter(|list| !list.values.is_empty()).collect::<Vec<_>>();
            let at = random.random_range(0..filled.len());
            let list = filled.into_iter().nth(at).unwrap();
            let place = random.random_range(0..list.values.len());
            list.values[place] += by;
        }
    }
    proof
}

/// A proof that is changed, with corrected checksums, may state less than before, but nothing wrong.
#[test]
fn what_is_still_accepted_after_a_change_is_true() -> Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let folder = tempfile::tempdir().unwrap();
    Polynomial::new(2).write(folder.path());
    let cases =
        [(sdpa(PATH, 160)?, Float::with_val(400, 2).sqrt()), (certified(folder.path(), 250)?, Float::with_val(64, 2))];
    for ((program, certificate), optimum) in cases {
        let proof = certificate.proof.unwrap();
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..150 * effort() {
            let changed = changed(&proof, &mut random);
            match verify(&program, &changed, 1) {
                Ok(()) => {
                    accepted += 1;
                    assert!(changed.lower.unwrap().claim <= optimum && changed.upper.unwrap().claim >= optimum);
                }
                Err(_) => refused += 1,
            }
        }
        assert!(accepted > 0 && refused > 50, "{accepted} accepted, {refused} refused");
        // A claim that exceeds the proven one by the last digit.
        let mut greedy = proof.clone();
        greedy.lower.as_mut().unwrap().claim += Rational::from((1, 1000)) * power_of_two(-90);
        assert!(verify(&program, &greedy, 1).unwrap_err().to_string().contains("lower bound"));
    }
    Ok(())
}

/// Exponents that no file has, up to those whose lowest 32 bits alone would pass.
#[test]
fn exponents_beyond_the_limit_are_refused() -> Result<()> {
    let (program, certificate) = sdpa(PATH, 160)?;
    let proof = certificate.proof.unwrap();
    for exponent in [MAXIMUM_EXPONENT + 1, -MAXIMUM_EXPONENT - 1, 1 - (1 << 32), i64::MIN] {
        let mut changed = [proof.clone(), proof.clone(), proof.clone()];
        changed[0].lower.as_mut().unwrap().groups[0].gram.witness.exponent = exponent;
        changed[1].lower.as_mut().unwrap().groups[0].blocks[0].exponent = exponent;
        changed[2].upper.as_mut().unwrap().blocks[0][0].exponent = exponent;
        for proof in changed {
            let error = verify(&program, &proof, 1).unwrap_err().to_string();
            assert!(error.contains(&format!("the proof contains 2^{exponent},")), "{error}");
        }
    }
    // At the limit it is the numbers that refuse it.
    let mut last = proof;
    last.upper.as_mut().unwrap().blocks[0][0].exponent = MAXIMUM_EXPONENT;
    assert!(verify(&program, &last, 1).unwrap_err().to_string().contains("upper bound"));
    Ok(())
}

/// Every digit of the program and of the proof counts.
#[test]
fn one_changed_digit_is_enough() -> Result<()> {
    let (_, certificate) = sdpa(PATH, 160)?;
    let (proof, mut random) = (certificate.proof.unwrap(), ChaCha8Rng::seed_from_u64(3));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dat-s");
    let holds = |program: &str, proof: &str| {
        std::fs::write(&path, program).unwrap();
        let Ok(program) = read_exact(&path) else { return false };
        Proof::parse(proof).is_ok_and(|proof| verify(&program, &proof, 1).is_ok())
    };
    let text = proof.text();
    assert!(holds(PATH, &text));
    for trial in 0..if effort() > 1 { 1000 } else { 60 } {
        let whole = if trial % 2 == 0 { PATH } else { &text };
        let digits = whole.char_indices().filter(|(_, letter)| letter.is_ascii_hexdigit()).collect::<Vec<_>>();
        let (at, old) = digits[random.random_range(0..digits.len())];
        let new = (0..).map(|_| char::from(random.random_range(b'0'..=b'9'))).find(|&new| new != old).unwrap();
        let mut other = whole.to_string();
        other.replace_range(at..=at, &new.to_string());
        let (program, proof) = if trial % 2 == 0 { (other.as_str(), text.as_str()) } else { (PATH, other.as_str()) };
        assert!(!holds(program, proof), "byte {at} of {whole}");
    }
    // With the checksum of the changed program put into the proof, the numbers themselves refuse it.
    let other = PATH.replace("0 1 2 3 1\n", "0 1 2 3 1.0000000000000000000000000001\n");
    std::fs::write(&path, &other).unwrap();
    let program = read_exact(&path)?;
    let forged = Proof { digest: program.digest.clone(), ..proof };
    assert!(verify(&program, &forged, 1).is_err());
    Ok(())
}

#[test]
fn without_an_interior_there_is_no_certificate() -> Result<()> {
    // X = diag(x, 0), and Y has a 0 on its diagonal.
    let (_, certificate) = sdpa("1\n1\n2\n0\n1 1 1 1 1\n", 160)?;
    assert!(certificate.proof.is_none());
    assert!(certificate.without_lower.unwrap().contains("Y is not positive definite"));
    let why = certificate.without_upper.unwrap();
    assert!(why.contains("block 1 of X = A(x) - C is not positive definite; it is not proven either"), "{why}");
    // The second equation has Y = 0 in a corner, and no Y is definite; x has room.
    let (program, certificate) = sdpa("2\n1\n2\n1 0\n0 1 1 1 1\n1 1 1 1 1\n2 1 2 2 1\n", 160)?;
    let proof = certificate.proof.unwrap();
    verify(&program, &proof, 1)?;
    assert!(proof.lower.is_none() && certificate.without_lower.is_some());
    let claim = &proof.upper.unwrap().claim;
    assert!(*claim >= 1 && *claim < 1.0001, "{claim}");
    // The same equation twice.
    let (_, certificate) = sdpa("2\n1\n2\n1 1\n0 1 1 2 1\n1 1 1 1 1\n1 1 2 2 1\n2 1 1 1 1\n2 1 2 2 1\n", 160)?;
    assert!(certificate.without_lower.unwrap().contains("independent"));
    Ok(())
}

#[test]
fn rays_prove_that_nothing_is_feasible() -> Result<()> {
    // -1 >= x >= 1; and -x as large as one likes.
    let (program, certificate) = sdpa("1\n1\n-2\n1\n1 1 1 1 1\n1 1 2 2 -1\n0 1 1 1 1\n0 1 2 2 1\n", 160)?;
    let proof = certificate.proof.unwrap();
    verify(&program, &proof, 1)?;
    assert!(proof.no_primal.is_some() && proof.no_dual.is_none() && proof.upper.is_none());
    assert_eq!(certificate.without_upper.as_deref(), Some("no primal point is feasible"));
    let (program, certificate) = sdpa("1\n1\n2\n-1\n1 1 1 1 1\n1 1 2 2 1\n0 1 1 2 1\n", 160)?;
    let proof = certificate.proof.unwrap();
    verify(&program, &proof, 1)?;
    assert!(proof.no_dual.is_some() && proof.no_primal.is_none() && proof.lower.is_none());
    assert_eq!(certificate.without_lower.as_deref(), Some("no dual point is feasible"));
    // A feasible program has none, and a ray must lead somewhere.
    let mut ray = Proof::new(&program.digest);
    ray.no_dual = proof.no_dual.map(|ray| UpperProof { claim: Rational::new(), ..ray });
    assert!(verify(&program, &ray, 1).unwrap_err().to_string().contains("has the wrong sign"));
    let (program, certificate) = sdpa(PATH, 160)?;
    let proof = certificate.proof.unwrap();
    assert!(proof.no_dual.is_none() && proof.no_primal.is_none());
    let forged = Proof { no_primal: proof.lower.clone(), ..Proof::new(&program.digest) };
    assert!(verify(&program, &forged, 1).unwrap_err().to_string().contains("dual ray"));
    let mut forged = Proof { no_dual: proof.upper.clone(), ..Proof::new(&program.digest) };
    forged.no_dual.as_mut().unwrap().claim = Rational::from(-1);
    assert!(verify(&program, &forged, 1).unwrap_err().to_string().contains("primal ray"));
    Ok(())
}

#[test]
fn a_point_of_another_program_is_refused() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("a.dat-s"), folder.path().join("b.dat-s"));
    std::fs::write(&one, PATH).unwrap();
    std::fs::write(&other, "1\n1\n2\n1\n0 1 1 2 1\n1 1 1 1 1\n1 1 2 2 1\n").unwrap();
    let refused = solve(&read_exact(&one)?, &read_problem(&other, 128)?);
    assert!(refused.unwrap_err().to_string().contains("another program"));
    Ok(())
}

/// The exact numbers of a program, rounded, are those of the solver's reader.
#[test]
fn both_readers_read_the_same() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if !folder.exists() {
        println!("skipped: there is no ../shared/data");
        return Ok(());
    }
    for name in ["truss1", "control1", "qap5", "gpp100", "hinf1", "arch0", "mcp100"] {
        let path = folder.join(format!("sdplib/{name}.dat-s"));
        let (exact, problem) = (read_exact(&path)?, read_problem(&path, 200)?);
        let (group, found) = (&exact.groups[0], &problem.groups[0]);
        let (proof::ProofConstraints::Sparse(sparse), Constraints::Sparse(rounded)) =
            (&group.constraints, &found.constraints)
        else {
            panic!("sparse")
        };
        let same = |exact: &Rational, found: &Float| Float::with_val(found.prec(), exact) == *found;
        assert!((0..group.variables()).all(|row| same(&group.costs.get(row), &found.costs.float(row, 0))), "{name}");
        let mut count = 0;
        for (at, place) in sparse.places.iter().enumerate() {
            let cone = &rounded.cones[place.cone];
            let list = match place.variable {
                None => &cone.constant,
                Some(variable) => &cone.entries[cone.active.binary_search(&variable).unwrap()],
            };
            let entry = list.iter().find(|entry| (entry.row, entry.col) == (place.row, place.col)).unwrap();
            assert!(same(&sparse.values.get(at), &entry.value), "{name}");
            count += 1;
        }
        let entries =
            rounded.cones.iter().map(|cone| cone.constant.len() + cone.entries.iter().map(Vec::len).sum::<usize>());
        assert_eq!(entries.sum::<usize>(), count, "{name}");
    }
    let path = folder.join("sdpb/1d/sdp");
    let (exact, problem) = (read_exact(&path)?, read_problem(&path, 700)?);
    let (group, found) = (&exact.groups[0], &problem.groups[0]);
    for row in 0..5 {
        assert_eq!(Float::with_val(700, group.costs.get(row)), found.costs.float(row, 0));
        assert_eq!(Float::with_val(700, group.free.get(row)), found.free.float(row, 0));
    }
    Ok(())
}

/// Bounds of SDPLIB's and SDPB's programs enclose the values that others found.
#[test]
fn stored_programs_have_certificates() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if !folder.exists() {
        println!("skipped: there is no ../shared/data");
        return Ok(());
    }
    let decimal = |text: &str| Float::with_val(400, Float::parse(text).unwrap());
    let short =
        [("sdplib/truss1.dat-s", 256, "-8.9999963152868905"), ("sdplib/control1.dat-s", 256, "17.784626717523405")];
    let long = [
        ("sdplib/theta1.dat-s", 256, "23"),
        ("sdpb/1d/sdp", 664, "1.84026576313204924668804017173"),
        ("sdpb/SingletScalar_cT_test_nmax6/sdp", 768, "-0.283884666328349913107791200043"),
    ];
    for (name, is_primal) in [("infp1", true), ("infd1", false)] {
        let (program, certificate) = certified(&folder.join(format!("sdplib/{name}.dat-s")), 200)?;
        let proof = certificate.proof.unwrap();
        verify(&program, &proof, 2)?;
        assert_eq!((proof.no_primal.is_some(), proof.no_dual.is_some()), (is_primal, !is_primal), "{name}");
    }
    for (name, bits, optimum) in short.iter().chain(long.iter().filter(|_| effort() > 1)) {
        let (program, certificate) = certified(&folder.join(name), *bits)?;
        let proof = certificate.proof.unwrap();
        verify(&program, &proof, 2)?;
        let (lower, upper) = (proof.lower.unwrap().claim, proof.upper.unwrap().claim);
        let width = Float::with_val(64, Rational::from(&upper - &lower));
        let off = Float::with_val(400, &lower - decimal(optimum)).abs();
        assert!(lower <= upper && width < 1e-28, "{name}: {width:e}");
        assert!(off < 1e-14, "{name}: {off:e}");
    }
    Ok(())
}
