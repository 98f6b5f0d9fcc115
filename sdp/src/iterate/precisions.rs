//! The precisions of a run, up to that asked for.

/// The precisions, below that asked for.
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
