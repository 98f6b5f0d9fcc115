//! Any words at all as arguments: accepted, or refused in one line; never a panic.

use super::sandbox::Sandbox;
use proptest::prelude::*;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use sunzi_cli::{check_arguments, options_page};

/// Words that lead deep into the parser, and some that lead nowhere.
const KNOWN: &[&str] = &[
    "info",
    "gen",
    "syrk",
    "gemm",
    "cholesky",
    "solve",
    "inverse",
    "trsm",
    "eigenvalue",
    "verify",
    "convert",
    "compare",
    "plan",
    "bench",
    "demo",
    "gpu-check",
    "simulate",
    "soak",
    "completions",
    "man",
    "--device",
    "--device-memory",
    "soft",
    "soft:1K",
    "cuda-i8",
    "kernel",
    "random",
    "bootstrap1d",
    "P.mtx",
    "Q.bin",
    "-o",
    "--output",
    "--rows",
    "--cols",
    "--precision",
    "-p",
    "--seed",
    "--threads",
    "--memory",
    "--kernel",
    "--alpha",
    "--beta",
    "--accumulate",
    "--accumulate-triangle",
    "--ignore-other-triangle",
    "--header",
    "--no-header",
    "--against",
    "--broadcast",
    "--remote-tiles",
    "--element-type",
    "--eviction",
    "--runs",
    "--report",
    "--quiet",
    "--transpose",
    "--transpose-a",
    "--upper",
    "--exact-integers",
    "--self-check",
    "--hex",
    "--lower",
    "--tile",
    "--nodes",
    "--ranks-per-node",
    "--result-rows",
    "--trace",
    "--log-det",
    "--condition",
    "--refine-from",
    "--factor",
    "--which",
    "both",
    "--side",
    "--uplo",
    "--unit",
    "right",
    "--help",
    "--version",
    "auto",
    "reference",
    "0",
    "1",
    "64",
    "1e5",
    "1e19",
    "1e40",
    "-1",
    "2G",
    "100.1K",
    "1.5",
    "nan",
    "--",
    "-",
    "",
    "--rows=7",
    "--memory=1e30T",
    "-p0",
    "-p1e7",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![8 => prop::sample::select(KNOWN).prop_map(String::from), 1 => ".{0,12}", 1 => "[0-9.eEpx+-]{1,40}"]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_are_accepted_or_refused_in_one_line(words in prop::collection::vec(word(), 0..10)) {
        let arguments = std::iter::once("sunzi").chain(words.iter().map(String::as_str)).map(OsString::from);
        if let Err(text) = check_arguments(arguments) {
            prop_assert!(!text.is_empty() && !text.contains('\n'), "{words:?}: {text:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn bytes_that_are_no_text_are_refused_or_taken_as_a_name() {
    use std::os::unix::ffi::OsStringExt;
    let odd = || OsString::from_vec(vec![b'P', 0xff, 0xfe]);
    let line = |words: [OsString; 5]| std::iter::once(OsString::from("sunzi")).chain(words);
    let [syrk, output, name] = ["syrk", "-o", "Q.mtx"].map(OsString::from);
    let quiet = || OsString::from("-q");
    assert!(check_arguments(line([syrk.clone(), odd(), output.clone(), name.clone(), quiet()])).is_ok());
    assert!(check_arguments(line([syrk, odd(), output, odd(), quiet()])).is_err());
    assert!(check_arguments(line([odd(), name.clone(), name.clone(), name, quiet()])).is_err());
}

/// Words that need another one after them show what there is; `help` shows the same.
#[test]
fn help_is_shown_where_nothing_is_asked_for() {
    let sandbox = Sandbox::new();
    for (line, words) in [
        ("", ["Commands:", "cholesky", "Examples:"]),
        ("simulate", ["factorisation on a cluster", "soak", "Examples:"]),
        ("verify", ["error bound", "gemm", "sunzi verify syrk P.mtx Q.mtx"]),
        ("bench", ["Time Sunzi's and other", "kernel", "Examples:"]),
    ] {
        let output = sandbox.output(line);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "sunzi {line}");
        let asked = sandbox.run(&format!("help {line}"));
        for word in words {
            assert!(output.stderr.contains(word) && asked.contains(word), "sunzi {line}: {}", output.stderr);
        }
    }
    assert!(sandbox.run("help bench syrk").contains("--against"));
}

/// The help of a command, as a terminal of 80 columns shows it.
fn help_at_80_columns(command: &str) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_sunzi"));
    program.args(command.split_whitespace()).arg("--help").env("COLUMNS", "80").stdin(Stdio::null());
    String::from_utf8(program.output().unwrap().stdout).unwrap()
}

/// Clap wraps everything but the line of usage.
#[test]
fn help_fits_the_terminal_and_lists_common_options_once() {
    let page = options_page();
    let commands = page.lines().filter_map(|line| line.strip_prefix("## sunzi")).map(str::trim);
    let commands = commands.collect::<Vec<_>>();
    assert!(commands.len() > 25, "{commands:?}");
    for command in commands {
        let help = help_at_80_columns(command);
        let wide = help.lines().find(|line| line.len() > 80 && !line.starts_with("Usage: "));
        assert_eq!(wide, None, "sunzi {command} --help");
        assert!(!help.contains("-q, --quiet") && help.contains("--no-header: see sunzi --help"), "{command}: {help}");
    }
    let help = help_at_80_columns("");
    assert!(help.lines().all(|line| line.len() <= 80) && help.matches("-q, --quiet").count() == 1, "{help}");
    // Accepted everywhere, before and after the command.
    let sandbox = Sandbox::new();
    for line in ["gen kms --rows 2 --cols 2 --precision 64 -o K.mtx --quiet", "-q man bench syrk --report r.json"] {
        sandbox.run(line);
    }
    assert_eq!(sandbox.run("--quiet info --report r.json"), "");
}

#[test]
fn completions_and_pages_come_from_the_same_definition() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = sandbox.run(&format!("completions {shell}"));
        assert!(script.contains("remote-tiles") && script.contains("cs_list_ahead"), "{shell}");
    }
    assert!(sandbox.run("man").contains("gpu\\-check"));
    let page = sandbox.run("man bench syrk");
    assert!(page.contains(".TH") && page.contains("memory\\-fractions") && !page.contains("eviction"), "{page}");
    assert!(sandbox.fail("man bench nothing", 2).contains("no command 'nothing'"));
    assert!(sandbox.fail("completions dos", 2).contains("[possible values: bash"));
}
