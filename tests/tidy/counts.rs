//! Counts that may only fall: circles, tuples among parameters, names that stand twice, large traits, vague comments.
//!
//! `counts.txt` says what there is, and the test fails where there is more. Where there is less it fails as well, until
//! the file says so: `SUNZI_WRITE_COUNTS=1` writes it. So a number can only fall.

use super::imports::Package;
use super::scan::File;
use super::{root, rust_files};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The sources of each package.
pub const PACKAGES: [&str; 9] = [
    "src/",
    "kernels/src/",
    "session/src/",
    "lab/src/",
    "laf/src/",
    "sdp/src/",
    "cli/src/",
    "bindings/c/src/",
    "bindings/python/src/",
];

/// Methods that a trait may have without being listed.
const TRAIT_METHODS: usize = 15;

/// What there is of each kind in a package: entries of a list, or a number.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    List(BTreeSet<String>),
    /// With the places, for messages.
    Number(usize, Vec<String>),
}

impl Found {
    fn text(&self) -> String {
        match self {
            Found::List(list) => list.iter().cloned().collect::<Vec<_>>().join(", "),
            Found::Number(number, _) => number.to_string(),
        }
    }

    fn is_none(&self) -> bool {
        matches!(self.text().as_str(), "" | "0")
    }

    /// What is there beyond what `known` says.
    fn beyond(&self, known: &str) -> Vec<String> {
        match self {
            Found::List(list) => {
                let known = known.split(", ").collect::<BTreeSet<_>>();
                list.iter().filter(|entry| !known.contains(entry.as_str())).cloned().collect()
            }
            Found::Number(number, places) => {
                let known = known.parse::<usize>().unwrap_or(0);
                if *number > known { places.clone() } else { Vec::new() }
            }
        }
    }
}

/// The number of parameters in a tuple of two parts or more, and of those with two parts of one type.
fn tuples(files: &[&File]) -> [Found; 2] {
    let mut places = [Vec::new(), Vec::new()];
    for file in files {
        for (line, parts) in file.tuples(false) {
            let place = format!("{}:{line}: ({})", file.path, parts.join(", "));
            if parts.iter().collect::<BTreeSet<_>>().len() < parts.len() {
                places[1].push(place.clone());
            }
            places[0].push(place);
        }
    }
    places.map(|places| Found::Number(places.len(), places))
}

fn names_twice(files: &[&File]) -> Found {
    let mut counts = BTreeMap::<String, usize>::new();
    for (_, name) in files.iter().flat_map(|file| file.declared()) {
        *counts.entry(name).or_default() += 1;
    }
    Found::List(counts.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name).collect())
}

fn large_traits(files: &[&File]) -> Found {
    let traits = files.iter().flat_map(|file| file.traits()).filter(|(_, _, methods)| *methods > TRAIT_METHODS);
    Found::List(traits.map(|(_, name, methods)| format!("{name} {methods}")).collect())
}

/// Words of comments that leave a number or a place unnamed where a name would be plainer.
const VAGUE: [&str; 2] = ["so many", "beside"];

/// Lines of comments with such a word. A line is read as it stands, so that two lines of a sentence are two.
fn vague_comments(files: &[&File]) -> Found {
    let mut places = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let Some((_, comment)) = line.split_once("//").filter(|(code, _)| !code.contains('"')) else { continue };
            let words = comment.split(|letter: char| !letter.is_alphabetic()).collect::<Vec<_>>().join(" ");
            if VAGUE.iter().any(|vague| format!(" {words} ").contains(&format!(" {vague} "))) {
                places.push(format!("{}:{}: {}", file.path, index + 1, comment.trim()));
            }
        }
    }
    Found::Number(places.len(), places)
}

/// All that is counted of these files, by package and kind.
fn counted(files: &[File]) -> Vec<(String, Found)> {
    let mut found = Vec::new();
    for package in PACKAGES {
        let is_test = |file: &&File| file.path.contains("/tests/") || file.path.ends_with("tests.rs");
        let own = files.iter().filter(|file| file.path.starts_with(package) && !is_test(file)).collect::<Vec<_>>();
        let [all, alike] = tuples(&own);
        let circles = Package::new(files, package).circles().into_iter().collect();
        let kinds = [
            ("circles", Found::List(circles)),
            ("parameters that are tuples", all),
            ("of them with two parts of one type", alike),
            ("names of types that stand twice", names_twice(&own)),
            ("traits of more than 15 methods", large_traits(&own)),
            ("vague comments", vague_comments(&own)),
        ];
        let kinds = kinds.into_iter().filter(|(_, found)| !found.is_none());
        found.extend(kinds.map(|(kind, found)| (format!("{package} {kind}"), found)));
    }
    found
}

#[test]
fn there_is_less_from_change_to_change() {
    let path = root().join("tests/tidy/counts.txt");
    let known = fs::read_to_string(&path).unwrap_or_default();
    let known = known.lines().filter_map(|line| line.split_once(": ")).collect::<BTreeMap<_, _>>();
    let found = counted(&rust_files());
    let more = found.iter().flat_map(|(kind, found)| {
        let beyond = found.beyond(known.get(kind.as_str()).copied().unwrap_or(""));
        beyond.into_iter().map(move |entry| format!("{kind}: {entry}"))
    });
    let more = more.collect::<Vec<_>>();
    let text = found.iter().map(|(kind, found)| format!("{kind}: {}\n", found.text())).collect::<String>();
    assert!(more.is_empty(), "more than tests/tidy/counts.txt says:\n{}", more.join("\n"));
    if std::env::var_os("SUNZI_WRITE_COUNTS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == written, "there is less than before: SUNZI_WRITE_COUNTS=1 writes tests/tidy/counts.txt");
}

#[test]
fn what_is_planted_is_counted() {
    let file = |path: &str, text: &str| File::new(path, text);
    let one = file("src/a.rs", "fn f((a, b): (u8, u8), c: &dyn Fn(u8, u8)) -> (u8, u8) {}\npub struct A;\nenum B {}\n");
    let two = file("src/b.rs", "fn g(a: (u8, Vec<(u8, u16)>)) {}\npub(crate) trait A {\n    fn f();\n}\nstruct C;\n");
    let [all, alike] = tuples(&[&one, &two]);
    assert_eq!((all.text(), alike.text()), ("3".into(), "1".into()), "{all:?}");
    assert_eq!(names_twice(&[&one, &two]).text(), "A");
    assert_eq!(names_twice(&[&two]).text(), "");
    let methods = "    fn f(&self);\n".repeat(16);
    let large = file("src/c.rs", &format!("pub trait Large {{\n{methods}}}\ntrait Small {{\n    fn f();\n}}\n"));
    assert_eq!(large_traits(&[&large]).text(), "Large 16");
    assert_eq!(Found::List(["A".into(), "B".into()].into()).beyond("A, C"), ["B"]);
    let said =
        ["let a = 1; // so many", "/// A band, and what", "/// lies beside it.", "let b = \"beside // so many\";"];
    let said = said.join("\n");
    assert_eq!(vague_comments(&[&file("src/e.rs", &said)]).text(), "2");
    let number = Found::Number(2, vec!["x".into(), "y".into()]);
    assert_eq!((number.beyond("2").len(), number.beyond("1").len(), number.beyond("").len()), (0, 2, 2));
    let tested = file("src/d.rs", "#[cfg(test)]\nmod tests {\n    struct D;\n    fn f(a: (u8, u8)) {}\n}\n");
    assert!(tuples(&[&tested])[0].is_none() && tested.declared().is_empty());
}
