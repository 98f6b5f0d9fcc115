//! The public interface of the library as a list of lines, read from the sources: names as users write them, signatures
//! as `cargo fmt` lays them out.
//!
//! Follows re-exports from `src/lib.rs`, also into the package of the kernels. What that package hides from its pages
//! (`#[doc(hidden)]`) is left out, and so is `sunzi::advanced`, which promises nothing. It is no compiler: an item that
//! a macro makes is not seen.

use super::scan::File;
use super::{root, rust_files};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A top-level item of a module, with the lines of its body.
struct Item<'a> {
    /// `struct`, `enum`, `fn`, ...
    kind: &'a str,
    /// First line of it.
    at: usize,
}

/// The words that begin an item that others may name.
const KINDS: [&str; 7] = ["struct", "enum", "fn", "trait", "const", "type", "static"];

/// The package whose names the library brings in, and the folders of the sources of both.
const LOWER: &str = "sunzi_kernels";
const LOWER_FOLDER: &str = "kernels/src";
const UPPER_FOLDER: &str = "src";

/// The modules of the library by path (`ops::syrk`; empty for the root, `sunzi_kernels::math` in the lower package),
/// each with the lines of its code.
pub struct Library<'a> {
    modules: BTreeMap<String, Vec<&'a str>>,
    files: BTreeMap<String, &'a str>,
}

impl<'a> Library<'a> {
    pub fn new(files: &'a [File]) -> Library<'a> {
        let mut library = Library { modules: BTreeMap::new(), files: BTreeMap::new() };
        for file in files {
            let lower = file.path.strip_prefix(LOWER_FOLDER).map(|path| format!("{LOWER}{path}"));
            let upper = file.path.strip_prefix(UPPER_FOLDER).and_then(|path| path.strip_prefix('/'));
            let Some(path) = lower.as_deref().or(upper) else { continue };
            let Some(path) = path.strip_suffix(".rs") else { continue };
            let path = if path == "lib" { "" } else { path };
            let path = path.strip_suffix("/mod").or(path.strip_suffix("/lib")).unwrap_or(path).replace('/', "::");
            library.modules.insert(path.clone(), file.code.lines().collect());
            library.files.insert(path, &file.path);
        }
        library
    }

    /// All lines of the list, sorted.
    pub fn list(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        self.list_module("", "sunzi", &mut found);
        found
    }

    fn list_module(&self, module: &str, shown: &str, found: &mut BTreeSet<String>) {
        let lines = &self.modules[module];
        for (name, path) in self.uses(module, |line| line.starts_with("pub use ")) {
            let inner = self.module(&path, 0).filter(|inner| self.is_public(inner));
            if let Some(inner) = &inner {
                self.list_module(inner, &format!("{shown}::{name}"), found);
            }
            match self.resolve(&path, 0) {
                Some((home, item)) => self.list_item(&home, &item, &format!("{shown}::{name}"), found),
                None if inner.is_some() => {}
                // Of another crate.
                None => {
                    found.insert(format!("use {shown}::{name}"));
                }
            }
        }
        for line in lines {
            let child = line.strip_prefix("pub mod ").and_then(|rest| rest.strip_suffix(';'));
            if let Some(child) = child.filter(|child| *child != "advanced") {
                let path = if module.is_empty() { child.to_string() } else { format!("{module}::{child}") };
                self.list_module(&path, &format!("{shown}::{child}"), found);
            }
        }
        if !module.is_empty() {
            let public = lines.iter().filter(|line| line.starts_with("pub "));
            for name in public.filter_map(|line| KINDS.iter().find_map(|kind| defined(line, kind))) {
                let item = item_of(lines, name).unwrap();
                self.list_item(module, &item, &format!("{shown}::{name}"), found);
            }
        }
    }

    /// Whether a module is declared for all: a function of the same name may be all that others see.
    fn is_public(&self, module: &str) -> bool {
        let (outer, name) = module.rsplit_once("::").unwrap_or(("", module));
        self.modules.get(outer).is_some_and(|lines| lines.contains(&format!("pub mod {name};").as_str()))
    }

    /// What the `use` lines of a module that pass `is_wanted` bring in: name and path from the root.
    fn uses(&self, module: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let lines = &self.modules[module];
        for at in (0..lines.len()).filter(|&at| is_wanted(lines[at])) {
            let text = statement(lines, at);
            let Some((_, tree)) = text.split_once("use ") else { continue };
            for path in leaves(tree.trim_end_matches(';')) {
                let (path, name) = match path.split_once(" as ") {
                    Some((path, name)) => (path.to_string(), name.to_string()),
                    None => (path.clone(), path.rsplit("::").next().unwrap().to_string()),
                };
                found.push((name, self.absolute(module, &path)));
            }
        }
        found
    }

    /// A path of a `use` in `module`, from the root of the library.
    fn absolute(&self, module: &str, path: &str) -> String {
        let mut base = module.to_string();
        let mut rest = path;
        if let Some(path) = rest.strip_prefix("crate::") {
            return if is_lower(module) { format!("{LOWER}::{path}") } else { path.to_string() };
        }
        while let Some(path) = rest.strip_prefix("super::") {
            base = base.rsplit_once("::").map_or(String::new(), |(outer, _)| outer.to_string());
            rest = path;
        }
        rest = rest.strip_prefix("self::").unwrap_or(rest);
        let first = rest.split("::").next().unwrap();
        let child = if base.is_empty() { first.to_string() } else { format!("{base}::{first}") };
        let is_local = path != rest || self.modules.contains_key(&child);
        match (is_local, base.is_empty()) {
            (true, false) => format!("{base}::{rest}"),
            _ => rest.to_string(),
        }
    }

    /// The module that defines what `path` names, and the item there.
    fn resolve(&self, path: &str, depth: usize) -> Option<(String, Item<'a>)> {
        let (module, name) = path.rsplit_once("::").unwrap_or(("", path));
        let module = &self.module(module, depth)?;
        if let Some(item) = item_of(&self.modules[module], name) {
            return Some((module.to_string(), item));
        }
        let through =
            self.uses(module, |line| line.starts_with("pub") && line.contains(" use ") || line.starts_with("use "));
        let (_, next) = through.into_iter().find(|(known, _)| known == name)?;
        if depth < 8 && next != path { self.resolve(&next, depth + 1) } else { None }
    }

    /// The module that `path` leads to, through re-exports of modules.
    fn module(&self, path: &str, depth: usize) -> Option<String> {
        if self.modules.contains_key(path) || depth > 8 {
            return Some(path.to_string()).filter(|path| self.modules.contains_key(path));
        }
        let (outer, name) = path.rsplit_once("::").unwrap_or(("", path));
        let outer = self.module(outer, depth + 1)?;
        let child = format!("{outer}::{name}");
        if self.modules.contains_key(&child) {
            return Some(child);
        }
        let (_, next) = self.uses(&outer, |line| line.contains("use ")).into_iter().find(|(known, _)| known == name)?;
        self.module(&next, depth + 1)
    }

    /// The item and, for a type, its public parts and methods.
    fn list_item(&self, module: &str, item: &Item, shown: &str, found: &mut BTreeSet<String>) {
        let lines = &self.modules[module];
        let kept = lines[..item.at].iter().rev().take_while(|line| line.starts_with("#[") || line.is_empty());
        let marked = kept.into_iter().any(|line| line.starts_with("#[non_exhaustive]"));
        let mark = if marked { "#[non_exhaustive] " } else { "" };
        let head = statement(lines, item.at);
        let head = head.trim_end_matches("{}").trim_end_matches(['{', ';', ' ']);
        let own = defined(lines[item.at], item.kind).unwrap();
        found.insert(format!("{mark}{}", head.replacen(own, shown, 1)));
        let public_only = item.kind == "struct";
        if matches!(item.kind, "struct" | "enum" | "trait") && lines[item.at..].iter().any(|line| line.ends_with('{')) {
            for part in parts(lines, item.at, is_lower(module)) {
                if !public_only || part.starts_with("pub ") {
                    found.insert(format!("{shown}: {}", part.trim_end_matches(',')));
                }
            }
        }
        if matches!(item.kind, "struct" | "enum") {
            self.list_methods(module, own, shown, found);
        }
    }

    /// Public methods in the files of the folder where the type is defined, and the traits that it has there. A type
    /// whose folder is a whole package may have traits of the other package, too.
    fn list_methods(&self, module: &str, name: &str, shown: &str, found: &mut BTreeSet<String>) {
        let file = self.files[module];
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_package = [LOWER_FOLDER, UPPER_FOLDER].contains(&folder);
        for (path, lines) in &self.modules {
            if !is_package && !self.files[path].starts_with(folder) {
                continue;
            }
            for at in (0..lines.len()).filter(|&at| lines[at].starts_with("impl")) {
                let head = statement(lines, at);
                let head = head.trim_end_matches(['{', '}', ' ']);
                let target = head.rsplit_once(" for ").map_or_else(|| without_generics(head), |(_, target)| target);
                if target.split(['<', ' ']).next() != Some(name) {
                    continue;
                }
                if head.contains(" for ") {
                    found.insert(format!("{shown}: {head}"));
                } else {
                    let methods = parts(lines, at, is_lower(path)).into_iter().filter(|part| part.starts_with("pub "));
                    let public = methods.filter(|part| !part.starts_with("pub(") && !part.is_empty());
                    found.extend(public.map(|part| format!("{shown}: {part}")));
                }
            }
        }
    }
}

/// Whether a module is one of the package of the kernels.
fn is_lower(module: &str) -> bool {
    module.split("::").next() == Some(LOWER)
}

/// `impl<'a> Name<'a>` without `impl<'a>`.
fn without_generics(head: &str) -> &str {
    let rest = head.strip_prefix("impl").unwrap();
    let mut depth = 0;
    for (at, letter) in rest.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if !rest[..at].ends_with('-') => depth -= 1,
            ' ' if depth == 0 => return &rest[at + 1..],
            _ => {}
        }
    }
    rest
}

/// The name that a line of code defines, where it defines a `kind`.
fn defined<'a>(line: &'a str, kind: &str) -> Option<&'a str> {
    let rest = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).or(line.strip_prefix("pub(super) "));
    let mut rest = rest.unwrap_or(line);
    for qualifier in ["const fn", "unsafe fn", "unsafe trait"] {
        if rest.starts_with(qualifier) && qualifier.ends_with(kind) {
            rest = rest.split_once(' ').unwrap().1;
        }
    }
    let name = rest.strip_prefix(kind)?.strip_prefix(' ')?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
    Some(&name[..end]).filter(|name| !name.is_empty() && *name != "fn")
}

fn item_of<'a>(lines: &[&'a str], name: &str) -> Option<Item<'a>> {
    let find = |kind: &'static str| {
        lines.iter().position(|line| defined(line, kind) == Some(name)).map(|at| Item { kind, at })
    };
    KINDS.iter().find_map(|kind| find(kind))
}

/// The text from line `at` to the brace or semicolon that ends its head, on one line.
fn statement(lines: &[&str], at: usize) -> String {
    let mut text = String::new();
    let is_use = lines[at].contains("use ");
    for line in &lines[at..] {
        let line = line.trim();
        if !text.is_empty() && !text.ends_with('(') && !text.ends_with('{') && !line.starts_with(')') {
            text.push(' ');
        }
        text.push_str(line);
        if line.ends_with(';') || !is_use && (line.ends_with('{') || line.ends_with('}')) {
            break;
        }
    }
    text.replace(",)", ")").replace(",}", "}")
}

/// Whether the attributes that end `above` hide what stands below them from the pages.
fn is_hidden(above: &[&str]) -> bool {
    let attributes = above.iter().rev().map(|line| line.trim());
    attributes.take_while(|line| line.is_empty() || line.starts_with("#[")).any(|line| line == "#[doc(hidden)]")
}

/// The members of the item that begins in line `at`: each from its first line at one level to where its head ends; with
/// `but_hidden` only those that the pages show.
fn parts(lines: &[&str], at: usize, but_hidden: bool) -> Vec<String> {
    let Some(open) = (at..lines.len()).find(|&line| lines[line].ends_with('{') || lines[line].ends_with('}')) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut line = open + 1;
    while lines[open].ends_with('{') && line < lines.len() && !lines[line].starts_with('}') {
        let is_member =
            lines[line].starts_with("    ") && lines[line][4..].starts_with(|letter: char| letter.is_alphabetic());
        if is_member && !(but_hidden && is_hidden(&lines[open + 1..line])) {
            let mut text = String::new();
            loop {
                let piece = lines[line].trim();
                text = format!("{text}{}{piece}", if text.is_empty() || text.ends_with('(') { "" } else { " " });
                let ends = piece.ends_with([',', ';', '{', '}'])
                    && text.matches(['(', '{']).count() <= text.matches([')', '}']).count();
                if ends || piece.ends_with('{') && text.contains("fn ") || line + 1 == lines.len() {
                    break;
                }
                line += 1;
            }
            let text = text.split_once(" {").filter(|_| text.contains("fn ")).map_or(text.as_str(), |(head, _)| head);
            found.push(text.trim_end_matches([';', ' ']).replace(", )", ")"));
        }
        line += 1;
    }
    found
}

/// The paths of a tree of names: `a::{b, c::{d, e}}` has `a::b`, `a::c::d`, `a::c::e`.
fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else { return vec![tree.to_string()] };
    let rest = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let mut found = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in rest.char_indices().chain([(rest.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let piece = rest[start..at].trim();
                if !piece.is_empty() {
                    found.extend(leaves(piece).iter().map(|leaf| format!("{prefix}{leaf}")));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// The list as a file: `SUNZI_WRITE_API=1` writes it anew.
const LIST: &str = "docs/public-api.txt";

fn list_of(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_string).collect()
}

#[test]
fn the_list_of_public_items_is_current() {
    let files = rust_files();
    let lines = Library::new(&files).list();
    let path = root().join(LIST);
    if std::env::var_os("SUNZI_WRITE_API").is_some() {
        std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }
    let known = list_of(&std::fs::read_to_string(&path).unwrap_or_default());
    let missing = lines.difference(&known).map(|line| format!("+ {line}\n")).collect::<String>();
    let gone = known.difference(&lines).map(|line| format!("- {line}\n")).collect::<String>();
    let how = "`SUNZI_WRITE_API=1 cargo test --test tidy public` writes it anew";
    assert!(missing.is_empty() && gone.is_empty(), "{LIST} is not that of the sources:\n{missing}{gone}{how}");
    assert!(lines.len() > 1000, "{} items are too few", lines.len());
}

/// Modules of the library whose functions are verbs, as those of the root are.
const VERBS: [&str; 11] = [
    "ball",
    "batch",
    "blas",
    "distributed",
    "double",
    "eigenvalue",
    "estimate",
    "out_of_core",
    "plans",
    "sparse",
    "verify",
];

/// Functions of these names, at the top of a file of operations, whose page has no example. What a verb does in memory
/// of the caller is shown by the verb itself.
fn without_example(file: &File, names: &BTreeSet<&str>) -> Vec<String> {
    let lines = file.text.lines().collect::<Vec<_>>();
    let verbs = lines.iter().enumerate().filter_map(|(at, line)| {
        let name = line.strip_prefix("pub fn ")?.split(['(', '<']).next()?;
        Some((at, name)).filter(|(_, name)| names.contains(name) && !name.ends_with("_into"))
    });
    let bare = verbs.filter(|(at, _)| {
        let page = lines[..*at].iter().rev().take_while(|line| line.starts_with("///") || line.starts_with("#["));
        page.filter(|line| line.starts_with("/// ```")).count() < 2
    });
    bare.map(|(at, name)| format!("{}:{}: {name} has no example", file.path, at + 1)).collect()
}

#[test]
fn every_verb_has_an_example() {
    let files = rust_files();
    let list = Library::new(&files).list();
    let names = list.iter().filter_map(|line| {
        let path = line.strip_prefix("pub fn sunzi::")?.split(['(', '<']).next()?;
        match path.split_once("::") {
            None => Some(path),
            Some((module, name)) => VERBS.contains(&module).then_some(name),
        }
    });
    let names = names.collect::<BTreeSet<_>>();
    assert!(names.len() > 100, "{} verbs", names.len());
    let found = files.iter().filter(|file| file.path.starts_with("src/ops/"));
    let found = found.flat_map(|file| without_example(file, &names)).collect::<Vec<_>>();
    assert!(found.is_empty(), "{}", found.join("\n"));
    let planted =
        "/// A.\n///\n/// ```\n/// f();\n/// ```\npub fn f() {}\n\n/// B.\npub fn g<T>() {}\npub fn f_into() {}\n";
    let planted = File::new("src/ops/a.rs", planted);
    assert_eq!(without_example(&planted, &["f", "g", "f_into"].into()), ["src/ops/a.rs:9: g has no example"]);
}

/// What a release may take away: nothing, unless its version says so (the minor number before 1.0, then the major one).
fn is_new_series(old: &str, new: &str) -> bool {
    let series = |version: &str| {
        let numbers = version.split('.').map(str::to_string).collect::<Vec<_>>();
        if numbers[0] == "0" { numbers[..2].join(".") } else { numbers[0].clone() }
    };
    series(old) != series(new)
}

/// Items that were in the last release and are gone, or have another signature, ask for a version of a new series.
#[test]
fn the_version_tells_what_public_items_went_away() {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_string())
    };
    let Some(tag) = git(&["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]) else {
        println!("skipped: public items against the last release: no tag v* is there");
        return;
    };
    let Some(old) = git(&["show", &format!("{tag}:{LIST}")]) else {
        println!("skipped: public items against the last release: {tag} has no {LIST}");
        return;
    };
    let now = list_of(&std::fs::read_to_string(root().join(LIST)).unwrap());
    let gone = list_of(&old).difference(&now).map(|line| format!("- {line}\n")).collect::<String>();
    let version = env!("CARGO_PKG_VERSION");
    assert!(gone.is_empty() || is_new_series(&tag[1..], version), "{version} lacks items of {tag}:\n{gone}");
}

/// Lines that name `sunzi::advanced`, in whatever way.
fn advanced_lines(file: &File) -> Vec<String> {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let names = |line: &str| line.split(|letter| !is_letter(letter)).any(|word| word == "advanced");
    let lines = file.code.lines().enumerate().filter(|(_, line)| names(line));
    lines.map(|(at, line)| format!("{}:{}: {}", file.path, at + 1, line.trim())).collect()
}

/// Lines of a file of the solver that use more than the library promises: its tests may ask how long they are to run.
fn unpromised_lines(file: &File) -> Vec<String> {
    let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    let mut found = advanced_lines(file);
    found.retain(|line| !(is_test && line.contains("sunzi::advanced::testing::")));
    found
}

/// The solver stands on what the library promises. Its tests may count what is allocated.
#[test]
fn the_solver_uses_the_public_interface_alone() {
    let files = rust_files();
    let solver = files.iter().filter(|file| file.path.starts_with("sdp/") && !file.path.starts_with("sdp/tests/"));
    assert!(solver.clone().count() > 50);
    let found = solver.flat_map(unpromised_lines).collect::<Vec<_>>();
    assert!(found.is_empty(), "the solver uses what promises nothing:\n{}", found.join("\n"));
    for planted in ["use sunzi::advanced::plan::assign;\n", "use sunzi::{\n    Matrix, advanced,\n};\n"] {
        assert_eq!(unpromised_lines(&File::new("sdp/src/a.rs", planted)).len(), 1, "{planted}");
        assert_eq!(unpromised_lines(&File::new("sdp/src/a/tests.rs", planted)).len(), 1, "{planted}");
    }
    let effort = "fn f() { sunzi::advanced::testing::effort() }\n";
    assert_eq!(unpromised_lines(&File::new("sdp/src/a.rs", effort)).len(), 1);
    assert!(unpromised_lines(&File::new("sdp/src/a/tests.rs", effort)).is_empty());
    let innocent = "// sunzi::advanced is not used\nfn f() { more_advanced() }\n";
    assert!(unpromised_lines(&File::new("sdp/src/a.rs", innocent)).is_empty());
}

#[test]
fn items_are_found_through_re_exports() {
    let file = |path: &str, text: &str| File::new(path, text);
    let fields = "#[non_exhaustive]\npub struct One {\n    pub x: u8,\n    y: u8,\n}\n";
    let methods = "impl One {\n    pub fn x(&self) -> u8 {\n        self.x\n    }\n    fn y(&self) {}\n}\n";
    let make = "pub fn make(\n    x: u8,\n) -> One {\n    One\n}\nfn hidden() {}\n";
    let files = [
        file("src/lib.rs", "mod a;\npub mod b;\npub use a::{One, make as build};\n"),
        file("src/a/mod.rs", &format!("mod c;\npub use c::One;\n{make}")),
        file("src/a/c.rs", &format!("{fields}{methods}impl Clone for One {{}}\n")),
        file("src/b.rs", "pub enum Two {\n    A,\n    B { x: u8 },\n}\npub(crate) fn none() {}\n"),
    ];
    let found = Library::new(&files).list();
    let found = found.iter().map(String::as_str).collect::<Vec<_>>();
    let wanted = [
        "#[non_exhaustive] pub struct sunzi::One",
        "pub enum sunzi::b::Two",
        "pub fn sunzi::build(x: u8) -> One",
        "sunzi::One: impl Clone for One",
        "sunzi::One: pub fn x(&self) -> u8",
        "sunzi::One: pub x: u8",
        "sunzi::b::Two: A",
        "sunzi::b::Two: B { x: u8 }",
    ];
    assert_eq!(found, wanted);
    assert!(is_new_series("0.1.4", "0.2.0") && is_new_series("1.2.0", "2.0.0"));
    assert!(!is_new_series("0.1.4", "0.1.5") && !is_new_series("1.2.0", "1.3.0"));
}

/// What the library shows of the package of the kernels is listed, under the library's names; nothing else of it is.
#[test]
fn items_are_found_in_the_package_of_the_kernels() {
    let file = |path: &str, text: &str| File::new(path, text);
    let fields = "#[non_exhaustive]\npub struct Three {\n    pub z: u8,\n}\n";
    let hidden = "    #[doc(hidden)]\n    #[inline]\n    pub fn x(\n        &self,\n    ) {}\n";
    let methods = format!("impl Three {{\n{hidden}    pub fn y(&self) {{}}\n}}\n");
    let uses = "pub use a::{Four, make};\npub use b::Three;";
    let makes = "use crate::b::Three;\npub fn make() -> Three {\n    Three\n}\npub trait Four: Into<Three> {}\n";
    let files = [
        file(
            "src/lib.rs",
            &["mod a;", "use sunzi_kernels::{b, c};", uses, "pub use c::depth::deep;", "pub use rug;\n"].join("\n"),
        ),
        file("src/a.rs", makes),
        file("kernels/src/lib.rs", "pub mod b;\npub mod c;\n"),
        file("kernels/src/b.rs", "pub use crate::c::inner::Three;\npub struct Unseen {}\n"),
        file("kernels/src/c/mod.rs", "pub mod depth;\npub mod inner;\n"),
        file("kernels/src/c/inner.rs", &format!("{fields}{methods}impl Clone for Three {{}}\n")),
        file("kernels/src/c/depth.rs", "pub fn deep() {}\npub fn unseen() {}\n"),
    ];
    let found = Library::new(&files).list();
    let wanted = [
        "#[non_exhaustive] pub struct sunzi::Three",
        "pub fn sunzi::deep()",
        "pub fn sunzi::make() -> Three",
        "pub trait sunzi::Four: Into<Three>",
        "sunzi::Three: impl Clone for Three",
        "sunzi::Three: pub fn y(&self)",
        "sunzi::Three: pub z: u8",
        "use sunzi::rug",
    ];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), wanted);
}
