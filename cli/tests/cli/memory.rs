//! The memory limit is for the whole process: the least that a command names is enough, one byte less is refused, and
//! the peak stays within. `SUNZI_TEST_EFFORT` above 1: three sizes, ten limits.

use super::sandbox::{Sandbox, effort, named_minimum};
use super::sdp::path_program;

fn thorough() -> bool {
    effort() > 1
}

/// Runs a command at the least limit that it names, a byte below and, with more effort, above.
fn check(sandbox: &Sandbox, line: &str) {
    let line = format!("{line} --threads 2 --report r.json");
    let least = named_minimum(&sandbox.fail(&format!("{line} --memory 1M"), 4));
    let again = named_minimum(&sandbox.fail(&format!("{line} --memory {}", least - 1), 4));
    assert_eq!(again, least, "{line}");
    let count = if thorough() { 4 } else { 1 };
    for step in 0..count {
        let limit = least + least * step / count;
        sandbox.run(&format!("{line} --memory {limit}"));
        let peak = sandbox.json("r.json")["peak_resident_bytes"].as_u64().unwrap();
        assert!(peak <= limit, "{line}: {peak} bytes, limit {limit}, least {least}");
    }
}

#[test]
fn every_command_keeps_its_memory_limit() {
    let sizes = [(300, 136, 90, 500), (500, 400, 400, 1024), (900, 600, 40, 300)];
    for (rows, order, sides, bits) in sizes.into_iter().take(if thorough() { 3 } else { 1 }) {
        let sandbox = Sandbox::new();
        sandbox.run(&format!("gen random --rows {rows} --cols {order} --precision {bits} --seed 1 -o P.bin"));
        sandbox.run(&format!("gen random --rows {order} --cols {sides} --precision {bits} --seed 2 -o B.bin"));
        sandbox.run("convert P.bin P.mtx");
        sandbox.run("syrk P.bin -o Q.bin");
        sandbox.run("cholesky Q.bin -o L.bin");
        for line in [
            "syrk P.bin -o X.bin",
            "syrk P.mtx -o X.mtx",
            "syrk P.bin -o X.bin --accumulate Q.bin --beta 2 --accuracy entrywise",
            "gemm P.bin P.bin --transpose-a -o X.bin",
            "cholesky Q.bin -o X.bin --log-det --condition",
            "solve Q.bin B.bin -o X.bin",
            "solve Q.bin B.bin -o X.bin --accuracy norm",
            &format!("solve Q.bin B.bin -o X.bin --refine-from {}", bits * 2 / 3),
            "inverse Q.bin -o X.bin",
            "solve Q.bin B.bin -o X.bin --general",
            "inverse Q.bin -o X.bin --general --accuracy norm",
            "trsm L.bin B.bin -o X.bin",
        ] {
            check(&sandbox, line);
        }
    }
}

/// Programs whose blocks, Schur complement or constraints take most.
#[test]
fn semidefinite_programs_keep_their_memory_limit() {
    let sandbox = Sandbox::new();
    let order = if thorough() { 120 } else { 40 };
    sandbox.write("a.dat-s", path_program(order));
    let line = "sdp -s a.dat-s -o out --precision 256 --verbosity 0 --noFinalCheckpoint --writeSolution x,X,Y";
    check(&sandbox, line);
    check(&sandbox, &format!("{line} --certify"));
}

/// A plan names the least limit of the command that it is for.
#[test]
fn plans_name_what_commands_do() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 90 --cols 60 --precision 300 --seed 1 -o P.bin");
    sandbox.run("gen random --rows 60 --cols 30 --precision 300 --seed 2 -o B.bin");
    sandbox.run("syrk P.bin -o Q.bin");
    for (command, plan) in [
        ("syrk P.bin", "syrk --rows 90 --cols 60"),
        ("gemm P.bin P.bin --transpose-a", "gemm --rows 90 --cols 60"),
        ("cholesky Q.bin", "cholesky --rows 60"),
        ("inverse Q.bin", "inverse --rows 60"),
        ("solve Q.bin B.bin --accuracy norm", "solve --rows 60 --cols 30 --accuracy norm"),
        ("solve Q.bin B.bin --refine-from 200", "solve --rows 60 --cols 30 --refine-from 200"),
        ("trsm Q.bin B.bin", "trsm --rows 60 --cols 30"),
    ] {
        let named = |line: &str| named_minimum(&sandbox.fail(&format!("{line} --precision 300 --memory 1M"), 4));
        assert_eq!(named(&format!("{command} -o X.bin")), named(&format!("plan {plan}")), "{command}");
    }
}
