//! Files of both formats: what is written reads back bit for bit, and what is read is what the text says.
//!
//! `PROPTEST_CASES` overrides the number of cases; `SUNZI_TEST_EFFORT` multiplies the default.

use crate::common::{Rng, effort};
use proptest::prelude::*;
use rug::{Float, Integer};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sunzi::io::{
    FileFormat, Loaded, NumberForm, ReadOptions, Source, Symmetry, WriteOptions, compare, read, read_info, read_stream,
    write, write_stream,
};
use sunzi::{Error, Matrix};

const FORMS: [(FileFormat, NumberForm); 3] = [
    (FileFormat::MatrixMarket, NumberForm::Decimal),
    (FileFormat::MatrixMarket, NumberForm::Hex),
    (FileFormat::Binary, NumberForm::Decimal),
];

fn config() -> ProptestConfig {
    let set = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    let cases = set.unwrap_or(150 * effort() as u32);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Entries of 1 to `bits` significant bits, one in eight 0, exponents within `spread`.
fn random_matrix(rng: &mut Rng, (rows, cols): (usize, usize), bits: u32, spread: i64) -> Matrix {
    let mut matrix = Matrix::zeros(rows, cols, bits).unwrap();
    for col in 0..cols {
        for row in 0..rows {
            if rng.below(8) > 0 {
                let length = if rng.coin() { bits } else { 1 + rng.below(bits as usize) as u32 };
                let value = rng.integer(length);
                matrix.set_integer_exponent(row, col, &value, rng.within(spread)).unwrap();
            }
        }
    }
    matrix
}

fn load(bytes: impl Read, format: FileFormat, options: &ReadOptions) -> sunzi::Result<Loaded> {
    read_stream(bytes, &Source::new(Path::new("test"), format), options)
}

fn text(text: &str, bits: u32) -> Loaded {
    load(text.as_bytes(), FileFormat::MatrixMarket, &ReadOptions::new(bits)).unwrap()
}

fn bytes_of(matrix: &Matrix, format: FileFormat, options: &WriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_stream(&mut bytes, Path::new("test"), format, matrix, options).unwrap();
    bytes
}

fn symmetric_copy(lower: &Matrix) -> Matrix {
    let mut full = lower.clone();
    for col in 0..lower.cols() {
        for row in col..lower.rows() {
            full.set(col, row, lower.get(row, col));
        }
    }
    full
}

/// Hands out few bytes at a time, so that every boundary falls everywhere.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.1.min(self.0.len()).min(out.len());
        out[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_written_reads_back(
        seed: u64, rows in 0usize..7, cols in 0usize..7, bits in 2u32..2000,
        spread in prop::sample::select(vec![0i64, 10, 3000, 100_000]), symmetric: bool,
    ) {
        let shape = if symmetric { (rows, rows) } else { (rows, cols) };
        let matrix = random_matrix(&mut Rng::new(seed), shape, bits, spread);
        let symmetry = if symmetric { Symmetry::SymmetricLower } else { Symmetry::General };
        let want = if symmetric { symmetric_copy(&matrix) } else { matrix.clone() };
        if symmetric && matrix != want {
            let options = WriteOptions::new().symmetry(symmetry);
            let refused = write_stream(std::io::sink(), Path::new("x"), FileFormat::Binary, &matrix, &options);
            prop_assert!(matches!(refused, Err(Error::NotSymmetric { .. })), "seed {seed}");
        }
        for (format, number_form) in FORMS {
            let options = WriteOptions::new().symmetry(symmetry).number_form(number_form);
            let bytes = bytes_of(&want, format, &options);
            let loaded = load(&bytes[..], format, &ReadOptions::new(bits)).unwrap();
            prop_assert!(loaded.matrix == want, "seed {seed}, {format:?} {number_form:?}: {:?}", loaded.matrix);
            prop_assert_eq!((loaded.symmetric, loaded.precision_bits_comment), (symmetric, Some(bits)));
            let slow = load(Trickle(&bytes, 7), format, &ReadOptions::new(bits)).unwrap();
            prop_assert!(slow.matrix == want, "seed {seed}, {format:?} {number_form:?}, 7 bytes at a time");
            // What was read is written to the same bytes, and known to be symmetric where the file says so.
            prop_assert_eq!(bytes_of(&loaded.matrix, format, &options), bytes);
            prop_assert!(!symmetric || loaded.into_symmetric().unwrap() == want);
        }
    }

    #[test]
    fn exact_forms_do_not_depend_on_the_precision_asked_for(seed: u64, bits in 2u32..700, asked in 2u32..700) {
        let matrix = random_matrix(&mut Rng::new(seed), (4, 3), bits, 300);
        for (format, number_form) in &FORMS[1..] {
            let options = WriteOptions::new().number_form(*number_form);
            let loaded = load(&bytes_of(&matrix, *format, &options)[..], *format, &ReadOptions::new(asked)).unwrap();
            prop_assert!(compare(&matrix, &loaded.matrix).unwrap().is_equal(), "seed {seed}, {format:?}");
            let found = loaded.matrix.precision_bits();
            if *format == FileFormat::Binary {
                prop_assert_eq!(found, asked.max(bits));
            } else {
                let needed = matrix.view().to_floats().into_iter().filter_map(|value| {
                    let (integer, _) = value.to_integer_exp()?;
                    Some(integer.significant_bits() - integer.find_one(0)?)
                });
                prop_assert_eq!(found, asked.max(needed.max().unwrap_or(2)), "seed {}: the least that holds all", seed);
            }
        }
    }

    #[test]
    fn decimals_round_as_mpfr_rounds_them(seed: u64, bits in 2u32..400, input in proptest::option::of(2u32..400)) {
        let mut rng = Rng::new(seed);
        let words: Vec<String> = (0..6).map(|_| {
            let length = 1 + rng.below(600) as u32;
            let digits = rng.integer(length);
            format!("{digits}e{}", rng.within(500))
        }).collect();
        let file = format!("%%MatrixMarket matrix array real general\n2 3\n{}\n", words.join("\n"));
        let options = ReadOptions::new(bits).input_precision_bits(input);
        let loaded = load(file.as_bytes(), FileFormat::MatrixMarket, &options).unwrap();
        let decimal_bits = input.unwrap_or(bits);
        prop_assert_eq!(loaded.matrix.precision_bits(), bits.max(decimal_bits));
        for (index, word) in words.iter().enumerate() {
            let want = Float::with_val(decimal_bits, Float::parse(word).unwrap());
            prop_assert_eq!(loaded.matrix.float(index % 2, index / 2), want, "seed {}, {}", seed, word);
        }
    }

    #[test]
    fn comparison_counts_and_measures(seed: u64, changes in 0usize..5) {
        let mut rng = Rng::new(seed);
        let left = random_matrix(&mut rng, (5, 4), 90, 40);
        let mut right = left.clone();
        let mut places = Vec::new();
        for _ in 0..changes {
            let (row, col) = (rng.below(5), rng.below(4));
            right.set_integer_exponent(row, col, &rng.integer(80), rng.within(40)).unwrap();
            places.push((col, row));
        }
        places.retain(|&(col, row)| left.float(row, col) != right.float(row, col));
        places.sort_unstable();
        places.dedup();
        let found = compare(&left, &right).unwrap();
        prop_assert_eq!(found.differing_entries, places.len() as u64);
        prop_assert_eq!(found.is_equal(), places.is_empty());
        prop_assert_eq!(found.first.as_ref().map(|first| (first.column, first.row)), places.first().copied());
        let gap = |place: &(usize, usize)| {
            let (col, row) = *place;
            Float::with_val(400, left.float(row, col) - right.float(row, col)).abs()
        };
        let ratio = |place: &(usize, usize)| {
            let size = left.float(place.1, place.0).abs().max(&right.float(place.1, place.0).abs());
            Float::with_val(400, gap(place) / size)
        };
        let near = |found: &Float, want: Float| Float::with_val(400, found - &want).abs() <= want >> 61;
        if let Some(largest) = &found.largest_absolute {
            let want = places.iter().map(gap).fold(Float::new(400), |a, b| a.max(&b));
            prop_assert!(near(&largest.absolute, want), "seed {seed}: {largest}");
        }
        if let Some(largest) = &found.largest_relative {
            let want = places.iter().map(ratio).fold(Float::new(400), |a, b| a.max(&b));
            prop_assert!(near(&largest.relative, want), "seed {seed}: {largest}");
        }
    }
}

#[test]
fn mixed_kinds_in_one_file() {
    let long = (Integer::from(1) << 200u32) + 1u32;
    let file =
        format!("%%matrixmarket MATRIX Array Real General\n% a comment\n\n2 3\n0.1\n0x1.8p-3 {long}\n\n+1D2 -0\n.5e0");
    let loaded = text(&file, 64);
    assert_eq!(loaded.matrix.precision_bits(), 201, "the long integer decides");
    assert_eq!(loaded.matrix.float(0, 0), Float::with_val(64, Float::parse("0.1").unwrap()), "decimals keep 64 bits");
    assert_eq!(loaded.matrix.float(0, 1), long);
    let rest = [(1, 0, 0.1875), (1, 1, 100.0), (0, 2, 0.0), (1, 2, 0.5)];
    assert!(rest.iter().all(|&(row, col, value)| loaded.matrix.float(row, col) == value), "{}", loaded.matrix);
    assert_eq!((loaded.symmetric, loaded.precision_bits_comment), (false, None));
}

#[test]
fn every_arrangement_gives_the_same_matrix() {
    let full = text("%%MatrixMarket matrix array integer general\n3 3\n1\n2\n0\n2\n4\n5\n0\n5\n-6\n", 64).matrix;
    let files = [
        "%%MatrixMarket matrix array integer symmetric\r\n3 3\r\n1\r\n2\r\n0\r\n4\r\n5\r\n-6\r\n",
        "%%MatrixMarket matrix coordinate real general\n3 3 7\n1 1 1\n2 1 2\n1 2 2\n 3 3 -6. \n\n2 2 4\n2 3 5\n3 2 5\n",
        "%%MatrixMarket matrix coordinate integer symmetric\n%\n3\t3 5\n3 2 5\n3 3 -6\n2 1 2\n1 1 1\n2 2 4",
    ];
    for file in files {
        assert!(text(file, 64).matrix == full, "{file}");
    }
    for file in [files[0], files[2]] {
        let loaded = text(file, 64);
        assert!(loaded.symmetric && loaded.into_symmetric().unwrap() == full, "{file}");
    }
    for file in [
        "array real general\n0 5\n",
        "array real general\n5 0",
        "array real symmetric\n0 0\n",
        "coordinate real general\n0 7 0\n",
        "array real general\n0 9000000000000000000\n",
    ] {
        let loaded = text(&format!("%%MatrixMarket matrix {file}"), 64).matrix;
        assert_eq!(loaded.rows() * loaded.cols(), 0);
        for (format, number_form) in FORMS {
            let bytes = bytes_of(&loaded, format, &WriteOptions::new().number_form(number_form));
            assert!(load(&bytes[..], format, &ReadOptions::new(64)).unwrap().matrix == loaded, "{file}");
        }
        assert!(compare(&loaded, &loaded).unwrap().is_equal());
    }
}

#[test]
fn the_text_of_a_file() {
    let matrix = Matrix::from_f64s(2, 2, 60, &[0.1875, -3.0, 0.0, 1e22]).unwrap();
    let header = "%%MatrixMarket matrix array real general\n%sunzi precision_bits=60\n2 2\n";
    let text = |form, symmetry| {
        let options = WriteOptions::new().number_form(form).symmetry(symmetry);
        let whole = if symmetry == Symmetry::General { matrix.clone() } else { symmetric_copy(&matrix) };
        String::from_utf8(bytes_of(&whole, FileFormat::MatrixMarket, &options)).unwrap()
    };
    assert_eq!(text(NumberForm::Decimal, Symmetry::General), format!("{header}1.875e-1\n-3\n0\n1e22\n"));
    assert_eq!(
        text(NumberForm::Hex, Symmetry::General),
        format!("{header}0x1.8p-3\n-0x1.8p1\n0x0p0\n0x1.0f0cf064dd592p73\n")
    );
    let lower = header.replace("general", "symmetric");
    assert_eq!(text(NumberForm::Decimal, Symmetry::SymmetricLower), format!("{lower}1.875e-1\n-3\n1e22\n"));
    let wide = Matrix::zeros(2, 3, 60).unwrap();
    let options = WriteOptions::new().symmetry(Symmetry::SymmetricLower);
    let refused = write_stream(std::io::sink(), Path::new("x"), FileFormat::Binary, &wide, &options).unwrap_err();
    assert_eq!(refused.to_string(), "a 2 x 3 matrix cannot be written as symmetric");
}

#[test]
fn files_by_name_and_their_headers() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = random_matrix(&mut Rng::new(3), (5, 5), 130, 50);
    for name in ["a.mtx", "A.MTX", "b.bin"] {
        let path = folder.path().join(name);
        let options = WriteOptions::new().symmetry(Symmetry::SymmetricLower);
        write(&path, &symmetric_copy(&matrix), &options).unwrap();
        let info = read_info(&path).unwrap();
        assert_eq!((info.rows, info.cols, info.symmetric, info.stored_entries), (5, 5, true, 15));
        assert_eq!(info.precision_bits_comment, Some(130));
        assert!(read(&path, &ReadOptions::new(130)).unwrap().matrix == symmetric_copy(&matrix));
        // A transposed view is written as what it shows.
        write(&path, matrix.transposed(), &WriteOptions::default()).unwrap();
        assert!(read(&path, &ReadOptions::new(130)).unwrap().matrix == matrix.transposed().to_matrix().unwrap());
    }
    let message = write(folder.path().join("a.xyz"), &matrix, &WriteOptions::default()).unwrap_err().to_string();
    assert!(
        message.contains("a.xyz: the name does not determine the format: it must end in one of .mtx, .bin, .csv"),
        "{message}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no temporary file is left");
}

/// Integers and hexadecimal floats are exact whatever the precision: decimals alone have digits that count.
#[test]
fn the_longest_digits_are_those_of_decimals() {
    let folder = tempfile::tempdir().unwrap();
    for (text, longest) in [("1.25,100\n0x1.8p0,0.0070\n", Some(3)), ("12e5,7\n", Some(2)), ("123,0x1.25p3\n", None)] {
        let path = folder.path().join("a.csv");
        fs::write(&path, text).unwrap();
        assert_eq!(read_info(&path).unwrap().longest_digits, longest, "{text}");
    }
}

/// Heads and significands that are read in several pieces, of which the last is a part of one.
#[test]
fn files_longer_than_a_buffer_are_read() {
    let mut rng = Rng::new(71);
    // Mebibytes of limbs, and of heads.
    for (shape, bits) in [((301, 100), 640), ((150_001, 1), 20)] {
        let matrix = random_matrix(&mut rng, shape, bits, 100);
        let bytes = bytes_of(&matrix, FileFormat::Binary, &WriteOptions::default());
        assert!(bytes.len() > 9 << 18 && !bytes.len().is_multiple_of(1 << 20));
        assert!(load(&bytes[..], FileFormat::Binary, &ReadOptions::new(bits)).unwrap().matrix == matrix);
    }
}

#[test]
fn devices_are_written_directly() {
    let matrix = random_matrix(&mut Rng::new(4), (30, 30), 200, 50);
    write("/dev/null", &matrix, &WriteOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let full = folder.path().join("full.bin");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    for path in [Path::new("/dev/full"), &full] {
        let error = write(path, &matrix, &WriteOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Io { action: "write", .. }));
        assert_eq!(
            error.to_string(),
            format!("{}: cannot write: No space left on device (os error 28)", path.display())
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn progress_is_told_and_cancels() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = random_matrix(&mut Rng::new(5), (40, 50), 300, 50);
    for name in ["a.mtx", "a.bin"] {
        let path = folder.path().join(name);
        let (last, total) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (last_seen, total_seen) = (last.clone(), total.clone());
        let watch = move |progress: sunzi::Progress| {
            assert!(progress.done >= last_seen.swap(progress.done, Ordering::Relaxed));
            total_seen.store(progress.total, Ordering::Relaxed);
            true
        };
        let watch: Arc<sunzi::ProgressCallback> = Arc::new(watch);
        write(&path, &matrix, &WriteOptions::new().progress(watch.clone())).unwrap();
        assert_eq!((last.swap(0, Ordering::Relaxed), total.load(Ordering::Relaxed)), (2000, 2000));
        read(&path, &ReadOptions::new(300).progress(watch)).unwrap();
        let bytes = fs::metadata(&path).unwrap().len();
        assert_eq!((last.load(Ordering::Relaxed), total.load(Ordering::Relaxed)), (bytes, bytes));
        let before = fs::read(&path).unwrap();
        let stop: Arc<sunzi::ProgressCallback> = Arc::new(|progress: sunzi::Progress| progress.done < 100);
        let options = WriteOptions::new().progress(stop.clone());
        assert!(matches!(write(&path, matrix.transposed(), &options), Err(Error::Cancelled)));
        assert!(before == fs::read(&path).unwrap(), "the old file stands");
        let options = ReadOptions::new(300).progress(stop);
        assert!(matches!(read(&path, &options), Err(Error::Cancelled)));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn comparison_prints_places_from_one() {
    let left = Matrix::from_f64s(2, 2, 100, &[1.0, 2.0, 3.0, 4.0]).unwrap();
    let mut right = Matrix::from_f64s(2, 2, 53, &[1.0, 2.0, 3.0, 4.0]).unwrap();
    assert_eq!(compare(&left, &right).unwrap().to_string(), "equal: all 4 entries of the 2 x 2 matrices");
    right.set_f64(1, 0, -2.0).unwrap();
    right.set_f64(1, 1, 10.0).unwrap();
    let text = compare(&left, &right).unwrap().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "different: 2 of 4 entries of the 2 x 2 matrices");
    for (line, start, end) in [
        (1, "first:            row 2, column 1 (from 1): 2.0", "absolute 4.00e0, relative 2.00e0"),
        (2, "largest absolute: row 2, column 2 (from 1): 4.0", "absolute 6.00e0, relative 6.00e-1"),
        (3, "largest relative: row 2, column 1 (from 1): 2.0", "absolute 4.00e0, relative 2.00e0"),
    ] {
        assert!(lines[line].starts_with(start) && lines[line].ends_with(end), "{text}");
    }
    let error = compare(&left, &Matrix::zeros(2, 3, 64).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "compare: shapes do not fit: 2 x 2 against 2 x 3");
    // As many digits as it takes to see a difference.
    let mut close = Matrix::from_f64s(1, 1, 300, &[1.0]).unwrap();
    let one = close.clone();
    close.set_float(0, 0, &(Float::with_val(300, 1) + (Float::with_val(300, 1) >> 200u32))).unwrap();
    let text = compare(&one, &close).unwrap().to_string();
    let (left, right) = text.lines().nth(1).unwrap().split_once(" against ").unwrap();
    let (left, right) = (left.rsplit(' ').next().unwrap(), right.split(',').next().unwrap());
    assert!(left != right && left.len() == right.len() && left.len() < 80, "{text}");
    // The largest exponents: the difference leaves MPFR's range, the ratio does not.
    let extreme = |value: i32| {
        let mut matrix = Matrix::from_f64s(1, 1, 64, &[f64::from(value)]).unwrap();
        matrix.shift_exponents(sunzi::MAXIMUM_EXPONENT - 1).unwrap();
        matrix
    };
    let found = compare(&extreme(1), &extreme(-1)).unwrap();
    assert!(found.largest_absolute.is_some_and(|largest| largest.absolute.is_infinite() && largest.relative == 2));
}

/// Matrices of the SDPB test data, where the data lie beside the repository.
#[test]
fn test_data_of_sdpb() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data/sdpb");
    for (name, rows, cols) in [("SingletScalar_cT_test_nmax6/B.mtx", 322, 20), ("1d/B.mtx", 0, 0)] {
        let path = folder.join(name);
        if !path.exists() {
            println!("skipped: {} is not there", path.display());
            continue;
        }
        let matrix = read(&path, &ReadOptions::new(768)).unwrap().matrix;
        assert!(rows == 0 || (matrix.rows(), matrix.cols()) == (rows, cols));
        let text = fs::read_to_string(&path).unwrap();
        let words = text.lines().filter(|line| !line.starts_with('%')).skip(1);
        let values: Vec<Float> = words.map(|word| Float::with_val(768, Float::parse(word).unwrap())).collect();
        assert!(matrix == Matrix::from_floats(matrix.rows(), matrix.cols(), 768, &values).unwrap(), "{name}");
    }
}
