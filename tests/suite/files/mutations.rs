//! Files of every format with bytes changed, left out and cut off: each is read, or refused in one line, and the memory
//! that is taken is small.

use super::arrays::{MIXED, objects};
use crate::common::{Rng, effort};
use sunzi::Matrix;
use sunzi::io::{
    Compression, FileFormat, ReadOptions, Source, WriteOptions, read_info, read_stream, read_stream_info, write_stream,
};

/// A file of each kind, and the name of the matrix inside.
fn samples() -> Vec<(FileFormat, Vec<u8>, Option<&'static str>)> {
    let matrix = Matrix::from_f64s(2, 3, 70, &[0.5, -1.25, 3.0, 0.1, 7.5e-3, 1e30]).unwrap();
    let mut samples = Vec::new();
    for format in FileFormat::ALL.into_iter().filter(|format| format.is_written()) {
        let mut bytes = Vec::new();
        write_stream(&mut bytes, "x".as_ref(), format, &matrix, &WriteOptions::default()).unwrap();
        samples.push((format, bytes, None));
    }
    samples.push((FileFormat::Npy, objects("(3, 2)", MIXED), None));
    samples.push((FileFormat::Json, br#"{"a": [1, "\""], "B": [["1", 2.5], [3, 4]], "c": {}}"#.to_vec(), Some("B")));
    samples.push((FileFormat::Mathematica, b"(* x *) m = {{1.5`30, 2\\\n3*^-1}, {1/3, 0``5}};".to_vec(), None));
    samples.push((FileFormat::Csv, b"# c\nx;y\n1;\"2.5\"\n 3 ;4e1;\n".to_vec(), None));
    samples.push((FileFormat::Sdpa, b"\"c\n1=m\n2\n(2,-1)\n{1}\n0 1 1 2 1.5\n1 2 1 1 -2\n".to_vec(), Some("0/1")));
    samples
}

/// Reads bytes in every way; what is refused must be one line.
fn survives(bytes: &[u8], format: Option<FileFormat>, member: Option<&str>) -> bool {
    let source = Source::new("bad".as_ref(), format).member(member);
    let options = ReadOptions::new(64).memory_bytes(1 << 20);
    let info = read_stream_info(bytes, &source);
    let loaded = read_stream(bytes, &source, &options);
    for message in [info.err().map(|error| error.to_string()), loaded.as_ref().err().map(|error| error.to_string())] {
        let message = message.unwrap_or_default();
        assert!(!message.contains('\n') && message.is_ascii() && message.len() < 1000, "{message}");
    }
    loaded.is_ok()
}

#[test]
fn changed_bytes() {
    let mut rng = Rng::new(12);
    let (mut read, mut refused) = (0, 0);
    for (format, bytes, member) in samples() {
        assert!(survives(&bytes, Some(format), member), "{format:?}");
        let mut look = |bytes: &[u8]| match survives(bytes, Some(format), member) {
            true => read += 1,
            false => refused += 1,
        };
        for at in 0..bytes.len() {
            look(&bytes[..at]);
            look(&[&bytes[..at], &bytes[at + 1..]].concat());
            for _ in 0..2 * effort() {
                let mut changed = bytes.clone();
                changed[at] =
                    [b'0', b'9', b'-', b'.', b'\n', b'"', b'[', b'\x0c', 0xff, rng.below(256) as u8][rng.below(10)];
                look(&changed);
            }
        }
        for _ in 0..40 * effort() {
            let mut changed = bytes.clone();
            for _ in 0..1 + rng.below(4) {
                let (from, to) = (rng.below(bytes.len()), rng.below(bytes.len()));
                let (from, to) = (from.min(to), from.max(to));
                let piece = changed[from.min(changed.len())..to.min(changed.len())].to_vec();
                let at = rng.below(changed.len() + 1);
                changed.splice(at..at, piece);
            }
            look(&changed);
            survives(&changed, None, None);
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} read, {refused} refused");
}

/// The same for packed files, whose changes are noticed.
#[test]
fn changed_packed_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = Matrix::from_f64s(20, 3, 70, &[0.1; 60]).unwrap();
    for name in ["a.csv.gz", "a.csv.zst"] {
        let path = folder.path().join(name);
        assert_ne!(Compression::of(&path), Compression::None);
        sunzi::io::write(&path, &matrix, &WriteOptions::default()).unwrap();
        assert_eq!(read_info(&path).unwrap().rows, 20);
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[at / 8] ^= 1 << (at % 8);
            survives(&changed, Some(FileFormat::Csv), None);
            let source = Source::new("bad".as_ref(), FileFormat::Csv);
            if let Ok(loaded) = read_stream(&changed[..], &source, &ReadOptions::new(70)) {
                assert!(loaded.matrix == matrix, "{name}: bit {at} changed the matrix");
            }
        }
        for length in 0..bytes.len() {
            assert!(!survives(&bytes[..length], Some(FileFormat::Csv), None), "{name}: {length} bytes");
        }
    }
}

#[test]
fn noise() {
    let mut rng = Rng::new(13);
    let letters = b"0123456789.,;-+eE[]{}\"`*^/_ \t\n#%x:()=\\";
    for _ in 0..400 * effort() {
        let bytes: Vec<u8> = (0..rng.below(60)).map(|_| letters[rng.below(letters.len())]).collect();
        for format in FileFormat::ALL {
            survives(&bytes, Some(format), None);
        }
        survives(&bytes, None, None);
    }
}
