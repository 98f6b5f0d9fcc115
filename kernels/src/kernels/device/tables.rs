//! The constant tables of the conversions: made on the host, sent to a device in one piece.
#![forbid(unsafe_code)]

use super::engine::DeviceEngine;
use crate::device::{Device, Region, Stream};
use crate::error::Result;
use crate::math::bound::DEVICE_QUOTIENT_BITS;
use rug::Integer;
use rug::integer::Order;
use std::ops::Range;

/// Moduli whose radix powers lie side by side.
const GROUP: usize = 4;

/// Words of a reconstructed integer that are formed in one pass over the moduli, as in the kernel.
const PASS_WORDS: usize = 16;

/// Bytes of the constants of a modulus, as the kernels declare them.
const MODULUS_BYTES: usize = 32;

/// Tables begin at multiples of this number of bytes.
const ALIGN_BYTES: usize = 256;

/// Tables on a device, in one allocation.
#[derive(Clone)]
pub struct DeviceTables {
    /// Constants of each modulus.
    pub(super) moduli: Region,
    /// `[group of four moduli][digit][4]`: powers of the radix.
    pub(super) powers: Region,
    /// `[pass][modulus, then M][16]`: words of `M / p_i`, then of `2^(32 words) - M`.
    pub(super) cofactors: Region,
}

/// The positions of the tables of an engine.
pub(super) struct TableLayout {
    moduli: Range<usize>,
    powers: Range<usize>,
    cofactors: Range<usize>,
}

impl TableLayout {
    pub fn new(engine: &DeviceEngine) -> TableLayout {
        let count = engine.moduli().len();
        let after = |end: usize, bytes: usize| {
            let start = end.next_multiple_of(ALIGN_BYTES);
            start..start + bytes
        };
        let moduli = after(0, count * MODULUS_BYTES);
        let powers = after(moduli.end, count.div_ceil(GROUP) * engine.largest_digits() * GROUP * 4);
        let passes = engine.words().div_ceil(PASS_WORDS);
        let cofactors = after(powers.end, passes * (count + 1) * PASS_WORDS * 4);
        TableLayout { moduli, powers, cofactors }
    }

    pub fn bytes(&self) -> usize {
        self.cofactors.end
    }

    /// Whether tables have these sizes.
    pub fn fits(&self, tables: &DeviceTables) -> bool {
        let pairs =
            [(&self.moduli, &tables.moduli), (&self.powers, &tables.powers), (&self.cofactors, &tables.cofactors)];
        pairs.iter().all(|(range, region)| range.len() == region.bytes())
    }
}

/// Writes words one after another into bytes; the bytes that remain stay as they are.
fn write_words(bytes: &mut [u8], words: impl Iterator<Item = u32>) {
    let mut places = bytes.chunks_exact_mut(4);
    for word in words {
        places.next().expect("as many places as words").copy_from_slice(&word.to_le_bytes());
    }
}

/// The least residue of an integer modulo one modulus.
fn residue(integer: &Integer, modulus: u64) -> u64 {
    Integer::from(integer % modulus).to_u64().expect("a residue is small")
}

impl DeviceEngine {
    /// Bytes of the tables on a device.
    pub fn table_bytes(&self) -> usize {
        TableLayout::new(self).bytes()
    }

    /// Submits the tables to a device. Work on other streams has to wait for `stream`.
    ///
    /// # Errors
    /// [`crate::Error::DeviceMemory`], [`crate::Error::OutOfMemory`], [`crate::Error::DeviceLost`].
    pub fn upload(&self, device: &dyn Device, stream: Stream) -> Result<DeviceTables> {
        let layout = TableLayout::new(self);
        let memory = device.allocate(layout.bytes())?;
        let pinned = device.allocate_pinned(layout.bytes())?;
        {
            let mut bytes = pinned.lock()?;
            self.write_moduli(&mut bytes[layout.moduli.clone()]);
            self.write_powers(&mut bytes[layout.powers.clone()]);
            self.write_cofactors(&mut bytes[layout.cofactors.clone()]);
        }
        device.upload(stream, &pinned, 0, &memory.whole())?;
        Ok(DeviceTables {
            moduli: memory.region(layout.moduli),
            powers: memory.region(layout.powers),
            cofactors: memory.region(layout.cofactors),
        })
    }

    /// Constants of each modulus, as `struct modulus` in `cu/common.h` has them.
    fn write_moduli(&self, bytes: &mut [u8]) {
        let least_sum = 1u64 << self.family().sum_bits();
        let records = self.moduli().iter().flat_map(|&modulus| {
            let cofactor = residue(&Integer::from(self.product() / modulus), modulus);
            let weight = Integer::from(cofactor).invert(&Integer::from(modulus)).expect("the moduli are coprime");
            let weight = weight.to_u64().expect("a residue is small");
            let words =
                [u64::MAX / modulus, least_sum.next_multiple_of(modulus), (1 << DEVICE_QUOTIENT_BITS) / modulus];
            let words = words.into_iter().chain([modulus | (weight << 32)]);
            words.flat_map(|word| [word as u32, (word >> 32) as u32]).collect::<Vec<_>>()
        });
        write_words(bytes, records);
    }

    /// `2^(32 digit)` modulo each modulus; the last group is filled up with zeros.
    fn write_powers(&self, bytes: &mut [u8]) {
        let digits = self.largest_digits();
        let mut table = vec![0u32; bytes.len() / 4];
        for (index, &modulus) in self.moduli().iter().enumerate() {
            let (group, lane) = (index / GROUP, index % GROUP);
            let mut power = 1;
            for digit in 0..digits {
                table[(group * digits + digit) * GROUP + lane] = power as u32;
                power = (power << 32) % modulus;
            }
        }
        write_words(bytes, table.into_iter());
    }

    /// Words of `M / p_i`, and of `2^(32 words) - M`, cut into passes.
    fn write_cofactors(&self, bytes: &mut [u8]) {
        let (words, rows) = (self.words(), self.moduli().len() + 1);
        let negated = (Integer::from(1) << (32 * words as u32)) - self.product();
        let cofactors = self.moduli().iter().map(|&modulus| Integer::from(self.product() / modulus));
        let mut table = vec![0u32; bytes.len() / 4];
        for (row, integer) in cofactors.chain([negated]).enumerate() {
            let digits = integer.to_digits::<u32>(Order::Lsf);
            for (word, digit) in digits.into_iter().enumerate() {
                let (pass, place) = (word / PASS_WORDS, word % PASS_WORDS);
                table[(pass * rows + row) * PASS_WORDS + place] = digit;
            }
        }
        write_words(bytes, table.into_iter());
    }
}
