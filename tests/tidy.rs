//! The rules of the source tree as a test: layers, sizes, headers, the fence for `unsafe`, leftovers, links.
//!
//! Reads the repository's files as text. Each rule is a function from one file to its violations, and each has a
//! planted violation below that it must find. Independent of: what the code computes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "tidy/counts.rs"]
mod counts;
#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/language.rs"]
mod language;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/public.rs"]
mod public;
#[path = "tidy/scan.rs"]
mod scan;

use scan::{File, Word};

/// Crates that are the program's and the laboratory's alone: command lines, terminals, pictures, signals, baselines.
const OUTSIDE_THE_LIBRARY: [&str; 9] =
    ["clap", "console", "indicatif", "plotters", "signal-hook", "toml", "flint3-sys", "sunzi-session", "sunzi-lab"];

/// Where `unsafe` may stand. A C interface is unsafe through and through, and so are its tests, which call it.
const UNSAFE_FOLDERS: &[&str] = &[
    "kernels/src/kernels/",
    "kernels/src/device/",
    "kernels/src/store/",
    "src/comm/",
    "src/storage/folder/ring/",
    "lab/src/baselines/",
    "bindings/c/",
    "bindings/python/src/native/",
];

/// Lines of a file: one of more is likely to hold two things.
const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 70;
const LINE_CHARS: usize = 120;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below `folder` with the given extension, sorted; build output is left out.
fn files_under(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            if !["target", "corpus", "artifacts"].iter().any(|&skip| path.ends_with(skip)) {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        } else if path.extension().is_some_and(|ending| ending == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/")
}

fn rust_files() -> Vec<File> {
    let folders = ["src", "kernels", "session", "lab", "laf", "sdp", "cli", "tests", "benches", "fuzz", "bindings"];
    let paths = folders.iter().flat_map(|folder| files_under(folder, "rs"));
    let files: Vec<File> = paths.map(|path| File::new(&relative(&path), &fs::read_to_string(&path).unwrap())).collect();
    assert!(files.len() > 20, "the tree was not found: {} files", files.len());
    files
}

/// Runs `rule` on every Rust file and fails with all that it finds.
fn enforce(rule: impl Fn(&File) -> Vec<String>) {
    let found: Vec<String> = rust_files().iter().flat_map(rule).collect();
    assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
}

fn size_violations(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    if !file.text.starts_with("//! ") {
        found.push(format!("{}:1: no '//!' header", file.path));
    }
    let count = file.text.lines().count();
    if count > FILE_LINES {
        found.push(format!("{}: {count} lines, at most {FILE_LINES}", file.path));
    }
    for (index, line) in file.text.lines().enumerate() {
        if line.chars().count() > LINE_CHARS {
            found.push(format!("{}:{}: {} characters", file.path, index + 1, line.chars().count()));
        }
    }
    for (line, name, length) in file.functions() {
        if length > FUNCTION_LINES {
            found.push(format!("{}:{line}: fn {name} has {length} lines, at most {FUNCTION_LINES}", file.path));
        }
    }
    found
}

fn unsafe_violations(file: &File) -> Vec<String> {
    let fenced = UNSAFE_FOLDERS.iter().any(|folder| file.path.starts_with(folder));
    let mut found = Vec::new();
    for Word { line, rest, .. } in file.words("unsafe") {
        let next = rest.trim_start();
        // An attribute `#[unsafe(..)]` or a function pointer type is no unsafe code of its own.
        if next.starts_with('(') || next.starts_with("fn(") || next.starts_with("extern") && next.contains("fn(") {
            continue;
        }
        // A method of a trait keeps the contract that the trait states.
        if fenced && next.starts_with("fn ") && file.is_in_trait_impl(line) {
            continue;
        }
        // Functions and traits state demands, all else a proof.
        let exported = next.starts_with("extern") && next.contains(" fn ");
        let demands = next.starts_with("fn ") || next.starts_with("trait ") || exported;
        if !fenced {
            found.push(format!("{}:{line}: unsafe outside {UNSAFE_FOLDERS:?}", file.path));
        } else if !file.comment_above(line, if demands { &["Safety", "SAFETY:"] } else { &["SAFETY:"] }) {
            found.push(format!("{}:{line}: unsafe without a SAFETY comment", file.path));
        }
    }
    found
}

/// Words that must not stay behind. Split here, so that this file does not contain them.
fn leftover_violations(file: &File) -> Vec<String> {
    let macros = ["todo", "unimplemented", "dbg"];
    let words = [concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO"), concat!("HA", "CK")];
    let mut found = Vec::new();
    for name in macros {
        for word in file.words(name).into_iter().filter(|word| word.rest.starts_with('!')) {
            found.push(format!("{}:{}: {name}!", file.path, word.line));
        }
    }
    for word in file.words("ignore").into_iter().filter(|word| word.before.trim_end().ends_with("#[")) {
        found.push(format!("{}:{}: a test that is switched off", file.path, word.line));
    }
    for (index, line) in file.text.lines().enumerate() {
        for word in line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| words.contains(word)) {
            found.push(format!("{}:{}: leftover '{word}'", file.path, index + 1));
        }
    }
    found
}

/// What `Cargo.lock` says each package needs, directly and through others, for tests and optional features too.
fn needs(package: &str, lock: &str) -> BTreeSet<String> {
    let entries = lock.split("[[package]]\n").filter_map(|entry| {
        let name = entry.strip_prefix("name = \"")?.split_once('"')?.0;
        let list = entry.split_once("dependencies = [").map_or("", |(_, list)| list);
        let needed = list.split('"').skip(1).step_by(2).map(|name| name.split(' ').next().unwrap());
        Some((name, needed.collect::<Vec<_>>()))
    });
    let entries = entries.collect::<Vec<_>>();
    let (mut found, mut open) = (BTreeSet::new(), vec![package]);
    while let Some(next) = open.pop() {
        for (_, needed) in entries.iter().filter(|(name, _)| *name == next) {
            open.extend(needed.iter().filter(|name| found.insert(name.to_string())));
        }
    }
    found
}

#[test]
fn the_library_stands_without_the_program() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let (library, program) = (needs("sunzi", &lock), needs("sunzi-cli", &lock));
    assert!(library.contains("sunzi-kernels") && !needs("sunzi-kernels", &lock).contains("sunzi"));
    for outside in OUTSIDE_THE_LIBRARY {
        assert!(program.contains(outside), "{outside} is needed by nothing: is it still called so?");
        assert!(!library.contains(outside), "the library needs {outside}");
    }
}

#[test]
fn files_have_headers_and_stay_small() {
    enforce(size_violations);
}

#[test]
fn unsafe_stays_behind_the_fence_and_argues() {
    enforce(unsafe_violations);
}

#[test]
fn nothing_is_left_behind() {
    enforce(leftover_violations);
}

/// No tuple types of three parts or more in the heads of functions of the library, in both of its packages.
#[test]
fn parameters_have_names_and_few_are_tuples() {
    let files = rust_files();
    let source = files.iter().filter(|file| file.path.starts_with("src/") || file.path.starts_with("kernels/src/"));
    let found = source.flat_map(|file| {
        let wide = file.tuples(true).into_iter().filter(|(_, parts)| parts.len() > 2);
        wide.map(|(line, parts)| format!("{}:{line}: ({})", file.path, parts.join(", ")))
    });
    let found = found.collect::<Vec<_>>();
    assert!(found.is_empty(), "{} tuples:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_file_is_reached_by_a_mod_line() {
    let files = rust_files();
    let mut reached: BTreeSet<String> = BTreeSet::new();
    // Cargo finds these files of a package, and those directly in these folders, by itself.
    let is_target = |path: &str| {
        let package = ["kernels/", "session/", "lab/", "laf/", "sdp/", "cli/", "bindings/c/", "bindings/python/"];
        let package = package.into_iter().chain(["tests/dependent/"]);
        let path = package.filter_map(|package| path.strip_prefix(package)).next().unwrap_or(path);
        let inside = ["tests/", "benches/", "examples/"].iter().find_map(|folder| path.strip_prefix(folder));
        ["src/lib.rs", "src/main.rs", "build.rs", "fuzz/src/lib.rs"].contains(&path)
            || inside.is_some_and(|inside| !inside.trim_end_matches("/main.rs").contains('/'))
    };
    reached.extend(files.iter().filter(|file| is_target(&file.path)).map(|file| file.path.clone()));
    let fuzz = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap_or_default();
    let binaries =
        fuzz.lines().filter_map(|line| line.trim().strip_prefix("path = ")).filter(|path| path.ends_with(".rs\""));
    reached.extend(binaries.map(|path| format!("fuzz/{}", path.trim_matches('"'))));
    let mut open: Vec<String> = reached.iter().cloned().collect();
    while let Some(path) = open.pop() {
        let file = files.iter().find(|file| file.path == path);
        let file = file.unwrap_or_else(|| panic!("{path} is named as a target but does not exist"));
        for child in file.module_files() {
            let known = child.iter().find(|name| files.iter().any(|file| file.path == **name));
            let known = known.unwrap_or_else(|| panic!("{path}: no file for a module, tried {child:?}"));
            if reached.insert(known.clone()) {
                open.push(known.clone());
            }
        }
    }
    let dead: Vec<&str> = files.iter().map(|file| &*file.path).filter(|path| !reached.contains(*path)).collect();
    assert!(dead.is_empty(), "files that no module declares: {dead:?}");
}

#[test]
fn circles_and_tuples_are_found_where_they_are_planted() {
    let circles = |texts: &[(&str, &str)]| {
        let folder = [("src/a/mod.rs", "mod one;\n")];
        let files = texts.iter().chain(&folder).map(|(path, text)| File::new(path, text)).collect::<Vec<_>>();
        imports::Package::new(&files, "src/").circles()
    };
    let elsewhere = [("lab/src/a.rs", "use crate::b::B;\n"), ("lab/src/b.rs", "use crate::a::A;\n")];
    let elsewhere = elsewhere.map(|(path, text)| File::new(path, text));
    assert_eq!(imports::Package::new(&elsewhere, "lab/src/").circles(), ["lab/src: a <-> b"]);
    let (one, two) = (("src/a/one.rs", "use crate::b::Two;\n"), ("src/b/mod.rs", "mod two;\npub use two::Two;\n"));
    assert_eq!(circles(&[one, two, ("src/b/two.rs", "use super::three;\n"), ("src/b/three.rs", "")]).len(), 0);
    assert_eq!(circles(&[one, two, ("src/b/two.rs", "fn f() { crate::a::one::g() }\n")]), ["src: a <-> b"]);
    let three = ("src/b/three.rs", "use crate::b::{self, Two};\n");
    assert_eq!(circles(&[two, three, ("src/b/two.rs", "use super::three::*;\n")]), ["src/b: three <-> two"]);
    assert_eq!(
        circles(&[two, three, ("src/b/two.rs", "#[cfg(test)]\nmod tests {\n    use super::super::three;\n}\n")]).len(),
        0
    );
    assert_eq!(
        circles(&[("src/b/two.rs", "use self::four::Four;\n"), ("src/b/two/four.rs", "use super::f;\n")]).len(),
        0
    );
    let tuples = |text: &str| {
        let tuples = File::new("src/a.rs", text).tuples(true).into_iter();
        tuples.filter(|(_, parts)| parts.len() > 2).count()
    };
    assert_eq!(tuples("fn f((a, b, c): (u8, Vec<u8>, &[u8])) -> (u8, u8) {}\n"), 1);
    assert_eq!(tuples("fn f<T>(\n    a: &dyn Fn(u8, u8, u8),\n) -> Result<(u8, u8, (u8, u8, u8))>;\n"), 2);
    assert_eq!(tuples("fn f<'a>(a: &'a (u8, u8, u8), b: &mut (u8, u8, i8)) {}\n"), 2);
    assert_eq!(tuples("fn f(a: u8, b: (u8, u8), c: Map<u8, u8>, d: u8) { let x: (u8, u8, u8); }\n"), 0);
}

/// All pages for people, with their text.
fn pages() -> Vec<(String, String)> {
    let mut paths = files_under("docs", "md");
    paths.extend(["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    paths.iter().map(|path| (relative(path), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn links_between_pages_resolve() {
    let pages = pages();
    let mut broken = Vec::new();
    for (path, text) in &pages {
        for target in scan::links(text) {
            if target.contains("://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').map_or((&*target, None), |(file, anchor)| (file, Some(anchor)));
            let full = if file.is_empty() { root().join(path) } else { root().join(path).parent().unwrap().join(file) };
            if !full.exists() {
                broken.push(format!("{path}: {target}"));
            } else if let Some(anchor) = anchor {
                let page = fs::read_to_string(&full).unwrap();
                if !scan::headings(&page).any(|heading| scan::anchor(heading) == anchor) {
                    broken.push(format!("{path}: {target} (no such heading)"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_a_chapter_of_the_book() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let chapters = scan::links(&summary);
    for path in files_under("docs", "md") {
        let name = relative(&path).trim_start_matches("docs/").to_string();
        let is_chapter = name == "SUMMARY.md" || chapters.contains(&name);
        assert!(is_chapter || is_note(&name), "docs/{name} is no chapter of the book: add it to docs/SUMMARY.md");
    }
}

/// Whether a page of docs/ is a note of the notebook of decisions, which the book leaves out.
fn is_note(name: &str) -> bool {
    name.strip_prefix("decisions/").is_some_and(|name| !name.contains('/'))
}

/// The links in the last paragraph of a topic page, by which it names its notes.
fn named_notes(page: &str) -> Vec<String> {
    let last = page.trim_end().rsplit("\n\n").next().unwrap();
    let names = scan::links(last).into_iter().filter_map(|link| link.strip_prefix("../").map(String::from));
    if last.starts_with("Notes: ") { names.collect() } else { Vec::new() }
}

#[test]
fn every_note_belongs_to_one_topic() {
    let topics = files_under("docs/decisions/topics", "md");
    let named = topics.iter().flat_map(|path| named_notes(&fs::read_to_string(path).unwrap())).collect::<Vec<_>>();
    let notes = files_under("docs/decisions", "md").into_iter().map(|path| relative(&path));
    let notes = notes.filter_map(|name| Some(name.strip_prefix("docs/decisions/")?.to_string()));
    let notes = notes.filter(|name| is_note(&format!("decisions/{name}"))).collect::<Vec<_>>();
    assert!(notes.len() > 100 && named.len() == notes.len(), "{} notes, {} named", notes.len(), named.len());
    for note in notes {
        let count = named.iter().filter(|name| **name == note).count();
        assert_eq!(count, 1, "docs/decisions/{note}: one page of docs/decisions/topics names it in its last paragraph");
    }
    let planted = "# A\n\nText with [a link](../001-a.md).\n\nNotes: [002](../002-b.md),\n[003](../003-c.md).\n";
    assert_eq!(named_notes(planted), ["002-b.md", "003-c.md"]);
    assert!(named_notes(&planted.replace("Notes: ", "See ")).is_empty());
}

#[test]
fn sections_that_the_code_names_exist() {
    let mut missing = Vec::new();
    for file in rust_files() {
        for (page, section) in scan::page_references(&file.text) {
            let text = fs::read_to_string(root().join(&page)).unwrap_or_default();
            let wanted = section.as_deref();
            let exists = !text.is_empty() && wanted.is_none_or(|name| scan::headings(&text).any(|line| line == name));
            if !exists {
                missing.push(format!("{}: {page}, {section:?}", file.path));
            }
        }
    }
    assert!(missing.is_empty(), "the code points to pages or sections that do not exist:\n{}", missing.join("\n"));
}

/// Rows of the tables of a section whose cells name a file in the first or second place, and a function in the last.
fn named_in_section(page: &str, section: &str) -> Vec<(String, Option<String>)> {
    let text = page.split(&format!("\n## {section}\n")).nth(1).unwrap_or("");
    let text = text.split("\n## ").next().unwrap_or("");
    let code = |cell: &str| Some(cell.trim().strip_prefix('`')?.strip_suffix('`')?.to_string());
    let row = |line: &str| {
        let cells = line.trim_matches('|').split('|').map(code).collect::<Vec<_>>();
        let file = cells.iter().flatten().find(|name| name.ends_with(".rs"))?.clone();
        let function = cells.last().cloned().flatten().filter(|name| !name.contains(['.', ' ']));
        Some((file, function))
    };
    text.lines().filter(|line| line.starts_with('|')).filter_map(row).collect()
}

#[test]
fn the_reading_order_names_files_and_functions_that_exist() {
    let page = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let named = named_in_section(&page, "Reading order");
    assert!(named.len() >= 20 && named.iter().filter(|(_, function)| function.is_some()).count() >= 5, "{named:?}");
    for (file, function) in named {
        let text = fs::read_to_string(root().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let declares = |name: &String| text.contains(&format!("fn {name}(")) || text.contains(&format!("fn {name}<"));
        assert!(function.iter().all(declares), "{file} has no function {function:?}");
    }
    let planted = "\n## Reading order\n| 1 | `src/no.rs` | text |\n| why | `a.rs` | `f` |\n## Next\n| `b.rs` |\n";
    let expected = [("src/no.rs".into(), None), ("a.rs".into(), Some("f".into()))];
    assert_eq!(named_in_section(planted, "Reading order"), expected);
}

#[test]
fn every_bound_is_named_in_the_algorithm_page() {
    let page = fs::read_to_string(root().join("docs/ALGORITHM.md")).unwrap();
    let bounds = fs::read_to_string(root().join("kernels/src/math/bound.rs")).unwrap();
    let names: Vec<&str> = bounds
        .lines()
        .filter_map(|line| {
            line.strip_prefix("pub fn ").or(line.strip_prefix("pub const fn ")).or(line.strip_prefix("pub const "))
        })
        .map(|line| line.split(['(', ':', '<']).next().unwrap())
        .collect();
    assert!(names.len() > 5, "{names:?}");
    let missing: Vec<&&str> = names.iter().filter(|name| !page.contains(&format!("`{name}"))).collect();
    assert!(missing.is_empty(), "docs/ALGORITHM.md does not prove {missing:?}");
}

/// Each rule finds a violation planted for it, and nothing in the same code done well.
#[test]
fn the_rules_find_planted_violations() {
    let at = |path: &str, text: &str| File::new(path, text);
    let long = format!("//! A.\nfn f() {{\n{}}}\n", "    g();\n".repeat(69));
    assert_eq!(size_violations(&at("src/a.rs", &long)).len(), 1);
    assert_eq!(size_violations(&at("src/a.rs", &long.replacen("    g();\n", "", 1))).len(), 0);
    assert_eq!(size_violations(&at("src/a.rs", "fn f() {}\n")).len(), 1);
    assert_eq!(size_violations(&at("src/a.rs", &format!("//! {}\n", "x".repeat(117)))).len(), 1);
    assert_eq!(size_violations(&at("src/a.rs", &"//! A.\n".repeat(801))).len(), 1);

    let count = |path: &str, text: &str| unsafe_violations(&at(path, text)).len();
    assert_eq!(count("src/store/a.rs", "// SAFETY: none.\nunsafe { f() }\n"), 1);
    assert_eq!(count("kernels/src/tile/a.rs", "// SAFETY: none.\nunsafe { f() }\n"), 1);
    assert_eq!(count("src/ops/a.rs", "// SAFETY: none.\nunsafe { f() }\n"), 1);
    assert_eq!(count("kernels/src/store/a.rs", "let x = 1;\nunsafe { f() }\n"), 1);
    assert_eq!(count("kernels/src/store/a.rs", "// SAFETY: holds.\nlet x = g(\n    1,\n    unsafe { f() },\n);\n"), 0);
    assert_eq!(count("kernels/src/store/a.rs", "// SAFETY: holds.\nlet x = 1;\nunsafe { f() }\n"), 1);
    assert_eq!(count("kernels/src/store/a.rs", "/// # Safety\n/// Read it.\n#[inline]\npub unsafe fn f() {}\n"), 0);
    assert_eq!(count("kernels/src/store/a.rs", "/// # Safety\n/// Read it.\npub unsafe trait A {}\n"), 0);
    assert_eq!(count("kernels/src/store/a.rs", "/// Read it.\npub unsafe trait A {}\n"), 1);
    assert_eq!(count("bindings/c/src/a.rs", "/// Read it.\npub unsafe extern \"C\" fn f() {}\n"), 1);
    assert_eq!(count("bindings/c/src/a.rs", "/// # Safety\n/// Read it.\npub unsafe extern \"C\" fn f() {}\n"), 0);
    assert_eq!(count("bindings/c/src/a.rs", "/// Safety.\nunsafe extern \"C\" {}\n"), 1);
    assert_eq!(count("kernels/src/store/a.rs", "impl A for B {\n    unsafe fn f() {}\n}\n"), 0);
    assert_eq!(count("kernels/src/store/a.rs", "impl B {\n    unsafe fn f() {}\n}\n"), 1);
    assert_eq!(count("src/ops/a.rs", "let text = \"unsafe { }\"; // unsafe { }\n"), 0);

    let leftovers = |text: &str| leftover_violations(&at("src/a.rs", text)).len();
    assert_eq!(leftovers(concat!("fn f() { to", "do!() } // FIX", "ME\n")), 2);
    assert_eq!(leftovers(concat!("#[ig", "nore]\nfn f() {}\n")), 1);
    assert_eq!(leftovers("let ignore = 1; // XXXXXX is a file name pattern\n"), 0);
}
