//! Parts of messages: sizes, processes, shares of devices; and the meaning of errors of the system.

/// The process that holds a lock, in [`super::Error::StorageInUse`].
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

/// Bits that matrices and files can have.
const STORED_BITS: u64 = 1 << 24;

/// Bits that operations reach with every kernel; each goes some way beyond that, and none as far as matrices.
const EVERY_KERNEL_BITS: u64 = 5000;

/// What the range of precisions up to `maximum_bits` belongs to, in [`super::Error::Precision`]; empty where it is that
/// of a kernel.
pub(super) fn whose_range(maximum_bits: u64) -> String {
    if maximum_bits < STORED_BITS {
        return String::new();
    }
    format!(" of matrices and files; operations take 2 to {EVERY_KERNEL_BITS} bits with every kernel")
}

/// Whether a disk was full, or a quota was reached.
pub fn is_full_disk(source: &std::io::Error) -> bool {
    matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::io;

    #[test]
    fn a_full_disk_has_one_exit_code_and_other_troubles_of_files_another() {
        let error = |source: io::Error| Error::Io { path: "a".into(), action: "write", source };
        let full = Error::DiskFull { path: "a".into(), bytes: 5, free_bytes: 4 };
        for (error, code) in [
            (full, 4),
            (error(io::ErrorKind::StorageFull.into()), 4),
            (error(io::ErrorKind::QuotaExceeded.into()), 4),
            (error(io::Error::from_raw_os_error(libc::ENOSPC)), 4),
            (error(io::ErrorKind::FileTooLarge.into()), 3),
            (error(io::ErrorKind::PermissionDenied.into()), 3),
        ] {
            assert_eq!(error.exit_code(), code, "{error}");
        }
    }

    #[test]
    fn the_range_of_a_precision_says_whose_it_is() {
        assert_eq!(STORED_BITS, u64::from(crate::matrix::MAXIMUM_PRECISION_BITS));
        let text = |maximum_bits: u64| Error::precision(1u32, maximum_bits).to_string();
        assert_eq!(text(5046), "precision of 1 bits is outside the supported range of 2 to 5046 bits");
        assert!(text(STORED_BITS).ends_with(
            "of 2 to 16777216 bits of matrices and files; operations take 2 to 5000 bits with every kernel"
        ));
    }

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
