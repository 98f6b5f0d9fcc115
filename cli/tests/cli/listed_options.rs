//! Every option that a help lists is accepted by its command in some command line: the page of options is read, and
//! each option is added to lines that are accepted without it.

use std::ffi::OsString;
use sunzi_cli::{check_arguments, options_page};

/// Values by option; others follow from what the page says of the value.
const VALUES: &[(&str, &str)] = &[
    ("--accumulate-triangle", "lower"),
    ("--against", "mpfr"),
    ("--alpha", "2"),
    ("--broadcast", "cs_list"),
    ("--device", "soft"),
    ("--kernel", "auto"),
    ("--machine", "tsubame2.5"),
    ("--policy", "fifo"),
    ("--problem", "QAP5"),
    ("--side", "left"),
    ("--slow", "0:10"),
    ("--verbosity", "1"),
    ("--writeSolution", "x"),
];

/// Command lines that are accepted; a command stands several times where an option needs or excludes others.
const LINES: &[&str] = &[
    "info P.bin",
    "gen random --rows 5 --cols 5 --precision 64 -o g.mtx",
    "syrk P.bin -o o.bin",
    "syrk P.bin -o o.bin --device soft",
    "syrk P.bin -o o.bin --accumulate Q.bin",
    "syrk P.bin -o o.bin --accumulate Q.bin --accumulate-triangle lower",
    "syrk P.bin -o o.bin --accuracy norm --storage tiles",
    "gemm A.bin B.bin -o o.bin",
    "gemm A.bin B.bin -o o.bin --device soft",
    "gemm A.bin B.bin -o o.bin --accumulate Q.bin",
    "gemm A.bin B.bin -o o.bin --accuracy norm --storage tiles",
    "cholesky A.bin -o o.bin",
    "cholesky A.bin -o o.bin --lower",
    "cholesky A.bin -o o.bin --device soft",
    "cholesky A.bin --log-det",
    "cholesky A.bin -o o.bin --storage tiles",
    "lu A.bin --lower L.bin",
    "lu A.bin --det",
    "solve A.bin B.bin",
    "solve A.bin B.bin -o o.bin",
    "solve A.bin B.bin --lower",
    "solve A.bin B.bin --device soft",
    "solve A.bin B.bin -o o.bin --accuracy norm --storage tiles",
    "inverse A.bin -o o.bin",
    "inverse A.bin -o o.bin --lower",
    "inverse A.bin -o o.bin --device soft",
    "trsm T.bin B.bin -o o.bin",
    "trsm T.bin B.bin -o o.bin --device soft",
    "trsm T.bin B.bin -o o.bin --storage work",
    "eigenvalue A.bin",
    "eigenvalue A.bin --lower",
    "eigenvalue A.bin --device soft",
    "sdp -s a.dat-s",
    "sdp --paramFile p",
    "verify syrk P.bin Q.bin",
    "verify gemm A.bin B.bin C.bin",
    "verify cholesky A.bin L.bin",
    "verify cholesky A.bin L.bin --lower",
    "verify cholesky A.bin L.bin --device soft",
    "verify lu A.bin L.bin U.bin P.csv",
    "verify lu A.bin L.bin U.bin P.csv --device soft",
    "verify solve A.bin B.bin X.bin",
    "verify solve A.bin B.bin X.bin --lower",
    "verify solve A.bin B.bin X.bin --device soft",
    "verify trsm T.bin B.bin X.bin",
    "verify trsm T.bin B.bin X.bin --device soft",
    "verify inverse A.bin X.bin",
    "verify inverse A.bin X.bin --lower",
    "verify inverse A.bin X.bin --device soft",
    "verify sdp a.dat-s certificate",
    "convert A.bin A.mtx",
    "convert A.bin --output A.mtx",
    "compare A.bin B.bin",
    "plan --rows 9 --cols 9 --precision 64",
    "plan --rows 9 --cols 9 --precision 64 --device soft",
    "plan syrk --rows 9 --cols 9 --precision 64 --device soft",
    "plan gemm --rows 9 --cols 9 --precision 64 --device soft",
    "plan cholesky --rows 9 --precision 64 --accuracy norm",
    "plan cholesky --rows 9 --precision 64",
    "plan cholesky --rows 9 --precision 64 --device soft",
    "plan lu --rows 9 --precision 64",
    "plan lu --rows 9 --precision 64 --device soft",
    "plan trsm --rows 9 --cols 9 --precision 64 --device soft",
    "plan solve --rows 9 --cols 9 --precision 64 --accuracy norm",
    "plan solve --rows 9 --cols 9 --precision 64",
    "plan solve --rows 9 --cols 9 --precision 64 --device soft",
    "plan inverse --rows 9 --precision 64",
    "plan inverse --rows 9 --precision 64 --device soft",
    "plan eigenvalue --rows 9 --precision 64 --device soft",
    "bench syrk --device soft",
    "bench gemm --device soft",
    "bench cholesky --device soft",
    "bench cholesky --element-type double",
    "bench trsm --device soft",
    "bench solve --device soft",
    "bench batch --operation syrk",
    "bench step",
    "bench step --cols 100",
    "bench kernel",
    "gpu-check --device soft",
    "simulate cholesky --order 9 --processes 4",
    "simulate cholesky --problem QAP5 --processes 4",
    "simulate cholesky --tiles 6 --processes 4 --trace t.json",
    "simulate cholesky --tiles 6 --processes 4",
    "simulate soak",
    "demo --device soft",
];

/// An option of the page of options, and words that follow it.
struct Listed {
    option: String,
    value: Option<String>,
}

/// The option of a row of a table, such as ``| `-p`, `--precision <B>` | Bits. One of `a`, `b`. |``.
fn listed(row: &str) -> Option<Listed> {
    let (cell, text) = row.strip_prefix("| `")?.split_once(" | ")?;
    let cell = cell.replace(['`', '\\'], "");
    let long = cell.split(", ").find(|word| word.starts_with("--"))?.to_string();
    let (option, name) = long
        .split_once(' ')
        .map_or((long.clone(), None), |(option, name)| (option.to_string(), Some(name.to_string())));
    let value = name.map(|name| {
        let known = VALUES.iter().find(|(known, _)| *known == option).map(|(_, value)| (*value).to_string());
        let first_of_all = text.split_once("One of `").and_then(|(_, rest)| rest.split_once('`'));
        let one_of = first_of_all.map(|(first, _)| first.replace('\\', ""));
        let by_name = match name.trim_matches(['<', '>']) {
            "FILE" | "FILE.svg" | "PATH" | "DIR" => "file.bin",
            "PxQ" => "2x2",
            "SIZE" => "2G",
            _ => "8",
        };
        known.or(one_of).unwrap_or_else(|| by_name.to_string())
    });
    Some(Listed { option, value })
}

fn is_accepted(line: &str) -> Result<(), String> {
    check_arguments(std::iter::once("sunzi").chain(line.split(' ')).map(OsString::from))
}

#[test]
fn listed_options_are_accepted() {
    let (page, mut count) = (options_page(), 0);
    for line in LINES {
        assert_eq!(is_accepted(line), Ok(()), "{line}");
    }
    for section in page.split("\n## sunzi").skip(1) {
        let (command, rows) = section.split_once('\n').unwrap();
        let command = command.trim();
        let starts =
            |line: &&&str| line.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        let lines = LINES.iter().filter(starts).collect::<Vec<_>>();
        for Listed { option, value } in rows.lines().filter_map(listed) {
            let words = value.map_or(option.clone(), |value| format!("{option} {value}"));
            // A line that has the option already, perhaps by its short name, accepts it.
            let refusals = lines.iter().map(|line| {
                let accepted = is_accepted(&format!("{line} {words}"));
                accepted.or_else(|error| if error.contains("multiple times") { Ok(()) } else { Err(error) })
            });
            let refusals = refusals.collect::<Vec<_>>();
            assert!(refusals.iter().any(Result::is_ok), "sunzi {command} {words}: {refusals:?}");
            count += 1;
        }
    }
    assert!(count > 400, "{count} options");
}
