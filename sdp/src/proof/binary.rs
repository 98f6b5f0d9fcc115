//! A block in SDPB's binary form, whose numbers are dyadic, exactly.
//!
//! Numbers are little-endian. A head with the precision, the matrix B, the vector c, and both bases follow each other,
//! a matrix column by column: docs/decisions/057-polynomial-programs.md. A number is the integer of its limbs times a
//! power of `2^64`; GMP keeps no other bits. Source: SDPB, Boost 1.74, GMP. Independent of: the solver's reader, which
//! rounds what it reads.

use super::limits::{MAXIMUM_POWER, MAXIMUM_WORD, NUMBER_BYTES, bytes_of};
use super::room::Room;
use rug::integer::Order;
use rug::{Integer, Rational};

type Refusal<T> = Result<T, String>;

/// The beginning of a file: the length of a text, and the text.
const TITLE: &[u8] = b"\x16\0\0\0\0\0\0\0serialization::archive";

/// The oldest version whose layout is this one.
const OLDEST: u64 = 8;

/// The sizes of int, long, float and double, and a 1 of four bytes.
const MACHINE: [u8; 8] = [4, 8, 4, 8, 1, 0, 0, 0];

/// Bits of a limb.
const LIMB: u64 = 64;

/// Rows, columns, and the numbers row by row.
pub struct Table {
    pub rows: usize,
    pub cols: usize,
    pub values: Vec<Rational>,
}

/// The parts of a block.
pub struct BlockParts {
    pub free: Table,
    pub costs: Vec<Rational>,
    pub bases: [Table; 2],
}

/// The bytes still to be read, and the properties of the writer that were found.
struct ByteReader<'a> {
    rest: &'a [u8],
    room: &'a Room,
    /// Limbs that stand for a number.
    limbs: usize,
    /// Bytes of a row's or column's number.
    wide: usize,
    is_first_matrix: bool,
    /// Version of numbers, only those from 1 on record whether they are 0.
    version: Option<u64>,
    /// Whether exponents stand first, once a number showed it.
    exponent_first: Option<bool>,
}

/// Reads a block of `variables` rows of B, each of `free` numbers.
///
/// # Errors
/// A text that names the fault.
pub fn read(bytes: &[u8], variables: usize, free: usize, room: &Room) -> Refusal<BlockParts> {
    let Some(rest) = bytes.strip_prefix(TITLE) else { return Err("the file is not a binary archive of Boost".into()) };
    let mut reader =
        ByteReader { rest, room, limbs: 0, wide: 4, is_first_matrix: true, version: None, exponent_first: None };
    if reader.unsigned(2)? < OLDEST || reader.take(8)? != MACHINE {
        let message =
            "the archive is older than version 8 of Boost's format, or from a machine with other sizes of numbers";
        return Err(message.into());
    }
    let bits = reader.unsigned(8)?;
    // A number takes two limbs more than its precision has.
    reader.limbs = match bits % LIMB == 0 && (1..=MAXIMUM_WORD as u64 * 4).contains(&bits) {
        true => (bits / LIMB) as usize + 2,
        false => {
            let most = MAXIMUM_WORD * 4;
            return Err(format!("its numbers have {bits} bits, but must have a multiple of 64, at most {most}"));
        }
    };
    let free = reader.matrix("B", Some((variables, free)))?;
    reader.class()?;
    let length = reader.unsigned(8)?;
    if length != variables as u64 {
        return Err(format!("'c' has {length} numbers instead of {variables}"));
    }
    reader.unsigned(4)?;
    let costs = (0..variables).map(|_| reader.number()).collect::<Refusal<_>>()?;
    let bases = [reader.matrix("bilinear_bases_even", None)?, reader.matrix("bilinear_bases_odd", None)?];
    match reader.rest {
        [] => Ok(BlockParts { free, costs, bases }),
        _ => Err("data follow the last matrix, bilinear_bases_odd".into()),
    }
}

/// Little-endian.
fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rfold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

impl<'a> ByteReader<'a> {
    fn take(&mut self, count: usize) -> Refusal<&'a [u8]> {
        let (found, rest) = self.rest.split_at_checked(count).ok_or("the file ends within its numbers")?;
        self.rest = rest;
        Ok(found)
    }

    fn unsigned(&mut self, count: usize) -> Refusal<u64> {
        self.take(count).map(unsigned)
    }

    /// The version in front of the first object of a class.
    fn class(&mut self) -> Refusal<u64> {
        match self.unsigned(1)? {
            0 => self.unsigned(4),
            _ => Err("the archive is not one of SDPB's".into()),
        }
    }

    fn matrix(&mut self, name: &str, wanted: Option<(usize, usize)>) -> Refusal<Table> {
        if self.is_first_matrix {
            self.class()?;
        }
        let rows = self.unsigned(self.wide)?;
        let mut cols = self.unsigned(self.wide)?;
        if self.is_first_matrix && cols == 0 && wanted.is_some_and(|(_, cols)| cols > 0) {
            // These were the upper halves of 8 bytes.
            self.wide = 8;
            cols = self.unsigned(8)?;
        }
        self.is_first_matrix = false;
        let leading = self.unsigned(self.wide)?;
        if let Some((wanted_rows, wanted_cols)) = wanted.filter(|&(r, c)| (r as u64, c as u64) != (rows, cols)) {
            return Err(format!("'{name}' is {rows} x {cols} instead of {wanted_rows} x {wanted_cols}"));
        }
        let least = rows.max(1);
        let most = least.saturating_mul(2).saturating_add(64);
        if !(least..=most).contains(&leading) {
            return Err(format!(
                "'{name}' has {rows} rows and a leading dimension of {leading}, which should be {least} to {most}"
            ));
        }
        // Each number takes a byte at least.
        if leading.saturating_mul(cols) > self.rest.len() as u64 || (wanted.is_none() && rows > self.rest.len() as u64)
        {
            return Err("the file ends within its numbers".into());
        }
        // A zero takes one byte of the file, and as much memory as another number that is short.
        self.room.take(rows.saturating_mul(cols).saturating_mul(NUMBER_BYTES))?;
        let (rows, cols) = (rows as usize, cols as usize);
        let mut values = vec![Rational::new(); rows * cols];
        for (col, row) in (0..cols).flat_map(|col| (0..leading as usize).map(move |row| (col, row))) {
            let found = self.number()?;
            if row < rows {
                values[row * cols + col] = found;
            }
        }
        Ok(Table { rows, cols, values })
    }

    fn number(&mut self) -> Refusal<Rational> {
        let version = match self.version {
            Some(version) => version,
            None => self.class()?,
        };
        self.version = Some(version);
        if version > 0 {
            match self.unsigned(1)? {
                0 => {}
                1 => return Ok(Rational::new()),
                _ => return Err("a number does not begin as SDPB writes it".into()),
            }
        }
        let (head, limbs) = (self.take(12)?, self.take(8 * self.limbs)?);
        let parts = |exponent_first: bool| {
            let (exponent, size) = if exponent_first { head.split_at(8) } else { (&head[4..], &head[..4]) };
            (unsigned(size) as u32 as i32, unsigned(exponent) as i64)
        };
        let is_one = |&exponent_first: &bool| {
            let (size, exponent) = parts(exponent_first);
            match size.unsigned_abs() as usize {
                0 => version == 0 && exponent == 0,
                count => count <= self.limbs && exponent.unsigned_abs() <= 1 << 23,
            }
        };
        let order = match self.exponent_first {
            Some(order) => Some(order).filter(is_one),
            None => [false, true].into_iter().find(is_one),
        };
        let order = order.ok_or("a number has more limbs than its precision allows, or an exponent out of range")?;
        let (size, exponent) = parts(order);
        let count = size.unsigned_abs() as usize;
        if count == 0 {
            return Ok(Rational::new());
        }
        self.exponent_first = Some(order);
        self.value(&limbs[..8 * count], exponent, size < 0)
    }

    /// The integer with these bytes, times a power of the limb that puts its point behind `exponent` limbs.
    fn value(&self, limbs: &[u8], exponent: i64, is_negative: bool) -> Refusal<Rational> {
        if limbs.ends_with(&[0; 8]) {
            return Err("the most significant limb of a number is 0".into());
        }
        let places = LIMB as i64 * (exponent - limbs.len() as i64 / 8);
        if places.abs() > 4 * MAXIMUM_POWER + 4 * MAXIMUM_WORD as i64 {
            return Err(format!("a number is multiplied by 2^{places}, which is out of range"));
        }
        let integer = Integer::from_digits(limbs, Order::Lsf);
        let amount = places.unsigned_abs() as u32;
        let value = Rational::from(if is_negative { -integer } else { integer });
        let value = if places < 0 { value >> amount } else { value << amount };
        self.room.take(bytes_of(&value)).map(|()| value)
    }
}
