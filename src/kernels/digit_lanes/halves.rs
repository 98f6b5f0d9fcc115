//! Karatsuba's scheme on digits: `(l + h B)(l' + h' B) = l l' + ((l + h)(l' + h') - l l' - h h') B + h h' B^2`.
//!
//! It is linear in the products, so sums of many products pass through it once. Source: A. Karatsuba and Y. Ofman,
//! Multiplication of many-digital numbers by automatic computers, 1962.

/// The block in which the digits of part `part` of the `2^levels` of an integer lie: its binary digits, in base 3. Two is
/// the digit of a sum of halves.
pub fn block_of(part: usize, levels: u32) -> usize {
    (0..levels).map(|level| (part >> level & 1) * 3usize.pow(level)).sum()
}

/// Fills in the blocks, of so many numbers each, that are sums of others.
#[inline(always)]
pub fn add(blocks: &mut [i32], length: usize, levels: u32) {
    for index in 0..3usize.pow(levels) {
        let two = (0..levels).map(|level| 3usize.pow(level)).find(|place| index / place % 3 == 2);
        if let Some(place) = two {
            let (before, sums) = blocks.split_at_mut(index * length);
            let one = &before[(index - 2 * place) * length..][..length];
            let other = &before[(index - place) * length..][..length];
            for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
                *sum = one.wrapping_add(*other); // of lanes that are not set yet, too
            }
        }
    }
}

/// Puts the sums of products of all blocks together, each of them `2 block` numbers: the sums of products of the whole
/// integers come to lie at the beginning.
///
/// Differences wrap where sums have been carried: what comes of them is small again (docs/ALGORITHM.md).
#[inline(always)]
pub fn interpolate(sums: &mut [i64], block: usize, levels: u32) {
    let mut length = 2 * block;
    for level in (0..levels).rev() {
        for part in 0..3usize.pow(level) {
            let triple = &mut sums[3 * part * length..][..3 * length];
            let (outer, middle) = triple.split_at_mut(2 * length);
            let (low, high) = outer.split_at(length);
            for ((middle, low), high) in middle.iter_mut().zip(low).zip(high) {
                *middle = middle.wrapping_sub(*low).wrapping_sub(*high);
            }
            for (sum, middle) in outer[length / 2..].iter_mut().zip(middle) {
                *sum = sum.wrapping_add(*middle);
            }
            sums.copy_within(3 * part * length..(3 * part + 2) * length, 2 * part * length);
        }
        length *= 2;
    }
}
