//! Arrays of objects as NumPy pickles them: texts, integers, floats, `Decimal`, `Fraction`, `mpmath.mpf`.
//!
//! Promise: nothing is run and nothing is looked up; of Python's pickles (protocols 2 to 5) this reads the objects
//! around such an array, and refuses every other type by name. Numbers are passed on as they arrive; only objects to
//! which the pickle may refer later are kept, within the limit. Independent of: numbers.

use crate::error::{Error, Result};
use crate::io::bytes::ByteStream;
use crate::io::intake::{Rejected, refused};
use rug::Integer;
use rug::integer::Order;
use rustc_hash::FxHashMap;
use std::io::Read;
use std::rc::Rc;

/// Longest text or integer.
const MAXIMUM_BYTES: u32 = 64 << 20;

/// Approximate bytes that an object takes in addition to its text.
const OBJECT_BYTES: u64 = 64;

/// Longest name of a type.
const NAME_BYTES: usize = 200;

/// Types that the pickle of an array names.
const KNOWN: [&str; 6] = [
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
    "numpy.ndarray",
    "numpy.dtype",
    "_codecs.encode",
    "builtins.bytes",
];

/// Types that are numbers.
const NUMBERS: [(&str, PickledNumber); 6] = [
    ("gmpy2.gmpy2.from_binary", PickledNumber::Mpz),
    ("gmpy2.from_binary", PickledNumber::Mpz),
    ("decimal.Decimal", PickledNumber::Text),
    ("fractions.Fraction", PickledNumber::Fraction),
    ("mpmath.ctx_mp_python._make_mpf", PickledNumber::Mpf { radix: 10 }),
    // Before version 1.4 it is made first and gets its state then.
    ("mpmath.ctx_mp_python.mpf", PickledNumber::Mpf { radix: 16 }),
];

/// The meaning of the arguments of a type, which determine its number.
#[derive(Clone, Copy)]
enum PickledNumber {
    /// As a text.
    Text,
    /// As numerator and denominator.
    Fraction,
    /// As a mark for `mpz`, a sign and bytes.
    Mpz,
    /// As a sign, an integer, an exponent of 2, and a length.
    Mpf {
        /// Of the integer.
        radix: i32,
    },
}

/// The largest number of arguments that are kept.
const ARGUMENTS: usize = 4;

const INSIDE: &str = "its objects";

/// An object of Python, as far as it matters. None holds another one.
#[derive(Clone)]
enum Value {
    /// A text, an integer or a float, as a number is written.
    Word(Rc<[u8]>),
    /// A list.
    List,
    /// A tuple, and its texts and numbers where it has few and nothing else; one in another one is the same.
    Tuple(Rc<[Rc<[u8]>]>),
    /// A type or a function that is known.
    Known,
    /// A type of numbers.
    Number(PickledNumber),
    /// Anything else.
    Other,
}

/// The machine that runs a pickle, which is a program.
pub(super) struct Pickle<'s, 'a, R> {
    stream: &'s mut ByteStream<'a, R>,
    limit_bytes: u64,
    /// Bytes of the texts on the stack, and of stored texts.
    stack_bytes: u64,
    stored_bytes: u64,
    stack: Vec<Value>,
    marks: Vec<usize>,
    stored: FxHashMap<u32, Value>,
    /// Where a number was stored that has no state yet.
    unfinished: Option<u32>,
}

impl<'s, 'a, R: Read> Pickle<'s, 'a, R> {
    /// Reads from `stream`, with at most `limit_bytes` of memory.
    pub fn new(stream: &'s mut ByteStream<'a, R>, limit_bytes: u64) -> Pickle<'s, 'a, R> {
        let (stack, marks, stored) = (Vec::new(), Vec::new(), FxHashMap::default());
        Pickle { stream, limit_bytes, stack_bytes: 0, stored_bytes: 0, stack, marks, stored, unfinished: None }
    }

    /// Passes every element of the array's list to `put`, in its order.
    ///
    /// # Errors
    /// [`Error::Format`] for other objects and operations, and for what `put` rejects; [`Error::MemoryLimit`].
    pub fn read(mut self, put: &mut dyn FnMut(&[u8]) -> std::result::Result<(), Rejected>) -> Result<()> {
        loop {
            let [operation] = self.stream.array(INSIDE)?;
            match operation {
                b'.' => return Ok(()),
                b'a' => {
                    let start = self.stack.len().checked_sub(1).ok_or_else(|| self.malformed(operation))?;
                    self.append(start, put)?;
                }
                b'e' => {
                    let start = self.marks.pop().ok_or_else(|| self.malformed(operation))?;
                    self.append(start, put)?;
                }
                b'R' => self.call()?,
                _ => self.step(operation)?,
            }
            let held = self.stack_bytes.saturating_add(self.stored_bytes);
            if held > self.limit_bytes {
                return Err(Error::MemoryLimit { limit_bytes: self.limit_bytes, minimum_bytes: held });
            }
        }
    }

    fn malformed(&self, operation: u8) -> Error {
        let at = self.stream.offset();
        self.stream.error(format_args!(
            "the objects are not in NumPy's pickle format: unexpected byte {operation:#04x} before byte {at}"
        ))
    }

    fn unknown(&self) -> Error {
        self.stream.error("an object of the array has an unsupported type: use astype(str) before numpy.save")
    }

    /// Elements of the stack from `start` on go to the list below them.
    fn append(&mut self, start: usize, put: &mut dyn FnMut(&[u8]) -> std::result::Result<(), Rejected>) -> Result<()> {
        let is_list = start.checked_sub(1).and_then(|below| self.stack.get(below));
        if !matches!(is_list, Some(Value::List)) || start > self.stack.len() {
            return Err(self.malformed(b'e'));
        }
        for value in self.stack.drain(start..) {
            let Value::Word(word) = value else {
                let message = "an object of the array has an unsupported type: use astype(str) before numpy.save";
                return Err(self.stream.error(message));
            };
            put(&word).map_err(|Rejected { refusal, place }| {
                refused(refusal, &word, place, |text| self.stream.error(text))
            })?;
        }
        self.stack_bytes = 0;
        Ok(())
    }

    /// A call with a tuple of arguments, which is evaluated only for some types.
    fn call(&mut self) -> Result<()> {
        let (arguments, called) = (self.pop(b'R')?, self.pop(b'R')?);
        let value = match (called, arguments) {
            (Value::Number(number), Value::Tuple(words)) => {
                let word = number_of(number, &words).ok_or_else(|| self.unknown())?;
                Value::Word(word.into())
            }
            (Value::Known, Value::Tuple(_)) => Value::Other,
            _ => return Err(self.malformed(b'R')),
        };
        self.push(value)
    }

    fn pop(&mut self, operation: u8) -> Result<Value> {
        self.stack.pop().ok_or_else(|| self.malformed(operation))
    }

    fn push(&mut self, value: Value) -> Result<()> {
        self.stack_bytes += OBJECT_BYTES + bytes_of(&value);
        self.stack.try_reserve(1).map_err(|_| Error::OutOfMemory { bytes: self.stack_bytes })?;
        self.stack.push(value);
        Ok(())
    }

    /// Every other operation.
    fn step(&mut self, operation: u8) -> Result<()> {
        match operation {
            0x80 => drop(self.stream.array::<1>(INSIDE)?),
            0x95 => drop(self.stream.array::<8>(INSIDE)?),
            b'(' => {
                self.marks.push(self.stack.len());
                self.stack_bytes += OBJECT_BYTES;
            }
            b'0' => drop(self.pop(operation)?),
            b'1' => {
                let mark = self.marks.pop().ok_or_else(|| self.malformed(operation))?;
                self.stack.truncate(mark);
            }
            0x81 => {
                let (_, class) = (self.pop(operation)?, self.pop(operation)?);
                match class {
                    Value::Number(PickledNumber::Mpf { .. }) => self.push(class)?,
                    _ => return Err(self.malformed(operation)),
                }
            }
            b'b' => self.build()?,
            b'q' | b'r' | 0x94 => self.store(operation)?,
            b'h' | b'j' => {
                let index = self.index(operation == b'h')?;
                let value = self.stored.get(&index).cloned().ok_or_else(|| self.malformed(operation))?;
                self.push(value)?;
            }
            b'c' | 0x93 => self.name(operation)?,
            b']' => self.push(Value::List)?,
            b'N' | 0x88 | 0x89 => self.push(Value::Other)?,
            b')' | 0x85..=0x87 | b't' => self.tuple(operation)?,
            _ => {
                let word = self.word(operation)?;
                self.push(Value::Word(word.into()))?;
            }
        }
        Ok(())
    }

    /// Gives the top of the stack its state, which counts where it is a number.
    fn build(&mut self) -> Result<()> {
        let state = self.pop(b'b')?;
        if let (Some(Value::Number(number)), Value::Tuple(words)) = (self.stack.last(), state) {
            let word = number_of(*number, &words).ok_or_else(|| self.unknown())?;
            let value = Value::Word(word.into());
            // Where it comes again it has its state.
            if let Some(index) = self.unfinished.take() {
                self.stored_bytes += bytes_of(&value);
                self.stored.insert(index, value.clone());
            }
            self.pop(b'b')?;
            self.push(value)?;
        }
        Ok(())
    }

    fn index(&mut self, is_short: bool) -> Result<u32> {
        match is_short {
            true => Ok(u32::from(self.stream.array::<1>(INSIDE)?[0])),
            false => Ok(u32::from_le_bytes(self.stream.array(INSIDE)?)),
        }
    }

    /// Stores the top of the stack under a number.
    fn store(&mut self, operation: u8) -> Result<()> {
        let index = match operation {
            0x94 => self.stored.len() as u32,
            _ => self.index(operation == b'q')?,
        };
        let value = self.stack.last().cloned().ok_or_else(|| self.malformed(operation))?;
        self.stored_bytes += OBJECT_BYTES + bytes_of(&value);
        self.stored.try_reserve(1).map_err(|_| Error::OutOfMemory { bytes: self.stored_bytes })?;
        if matches!(value, Value::Number(_)) {
            self.unfinished = Some(index);
        }
        self.stored.insert(index, value);
        Ok(())
    }

    /// The name of a type: two lines, or two texts on the stack.
    fn name(&mut self, operation: u8) -> Result<()> {
        let name = match operation {
            0x93 => {
                let (Value::Word(name), Value::Word(module)) = (self.pop(operation)?, self.pop(operation)?) else {
                    return Err(self.malformed(operation));
                };
                [&module[..], b".", &name[..]].concat()
            }
            _ => [self.line()?, self.line()?].join(&b'.'),
        };
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES)]).into_owned();
        let value = match name.as_str() {
            known if KNOWN.contains(&known) => Value::Known,
            _ => {
                let known = NUMBERS.iter().find(|(known, _)| *known == name);
                if let Some((_, number)) = known {
                    return self.push(Value::Number(*number));
                }
                let name: String = name.escape_default().collect();
                return Err(self.stream.error(format_args!(
                    "objects of type {name} are not supported: use strings, integers, floats, Decimal, Fraction or \
                     mpf, or astype(str) before numpy.save"
                )));
            }
        };
        self.push(value)
    }

    fn line(&mut self) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            match self.stream.array(INSIDE)? {
                [b'\n'] => return Ok(line),
                _ if line.len() == NAME_BYTES => return Err(self.malformed(b'c')),
                [byte] => line.push(byte),
            }
        }
    }

    fn tuple(&mut self, operation: u8) -> Result<()> {
        let start = match operation {
            b')' => Some(self.stack.len()),
            b't' => self.marks.pop(),
            count => self.stack.len().checked_sub(usize::from(count - 0x84)),
        };
        let start = start.filter(|&start| start <= self.stack.len()).ok_or_else(|| self.malformed(operation))?;
        let inner = &self.stack[start..];
        let words = match inner {
            [Value::Tuple(words)] => words.clone(),
            _ if inner.len() <= ARGUMENTS => {
                let words = inner.iter().map(|value| match value {
                    Value::Word(word) => Some(word.clone()),
                    _ => None,
                });
                words.collect::<Option<Rc<[_]>>>().unwrap_or_default()
            }
            _ => Rc::default(),
        };
        self.stack.truncate(start);
        self.push(Value::Tuple(words))
    }

    /// A text, an integer or a float.
    fn word(&mut self, operation: u8) -> Result<Vec<u8>> {
        match operation {
            0x8c | b'C' | b'U' => {
                let [count] = self.stream.array(INSIDE)?;
                self.stream.list(usize::from(count), INSIDE)
            }
            b'X' | b'B' | b'T' => self.long(),
            b'K' => Ok(self.stream.array::<1>(INSIDE)?[0].to_string().into()),
            b'M' => Ok(u16::from_le_bytes(self.stream.array(INSIDE)?).to_string().into()),
            b'J' => Ok(i32::from_le_bytes(self.stream.array(INSIDE)?).to_string().into()),
            b'G' => Ok(hexadecimal(f64::from_be_bytes(self.stream.array(INSIDE)?)).into()),
            0x8a => {
                let [count] = self.stream.array(INSIDE)?;
                Ok(integer(&self.stream.list(usize::from(count), INSIDE)?))
            }
            0x8b => Ok(integer(&self.long()?)),
            _ => Err(self.malformed(operation)),
        }
    }

    fn long(&mut self) -> Result<Vec<u8>> {
        let count = u32::from_le_bytes(self.stream.array(INSIDE)?);
        if count > MAXIMUM_BYTES {
            return Err(self.stream.error(format_args!("an object of {count} bytes is longer than {MAXIMUM_BYTES}")));
        }
        self.stream.list(count as usize, INSIDE)
    }
}

fn bytes_of(value: &Value) -> u64 {
    match value {
        Value::Word(word) => word.len() as u64,
        Value::Tuple(words) => words.iter().map(|word| OBJECT_BYTES + word.len() as u64).sum(),
        _ => 0,
    }
}

/// The number that a type makes of its arguments.
fn number_of(number: PickledNumber, words: &[Rc<[u8]>]) -> Option<Vec<u8>> {
    match (number, words) {
        (PickledNumber::Text | PickledNumber::Fraction, [word]) => Some(word.to_vec()),
        // 1 stands for `mpz`, then 0, 1 or 2 for the sign, then the bytes of the size, the least first.
        (PickledNumber::Mpz, [bytes]) => match bytes[..] {
            [1, sign @ 0..=2, ref size @ ..] => {
                let size = Integer::from_digits(size, Order::Lsf);
                Some(if sign == 2 { -size } else { size }.to_string().into())
            }
            _ => None,
        },
        (PickledNumber::Fraction, [numerator, denominator]) => Some([&numerator[..], b"/", &denominator[..]].concat()),
        (PickledNumber::Mpf { radix }, [sign, size, exponent, _]) => {
            let text = std::str::from_utf8(size).ok()?;
            let size = Integer::from_str_radix(text, radix).ok()?;
            let exponent = std::str::from_utf8(exponent).ok()?.parse::<i64>().ok()?;
            // Numbers that are not finite have no significand, and an exponent that distinguishes them.
            match (size.is_zero(), exponent) {
                (true, 0) => Some(b"0".to_vec()),
                (true, -123) => Some(b"nan".to_vec()),
                (true, _) => Some(b"inf".to_vec()),
                _ => {
                    let sign = if **sign == *b"0" { "" } else { "-" };
                    Some(format!("{sign}0x{}p{exponent}", size.to_string_radix(16)).into())
                }
            }
        }
        _ => None,
    }
}

/// An integer in two's complement, least byte first, in digits.
fn integer(bytes: &[u8]) -> Vec<u8> {
    let mut value = Integer::from_digits(bytes, Order::Lsf);
    if bytes.last().is_some_and(|&last| last >= 0x80) {
        value -= Integer::from(1) << (8 * bytes.len() as u32);
    }
    value.to_string().into()
}

/// A double, exactly.
fn hexadecimal(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
    let significand = if exponent > 0 { fraction | 1 << 52 } else { fraction };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}0x{significand:x}p{}", exponent.max(1) - 1075)
}
