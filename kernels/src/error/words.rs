//! Parts of messages: sizes, processes, shares of devices.

/// Who holds a lock, in [`super::Error::StorageInUse`].
pub(super) fn process_in_words(process: Option<u32>) -> String {
    process.map_or("another process".to_string(), |number| format!("process {number}"))
}

/// A number of bytes as `22 MiB (23068672 bytes)`: the unit rounded up in the second decimal, so that it is enough.
pub(super) fn bytes_in_words(bytes: u64) -> String {
    const NAMES: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let power = (bytes.ilog2() / 10) as usize;
    let hundredths = (u128::from(bytes) * 100).div_ceil(1 << (10 * power));
    let (whole, part) = (hundredths / 100, hundredths % 100);
    let decimals = if part == 0 { String::new() } else { format!(".{part:02}").trim_end_matches('0').to_string() };
    format!("{whole}{decimals} {} ({bytes} bytes)", NAMES[power - 1])
}

/// Which part of a device the bytes of a limit are, in [`super::Error::DeviceLimit`].
pub(super) fn share_in_words(ranks: usize) -> String {
    if ranks > 1 { format!(", the share of one of the {ranks} ranks that use the device,") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_in_units_that_are_enough() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1 KiB (1024 bytes)"),
            (1025, "1.01 KiB (1025 bytes)"),
            (23_068_672, "22 MiB (23068672 bytes)"),
            (70_278_344, "67.03 MiB (70278344 bytes)"),
            (3 << 29, "1.5 GiB (1610612736 bytes)"),
            (u64::MAX, "16 EiB (18446744073709551615 bytes)"),
        ] {
            assert_eq!(bytes_in_words(bytes), text);
        }
    }
}
