//! The checked-in header is what the sources say, and C and C++ compilers take it without a warning.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).unwrap();
    let mut text = Vec::new();
    cbindgen::Builder::new().with_crate(folder()).with_config(config).generate().unwrap().write(&mut text);
    // What Rust states at every function, the header states once at its head.
    let text = String::from_utf8(text).unwrap().replace("//\n// # Safety\n// The header's rules.\n", "");
    text.replace("// # Safety\n", "")
}

fn header() -> PathBuf {
    folder().join("include/sunzi.h")
}

/// `SUNZI_WRITE_HEADER=1` writes it anew, as `make header` does.
#[test]
fn the_header_is_that_of_the_sources() {
    let wanted = generated();
    if std::env::var_os("SUNZI_WRITE_HEADER").is_some() {
        std::fs::write(header(), &wanted).unwrap();
    }
    let found = std::fs::read_to_string(header()).unwrap();
    let differs = wanted.lines().zip(found.lines()).position(|(wanted, found)| wanted != found);
    assert!(wanted == found, "include/sunzi.h is stale from line {:?} on: run 'make header'", differs.map(|at| at + 1));
}

/// Every function that the library exports is declared, and the other way round.
#[test]
fn the_header_declares_every_entry_point() {
    let text = std::fs::read_to_string(header()).unwrap();
    let mut count = 0;
    let mut folders = vec![folder().join("src/api")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let (more, here) = entries.partition::<Vec<_>, _>(|path| path.is_dir());
        folders.extend(more);
        files.extend(here);
    }
    for file in files {
        let source = std::fs::read_to_string(file).unwrap();
        for line in source.lines().filter(|line| line.contains("extern \"C\" fn ")) {
            let name = line.split("fn ").nth(1).unwrap().split('(').next().unwrap();
            assert!(text.contains(&format!("{name}(")), "{name} is not in the header");
            count += 1;
        }
    }
    assert!(count >= 100, "{count} entry points");
}

#[test]
fn compilers_take_the_header_alone_and_beside_mpfr() {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (compiler, standard, name) in [("cc", "-std=c99", "header.c"), ("c++", "-std=c++11", "header.cpp")] {
        for before in ["", "#include <gmp.h>\n#include <mpfr.h>\n"] {
            let source = output.join(name);
            std::fs::write(&source, format!("{before}#include <sunzi.h>\nint main() {{ return 0; }}\n")).unwrap();
            let status = Command::new(compiler)
                .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"])
                .arg(folder().join("include"))
                .arg(&source)
                .status()
                .unwrap_or_else(|error| panic!("{compiler}: {error}"));
            assert!(status.success(), "{compiler} refuses the header after {before:?}");
        }
    }
}
