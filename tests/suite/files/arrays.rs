//! Arrays of NumPy, as NumPy 2.4 wrote them.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sunzi::io::{FileFormat, Loaded, NumberForm, ReadOptions, Source, WriteOptions, read_stream, write_stream};
use sunzi::{Error, Matrix, Progress, ProgressCallback};

/// A file with this head and these bytes behind it.
fn file(head: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{{head}, }}");
    let text = format!("{text:<117}\n");
    [&b"\x93NUMPY\x01\x00v\x00"[..], text.as_bytes(), data].concat()
}

fn load(bytes: &[u8]) -> sunzi::Result<Loaded> {
    let source = Source::new("a.npy".as_ref(), FileFormat::Npy).bytes(bytes.len() as u64);
    read_stream(bytes, &source, &ReadOptions::new(100))
}

fn entries(matrix: &Matrix) -> Vec<f64> {
    let all = (0..matrix.rows()).flat_map(|row| (0..matrix.cols()).map(move |col| (row, col)));
    all.map(|(row, col)| matrix.float(row, col).to_f64()).collect()
}

fn refusal(bytes: &[u8]) -> String {
    let message = load(bytes).expect_err("a refusal").to_string();
    assert!(!message.contains('\n') && message.is_ascii(), "{message}");
    message.strip_prefix("a.npy: ").expect("the message starts with the file").to_string()
}

#[test]
fn numbers_of_every_width_and_order() {
    let head = |descr: &str, fortran: &str, shape: &str| {
        format!("'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}")
    };
    let doubles = [1.5f64, -2.0, 3.0, 4.0];
    let big: Vec<u8> = doubles.iter().flat_map(|value| value.to_be_bytes()).collect();
    let little: Vec<u8> = doubles.iter().flat_map(|value| value.to_le_bytes()).collect();
    let read = |head: &str, data: &[u8]| {
        let matrix = load(&file(head, data)).unwrap().matrix;
        (matrix.rows(), matrix.cols(), entries(&matrix))
    };
    assert_eq!(read(&head(">f8", "False", "(2, 2)"), &big), (2, 2, doubles.to_vec()));
    assert_eq!(read(&head("<f8", "True", "(2, 2)"), &little), (2, 2, vec![1.5, 3.0, -2.0, 4.0]));
    assert_eq!(read(&head("<f8", "False", "(4,)"), &little), (4, 1, doubles.to_vec()));
    assert_eq!(read(&head("<f8", "False", "()"), &little[..8]), (1, 1, vec![1.5]));
    assert_eq!(read(&head("<f4", "False", "(1, 2)"), &[0, 0, 0xc0, 0x3f, 0, 0, 0x20, 0x40]), (1, 2, vec![1.5, 2.5]));
    assert_eq!(read(&head("|i1", "False", "(1, 2)"), &[0xff, 0x7f]), (1, 2, vec![-1.0, 127.0]));
    assert_eq!(read(&head(">u2", "False", "(1, 2)"), &[1, 0, 0xff, 0xff]), (1, 2, vec![256.0, 65535.0]));
    assert_eq!(read(&head("<i8", "False", "(1,)"), &i64::MIN.to_le_bytes()), (1, 1, vec![i64::MIN as f64]));
    assert_eq!(read(&head("|b1", "False", "(2,)"), &[1, 0]), (2, 1, vec![1.0, 0.0]));
    let native: Vec<u8> = doubles.iter().flat_map(|value| value.to_ne_bytes()).collect();
    for name in ["=f8", "f8"] {
        assert_eq!(read(&head(name, "False", "(4,)"), &native), (4, 1, doubles.to_vec()));
    }
    assert_eq!(read(&head("|S3", "False", "(2,)"), b"1.52\0\0"), (2, 1, vec![1.5, 2.0]));
    let wide: Vec<u8> = "-0.5\0".chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect();
    assert_eq!(read(&head("<U5", "False", "(1, 1)"), &wide), (1, 1, vec![-0.5]));
    // The least double, and integers beyond 53 bits, are exact.
    let least = load(&file(&head("<f8", "False", "(1,)"), &1u64.to_le_bytes())).unwrap();
    assert_eq!((least.matrix.float(0, 0).to_f64(), least.precision_bits_comment), (5e-324, Some(53)));
    let exact = load(&file(&head("<u8", "False", "(1,)"), &u64::MAX.to_le_bytes())).unwrap();
    assert_eq!((exact.matrix.float(0, 0), exact.precision_bits_comment), (rug::Float::with_val(64, u64::MAX), None));
}

/// What NumPy writes before the list of an array of objects.
const OBJECTS: &[u8] = b"\x80\x04\x95\xf3\x00\x00\x00\x00\x00\x00\x00\x8c\x16numpy._core.multiarray\x94\x8c\x0c_\
reconstruct\
\x94\x93\x94\x8c\x05numpy\x94\x8c\x07ndarray\x94\x93\x94K\x00\x85\x94C\x01b\x94\x87\x94R\x94(K\x01K\x03K\x02\x86\
\x94h\x03\
\x8c\x05dtype\x94\x93\x94\x8c\x02O8\x94\x89\x88\x87\x94R\x94(K\x03\x8c\x01|\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\
\xffK?t\
\x94b\x89]\x94";

pub fn objects(shape: &str, list: &[u8]) -> Vec<u8> {
    let head = format!("'descr': '|O', 'fortran_order': False, 'shape': {shape}");
    file(&head, &[OBJECTS, list].concat())
}

/// Texts, an integer of 101 bits, a double, a `Decimal` and a `Fraction`.
pub const MIXED: &[u8] = b"(\x8c\x031.5\x94\x8c\x05-2e-3\x94\x8a\r\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
\x00\xf0\
G?\xd0\x00\x00\x00\x00\x00\x00\x8c\x07decimal\x94\x8c\x07Decimal\x94\x93\x94\x8c\x033.5\x94\x85\x94R\x94\x8c\tfr\
actions\
\x94\x8c\x08Fraction\x94\x93\x94K\x01K\x03\x86\x94R\x94et\x94b.";

/// -1.25, 0, the same 0, 3 of mpmath 1.3, and of mpmath 1.4 with gmpy2.
const MPF: [&[u8]; 2] = [
    b"(\x8c\x14mpmath.ctx_mp_python\x94\x8c\x03mpf\x94\x93\x94)\x81\x94(K\x01\x8c\x015\x94J\xfe\xff\xff\xffK\x03\
t\x94bh\x15)\
\x81\x94(K\x00\x8c\x010\x94K\x00K\x00t\x94bh\x19h\x15)\x81\x94(K\x00\x8c\x013\x94K\x00K\x02t\x94bet\x94b.",
    b"(\x8c\x14mpmath.ctx_mp_python\x94\x8c\t_make_mpf\x94\x93\x94(K\x01\x8c\x0bgmpy2.gmpy2\x94\x8c\x0bfrom_bina\
ry\x94\x93\
\x94C\x03\x01\x01\x05\x94\x85\x94R\x94J\xfe\xff\xff\xffK\x03t\x94\x85\x94R\x94h\x15(K\x00h\x18C\x02\x01\x00\x94\
\x85\x94R\
\x94K\x00K\x00t\x94\x85\x94R\x94h$h\x15(K\x00h\x18C\x03\x01\x01\x03\x94\x85\x94R\x94K\x00K\x02t\x94\x85\x94R\x94\
et\x94b.",
];

#[test]
fn objects_are_read_without_running_anything() {
    let matrix = load(&objects("(3, 2)", MIXED)).unwrap().matrix;
    let third = rug::Float::with_val(100, rug::Rational::from((1, 3)));
    assert_eq!(entries(&matrix)[..5], [1.5, -2e-3, -(2f64.powi(100)), 0.25, 3.5]);
    assert_eq!(matrix.float(2, 1), third);
    for list in MPF {
        assert_eq!(entries(&load(&objects("(2, 2)", list)).unwrap().matrix), [-1.25, 0.0, 0.0, 3.0]);
    }
    let list = b"(\x8c\x02os\x94\x8c\x06system\x94\x93\x94\x8c\x02ls\x94\x85\x94R\x94et\x94b.";
    assert!(refusal(&objects("(1, 1)", list)).starts_with("objects of type os.system are not supported: use strings,"));
    assert!(refusal(&objects("(1, 1)", b"(Net\x94b.")).starts_with("an object of the array has an unsupported type"));
    assert_eq!(
        refusal(&objects("(1, 1)", b"(\x8c\x01xet\x94b.")),
        "entry at row 1, column 1 (counted from 1) is not a number: 'x'"
    );
    assert_eq!(refusal(&objects("(2, 1)", b"(K\x01et\x94b.")), "the array has 1 objects, but its header requires 2");
    assert!(refusal(&objects("(1, 1)", b"(K\x01K\x02et\x94b.")).starts_with("entry at row 2, column 1"));
}

#[test]
fn files_that_are_wrong() {
    let head = "'descr': '<f8', 'fortran_order': False, 'shape': (2, 1)";
    let whole = file(head, &[0; 16]);
    assert!(refusal(&whole[..whole.len() - 1]).starts_with("the file is truncated: it has 143 bytes"));
    assert!(refusal(&[&whole[..], b"x"].concat()).starts_with("the file is too long"));
    assert_eq!(refusal(b"\x93NUMPY\x01\x00"), "the file ends after 8 bytes, within its header");
    assert_eq!(
        refusal(b"\x93NUMPY\x09\x00v\x00{'"),
        "version 9 of NumPy's format is not supported: only versions 1, 2 and 3 are"
    );
    let nan = file(head, &[[0; 8], f64::NAN.to_le_bytes()].concat());
    assert_eq!(refusal(&nan), "entry at row 2, column 1 (counted from 1) is NaN: every entry must be finite");
    for (old, new, want) in [
        ("'<f8'", "'<c16'", "entries of type '<c16' are not supported"),
        ("'<f8'", "'<f16'", "entries of type '<f16' are not supported"),
        ("'<f8'", "[('a', '<f8')]", "the entries are records of several fields, not numbers"),
        ("(2, 1)", "(2, 1, 1)", "an array of 3 dimensions is not a matrix"),
        ("(2, 1)", "(2, x)", "'shape' of the header contains a size that is not a number"),
        ("'shape'", "'shale'", "the header has no 'shape'"),
        ("False", "Maybe", "'fortran_order' of the header is neither True nor False"),
    ] {
        let found = refusal(&file(&head.replace(old, new), &[0; 16]));
        assert!(found.starts_with(want), "{new}: {found}");
    }
    // Sizes that no machine has; without a length, as from a pipe.
    let huge = file(&head.replace("(2, 1)", "(9999999999999, 9999999999999)"), &[]);
    let error =
        read_stream(&huge[..], &Source::new("a".as_ref(), FileFormat::Npy), &ReadOptions::new(100)).unwrap_err();
    assert!(matches!(error, Error::DimensionOverflow { .. }), "{error:?}");
}

#[test]
fn doubles_are_written_as_doubles_and_the_rest_as_texts() {
    let written = |matrix: &Matrix, number_form| {
        let mut bytes = Vec::new();
        let options = WriteOptions::new().number_form(number_form);
        write_stream(&mut bytes, "a.npy".as_ref(), FileFormat::Npy, matrix, &options).unwrap();
        assert_eq!(bytes.iter().position(|&byte| byte == b'\n').unwrap() % 64, 63, "NumPy aligns entries");
        let (source, options) = (Source::new("a.npy".as_ref(), None), ReadOptions::new(matrix.precision_bits()));
        assert!(read_stream(&bytes[..], &source, &options).unwrap().matrix == *matrix);
        String::from_utf8_lossy(&bytes[10..60]).into_owned()
    };
    let small = Matrix::from_f64s(1, 2, 53, &[0.1, -3.0]).unwrap();
    assert!(written(&small, NumberForm::Decimal).contains("'<f8'") && written(&small, NumberForm::Hex).contains("'<U"));
    let long = Matrix::from_f64s(1, 2, 54, &[0.1, -3.0]).unwrap();
    assert!(written(&long, NumberForm::Decimal).contains("'descr': '<U"));
    let mut far = small.clone();
    far.shift_exponents(2000).unwrap();
    assert!(written(&far, NumberForm::Decimal).contains("'<U"));
    far.shift_exponents(sunzi::MAXIMUM_EXPONENT - 3000).unwrap();
    assert!(written(&far, NumberForm::Decimal).contains("'<U") && written(&far, NumberForm::Hex).contains("'<U"));
}

/// A disk of a million bytes.
struct SmallDisk(usize);

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn more_empty_rows_than_any_disk_holds_neither_take_time_nor_fill_memory() {
    let matrix = Matrix::zeros(1 << 50, 0, 100).unwrap();
    let write = |format| write_stream(SmallDisk(1 << 20), "a".as_ref(), format, &matrix, &WriteOptions::new());
    write(FileFormat::Npy).unwrap();
    for format in [FileFormat::Json, FileFormat::Mathematica] {
        let error = write(format).unwrap_err();
        assert!(matches!(error, Error::Io { action: "write", .. }), "{error}");
        let told = Arc::new(AtomicUsize::new(0));
        let counter = told.clone();
        let ask: Arc<ProgressCallback> = Arc::new(move |_: Progress| counter.fetch_add(1, Ordering::Relaxed) < 3);
        let options = WriteOptions::new().progress(ask);
        let error = write_stream(io::sink(), "a".as_ref(), format, &matrix, &options).unwrap_err();
        assert!(matches!(error, Error::Cancelled) && told.load(Ordering::Relaxed) == 4, "{error}");
    }
}
