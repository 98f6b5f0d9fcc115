//! Words that a reader of the field would have to read twice, in all texts for users: pages, help, messages,
//! documentation, the C header, Python's docstrings.
//!
//! `language.txt` has the number of places that are left in each text, and the test fails if there are more. If there
//! are fewer it fails as well, until `SUNZI_WRITE_COUNTS=1` has written the file: a number can only fall.

use super::counts::PACKAGES;
use super::scan::{self, File};
use super::{files_under, pages, relative, root, rust_files};
use std::collections::BTreeMap;
use std::fs;

/// Words and what to write in their place. A `^` stands for the beginning of a sentence.
const WORDS: [(&str, &str); 76] = [
    ("so many", "the number, or a name for it"),
    ("so much", "the amount, or a name for it"),
    ("as many as", "the number itself, 'equal to'"),
    ("beside", "next to, compared with, in addition to"),
    ("besides", "in addition to"),
    ("alone", "only, in one process"),
    ("told", "given, stated, received"),
    ("tell", "show, state, decide"),
    ("tells", "shows, states, decides"),
    ("said", "stated"),
    ("say", "state, show"),
    ("says", "states, shows"),
    ("ask", "request, require"),
    ("asks", "requests, requires"),
    ("asked", "requested, required"),
    ("knows", "has, records"),
    ("would do", "suffices"),
    ("is no", "is not a"),
    ("are no", "are not"),
    ("is none", "does not exist, is not one"),
    ("has room", "fits"),
    ("have room", "fit"),
    ("no room", "not enough memory"),
    ("on the way", "in transit, during the call"),
    ("on its way", "in transit"),
    ("on their way", "in transit"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("goes together", "matches"),
    ("go together", "match"),
    ("dealt", "distributed"),
    ("deals out", "distributes"),
    ("deal out", "distribute"),
    ("hands out", "returns, passes"),
    ("handed out", "returned, passed"),
    ("outgrow", "exceed the range of"),
    ("outgrows", "exceeds the range of"),
    ("is meant", "a noun: the option selects"),
    ("are meant", "a noun: the option selects"),
    ("as it lies", "in place, without a copy"),
    ("as they lie", "in place, without a copy"),
    ("as it stands", "exactly"),
    ("as they stand", "exactly"),
    ("makes no sense", "is not valid"),
    ("make no sense", "are not valid"),
    ("what is there", "a noun: what exists"),
    ("what there is", "a noun: what exists"),
    ("what it takes", "a noun: its memory, its time"),
    ("what else", "a noun"),
    ("whoever", "a noun: the caller"),
    ("right sides", "right-hand sides"),
    ("the most that", "the largest number of"),
    ("triangle that counts", "the triangle that is read"),
    ("part that counts", "the part that is used"),
    ("looks at", "reads, checks"),
    ("looked at", "read, checked"),
    ("^takes in", "reads, adds, processes"),
    ("taken in", "read, added"),
    ("finds out", "detects"),
    ("learns", "receives, detects"),
    ("forgets", "removes"),
    ("remembers", "records"),
    ("nothing but", "only"),
    ("at hand", "available"),
    ("as they come", "in their order"),
    ("^what", "a noun"),
    ("^whatever", "a noun"),
    ("^which", "a noun"),
    ("^why", "a noun: the reason"),
    ("^those of", "a noun: the errors of"),
    ("^those that", "a noun"),
    ("^those which", "a noun"),
    ("^those in", "a noun"),
    ("^that of", "a noun"),
    ("^the one that", "a noun"),
    ("^the ones that", "a noun"),
];

/// Phrases in which the words are right, each with its reason.
const ALLOWED: [(&str, &str); 15] = [
    ("why high precision", "a question"),
    ("else code is none", "the value None of Python"),
    ("proofs , beside , small", "the name of a page"),
    ("which is", "the beginning of a relative clause after a formula"),
    ("that is to say", "an idiom"),
    ("is no longer", "a comparison"),
    ("are no longer", "a comparison"),
    ("is no more", "a comparison"),
    ("are no more", "a comparison"),
    ("is no larger", "a comparison"),
    ("is no smaller", "a comparison"),
    ("there is no", "names what is missing"),
    ("there are no", "names what is missing"),
    ("there is none", "names what is missing"),
    ("let alone", "an idiom"),
];

/// A piece of text for users and its first line.
#[derive(Debug)]
struct Text {
    line: usize,
    text: String,
}

/// The words of each sentence in lower case, with a comma for any punctuation; code and placeholders of messages are
/// one word each.
fn sentences(text: &str) -> Vec<String> {
    let text = text.split('`').enumerate().map(|(at, part)| if at % 2 == 1 { "code" } else { part });
    let text = text.collect::<String>();
    let parts = text.split('{').enumerate().map(|(at, part)| match part.split_once('}') {
        Some((_, behind)) if at > 0 => format!("code{behind}"),
        _ => part.to_string(),
    });
    let text = parts.collect::<String>();
    let mut found = vec![String::from(" ")];
    let mut ends = false;
    for word in text.split_whitespace() {
        if ends && word.chars().next().is_some_and(|first| !first.is_lowercase()) {
            found.push(String::from(" "));
        }
        let sentence = found.last_mut().expect("one is open");
        for letter in word.to_lowercase().chars() {
            match letter {
                letter if letter.is_alphanumeric() || letter == '\'' => sentence.push(letter),
                _ if sentence.ends_with(", ") => {}
                _ if sentence.ends_with(' ') => sentence.push_str(", "),
                _ => sentence.push_str(" , "),
            }
        }
        if !sentence.ends_with(' ') {
            sentence.push(' ');
        }
        ends = word.trim_end_matches([')', '"', '*', '_', '|']).ends_with(['.', '!', '?', ':', '|']);
    }
    found
}

/// The words of the list that a text has, once for each place, and the sentences that have them.
fn unclear_sentences(text: &str) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for sentence in sentences(text) {
        found.extend(unclear_words(&sentence).into_iter().map(|words| (words, sentence.trim().to_string())));
    }
    found
}

/// The words of the list that a text has, once for each place.
fn unclear(text: &str) -> Vec<&'static str> {
    unclear_sentences(text).into_iter().map(|(words, _)| words).collect()
}

fn unclear_words(sentence: &str) -> Vec<&'static str> {
    let (mut found, mut sentence) = (Vec::new(), sentence.to_string());
    for (phrase, _) in ALLOWED {
        sentence = sentence.replace(&format!(" {phrase} "), " , ");
    }
    let start = sentence.trim_start_matches([' ', ',']);
    for (words, _) in WORDS {
        match words.strip_prefix('^') {
            Some(first) => found.extend(start.starts_with(&format!("{first} ")).then_some(words)),
            None => found.extend(sentence.match_indices(&format!(" {words} ")).map(|_| words)),
        }
    }
    found
}

/// Paragraphs of the lines of a comment or a page; blocks of code are left out. A heading and an item of a list are
/// paragraphs.
fn paragraphs<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Text> {
    let (mut found, mut in_code, mut open) = (Vec::<Text>::new(), false, false);
    for (line, text) in lines {
        let text = text.trim();
        if text.starts_with("```") {
            (in_code, open) = (!in_code, false);
            continue;
        }
        if in_code || text.is_empty() {
            open = false;
            continue;
        }
        let begins = ["- ", "* ", "#", "|", "//"].iter().any(|mark| text.starts_with(mark));
        match found.last_mut().filter(|_| open && !begins) {
            Some(last) => {
                last.text.push(' ');
                last.text.push_str(text);
            }
            None => found.push(Text { line, text: text.to_string() }),
        }
        open = !text.starts_with('#');
    }
    found
}

/// Whether the item at `line` is one that the package shows: public, or a part of a public type.
fn is_public(line: &str) -> bool {
    let hidden = ["pub(", "fn ", "struct ", "enum ", "trait ", "const ", "type ", "mod ", "impl", "static "];
    let more = ["unsafe ", "use ", "macro", "let ", "async "];
    line.starts_with("pub ") || !hidden.iter().chain(&more).any(|word| line.starts_with(word))
}

/// The documentation of public items, and of modules, outside tests.
fn documentation(file: &File) -> Vec<Text> {
    let kept = file.library_code();
    let lines = file.text.lines().zip(kept.lines()).map(|(text, kept)| if kept.is_empty() { "" } else { text.trim() });
    let lines = lines.collect::<Vec<_>>();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let mark = ["///", "//!"].into_iter().find(|mark| lines[at].starts_with(mark));
        let Some(mark) = mark else {
            at += 1;
            continue;
        };
        let length = lines[at..].iter().take_while(|line| line.starts_with(mark)).count();
        let block = lines[at..at + length].iter().enumerate();
        let block = block.map(|(index, line)| (at + index + 1, &line[3..]));
        let item = lines[at + length..].iter().find(|line| !line.is_empty() && !line.starts_with(['#', ')', '"', '/']));
        if mark == "//!" || item.is_some_and(|item| is_public(item)) {
            found.extend(paragraphs(block));
        }
        at += length;
    }
    found
}

/// The literals of a file with three words or more, outside tests.
fn messages(file: &File) -> Vec<Text> {
    let kept = file.library_code();
    let inside = kept.lines().map(|line| !line.is_empty()).collect::<Vec<_>>();
    let literals = scan::literals(&file.text).into_iter();
    let literals = literals.filter(|(line, text)| {
        let words = text.split(' ').filter(|word| word.chars().filter(|letter| letter.is_alphabetic()).count() > 1);
        words.count() > 2 && inside.get(line - 1).copied().unwrap_or(false)
    });
    literals.map(|(line, text)| Text { line, text }).collect()
}

/// The strings of a Python file: docstrings, and literals on one line.
fn python_strings(text: &str) -> Vec<Text> {
    let mut found = Vec::new();
    let mut line = 1;
    for (index, part) in text.split("\"\"\"").enumerate() {
        if index % 2 == 1 {
            let lines = part.lines().enumerate().filter(|(_, text)| !text.trim_start().starts_with(['>', '.']));
            found.extend(paragraphs(lines.map(|(offset, text)| (line + offset, text))));
        } else {
            let literals = part.lines().enumerate().flat_map(|(offset, code)| {
                let texts = code.split('"').skip(1).step_by(2).filter(|text| text.split(' ').count() > 2);
                texts.map(move |text| (line + offset, text.to_string()))
            });
            found.extend(literals.map(|(line, text)| Text { line, text }));
        }
        line += part.matches('\n').count();
    }
    found
}

/// The comments of the C header.
fn header_comments(text: &str) -> Vec<Text> {
    let lines = text.lines().enumerate();
    paragraphs(lines.map(|(index, line)| (index + 1, line.trim_start().strip_prefix("//").unwrap_or(""))))
}

/// Places of unclear words in some texts of the file at `path`.
fn places(path: &str, texts: &[Text]) -> Vec<String> {
    let one = |text: &Text| {
        let line = text.line;
        let found = unclear_sentences(&text.text).into_iter();
        found.map(|(words, sentence)| format!("{path}:{line}: '{words}': {sentence}")).collect::<Vec<_>>()
    };
    texts.iter().flat_map(one).collect()
}

/// Places of unclear words by the kind of text: each page, and the documentation and the messages of each package.
fn all_places() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for (path, text) in pages().into_iter().filter(|(path, _)| is_counted(path)) {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        found.entry(path.clone()).or_default().extend(places(&path, &paragraphs(lines)));
    }
    let files = rust_files();
    for package in PACKAGES {
        let is_test = |file: &&File| file.path.contains("/tests/") || file.path.ends_with("tests.rs");
        for file in files.iter().filter(|file| file.path.starts_with(package) && !is_test(file)) {
            let documented = places(&file.path, &documentation(file));
            let literal = places(&file.path, &messages(file));
            found.entry(format!("{package} documentation")).or_default().extend(documented);
            found.entry(format!("{package} messages")).or_default().extend(literal);
        }
    }
    let python = ["py", "pyi"].iter().flat_map(|ending| files_under("bindings/python/python", ending));
    for path in python {
        let texts = python_strings(&fs::read_to_string(&path).unwrap());
        found.entry("Python's docstrings".to_string()).or_default().extend(places(&relative(&path), &texts));
    }
    let header = "bindings/c/include/sunzi.h";
    let texts = header_comments(&fs::read_to_string(root().join(header)).unwrap());
    found.insert(header.to_string(), places(header, &texts));
    found.retain(|_, places| !places.is_empty());
    found
}

/// Pages that users read: not the decisions and the notes of the project's history.
fn is_counted(path: &str) -> bool {
    !["docs/decisions/", "docs/history/", "CONTRIBUTING.md"].iter().any(|start| path.starts_with(start))
}

#[test]
fn texts_for_users_have_the_words_of_the_field() {
    let path = root().join("tests/tidy/language.txt");
    let known = fs::read_to_string(&path).unwrap_or_default();
    let known = known.lines().filter_map(|line| line.split_once(": "));
    let known = known.map(|(kind, number)| (kind, number.parse::<usize>().unwrap())).collect::<BTreeMap<_, _>>();
    let found = all_places();
    let more = found.iter().filter(|(kind, places)| places.len() > known.get(kind.as_str()).copied().unwrap_or(0));
    let more = more.flat_map(|(_, places)| places.iter().cloned()).collect::<Vec<_>>();
    let text = found.iter().map(|(kind, places)| format!("{kind}: {}\n", places.len())).collect::<String>();
    assert!(more.is_empty(), "more than tests/tidy/language.txt allows:\n{}\n{}", more.join("\n"), advice());
    if std::env::var_os("SUNZI_WRITE_COUNTS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == written, "there are fewer than before: SUNZI_WRITE_COUNTS=1 writes tests/tidy/language.txt");
}

/// The list of words with their replacements, for the message of the test.
fn advice() -> String {
    WORDS.iter().map(|(words, instead)| format!("  '{words}': {instead}\n")).collect()
}

#[test]
fn planted_words_are_found() {
    for (words, _) in WORDS {
        let (start, words_only) = (words.strip_prefix('^'), words.trim_start_matches('^'));
        let mut first = words_only.to_string();
        first[..1].make_ascii_uppercase();
        assert!(unclear(&format!("{first} bits are left.")).contains(&words), "{words} begins a sentence");
        let inside = unclear(&format!("A matrix, {words_only} 2 bits."));
        assert_eq!(inside.is_empty(), start.is_some(), "{words}: {inside:?}");
        assert!(unclear(&format!("A `{words_only}` in {{{words_only}}}; x{words_only}x.")).is_empty(), "{words}");
    }
    for (phrase, _) in ALLOWED {
        assert!(unclear(&format!("A matrix {phrase} here.")).is_empty(), "{phrase}");
    }
    assert_eq!(unclear("It is told. So\nmany bits; those of A. Those of B."), ["told", "so many", "^those of"]);
    let lines = |texts: Vec<Text>| {
        let lines = texts.iter().flat_map(|text| vec![text.line; unclear(&text.text).len()]);
        lines.collect::<Vec<_>>()
    };
    let code = "//! Beside it.\n\n/// What is\n/// told.\npub fn f() {}\n/// Told.\n";
    let code = format!("{code}fn g() {{ h(\"it is told so\"); }} // told\n");
    let tests = "#[cfg(test)]\nmod tests {\n    /// Told.\n    pub fn f() { g(\"all of it told\"); }\n}\n";
    let file = File::new("src/a.rs", &format!("{code}{tests}"));
    assert_eq!(lines(documentation(&file)), [1, 3, 3]);
    assert_eq!(lines(messages(&file)), [7]);
    let part = File::new("src/a.rs", "/// One.\npub enum A {\n    /// So many.\n    #[b]\n    C,\n}\n");
    assert_eq!(lines(documentation(&part)), [3]);
    let python = "def f():\n    \"\"\"Sum.\n\n    So many.\n    >>> told\n    \"\"\"\n    g(\"it was told\")  # said\n";
    assert_eq!(lines(python_strings(python)), [4, 7]);
    assert_eq!(lines(header_comments("// Those\n// of A.\nint told;\n")), [1]);
    let page = "# What runs\n\nText\n```\ntold\n```\n- beside\n";
    let page = page.lines().enumerate().map(|(index, line)| (index + 1, line));
    assert_eq!(lines(paragraphs(page)), [1, 7]);
}
