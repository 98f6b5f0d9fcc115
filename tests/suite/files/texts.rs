//! Tables, lists, arrays of NumPy and programs of SDPA: what they say is what is read, and what is wrong is named.

use crate::common::Rng;
use sunzi::io::{
    FileFormat, Loaded, NumberForm, ReadOptions, Source, WriteOptions, compare, read, read_info, read_stream,
    read_stream_info, write, write_stream,
};
use sunzi::{Error, Matrix};

fn load(bytes: &[u8], format: FileFormat, options: &ReadOptions) -> sunzi::Result<Loaded> {
    read_stream(bytes, &Source::new("test".as_ref(), format), options)
}

/// The matrix of a text at 100 bits, row by row.
fn rows(text: &str, format: FileFormat) -> Vec<Vec<f64>> {
    let loaded =
        load(text.as_bytes(), format, &ReadOptions::new(100)).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    let matrix = loaded.matrix;
    (0..matrix.rows()).map(|row| (0..matrix.cols()).map(|col| matrix.float(row, col).to_f64()).collect()).collect()
}

fn refusal(bytes: &[u8], format: FileFormat) -> String {
    let error = load(bytes, format, &ReadOptions::new(100)).expect_err("a refusal");
    let message = error.to_string();
    assert!(!message.contains('\n') && message.is_ascii(), "{message}");
    message
}

fn random(rng: &mut Rng, rows: usize, cols: usize, bits: u32) -> Matrix {
    let mut matrix = Matrix::zeros(rows, cols, bits).unwrap();
    for row in 0..rows {
        for col in 0..cols {
            let (value, exponent) = (rng.integer(bits), rng.within(2000));
            matrix.set_integer_exponent(row, col, &value, exponent).unwrap();
        }
    }
    matrix
}

#[test]
fn tables_with_every_separator() {
    let want = vec![vec![1.0, -2.5, 3000.0], vec![0.25, 5.0, -6.0]];
    for text in [
        "1,-2.5,3e3\n0.25,5,-6\n",
        "1,-2.5,3e3\n0.25,5,-6",
        "1;-2.5;3e3\r\n0.25;5;-6\r\n",
        "1\t-2.5\t3e3\n0.25\t5\t-6\n",
        "  1   -2.5 3e3\n\n0.25\t5 -6  \n\n",
        "# x, y, z\n1 , -2.5, 3e3\n% done\n 0.25, 5 ,-6,\n",
        "a,b,c\n1,\"-2.5\", \"3e3\"\n\n0x1p-2,5,-6\n",
        "\u{feff}1,-2.5,3e3\n0.25,5,-6\n",
    ] {
        assert_eq!(rows(text, FileFormat::Csv), want, "{text:?}");
    }
    assert_eq!(rows("1\n2\n", FileFormat::Text), [[1.0], [2.0]]);
    let loaded = load(b"x;y\n1;2\n", FileFormat::Csv, &ReadOptions::new(100)).unwrap();
    assert_eq!(loaded.remarks, ["line 1 was read as headings and skipped: 'x;y'"]);
    // A precision in a comment, and the least that numbers need.
    let loaded = load(b"# sunzi precision_bits=77\n0.1\n", FileFormat::Csv, &ReadOptions::new(None)).unwrap();
    assert_eq!((loaded.precision_bits_comment, loaded.matrix.precision_bits()), (Some(77), 77));
    let long = format!("{}\n", "9".repeat(100));
    assert_eq!(load(long.as_bytes(), FileFormat::Csv, &ReadOptions::new(None)).unwrap().matrix.precision_bits(), 333);
}

#[test]
fn tables_that_are_none() {
    for (text, want) in [
        ("", "line 1: the file is empty; a table has a line of numbers for each row"),
        ("# only a comment\n", "line 2: the file is empty; a table has a line of numbers for each row"),
        ("x,y\n", "line 2: no line of numbers follows the headings; a table has a line of numbers for each row"),
        ("1,2\n3\n", "line 2: row 2 has 1 entries, the rows above it have 2"),
        ("1,2\n3,4,5\n", "line 2: row 2 has more entries, the rows above it have 2"),
        (
            "1,,2\n",
            "line 1: entry at row 1, column 2 (counted from 1) is missing: there is nothing between two separators",
        ),
        ("1,2\n3,x\n", "line 2: entry at row 2, column 2 (counted from 1) is not a number: 'x'"),
        ("1,nan\n", "line 1: entry at row 1, column 2 (counted from 1) is NaN: every entry must be finite"),
        ("inf\n", "line 1: entry at row 1, column 1 (counted from 1) is infinite: every entry must be finite"),
        ("1;2,5\n", "line 1: entry at row 1, column 2 (counted from 1) is not a number: '2,5'"),
        ("a,b\nc,d\n", "line 2: entry at row 1, column 1 (counted from 1) is not a number: 'c'"),
        ("1\n# sunzi precision_bits=50\n", "line 2: the precision must be stated above the numbers"),
    ] {
        assert_eq!(refusal(text.as_bytes(), FileFormat::Csv), format!("test: {want}"), "{text:?}");
    }
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain("1,2\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert!(refusal(&utf16, FileFormat::Csv).ends_with("UTF-16, as its byte order mark shows: save it as UTF-8"));
    let error = load(b"0.1\n", FileFormat::Csv, &ReadOptions::new(None)).unwrap_err().to_string();
    assert!(
        error.contains("line 1: entry at row 1, column 1") && error.contains("does not state its precision"),
        "{error}"
    );
}

#[test]
fn lists_of_json() {
    let want = vec![vec![1.0, -2.5], vec![0.25, 5.0]];
    for text in ["[[1,-2.5],[0.25,5]]", " [ [ \"1\" , \"-2.5\" ] ,\n [ \"0x1p-2\", 5e0 ] ]\n"] {
        assert_eq!(rows(text, FileFormat::Json), want, "{text}");
    }
    assert_eq!(rows("[\"1\", 2]", FileFormat::Json), [[1.0], [2.0]]);
    assert_eq!(rows("[[], []]", FileFormat::Json), [[0.0; 0]; 2]);
    for (text, want) in [
        ("", "line 1: the file ends where a value is expected"),
        ("[[1,2],[3]]", "line 1: row 2 has 1 entries, the rows above it have 2"),
        ("[[1,2],3]", "line 1: a list contains both rows and numbers: it must contain only one of them"),
        ("[[[1]]]", "line 1: a row contains a list: a matrix has only two levels of lists"),
        ("[[1,2]", "line 1: the file ends within a list"),
        ("[[1,]]", "line 1: entry at row 1, column 2 (counted from 1) is not a number: ''"),
        ("[[1 2]]", "line 1: a comma or the end of the list is expected, found '2'"),
        ("[[1]] x", "line 1: the end of the file after the list is expected, found 'x'"),
        ("[[\"1\n\"]]", "line 1: a string is not closed: '1'"),
        ("[[null]]", "line 1: entry at row 1, column 1 (counted from 1) is not a number: 'null'"),
        ("[[NaN]]", "line 1: entry at row 1, column 1 (counted from 1) is NaN: every entry must be finite"),
        (
            "{\"a\": [1], \"b\": {\"c\": \"]\"}}",
            "line 1: an object stands where a list is expected: name one of its values, such as test:a; its keys are \
             'a', 'b'",
        ),
    ] {
        assert_eq!(refusal(text.as_bytes(), FileFormat::Json), format!("test: {want}"), "{text:?}");
    }
}

#[test]
fn values_inside_of_json() {
    let text =
        br#"{"note": "a \" ] [", "n": -1.5e3, "deep": [{"x": [[1]]}, {"B": [["1.5", "2"]], "y": [[]]}], "last": null}"#;
    let at = |member| {
        let source = Source::new("test".as_ref(), FileFormat::Json).member(member);
        let info = read_stream_info(&text[..], &source).map(|info| (info.rows, info.cols));
        let matrix = read_stream(&text[..], &source, &ReadOptions::new(100)).map(|loaded| loaded.matrix);
        assert_eq!(info.as_ref().ok(), matrix.as_ref().ok().map(|matrix| (matrix.rows(), matrix.cols())).as_ref());
        matrix.map(|matrix| matrix.float(0, 0).to_f64()).map_err(|error| error.to_string())
    };
    assert_eq!(at("deep/1/B"), Ok(1.5));
    assert_eq!(at("deep/0/x"), Ok(1.0));
    let keys = "its keys are 'note', 'n', 'deep', 'last'";
    assert_eq!(at("B"), Err(format!("test: line 1: the object has no key 'B': {keys}")));
    let beyond = "test: line 1: the list has 2 values, so the index 2 (counted from 0) is out of range";
    assert_eq!(at("deep/2"), Err(beyond.into()));
    assert!(at("deep/x").unwrap_err().contains("select a value of the list by its index, counted from 0"));
    assert!(at("n/x").unwrap_err().contains("an object or list that holds 'x' is expected, found '-'"));
    assert!(at("deep/1").unwrap_err().contains("such as test:deep/1/B; its keys are 'B', 'y'"));
    // What follows is looked at too: a file that was cut off is noticed.
    let source = Source::new("test".as_ref(), FileFormat::Json).member("deep/0/x");
    for length in 60..text.len() {
        assert!(read_stream(&text[..length], &source, &ReadOptions::new(100)).is_err(), "{length} bytes");
    }
    let source = Source::new("test".as_ref(), FileFormat::Csv).member("B");
    let error = read_stream(&b"1\n"[..], &source, &ReadOptions::new(100)).unwrap_err();
    let single = "test: a file of format csv contains a single matrix, so 'B' cannot be selected in it";
    assert_eq!(error.to_string(), single);
}

#[test]
fn lists_of_mathematica() {
    let want = vec![vec![4.0, 0.15], vec![-0.015, 0.5]];
    for text in [
        "{{4.`300., 1.5*^-1}, {-1.5``30*^-2, 1/2}}",
        "(* a (* nested *) comment *) m = {{4`5, 1.5`*^-1},\n {-1.5*^-2, 5*^-1}};\n",
        "{{4., 0.\\\n15},{-0.\\\r\n  015, 0.5}}",
    ] {
        assert_eq!(rows(text, FileFormat::Mathematica), want, "{text}");
    }
    let loaded = load(b"{0, 1.5`30, 0.1}", FileFormat::Mathematica, &ReadOptions::new(None)).unwrap();
    assert_eq!((loaded.matrix.precision_bits(), loaded.precision_bits_comment), (100, Some(100)));
    for (text, want) in [
        ("{{1, 2}, {3}}", "line 1: row 2 has 1 entries, the rows above it have 2"),
        ("{{1,\nx}}", "line 2: entry at row 1, column 2 (counted from 1) is not a number: 'x'"),
        ("{{1 2}}", "line 1: entry at row 1, column 1 (counted from 1) is not a number: '1 2'"),
        ("{{1}} {{2}}", "line 1: the end of the file after the list is expected, found '{'"),
        ("{{1}", "line 1: the file ends within a list"),
        ("(* {{1}}", "line 1: the file ends within a comment"),
        ("Table[i, {i, 3}]", "line 1: a list in braces is expected, found 'Table[i,'"),
    ] {
        assert_eq!(refusal(text.as_bytes(), FileFormat::Mathematica), format!("test: {want}"), "{text:?}");
    }
}

#[test]
fn programs_of_sdpa() {
    let text = "\"a comment\n* another\n 2 = mDIM\n3 =nBLOCK\n (2, -3, 1) = bLOCKsTRUCT\n{1.5, -2e0}\n\
                0 1 1 1 1.0\n0 1 1 2 -0.5\n1 2 3 3 +3.25e+00\n2,1,2,1,7\n2 3 1 1 4\n";
    let member = |name| Source::new("test".as_ref(), FileFormat::Sdpa).member(name);
    let at = |name| read_stream(text.as_bytes(), &member(name), &ReadOptions::new(64));
    let entries = |name| {
        let loaded = at(name).unwrap();
        let matrix = &loaded.matrix;
        let info = read_stream_info(text.as_bytes(), &member(name)).unwrap();
        assert_eq!((info.rows, info.cols, info.symmetric), (matrix.rows(), matrix.cols(), loaded.symmetric));
        let all = (0..matrix.rows()).flat_map(|row| (0..matrix.cols()).map(move |col| (row, col)));
        all.map(|(row, col)| matrix.float(row, col).to_f64()).collect::<Vec<_>>()
    };
    assert_eq!(entries("0/1"), [1.0, -0.5, -0.5, 0.0]);
    assert_eq!(entries("2/1"), [0.0, 7.0, 7.0, 0.0]);
    assert_eq!(entries("1/2"), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.25]);
    assert_eq!(entries("1/3"), [0.0]);
    assert_eq!(entries("c"), [1.5, -2.0]);
    for name in ["3/1", "0/4", "0/0", "x", "1", "1/1/1"] {
        let error = at(name).unwrap_err().to_string();
        assert!(error.contains("there are constraints 0 to 2 and blocks 1 to 3"), "{name}: {error}");
    }
    let bare = load(text.as_bytes(), FileFormat::Sdpa, &ReadOptions::new(64)).unwrap_err().to_string();
    assert!(bare.contains("name one, such as test:1/1") && bare.contains("blocks of the orders 2, -3, 1"), "{bare}");
    for (line, want) in [
        ("0 1 1 1 2\n", "line 12: a second entry for row 1, column 1 of block 1 of constraint 0"),
        ("3 1 1 1 2\n", "line 12: number of a constraint 3 is outside 0 to 2"),
        ("0 2 1 2 2\n", "line 12: block 2 is diagonal, but has an entry at row 1, column 2"),
        ("0 1 1 3 2\n", "line 12: column 3 is outside 1 to 2"),
        ("0 1 1\n", "line 13: the file ends within an entry 'constraint block row column value'"),
        ("0 1 2 2 x\n", "line 12: entry at row 2, column 2 (counted from 1) is not a number: 'x'"),
    ] {
        let text = [text, line].concat();
        let error = read_stream(text.as_bytes(), &member("0/1"), &ReadOptions::new(64)).unwrap_err();
        assert_eq!(error.to_string(), format!("test: {want}"), "{line}");
    }
}

#[test]
fn every_written_form_reads_back() {
    let mut rng = Rng::new(36);
    for format in FileFormat::ALL.into_iter().filter(|format| format.is_written()) {
        for number_form in [NumberForm::Decimal, NumberForm::Hex] {
            for (rows, cols, bits) in [(1, 1, 2), (3, 2, 53), (2, 5, 64), (4, 4, 300), (1, 7, 1000)] {
                let matrix = random(&mut rng, rows, cols, bits);
                let options = WriteOptions::new().number_form(number_form);
                let mut bytes = Vec::new();
                let written = write_stream(&mut bytes, "test".as_ref(), format, &matrix, &options);
                if (format, number_form) == (FileFormat::Mathematica, NumberForm::Hex) {
                    assert!(written.unwrap_err().to_string().contains("no hexadecimal floats"));
                    continue;
                }
                written.unwrap();
                let loaded = load(&bytes, format, &ReadOptions::new(bits)).unwrap();
                // Doubles have 53 bits, however few of them are needed.
                let same = if format == FileFormat::Npy {
                    compare(&loaded.matrix, &matrix).unwrap().is_equal()
                } else {
                    loaded.matrix == matrix
                };
                assert!(same, "{format:?} {number_form:?}: {matrix} became {}", loaded.matrix);
                let info = read_stream_info(&bytes[..], &Source::new("test".as_ref(), None)).unwrap();
                assert_eq!((info.rows, info.cols), (rows, cols), "{format:?} by its first bytes");
                if format == FileFormat::Mathematica {
                    assert_eq!(loaded.precision_bits_comment, Some(bits));
                }
            }
        }
    }
}

#[test]
fn names_say_format_and_compression() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = random(&mut Rng::new(37), 20, 10, 200);
    for name in ["a.csv", "b.csv.gz", "c.mtx.zst", "d.bin.gz", "e.npy.zst", "f.json.gz", "g.m", "h.tsv", "i.txt.GZ"] {
        let path = folder.path().join(name);
        write(&path, &matrix, &WriteOptions::default()).unwrap();
        assert!(read(&path, &ReadOptions::new(200)).unwrap().matrix == matrix, "{name}");
        assert_eq!(read_info(&path).unwrap().rows, 20, "{name}");
        if name.ends_with(".gz") || name.ends_with(".zst") {
            // Whatever the name says, packed bytes are unpacked; what is cut off is named.
            let bytes = std::fs::read(&path).unwrap();
            let plain = folder.path().join(name.trim_end_matches(".gz").trim_end_matches(".zst"));
            std::fs::write(&plain, &bytes[..bytes.len() - 1]).unwrap();
            let error = read(&plain, &ReadOptions::new(200)).unwrap_err();
            assert!(matches!(error, Error::Io { .. }) && error.exit_code() == 3, "{error:?}");
            assert!(error.to_string().ends_with("stream is truncated"), "{name}: {error}");
        }
    }
    let refused = read(folder.path().join("x.xyz"), &ReadOptions::new(53)).unwrap_err().to_string();
    assert!(refused.contains("x.xyz: the name does not determine the format"), "{refused}");
}

/// A line that is repeated, as long as anyone reads.
struct Endless(&'static [u8], usize);

impl std::io::Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        for byte in &mut *out {
            *byte = self.0[self.1 % self.0.len()];
            self.1 += 1;
        }
        Ok(out.len())
    }
}

#[test]
fn texts_without_end_stop_at_the_limit() {
    for (line, format) in [
        (&b"1,2,3\n"[..], FileFormat::Csv),
        (b"[[1,2,3],[1,2,3],", FileFormat::Json),
        (b"{{0.5},", FileFormat::Mathematica),
    ] {
        let options = ReadOptions::new(100).memory_bytes(1 << 20);
        let start = &line[..if format == FileFormat::Csv { 0 } else { 1 }];
        let rest = Endless(&line[start.len()..], 0);
        let endless = std::io::Read::chain(start, rest);
        let error = read_stream(endless, &Source::new("bomb".as_ref(), format), &options).unwrap_err();
        assert!(
            matches!(error, Error::MemoryLimit { limit_bytes: 1_048_576, minimum_bytes: 1_048_577.. }),
            "{error:?}"
        );
    }
    // A matrix that is announced is refused before anything of it is read.
    for (head, format) in [
        (&b"%%MatrixMarket matrix array real general\n1000 1000\n"[..], FileFormat::MatrixMarket),
        (b"1\n1\n1000\n1\n", FileFormat::Sdpa),
    ] {
        let options = ReadOptions::new(100).memory_bytes(1 << 20);
        let source = Source::new("bomb".as_ref(), format).member((format == FileFormat::Sdpa).then_some("0/1"));
        let error = read_stream(head, &source, &options).unwrap_err();
        assert!(matches!(error, Error::MemoryLimit { minimum_bytes: 24_000_000, .. }), "{error:?}");
    }
}
