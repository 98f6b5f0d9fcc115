//! Proofs of small programs: beside known optima, beside points worked out in rational numbers from the definitions, and
//! changed in every way.

use super::{Certificate, certify};
use crate::problem::{Constraints, Problem};
use crate::proof::{self, Fixed, Program, Proof, Witness, packed, power_of_two, read_exact, verify};
use crate::{Control, Solver, SolverOptions, read_problem};
use rand::Rng;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rug::{Float, Integer, Rational};
use std::fmt::Write;
use std::path::Path;
use sunzi::{Context, Result};

/// The largest eigenvalue of the path on three points, `sqrt(2)`, beside a diagonal block.
const PATH: &str = "1\n2\n3 -2\n1\n0 1 1 2 1\n0 1 2 3 1\n1 1 1 1 1\n1 1 2 2 1\n1 1 3 3 1\n1 2 1 1 1\n0 2 2 2 -5\n";

/// More trials in long runs.
fn effort() -> usize {
    let effort = std::env::var("SUNZI_TEST_EFFORT").ok().and_then(|effort| effort.parse::<f64>().ok());
    effort.map_or(1, |effort| (effort.max(1.0) * 2.0) as usize)
}

fn number(text: &str) -> Rational {
    let negative = text.starts_with('-');
    let (whole, fraction) = text.trim_start_matches('-').split_once('.').unwrap_or((text.trim_start_matches('-'), ""));
    let over: Integer = format!("{whole}{fraction}").parse().unwrap();
    let value = Rational::from((over, format!("1{}", "0".repeat(fraction.len())).parse::<Integer>().unwrap()));
    if negative { -value } else { value }
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

/// Numbers at the three points 1/4, 1, 4 of a directory in SDPB's form: bases, c and B by row.
struct Polynomial {
    dim: usize,
    costs: Vec<String>,
    free: Vec<String>,
}

const EVEN: [[&str; 3]; 2] = [["1", "1", "1"], ["0.25", "1", "4"]];
const ODD: [[&str; 3]; 1] = [["0.5", "1", "2"]];

impl Polynomial {
    /// `x^2 - 4 x + 7 - y >= 0`, so `y <= 3`; or `[[x^2 + 2 - y, x], [x, x^2 + 1]] >= 0`, so `y <= 2`; for `x >= 0`.
    fn new(dim: usize) -> Polynomial {
        let values = |f: &dyn Fn(f64) -> f64| [0.25, 1.0, 4.0].iter().map(|&x| f(x).to_string()).collect::<Vec<_>>();
        let (costs, ones) = match dim {
            1 => (values(&|x| x * x - 4.0 * x + 7.0), 3),
            _ => ([values(&|x| x * x + 2.0), values(&|x| x), values(&|x| x * x + 1.0)].concat(), 3),
        };
        let free = (0..costs.len()).map(|at| u32::from(at < ones).to_string()).collect();
        Polynomial { dim, costs, free }
    }

    fn write(&self, folder: &Path) {
        let quoted = |list: &[String]| list.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(",");
        let rows = |rows: &[[&str; 3]]| {
            rows.iter().map(|row| format!("[{}]", quoted(&row.map(String::from)))).collect::<Vec<_>>().join(",")
        };
        let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
        write("control.json", r#"{"num_blocks": 1, "command": ""}"#.into());
        write("objectives.json", r#"{"constant": "0", "b": ["1"]}"#.into());
        write("block_info_0.json", format!(r#"{{"dim": {}, "num_points": 3}}"#, self.dim));
        let free = self.free.iter().map(|n| format!("[\"{n}\"]")).collect::<Vec<_>>().join(",");
        let data = format!(
            "{{\"bilinear_bases_even\": [{}], \"bilinear_bases_odd\": [{}], \"c\": [{}], \"B\": [{free}]}}",
            rows(&EVEN),
            rows(&ODD),
            quoted(&self.costs)
        );
        write("block_data_0.json", data);
    }
}

/// A square matrix of rational numbers.
type Dense = Vec<Vec<Rational>>;

fn zeros(order: usize) -> Dense {
    vec![vec![Rational::new(); order]; order]
}

fn inner(a: &Dense, b: &Dense) -> Rational {
    let rows = a.iter().flatten().zip(b.iter().flatten());
    rows.fold(Rational::new(), |sum, (a, b)| sum + Rational::from(a * b))
}

/// The solution of a system, by elimination.
fn solved(mut a: Dense, mut b: Vec<Rational>) -> Vec<Rational> {
    let order = b.len();
    for col in 0..order {
        let pivot = (col..order).find(|&row| a[row][col] != 0).unwrap();
        a.swap(col, pivot);
        b.swap(col, pivot);
        for row in (0..order).filter(|&row| row != col) {
            let factor = Rational::from(&a[row][col] / &a[col][col]);
            for at in col..order {
                let product = Rational::from(&factor * &a[col][at]);
                a[row][at] -= product;
            }
            let product = Rational::from(&factor * &b[col]);
            b[row] -= product;
        }
    }
    (0..order).map(|at| Rational::from(&b[at] / &a[at][at])).collect()
}

/// Whether all pivots of a symmetric matrix are positive.
fn is_positive(a: &Dense) -> bool {
    let mut a = a.clone();
    for at in 0..a.len() {
        if a[at][at] <= 0 {
            return false;
        }
        for row in at + 1..a.len() {
            let factor = Rational::from(&a[row][at] / &a[at][at]);
            for col in at..a.len() {
                let product = Rational::from(&factor * &a[at][col]);
                a[row][col] -= product;
            }
        }
    }
    true
}

fn value(numbers: &Fixed, at: usize) -> Rational {
    Rational::from(&numbers.values[at]) * power_of_two(-i64::from(numbers.bits))
}

/// `L L^T + tau I` from its definition, or the diagonal.
fn block_of(witness: &Witness, order: usize, diagonal: bool) -> Dense {
    let mut block = zeros(order);
    for row in 0..order {
        if diagonal {
            block[row][row] = value(&witness.factor, row);
            continue;
        }
        for col in 0..order {
            for at in 0..=row.min(col) {
                block[row][col] += value(&witness.factor, packed(row, at)) * value(&witness.factor, packed(col, at));
            }
        }
        block[row][row] += power_of_two(witness.exponent);
    }
    block
}

/// All matrices of a program as one block each, from their definitions.
struct Explicit {
    matrices: Vec<Dense>,
    constant: Dense,
    costs: Vec<Rational>,
    /// The column of B, where there is one; `b` is 1.
    free: Option<Vec<Rational>>,
    /// Orders of the blocks, and which are diagonal.
    blocks: Vec<(usize, bool)>,
}

impl Explicit {
    fn order(&self) -> usize {
        self.blocks.iter().map(|(order, _)| order).sum()
    }

    /// Works out the points near those of a proof, and checks by elimination that they are feasible and as good as it says.
    fn confirms(&self, proof: &Proof) {
        let (lower, upper) = (proof.lower.as_ref().unwrap(), proof.upper.as_ref().unwrap());
        let mut dual = zeros(self.order());
        let mut first = 0;
        for (witness, &(order, diagonal)) in lower.groups[0].blocks.iter().zip(&self.blocks) {
            let block = block_of(witness, order, diagonal);
            (0..order * order)
                .for_each(|at| dual[first + at / order][first + at % order] = block[at / order][at % order].clone());
            first += order;
        }
        let y = self.free.is_some().then(|| value(&lower.y, 0)).unwrap_or_default();
        let right = |p: usize| {
            self.free.as_ref().map_or(self.costs[p].clone(), |free| &self.costs[p] - Rational::from(&free[p] * &y))
        };
        let rest = (0..self.costs.len()).map(|p| right(p) - inner(&self.matrices[p], &dual)).collect::<Vec<_>>();
        let gram = self.matrices.iter().map(|a| self.matrices.iter().map(|b| inner(a, b)).collect()).collect();
        for (weight, matrix) in solved(gram, rest).iter().zip(&self.matrices) {
            for (to, by) in dual.iter_mut().flatten().zip(matrix.iter().flatten()) {
                *to += Rational::from(weight * by);
            }
        }
        assert!((0..self.costs.len()).all(|p| inner(&self.matrices[p], &dual) == right(p)));
        assert!(is_positive(&dual));
        let objective = inner(&self.constant, &dual) + &y;
        assert!(objective >= lower.claim, "{objective} is below {}", lower.claim);
        let mut x = (0..self.costs.len()).map(|p| value(&upper.x[0], p)).collect::<Vec<_>>();
        if let Some(free) = &self.free {
            let dot = |a: &[Rational], b: &[Rational]| {
                a.iter().zip(b).fold(Rational::new(), |s, (a, b)| s + Rational::from(a * b))
            };
            let step = (Rational::from(1) - dot(free, &x)) / dot(free, free);
            x.iter_mut().zip(free).for_each(|(x, free)| *x += Rational::from(&step * free));
            assert_eq!(dot(free, &x), 1);
        }
        let mut primal = zeros(self.order());
        for (at, entry) in primal.iter_mut().flatten().enumerate() {
            let (row, col) = (at / self.order(), at % self.order());
            *entry -= &self.constant[row][col];
            self.matrices.iter().zip(&x).for_each(|(matrix, x)| *entry += Rational::from(x * &matrix[row][col]));
        }
        assert!(is_positive(&primal));
        let objective = self.costs.iter().zip(&x).fold(Rational::new(), |sum, (c, x)| sum + Rational::from(c * x));
        assert!(objective <= upper.claim);
        assert!(lower.claim <= upper.claim);
    }
}

/// A program with an interior on both sides: `c = A^*(I)`, and `C = A(x) - S` with `S` definite. All numbers are decimals.
fn random_program(random: &mut ChaCha8Rng) -> (String, Explicit) {
    let (blocks, count) = ([(3usize, false), (2, true), (1, true)], 4);
    let order = 6;
    let mut places = Vec::new();
    for (number, first, (size, diagonal)) in [(1, 0, blocks[0]), (2, 3, blocks[1]), (3, 5, blocks[2])] {
        for row in 0..size {
            let cols = if diagonal { row..row + 1 } else { 0..row + 1 };
            places.extend(cols.map(|col| (number, first, row, col)));
        }
    }
    let mut explicit = Explicit {
        matrices: vec![zeros(order); count],
        constant: zeros(order),
        costs: vec![Rational::new(); count],
        free: None,
        blocks: blocks.to_vec(),
    };
    let mut text = String::new();
    let tenths = |value: &Rational| Float::with_val(80, value).to_f64();
    let weights = (0..count).map(|_| Rational::from((random.random_range(-30i32..30), 10))).collect::<Vec<_>>();
    for &(number, first, row, col) in &places {
        let (i, j) = (first + row, first + col);
        let mut constant = Rational::from(if i == j { -7 } else { 1 });
        for p in 0..count {
            let entry = Rational::from((random.random_range(-20i32..20), 10));
            writeln!(text, "{} {number} {} {} {}", p + 1, col + 1, row + 1, tenths(&entry)).unwrap();
            constant += Rational::from(&weights[p] * &entry);
            if i == j {
                explicit.costs[p] += &entry;
            }
            explicit.matrices[p][j][i] = entry.clone();
            explicit.matrices[p][i][j] = entry;
        }
        writeln!(text, "0 {number} {} {} {:.2}", row + 1, col + 1, tenths(&constant)).unwrap();
        explicit.constant[i][j] = constant.clone();
        explicit.constant[j][i] = constant;
    }
    let costs = explicit.costs.iter().map(|cost| format!("{:.1}", tenths(cost))).collect::<Vec<_>>().join(" ");
    (format!("{count}\n3\n3 -2 1\n{costs}\n{text}"), explicit)
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
        let order = 3 * dim;
        let mut matrices = Vec::new();
        for s in 0..dim {
            for r in 0..=s {
                for k in 0..3 {
                    let mut matrix = zeros(order);
                    for (first, basis) in [(0, &EVEN[..]), (2 * dim, &ODD[..])] {
                        let rows = basis.len();
                        for (i, left) in basis.iter().enumerate() {
                            for (j, right) in basis.iter().enumerate() {
                                let half = number(left[k]) * number(right[k]) / 2u32;
                                matrix[first + r * rows + i][first + s * rows + j] += &half;
                                matrix[first + s * rows + i][first + r * rows + j] += &half;
                            }
                        }
                    }
                    matrices.push(matrix);
                }
            }
        }
        let numbers = |list: &[String]| list.iter().map(|text| number(text)).collect::<Vec<_>>();
        let explicit = Explicit {
            matrices,
            constant: zeros(order),
            costs: numbers(&polynomial.costs),
            free: Some(numbers(&polynomial.free)),
            blocks: vec![(2 * dim, false), (dim, false)],
        };
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

/// Whoever changes a proof and corrects the checksums may say less than it did, but nothing that is wrong.
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
        // A claim beyond what is shown, by the last digit.
        let mut greedy = proof.clone();
        greedy.lower.as_mut().unwrap().claim += Rational::from((1, 1000)) * power_of_two(-90);
        assert!(verify(&program, &greedy, 1).unwrap_err().to_string().contains("lower bound"));
    }
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
    assert!(certificate.without_upper.unwrap().contains("X is not positive definite"));
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
        let (proof::Constraints::Sparse(sparse), Constraints::Sparse(rounded)) =
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
