//! Forms of input: polynomial programs, archives, binary blocks. Each gives the program that its blocks in JSON give.
//!
//! Where `../shared/data` stands beside the repository, polynomial programs are compared with the blocks that SDPB's
//! own pmp2sdp made of them. Binary blocks are written out byte by byte (`inputs/blocks.rs`), and by Boost's own
//! library where a compiler finds it (Debian's `libboost-serialization-dev`).

#[path = "inputs/blocks.rs"]
mod blocks;
#[path = "inputs/cohn_elkies.rs"]
mod cohn_elkies;
#[path = "inputs/files.rs"]
mod files;
#[path = "inputs/malformed.rs"]
mod malformed;

use std::path::{Path, PathBuf};
use sunzi::advanced::testing::effort;
use sunzi::rug::Float;
use sunzi::{Context, Matrix, Result};
use sunzi_sdp::{
    Constraints, Control, PolynomialMatrix, PolynomialProgram, Problem, Sampling, Solution, Solver, SolverOptions,
    Termination, read_problem,
};

/// Data that stand beside the repository, or a note that they do not.
fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/sdpb").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is absent", path.display());
    }
    path.exists().then_some(path)
}

/// All matrices of a program with names.
fn matrices(problem: &Problem) -> Vec<(String, Matrix)> {
    let mut all = vec![("b".to_string(), problem.objective.clone())];
    all.extend(problem.normalization.clone().map(|n| ("normalization".to_string(), n)));
    for (number, group) in problem.groups.iter().enumerate() {
        all.push((format!("c {number}"), group.costs.clone()));
        all.push((format!("B {number}"), group.free.clone()));
        let Constraints::Sampled(sampled) = &group.constraints else { panic!("SDPB's form") };
        for (cone, parity) in sampled.parities().iter().enumerate() {
            all.push((format!("basis {number} {parity}"), sampled.basis(cone).clone()));
        }
    }
    all
}

/// Digits to which two programs agree, each number beside the largest of its matrix.
fn digits(left: &Problem, right: &Problem) -> f64 {
    let (left_parts, right_parts) = (matrices(left), matrices(right));
    assert_eq!(left_parts.len(), right_parts.len());
    let mut least = f64::MAX;
    for ((name, a), (other, b)) in left_parts.iter().zip(&right_parts) {
        assert_eq!((name, a.rows(), a.cols()), (other, b.rows(), b.cols()));
        let places = || (0..a.cols()).flat_map(|col| (0..a.rows()).map(move |row| (row, col)));
        let size = places().map(|(row, col)| b.float(row, col).abs()).fold(Float::new(64), |m, x| m.max(&x));
        let off = places().map(|(row, col)| (a.float(row, col) - b.float(row, col)).abs());
        let off = off.fold(Float::new(64), |m, x| m.max(&x));
        if off > 0 {
            let found = -(off / size).log10().to_f64();
            println!("{name}: {found:.1} digits");
            least = least.min(found);
        }
    }
    assert!((left.constant.clone() - &right.constant).abs() <= Float::with_val(64, 1e-99));
    least
}

fn solve(problem: &Problem) -> Result<Solution> {
    let mut options = SolverOptions::new(problem.form);
    options.max_iterations = 1000;
    let solver = Solver::new(Context::builder().threads(1).build()?, problem, options)?;
    solver.run(solver.begin()?, |_, _| Ok(Control::Continue))
}

/// A file in a new folder.
fn file(name: &str, text: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn read_text(name: &str, text: &str, bits: u32) -> Result<Problem> {
    let (_folder, path) = file(name, text);
    read_problem(&path, bits)
}

fn refused(name: &str, text: &str) -> String {
    read_text(name, text, 128).unwrap_err().to_string()
}

/// A polynomial program in JSON: objective, normalization, and matrices as they are written.
fn pmp(objective: &str, normalization: &str, matrices: &str) -> String {
    format!("{{\"objective\": {objective}, {normalization} \"PositiveMatrixWithPrefactorArray\": [{matrices}]}}")
}

/// `max z_1` with `x^2 - 4 x + 7 - z_1 >= 0`: 3.
const PARABOLA: &str = r#"[[[["7", "-4", "1"], ["-1"]]]]"#;

#[test]
fn optima_of_polynomial_programs_do_not_depend_on_the_sampling() -> Result<()> {
    let samplings = [
        "",
        r#", "prefactor": {"constant": "2", "base": "0.5", "poles": ["-1", "-2.5"]}"#,
        r#", "DampedRational": {"constant": "1", "base": "0.25", "poles": ["-1e-11", "-1"]}"#,
        r#", "samplePoints": ["0", "1", "5/2"], "sampleScalings": ["1", "0.5", "0.25"]"#,
        r#", "samplePoints": ["0.5", "1", 3], "sampleScalings": [1, 2, 3], "reducedSampleScalings": [2, 4, 6]"#,
        r#", "bilinearBasis": [["1"], ["1", "2"]]"#,
        r#", "bilinearBasis_0": [["3"], ["0", "2"]], "bilinearBasis_1": [["1"]]"#,
        r#", "prefactor": {"constant": "1", "base": "0.3"}, "reducedPrefactor": {"constant": "5", "base": "0.3"}"#,
    ];
    for (turn, sampling) in samplings.into_iter().enumerate() {
        // The second one has a row and column more, which are positive by themselves. The samplings take turns at them.
        let bordered = r#"[[[["7", "-4", "1"], ["-1"]], [["0"], ["0"]]], [[["0"], ["0"]], [["1", "1", "1"], ["0"]]]]"#;
        let both = [PARABOLA, bordered];
        let chosen = if effort() > 1 || turn == 0 { &both[..] } else { &both[turn % 2..][..1] };
        for polynomials in chosen {
            let matrix = format!("{{\"polynomials\": {polynomials} {sampling}}}");
            let problem = read_text("pmp.json", &pmp(r#"["0", "1"]"#, "", &matrix), 400)?;
            assert_eq!((problem.free_variables(), problem.variables() % 3), (1, 0));
            let solution = solve(&problem)?;
            assert_eq!(solution.termination, Termination::PrimalDualOptimal, "{sampling}");
            let off = (solution.quality.dual_objective - 3u32).abs();
            assert!(off < 1e-29, "{sampling} {off}");
        }
    }
    Ok(())
}

/// `max y` with `(x / d)^d - x - y >= 0` for `x >= 0`: the least value is at `x = d`, and `1 - d`.
fn steep(degree: u32) -> PolynomialProgram {
    let number = |value: i32| Float::with_val(1200, value);
    let mut coefficients = vec![number(0); degree as usize + 1];
    coefficients[1] -= 1u32;
    coefficients[degree as usize] += Float::with_val(1200, Float::u_pow_u(degree, degree)).recip();
    PolynomialProgram {
        objective: vec![number(0), number(1)],
        normalization: None,
        matrices: vec![PolynomialMatrix {
            dim: 1,
            entries: vec![vec![coefficients, vec![number(-1)]]],
            sampling: Sampling::default(),
        }],
    }
}

/// Without poles Newton's method steps from the middle of the interval onto 0 at 56 and some degrees above.
#[test]
fn programs_without_poles_are_solved_at_any_degree() -> Result<()> {
    let all = (2..=50).step_by(2).chain([56, 58, 60, 62, 70, 80]);
    for degree in all.filter(|degree| effort() > 1 || [2, 14, 56].contains(degree)) {
        let solution = solve(&steep(degree).problem(300 + 6 * degree)?)?;
        assert_eq!(solution.termination, Termination::PrimalDualOptimal, "degree {degree}");
        let off = (solution.quality.dual_objective + degree - 1u32).abs();
        assert!(off < 1e-28 * f64::from(degree), "degree {degree}: {off}");
    }
    Ok(())
}

/// Everything between the polynomials and the program has twice the bits, which is more than products of matrices have.
#[test]
fn polynomial_programs_reach_the_precisions_that_are_promised() -> Result<()> {
    let program = steep(6);
    let found = [2500, 2752, 2753, 5000].map(|bits| program.problem(bits));
    let [few, more, next, most] = found.map(|problem| problem.unwrap());
    for (left, right) in [(&few, &more), (&more, &next), (&next, &most)] {
        let bits = f64::from(left.precision_bits);
        assert!(digits(left, right) > (bits - 8.0) * std::f64::consts::LOG10_2, "{bits}");
    }
    let solution = solve(&most)?;
    assert_eq!((solution.termination, solution.point.y.precision_bits()), (Termination::PrimalDualOptimal, 5000));
    assert!((solution.quality.dual_objective + 5u32).abs() < 1e-28);
    Ok(())
}

/// Zeros behind the last coefficient change neither a polynomial nor whether a matrix is symmetric; they count as a
/// degree wherever they stand.
#[test]
fn zeros_behind_a_polynomial_are_not_unsymmetric() -> Result<()> {
    let with = |left: &str, right: &str| {
        let polynomials = format!("[[[[2], [-1]], [{left}, [0]]], [[{right}, [0]], [[2], [-1]]]]");
        read_text("pmp.json", &pmp(r#"["0", "1"]"#, "", &format!("{{\"polynomials\": {polynomials}}}")), 200)
    };
    let short = with("[1]", "[1]")?;
    for (left, right) in [("[1, 0]", "[1]"), ("[1]", "[1, 0]"), ("[1, 0]", "[1, 0]")] {
        let found = with(left, right)?;
        assert_eq!((short.variables(), found.variables()), (3, 6), "{left} {right}");
        assert_eq!(digits(&found, &with("[1, 0]", "[1, 0]")?), f64::MAX, "{left} {right}");
    }
    for (left, right) in [("[1, 0]", "[1, 1]"), ("[1, 0]", "[2]"), ("[0]", "[0, 1]")] {
        assert!(
            with(left, right).unwrap_err().to_string().contains("(0, 1) and (1, 0), counted from 0, differ"),
            "{left} {right}"
        );
    }
    Ok(())
}

#[test]
fn a_normalization_says_which_entry_is_no_variable() -> Result<()> {
    // max a over (a, b) with 2 a + 4 b = 1, a + b >= 0 and 3 b >= a: b = (1 - 2 a) / 4, so a <= 3 / 10.
    let matrices = r#"{"polynomials": [[[["1"], ["1"]]]]}, {"polynomials": [[[["-1"], ["3"]]]]}"#;
    let text = pmp(r#"["1", "0"]"#, r#""normalization": ["2", "4"],"#, matrices);
    let problem = read_text("pmp.json", &text, 300)?;
    assert_eq!(problem.normalization.as_ref().unwrap().view().to_f64s(), [2.0, 4.0]);
    assert_eq!(problem.objective.view().to_f64s(), [1.0]);
    assert_eq!(problem.total_rows(), 2);
    let solution = solve(&problem)?;
    assert!((solution.quality.dual_objective * 10u32 - 3u32).abs() < 1e-28);
    Ok(())
}

#[test]
fn reduced_prefactors_leave_fewer_points() -> Result<()> {
    let poles = r#""prefactor": {"constant": "1", "base": "0.5", "poles": ["-1", "-3", "-2"]}"#;
    let matrix = |extra: &str| {
        let text = format!("{{\"polynomials\": [[[[1, 0, 0, 0, 1], [\"-1\"]]]], {poles} {extra}}}");
        read_text("pmp.json", &pmp(r#"["0", "1"]"#, "", &text), 200)
    };
    let (whole, reduced) = (matrix("")?, matrix(r#", "maxNumPoles": 1"#)?);
    assert_eq!((whole.variables(), reduced.variables()), (5, 3));
    let same = matrix(r#", "reducedPrefactor": {"constant": "1", "base": "0.5", "poles": ["-1"]}"#)?;
    assert_eq!(digits(&reduced, &same), f64::MAX);
    assert_eq!(digits(&whole, &matrix(r#", "maxNumPoles": -1"#)?), f64::MAX);
    // Bases have the reduced scalings, values the whole ones: B is minus s_k times -1.
    let Constraints::Sampled(sampled) = &reduced.groups[0].constraints else { panic!() };
    assert_eq!((sampled.basis(0).rows(), sampled.basis(1).rows()), (2, 1));
    assert!(matrix(r#", "maxNumPoles": 0"#)?.variables() == 2);
    let bare = r#", "reducedPrefactor": {"constant": "1", "base": "0.5", "poles": []}, "maxNumPoles": 0"#;
    assert_eq!(matrix(bare)?.variables(), 2);
    Ok(())
}

#[test]
fn mathematicas_text_and_lists_of_files_give_the_same_program() -> Result<()> {
    let first = r#"{"polynomials": [[[["1", "0", "0", "0", "1.5"], ["0", "0", "1", "0", "0.25"]]]],
                    "prefactor": {"constant": "1", "base": "0.375", "poles": ["-0.5", "-25"]}}"#;
    let second = r#"{"polynomials": [[[["2"], ["-1e-3"]], [["0", "1"], ["0"]]], [[["0", "1"], ["0"]],
                    [["0", "0", "-1"], ["-1"]]]], "prefactor": {"constant": "1", "base": "0.5", "poles": []}}"#;
    let normal = r#""normalization": ["1", "0"],"#;
    let json = read_text("pmp.json", &pmp(r#"["0", "-1"]"#, normal, &format!("{first}, {second}")), 256)?;
    let matrices = "PositiveMatrixWithPrefactor[DampedRational[1, {-0.5`20, -2.5`30*^1}, 0.3\\\n  75, x], \
                    {{{1 + (* nothing *) 1.5*x^4, x^2 + x^4/4}}}],\n PositiveMatrixWithPrefactor[DampedRational[1, {}, \
                    1/2, x], {{{2, -1.`10*^-3}, {x, 0}}, {{x, 0}, {-x^2, -1}}}]";
    let mathematica = |objective: &str, normalization: &str, matrices: &str| {
        format!("(* a program (* nested *) *) SDP[{objective}, {normalization}, {{{matrices}}}]\n")
    };
    let text = mathematica("{0, -1}", "{1, 0}", matrices);
    assert_eq!(digits(&read_text("pmp.m", &text, 256)?, &json), f64::MAX);
    assert_eq!(digits(&read_text("pmp.m", &format!("sdp = {text};"), 256)?, &json), f64::MAX);
    let (folder, list) = file("list.nsv", "sub/inner.nsv\0second.json\0\n");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    write("sub/inner.nsv", "first.m\0../vectors.json\0");
    let one = matrices.split_inclusive("}}}]").next().unwrap();
    write("sub/first.m", &mathematica("{}", "{}", one));
    write("vectors.json", r#"{"objective": ["0", "-1"], "normalization": [1, 0]}"#);
    write("second.json", &pmp(r#"["0", "-1.0"]"#, "", second));
    assert_eq!(digits(&read_problem(&list, 256)?, &json), f64::MAX);
    write("second.json", &pmp(r#"["0", "-1.5"]"#, "", second));
    let error = read_problem(&list, 256).unwrap_err().to_string();
    assert!(error.contains("objective") && error.contains("vectors.json"), "{error}");
    write("sub/inner.nsv", "../list.nsv");
    assert!(read_problem(&list, 256).unwrap_err().to_string().contains("named twice"));
    write("sub/inner.nsv", "none.json");
    assert!(read_problem(&list, 256).unwrap_err().to_string().contains("none.json"));
    write("sub/inner.nsv", "\0\n");
    assert!(read_problem(&list, 256).unwrap_err().to_string().contains("no files"));
    Ok(())
}

#[test]
fn bad_polynomial_programs_are_refused_with_their_place() {
    let with = |polynomials: &str, more: &str| {
        refused("pmp.json", &pmp(r#"["0", "1"]"#, "", &format!("{{\"polynomials\": {polynomials} {more}}}")))
    };
    let check = |found: String, wanted: &str| assert!(found.contains(wanted), "{found}\nwanted {wanted}");
    check(with(r#"[[[["7", "many"], ["-1"]]]]"#, ""), "matrix 0, entry (0, 0), polynomial 0, number 1: 'many'");
    check(with(r#"[[[["7", "inf"], ["-1"]]]]"#, ""), "'inf'");
    check(with("[[[[0.25], [1]]]]", ""), "quotation marks");
    check(with(r#"[[[["7"]]]]"#, ""), "entry 0 has 1 polynomials, but the objective 2");
    check(with(r#"[[[["7"], []]]]"#, ""), "polynomial 1 of entry 0 has no coefficients");
    check(with("[]", ""), "0 rows");
    check(with(r#"[[[["7"], ["1"]], [["7"], ["1"]]]]"#, ""), "row 0, counted from 0, has 2 entries");
    let skew = r#"[[[[1], [1]], [[1], [1]]], [[[1], [2]], [[1], [1]]]]"#;
    check(with(skew, ""), "(0, 1) and (1, 0), counted from 0, differ");
    check(with(PARABOLA, r#", "samplePoints": ["1", "2"]"#), "2 points");
    check(with(PARABOLA, r#", "samplePoints": ["1", "-2", "3"]"#), "sample point 1");
    check(with(PARABOLA, r#", "samplePoints": ["1", "1", "1"]"#), "coincide");
    check(with(PARABOLA, r#", "sampleScalings": ["1"]"#), "1 scalings");
    check(with(PARABOLA, r#", "reducedSampleScalings": ["1", "1"]"#), "2 reduced scalings");
    check(with(PARABOLA, r#", "bilinearBasis": [["1"]]"#), "basis 0 has 1 polynomials");
    check(with(PARABOLA, r#", "prefactor": {"constant": "1", "base": "1"}"#), "base is 1.0");
    check(with(PARABOLA, r#", "prefactor": {"constant": "1", "base": "0.5", "poles": ["1"]}"#), "above 0");
    check(with(PARABOLA, r#", "prefactor": {"constant": "-1", "base": "0.5"}"#), "constant of the prefactor");
    check(with(PARABOLA, r#", "prefactor": {"base": "0.5"}"#), "constant");
    check(with(PARABOLA, r#", "samplepoints": []"#), "samplepoints");
    let poles = r#", "prefactor": {"constant": "1", "base": "0.5", "poles": [-1, -1, -1]}, "maxNumPoles": 0"#;
    check(with(PARABOLA, poles), "no sample points");
    let whole = |text: &str| refused("pmp.json", text);
    check(whole(&pmp("[]", "", &format!("{{\"polynomials\": {PARABOLA}}}"))), "0 numbers in its objective");
    check(whole(r#"{"objective": ["1"]}"#), "0 polynomial matrices");
    check(
        whole(&format!("{{\"PositiveMatrixWithPrefactorArray\": [{{\"polynomials\": {PARABOLA}}}]}}")),
        "no objective",
    );
    let matrix = format!("{{\"polynomials\": {PARABOLA}}}");
    check(whole(&pmp(r#"["0", "1"]"#, r#""normalization": ["1"],"#, &matrix)), "normalization has 1 numbers");
    check(whole(&pmp(r#"["0", "1"]"#, r#""normalization": ["0", "0"],"#, &matrix)), "normalization is 0");
    check(whole("{}"), "no objective");
    check(whole("{\"objective\": [\"1\""), "line 1");
    check(refused("pmp.xml", "<sdp/>"), "neither SDPB's blocks");
    let mathematica = |text: &str| refused("pmp.m", text);
    check(mathematica("SDP[{0, 1}, {}, {}]"), "0 polynomial matrices");
    check(mathematica("SDP[{0, Pi}, {}, {}]"), "'Pi},{},{}]' where a number");
    check(mathematica("SDP[{0, 1}, {}, {PositiveMatrixWithPrefactor[1, {{{1 + y, 2}}}]}]"), "'y,2}}}");
    check(
        mathematica("SDP[{0, 1}, {}, {PositiveMatrixWithPrefactor[1, {{{1 + x^99999999, 2}}}]}]"),
        "a power of at most",
    );
    check(mathematica("SDP[{0, 1}"), "the file ends");
    check(mathematica("SDP[{0, 1} (* , {}"), "comment is not closed");
    check(mathematica("DSDP[{0, 1}"), "'=SDP['");
}

#[test]
fn polynomial_programs_have_the_blocks_that_pmp2sdp_made() -> Result<()> {
    // SDPB's case 1d: its polynomial program is short enough to stand here.
    let base = "0.36787944117144232159552377016146086744581113103176783450783680169746149574489980335714727434591964374\
                662732527684399520824697579279012900862665358949409878309219436737733811504863899112514561634498772";
    let twelfth = format!("0.08{}", "3".repeat(240));
    let matrix = format!(
        "{{\"DampedRational\": {{\"base\": \"{base}\", \"constant\": \"1\", \"poles\": []}}, \"polynomials\": \
         [[[[1, 0, 0, 0, 1], [0, 0, 1, 0, \"{twelfth}\"]]]]}}"
    );
    let program = read_text("pmp.json", &pmp(r#"["0", "-1"]"#, r#""normalization": ["1", "0"],"#, &matrix), 664)?;
    if let Some(stored) = shared("1d/sdp") {
        let found = digits(&program, &read_problem(&stored, 664)?);
        assert!(found > 190.0, "{found}");
    }
    // That case's optimum, by SDPB.
    let optimum = Float::parse("1.84026576313204924668804017173").unwrap();
    let solution = solve(&program)?;
    let off = Float::with_val(200, &solution.quality.dual_objective - Float::with_val(200, optimum)).abs();
    assert!(off < 1e-28, "{}", solution.quality.dual_objective);
    let case = "SingletScalarAllowed_dual_feasible_jump";
    if let (Some(list), Some(stored)) = (shared(&format!("{case}/pmp/pmp.nsv")), shared(&format!("{case}/sdp"))) {
        let found = digits(&read_problem(&list, 768)?, &read_problem(&stored, 768)?);
        assert!(found > 215.0, "{found}");
    }
    Ok(())
}

#[test]
fn bounds_on_sphere_packings_fall_to_1_as_the_degree_grows() -> Result<()> {
    let mut last = f64::MAX;
    let degrees = if effort() > 1 { (7..=39).step_by(4) } else { (7..=15).step_by(8) };
    for degree in degrees {
        let bits = 400 + 2 * degree as u32;
        let problem = cohn_elkies::program(degree, 2 * bits).problem(bits)?;
        let solution = solve(&problem)?;
        assert_eq!(solution.termination, Termination::PrimalDualOptimal, "degree {degree}");
        let excess = (-solution.quality.dual_objective - 1u32).to_f64();
        assert!(excess > 0.0 && excess <= last, "degree {degree}: {excess} after {last}");
        last = excess;
    }
    assert!(last < 0.1, "{last}");
    Ok(())
}
