//! The checked-in header is what the sources say, and C and C++ compilers take it without a warning.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A source file with the functions that `twins!` makes in place of its lists: cbindgen expands no macros.
fn expanded(source: &str) -> String {
    let (mut text, mut lines) = (String::new(), source.lines());
    while let Some(line) = lines.next() {
        if line == "twins! {" { entries(&mut lines, &mut text) } else { text += &format!("{line}\n") }
    }
    text
}

/// The entry points of one list, to its end.
fn entries<'s>(lines: &mut impl Iterator<Item = &'s str>, text: &mut String) {
    let (mut arguments, mut comment) = (String::new(), String::new());
    while let Some(line) = lines.next() {
        if line.starts_with("///") {
            comment += &format!("{line}\n");
        } else if line.starts_with("struct ") {
            comment.clear();
            arguments = lines.by_ref().take_while(|line| *line != "}").collect();
        } else if let Some(entry) = line.strip_prefix("fn ") {
            let (mpfr, mpf) = entry.split_once(" => ").unwrap().0.split_once(", ").unwrap();
            let same = format!("/// Same as `{mpfr}`, for scalars and arrays of `mpf_t`.\n");
            for (name, comment) in [(mpfr, std::mem::take(&mut comment)), (mpf, same)] {
                *text += &format!("{comment}///\n/// # Safety\n/// The header's rules.\n#[unsafe(no_mangle)]\n");
                *text +=
                    &format!("pub unsafe extern \"C\" fn {name}(ctx: *const sunzi_context, {arguments}) -> i64 {{}}\n");
            }
        } else if line == "}" {
            return;
        } else {
            assert_eq!(line, "", "a line of a form that is not known here");
        }
    }
}

/// The Rust sources, by their paths from `src`.
fn sources() -> Vec<(PathBuf, String)> {
    let root = folder().join("src");
    let (mut folders, mut files) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let (more, here) = entries.partition::<Vec<_>, _>(|path| path.is_dir());
        folders.extend(more);
        files.extend(here);
    }
    let read = |file: PathBuf| {
        let text = expanded(&std::fs::read_to_string(&file).unwrap());
        (file.strip_prefix(&root).unwrap().to_path_buf(), text)
    };
    files.into_iter().map(read).collect()
}

fn generated() -> String {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("header");
    let _ = std::fs::remove_dir_all(&copy); // there may be none
    for (path, text) in sources() {
        std::fs::create_dir_all(copy.join(&path).parent().unwrap()).unwrap();
        std::fs::write(copy.join(path), text).unwrap();
    }
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).unwrap();
    let mut text = Vec::new();
    let builder = cbindgen::Builder::new().with_config(config).with_src(copy.join("lib.rs"));
    builder.generate().unwrap().write(&mut text);
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
    for (_, source) in sources() {
        for line in source.lines().filter(|line| line.contains("extern \"C\" fn ")) {
            let name = line.split("fn ").nth(1).unwrap().split('(').next().unwrap();
            if !name.starts_with('$') {
                assert!(text.contains(&format!("{name}(")), "{name} is not in the header");
                count += 1;
            }
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
