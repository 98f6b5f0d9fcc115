//! Bad input files: each gives one error of one line, with the file, the place and what was found there.

use std::fs;
use std::io::Read;
use std::path::Path;
use sunzi::io::{
    FileFormat, NumberForm, ReadOptions, Source, Symmetry, WriteOptions, read, read_stream, write, write_stream,
};
use sunzi::{Error, Matrix};

fn refusal(bytes: &[u8], format: FileFormat) -> String {
    let source = Source::new(Path::new("bad"), format);
    let error = match read_stream(bytes, &source, &ReadOptions::new(128)) {
        Ok(loaded) => panic!("read as {:?}: {}", loaded.matrix, String::from_utf8_lossy(bytes)),
        Err(error) => error,
    };
    assert!(matches!(error, Error::Format { .. }) && error.exit_code() == 3, "{error:?}");
    let message = error.to_string();
    assert!(!message.contains('\n') && message.is_ascii(), "{message}");
    message.strip_prefix("bad: ").expect("the message starts with the file").to_string()
}

#[test]
fn first_lines() {
    let banner = "%%MatrixMarket matrix array|coordinate real|integer general|symmetric";
    let must = format!("line 1: the first line must be '{banner}', found");
    let cases = [
        ("", format!("line 1: the file is empty; the first line must be '{banner}'")),
        ("2 2\n1\n2\n3\n4\n", format!("{must} '2 2'")),
        ("%%MatrixMarket matrix array real\n", format!("{must} '%%MatrixMarket matrix array real'")),
        ("%%MatrixMarket vector array real general\n", "line 1: the file holds a 'vector', not a matrix".into()),
        (
            "%%MatrixMarket matrix dense real general\n",
            "line 1: the arrangement 'dense' is not supported: only array and coordinate are".into(),
        ),
        (
            "%%MatrixMarket matrix array complex general\n",
            "line 1: entries of kind 'complex' are not supported: only real and integer entries are".into(),
        ),
        (
            "%%MatrixMarket matrix coordinate pattern general\n",
            "line 1: entries of kind 'pattern' are not supported: only real and integer entries are".into(),
        ),
        (
            "%%MatrixMarket matrix array real skew-symmetric\n",
            "line 1: matrices of kind 'skew-symmetric' are not supported: only general and symmetric matrices are"
                .into(),
        ),
        (
            "%%MatrixMarket matrix array real Hermitian\n",
            "line 1: matrices of kind 'hermitian' are not supported: only general and symmetric matrices are".into(),
        ),
        ("\x7fELF\x02\x01\n", format!("{must} '\\x7fELF\\x02\\x01'")),
    ];
    for (text, want) in cases {
        assert_eq!(refusal(text.as_bytes(), FileFormat::MatrixMarket), want);
    }
}

#[test]
fn sizes() {
    let cases = [
        ("array real general\n% only\n", "line 3: the file ends before the line with the matrix size"),
        ("array real general\n3\n", "line 2: the size line must read 'rows columns', found '3'"),
        ("array real general\n3 3 9\n", "line 2: the size line must read 'rows columns', found '3 3 9'"),
        ("coordinate real general\n3 3\n", "line 2: the size line must read 'rows columns entries', found '3 3'"),
        ("array real general\n-2 3\n", "line 2: the row count is negative: '-2'"),
        ("array real general\n2 -3\n", "line 2: the column count is negative: '-3'"),
        ("array real general\ntwo 3\n", "line 2: the row count must be a whole number, found 'two'"),
        ("array real general\n2 3.0\n", "line 2: the column count must be a whole number, found '3.0'"),
        ("coordinate real general\n2 3 -1\n", "line 2: the entry count is negative: '-1'"),
        ("array real symmetric\n2 3\n", "line 2: the matrix is 2 x 3, but a symmetric matrix must be square"),
        (
            "array real general\n1000000000 1000000000\n1\n",
            "line 2: a 1000000000 x 1000000000 matrix of 128 bits is too large to address",
        ),
        (
            // Addressable but for the heads.
            "array real general\n700000000 700000000\n1\n",
            "line 2: a 700000000 x 700000000 matrix of 128 bits is too large to address",
        ),
        ("array real general\n18446744073709551616 1\n", "line 2: the row count '18446744073709551616' is too large"),
        (
            "array real general\n18446744073709551615 18446744073709551615\n",
            "line 2: a 18446744073709551615 x 18446744073709551615 matrix of 128 bits is too large to address",
        ),
        ("coordinate real general\n2 2 5\n", "line 2: the size line states 5 entries, but a 2 x 2 matrix has only 4"),
        ("coordinate real symmetric\n2 2 4\n", "line 2: the size line states 4 entries, but a 2 x 2 matrix has only 3"),
        ("array real general\n%sunzi precision_bits=1\n", "line 2: precision_bits must be 2 to 16777216, found '1'"),
        (
            "array real general\n%sunzi precision_bits=many\n",
            "line 2: precision_bits must be 2 to 16777216, found 'many'",
        ),
    ];
    for (text, want) in cases {
        let text = format!("%%MatrixMarket matrix {text}");
        assert_eq!(refusal(text.as_bytes(), FileFormat::MatrixMarket), want);
    }
}

#[test]
fn entries_of_array_files() {
    let digits = "7".repeat(60);
    let cases: [(&[u8], &str); 15] = [
        (b"1\n2\n3\n", "line 6: the file ends after 3 of 4 entries"),
        (b"", "line 3: the file ends after 0 of 4 entries"),
        (b"1\n2\n3\n4\n5\n", "line 7: '5' follows after all 4 entries"),
        (b"1\n2\nnan\n4\n", "line 5: entry at row 1, column 2 (counted from 1) is NaN: every entry must be finite"),
        (
            b"1\n-Inf\n3\n4\n",
            "line 4: entry at row 2, column 1 (counted from 1) is infinite: every entry must be finite",
        ),
        (b"1\nzwei\n3\n4\n", "line 4: entry at row 2, column 1 (counted from 1) is not a number: 'zwei'"),
        (b"1 2 3\n% late\n4\n", "line 4: entry at row 2, column 2 (counted from 1) is not a number: '%'"),
        (b"1\n2\n\xff\xfe3\n4\n", "line 5: entry at row 1, column 2 (counted from 1) is not a number: '\\xff\\xfe3'"),
        (b"1\x002\n3\n4\n5\n", "line 3: entry at row 1, column 1 (counted from 1) is not a number: '1\\x002'"),
        (
            b"1e99999999999\n2\n3\n4\n",
            "line 3: entry at row 1, column 1 (counted from 1) \
             has a binary exponent outside +-1073741823: '1e99999999999'",
        ),
        (
            b"0x1p-2000000000\n2\n3\n4\n",
            "line 3: entry at row 1, column 1 (counted from 1) \
             has a binary exponent outside +-1073741823: '0x1p-2000000000'",
        ),
        (b"1,5\n2\n3\n4\n", "line 3: entry at row 1, column 1 (counted from 1) is not a number: '1,5'"),
        (b"1+2i\n2\n3\n4\n", "line 3: entry at row 1, column 1 (counted from 1) is not a number: '1+2i'"),
        (b"0x\n2\n3\n4\n", "line 3: entry at row 1, column 1 (counted from 1) is not a number: '0x'"),
        (b"1.2.3\n2\n3\n4\n", "line 3: entry at row 1, column 1 (counted from 1) is not a number: '1.2.3'"),
    ];
    for (body, want) in cases {
        let file = [b"%%MatrixMarket matrix array real general\n2 2\n", body].concat();
        assert_eq!(refusal(&file, FileFormat::MatrixMarket), want);
    }
    let file = format!("%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2.5\n{digits}\n");
    let want = "line 4: entry at row 2, column 1 (counted from 1) is not an integer, although the first line of the \
                file announces integers: '2.5'";
    assert_eq!(refusal(file.as_bytes(), FileFormat::MatrixMarket), want);
    let file = format!("%%MatrixMarket matrix array real general\n1 1\n{digits}x\n");
    let shown = &digits[..40];
    let want =
        format!("line 3: entry at row 1, column 1 (counted from 1) is not a number: '{shown}...' (61 characters)");
    assert_eq!(refusal(file.as_bytes(), FileFormat::MatrixMarket), want);
    let file = format!("%%MatrixMarket matrix array real general\n1 1\n0x1{}1\n", "0".repeat(1 << 22));
    assert!(
        refusal(file.as_bytes(), FileFormat::MatrixMarket)
            .contains("has 16777221 significant bits, more than 16777216")
    );
}

#[test]
fn entries_of_coordinate_files() {
    let cases = [
        ("1 1 1\n", "line 4: the file ends after 1 of 2 entries"),
        ("1 1 1\n2 2 2\n3 3 3\n", "line 5: '3 3 3' follows after all 2 entries"),
        ("1 1\n2 2 2\n", "line 3: an entry must read 'row column value', found '1 1'"),
        ("1 1 1 1\n2 2 2\n", "line 3: an entry must read 'row column value', found '1 1 1 1'"),
        ("0 1 5\n2 2 2\n", "line 3: row index 0 is outside 1 to 3"),
        ("4 1 5\n2 2 2\n", "line 3: row index 4 is outside 1 to 3"),
        ("1 9 5\n2 2 2\n", "line 3: column index 9 is outside 1 to 3"),
        ("1 -1 5\n2 2 2\n", "line 3: the column index is negative: '-1'"),
        ("a 1 5\n2 2 2\n", "line 3: the row index must be a whole number, found 'a'"),
        ("99999999999999999999 1 5\n", "line 3: the row index '99999999999999999999' is too large"),
        ("2 2 2\n2 2 0\n", "line 4: a second entry for row 2, column 2"),
        ("1 2 2\n2 2 0\n", "line 3: row 1, column 2 is above the diagonal: symmetric files hold the lower triangle"),
        (
            "2 1 inf\n2 2 0\n",
            "line 3: entry at row 2, column 1 (counted from 1) is infinite: every entry must be finite",
        ),
    ];
    for (body, want) in cases {
        let file = format!("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n{body}");
        assert_eq!(refusal(file.as_bytes(), FileFormat::MatrixMarket), want);
    }
}

#[test]
fn every_truncation_of_a_text_file_is_noticed() {
    let matrix = Matrix::from_f64s(3, 2, 64, &[1.5, -2.25, 3.0, 1e10, 0.0, 0.125]).unwrap();
    let mut bytes = Vec::new();
    write_stream(&mut bytes, Path::new("x"), FileFormat::MatrixMarket, &matrix, &WriteOptions::default()).unwrap();
    // A cut within the last number, or behind it, leaves six numbers: only that cannot be told from the text.
    let last_entry = bytes.len() - "1.25e-1\n".len();
    for length in 0..=last_entry {
        refusal(&bytes[..length], FileFormat::MatrixMarket);
    }
}

#[test]
fn every_flipped_bit_and_truncation_of_a_binary_file_is_noticed() {
    let matrix = Matrix::from_f64s(3, 3, 100, &[1.5, -2.25, 3.0, -2.25, 0.0, 0.125, 3.0, 0.125, 9.0]).unwrap();
    for symmetry in [Symmetry::General, Symmetry::SymmetricLower] {
        let mut bytes = Vec::new();
        let options = WriteOptions::new().symmetry(symmetry);
        write_stream(&mut bytes, Path::new("x"), FileFormat::Binary, &matrix, &options).unwrap();
        for length in 0..bytes.len() {
            let message = refusal(&bytes[..length], FileFormat::Binary);
            assert!(message.contains("ends") || message.contains("empty"), "{length}: {message}");
        }
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            refusal(&bytes, FileFormat::Binary);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        bytes.push(0);
        assert_eq!(refusal(&bytes, FileFormat::Binary), "the file is too long: more bytes follow its checksum");
    }
}

#[test]
fn binary_entries_that_are_no_numbers() {
    let matrix = Matrix::from_f64s(1, 1, 100, &[1.5]).unwrap();
    let mut good = Vec::new();
    write_stream(&mut good, Path::new("x"), FileFormat::Binary, &matrix, &WriteOptions::default()).unwrap();
    let at = "entry at row 1, column 1 (counted from 1) is not a valid number: ";
    // Bytes 64..72 are the head, then come two limbs; the lowest 28 bits are below the precision.
    let cases: [(usize, &[u8], &str); 6] = [
        (64, &[0; 8], "it is zero, but its significand is not"),
        (64, &[4, 0, 0, 0, 0, 0, 0, 0], "its exponent is out of range, or its head is malformed"),
        (64, &[2, 0, 0, 0, 1, 0, 0, 0], "its exponent is out of range, or its head is malformed"),
        (64, &[2, 0, 0, 0, 0, 0, 0, 0x80], "its exponent is out of range, or its head is malformed"),
        (87, &[0x40], "the top bit of its significand is 0"),
        (72, &[1], "it has bits below its precision"),
    ];
    for (offset, bytes, want) in cases {
        let mut file = good.clone();
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        let checksum = xxhash_rust::xxh3::xxh3_64(&file[64..88]);
        file[88..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(refusal(&file, FileFormat::Binary), format!("{at}{want}"));
    }
    assert_eq!(
        refusal(b"%%MatrixMarket matrix array real general, much too long to be a short file\n", FileFormat::Binary),
        "this is not a binary matrix file: the magic bytes at its start are wrong"
    );
}

#[test]
fn lengths_are_held_against_the_header_before_memory_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    write(&path, &Matrix::zeros(3, 3, 64).unwrap(), &WriteOptions::default()).unwrap();
    let bytes = fs::read(&path).unwrap();
    for (found, word) in [(100, "truncated"), (500, "too long")] {
        let mut changed = bytes.clone();
        changed.resize(found, 0);
        fs::write(&path, changed).unwrap();
        let message = read(&path, &ReadOptions::new(64)).unwrap_err().to_string();
        assert!(
            message.ends_with(&format!("the file is {word}: it has {found} bytes, but its header requires 216")),
            "{message}"
        );
    }
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let endless = std::io::repeat(b'7');
    let file = b"%%MatrixMarket matrix array real general\n1 1\n".chain(endless);
    let source = Source::new(Path::new("bad"), FileFormat::MatrixMarket);
    let message = read_stream(file, &source, &ReadOptions::new(64)).unwrap_err().to_string();
    assert_eq!(message, "bad: line 3: a number or name is longer than 67108864 bytes");
}

#[test]
fn files_that_cannot_be_opened_or_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.mtx");
    let error = read(&path, &ReadOptions::new(64)).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: cannot open: No such file or directory (os error 2)", path.display()));
    let inner = folder.path().join("folder.mtx");
    fs::create_dir(&inner).unwrap();
    assert!(matches!(read(&inner, &ReadOptions::new(64)), Err(Error::Io { action: "read", .. })));
    let matrix = Matrix::zeros(1, 1, 64).unwrap();
    assert!(matches!(write(&inner, &matrix, &WriteOptions::default()), Err(Error::Io { action: "write", .. })));
    let missing = folder.path().join("nowhere").join("a.bin");
    assert!(matches!(write(&missing, &matrix, &WriteOptions::default()), Err(Error::Io { action: "create", .. })));
    for bits in [0, 1, (1 << 24) + 1] {
        let input = ReadOptions::new(64).input_precision_bits(bits);
        for options in [ReadOptions::new(bits), input] {
            let source = Source::new(&path, FileFormat::Binary);
            let error = read_stream(&b""[..], &source, &options).unwrap_err();
            assert!(matches!(error, Error::Precision { precision_bits, .. } if precision_bits == u64::from(bits)));
        }
    }
    // Exponents that could not be read back are not written.
    let mut matrix = Matrix::zeros(2, 2, 64).unwrap();
    let limbs = [1 << 63];
    let head = sunzi::Head::new(false, 1 << 31);
    matrix.set(1, 0, sunzi::FloatRef { head, limbs: &limbs });
    for (format, number_form) in [(FileFormat::Binary, NumberForm::Hex), (FileFormat::MatrixMarket, NumberForm::Hex)] {
        let options = WriteOptions::new().number_form(number_form);
        let error = write_stream(std::io::sink(), Path::new("x"), format, &matrix, &options).unwrap_err();
        assert!(matches!(error, Error::ExponentRange { row: 1, column: 0, .. }), "{error}");
    }
}
