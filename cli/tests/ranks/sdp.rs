//! Semidefinite programs under a launcher: the files of one process, checkpoints of other numbers of ranks, errors.

use crate::harness::effort;
use crate::job::Launcher;
use crate::memory::named;
use crate::program::{alone, json, on_ranks, refused, same};
use crate::{Case, Run};
use std::fmt::Write;
use std::path::Path;

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "sdp::files_are_those_of_one_process", ranks: &[2, 3, 4], run: Run::Launcher(files) },
    Case { name: "sdp::other_ranks_go_on", ranks: &[3], run: Run::Launcher(checkpoints) },
    Case { name: "sdp::an_error_is_one_line", ranks: &[2], run: Run::Launcher(errors) },
];

/// What is written of a solution.
const PARTS: &str = "--writeSolution x,y,X,Y --threads 1";

/// Three polynomial matrices in one variable.
fn polynomials(folder: &Path) {
    let program = r#"{"objective": ["0", "1"], "normalization": ["1", "0"], "PositiveMatrixWithPrefactorArray": [
        {"polynomials": [[[["7", "-4", "1"], ["-1"]]]]},
        {"polynomials": [[[["9", "-4", "2", "0", "1"], ["-1"]]]]},
        {"polynomials": [[[["8", "0", "1"], ["-1"]], [["0", "1"], ["0"]]],
                         [[["0", "1"], ["0"]], [["6", "0", "1"], ["-1"]]]]}]}"#;
    std::fs::write(folder.join("pmp.json"), program).unwrap();
}

/// The least trace of diagonal matrices in two blocks that are above paths.
pub fn paths(folder: &Path, order: usize) {
    let mut text = format!("{}\n2\n{order} {order}\n{}\n", 2 * order, "1 ".repeat(2 * order));
    for (block, at) in (1..=2).flat_map(|block| (1..=order).map(move |at| (block, at))) {
        writeln!(text, "{} {block} {at} {at} 1", (block - 1) * order + at).unwrap();
        if at > 1 {
            writeln!(text, "0 {block} {} {at} {at}", at - 1).unwrap();
        }
    }
    std::fs::write(folder.join("paths.dat-s"), text).unwrap();
}

/// The files of a run without times.
fn check(at: &Path, expected: &str, found: &str, blocks: &[usize]) {
    let of_blocks = blocks.iter().flat_map(|block| [format!("X_matrix_{block}.txt"), format!("Y_matrix_{block}.txt")]);
    for name in of_blocks.chain(["x_0.txt".into(), "y.txt".into(), "ck/checkpoint.bin".into()]) {
        same(at, &format!("{expected}/{name}"), &format!("{found}/{name}"));
    }
}

/// Three ranks, on a node and a half, have the polynomials. Two have the paths, and so do four, more than there are
/// blocks. Most of the time ranks wait for each other: with little effort they make some iterations alone.
fn files(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    if effort() > 1 || ranks != 3 {
        paths(at, 6);
        let most = if effort() > 1 { 500 } else { 20 };
        let options = format!("--precision 200 --maxIterations {most} {PARTS}");
        alone(at, &format!("sdp -s paths.dat-s -o s1 -c s1/ck --verbosity 0 {options}"));
        on_ranks(launcher, ranks, ranks, at, &format!("sdp -s @/paths.dat-s -o @/s -c @/s/ck {options}"))
            .expect_success();
        check(at, "s1", "s", &[0, 1]);
    }
    if effort() > 1 || ranks == 3 {
        of_polynomials(launcher, ranks, at);
    }
}

fn of_polynomials(launcher: &Launcher, ranks: usize, at: &Path) {
    polynomials(at);
    // With gaps of 1e-30 the Schur complement of the first polynomial has a pivot of 2^-200 beside its diagonal. The
    // last 30 of 163 iterations lead there, and with little effort one process makes all before them.
    if effort() == 1 {
        alone(at, "sdp -s pmp.json -o near -c near/ck --precision 224 --verbosity 0 --maxIterations 133 --threads 1");
    }
    let begin = if effort() > 1 { "" } else { " -i @/near/ck" };
    let options = format!("--precision 224 {PARTS}{begin}");
    alone(at, &format!("sdp -s pmp.json -o p1 -c p1/ck --verbosity 0 --report r1.json {options}").replace("@/", ""));
    let line = format!("sdp -s @/pmp.json -o @/p -c @/p/ck --report @/r.json --certify --plot @/run.svg {options}");
    let ended = on_ranks(launcher, ranks, 2, at, &line);
    ended.expect_success();
    let lines = |text: &str| ended.output.lines().filter(|line| line.contains(text)).count();
    assert_eq!((lines("P-obj"), lines("found primal-dual optimal solution"), lines("proven:")), (1, 1, 1));
    check(at, "p1", "p", &[0, 1, 2, 3, 4, 5]);
    same(at, "p1/c_minus_By/c_minus_By.json", "p/c_minus_By/c_minus_By.json");
    let (one, many) = (json(&at.join("r1.json")), json(&at.join("r.json")));
    assert_eq!((&one["ranks"], &many["ranks"]), (&1.into(), &ranks.into()));
    for key in ["iterations", "primal_objective", "dual_objective", "dimacs_errors", "phase"] {
        assert!(!one[key].is_null() && one[key] == many[key], "{key}: {} and {}", one[key], many[key]);
    }
}

/// A run that was begun on ranks goes on in one process, and one of that on ranks: with little effort some iterations.
fn checkpoints(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    polynomials(at);
    let line = "--precision 224 --threads 1 --writeSolution x,y,X,Y";
    let rest = if effort() > 1 { 500 } else { 10 };
    let first = format!("-s @/pmp.json -o @/first -c @/first/ck --maxIterations 12 {line}");
    on_ranks(launcher, ranks, 2, at, &format!("sdp {first}")).expect_success();
    alone(at, &format!("sdp -s pmp.json -o first1 -c first1/ck --maxIterations 12 {line}"));
    check(at, "first1", "first", &[0, 2, 4]);
    alone(at, &format!("sdp -s pmp.json -o end1 -c end1/ck -i first/ck --maxIterations {rest} {line}"));
    let end = format!("sdp -s @/pmp.json -o @/end -c @/end/ck -i @/first1/ck --maxIterations {rest} {line}");
    let ended = on_ranks(launcher, 2, 1, at, &end);
    ended.expect_success();
    assert!(ended.output.contains("resumes from the checkpoint"), "{}", ended.report());
    check(at, "end1", "end", &[0, 2, 4]);
}

fn errors(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    paths(at, 3);
    let cases = [
        ("sdp -s @/none.dat-s -o @/out", 3, "none.dat-s"),
        ("sdp -s @/paths.dat-s -o @/out -i @/nowhere", 2, "no checkpoint"),
        ("sdp -s @/paths.dat-s -o @/paths.dat-s", 3, "paths.dat-s"),
    ];
    for (line, code, text) in cases {
        refused(&on_ranks(launcher, ranks, ranks, at, &format!("{line} --threads 1")), code, text);
    }
    assert!(!at.join("out").exists());
    limits(launcher, ranks, at);
}

/// The least limit of a node is named once, and is enough: for a run, and for one with a proof.
fn limits(launcher: &Launcher, ranks: usize, at: &Path) {
    polynomials(at);
    // A proof needs a solution, which one process has found.
    alone(at, "sdp -s pmp.json -o found -c near --maxIterations 160 --threads 1");
    for program in ["paths.dat-s --precision 128 --maxIterations 2", "pmp.json --certify -i @/near"] {
        let within = |limit: u64| {
            let line =
                format!("sdp -s @/{program} -o @/limited -c @/none --noFinalCheckpoint --threads 1 --memory {limit}");
            on_ranks(launcher, ranks, ranks, at, &line)
        };
        let first = within(1 << 20);
        let least = named(&first.errors).unwrap_or_else(|| panic!("{}", first.report()));
        refused(&within(least - 1), 4, &format!("({least} bytes)"));
        within(least).expect_success();
    }
}
