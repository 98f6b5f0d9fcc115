//! The solver's readers and those of proofs share no code: what the one refuses, the other refuses as well.

use super::pmp;
use std::path::Path;
use sunzi::rug::{Float, Rational};
use sunzi_sdp::proof::read_exact;
use sunzi_sdp::read_problem;

const PARABOLA: &str = r#"[[[["7", "-4", "1"], ["-1"]]]]"#;

/// Both readers' answers: whether they take the file.
fn answers(path: &Path) -> [Result<(), String>; 2] {
    let solver = read_problem(path, 128).map(drop).map_err(|error| error.to_string());
    [solver, read_exact(path).map(drop).map_err(|error| error.to_string())]
}

fn both_take(name: &str, text: &str, wanted: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let found = answers(&path);
    let all = found.iter().all(|answer| answer.is_ok() == wanted);
    assert!(all, "{text}\nthe solver and proofs should both say {wanted}: {found:?}");
}

fn matrix(polynomials: &str, more: &str) -> String {
    pmp(r#"["0", "1"]"#, "", &format!("{{\"polynomials\": {polynomials} {more}}}"))
}

#[test]
fn both_readers_pass_over_zeros_behind_a_polynomial() {
    for (left, right, wanted) in [
        ("[1, 0]", "[1]", true),
        ("[1]", "[1, 0, 0]", true),
        ("[0]", "[0, 0]", true),
        ("[0]", "[]", false),
        ("[1, 0]", "[1, 1]", false),
        ("[0, 1]", "[0]", false),
    ] {
        let polynomials = format!("[[[[2], [-1]], [{left}, [0]]], [[{right}, [0]], [[2], [-1]]]]");
        both_take("pmp.json", &matrix(&polynomials, ""), wanted);
    }
    let mathematica = |right: &str| {
        format!(
            "SDP[{{0, 1}}, {{}}, {{PositiveMatrixWithPrefactor[DampedRational[1, {{}}, 1/2, x], \
                 {{{{{{2, -1}}, {{1 + 0*x, 0}}}}, {{{{{right}, 0}}, {{2, -1}}}}}}]}}]"
        )
    };
    both_take("pmp.m", &mathematica("1"), true);
    both_take("pmp.m", &mathematica("1 + x"), false);
}

/// Names that say no form, sections after the entries, and malformed lists.
#[test]
fn both_readers_know_files_by_what_they_hold_and_name_what_they_refuse() {
    let sparse = "\"a comment\n1\n1\n2\n1\n0 1 1 2 1\n1 1 1 1 1\n1 1 2 2 1\n";
    let parabola = matrix(PARABOLA, "");
    for (name, text, wanted) in [
        ("a.dat-s.txt", sparse, true),
        ("a.txt", sparse, true),
        ("program", sparse, true),
        ("program.txt", &parabola, true),
        ("a.dat", sparse, false),
        ("a.txt", "1 2\n3 4\n5 6\n", false),
        ("a.txt", "words\n", false),
        ("a.dat-s", &format!("{sparse}*INTEGER\n*1\n"), false),
        ("a.nsv", "a.json\nb.json\n", false),
    ] {
        both_take(name, text, wanted);
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, text, word) in [
        ("a.dat-s", &*format!("{sparse}*INTEGER\n*1\n"), "section '*INTEGER' after the entries"),
        ("a.nsv", "a.json\nb.json\n", "line feed"),
        ("a.nsv", "a.json\0b.json\r\nc.json\0", "line feed"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::write(folder.path().join("a.json"), &parabola).unwrap();
        assert!(answers(&path).iter().all(|found| found.as_ref().is_err_and(|error| error.contains(word))), "{text}");
    }
}

#[test]
fn both_readers_take_and_refuse_the_same_samplings() {
    let prefactor = |constant: &str, base: &str, poles: &str| {
        format!(r#", "prefactor": {{"constant": {constant}, "base": {base}, "poles": {poles}}}"#)
    };
    for (more, wanted) in [
        (String::new(), true),
        (prefactor("2", "\"0.5\"", "[-1]"), true),
        (prefactor("2", "\"0.5\"", "[0, -1]"), true),
        (prefactor("0", "\"0.5\"", "[]"), false),
        (prefactor("-1", "\"0.5\"", "[]"), false),
        (prefactor("1", "0", "[]"), false),
        (prefactor("1", "1", "[]"), false),
        (prefactor("1", "\"1.5\"", "[]"), false),
        (prefactor("1", "\"-0.5\"", "[]"), false),
        (prefactor("1", "0.5", "[]"), false),
        (prefactor("1", "\"0.5\"", "[1]"), false),
        (prefactor("1", "\"0.5\"", "[\"x\"]"), false),
        (prefactor("1", "\"0.5\"", "null"), false),
        (r#", "prefactor": {"constant": "1"}"#.into(), false),
        (r#", "prefactor": {"base": "0.5"}"#.into(), false),
        (r#", "prefactor": {"constant": "1", "base": "0.5"}"#.into(), true),
        (r#", "prefactor": {"constant": "1", "base": "0.5", "pole": []}"#.into(), false),
        (r#", "prefactor": ["1", "0.5"]"#.into(), false),
        (r#", "prefactor": null"#.into(), true),
        (r#", "DampedRational": {"constant": "1", "base": "0.5"}"#.into(), true),
        (prefactor("1", "\"0.5\"", "[]") + r#", "DampedRational": {"constant": "1", "base": "0.5"}"#, false),
        (r#", "reducedPrefactor": {"constant": "-1", "base": "0.5"}"#.into(), false),
        (prefactor("1", "\"0.5\"", "[-1, -1, -1]") + r#", "maxNumPoles": 0"#, false),
        (prefactor("1", "\"0.5\"", "[-1, -1]") + r#", "maxNumPoles": 1"#, true),
        (r#", "maxNumPoles": "1""#.into(), false),
        (r#", "maxNumPoles": -1"#.into(), true),
        (r#", "maxNumPoles": 1.5"#.into(), false),
        (r#", "samplePoints": ["0", "1", "2"], "sampleScalings": [1, 1, 1]"#.into(), true),
        (r#", "samplePoints": ["0", "1"]"#.into(), false),
        (r#", "samplePoints": ["0", "1", "1.0"]"#.into(), false),
        (r#", "samplePoints": ["0", "1", "-1"]"#.into(), false),
        (r#", "samplePoints": ["0", "1", 2.5]"#.into(), false),
        (r#", "sampleScalings": [1, 0, 1]"#.into(), false),
        (r#", "sampleScalings": [1, -1, 1]"#.into(), false),
        (r#", "sampleScalings": [1, 1]"#.into(), false),
        (r#", "reducedSampleScalings": [1, 1, "-1"]"#.into(), false),
        (r#", "bilinearBasis": [["1"], ["0", "1"]]"#.into(), true),
        (r#", "bilinearBasis": [["1"]]"#.into(), false),
        (r#", "bilinearBasis_0": [["1"], ["0", "1"]]"#.into(), false),
        (r#", "bilinearBasis_0": [["1"], ["0", "1"]], "bilinearBasis_1": [["1"]]"#.into(), true),
        (r#", "bilinearBasis": [["1"], ["0", 1.5]]"#.into(), false),
        (r#", "samplepoints": []"#.into(), false),
    ] {
        both_take("pmp.json", &matrix(PARABOLA, &more), wanted);
    }
}

#[test]
fn both_readers_take_and_refuse_the_same_json() {
    let one = |coefficient: &str| matrix(&format!("[[[[{coefficient}], [-1]]]]"), "");
    for (coefficient, wanted) in [
        ("\"7.5\"", true),
        ("7", true),
        ("-7", true),
        ("7.5", false),
        ("1e2", false),
        ("-0", false),
        ("18446744073709551615", true),
        ("18446744073709551616", false),
        ("-9223372036854775808", true),
        ("-9223372036854775809", false),
        ("\"\"", false),
        ("\"nan\"", false),
        ("\"1/0\"", false),
        ("null", false),
        ("true", false),
        ("07", false),
        ("+7", false),
        ("[7]", false),
        ("seven", false),
    ] {
        both_take("pmp.json", &one(coefficient), wanted);
    }
    let parabola = format!("{{\"polynomials\": {PARABOLA}}}");
    for (text, wanted) in [
        (pmp("[0, 1]", "", &parabola), true),
        (pmp("[0, 1]", "\"normalization\": null,", &parabola), true),
        (pmp("[0, 1]", "\"normalization\": [0, 0],", &parabola), false),
        (pmp("[0, 1]", "\"normalization\": [1],", &parabola), false),
        (pmp("[0, 1]", "\"normalisation\": [1, 0],", &parabola), false),
        (pmp("[0, 1]", "\"objective\": [0, 1],", &parabola), false),
        (pmp("[]", "", &parabola), false),
        (pmp("[0, 1]", "", ""), false),
        (pmp("[0, 1]", "", "{}"), false),
        (pmp("[0, 1]", "", &parabola) + "x", false),
        (matrix("[]", ""), false),
        (matrix("[[]]", ""), false),
        (matrix("[[[[7], []]]]", ""), false),
        (matrix("[[[[7]]]]", ""), false),
        (matrix("[[[[7], [1]], [[7], [1]]]]", ""), false),
        (matrix("[[[[1], [1]], [[1], [1]]], [[[1], [2]], [[1], [1]]]]", ""), false),
        ("{}".into(), false),
        ("".into(), false),
        ("[]".into(), false),
        (format!("[[0, 1], [1, 0], [{parabola}]]"), false),
        (pmp("[0, 1]", "", &format!("[{PARABOLA}]")), false),
        ("{\"objective\": [0, 1]}".into(), false),
        (pmp("[0, 1]", "", &parabola).replace('[', "[\u{b}"), false),
    ] {
        both_take("pmp.json", &text, wanted);
    }
}

const DAMPED: &str = "DampedRational[1, {}, 1/2, x]";

/// A program of Mathematica's text with one polynomial that is no constant.
fn with(prefactor: &str, polynomial: &str) -> String {
    format!("SDP[{{0, 1}}, {{}}, {{PositiveMatrixWithPrefactor[{prefactor}, {{{{{{{polynomial}, -1}}}}}}]}}]")
}

#[test]
fn both_readers_take_and_refuse_the_same_numbers_of_mathematica() {
    for (polynomial, wanted) in [
        // A fraction may have blanks, a power of ten not.
        ("1 / 3 + x^2", true),
        ("1 /3 + x^2", true),
        ("1/ 3 + x^2 / 4", true),
        ("1 (* one *) /\\\n 3 x + x^2", true),
        ("7 + x^2/ 4", true),
        ("7 + x^2/1.5 + x / 2.5", true),
        ("7 + x^2/1 / 2", false),
        ("7 + x^1\\\n2/4", true),
        ("7 + x^.5", false),
        ("7 + x^2.5", false),
        ("1 / x + x^2", false),
        ("1 / -3 + x^2", false),
        ("0.5 / 3 + x^2", false),
        ("1 / 0 + x^2", false),
        ("1 *^2 + x^2", false),
        ("1* ^2 + x^2", false),
        ("1*^ 2 + x^2", false),
        ("1*^- 2 + x^2", false),
        ("1*^-2 + x^2", true),
        // An accuracy below 0 is no sum.
        ("7 + 0``5. x + x^2", true),
        ("7 + 0``-5. + x^2", false),
        ("7 + 0``+5. + x^2", false),
        ("7 + 2`-5. + x^2", true),
        ("7 + x^2/2``-5", false),
    ] {
        both_take("pmp.m", &with(DAMPED, polynomial), wanted);
    }
}

#[test]
fn both_readers_take_and_refuse_the_same_text_of_mathematica() {
    for (polynomial, wanted) in [
        ("7 - 4 x + x^2", true),
        ("7 - 4*x + x^2/4", true),
        ("7 - - x + x^2", true),
        ("1 2 + x^2", false),
        ("1\\\n2 + x^2", true),
        ("1 (* one *) 2 + x^2", false),
        ("7 + y^2", false),
        ("7 + x^2^2", false),
        ("7 + x^2/0", false),
        ("7 + x^2/1/2", false),
        ("7 + 2*3*x", false),
        ("7 + 2*", false),
        ("7 + Sqrt[2] x", false),
        ("7 + x^-1", false),
        ("7 + x^2 (* open", false),
        ("", false),
        ("7.5.5", false),
        ("1/2/3", false),
        ("1`20*^2 + x^2", true),
    ] {
        both_take("pmp.m", &with(DAMPED, polynomial), wanted);
    }
    for (prefactor, wanted) in [
        ("DampedRational[2, {-1}, 0.5, x]", true),
        ("DampedRational[-2, {-1}, 0.5, x]", false),
        ("DampedRational[2, {1}, 0.5, x]", false),
        ("DampedRational[2, {}, 2, x]", false),
        ("DampedRational[2, {}, 1, x]", false),
        ("DampedRational[2, {}, 0, x]", false),
        ("DampedRational[2, 0.5, x]", false),
        ("DampedRational[2, {}, 0.5]", false),
        ("1", false),
        ("", false),
    ] {
        both_take("pmp.m", &with(prefactor, "7 + x^2"), wanted);
    }
    let constant = "SDP[{0, 1}, {}, {PositiveMatrixWithPrefactor[3, {{{7, -1}}}]}]";
    both_take("pmp.m", constant, true);
    both_take("pmp.m", &constant.replace("[3,", "[0,"), false);
    both_take("pmp.m", &constant.replace("SDP", "SDQ"), false);
    both_take("pmp.m", &constant.replace("SDP", "S DP"), false);
    both_take("pmp.m", &constant.replace("Matrix", "(* a part *)Matrix"), false);
    both_take("pmp.m", &constant.replace("Matrix", "\\\nMatrix"), false);
    both_take("pmp.m", &constant.replace("{0, 1}", "{1 / 3, 1}"), true);
    both_take("pmp.m", &constant.replace("{0, 1}", "{0``-5, 1}"), false);
    both_take("pmp.m", &(constant.to_string() + " 1"), false);
    both_take("pmp.m", &constant.replace("{0, 1}", "{0, 1, 2}"), false);
}

/// A folder of blocks with one of its files changed.
fn folder(changed: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, whole) in [
        ("control.json", r#"{"num_blocks": 1, "command": "a \"b\""}"#),
        ("objectives.json", r#"{"constant": "0.5", "b": ["1"]}"#),
        ("block_info_0.json", r#"{"dim": 1, "num_points": 2}"#),
        (
            "block_data_0.json",
            r#"{"bilinear_bases_even": [["1", "1"]], "bilinear_bases_odd": [["0.5", "2"]], "c": ["1", "2"],
                "B": [["1"], ["3"]]}"#,
        ),
    ] {
        let text = if name == changed { text } else { whole };
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Numbers of blocks are read as they stand, with quotation marks or without, by both readers; the solver's, which is
/// that of the library's matrices, takes more without them than JSON allows, and the reader of proofs nothing that the
/// solver's refuses.
#[test]
fn numbers_of_blocks_stand_with_quotation_marks_or_without() {
    for (number, by_solver, by_proofs) in [
        (r#""0.5""#, true, true),
        ("0.5", true, true),
        ("-0.5e-1", true, true),
        ("5E+2", true, true),
        ("-0", true, true),
        ("123456789012345678901234567890.000000000000000000001", true, true),
        (r#""1/2""#, true, true),
        (r#""0x1.8p-3""#, true, true),
        (r#""+1_000""#, true, true),
        ("1/2", true, false),
        ("0x1.8p-3", true, false),
        ("+5", true, false),
        ("05", true, false),
        (".5", true, false),
        ("5.", true, false),
        ("", false, false),
        (r#""""#, false, false),
        (r#""nan""#, false, false),
        ("inf", false, false),
        ("null", false, false),
        ("true", false, false),
        ("one", false, false),
        ("1 2", false, false),
        (r#""1" "2""#, false, false),
        (r#""1"#, false, false),
        (r#"["1"]"#, false, false),
        (r#"{"1": "2"}"#, false, false),
        (r#""\u0031""#, false, false),
    ] {
        let text = format!(
            r#"{{"bilinear_bases_even": [["1", "1"]], "bilinear_bases_odd": [["0.5", "2"]], "c": [{number}, "2"],
                "B": [["1"], ["3"]]}}"#
        );
        let folder = folder("block_data_0.json", &text);
        let found = answers(folder.path());
        assert_eq!(found.each_ref().map(Result::is_ok), [by_solver, by_proofs], "{number}: {found:?}");
    }
    // The digits that a double has not, in the program of both.
    let text = r#"{"bilinear_bases_even": [[1, 1.0]], "bilinear_bases_odd": [[0.5, 2]],
        "c": [0.1000000000000000000000000000000000000001, 2], "B": [[1], [3]]}"#;
    let folder = folder("block_data_0.json", text);
    let (problem, program) = (read_problem(folder.path(), 300).unwrap(), read_exact(folder.path()).unwrap());
    let exact = program.groups[0].costs.get(0);
    assert_eq!(
        exact,
        "1000000000000000000000000000000000000001/10000000000000000000000000000000000000000"
            .parse::<Rational>()
            .unwrap()
    );
    assert_eq!(problem.groups[0].costs.float(0, 0), Float::with_val(300, &exact));
}

#[test]
fn both_readers_take_and_refuse_the_same_blocks() {
    for (name, text, wanted) in [
        ("", "", true),
        ("control.json", r#"{"num_blocks": "1"}"#, false),
        ("control.json", r#"{"num_blocks": 0}"#, false),
        ("control.json", r#"{"num_blocks": 2}"#, false),
        ("control.json", r#"{"num_blocks": 1.0}"#, false),
        ("control.json", "[1]", false),
        ("objectives.json", r#"{"constant": 0.5, "b": ["1"]}"#, false),
        ("objectives.json", r#"{"constant": 5, "b": ["1"]}"#, true),
        ("objectives.json", r#"{"constant": "x", "b": ["1"]}"#, false),
        ("objectives.json", r#"{"b": ["1"]}"#, false),
        ("objectives.json", r#"{"constant": "1", "b": ["1", "2"]}"#, false),
        ("block_info_0.json", r#"{"dim": 1, "num_points": 3}"#, false),
        ("block_info_0.json", r#"{"dim": 0, "num_points": 2}"#, false),
        ("block_info_0.json", r#"{"dim": 1, "num_points": 0}"#, false),
        ("block_info_0.json", r#"{"dim": 2, "num_points": 2}"#, false),
        ("block_data_0.json", r#"{"c": ["1", "2"]}"#, false),
        (
            "block_data_0.json",
            r#"{"bilinear_bases_even": [["1", "1"], ["1"]], "bilinear_bases_odd": [["0.5", "2"]], "c": ["1", "2"],
                "B": [["1"], ["3"]]}"#,
            false,
        ),
        (
            "block_data_0.json",
            r#"{"bilinear_bases_even": [["1"], ["1"]], "bilinear_bases_odd": [["0.5", "2"]], "c": ["1", "2"],
                "B": [["1"], ["3"]]}"#,
            false,
        ),
        (
            "block_data_0.json",
            r#"{"bilinear_bases_even": [["1", "one"]], "bilinear_bases_odd": [["0.5", "2"]], "c": ["1", "2"],
                "B": [["1"], ["3"]]}"#,
            false,
        ),
    ] {
        let folder = folder(name, text);
        let found = answers(folder.path());
        assert!(found.iter().all(|answer| answer.is_ok() == wanted), "{name}: {text}\n{found:?}");
    }
    // No points at all, and no numbers.
    let folder = folder("block_info_0.json", r#"{"dim": 1, "num_points": 0}"#);
    let data = r#"{"bilinear_bases_even": [], "bilinear_bases_odd": [], "c": [], "B": []}"#;
    std::fs::write(folder.path().join("block_data_0.json"), data).unwrap();
    let found = answers(folder.path());
    assert!(found.iter().all(Result::is_err), "{found:?}");
}
