//! The table of ends on the page of semidefinite programs: it has every end that a run can have, and each is brought
//! about here and compared with its row. Also what `--certify` states after ends at which bounds are missing.

use super::sandbox::Sandbox;
use super::sdp::path_program;
use std::path::Path;
use std::time::{Duration, Instant};

/// The largest eigenvalue of a path of three points, the root of 2.
const ROOT: &str = "1\n1\n3\n1\n0 1 1 2 1\n0 1 2 3 1\n1 1 1 1 1\n1 1 2 2 1\n1 1 3 3 1\n";

/// x at least 1 and at most -1: no primal point.
const NO_PRIMAL: &str = "1\n1\n-2\n1\n1 1 1 1 1\n1 1 2 2 -1\n0 1 1 1 1\n0 1 2 2 1\n";

/// The least -t with `t I` above a matrix: t may grow without bound, and there is no dual point.
const NO_DUAL: &str = "1\n1\n2\n-1\n1 1 1 1 1\n1 1 2 2 1\n0 1 1 2 1\n";

/// diag(x, 0) is positive semidefinite for the least x: neither side has a point inside.
const NO_INTERIOR: &str = "1\n1\n2\n0\n1 1 1 1 1\n";

/// Runs with their ends, in the order of the page.
const ENDS: [(&str, &str, &str); 15] = [
    (ROOT, "", "found primal-dual optimal solution"),
    (ROOT, "--findPrimalFeasible", "found primal feasible solution"),
    (ROOT, "--findDualFeasible", "found dual feasible solution"),
    (ROOT, "--detectPrimalFeasibleJump", "primal feasible jump detected"),
    (ROOT, "--detectDualFeasibleJump", "dual feasible jump detected"),
    (ROOT, "--maxComplementarity 1", "maxComplementarity exceeded"),
    (ROOT, "--maxIterations 3", "maxIterations exceeded"),
    (ROOT, "--maxRuntime 0", "maxRuntime exceeded"),
    (ROOT, "--minPrimalStep 2", "primal step too small"),
    (ROOT, "--minDualStep 2", "dual step too small"),
    (NO_PRIMAL, "", "primal infeasible"),
    (NO_DUAL, "", "dual infeasible"),
    (NO_DUAL, "--infeasibilityThreshold 0 --lowerBound -1e5", "primal objective below lowerBound"),
    (NO_PRIMAL, "--infeasibilityThreshold 0 --upperBound 1e5", "dual objective above upperBound"),
    (ROOT, "--dualityGapThreshold 1e-100", "precision too low"),
];

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
}

/// A row of the table: the text, what is feasible, and the exit code.
struct Row {
    text: String,
    feasible: String,
    code: i32,
}

fn rows() -> Vec<Row> {
    let page = read("docs/SDP.md");
    let section = page.split_once("\n## Termination\n").unwrap().1.split("\n## ").next().unwrap();
    let lines = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let cells = lines.take_while(|line| line.starts_with('|')).map(|line| line.trim_matches('|').split(" | "));
    let row = |mut cells: std::str::Split<'_, &str>| {
        let mut next = || cells.next().unwrap().trim().to_string();
        let (text, _, feasible, code) = (next(), next(), next(), next());
        let row = Row { text: text.trim_matches('`').into(), feasible, code: code.parse().unwrap() };
        assert!(cells.next().is_none(), "{}", row.text);
        row
    };
    cells.map(row).collect()
}

/// The texts of all ends, from the source: the compiler requires one for each.
fn texts() -> Vec<String> {
    let source = read("sdp/src/iterate/outcome.rs");
    let display = source.split_once("impl fmt::Display for Termination").unwrap().1.split_once("\n}\n").unwrap().0;
    let texts = display.lines().filter_map(|line| line.trim().strip_prefix("Termination::")?.split_once(" => \""));
    texts.map(|(_, text)| text.trim_end_matches("\",").to_string()).collect()
}

#[test]
fn the_page_has_every_end_with_its_exit_code() {
    let rows = rows();
    assert_eq!(rows.iter().map(|row| row.text.as_str()).collect::<Vec<_>>(), texts());
    for (row, (program, options, text)) in rows.iter().zip(ENDS) {
        let sandbox = Sandbox::new();
        sandbox.write("a.dat-s", program);
        let line = format!("sdp -s a.dat-s -o out -c= --precision 160 --threads 1 --report r.json {options}");
        let said = sandbox.output(&line);
        assert_eq!((said.code, said.stderr.as_str(), row.text.as_str()), (row.code, "", text), "{said:?}");
        let last = said.stdout.lines().rev().nth(2).unwrap();
        assert!(last.starts_with(text), "{said:?}");
        assert!(sandbox.text("out/out.txt").contains(&format!("terminateReason = \"{text}\";")), "{text}");
        let report = sandbox.json("r.json");
        let is_below = |name: &str| report[name].as_f64().unwrap() < 1e-30;
        let words = row.feasible.split([' ', ',', ':', ';', '.']).collect::<Vec<_>>();
        let [primal, dual] = [is_below("primal_error"), is_below("dual_error")];
        match &words[..] {
            ["x", "and", "y", ..] => assert!(primal && dual, "{text}"),
            ["x", ..] => assert!(primal, "{text}"),
            ["y", ..] => assert!(dual, "{text}"),
            ["no", "solution", ..] => assert!(!(primal && dual), "{text}"),
            _ => {}
        }
    }
}

/// The two ends behind those of the list, which signals bring about.
#[cfg(unix)]
#[test]
fn signals_have_the_exit_code_of_the_page() {
    let rows = rows();
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", path_program(30));
    for (row, signal) in rows[ENDS.len()..].iter().zip(["TERM", "INT"]) {
        let child = sandbox.start("sdp -s a.dat-s -o out -c= --precision 2000 --no-ramp --threads 1 --certify");
        let start = Instant::now();
        while !sandbox.path("out/iterations.json").exists() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        sandbox.signal(&child, signal);
        assert_eq!((sandbox.finish(child).code, row.text.contains(signal)), (row.code, true), "{}", row.text);
        assert!(sandbox.text("out/out.txt").contains(&row.text) && !sandbox.path("out/certificate").exists());
        std::fs::remove_file(sandbox.path("out/iterations.json")).unwrap();
    }
    assert_eq!(rows.len(), ENDS.len() + 2);
}

/// Where a ray answers, no advice is given; else it is stated that the answer is not known, and never that more bits
/// suffice.
#[test]
fn what_is_missing_of_a_certificate_is_explained() {
    let (no_primal, no_dual) = ("no primal point is feasible", "no dual point is feasible");
    let unknown = "it is not known whether the dual side has a strictly feasible point: if it has one, ";
    let early = "the run ended with a dual error of ";
    let cases = [
        (NO_DUAL, "", 0, [no_dual, "no lower bound: no dual point is feasible\n"]),
        (NO_PRIMAL, "", 0, [no_primal, "no upper bound: no primal point is feasible\n"]),
        (NO_DUAL, "--infeasibilityThreshold 0", 0, [no_dual, "no lower bound: no dual point is feasible\n"]),
        (NO_DUAL, "--maxIterations 5", 0, [no_dual, "no lower bound: no dual point is feasible\n"]),
        (NO_INTERIOR, "", 5, [unknown, "smaller error thresholds may give the bound; if not, neither"]),
        (NO_INTERIOR, "--maxIterations 5", 5, [early, "a run that continues from there may give the bound"]),
        (ROOT, "--maxIterations 3", 0, [early, "it is not proven either that no dual point is feasible"]),
    ];
    for (program, options, code, words) in cases {
        let sandbox = Sandbox::new();
        sandbox.write("a.dat-s", program);
        let line = format!("sdp -s a.dat-s -o out --precision 200 --threads 1 --certify {options}");
        let output = sandbox.output(&line);
        let said = output.stdout + &output.stderr;
        assert_eq!(output.code, code, "{options}: {said}");
        assert!(words.iter().all(|words| said.contains(words)), "{options}: {said}");
        assert!(!said.contains("suffice"), "{options}: {said}");
        if said.contains(early) {
            // The advice is taken: the same run continues, and has the bound where there is one.
            let text = sandbox.output("sdp -s a.dat-s -o out --precision 200 --threads 1 --certify");
            assert_eq!(
                (text.code, text.stdout.contains("<= optimum <=")),
                if code == 5 { (5, false) } else { (0, true) }
            );
        }
    }
}

/// An option that the help lists is one that a run takes.
#[test]
fn every_option_of_the_help_is_accepted() {
    let sandbox = Sandbox::new();
    sandbox.write("a.dat-s", ROOT);
    sandbox.write("p", "maxIterations=400\n");
    sandbox.run("sdp -s a.dat-s -o out --precision 200 --threads 1");
    let whole = sandbox.run("sdp --help");
    let help = whole.split("Examples:").next().unwrap();
    let values = [
        ("<B>", "160"),
        ("<DIR>", "a.dat-s.ck"),
        ("<FILE.svg>", "run.svg"),
        ("<FILE>", "p"),
        ("<LIST>", "x"),
        ("<N>", "1"),
        ("<NAME>", "auto"),
        ("<S>", "60"),
        ("<SIZE>", "1G"),
        ("<T>", "1"),
        ("<X>", "0.5"),
    ];
    let mut seen = 0;
    for line in help.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
        let mut words = line.split_whitespace().skip_while(|word| !word.starts_with("--"));
        let option = words.next().unwrap();
        if ["--sdpDir", "--outDir", "--help"].contains(&option) {
            continue;
        }
        let named = words.next().filter(|word| word.starts_with('<'));
        let value = named.map_or("", |named| values.iter().find(|(name, _)| *name == named).unwrap().1);
        let output = sandbox.output(&format!("sdp -s a.dat-s -o out {option} {value}"));
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{option} {value}: {output:?}");
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}
