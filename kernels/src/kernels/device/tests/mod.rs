//! Every kernel on the software device against plain big integers, for both families.

mod finish;
mod prepare;
mod product;
mod rules;

use super::{DeviceEngine, DeviceFamily, DeviceReconstruct, DeviceTables, Integers, Launcher, Residues};
use crate::device::soft::{SoftDevice, SoftOptions};
use crate::device::{Device, DeviceAllocator, Memory, Region, Stream};
use crate::kernels::EngineSpec;
use crate::math::bound::modulus_bits;
use bytemuck::Pod;
use rug::Integer;
use rug::integer::Order;
use rug::rand::RandState;

/// Precisions from less than a digit to far beyond a pass over words.
const PRECISIONS: [u32; 5] = [20, 64, 200, 1034, 4100];

/// A software device with the tables of one engine.
struct Rig {
    device: SoftDevice,
    stream: Stream,
    engine: DeviceEngine,
    tables: DeviceTables,
}

impl Rig {
    /// An engine for products of operands of `bits` bits.
    fn new(family: DeviceFamily, bits: u32) -> Rig {
        let spec = EngineSpec { operand_bits: bits, modulus_bits: modulus_bits(bits, bits), redundant: false };
        Rig::of_spec(family, &spec)
    }

    fn of_spec(family: DeviceFamily, spec: &EngineSpec) -> Rig {
        let device = SoftDevice::new(SoftOptions::default());
        let stream = device.stream().unwrap();
        let engine = DeviceEngine::new(family, spec).unwrap();
        let tables = engine.upload(&device, stream).unwrap();
        Rig { device, stream, engine, tables }
    }

    fn launcher(&self) -> Launcher<'_> {
        Launcher::new(&self.device, self.stream, &self.engine, &self.tables)
    }

    /// Memory with these contents.
    fn send<T: Pod>(&self, contents: &[T]) -> Region {
        let bytes: &[u8] = bytemuck::cast_slice(contents);
        let memory = self.dirty(bytes.len());
        let pinned = self.device.allocate_pinned(bytes.len()).unwrap();
        pinned.lock().unwrap().copy_from_slice(bytes);
        self.device.upload(self.stream, &pinned, 0, &memory.whole()).unwrap();
        memory.whole()
    }

    /// Memory with the contents of new memory.
    fn dirty(&self, bytes: usize) -> Memory {
        self.device.allocate(bytes).unwrap()
    }

    fn fetch<T: Pod>(&self, region: &Region) -> Vec<T> {
        let pinned = self.device.allocate_pinned(region.bytes()).unwrap();
        self.device.download(self.stream, region, &pinned, 0).unwrap();
        let bytes = pinned.lock().unwrap();
        bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
    }

    /// Digits and signs of integers, `stride` elements from digit to digit; places in between are dirty.
    fn send_digits(&self, integers: &[Integer], count: usize, stride: usize) -> Region {
        let mut words = vec![0xA7A7_A7A7u32; count * stride + integers.len()];
        for (entry, integer) in integers.iter().enumerate() {
            let digits = Integer::from(integer.abs_ref()).to_digits::<u32>(Order::Lsf);
            assert!(digits.len() <= count, "{integer} has more than {count} digits");
            for digit in 0..count {
                words[digit * stride + entry] = digits.get(digit).copied().unwrap_or(0);
            }
            words[count * stride + entry] = u32::from(*integer < 0);
        }
        self.send(&words)
    }

    /// Residues of integers modulo all moduli, as they are stored.
    fn send_residues(&self, integers: &[Integer], stride: usize, offset: usize) -> Region {
        let mut residues = vec![1u32; (self.engine.moduli().len() - 1) * stride + offset + integers.len()];
        for (index, &modulus) in self.engine.moduli().iter().enumerate() {
            for (entry, integer) in integers.iter().enumerate() {
                residues[index * stride + offset + entry] = least(integer, modulus);
            }
        }
        self.send_stored(&residues)
    }

    /// Residues in the engine's own width.
    fn send_stored(&self, residues: &[u32]) -> Region {
        match self.engine.residue_bytes() {
            2 => self.send(&residues.iter().map(|&residue| residue as u16).collect::<Vec<_>>()),
            _ => self.send(residues),
        }
    }

    fn fetch_stored(&self, region: &Region) -> Vec<u32> {
        match self.engine.residue_bytes() {
            2 => self.fetch::<u16>(region).into_iter().map(u32::from).collect(),
            _ => self.fetch(region),
        }
    }

    /// The integers that residues stand for, by the kernel.
    fn reconstruct(&self, residues: Residues<'_>, entries: usize) -> Vec<Integer> {
        let region = self.dirty(self.launcher().integer_bytes(entries)).whole();
        let integers = Integers { region: &region, entries };
        self.launcher().reconstruct(&DeviceReconstruct { residues, integers }).unwrap();
        integers_from(&self.fetch(&region), self.engine.words(), entries)
    }

    /// Words and signs of integers.
    fn send_integers(&self, integers: &[Integer]) -> Region {
        self.send_digits(integers, self.engine.words(), integers.len())
    }

    /// The integer whose balanced residues are all `(p - 1) / 2`.
    fn extreme(&self) -> Integer {
        let residues = self.engine.moduli().iter().map(|&modulus| Integer::from((modulus - 1) / 2));
        crt(&residues.collect::<Vec<_>>(), self.engine.moduli())
    }
}

/// The integers in words of 32 bits with a sign word on top.
fn integers_from(words: &[u32], count: usize, entries: usize) -> Vec<Integer> {
    let integer = |entry: usize| {
        let digits = (0..count).map(|word| words[word * entries + entry]).collect::<Vec<_>>();
        let magnitude = Integer::from_digits(&digits, Order::Lsf);
        match words[count * entries + entry] {
            0 => magnitude,
            1 => -magnitude,
            sign => panic!("sign {sign}"),
        }
    };
    (0..entries).map(integer).collect()
}

/// The least residue.
fn least(integer: &Integer, modulus: u64) -> u32 {
    integer.mod_u(modulus as u32)
}

/// The least residue in `[-p/2, p/2)`.
fn balanced(integer: &Integer, modulus: u64) -> i64 {
    let residue = i64::from(least(integer, modulus));
    if residue > (modulus as i64 - 1) / 2 { residue - modulus as i64 } else { residue }
}

/// The integer in `[-M/2, M/2)` with these residues.
fn crt(residues: &[Integer], moduli: &[u64]) -> Integer {
    let product = moduli.iter().fold(Integer::from(1), |product, &modulus| product * modulus);
    let mut sum = Integer::new();
    for (residue, &modulus) in residues.iter().zip(moduli) {
        let cofactor = Integer::from(&product / modulus);
        let inverse = cofactor.clone().invert(&Integer::from(modulus)).unwrap();
        sum += cofactor * inverse * residue;
    }
    sum %= &product;
    centred(sum, &product)
}

/// The representative of `integer` in `[-M/2, M/2)`.
fn centred(integer: Integer, product: &Integer) -> Integer {
    let least = integer.modulo(product);
    if Integer::from(&least * 2u32) >= *product { least - product } else { least }
}

/// Integers of up to `bits` bits and either sign.
struct Source {
    random: RandState<'static>,
}

impl Source {
    fn new(seed: u32) -> Source {
        let mut random = RandState::new();
        random.seed(&Integer::from(seed));
        Source { random }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random.below(bound)
    }

    fn integer(&mut self, bits: u32) -> Integer {
        let magnitude = Integer::from(Integer::random_bits(bits, &mut self.random));
        if self.below(2) == 1 { -magnitude } else { magnitude }
    }

    /// Mostly long ones, some of any length.
    fn integers(&mut self, bits: u32, count: usize) -> Vec<Integer> {
        let next = |index: usize| {
            let bits = if index % 3 == 2 { self.below(bits + 1) } else { bits };
            self.integer(bits)
        };
        (0..count).map(next).collect()
    }
}

fn rigs(bits: u32) -> [Rig; 2] {
    DeviceFamily::ALL.map(|family| Rig::new(family, bits))
}
