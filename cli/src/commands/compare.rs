//! `sunzi compare`: whether two files hold the same numbers, within a tolerance or exactly, and where they
//! differ. Exit code 1 where they do.

use crate::args::Compare;
use crate::files::{header, stated_precision};
use crate::session::{Session, Work};
use serde_json::{Value, json};
use std::path::Path;
use sunzi::Result;
use sunzi::io::{Difference, FileInfo, ReadOptions, compare_within};
use sunzi_session::session::Session as _;

/// Exit code for matrices that differ, as `cmp` has it.
const DIFFERENT: u8 = 1;

pub fn run(session: &mut Session, config: &Compare) -> Result<u8> {
    let infos = (header(&config.left)?, header(&config.right)?);
    let stated = |path: &Path, info: &Option<FileInfo>| stated_precision(config.precision, path, info.as_ref());
    let headers = [&infos.0, &infos.1].map(|info| info.and_then(|info| info.precision_bits_comment));
    // Decimals of a file that states no precision are taken as the other file's are; a stream is read for that
    // precision only where no header states it.
    let any = match config.precision.or(headers[0]).or(headers[1]) {
        Some(bits) => bits,
        None => stated(&config.left, &infos.0).or_else(|error| stated(&config.right, &infos.1).map_err(|_| error))?,
    };
    let [left_bits, right_bits] = headers.map(|own| config.precision.or(own).unwrap_or(any));
    session.expect(&[&config.left, &config.right], any, |_| Work { stages: Vec::new(), output: None });
    let left = session.read(&config.left, ReadOptions::new(left_bits))?.matrix;
    let right = session.read(&config.right, ReadOptions::new(right_bits))?.matrix;
    let comparison = compare_within(&left, &right, &config.tolerance())?;
    session.finish_report(&json!({
        "operation": "compare",
        "rows": comparison.rows,
        "cols": comparison.cols,
        "equal": comparison.is_equal(),
        "within_tolerance": comparison.is_within(),
        "differing_entries": comparison.differing_entries,
        "beyond_entries": comparison.beyond_entries,
        // Without a difference there is no end of digits, which JSON has no number for.
        "digits": Some(comparison.digits()).filter(|digits| digits.is_finite()),
        "entry_digits": Some(comparison.entry_digits()).filter(|digits| digits.is_finite()),
        "first": entry(&comparison.first),
        "largest_absolute": entry(&comparison.largest_absolute),
        "largest_relative": entry(&comparison.largest_relative),
    }))?;
    session.say(&comparison.to_string())?;
    Ok(if comparison.is_within() { 0 } else { DIFFERENT })
}

/// A difference as JSON, row and column from 1 as in the text; big numbers are strings.
fn entry(difference: &Option<Difference>) -> Value {
    difference.as_ref().map_or(Value::Null, |difference| {
        json!({
            "row": difference.row + 1,
            "column": difference.column + 1,
            "absolute": format!("{:.6e}", difference.absolute),
            "relative": format!("{:.6e}", difference.relative),
        })
    })
}
