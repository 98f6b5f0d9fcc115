//! The options of all commands as one page for the book, made from the definition of the arguments.
//!
//! Depends on: the definition, Markdown. Independent of: what the options do.

use crate::args::definition;
use clap::{Arg, Command};
use std::fmt::Write;

const HEADER: &str = "# Options of the program

This page lists all commands and options; `sunzi help COMMAND` prints the same text, and `sunzi man COMMAND` a manual
page. The page is generated from the definitions in the program: `SUNZI_WRITE_PAGES=1 cargo test -p sunzi-cli --test
cli pages` writes it, and the same test without the variable compares it.
";

/// The page `docs/OPTIONS.md`.
pub fn options_page() -> String {
    let mut page = String::from(HEADER);
    let program = definition();
    if let Some(about) = program.get_long_about().or(program.get_about()) {
        let text = about.to_string();
        let _ = write!(page, "\n{}\n", text.split_once("\n\n").map_or(text.as_str(), |(_, rest)| rest));
    }
    let _ = writeln!(page, "\nOptions of every command:\n\n| option | |\n|---|---|");
    for arg in program.get_arguments().filter(|arg| arg.is_global_set()) {
        let _ = writeln!(page, "| {} | {} |", names(arg), meaning(arg));
    }
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        write_command(&mut page, command);
    }
    page
}

/// One command with its subcommands, each under a heading of its own.
fn write_command(page: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = write!(page, "\n## {name}\n\n");
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        let _ = write!(page, "{}.\n\n", escape(&about.to_string()).trim_end_matches('.'));
    }
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(page, "```text\n{}\n```", usage.trim_start_matches("Usage:").trim());
    let shown = |arg: &&Arg| {
        !arg.is_hide_set() && !arg.is_global_set() && !["help", "version"].contains(&arg.get_id().as_str())
    };
    let mut headings = Vec::new();
    for arg in command.get_arguments().filter(shown) {
        let heading = arg.get_help_heading();
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        let _ = write!(page, "\n| {} | |\n|---|---|\n", heading.unwrap_or("arguments and options"));
        for arg in command.get_arguments().filter(shown).filter(|arg| arg.get_help_heading() == heading) {
            let _ = writeln!(page, "| {} | {} |", names(arg), meaning(arg));
        }
    }
    if let Some(examples) = command.get_after_help() {
        let _ = write!(page, "\n```text\n{}\n```\n", examples.to_string().trim_end());
    }
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        write_command(page, inner);
    }
}

/// The spelling of the option, with its value.
fn names(arg: &Arg) -> String {
    let short =
        arg.get_short().filter(|_| arg.get_long().is_some()).map_or(String::new(), |short| format!("`-{short}`, "));
    format!("{short}`{}`", arg.to_string().replace('|', "\\|"))
}

/// The meaning of the option, the values that it takes, and its default.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = escape(&help.replace("\n\n", " ").replace('\n', " "));
    let values = if arg.is_hide_possible_values_set() { Vec::new() } else { arg.get_possible_values() };
    let takes_value = arg.get_num_args().is_some_and(|count| count.takes_values());
    if takes_value && !values.is_empty() {
        let names = values.iter().filter(|value| !value.is_hide_set()).map(|value| format!("`{}`", value.get_name()));
        let end = if text.ends_with(['.', ']']) { "" } else { "." };
        let _ = write!(text, "{end} One of {}.", names.collect::<Vec<_>>().join(", "));
    }
    let defaults = arg.get_default_values();
    if takes_value && !arg.is_hide_default_value_set() && !defaults.is_empty() {
        let shown = defaults.iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let _ = write!(text, " [default: {}]", escape(&shown));
    }
    text
}

/// Text that Markdown leaves as it is in a table.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for (index, piece) in text.split('`').enumerate() {
        if index > 0 {
            escaped.push('`');
        }
        let is_code = index % 2 == 1;
        for letter in piece.chars() {
            match letter {
                '|' => escaped.push_str("\\|"),
                '*' | '_' | '<' | '>' if !is_code => {
                    escaped.push('\\');
                    escaped.push(letter);
                }
                _ => escaped.push(letter),
            }
        }
    }
    escaped
}
