//! Setting up: what the build takes is installed before anything is compiled, or named in one line.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with the tools of a machine that has Rust, a C compiler and make, but no m4.
fn machine() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let search = std::env::var_os("PATH").unwrap();
    let find = |tool: &str| std::env::split_paths(&search).map(|folder| folder.join(tool)).find(|path| path.is_file());
    for tool in ["bash", "sh", "env", "xargs", "make", "cc", "cargo", "dirname", "ln", "echo"] {
        let path: PathBuf = find(tool).unwrap_or_else(|| panic!("{tool} is not on the path"));
        symlink(path, folder.path().join(tool)).unwrap();
    }
    write(folder.path(), "id", "echo 0");
    folder
}

/// A program of a few words in this folder.
fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs `make` with these arguments on that machine.
fn make(machine: &Path, arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut command = Command::new("make");
    command.args(arguments).current_dir(root).env("PATH", machine);
    // Variables of a make or cargo above this test are none of the machine's.
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CARGO"] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

#[test]
fn without_leave_to_install_the_demo_names_what_is_missing() {
    let machine = machine();
    let run = make(machine.path(), &["demo", "SUNZI_INSTALL=no"]);
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(!run.status.success());
    let named = err.lines().filter(|line| line.contains("error: missing: m4:")).count();
    assert_eq!(named, 1, "{err}");
    assert!(!format!("{out}{err}").contains("Compiling"), "{out}{err}");
    // Without apt-get there is nothing else to do.
    let run = make(machine.path(), &["demo"]);
    assert!(!run.status.success() && String::from_utf8_lossy(&run.stderr).contains("error: missing: m4:"));
}

#[test]
fn the_build_installs_what_is_missing_first() {
    let machine = machine();
    // The package is the last word of `apt-get install`; on this machine it is a program of that name.
    let install = "for last; do :; done; [ \"$1\" != install ] || ln -s /bin/true \"$(dirname \"$0\")/$last\"";
    write(machine.path(), "apt-get", install);
    let run = make(machine.path(), &["packages"]);
    let out = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{out}{}", String::from_utf8_lossy(&run.stderr));
    assert!(out.contains("installing what is missing: m4 (SUNZI_INSTALL=no only names it)"), "{out}");
    assert!(machine.path().join("m4").exists());
    let again = make(machine.path(), &["packages"]);
    assert!(again.status.success() && again.stdout.is_empty(), "{again:?}");
}
