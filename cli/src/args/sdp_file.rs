//! Files of parameters of `sdp`: SDPB's lines `option=value`, and SDPA's `param.sdpa`.

use super::sdp::{Given, Sdp};
use clap::{ArgAction, Args, Command, FromArgMatches};
use std::path::Path;
use sunzi::{Error, Result};

/// A parameter of SDPA, and what it is called here: one of SDPA's may be two of SDPB's; a parameter without a name is
/// not used.
type Parameter = (&'static str, &'static [&'static str]);

/// The parameters of SDPA in the order of its files.
const SDPA: [Parameter; 10] = [
    ("maxIteration", &["maxIterations"]),
    ("epsilonStar", &["dualityGapThreshold"]),
    ("lambdaStar", &["initialMatrixScalePrimal", "initialMatrixScaleDual"]),
    ("omegaStar", &[]),
    ("lowerBound", &["lowerBound"]),
    ("upperBound", &["upperBound"]),
    ("betaStar", &["feasibleCenteringParameter"]),
    ("betaBar", &["infeasibleCenteringParameter"]),
    ("gammaStar", &["stepLengthReduction"]),
    ("epsilonDash", &["primalErrorThreshold", "dualErrorThreshold"]),
];

/// The parameter that SDPA-GMP has behind them.
const PRECISION: Parameter = ("precision", &["precision"]);

/// A line of a file, without its comment.
struct ParameterLine<'a> {
    /// Counted from 1.
    number: usize,
    text: &'a str,
}

impl<'a> ParameterLine<'a> {
    /// The lines that are more than a comment.
    fn all(text: &'a str) -> Vec<ParameterLine<'a>> {
        let lines = text.lines().enumerate();
        let lines = lines.map(|(at, text)| (at + 1, text.split('#').next().unwrap_or("").trim()));
        let lines = lines.map(|(number, text)| ParameterLine { number, text });
        lines.filter(|line| !line.text.is_empty()).collect()
    }

    /// The number at the beginning, behind which SDPA reads nothing.
    fn value(&self) -> Option<&'a str> {
        let word = self.text.split(|letter: char| letter.is_whitespace() || [';', ','].contains(&letter)).next()?;
        let begins = word.trim_start_matches(['+', '-', '.']).starts_with(|letter: char| letter.is_ascii_digit());
        (begins && !word.contains('=')).then_some(word)
    }

    /// The first parameter that it names behind its number.
    fn labelled(&self) -> Option<&'static Parameter> {
        let words = self.text.split_whitespace().skip(1).map(|word| word.trim_matches([';', ',']));
        let known = |word: &str| SDPA.iter().chain([&PRECISION]).find(|(name, _)| *name == word);
        words.filter_map(known).next()
    }

    /// Whether SDPA reads it as a format of printing.
    fn is_format(&self) -> bool {
        self.text.starts_with('%') || self.text.starts_with("NOPRINT")
    }

    /// The refusal of a line that is not `expected`.
    fn refusal(&self, expected: &str) -> String {
        format!("line {}: '{}' is not {expected}", self.number, shown(self.text))
    }
}

impl Sdp {
    /// The options of the command line, completed by the file of parameters; also a remark on that file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] with the parser's error; [`Error::InvalidArgument`] if no program is given.
    pub fn merged(&self) -> Result<(Sdp, Option<String>)> {
        let mut merged = self.clone();
        let mut remark = None;
        if let Some(path) = &self.param {
            let (file, said) = read_parameters(path)?;
            (merged.places, merged.choices) = (merged.places.or(file.places), merged.choices.or(file.choices));
            remark = said;
        }
        merged.places.input()?;
        merged.check_precision()?;
        Ok((merged, remark))
    }
}

/// Reads a file of parameters; also a remark on it.
///
/// # Errors
/// [`Error::Io`]; [`Error::Format`] with the line or the option that is refused.
pub fn read_parameters(path: &Path) -> Result<(Given, Option<String>)> {
    let bytes = std::fs::read(path);
    let bytes = bytes.map_err(|source| Error::Io { path: path.to_path_buf(), action: "read", source })?;
    // Remarks may be in any encoding.
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}');
    let refused = |message: String| Error::Format { path: path.to_path_buf(), message };
    let lines = ParameterLine::all(text);
    let parser = Given::augment_args(Command::new("sunzi sdp"));
    let is_sdpa = lines.first().is_some_and(|line| line.value().is_some());
    let (options, remark) = match is_sdpa {
        true => of_sdpa(&lines).map_err(refused)?,
        false => (of_sdpb(&lines, &parser).map_err(refused)?, None),
    };
    let words = std::iter::once("sunzi sdp".to_string()).chain(options);
    let matches = parser.try_get_matches_from(words).map_err(|error| {
        let text = error.to_string();
        refused(shown(text.lines().next().unwrap_or("an invalid option").trim_start_matches("error: ")))
    })?;
    let given = Given::from_arg_matches(&matches).map_err(|error| refused(error.to_string()))?;
    Ok((given, remark.map(|remark| format!("{}: {remark}", path.display()))))
}

/// Lines `option=value`.
fn of_sdpb(lines: &[ParameterLine<'_>], parser: &Command) -> std::result::Result<Vec<String>, String> {
    let mut words = Vec::new();
    for line in lines {
        let (key, value) = line.text.split_once('=').map(|(key, value)| (key.trim(), value.trim())).unwrap_or_default();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(line.refusal("option=value"));
        }
        let known = parser.get_arguments().find(|known| known.get_long() == Some(key));
        if known.is_none_or(|known| !matches!(known.get_action(), ArgAction::SetTrue)) {
            words.push(format!("--{key}={value}"));
            continue;
        }
        // As SDPB's parser reads switches.
        match value.to_ascii_lowercase().as_str() {
            "" | "true" | "1" | "yes" | "on" => words.push(format!("--{key}")),
            "false" | "0" | "no" | "off" => {}
            _ => {
                let (number, value) = (line.number, shown(value));
                return Err(format!(
                    "line {number}: '{value}' is neither true nor false (1/0, yes/no and on/off also work)"
                ));
            }
        }
    }
    Ok(words)
}

/// A line, or its first characters where another file was given by mistake.
fn shown(text: &str) -> String {
    let start = text.chars().take(160).collect::<String>();
    if start.len() < text.len() { format!("{start}...") } else { start }
}

/// SDPA's file: ten numbers in its order, each with anything behind it, then the bits, in SDPA-GMP's files, and formats
/// of printing. With fewer numbers each line has to name its parameter.
fn of_sdpa(lines: &[ParameterLine<'_>]) -> std::result::Result<(Vec<String>, Option<String>), String> {
    let values = lines.iter().take_while(|line| line.value().is_some()).count();
    let mut words = Vec::new();
    let mut unused = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let wrong = || line.refusal("a line of an SDPA parameter file");
        let value = match line.value() {
            Some(value) => value,
            None if line.is_format() => continue,
            None => return Err(wrong()),
        };
        let position = if values >= SDPA.len() { SDPA.iter().chain([&PRECISION]).nth(at) } else { line.labelled() };
        let (name, known) = position.ok_or_else(wrong)?;
        words.extend(known.iter().map(|known| format!("--{known}={value}")));
        if known.is_empty() {
            unused.push(format!("{name} has no counterpart in Sunzi and is ignored"));
        }
    }
    Ok((words, unused.into_iter().next()))
}

#[cfg(test)]
#[path = "sdp_file/tests.rs"]
mod tests;
