//! Residues in transit between nodes: each with the number of bits of its modulus, one after the other.
//!
//! Promise: unpacking returns the packed words. Independent of: ranks, who owns what.

use crate::kernels::{PlaneEngine, ResidueLanes};
use crate::ops::product::shares::ShareStream;
use std::ops::Range;

/// Words that are unpacked at a time.
const TOGETHER: usize = 256;

/// How the residues of an engine's product planes are packed.
pub(crate) struct Packing {
    lanes: ResidueLanes,
    /// Of each plane.
    moduli: Vec<u64>,
    /// Bits of the least residues of each plane.
    bits: Vec<u32>,
}

impl Packing {
    /// The packing of all planes of an engine.
    pub fn new(engine: &dyn PlaneEngine) -> Packing {
        Packing::of(engine.residue_lanes(), engine.moduli())
    }

    /// The packing of some planes of an engine, counted from the first of them.
    pub fn of_planes(engine: &dyn PlaneEngine, planes: Range<usize>) -> Packing {
        Packing::of(engine.residue_lanes(), &engine.moduli()[planes])
    }

    /// The packing for planes whose words hold residues as `lanes` describes, modulo `moduli`.
    pub fn of(lanes: ResidueLanes, moduli: &[u64]) -> Packing {
        let bits = moduli.iter().map(|modulus| (u64::BITS - (modulus - 1).leading_zeros()).max(1));
        Packing { lanes, bits: bits.collect(), moduli: moduli.to_vec() }
    }

    /// `sums := sums + words` modulo the modulus of a plane, for least residues.
    pub fn add(&self, plane: usize, sums: &mut [u64], words: &[u64]) {
        let (lane_bits, modulus) = (self.lanes.bits(), self.moduli[plane]);
        let mask = u64::MAX >> (64 - lane_bits);
        for (sum, &word) in sums.iter_mut().zip(words) {
            let lane = |word: u64, lane: usize| word >> (lane as u32 * lane_bits) & mask;
            *sum = (0..self.lanes.count()).fold(0, |all, at| {
                let whole = lane(*sum, at) + lane(word, at);
                // The lesser of the sum and its excess over the modulus: both of them lie below 2^63.
                all | whole.min(whole.wrapping_sub(modulus)) << (at as u32 * lane_bits)
            });
        }
    }

    /// Bits of the residues of `words` words of each plane.
    pub fn plane_bits(&self, words: usize) -> u64 {
        let lanes = (words * self.lanes.count()) as u64;
        self.bits.iter().map(|&bits| lanes * u64::from(bits)).sum()
    }

    /// Words of a message with the words `range` of a stream.
    pub fn message_words(&self, stream: &ShareStream, range: Range<usize>) -> usize {
        let mut total = 0;
        stream.for_each(range, |piece| {
            total += piece.words.len() * self.lanes.count() * self.bits[piece.plane] as usize;
        });
        total.div_ceil(64)
    }

    /// The message with the words `range` of a stream; `words` returns the words of a plane.
    pub fn pack<'w>(
        &self,
        stream: &ShareStream,
        range: Range<usize>,
        words: impl Fn(usize, Range<usize>) -> &'w [u64],
    ) -> Vec<u64> {
        let mut packed = vec![0; self.message_words(stream, range.clone())];
        let mut message = Message { words: &mut packed, at: 0 };
        stream.for_each(range, |piece| self.append(&mut message, piece.plane, words(piece.plane, piece.words)));
        packed
    }

    /// Words of a message with `words` words of a plane.
    pub fn words_of_plane(&self, plane: usize, words: usize) -> usize {
        (words * self.lanes.count() * self.bits[plane] as usize).div_ceil(64)
    }

    /// A message with words of one plane, into zeroed words; their number is that of [`Packing::words_of_plane`].
    pub fn pack_plane(&self, plane: usize, words: &[u64], message: &mut [u64]) {
        self.append(&mut Message { words: message, at: 0 }, plane, words);
    }

    /// Adds the words in such a message to `sums`, for least residues.
    pub fn add_packed(&self, plane: usize, message: &[u64], sums: &mut [u64]) {
        let (mut message, mut words) = (MessageBits { words: message, at: 0 }, [0; TOGETHER]);
        for sums in sums.chunks_mut(TOGETHER) {
            self.take(plane, &mut message, &mut words[..sums.len()]);
            self.add(plane, sums, &words[..sums.len()]);
        }
    }

    /// Appends the residues of some words of a plane.
    fn append(&self, message: &mut Message<'_>, plane: usize, words: &[u64]) {
        let (bits, modulus) = (self.bits[plane], self.moduli[plane]);
        let (lane_bits, count) = (self.lanes.bits(), self.lanes.count());
        let mask = u64::MAX >> (64 - lane_bits);
        for &word in words {
            for lane in 0..count as u32 {
                let lane = word >> (lane * lane_bits) & mask;
                message.push(self.lanes.least(lane, modulus), bits);
            }
        }
    }

    /// The next words of a plane in a message.
    fn take(&self, plane: usize, message: &mut MessageBits<'_>, words: &mut [u64]) {
        let (bits, modulus) = (self.bits[plane], self.moduli[plane]);
        let (lane_bits, count) = (self.lanes.bits(), self.lanes.count());
        for word in words {
            *word = 0;
            for lane in 0..count {
                *word |= self.lanes.lane(message.next(bits), modulus) << (lane as u32 * lane_bits);
            }
        }
    }

    /// Passes the words `range` of a stream to `take` unpacked, a part of a piece at a time: the plane, the run, where
    /// in the run, and the words.
    pub fn unpack(
        &self,
        message: &[u64],
        stream: &ShareStream,
        range: Range<usize>,
        mut take: impl FnMut(usize, usize, Range<usize>, &[u64]),
    ) {
        let mut message = MessageBits { words: message, at: 0 };
        let mut words = [0; TOGETHER];
        stream.for_each(range, |piece| {
            for start in piece.within.clone().step_by(TOGETHER) {
                let within = start..piece.within.end.min(start + TOGETHER);
                self.take(piece.plane, &mut message, &mut words[..within.len()]);
                take(piece.plane, piece.run, within.clone(), &words[..within.len()]);
            }
        });
    }
}

/// A message under way, in words that were 0.
struct Message<'m> {
    words: &'m mut [u64],
    /// Bits that are taken.
    at: usize,
}

impl Message<'_> {
    /// Appends the lowest bits of a word, whose others are 0.
    fn push(&mut self, value: u64, bits: u32) {
        let (word, shift) = (self.at / 64, self.at as u32 % 64);
        self.words[word] |= value << shift;
        if shift + bits > 64 {
            self.words[word + 1] = value >> (64 - shift);
        }
        self.at += bits as usize;
    }
}

/// A message that is read.
struct MessageBits<'m> {
    words: &'m [u64],
    /// Bits that were read.
    at: usize,
}

impl MessageBits<'_> {
    /// The next bits.
    fn next(&mut self, bits: u32) -> u64 {
        let (word, shift) = (self.at / 64, self.at as u32 % 64);
        let mut value = self.words[word] >> shift;
        if shift + bits > 64 {
            value |= self.words[word + 1] << (64 - shift);
        }
        self.at += bits as usize;
        value & (u64::MAX >> (64 - bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::product::shares::OwnedBlocks;

    /// A message of one plane has the bits of a stream of only that plane, and its words are added correctly.
    fn planes_alone(packing: &Packing, plane: usize, words: &[u64]) {
        let (lanes, modulus) = (packing.lanes, packing.moduli[plane]);
        let alone = Packing::of(lanes, &[modulus]);
        let stream = ShareStream::new(&[OwnedBlocks { blocks: 0..words.len(), owner: 0 }], 0, 1, 1);
        let want = alone.pack(&stream, 0..words.len(), |_, range| &words[range]);
        let mut message = vec![0; packing.words_of_plane(plane, words.len())];
        packing.pack_plane(plane, words, &mut message);
        assert_eq!(message, want);
        if !matches!(lanes, ResidueLanes::Pairs | ResidueLanes::Halves) {
            return;
        }
        let mut sums = words.iter().rev().copied().collect::<Vec<_>>();
        packing.add_packed(plane, &message, &mut sums);
        let lane = |word: u64, at: usize| word >> (at as u32 * lanes.bits()) & (u64::MAX >> (64 - lanes.bits()));
        for (at, &sum) in sums.iter().enumerate() {
            let terms = [words[at], words[words.len() - 1 - at]];
            for number in 0..lanes.count() {
                let want = terms.iter().map(|&word| lane(word, number)).sum::<u64>() % modulus;
                assert_eq!(lane(sum, number), want, "{lanes:?} modulo {modulus}");
            }
        }
    }

    #[test]
    fn messages_hold_what_was_packed_in_as_few_words_as_there_can_be() {
        let mut state = 5u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) % below
        };
        for (lanes, moduli) in [
            (ResidueLanes::Words, vec![(1u64 << 52) - 47, 3, 65_537, (1 << 51) + 1]),
            (ResidueLanes::Pairs, vec![(1 << 23) - 15, 3, 65_537, (1 << 31) - 1]),
            (ResidueLanes::Halves, vec![251, 16_381, 256, 2]),
            (ResidueLanes::BalancedHalves, vec![8191, 8179, 4093, 2039]),
            (ResidueLanes::Doubles, vec![(1 << 23) - 15, 8_388_593, 101]),
        ] {
            let packing = Packing::of(lanes, &moduli);
            let block = 64 / lanes.count();
            let owners = [0..3, 3..4, 4..9, 9..20].map(|blocks| OwnedBlocks { owner: blocks.start % 2, blocks });
            let planes = moduli.iter().map(|&modulus| {
                let word = |_| {
                    (0..lanes.count()).fold(0, |word, lane| {
                        let least = if random(9) == 0 { modulus - 1 } else { random(modulus) };
                        let balanced = if least > modulus / 2 { least as i64 - modulus as i64 } else { least as i64 };
                        let value = match lanes {
                            ResidueLanes::BalancedHalves => u64::from(balanced as u16),
                            ResidueLanes::Doubles => (balanced as f64).to_bits(),
                            ResidueLanes::Words | ResidueLanes::Pairs | ResidueLanes::Halves => least,
                        };
                        word | value << (lane as u32 * lanes.bits())
                    })
                };
                (0..20 * block).map(word).collect::<Vec<u64>>()
            });
            let planes = planes.collect::<Vec<_>>();
            for (plane, words) in planes.iter().enumerate() {
                planes_alone(&packing, plane, words);
            }
            for owner in [0, 1] {
                let stream = ShareStream::new(&owners, owner, moduli.len(), block);
                for size in [1, 7, 64, 1000, stream.len()] {
                    for start in (0..stream.len()).step_by(size) {
                        let range = start..stream.len().min(start + size);
                        let message = packing.pack(&stream, range.clone(), |plane, words| &planes[plane][words]);
                        assert_eq!(message.len(), packing.message_words(&stream, range.clone()));
                        let mut want = Vec::new();
                        stream
                            .for_each(range.clone(), |piece| want.extend_from_slice(&planes[piece.plane][piece.words]));
                        let mut got = Vec::new();
                        packing.unpack(&message, &stream, range, |_, _, within, words| {
                            assert_eq!(within.len(), words.len());
                            got.extend_from_slice(words);
                        });
                        assert_eq!(got, want, "{lanes:?}, owner {owner}, {size} words at a time");
                    }
                }
                let words = packing.message_words(&stream, 0..stream.len()) as u64;
                assert_eq!(words, packing.plane_bits(stream.len() / moduli.len()).div_ceil(64));
            }
        }
    }
}
