//! What the fuzz targets share: a second, slow reader of Matrix Market text, and the way through a file and back.

pub mod oracle;

use sunzi::Matrix;
use sunzi::io::{FileFormat, NumberForm, ReadOptions, Source, Symmetry, WriteOptions, read_stream, write_stream};

/// A source without length, called `input`.
pub fn source(format: FileFormat) -> Source<'static> {
    Source::new(std::path::Path::new("input"), format)
}

/// The bytes of a file with this matrix.
pub fn written(matrix: &Matrix, format: FileFormat, options: &WriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_stream(&mut bytes, source(format).path, format, matrix, options).expect("what was read can be written");
    bytes
}

/// Writes the matrix in every form; each must read back to the same matrix, and be written to the same bytes again.
pub fn round_trips(matrix: &Matrix, symmetric: bool) {
    let symmetry = if symmetric { Symmetry::SymmetricLower } else { Symmetry::General };
    let forms = [
        (FileFormat::MatrixMarket, NumberForm::Decimal),
        (FileFormat::MatrixMarket, NumberForm::Hex),
        (FileFormat::Binary, NumberForm::Hex),
    ];
    for (format, number_form) in forms {
        let options = WriteOptions::new().symmetry(symmetry).number_form(number_form);
        let bytes = written(matrix, format, &options);
        let reading = ReadOptions::new(matrix.precision_bits());
        let loaded = read_stream(&bytes[..], &source(format), &reading).expect("what was written can be read");
        assert!(loaded.matrix == *matrix, "{format:?} {number_form:?} changed {matrix} to {}", loaded.matrix);
        if format != FileFormat::Csv {
            assert_eq!(loaded.precision_bits_comment, Some(matrix.precision_bits()));
            assert_eq!(loaded.symmetric, symmetric);
        }
        assert!(written(&loaded.matrix, format, &options) == bytes, "{format:?} {number_form:?} has two texts");
    }
}
