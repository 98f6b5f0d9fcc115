//! The head of a file of NumPy: which numbers, in which order, of which shape.
//!
//! Format: NumPy Enhancement Proposal 1, versions 1.0 to 3.0. Independent of: entries.

/// Longest header that is read; NumPy's own are below 200 bytes.
const MAXIMUM_BYTES: usize = 1 << 16;

/// Bytes before the text of the header, in version 1 and in later ones.
pub(super) const PREFIX_BYTES: [usize; 2] = [10, 12];

/// The element type of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NpyElement {
    /// IEEE numbers of this many bytes, 4 or 8.
    Float(usize),
    /// Integers of this many bytes, 1, 2, 4 or 8.
    Signed(usize),
    /// Unsigned integers of this many bytes, 1, 2, 4 or 8; also NumPy's truth values.
    Unsigned(usize),
    /// Texts of this many characters, each of four bytes.
    Unicode(usize),
    /// Texts of this many bytes.
    Bytes(usize),
    /// Objects of Python, pickled.
    Objects,
}

/// The header before the entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NpyHeader {
    pub kind: NpyElement,
    pub is_big_endian: bool,
    /// Column by column.
    pub fortran_order: bool,
    pub rows: usize,
    pub cols: usize,
}

impl NpyElement {
    /// Bytes of one entry; `None` where they differ.
    pub fn bytes(self) -> Option<usize> {
        match self {
            NpyElement::Float(bytes)
            | NpyElement::Signed(bytes)
            | NpyElement::Unsigned(bytes)
            | NpyElement::Bytes(bytes) => Some(bytes),
            NpyElement::Unicode(chars) => chars.checked_mul(4),
            NpyElement::Objects => None,
        }
    }

    /// The precision of floating-point numbers; integers and texts state none.
    pub fn precision_bits(self) -> Option<u32> {
        match self {
            NpyElement::Float(4) => Some(24),
            NpyElement::Float(_) => Some(53),
            _ => None,
        }
    }

    /// Bits that hold every number of the type.
    pub fn exact_bits(self) -> u32 {
        match self {
            NpyElement::Signed(bytes) | NpyElement::Unsigned(bytes) => 8 * bytes as u32,
            _ => self.precision_bits().unwrap_or(2),
        }
    }
}

/// Bytes before the entries, by the first 12 bytes of the file: where the text of the header begins, and its length.
///
/// # Errors
/// A description of the defect.
pub(super) fn text_range(first: &[u8; 12]) -> Result<std::ops::Range<usize>, String> {
    if first[..6] != *b"\x93NUMPY" {
        return Err("this is not a NumPy file: the magic bytes at its start are wrong".into());
    }
    let (start, length) = match first[6] {
        1 => (PREFIX_BYTES[0], usize::from(u16::from_le_bytes([first[8], first[9]]))),
        2 | 3 => (PREFIX_BYTES[1], u32::from_le_bytes([first[8], first[9], first[10], first[11]]) as usize),
        version => {
            return Err(format!("version {version} of NumPy's format is not supported: only versions 1, 2 and 3 are"));
        }
    };
    if !(2..=MAXIMUM_BYTES).contains(&length) {
        return Err(format!("a header of {length} bytes is not supported: the limits are 2 and {MAXIMUM_BYTES} bytes"));
    }
    Ok(start..start + length)
}

impl NpyHeader {
    /// Reads the text of a header, a dictionary of Python.
    ///
    /// # Errors
    /// A description of the defect.
    pub fn parse(text: &[u8]) -> Result<NpyHeader, String> {
        let text = std::str::from_utf8(text).map_err(|_| "the header is not text")?;
        let (kind, is_big_endian) = parse_type(value_of(text, "descr")?)?;
        let order = value_of(text, "fortran_order")?;
        let fortran_order = match order {
            _ if order.starts_with("True") => true,
            _ if order.starts_with("False") => false,
            _ => return Err("'fortran_order' of the header is neither True nor False".into()),
        };
        let (rows, cols) = parse_shape(value_of(text, "shape")?)?;
        Ok(NpyHeader { kind, is_big_endian, fortran_order, rows, cols })
    }
}

/// The value of a key.
fn value_of<'a>(text: &'a str, key: &str) -> Result<&'a str, String> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let found = quoted.iter().find_map(|key| Some(&text[text.find(key)? + key.len()..]));
    let value = found.and_then(|rest| rest.trim_start().strip_prefix(':'));
    value.map(str::trim_start).ok_or_else(|| format!("the header has no '{key}'"))
}

fn parse_type(value: &str) -> Result<(NpyElement, bool), String> {
    let inner = value.strip_prefix(['\'', '"']).and_then(|rest| rest.split(['\'', '"']).next());
    let Some(name) = inner else { return Err("the entries are records of several fields, not numbers".into()) };
    let refused = || {
        let shown: String = name.chars().take(20).filter(char::is_ascii_graphic).collect();
        Err(format!(
            "entries of type '{shown}' are not supported: use doubles or singles (f8, f4), integers, booleans, strings \
             (U, S) or objects (O)"
        ))
    };
    let (order, rest) = match name.as_bytes() {
        [order @ (b'<' | b'>' | b'|' | b'='), ..] => (*order, &name[1..]),
        _ => (b'=', name),
    };
    let Some(letter) = rest.chars().next().filter(char::is_ascii) else { return refused() };
    let size = rest[1..].parse::<usize>().ok();
    let kind = match (letter, size) {
        ('f', Some(bytes @ (4 | 8))) => NpyElement::Float(bytes),
        ('i', Some(bytes @ (1 | 2 | 4 | 8))) => NpyElement::Signed(bytes),
        ('u', Some(bytes @ (1 | 2 | 4 | 8))) => NpyElement::Unsigned(bytes),
        ('b', Some(1)) => NpyElement::Unsigned(1),
        ('U', Some(chars)) if chars <= 1 << 24 => NpyElement::Unicode(chars),
        ('S' | 'a', Some(bytes)) if bytes <= 1 << 26 => NpyElement::Bytes(bytes),
        ('O', _) => NpyElement::Objects,
        _ => return refused(),
    };
    Ok((kind, order == b'>' || order == b'=' && cfg!(target_endian = "big")))
}

/// Rows and columns; one dimension is a column.
fn parse_shape(value: &str) -> Result<(usize, usize), String> {
    let inner = value.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(inner, _)| inner);
    let Some(inner) = inner else { return Err("'shape' of the header is not in parentheses".into()) };
    let words = inner.split(',').map(str::trim).filter(|word| !word.is_empty());
    let mut sizes = Vec::new();
    for word in words {
        let digits = word.trim_end_matches('L');
        sizes.push(digits.parse::<usize>().map_err(|_| "'shape' of the header contains a size that is not a number")?);
    }
    match sizes[..] {
        [] => Ok((1, 1)),
        [rows] => Ok((rows, 1)),
        [rows, cols] => Ok((rows, cols)),
        _ => Err(format!("an array of {} dimensions is not a matrix", sizes.len())),
    }
}
