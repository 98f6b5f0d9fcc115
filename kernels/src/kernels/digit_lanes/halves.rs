//! Karatsuba's scheme on digits: `(l + h B)(l' + h' B) = l l' + ((l + h)(l' + h') - l l' - h h') B + h h' B^2`.
//!
//! Where an integer lies that is cut in halves up to three times: part by part at the places that [`block_of`] names,
//! with the sums of halves at the others. Source: A. Karatsuba and Y. Ofman, Multiplication of many-digital numbers by
//! automatic computers, 1962.

/// The largest number of halvings.
pub const MOST_LEVELS: u32 = 3;

/// Blocks of an integer that is halved most often.
const MOST_BLOCKS: usize = 3usize.pow(MOST_LEVELS);

/// The block in which the digits of a part of an integer lie: the binary digits of its number, in base 3. Two is the
/// digit of a sum of halves.
const BLOCKS_OF_PARTS: [usize; 1 << MOST_LEVELS] = {
    let mut blocks = [0; 1 << MOST_LEVELS];
    let mut part = 1;
    while part < blocks.len() {
        blocks[part] = 3 * blocks[part / 2] + part % 2;
        part += 1;
    }
    blocks
};

/// For each block how far below it one of its halves lies, the other one as far below that; 0 for parts of the integer.
const BELOW: [usize; MOST_BLOCKS] = {
    let mut below = [0; MOST_BLOCKS];
    let mut block = 0;
    while block < MOST_BLOCKS {
        let mut place = 1;
        while place < MOST_BLOCKS && below[block] == 0 {
            if block / place % 3 == 2 {
                below[block] = place;
            }
            place *= 3;
        }
        block += 1;
    }
    below
};

/// The block in which the digits of part `part` of an integer lie.
pub fn block_of(part: usize) -> usize {
    BLOCKS_OF_PARTS[part]
}

/// Fills in the blocks, of `length` numbers each, that are sums of others. Numbers may be garbage: of lanes that are
/// not set yet.
pub fn add(blocks: &mut [i32], length: usize) {
    for (block, below) in BELOW.iter().enumerate().take(blocks.len() / length) {
        let below = below * length;
        if below > 0 {
            let (before, sums) = blocks.split_at_mut(block * length);
            let (one, other) =
                (&before[before.len() - 2 * below..][..length], &before[before.len() - below..][..length]);
            for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
                *sum = one.wrapping_add(*other);
            }
        }
    }
}
