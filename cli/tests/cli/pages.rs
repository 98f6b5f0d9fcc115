//! The pages: what they show is what the program does.

use super::sandbox::Sandbox;
use std::path::Path;

/// The lines of the shell blocks of a page, without their comments.
fn commands(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```sh" => inside = true,
            _ if line.starts_with("```") => inside = false,
            _ if inside => lines.push(line.split(" #").next().unwrap_or_default().trim().to_string()),
            _ => {}
        }
    }
    lines
}

/// Every command of one process that the README shows, in its order; those of ranks run in tests under a launcher.
#[test]
fn the_commands_of_the_readme_run_as_written() {
    let sandbox = Sandbox::new();
    let lines = commands("README.md");
    let alone = lines.iter().filter_map(|line| line.strip_prefix("sunzi "));
    // Those of ranks write these files.
    let alone = alone.filter(|line| !line.contains("Q2.bin")).collect::<Vec<_>>();
    assert!(alone.len() >= 12, "{alone:?}");
    for line in alone {
        let said = sandbox.run(line);
        assert!(!said.is_empty(), "sunzi {line}");
    }
}
