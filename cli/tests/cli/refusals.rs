//! Commands in a process that may have little memory: a result, or one line and exit code 4.
//!
//! `SUNZI_TEST_EFFORT` of 20 and more climbs the whole ladder: 200 limits for each command.

use crate::sandbox::{Output, Sandbox, effort};

/// Commands with the files that they write.
const COMMANDS: [(&str, &str); 16] = [
    ("gemm P.bin P.bin --transpose-a -o X.bin --threads 2", "X.bin"),
    ("inverse Q.bin -o X.mtx", "X.mtx"),
    ("syrk P.mtx -o X.bin -p 1000 --threads 2", "X.bin"),
    ("syrk P.bin -o X.bin --freivalds --window posix --trace t.json", "X.bin"),
    ("syrk P.bin -o X.bin --kernel reference --accuracy entrywise", "X.bin"),
    ("cholesky Q.bin -o X.bin", "X.bin"),
    ("cholesky Q.bin -o X.bin --device soft", "X.bin"),
    ("solve Q.bin B.bin -o X.bin", "X.bin"),
    ("trsm L.bin B.bin -o X.bin", "X.bin"),
    ("gen random --rows 100 --cols 70 --precision 1000 -o X.mtx", "X.mtx"),
    ("gen bootstrap1d --rows 60 --cols 30 --precision 500 -o X.bin", "X.bin"),
    ("convert P.bin X.mtx", "X.mtx"),
    ("verify syrk P.bin Q.bin --report X.json", "X.json"),
    ("verify cholesky Q.bin L.bin --report X.json", "X.json"),
    ("compare P.bin P.mtx --report X.json", "X.json"),
    ("bench syrk --rows 60 --cols 30 --precision 300 --runs 1 --threads 1 --report X.json", "X.json"),
];

/// Commands of the ordinary suite.
const FEW: usize = 3;

/// Bytes above the least between which commands go from refusal to result.
const SPAN_KIB: u64 = 80 << 10;

fn within(sandbox: &Sandbox, kib: u64, line: &str) -> Output {
    // Threads of OpenBLAS start before the program does.
    sandbox.finish(sandbox.start_within(&format!("export OPENBLAS_NUM_THREADS=1; ulimit -v {kib}"), line))
}

/// The least address space in which the program tells its version.
fn least(sandbox: &Sandbox) -> u64 {
    let (mut too_few, mut enough) = (1 << 10, 1 << 20);
    assert_eq!(within(sandbox, enough, "--version").code, 0);
    while enough - too_few > 64 {
        let middle = (too_few + enough) / 2;
        match within(sandbox, middle, "--version").code {
            0 => enough = middle,
            _ => too_few = middle,
        }
    }
    enough
}

/// Whether the command gave its result; where not, it must have ended in order, without any file.
fn climbed(sandbox: &Sandbox, kib: u64, (line, result): (&str, &str)) -> bool {
    let before = sandbox.names();
    let output = within(sandbox, kib, line);
    if output.code == 0 {
        std::fs::remove_file(sandbox.path(result)).unwrap();
        let _ = std::fs::remove_file(sandbox.path("t.json"));
        return true;
    }
    let errors = output.stderr.lines().filter(|line| line.starts_with("sunzi: error: ")).collect::<Vec<_>>();
    assert_eq!((output.code, errors.len()), (4, 1), "{line} in {kib} KiB: {output:?}");
    // A thread asks for its stack first.
    let refusals = ["the system refused ", "cannot start "];
    assert!(refusals.iter().any(|refusal| errors[0].contains(refusal)), "{line} in {kib} KiB: {output:?}");
    // The C library may say a word of its own before it ends the process.
    let own = |line: &str| line.starts_with("sunzi: ") || line.starts_with("Fatal glibc error: ");
    assert!(output.stderr.lines().all(own), "{line} in {kib} KiB: {output:?}");
    assert_eq!(sandbox.names(), before, "{line} in {kib} KiB");
    false
}

#[test]
fn what_memory_is_refused_ends_in_order() {
    let effort = u64::from(effort());
    let steps = if effort == 1 { 6 } else { (10 * effort).min(200) };
    let commands = if effort == 1 { &COMMANDS[..FEW] } else { &COMMANDS[..] };
    let sandbox = Sandbox::new();
    for line in [
        "gen random --rows 120 --cols 80 --precision 1000 -o P.bin",
        "convert P.bin P.mtx",
        "gen random --rows 80 --cols 9 --precision 1000 -o B.bin",
        "syrk P.bin -o Q.bin",
        "cholesky Q.bin -o L.bin",
    ] {
        sandbox.run(&format!("{line} --quiet"));
    }
    let least = least(&sandbox);
    for (index, &command) in commands.iter().enumerate() {
        // Closer together where little is left.
        let limits = (0..steps).map(|step| least + SPAN_KIB * step * step / (steps * steps));
        let results = limits.map(|kib| climbed(&sandbox, kib, command)).collect::<Vec<_>>();
        assert!(index >= FEW || !results[0], "{}: nothing was refused", command.0);
        assert!(climbed(&sandbox, 1 << 20, command), "{}: never enough", command.0);
    }
}
