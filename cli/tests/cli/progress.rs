//! Progress of whole runs: lines that rise to 100 percent through all stages where they are asked for, else nothing
//! without a terminal.

use super::sandbox::Sandbox;

/// Percents and stages of the lines on standard error.
fn lines(sandbox: &Sandbox, command: &str) -> Vec<(u64, String)> {
    let output = sandbox.output(&format!("{command} --progress plain"));
    assert_eq!(output.code, 0, "{command}: {output:?}");
    let line = |line: &str| {
        let (percent, rest) = line.strip_prefix("sunzi: ")?.split_once(" % ")?;
        let stage = rest.split([',', ' ']).next()?.to_string();
        let is_told = rest.starts_with("done in ") || (rest.contains(", about ") && rest.ends_with(" left"));
        assert!(is_told, "{line}");
        Some((percent.parse().ok()?, stage))
    };
    let found = output.stderr.lines().map(|text| line(text).unwrap_or_else(|| panic!("{command}: {text}")));
    found.collect()
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 150 --cols 60 --precision 300 --seed 1 -o P.mtx");
    sandbox.run("gen random --rows 60 --cols 9 --precision 300 --seed 2 -o B.csv");
    sandbox.run("syrk P.mtx -o Q.bin");
    sandbox.run("cholesky Q.bin -o L.bin");
    sandbox
}

#[test]
fn plain_lines_rise_to_the_end_through_all_stages() {
    let sandbox = sandbox();
    for (command, stages) in [
        ("syrk P.mtx -o S.mtx", "read compute write"),
        ("gemm P.mtx P.mtx --transpose-a -o S.mtx", "read compute write"),
        ("cholesky Q.bin -o S.mtx", "read factor write"),
        ("cholesky Q.bin --log-det --condition", "read factor condition estimate"),
        ("solve Q.bin B.csv -o S.mtx --precision 300 --certified", "read factor solve estimate certify write"),
        ("solve Q.bin B.csv -o S.mtx --precision 300 --refine-from 200", "read refine write"),
        ("inverse Q.bin -o S.mtx", "read factor inverse estimate write"),
        ("trsm L.bin B.csv -o S.mtx --precision 300", "read solve write"),
        ("verify syrk P.mtx Q.bin", "read verify"),
        ("verify cholesky Q.bin L.bin", "read verify"),
        ("gen random --rows 50 --cols 50 --precision 99 -o S.csv", "generate write"),
        ("convert P.mtx S.bin", "read write"),
        ("compare P.mtx P.mtx", "read"),
    ] {
        expect_stages(&sandbox, command, stages);
    }
}

fn expect_stages(sandbox: &Sandbox, command: &str, stages: &str) {
    assert_eq!(stages_of(sandbox, command), format!("{stages} done"), "{command}");
}

/// The stages that a run names, whose lines rise to its end.
fn stages_of(sandbox: &Sandbox, command: &str) -> String {
    let lines = lines(sandbox, command);
    assert!(lines.is_sorted_by_key(|(percent, _)| *percent), "{command}: {lines:?}");
    assert_eq!(lines.last(), Some(&(100, "done".into())), "{command}");
    let mut names = lines.iter().map(|(_, stage)| stage.as_str()).collect::<Vec<_>>();
    names.dedup();
    names.join(" ")
}

/// There one call of the library goes through all stages.
#[test]
fn lines_rise_through_all_stages_above_a_disk_too() {
    let sandbox = sandbox();
    sandbox.run("convert P.mtx P.bin");
    sandbox.run("convert B.csv B.bin --precision 300");
    for (command, stages) in [
        ("syrk P.bin -o S.bin", "read product write"),
        ("gemm P.bin P.bin --transpose-a -o G.bin", "read product write"),
        ("cholesky Q.bin -o F.bin", "read factor write"),
        ("trsm L.bin B.bin -o Y.bin", "read solve write"),
        ("solve Q.bin B.bin -o X.bin", "read factor write read solve write"),
    ] {
        // A stage that is over between two looks of the meter is not seen: on a busy machine the run is made again.
        let seen = (0..5).any(|attempt| {
            let name = format!("{}-{attempt}", command.split(' ').next().unwrap());
            stages_of(&sandbox, &format!("{command} --accuracy norm --storage {name} --storage-io cached"))
                == format!("{stages} done")
        });
        assert!(seen, "{command}: never {stages}");
    }
    sandbox.run("gen lehmer --rows 300 --cols 300 --precision 768 --symmetric -o A.bin");
    sandbox.run("cholesky A.bin -o K.bin");
    expect_stages(&sandbox, "verify cholesky A.bin K.bin --memory 60M", "read verify");
}

#[test]
fn nothing_is_shown_without_a_terminal_unless_it_is_asked_for() {
    let sandbox = sandbox();
    for choice in ["", "--progress auto", "--progress bar", "--progress none", "--progress plain --quiet"] {
        assert_eq!(sandbox.output(&format!("cholesky Q.bin -o S.bin {choice}")).stderr, "", "{choice}");
    }
    sandbox.fail("cholesky Q.bin -o S.bin --progress loud", 2);
    // Without a header nobody knows the stages; nor do attempts at several precisions tell them.
    assert_eq!(lines(&sandbox, "solve Q.bin B.csv -o S.bin --precision auto --digits 20"), []);
}
