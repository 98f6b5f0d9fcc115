//! The memory limit of nodes: what a refusal names runs to its end, and one byte less is refused with the same number.
//! `SUNZI_TEST_EFFORT` above 1: more commands.

use crate::harness::effort;
use crate::job::Launcher;
use crate::program::{alone, on_ranks, refused, same};
use crate::{Case, Run};

/// The cases of this file.
pub const CASES: &[Case] =
    &[Case { name: "memory::the_least_limit_is_named_at_once", ranks: &[3], run: Run::Launcher(least_limit) }];

/// Commands that every run tries: each takes four jobs of ranks that wait for each other.
const FEW: usize = 2;

/// The least limit that a refusal names.
pub fn named(errors: &str) -> Option<u64> {
    let bytes = errors.split("needs at least ").nth(1)?.split(['(', ' ']).nth(3)?;
    bytes.parse().ok()
}

fn least_limit(launcher: &Launcher, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // At the least limit ranks wait for each other at every few rows: more of them only take longer.
    alone(at, "gen random --rows 90 --cols 50 --precision 500 -o P.bin");
    alone(at, "gen random --rows 50 --cols 60 --precision 500 --seed 4 -o B.bin");
    alone(at, "gen random --rows 50 --cols 2 --precision 500 --seed 5 -o c.bin");
    alone(at, "syrk P.bin -o Q.bin");
    let lines = [
        "syrk P.bin --accuracy entrywise",
        "solve Q.bin c.bin",
        "gemm P.bin P.bin --transpose-a",
        "solve Q.bin B.bin",
        "syrk P.bin",
        "cholesky Q.bin",
        "solve Q.bin B.bin --accuracy norm",
    ];
    for line in &lines[..if effort() > 1 { lines.len() } else { FEW }] {
        alone(at, &format!("{line} -o One.bin --threads 1"));
        let within = |limit: u64| {
            let line = line.replace(' ', " @/").replace("@/--", "--").replace("@/entrywise", "entrywise");
            let line = format!("{} -o @/X.bin --threads 1 --memory {limit}", line.replace("@/norm", "norm"));
            on_ranks(launcher, ranks, 2, at, &line)
        };
        let first = within(1 << 20);
        let least = named(&first.errors).unwrap_or_else(|| panic!("{}", first.report()));
        refused(&first, 4, "this operation needs at least");
        refused(&within(least - 1), 4, &format!("({least} bytes)"));
        within(least).expect_success();
        same(at, "One.bin", "X.bin");
        std::fs::remove_file(at.join("X.bin")).unwrap();
    }
}
