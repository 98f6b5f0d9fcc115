//! Reduction, reconstruction, rounding, packing.

use super::super::{DeviceFamily, Integers, PackIntegers, Reduce, ReduceInto, Residues, Round, Select};
use super::{PRECISIONS, Rig, Source, centred, crt, least, rigs};
use crate::math::float::{Head, bit_length, limbs_for, round_integer};
use rug::Integer;
use rug::integer::Order;
use std::ops::Range;

/// The product of `x` and `y` modulo a modulus of three planes, from the sums of its planes.
fn karatsuba(sums: &[i64]) -> i64 {
    sums[0] + 128 * (sums[2] - sums[0] - sums[1]) + 16384 * sums[1]
}

fn reduce_and_compare(rig: &Rig, source: &mut Source, entries: usize, moduli: Range<usize>) {
    let (engine, stride, sum_stride) = (&rig.engine, entries + 3, entries + 1);
    let planes = engine.planes(moduli.clone()).len();
    let largest = match engine.family() {
        DeviceFamily::F64 => 1i64 << 53,
        DeviceFamily::I8 => 1 << 30,
    };
    let sums: Vec<i64> = (0..planes * sum_stride)
        .map(|index| match index % 5 {
            0 => largest,
            1 => -largest,
            2 => i64::from(source.below(3)) - 1,
            _ => source.integer(53).to_i64().unwrap() % (largest + 1),
        })
        .collect();
    let sent = match engine.family() {
        DeviceFamily::F64 => rig.send(&sums.iter().map(|&sum| sum as f64).collect::<Vec<_>>()),
        DeviceFamily::I8 => rig.send(&sums.iter().map(|&sum| sum as i32).collect::<Vec<_>>()),
    };
    for into in [ReduceInto::Overwrite, ReduceInto::Add, ReduceInto::Subtract] {
        let elements = engine.moduli().len() * stride;
        let modulus = |place: usize| engine.moduli()[place / stride];
        let held: Vec<u32> = (0..elements).map(|place| source.below(modulus(place) as u32)).collect();
        let region = rig.send_stored(&held);
        let residues = Residues { region: &region, first_modulus: 0, stride, offset: 2 };
        let (sums_region, moduli) = (&sent, moduli.clone());
        let reduce = Reduce { sums: sums_region, sum_stride, entries, moduli: moduli.clone(), residues, into };
        rig.launcher().reduce(&reduce).unwrap();
        let stored = rig.fetch_stored(&region);
        for place in 0..elements {
            let (index, entry) = (place / stride, (place % stride).wrapping_sub(2));
            if !moduli.contains(&index) || entry >= entries {
                assert_eq!(stored[place], held[place], "place {place} is no residue of the call");
                continue;
            }
            let own = engine.planes(index..index + 1);
            let first = own.start - engine.planes(0..moduli.start).end;
            let own = (first..first + own.len()).map(|plane| sums[plane * sum_stride + entry]).collect::<Vec<_>>();
            let sum = if own.len() == 1 { own[0] } else { karatsuba(&own) };
            let want = match into {
                ReduceInto::Overwrite => sum,
                ReduceInto::Add => i64::from(held[place]) + sum,
                ReduceInto::Subtract => i64::from(held[place]) - sum,
            };
            assert_eq!(stored[place], least(&Integer::from(want), modulus(place)), "{own:?} modulo {}", modulus(place));
        }
    }
}

#[test]
fn sums_become_residues() {
    let mut source = Source::new(4);
    for bits in [20, 200, 1034] {
        for rig in rigs(bits) {
            let moduli = rig.engine.moduli().len();
            for entries in [0, 1, 7, 20] {
                reduce_and_compare(&rig, &mut source, entries, 0..moduli);
                reduce_and_compare(&rig, &mut source, entries, moduli / 2..moduli);
                reduce_and_compare(&rig, &mut source, entries, moduli - 1..moduli);
                reduce_and_compare(&rig, &mut source, entries, 0..0);
            }
        }
    }
}

/// Rectangles with one column and with several, of all moduli and of some, go to the requested place and nowhere else.
#[test]
fn rectangles_of_residues_are_selected() {
    let mut source = Source::new(7);
    for rig in rigs(200) {
        let (count, stride, to_stride) = (rig.engine.moduli().len(), 90, 40);
        let modulus = |place: usize, stride: usize| rig.engine.moduli()[place / stride] as u32;
        let held = (0..count * stride).map(|place| source.below(modulus(place, stride))).collect::<Vec<_>>();
        let region = rig.send_stored(&held);
        for (rows, cols, leading, moduli) in [
            (5, 7, 12, 0..count),
            (1, 6, 14, 1..count),
            (30, 1, 30, 0..1),
            (4, 4, 4, count / 2..count),
            (3, 0, 3, 0..2),
        ] {
            let before = vec![1; count * to_stride];
            let target = rig.send_stored(&before);
            let (first, at) = (moduli.start, 3);
            let from = Residues { region: &region, first_modulus: 0, stride, offset: 2 };
            let to = Residues { region: &target, first_modulus: first, stride: to_stride, offset: at };
            rig.launcher().select(&Select { from, leading, rows, cols, moduli: moduli.clone(), to }).unwrap();
            let mut want = before;
            for (modulus, col, row) in
                moduli.flat_map(|modulus| (0..cols).flat_map(move |col| (0..rows).map(move |row| (modulus, col, row))))
            {
                let place = (modulus - first) * to_stride + at + col * rows + row;
                want[place] = held[modulus * stride + 2 + col * leading + row];
            }
            assert_eq!(rig.fetch_stored(&target), want, "{rows} x {cols}, {leading} apart");
        }
    }
}

#[test]
fn residues_become_integers() {
    let mut source = Source::new(5);
    for bits in PRECISIONS {
        for rig in rigs(bits) {
            let bits = rig.engine.spec().modulus_bits;
            let quarter = Integer::from(rig.engine.product() / 4u32);
            let mut integers = source.integers(bits - 1, 40);
            for edge in [Integer::new(), Integer::from(1), Integer::from(1) << (bits - 1), quarter] {
                integers.extend([edge.clone(), -edge]);
            }
            for shift in (0..bits - 1).step_by(61) {
                let power = Integer::from(1) << shift;
                integers.extend([-power.clone(), Integer::from(&power - 1u32), power]);
            }
            let (stride, offset) = (integers.len() + 5, 3);
            let region = rig.send_residues(&integers, stride, offset);
            let got = rig.reconstruct(Residues { region: &region, first_modulus: 0, stride, offset }, integers.len());
            assert_eq!(got, integers);
        }
    }
}

#[test]
fn residues_of_no_admissible_integer_never_become_small() {
    let mut source = Source::new(6);
    for bits in [20, 200, 1034] {
        for rig in rigs(bits) {
            let product = rig.engine.product();
            let half = Integer::from(product / 2u32);
            let mut integers = vec![rig.extreme(), -rig.extreme()];
            for distance in [0u32, 1, 2, 1000] {
                integers.push(Integer::from(&half - distance));
                integers.push(Integer::from(-&half) + distance);
            }
            for index in 0..64 {
                let integer = Integer::from(product.random_below_ref(&mut source.random));
                // Half of them within a hair of M/2, where the quotient can go either way.
                integers.push(if index % 2 == 0 { integer } else { &half - (integer >> 17) });
            }
            let region = rig.send_residues(&integers, integers.len(), 0);
            let got = rig.reconstruct(
                Residues { region: &region, first_modulus: 0, stride: integers.len(), offset: 0 },
                integers.len(),
            );
            // The error of the quotient is below 2^-16.
            let (low, high) = (half.clone() - Integer::from(product >> 16u32), half + Integer::from(product >> 16u32));
            for (integer, got) in integers.into_iter().zip(got) {
                assert_eq!(Integer::from(&integer - &got).modulo(product), 0, "{integer} became {got}");
                let want = centred(integer, product);
                let size = got.clone().abs();
                assert!(got == want || size >= low && size <= high, "{want} became {got}");
            }
        }
    }
}

#[test]
fn words_that_are_no_least_residues_count_as_their_class() {
    for rig in rigs(200) {
        let largest = if rig.engine.residue_bytes() == 2 { u64::from(u16::MAX) } else { u64::from(u32::MAX) };
        let words = rig.engine.moduli().iter().map(|&modulus| largest - largest % modulus + 1);
        let words = words.map(|word| word.min(largest) as u32).collect::<Vec<_>>();
        let classes = words.iter().map(|&word| Integer::from(word)).collect::<Vec<_>>();
        let region = rig.send_stored(&words);
        let got = rig.reconstruct(Residues { region: &region, first_modulus: 0, stride: 1, offset: 0 }, 1);
        assert_eq!(got, [crt(&classes, rig.engine.moduli())]);
    }
}

/// The arguments of `round` other than the integers.
struct Rounding {
    rows: usize,
    precision_bits: u32,
    left: Vec<i64>,
    right: Vec<i64>,
    largest_bits: Option<u32>,
}

impl Rounding {
    /// Rounds, compares with the definition, and returns the faults.
    fn run(&self, rig: &Rig, integers: &[Integer]) -> [u64; 2] {
        let (entries, limb_count) = (integers.len(), limbs_for(self.precision_bits));
        let region = rig.send_integers(integers);
        let (heads, limbs) = (rig.dirty(entries * 8).whole(), rig.dirty(entries * limb_count * 8).whole());
        let faults = rig.dirty(16).whole();
        let (left, right) = (rig.send(&self.left), rig.send(&self.right));
        rig.launcher().clear_faults(&faults).unwrap();
        let round = Round {
            integers: Integers { region: &region, entries },
            rows: self.rows,
            left_shifts: Some(&left).filter(|_| !self.left.is_empty()),
            right_shifts: Some(&right).filter(|_| !self.right.is_empty()),
            precision_bits: self.precision_bits,
            heads: &heads,
            limbs: &limbs,
            largest_bits: self.largest_bits,
            faults: &faults,
            first_index: 100,
        };
        rig.launcher().round(&round).unwrap();
        let (heads, limbs) = (rig.fetch::<u64>(&heads), rig.fetch::<u64>(&limbs));
        for (entry, integer) in integers.iter().enumerate() {
            let shift = |shifts: &[i64], index: usize| shifts.get(index).copied().unwrap_or(0);
            let exponent = -shift(&self.left, entry % self.rows) - shift(&self.right, entry / self.rows);
            let magnitude = Integer::from(integer.abs_ref()).to_digits::<u64>(Order::Lsf);
            let mut want = vec![0; limb_count];
            let head = round_integer(*integer < 0, &magnitude, exponent, self.precision_bits, &mut want);
            assert_eq!(Head(heads[entry]), head, "{integer} to {} bits", self.precision_bits);
            assert_eq!(limbs[entry * limb_count..][..limb_count], want, "{integer} to {} bits", self.precision_bits);
        }
        rig.fetch::<u64>(&faults).try_into().unwrap()
    }
}

#[test]
fn integers_round_as_the_definition_says() {
    let mut source = Source::new(7);
    let none = [u64::MAX; 2];
    for bits in PRECISIONS {
        let rig = Rig::new(DeviceFamily::I8, bits);
        let longest = 32 * rig.engine.words() as u32 - 1;
        for precision_bits in [2, 31, 32, 53, 64, 65, 127, 128, bits, 2 * bits + 77] {
            let mut integers = source.integers(longest, 24);
            for length in [1, precision_bits, precision_bits + 1, precision_bits + 2, precision_bits + 65, longest] {
                // All ones, ties to even and odd, and just next to a tie.
                let length = length.min(longest);
                let ones = (Integer::from(1) << length) - 1u32;
                let tie = Integer::from(&ones >> 1u32) ^ (Integer::from(1) << (length / 2));
                integers.extend([-ones.clone(), ones, tie.clone() << 1u32, (tie << 1u32) + 1u32]);
                let unit = length.saturating_sub(precision_bits);
                let odd = (Integer::from(1) << (length - 1)) + (Integer::from(3) << unit >> 1u32);
                integers.extend([odd.clone(), Integer::from(&odd - 1u32).abs(), odd + 1u32]);
            }
            integers.iter_mut().for_each(|integer| integer.keep_signed_bits_mut(longest));
            integers.extend([Integer::new(), Integer::from(-1)]);
            let rounding = Rounding { rows: 1, precision_bits, left: vec![], right: vec![], largest_bits: None };
            assert_eq!(rounding.run(&rig, &integers), none);
            let rows = if integers.len().is_multiple_of(2) { 2 } else { 1 };
            let right = (0..integers.len() / rows).map(|col| 1000 * col as i64 - 7000).collect();
            let rounding = Rounding { rows, precision_bits, left: vec![5, -9], right, largest_bits: Some(longest) };
            assert_eq!(rounding.run(&rig, &integers), none);
        }
    }
}

#[test]
fn rounding_reports_the_first_entry_of_each_fault() {
    let rig = Rig::new(DeviceFamily::F64, 64);
    let values = [3i64, 0, 255, -256, 255, 512, 7, -1];
    let integers = values.map(Integer::from);
    let limit = (1i64 << 30) - 1;
    let rounding = |left: Vec<i64>, largest_bits: u32| Rounding {
        rows: 4,
        precision_bits: 64,
        left,
        right: vec![],
        largest_bits: Some(largest_bits),
    };
    let none = u64::MAX;
    assert_eq!(rounding(vec![0; 4], 10).run(&rig, &integers), [none, none]);
    assert_eq!(rounding(vec![0; 4], 9).run(&rig, &integers), [105, none]);
    assert_eq!(rounding(vec![0; 4], 8).run(&rig, &integers), [103, none]);
    assert_eq!(rounding(vec![0; 4], 0).run(&rig, &integers), [100, none]);
    // Lengths are 2, 0, 8, 9, 8, 10, 3, 1; exponents are these less the shift.
    assert_eq!(rounding(vec![0, 9 - limit, 8 - limit, 9 - limit], 64).run(&rig, &integers), [none, 105]);
    assert_eq!(rounding(vec![0, 10 - limit, 7 - limit, 9 - limit], 64).run(&rig, &integers), [none, 102]);
    assert_eq!(rounding(vec![0, limit + 10, limit + 3, limit + 1], 64).run(&rig, &integers), [none, none]);
    assert_eq!(rounding(vec![0, limit + 11, limit + 3, limit + 1], 64).run(&rig, &integers), [none, 105]);
    assert_eq!(rounding(vec![0, limit + 10, limit + 4, limit + 3], 64).run(&rig, &integers), [none, 106]);
}

#[test]
fn integers_are_packed_for_the_host() {
    let mut source = Source::new(8);
    for bits in PRECISIONS {
        for rig in rigs(bits) {
            for entries in [0, 1, 3, 10] {
                let mut integers = source.integers(rig.engine.spec().modulus_bits, entries);
                if let Some(last) = integers.last_mut() {
                    *last = Integer::new();
                }
                let region = rig.send_integers(&integers);
                let words = entries * (1 + rig.engine.limbs());
                let packed = rig.dirty(words * 8 + 8).whole();
                let pack = PackIntegers { integers: Integers { region: &region, entries }, packed: &packed };
                rig.launcher().pack(&pack).unwrap();
                let packed = rig.fetch::<u64>(&packed);
                assert_eq!(packed[words], 0xA7A7_A7A7_A7A7_A7A7, "what lies beyond is left alone");
                for (integer, words) in integers.iter().zip(packed.chunks(1 + rig.engine.limbs())) {
                    assert_eq!(words[0], u64::from(*integer < 0));
                    let magnitude = Integer::from(integer.abs_ref());
                    assert_eq!(Integer::from_digits(&words[1..], Order::Lsf), magnitude);
                    assert_eq!(bit_length(&words[1..]), u64::from(magnitude.significant_bits()));
                }
            }
        }
    }
}
