//! The precisions of a run, up to the requested one.

/// The precisions, below the requested one.
const STEPS: [u32; 10] = [128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072];

/// The precision of the first iteration.
pub fn first_bits(full: u32) -> u32 {
    next_bits(0, full).unwrap_or(full)
}

/// The precision after `bits`; none after the last.
pub fn next_bits(bits: u32, full: u32) -> Option<u32> {
    if bits >= full {
        return None;
    }
    Some(STEPS.into_iter().find(|&next| next > bits && 4 * next <= 3 * full).unwrap_or(full))
}

/// The least precision of a run that is not below `bits`, or the last one.
pub fn at_least(bits: u32, full: u32) -> u32 {
    next_bits(bits.saturating_sub(1), full).unwrap_or(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precisions_rise_to_that_asked_for() {
        let all = |full: u32| {
            let mut found = vec![first_bits(full)];
            while let Some(next) = next_bits(*found.last().unwrap(), full) {
                found.push(next);
            }
            found
        };
        assert_eq!(all(100), [100]);
        assert_eq!(
            [0, 128, 129, 512, 513, 760, 768, 900].map(|bits| at_least(bits, 768)),
            [128, 128, 192, 512, 768, 768, 768, 768]
        );
        assert_eq!((at_least(64, 100), at_least(99, 100)), (100, 100));
        assert_eq!(all(128), [128]);
        assert_eq!(all(256), [128, 192, 256]);
        assert_eq!(all(768), [128, 192, 256, 384, 512, 768]);
        assert_eq!(all(5000), [128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 5000]);
    }
}
