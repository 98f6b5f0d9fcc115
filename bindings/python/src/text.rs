//! Matrices as text: Python's format specifications for every entry, `repr`, and a table in HTML.
//!
//! Digits are rounded once, to nearest, ties to even, from the exact number.

use crate::signals::look_for_signals;
use crate::view::View;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rug::Float;
use rug::float::Round;
use std::iter::Peekable;
use std::str::Chars;

/// Rows and columns that `repr` and tables show.
const SHOWN: usize = 8;

/// Digits of an entry, and characters of a field, that a specification may request.
const MOST_DIGITS: usize = 1_000_000;

/// The notation of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Notation {
    /// `e`: one digit in front of the point, and an exponent.
    Scientific,
    /// `f`: decimals.
    Fixed,
    /// `g`: whichever of the two is shorter.
    General,
}

/// The place of a number in a wider field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Align {
    Left,
    Right,
    Centre,
    /// At the right, with the sign at the left.
    AfterSign,
}

/// A format specification of Python: `[[fill]align][sign][#][0][width][.precision][type]` with the types e, f and g.
#[derive(Clone, Debug)]
pub struct NumberFormat {
    fill: char,
    align: Align,
    /// The sign in front of a number that is not negative.
    plus: &'static str,
    keeps_zeros: bool,
    width: usize,
    precision: usize,
    notation: Notation,
    is_upper: bool,
}

impl NumberFormat {
    /// Six significant digits, without zeros at their end.
    fn short() -> NumberFormat {
        NumberFormat {
            fill: ' ',
            align: Align::Right,
            plus: "",
            keeps_zeros: false,
            width: 0,
            precision: 6,
            notation: Notation::General,
            is_upper: false,
        }
    }

    /// The format that a specification describes; by default `g` with six digits.
    ///
    /// # Errors
    /// `ValueError` for one that is not understood.
    pub fn parse(text: &str) -> PyResult<NumberFormat> {
        let refused = |why: &str| {
            PyValueError::new_err(format!(
                "'{text}' is not a format of the entries of a Matrix{why}; use [[fill]align][sign][#][0][width]\
                 [.precision][type] with the type e, f or g, as in f\"{{a:.6g}}\""
            ))
        };
        let mut format = NumberFormat::short();
        let mut chars = text.chars().peekable();
        let aligns = [('<', Align::Left), ('>', Align::Right), ('^', Align::Centre), ('=', Align::AfterSign)];
        let align = |letter: Option<char>| aligns.iter().find(|(known, _)| Some(*known) == letter).map(|(_, way)| *way);
        let (mut has_fill, mut has_align) = (false, false);
        if let Some(way) = align(text.chars().nth(1)) {
            (format.fill, format.align) = (text.chars().next().unwrap_or(' '), way);
            (has_fill, has_align) = (true, true);
            chars.nth(1);
        } else if let Some(way) = align(text.chars().next()) {
            (format.align, has_align) = (way, true);
            chars.next();
        }
        format.plus = match chars.next_if(|letter| ['+', '-', ' '].contains(letter)) {
            Some('+') => "+",
            Some(' ') => " ",
            _ => "",
        };
        format.keeps_zeros = chars.next_if_eq(&'#').is_some();
        if !has_fill && chars.next_if_eq(&'0').is_some() {
            format.fill = '0';
            format.align = if has_align { format.align } else { Align::AfterSign };
        }
        format.width = number(&mut chars).ok_or_else(|| refused(""))?.unwrap_or(0);
        if chars.next_if_eq(&'.').is_some() {
            let precision = number(&mut chars).ok_or_else(|| refused(""))?;
            format.precision = precision.ok_or_else(|| refused(": digits must follow the point"))?;
        }
        let letter = chars.next().unwrap_or('g');
        format.notation = match letter.to_ascii_lowercase() {
            'e' => Notation::Scientific,
            'f' => Notation::Fixed,
            'g' => Notation::General,
            _ => return Err(refused("")),
        };
        format.is_upper = letter.is_ascii_uppercase();
        if chars.next().is_some() {
            return Err(refused(""));
        }
        if format.width.max(format.precision) > MOST_DIGITS {
            return Err(refused(&format!(": the largest width and precision is {MOST_DIGITS}")));
        }
        Ok(format)
    }

    /// The number as text.
    fn text(&self, value: &Float) -> String {
        let digits = match self.notation {
            Notation::Scientific => scientific(value, self.precision + 1, self.keeps_zeros),
            Notation::Fixed => fixed(value, self.precision, self.keeps_zeros),
            Notation::General => self.general(value),
        };
        let digits = if self.is_upper { digits.to_uppercase() } else { digits };
        let sign = if value.is_sign_negative() && !value.is_zero() { "-" } else { self.plus };
        let room = self.width.saturating_sub(digits.chars().count() + sign.chars().count());
        let fill = |count: usize| self.fill.to_string().repeat(count);
        match self.align {
            Align::Left => format!("{sign}{digits}{}", fill(room)),
            Align::Right => format!("{}{sign}{digits}", fill(room)),
            Align::Centre => format!("{}{sign}{digits}{}", fill(room / 2), fill(room - room / 2)),
            Align::AfterSign => format!("{sign}{}{digits}", fill(room)),
        }
    }

    /// With `precision` significant digits, in the notation that is shorter.
    fn general(&self, value: &Float) -> String {
        let count = self.precision.max(1);
        let (_, digits, exponent) = value.to_sign_string_exp(10, Some(count));
        let exponent = exponent.map_or(0, |exponent| i64::from(exponent) - 1);
        let digits = match self.keeps_zeros {
            true => format!("{digits:0<count$}"),
            false => format!("{:0<1}", digits.trim_end_matches('0')),
        };
        if exponent < -4 || exponent >= count as i64 {
            return with_exponent(&digits, exponent, self.keeps_zeros);
        }
        match usize::try_from(exponent + 1) {
            Ok(whole) if whole > 0 => {
                let digits = format!("{digits:0<whole$}");
                let (whole, decimals) = digits.split_at(whole);
                joined(whole, decimals, self.keeps_zeros)
            }
            _ => joined("0", &format!("{}{digits}", "0".repeat((-1 - exponent) as usize)), self.keeps_zeros),
        }
    }
}

/// A number without sign; `None` for one beyond all reason, `Some(None)` where there is none.
fn number(chars: &mut Peekable<Chars<'_>>) -> Option<Option<usize>> {
    let mut found = None;
    while let Some(digit) = chars.peek().and_then(|letter| letter.to_digit(10)) {
        found = Some(found.unwrap_or(0usize).checked_mul(10)?.checked_add(digit as usize)?);
        chars.next();
    }
    Some(found)
}

fn joined(whole: &str, decimals: &str, keeps_point: bool) -> String {
    if decimals.is_empty() && !keeps_point { whole.into() } else { format!("{whole}.{decimals}") }
}

/// `d.ddde+XX`, of digits that are not 0.
fn with_exponent(digits: &str, exponent: i64, keeps_point: bool) -> String {
    let (first, rest) = digits.split_at(1);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", joined(first, rest, keeps_point), exponent.unsigned_abs())
}

/// `count` significant digits and an exponent.
fn scientific(value: &Float, count: usize, keeps_point: bool) -> String {
    let (_, digits, exponent) = value.to_sign_string_exp(10, Some(count));
    with_exponent(&format!("{digits:0<count$}"), exponent.map_or(0, |exponent| i64::from(exponent) - 1), keeps_point)
}

/// The number with `decimals` digits after the point; in scientific notation where more than [`MOST_DIGITS`] digits
/// would stand in front of it.
fn fixed(value: &Float, decimals: usize, keeps_point: bool) -> String {
    let rounded_to = |count: usize, round: Round| {
        let (_, digits, exponent) = value.to_sign_string_exp_round(10, Some(count), round);
        (digits, exponent.map_or(0, i64::from))
    };
    // The value is 0.d... times 10^exponent, of which digits down to 10^-decimals count.
    let (first, exponent) = rounded_to(1, Round::Zero);
    if exponent > MOST_DIGITS as i64 {
        return scientific(value, decimals + 1, keeps_point);
    }
    let count = exponent + decimals as i64;
    let units = match usize::try_from(count) {
        _ if value.is_zero() => String::new(),
        // Between a tenth of a unit and a unit: to the nearer of 0 and 1, and 0 where it lies halfway.
        Ok(0) => {
            let is_half = first == "5" && rounded_to(1, Round::AwayZero) == (first.clone(), exponent);
            if first.as_str() >= "5" && !is_half { "1".into() } else { String::new() }
        }
        Ok(count) => {
            let (digits, rounded_exponent) = rounded_to(count, Round::Nearest);
            let width = count + usize::from(rounded_exponent > exponent);
            format!("{digits:0<width$}")
        }
        Err(_) => String::new(),
    };
    let least = decimals + 1;
    let units = format!("{units:0>least$}");
    let (whole, decimals) = units.split_at(units.len() - decimals);
    joined(whole, decimals, keeps_point)
}

/// The entries of the first rows and columns as text, each column of one width where `aligned` says so.
fn cells(py: Python<'_>, view: &View, limit: usize, format: &NumberFormat) -> PyResult<Vec<Vec<String>>> {
    let (rows, cols) = (view.rows().min(limit), view.cols().min(limit));
    let entries = view.entries();
    let mut cells = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut line = Vec::with_capacity(cols);
        for col in 0..cols {
            line.push(format.text(&entries.get(row, col).to_float(entries.precision_bits())));
            look_for_signals(py, row * cols + col)?;
        }
        cells.push(line);
    }
    for col in 0..cols {
        let width = cells.iter().map(|line| line[col].chars().count()).max().unwrap_or(0);
        for line in &mut cells {
            line[col] = format!("{:>width$}", line[col]);
        }
    }
    Ok(cells)
}

/// Rows in brackets, the second and later ones behind `indent` spaces.
fn bracketed(view: &View, cells: &[Vec<String>], indent: usize) -> String {
    let is_cut = |shown: usize, all: usize| shown < all;
    let mut rows: Vec<String> = cells
        .iter()
        .map(|line| {
            let more = if is_cut(line.len(), view.cols()) { ", ..." } else { "" };
            format!("[{}{more}]", line.join(", "))
        })
        .collect();
    if is_cut(cells.len(), view.rows()) {
        rows.push("...".into());
    }
    format!("[{}]", rows.join(&format!(",\n{}", " ".repeat(indent + 1))))
}

/// All entries in a format, row by row in brackets.
///
/// # Errors
/// The exception of a signal handler.
pub fn formatted(py: Python<'_>, view: &View, format: &NumberFormat) -> PyResult<String> {
    Ok(bracketed(view, &cells(py, view, usize::MAX, format)?, 0))
}

/// The first rows and columns with six digits, the precision, and the type of single entries.
///
/// # Errors
/// The exception of a signal handler.
pub fn representation(py: Python<'_>, view: &View, numbers: &str) -> PyResult<String> {
    const HEAD: &str = "Matrix(";
    let text = bracketed(view, &cells(py, view, SHOWN, &NumberFormat::short())?, HEAD.len());
    let (rows, cols) = (view.rows(), view.cols());
    let hidden = rows > SHOWN || cols > SHOWN || rows == 0 || cols == 0;
    let shape = if hidden { format!(", shape=({rows}, {cols})") } else { String::new() };
    Ok(format!("{HEAD}{text}{shape}, precision={}, numbers='{numbers}')", view.precision_bits()))
}

/// The entries that `repr` shows, as a table in HTML.
///
/// # Errors
/// The exception of a signal handler.
pub fn table(py: Python<'_>, view: &View, numbers: &str) -> PyResult<String> {
    let (rows, cols) = (view.rows(), view.cols());
    let mut html =
        format!("<table><caption>{rows} &times; {cols}, {} bits, {numbers}</caption><tbody>", view.precision_bits());
    for line in cells(py, view, SHOWN, &NumberFormat::short())? {
        html += "<tr>";
        for cell in &line {
            html += &format!("<td style=\"text-align: right\">{}</td>", cell.trim());
        }
        html += if line.len() < cols { "<td>&hellip;</td></tr>" } else { "</tr>" };
    }
    html += if rows > SHOWN { "<tr><td>&vellip;</td></tr>" } else { "" };
    Ok(html + "</tbody></table>")
}
