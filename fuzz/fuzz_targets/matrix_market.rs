//! Matrix Market text: the reader accepts exactly what a second, plain reader accepts, with the same numbers, and
//! what it read survives every form of writing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sunzi::Error;
use sunzi::io::{FileFormat, ReadOptions, read_stream, read_stream_info};
use sunzi_fuzz::{oracle, round_trips, source};

const PRECISIONS: [u32; 8] = [2, 3, 53, 64, 65, 128, 200, 1000];

/// How other bytes than text begin: gzip, Zstandard, byte order marks.
const PACKED: [&[u8]; 5] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];

fuzz_target!(|data: &[u8]| {
    let [choice, start, rest @ ..] = data else { return };
    let (choice, text) = (*choice, [first_line(*start), rest].concat());
    let text = text.as_slice();
    let input_precision_bits = (choice & 8 != 0).then(|| PRECISIONS[usize::from(choice >> 5)]);
    // Packed bytes and byte order marks are for another target.
    if PACKED.iter().any(|start| text.starts_with(start)) || text.get(1..4) == Some(b"\x2a\x4d\x18") {
        return;
    }
    let precision_bits = PRECISIONS[usize::from(choice & 7)];
    let options = ReadOptions::new(precision_bits).input_precision_bits(input_precision_bits);
    let source = source(FileFormat::MatrixMarket);
    // Shapes that take long are left to other tests.
    if read_stream_info(text, &source).is_ok_and(|info| info.rows as u128 * info.cols as u128 > 4096) {
        return;
    }
    let expected = oracle::parse(text);
    let result = read_stream(text, &source, &options);
    let (loaded, expected) = match (result, expected) {
        (Ok(loaded), Some(expected)) => (loaded, expected),
        (Ok(loaded), None) => panic!("accepted as {}, which the oracle refuses", loaded.matrix),
        (Err(error), expected) => {
            let message = error.to_string();
            assert!(matches!(error, Error::Format { .. }) && message.starts_with("input: line "), "{error:?}");
            assert!(!message.contains('\n') && message.is_ascii(), "{message}");
            let excused = |text: &oracle::Text| {
                let too_large = text.rows.checked_mul(text.cols).is_none_or(|count| count > 1 << 40);
                too_large || text.entries.iter().any(|(_, _, value)| value.is_extreme())
            };
            assert!(expected.as_ref().is_none_or(excused), "refused, but the oracle accepts it: {message}");
            return;
        }
    };
    let matrix = &loaded.matrix;
    assert_eq!((matrix.rows(), matrix.cols(), loaded.symmetric), (expected.rows, expected.cols, expected.symmetric));
    let decimal_bits = input_precision_bits.unwrap_or(precision_bits);
    let exact_bits = expected.entries.iter().map(|entry| entry.2.bits()).max().unwrap_or(0);
    assert_eq!(matrix.precision_bits(), precision_bits.max(decimal_bits).max(exact_bits));
    let mut filled = vec![false; matrix.rows() * matrix.cols()];
    for (row, col, value) in &expected.entries {
        filled[row + col * matrix.rows()] = true;
        if !value.is_extreme() {
            assert!(value.equals(matrix.get(*row, *col), decimal_bits), "row {row}, column {col} of {matrix}");
        }
        if expected.symmetric {
            filled[col + row * matrix.rows()] = true;
            assert_eq!(matrix.get(*row, *col), matrix.get(*col, *row), "row {row}, column {col} of {matrix}");
        }
    }
    for (index, _) in filled.iter().enumerate().filter(|(_, filled)| !**filled) {
        assert!(matrix.get(index % matrix.rows(), index / matrix.rows()).head.is_zero(), "entry {index} of {matrix}");
    }
    round_trips(matrix, loaded.symmetric);
});

/// A first line for most inputs, so that the fuzzer need not find it; the others bring their own.
fn first_line(start: u8) -> &'static [u8] {
    match start % 8 {
        0 | 1 => b"%%MatrixMarket matrix array real general\n",
        2 => b"%%MatrixMarket matrix array real symmetric\n",
        3 => b"%%MatrixMarket matrix array integer general\n2 2\n",
        4 => b"%%MatrixMarket matrix coordinate real general\n",
        5 => b"%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n",
        6 => b"%%MatrixMarket matrix array real general\n1 1\n",
        _ => b"",
    }
}
