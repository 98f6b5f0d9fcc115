//! Integers of Python, gmpy2 and flint as limbs.

use crate::native::gmpy2::{Gmpy2, Parts};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyType};
use rug::Integer;
use rug::integer::Order;

/// Reads integers of any accepted type.
pub struct Integers<'py> {
    py: Python<'py>,
    int: Bound<'py, PyType>,
    index: Bound<'py, PyAny>,
    gmpy2: Option<&'static Gmpy2>,
}

impl<'py> Integers<'py> {
    /// A reader.
    pub fn new(py: Python<'py>) -> PyResult<Integers<'py>> {
        let index = py.import("operator")?.getattr("index")?;
        Ok(Integers { py, int: py.get_type::<PyInt>(), index, gmpy2: Gmpy2::loaded(py)? })
    }

    /// Appends the limbs of `|object|`, least first, and returns whether it is negative.
    ///
    /// # Errors
    /// Python's exception if the object is not an integer.
    pub fn append(&self, object: &Bound<'py, PyAny>, limbs: &mut Vec<u64>) -> PyResult<bool> {
        if let Some(layout) = self.gmpy2.and_then(|gmpy2| gmpy2.layout.as_ref().filter(|_| self.is_mpz(gmpy2, object)))
        {
            return Ok(match layout.mpz(object) {
                Parts::Finite { negative, limbs: all, .. } => {
                    limbs.extend_from_slice(all);
                    negative
                }
                _ => false,
            });
        }
        // A subclass, and another type, may have methods of its own; `__index__` makes a plain one of it.
        let plain = if object.get_type().is(&self.int) { object.clone() } else { self.index.call1((object,))? };
        let bits = plain.call_method0(intern!(self.py, "bit_length"))?.extract::<usize>()?;
        if bits < 64 {
            let small = plain.extract::<i64>()?;
            limbs.push(small.unsigned_abs());
            return Ok(small < 0);
        }
        let negative = plain.lt(0)?;
        let size = if negative { plain.neg()? } else { plain };
        let length = bits.div_ceil(64) * 8;
        let bytes = size.call_method1(intern!(self.py, "to_bytes"), (length, intern!(self.py, "little")))?;
        let bytes = bytes.cast_into::<PyBytes>()?;
        let words = bytes.as_bytes().chunks_exact(8);
        limbs.extend(words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))));
        Ok(negative)
    }

    fn is_mpz(&self, gmpy2: &Gmpy2, object: &Bound<'py, PyAny>) -> bool {
        object.get_type().is(gmpy2.mpz.bind(self.py))
    }

    /// An integer of any size.
    ///
    /// # Errors
    /// As [`Integers::append`].
    pub fn integer(&self, object: &Bound<'py, PyAny>) -> PyResult<Integer> {
        let mut limbs = Vec::new();
        let negative = self.append(object, &mut limbs)?;
        let integer = Integer::from_digits(&limbs, Order::Lsf);
        Ok(if negative { -integer } else { integer })
    }

    /// An integer that fits 64 bits, else `None`.
    ///
    /// # Errors
    /// As [`Integers::append`].
    pub fn small(&self, object: &Bound<'py, PyAny>) -> PyResult<Option<i64>> {
        Ok(self.integer(object)?.to_i64())
    }
}

/// The limbs of `|integer|`.
pub fn magnitude(integer: &Integer) -> &[u64] {
    integer.as_limbs()
}
