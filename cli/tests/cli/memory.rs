//! The memory limit is for the whole process: the least that a command names is enough, one byte less is refused, and
//! the peak stays within.

use super::sandbox::{Sandbox, named_minimum};

/// Runs a command at the least limit that it names, a byte below and above.
fn check(sandbox: &Sandbox, line: &str) {
    let line = format!("{line} --threads 2 --report r.json");
    let least = named_minimum(&sandbox.fail(&format!("{line} --memory 1M"), 4));
    let again = named_minimum(&sandbox.fail(&format!("{line} --memory {}", least - 1), 4));
    assert_eq!(again, least, "{line}");
    for limit in [least, least + least / 10, least + least / 3, 2 * least] {
        sandbox.run(&format!("{line} --memory {limit}"));
        let peak = sandbox.json("r.json")["peak_resident_bytes"].as_u64().unwrap();
        assert!(peak <= limit, "{line}: {peak} bytes, limit {limit}, least {least}");
    }
}

#[test]
fn every_command_keeps_its_memory_limit() {
    let sandbox = Sandbox::new();
    sandbox.run("gen random --rows 320 --cols 240 --precision 640 --seed 1 -o P.bin");
    sandbox.run("convert P.bin P.mtx");
    sandbox.run("syrk P.bin -o Q.bin");
    sandbox.run("cholesky Q.bin -o L.bin");
    sandbox.run("gen random --rows 240 --cols 200 --precision 640 --seed 2 -o B.bin");
    for line in [
        "syrk P.bin -o X.bin",
        "syrk P.mtx -o X.mtx",
        "syrk P.bin -o X.bin --accumulate Q.bin --beta 2 --accuracy entrywise",
        "gemm P.bin P.bin --transpose-a -o X.bin",
        "cholesky Q.bin -o X.bin --log-det --condition",
        "solve Q.bin B.bin -o X.bin",
        "solve Q.bin B.bin -o X.bin --refine-from 400",
        "inverse Q.bin -o X.bin",
        "trsm L.bin B.bin -o X.bin",
    ] {
        check(&sandbox, line);
    }
}
