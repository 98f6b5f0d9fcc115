//! Files of all kinds against a map of entries, with little room for runs; refusals, with their lines.

use super::*;
use crate::random;
use crate::sparse::SparseBlock;
use std::collections::BTreeMap;

type Places = BTreeMap<(usize, usize), f64>;

fn read(text: &str, chunk_rows: usize, buffer_bytes: usize) -> Result<(Header, Places)> {
    let folder = std::env::temp_dir();
    let options = ReadOptions { chunk_rows, buffer_bytes, folder: &folder, path: Path::new("a.mtx") };
    let mut all = Places::new();
    let header = read_blocks(text.as_bytes(), &options, |_, placed| {
        let block = SparseBlock::parse(&placed.bytes)?;
        block.check()?;
        block.for_each_row(|row, entries| {
            for (col, value) in entries {
                let place = (placed.row_chunk * chunk_rows + row, placed.col_chunk * chunk_rows + col);
                assert!(all.insert(place, value).is_none());
            }
            Ok(())
        })
    })?;
    Ok((header, all))
}

/// A file with a random order of entries, and its contents.
fn random_file(rows: usize, cols: usize, symmetric: bool, field: &str) -> (String, Places) {
    let mut entries = Places::new();
    for k in 0..(rows * cols / 3) as u64 {
        let (row, col) = (random::bits(1, 2 * k) as usize % rows, random::bits(1, 2 * k + 1) as usize % cols);
        if !symmetric || row >= col {
            entries.insert((row, col), if field == "pattern" { 1.0 } else { random::symmetric(2, k) });
        }
    }
    let mut order = entries.iter().collect::<Vec<_>>();
    order.sort_by_key(|((row, col), _)| random::bits(3, (row * cols + col) as u64));
    let kind = if symmetric { "symmetric" } else { "general" };
    let mut text =
        format!("%%MatrixMarket matrix coordinate {field} {kind}\n% a comment\n\n{rows} {cols} {}\n", order.len());
    for ((row, col), value) in order {
        match field {
            "pattern" => text += &format!("{} {}\n", row + 1, col + 1),
            _ => text += &format!("  {} {}\t{value:e}\r\n", row + 1, col + 1),
        }
    }
    (text, entries)
}

#[test]
fn files_of_all_kinds_come_back_whatever_the_blocks_and_the_memory() {
    for (rows, cols, symmetric, field) in
        [(30, 40, false, "real"), (41, 41, true, "real"), (25, 9, false, "pattern"), (20, 20, true, "double")]
    {
        let (text, entries) = random_file(rows, cols, symmetric, field);
        for (chunk_rows, buffer_bytes) in [(100, 24), (7, 24 * 36), (7, 1 << 20), (1, 24 * 2000)] {
            let (header, found) = read(&text, chunk_rows, buffer_bytes).unwrap();
            assert_eq!((header.rows, header.cols), (rows as u64, cols as u64));
            assert_eq!(found, entries, "{field} {chunk_rows}");
        }
    }
}

#[test]
fn numbers_have_the_syntax_of_all_files() {
    let text =
        "%%MatrixMarket matrix coordinate real general\n5 1 5\n1 1 0x1.8p-3\n2 1 1/3\n3 1 -2D2\n4 1 .5\n5 1 1e-400\n";
    let values = read(text, 2, 1 << 10).unwrap().1.into_values().collect::<Vec<_>>();
    assert_eq!(values, [0.1875, 1.0 / 3.0, -200.0, 0.5, 0.0]);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let real = "%%MatrixMarket matrix coordinate real general\n% c\n3 4 2\n";
    let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n";
    let cases = [
        (String::new(), "line 1: the file is empty"),
        (real.replace("coordinate", "array"), "line 1: the first line must be"),
        (real.replace("real", "complex"), "line 1: entries of kind 'complex' are not supported"),
        (real.replace("general", "hermitian"), "line 1: matrices of kind 'hermitian' are not supported"),
        (real.replace("3 4 2", "3 4"), "line 3: the size line must read 'rows columns entries', found '3 4'"),
        (real.replace("3 4 2", "3 4 13"), "line 3: the size line states 13 entries, but a 3 x 4 matrix has only 12"),
        (symmetric.replace("3 3 2", "3 4 2"), "line 2: the matrix is 3 x 4, but a symmetric matrix must be square"),
        (format!("{real}1 1 2\n"), "line 4: the file ends after 1 of 2 entries"),
        (format!("{real}1 1 2\n\n1 2\n"), "line 6: an entry must read 'row column value', found '1 2'"),
        (format!("{real}1 1 2\n4 1 3\n"), "line 5: the row index must be 1 to 3, found '4'"),
        (format!("{real}1 0 2\n"), "line 4: the column index must be 1 to 4, found '0'"),
        (format!("{real}1 1 x\n"), "line 4: 'x' is not a number"),
        (format!("{real}1 1 nan\n"), "line 4: 'nan' is NaN, not finite"),
        (format!("{real}1 1 1e999\n"), "line 4: '1e999' is beyond the range of doubles"),
        (format!("{real}3 2 2\n3 2 2\n"), "line 5: a second entry for row 3, column 2"),
        (format!("{real}3 2 2\n3 3 2\n3 4 1\n"), "line 6: '3 4 1' follows after all 2 entries"),
        (format!("{symmetric}1 2 2\n"), "line 3: row 1, column 2 is above the diagonal"),
        (real.replace("real", "integer") + "1 1 1.5\n", "line 4: '1.5' is not an integer"),
    ];
    for (text, message) in cases {
        let error = read(&text, 2, 1 << 10).unwrap_err();
        assert!(matches!(error, Error::Format { .. }), "{error:?}");
        assert!(error.to_string().starts_with(&format!("a.mtx: {message}")), "{error}\n{message}");
    }
    let error = read(&format!("{real}1 1 1\n2 2 2\n"), 1, 100).unwrap_err();
    assert!(matches!(error, Error::MemoryLimit { limit_bytes: 100, minimum_bytes: 288 }), "{error}");
}
