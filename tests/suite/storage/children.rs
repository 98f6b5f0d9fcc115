//! Children of this very program, for what has to be a process of its own.

use std::process::Command;

/// The program again, with the one test `name` of `module`, and the variable `key` that makes a child of it.
pub fn child(module: &str, name: &str, key: &str, value: &std::path::Path) -> Command {
    let module = module.split_once("::").unwrap().1;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("{module}::{name}"), "--nocapture", "--test-threads=1"]).env(key, value);
    command
}
