//! `sunzi compare`: whether two files hold the same numbers, and where they differ. Exit code 1 where they do.

use crate::args::Compare;
use crate::files::{header, stated_precision};
use crate::session::Session;
use serde_json::{Value, json};
use std::path::Path;
use sunzi::Result;
use sunzi::io::{Difference, FileInfo, ReadOptions, compare};
use sunzi_lab::session::Session as _;

/// Exit code for matrices that differ, as `cmp` has it.
const DIFFERENT: u8 = 1;

pub fn run(session: &mut Session, config: &Compare) -> Result<u8> {
    let infos = (header(&config.left)?, header(&config.right)?);
    let read = |path: &Path, own: Option<FileInfo>, other: Option<FileInfo>| {
        // Decimals of a file that states no precision are taken as the other file's are.
        let stated = own.filter(|info| info.precision_bits_comment.is_some()).or(other);
        let precision_bits = stated_precision(config.precision, path, stated.as_ref())?;
        session.read(path, ReadOptions::new(precision_bits))
    };
    let left = read(&config.left, infos.0, infos.1)?.matrix;
    let right = read(&config.right, infos.1, infos.0)?.matrix;
    let comparison = compare(&left, &right)?;
    session.finish_report(&json!({
        "operation": "compare",
        "rows": comparison.rows,
        "cols": comparison.cols,
        "equal": comparison.is_equal(),
        "differing_entries": comparison.differing_entries,
        "first": entry(&comparison.first),
        "largest_absolute": entry(&comparison.largest_absolute),
        "largest_relative": entry(&comparison.largest_relative),
    }))?;
    session.say(&comparison.to_string())?;
    Ok(if comparison.is_equal() { 0 } else { DIFFERENT })
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
