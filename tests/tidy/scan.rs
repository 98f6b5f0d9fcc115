//! A small reader of Rust and Markdown text for the tidy test: code without comments and strings, words, paths.
//!
//! Relies on the layout that `cargo fmt` gives (a top-level item ends with a brace in the first column). It is no
//! parser: it knows comments, literals and braces, nothing of the grammar.

use super::imports::Import;

/// One source file: its path from the repository root, its text, and its code.
pub struct File {
    /// Path with forward slashes.
    pub path: String,
    /// The text as it is.
    pub text: String,
    /// The text with comments and the contents of literals blanked, line for line and byte for byte.
    pub code: String,
}

/// A word found in the code.
pub struct Word<'a> {
    /// Line number from 1.
    pub line: usize,
    /// The code before it on its line.
    pub before: &'a str,
    /// The code after it on its line.
    pub rest: &'a str,
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl File {
    /// Reads `text` as the file at `path`.
    pub fn new(path: &str, text: &str) -> File {
        File { path: path.to_string(), text: text.to_string(), code: blank(text) }
    }

    /// All places in the code where `name` stands as a whole word.
    pub fn words(&self, name: &str) -> Vec<Word<'_>> {
        let mut found = Vec::new();
        for (index, line) in self.code.lines().enumerate() {
            for (at, _) in line.match_indices(name) {
                let (before, rest) = (&line[..at], &line[at + name.len()..]);
                let apart = |byte: Option<&u8>| byte.is_none_or(|&byte| !is_name(byte));
                if apart(before.as_bytes().last()) && apart(rest.as_bytes().first()) {
                    found.push(Word { line: index + 1, before, rest });
                }
            }
        }
        found
    }

    /// The code with `#[cfg(test)] mod ..` at top level cut out, line numbers kept.
    pub fn library_code(&self) -> String {
        let mut inside = false;
        let mut kept = String::new();
        let lines: Vec<&str> = self.code.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let next_is_module = lines.get(index + 1).is_some_and(|next| next.starts_with("mod "));
            inside |= line.starts_with("#[cfg(test)]") && next_is_module;
            kept.push_str(if inside { "" } else { line });
            kept.push('\n');
            inside &= *line != "}";
        }
        kept
    }

    /// First names behind `crate::` outside tests, with their lines; a braced list gives each of its members.
    pub fn crate_paths(&self) -> Vec<(usize, String)> {
        let code = self.library_code();
        let mut found = Vec::new();
        for (at, text) in code.match_indices("crate::") {
            if at > 0 && (is_name(code.as_bytes()[at - 1]) || code.as_bytes()[at - 1] == b'$') {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            let rest = &code[at + text.len()..];
            let members = if rest.starts_with('{') { list_members(rest) } else { vec![rest] };
            let name =
                |member: &str| member.trim_start().bytes().take_while(|&byte| is_name(byte)).map(char::from).collect();
            found.extend(
                members
                    .into_iter()
                    .map(|member| (line, name(member)))
                    .filter(|(_, name): &(_, String)| !name.is_empty()),
            );
        }
        found
    }

    /// Lengths of the chains `super::super::..` outside tests, with their lines.
    pub fn super_chains(&self) -> Vec<(usize, usize)> {
        let code = self.library_code();
        let mut found = Vec::new();
        for (index, line) in code.lines().enumerate() {
            let mut rest = line;
            while let Some(at) = rest.find("super::") {
                let mut count = 0;
                rest = &rest[at..];
                while let Some(tail) = rest.strip_prefix("super::") {
                    (rest, count) = (tail, count + 1);
                }
                found.push((index + 1, count));
            }
        }
        found
    }

    /// All names of `use` lines outside tests.
    pub fn imports(&self) -> Vec<Import> {
        let code = self.library_code();
        let mut found = Vec::new();
        for (line, start, end) in use_items(&code) {
            let public = line.starts_with("pub");
            collect_imports(&code[start..end], &[], public, &mut found);
        }
        found
    }

    /// Paths that begin with `crate` or `super` outside `use` lines and tests.
    pub fn inline_paths(&self) -> Vec<Vec<String>> {
        let mut code = self.library_code().into_bytes();
        let text = String::from_utf8(code.clone()).expect("code is text");
        for (_, start, end) in use_items(&text) {
            code[start..end].fill(b' ');
        }
        let code = String::from_utf8(code).expect("whole items were blanked");
        let mut found = Vec::new();
        for first in ["crate::", "super::"] {
            for (at, _) in code.match_indices(first) {
                let before = code[..at].bytes().last();
                if before.is_none_or(|byte| !is_name(byte) && byte != b':' && byte != b'$') {
                    let path = code[at..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':').next();
                    let names = path.unwrap_or("").split("::").map(str::to_string);
                    found.push(names.filter(|name| !name.is_empty()).collect());
                }
            }
        }
        found
    }

    /// Line and parts of every tuple type in the head of a function outside tests: parameters, and results where
    /// `with_results`.
    pub fn tuples(&self, with_results: bool) -> Vec<(usize, Vec<String>)> {
        let code = self.library_code();
        let mut found = Vec::new();
        for (line, start) in function_starts(&code) {
            let head = &code[start..];
            let head = &head[..head_end(head)];
            let Some(parameters) = head.find('(') else { continue };
            let end = parameters + parenthesized(&head[parameters..]).len() + 2;
            let head = if with_results { head } else { &head[..end.min(head.len())] };
            for (at, _) in head.match_indices('(').filter(|(at, _)| *at != parameters) {
                let before = head[..at].trim_end();
                let word = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
                let is_lifetime = before[..before.len() - word.len()].ends_with('\'');
                let is_call = !word.is_empty() && !is_lifetime && !["impl", "mut", "dyn"].contains(&word);
                let inside = parenthesized(&head[at..]);
                let behind = head.get(at + inside.len() + 2..).unwrap_or("").trim_start();
                let is_pattern = behind.starts_with(':') && !behind.starts_with("::");
                let parts = parts(inside);
                if !is_call && !is_pattern && parts.len() > 1 {
                    found.push((line, parts));
                }
            }
        }
        found
    }

    /// Names of the types and traits that are declared outside tests, with their lines.
    pub fn declared(&self) -> Vec<(usize, String)> {
        let code = self.library_code();
        let mut found = Vec::new();
        for (index, line) in code.lines().enumerate() {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
            let words = words.skip_while(|word| ["pub", "crate", "super", "in", "unsafe"].contains(word));
            let words = words.take(2).collect::<Vec<_>>();
            if let ["struct" | "enum" | "trait" | "union" | "type", name] = words[..] {
                // Types of a trait and of its implementations are indented.
                if !line.starts_with(' ') {
                    found.push((index + 1, name.to_string()));
                }
            }
        }
        found
    }

    /// Line, name and number of methods of each trait outside tests.
    pub fn traits(&self) -> Vec<(usize, String, usize)> {
        let code = self.library_code();
        let names = self.declared();
        let mut found = Vec::new();
        let mut lines = code.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let Some((_, name)) = names.iter().find(|(at, _)| *at == index + 1).filter(|_| line.contains("trait "))
            else {
                continue;
            };
            let body = lines.by_ref().take_while(|(_, line)| *line != "}").map(|(_, line)| line);
            let is_method = |line: &&str| {
                line.starts_with("    ") && !line.starts_with("     ") && line.split(' ').any(|word| word == "fn")
            };
            let methods = if line.trim_end().ends_with('}') { 0 } else { body.filter(is_method).count() };
            found.push((index + 1, name.clone(), methods));
        }
        found
    }

    /// Line, name and number of lines of every function with a body.
    pub fn functions(&self) -> Vec<(usize, String, usize)> {
        let mut found = Vec::new();
        for word in self.words("fn") {
            let name: String =
                word.rest.trim_start().bytes().take_while(|&byte| is_name(byte)).map(char::from).collect();
            if name.is_empty() {
                continue; // a function pointer type
            }
            let start: usize =
                self.code.split_inclusive('\n').take(word.line - 1).map(str::len).sum::<usize>() + word.before.len();
            if let Some(body) = body_end(&self.code[start..]) {
                found.push((word.line, name, self.code[start..start + body].matches('\n').count() + 1));
            }
        }
        found
    }

    /// Whether the comment that belongs to the statement or item at `line` contains one of `marks`.
    ///
    /// Looks upward through the lines of the same statement and its attributes to the comment above it.
    pub fn comment_above(&self, line: usize, marks: &[&str]) -> bool {
        let text: Vec<&str> = self.text.lines().collect();
        let code: Vec<&str> = self.code.lines().collect();
        let marked = |index: usize| marks.iter().any(|mark| text[index].contains(mark) && !code[index].contains(mark));
        if marked(line - 1) {
            return true;
        }
        let mut in_comment = false;
        for index in (0..line - 1).rev() {
            let is_comment = text[index].trim_start().starts_with("//");
            if is_comment {
                in_comment = true;
                if marked(index) {
                    return true;
                }
            } else if in_comment || code[index].trim_end().ends_with([';', '{', '}']) {
                return false;
            }
        }
        false
    }

    /// Whether `line` lies in the body of an implementation of a trait.
    pub fn is_in_trait_impl(&self, line: usize) -> bool {
        let mut above = self.code.lines().take(line - 1).collect::<Vec<_>>().into_iter().rev();
        let opening = above.find(|text| text.starts_with(|c: char| c.is_alphabetic()) || text.starts_with('}'));
        opening.is_some_and(|text| text.contains("impl") && text.contains(" for "))
    }

    /// For each `mod name;`, the paths at which its file may lie.
    pub fn module_files(&self) -> Vec<Vec<String>> {
        let folder = match self.path.rsplit_once('/') {
            Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder.to_string(),
            // Roots of a program each: their modules lie beside them.
            Some((folder, _))
                if ["tests", "benches", "examples", "fuzz_targets"].iter().any(|root| folder.ends_with(root)) =>
            {
                folder.to_string()
            }
            _ => self.path.trim_end_matches(".rs").to_string(),
        };
        let own_folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let text: Vec<&str> = self.text.lines().collect();
        let mut found = Vec::new();
        for word in self.words("mod") {
            let Some(name) = word.rest.trim().strip_suffix(';') else { continue };
            let above = text[..word.line - 1].last().copied().unwrap_or("");
            let renamed = above.trim().strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]"));
            found.push(match renamed {
                Some(path) => vec![joined(own_folder, path)],
                None => vec![format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")],
            });
        }
        found
    }
}

/// `path` as seen from `folder`, without its steps upward.
fn joined(folder: &str, path: &str) -> String {
    let steps = path.matches("../").count();
    let kept = folder.rsplitn(steps + 1, '/').nth(steps).map_or(String::new(), |kept| format!("{kept}/"));
    kept + &path[3 * steps..]
}

/// Length of the function at the start of `code` up to its closing brace; `None` for a declaration without a body.
fn body_end(code: &str) -> Option<usize> {
    let (mut depth, mut nesting, mut in_body) = (0i32, 0i32, false);
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' if !in_body => nesting += 1,
            b')' | b']' if !in_body => nesting -= 1,
            b';' if !in_body && nesting == 0 => return None,
            b'{' => (depth, in_body) = (depth + 1, true),
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The members at the first level of a braced list that `text` starts with.
fn list_members(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut members) = (0, 1, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if (depth == 1 && byte == b',') || depth == 0 {
            members.push(&text[start..at]);
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    members
}

/// `text` with comments and the contents of string and character literals replaced by spaces, lines kept.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => find(bytes, at, b"\n"),
            b'/' if bytes[at..].starts_with(b"/*") => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if (at == 0 || !is_name(bytes[at - 1]) || bytes[at - 1] == b'b') => raw_string_end(bytes, at),
            b'\'' => char_end(bytes, at),
            _ => at,
        };
        if end == at {
            at += 1;
            continue;
        }
        code[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        at = end;
    }
    String::from_utf8(code).expect("whole literals and comments were blanked")
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> usize {
    let found = bytes[from..].windows(what.len()).position(|window| window == what);
    found.map_or(bytes.len(), |offset| from + offset)
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at < bytes.len() {
        let step = &bytes[at..];
        if step.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if step.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// End of `r"..."` or `r#"..."#`, or `start` where no raw string begins.
fn raw_string_end(bytes: &[u8], start: usize) -> usize {
    let hashes = bytes[start + 1..].iter().take_while(|&&byte| byte == b'#').count();
    if bytes.get(start + 1 + hashes) != Some(&b'"') {
        return start;
    }
    let closing = [&b"\""[..], &b"#".repeat(hashes)].concat();
    (find(bytes, start + 2 + hashes, &closing) + closing.len()).min(bytes.len())
}

/// End of a character literal, or `start` for a lifetime.
fn char_end(bytes: &[u8], start: usize) -> usize {
    if bytes.get(start + 1) == Some(&b'\\') {
        return (find(bytes, start + 3, b"'") + 1).min(bytes.len());
    }
    // One character of up to four bytes, then a quote.
    let literal = (2..=5).find(|&offset| bytes.get(start + offset) == Some(&b'\''));
    let one = |offset: &usize| {
        std::str::from_utf8(&bytes[start + 1..start + offset]).is_ok_and(|text| text.chars().count() == 1)
    };
    literal.filter(one).map_or(start, |offset| start + offset + 1)
}

/// The string literals of a source file, each with the line where it begins: line breaks and quotes are those that the
/// program has, other escapes stay.
pub fn literals(text: &str) -> Vec<(usize, String)> {
    let bytes = text.as_bytes();
    let (mut found, mut at, mut line, mut counted) = (Vec::new(), 0, 1, 0);
    while at < bytes.len() {
        // The end, and the lengths of what stands before and behind the contents of a literal.
        let (end, ends) = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => (find(bytes, at, b"\n"), None),
            b'/' if bytes[at..].starts_with(b"/*") => (block_comment_end(bytes, at), None),
            b'"' => (string_end(bytes, at), Some((1, 1))),
            b'r' if (at == 0 || !is_name(bytes[at - 1]) || bytes[at - 1] == b'b') => {
                let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
                let end = raw_string_end(bytes, at);
                (end, Some((2 + hashes, 1 + hashes)).filter(|_| end > at))
            }
            b'\'' => (char_end(bytes, at), None),
            _ => (at, None),
        };
        if let Some((before, behind)) = ends {
            line += bytes[counted..at].iter().filter(|&&byte| byte == b'\n').count();
            counted = at;
            let content = &text[at + before..end - behind];
            found.push((line, if before == 1 { unescaped(content) } else { content.to_string() }));
        }
        at = end.max(at + 1);
    }
    found
}

/// A literal without the breaks that continue it on the next line, and with its own line breaks and quotes.
fn unescaped(content: &str) -> String {
    let mut lines = content.split("\\\n");
    let first = lines.next().unwrap_or("").to_string();
    let joined = lines.fold(first, |text, line| text + line.trim_start());
    joined.replace("\\n", "\n").replace("\\\"", "\"")
}

/// Targets of the links `[..](target)` of a page, code blocks and code spans left out.
pub fn links(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in page.lines() {
        in_block ^= line.trim_start().starts_with("```");
        if in_block {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("_");
        for (at, _) in prose.match_indices("](") {
            if let Some((target, _)) = prose[at + 2..].split_once(')') {
                found.push(target.to_string());
            }
        }
    }
    found
}

/// The texts of a page's headings, without the marks.
pub fn headings(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim())
}

/// The anchor that a heading gets: lower case, spaces to hyphens, punctuation dropped.
pub fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Pages of `docs` that a source file names in its comments, with the quoted section that follows, if any.
pub fn page_references(text: &str) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| line.trim_start().starts_with("//")) {
        for (at, _) in line.match_indices("docs/") {
            let Some((page, rest)) = line[at..].split_once(".md") else { continue };
            if page.contains([' ', '*']) {
                continue;
            }
            let section = rest.strip_prefix(", \"").and_then(|quoted| Some(quoted.split_once('"')?.0.to_string()));
            found.push((format!("{page}.md"), section));
        }
    }
    found
}

/// The `use` items of `code`: the line's text from its first letter, and where the path begins and ends.
fn use_items(code: &str) -> Vec<(&str, usize, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in code.split_inclusive('\n') {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let behind =
            ["use ", "pub use ", "pub(crate) use ", "pub(super) use "].iter().find(|key| text.starts_with(**key));
        if let Some(key) = behind {
            let from = start + indent + key.len();
            found.push((text, from, code[from..].find(';').map_or(code.len(), |end| from + end)));
        }
        start += line.len();
    }
    found
}

/// Adds the names of the use tree `text` below `prefix`.
fn collect_imports(text: &str, prefix: &[String], public: bool, found: &mut Vec<Import>) {
    let text = text.trim();
    if let Some(open) = text.find('{') {
        let path = text[..open].trim().trim_end_matches("::");
        let names = path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_string);
        let prefix = prefix.iter().cloned().chain(names).collect::<Vec<_>>();
        for member in list_members(&text[open..]) {
            collect_imports(member, &prefix, public, found);
        }
        return;
    }
    let (path, name) = text.split_once(" as ").map_or((text, None), |(path, name)| (path, Some(name.trim())));
    let own = path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_string);
    let mut path = prefix.iter().cloned().chain(own).collect::<Vec<_>>();
    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
        path.pop();
    }
    let Some(last) = path.last().cloned() else { return };
    if last == "*" {
        path.pop();
    }
    found.push(Import { path, name: name.map_or(last, str::to_string), public });
}

/// Length of a function's head, from `fn` to its body or semicolon.
fn head_end(code: &str) -> usize {
    let mut depth = 0i32;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' | b';' if depth == 0 => return at,
            _ => {}
        }
    }
    code.len()
}

/// What stands in the parentheses that `text` begins with.
fn parenthesized(text: &str) -> &str {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[1..at];
        }
    }
    &text[1..]
}

/// Parts between commas at the first level, in one line each.
fn parts(inside: &str) -> Vec<String> {
    let (mut depth, mut found) = (0, vec![String::new()]);
    for letter in inside.trim().trim_end_matches(',').chars() {
        match letter {
            '(' | '[' | '<' | '{' => depth += 1,
            ')' | ']' | '>' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        found.last_mut().expect("at least one").push(letter);
    }
    found.iter().map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Line and place of each `fn` with a name.
fn function_starts(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    for (index, line) in code.split_inclusive('\n').enumerate() {
        for (at, _) in line.match_indices("fn ") {
            if line[..at].bytes().last().is_none_or(|byte| !is_name(byte)) {
                found.push((index + 1, start + at));
            }
        }
        start += line.len();
    }
    found
}
