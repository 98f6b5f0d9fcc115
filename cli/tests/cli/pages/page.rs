//! A page of Markdown as lines, and the blocks of commands in it.
//!
//! A block `sh` has commands alone. A block `console` has lines `$ command`, each followed by what it prints. A block
//! behind a line `` `NAME`: `` is that file.

/// A block of commands.
#[derive(Clone, Debug)]
pub struct Block {
    /// Number of its first line in the page, from 1.
    pub line: usize,
    is_session: bool,
    lines: Vec<String>,
}

/// A command of a page.
#[derive(Clone, Debug)]
pub struct PageCommand {
    /// Number of its line in the page, from 1.
    pub at: usize,
    /// The command without its comment.
    pub line: String,
    /// What the page says that it prints; `None` in a block without outputs.
    pub expected: Option<String>,
}

/// The page.
pub struct Page {
    lines: Vec<String>,
    pub blocks: Vec<Block>,
    corrections: Vec<(usize, String)>,
}

impl Block {
    /// The commands, in their order. Lines that end with a backslash go on.
    pub fn commands(&self) -> impl Iterator<Item = PageCommand> {
        let mut found: Vec<PageCommand> = Vec::new();
        let mut goes_on = false;
        for (index, line) in self.lines.iter().enumerate() {
            let is_command = if self.is_session { line.starts_with("$ ") } else { !line.trim().is_empty() };
            let text = line.strip_prefix("$ ").filter(|_| self.is_session).unwrap_or(line);
            let (text, continues) = match text.strip_suffix('\\') {
                Some(text) => (text, true),
                None => (without_comment(text), false),
            };
            if goes_on {
                let last = found.last_mut().unwrap();
                last.line = format!("{} {}", last.line.trim_end(), text.trim());
                goes_on = continues;
            } else if is_command {
                let expected = self.is_session.then(String::new);
                found.push(PageCommand { at: self.line + index, line: text.trim().to_string(), expected });
                goes_on = continues;
            } else if let Some(expected) = found.last_mut().and_then(|last| last.expected.as_mut()) {
                expected.push_str(line);
                expected.push('\n');
            }
        }
        found.into_iter().filter(|command| !command.line.is_empty())
    }
}

impl Page {
    pub fn read(text: &str) -> Page {
        let lines = text.lines().map(str::to_string).collect::<Vec<_>>();
        let mut blocks: Vec<Block> = Vec::new();
        let mut language: Option<String> = None;
        for (index, line) in lines.iter().enumerate() {
            match (line.trim_start().strip_prefix("```"), &language) {
                (Some(_), Some(_)) => language = None,
                (Some(name), None) => {
                    language = Some(name.to_string());
                    if name == "sh" || name == "console" {
                        blocks.push(Block { line: index + 2, is_session: name == "console", lines: Vec::new() });
                    }
                }
                (None, Some(name)) if name == "sh" || name == "console" => {
                    blocks.last_mut().unwrap().lines.push(line.clone());
                }
                _ => {}
            }
        }
        Page { lines, blocks, corrections: Vec::new() }
    }

    /// Files that the page shows: name and text.
    pub fn files(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let Some(name) = line.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:")) else { continue };
            let mut body = self.lines[index + 1..].iter().skip_while(|line| line.is_empty());
            if body.next().is_some_and(|line| line.starts_with("```")) {
                let text = body.take_while(|line| !line.starts_with("```")).map(|line| format!("{line}\n")).collect();
                found.push((name.to_string(), text));
            }
        }
        found
    }

    /// Notes that the command in line `at` prints `text`.
    pub fn correct(&mut self, at: usize, text: &str) {
        self.corrections.push((at, text.to_string()));
    }

    /// The page with its corrections.
    pub fn text(&self) -> String {
        let mut lines = self.lines.clone();
        for (at, text) in self.corrections.iter().rev() {
            let mut first = *at;
            while lines[first - 1].ends_with('\\') {
                first += 1;
            }
            let is_over = |line: &String| line.starts_with("$ ") || line.starts_with("```");
            let last = (first..lines.len()).find(|&index| is_over(&lines[index])).unwrap();
            lines.splice(first..last, text.lines().map(str::to_string));
        }
        lines.join("\n") + "\n"
    }
}

/// The command before its comment.
fn without_comment(line: &str) -> &str {
    if line.starts_with('#') { "" } else { line.split(" # ").next().unwrap_or_default() }
}

/// The word that is run: settings of variables stand before it.
pub fn first_word(line: &str) -> &str {
    line.split_whitespace().find(|word| !word.contains('=')).unwrap_or_default()
}

#[test]
fn blocks_and_their_outputs_are_found() {
    let file = "`a.txt`:\n\n```text\n1\n```\n";
    let blocks = "```sh\ncp a b  # a comment\nX=1 cat \\\n  b\n```\n```console\n$ cat b\n1\n$ true\n```\n";
    let text = &format!("{file}{blocks}");
    let mut page = Page::read(text);
    assert_eq!(page.files(), [("a.txt".to_string(), "1\n".to_string())]);
    let commands = page.blocks.iter().flat_map(Block::commands).collect::<Vec<_>>();
    let lines = commands.iter().map(|command| command.line.as_str()).collect::<Vec<_>>();
    assert_eq!(lines, ["cp a b", "X=1 cat b", "cat b", "true"]);
    assert_eq!(first_word(lines[1]), "cat");
    assert_eq!(commands[2].expected.as_deref(), Some("1\n"));
    assert_eq!(commands[2].at, 12);
    page.correct(12, "2\n3\n");
    assert_eq!(page.text(), text.replace("$ cat b\n1\n", "$ cat b\n2\n3\n"));
}
