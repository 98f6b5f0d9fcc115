//! Tables, lists, arrays of NumPy, SDPA's programs, packed or not: no input makes the reader panic, take memory that
//! the limit does not allow, or answer in more than one line; what it read survives every form of writing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sunzi::io::{FileFormat, ReadOptions, Source, parse_exact_integer, parse_number, read_stream, read_stream_info};
use sunzi_fuzz::round_trips;

/// Bytes that a matrix may take.
const LIMIT: u64 = 1 << 20;

const MEMBERS: [&str; 4] = ["B", "0/B", "0/1", "c"];

fuzz_target!(|data: &[u8]| {
    let [format, member, rest @ ..] = data else { return };
    let format = FileFormat::ALL.get(usize::from(*format) % (FileFormat::ALL.len() + 1)).copied();
    let member = MEMBERS.get(usize::from(*member) % (MEMBERS.len() + 1)).copied();
    let source = Source::new("input".as_ref(), format).member(member);
    if let Err(error) = read_stream_info(rest, &source) {
        one_line(&error.to_string());
    }
    match read_stream(rest, &source, &ReadOptions::new(100).memory_bytes(LIMIT)) {
        Ok(loaded) => round_trips(&loaded.matrix, loaded.symmetric),
        Err(error) => one_line(&error.to_string()),
    }
    if let Ok(text) = std::str::from_utf8(rest) {
        let exact = parse_exact_integer(text);
        if let (Ok(parsed), Some((integer, exponent))) = (parse_number(text, 100), exact) {
            let bits = parsed.value.prec();
            assert!(exponent > 1 << 20 || parsed.value == rug::Float::with_val(bits, integer) << exponent as u32);
        }
    }
});

fn one_line(message: &str) {
    assert!(!message.contains('\n') && message.is_ascii(), "{message}");
}
