//! How much memory this process may use: the machine's free memory and the container's limit, whichever is less.

use std::fs;

/// Bytes that can be allocated now without swapping, or `None` if the system does not report it.
///
/// The lesser of `MemAvailable` and the bytes that the control group (version 2 or 1) still allows.
pub fn available_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| parse_meminfo(&text));
    let read = |path: &str| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let group = |limit: &str, used: &str| read(limit).map(|limit| limit.saturating_sub(read(used).unwrap_or(0)));
    let container = group("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current").or_else(|| {
        group("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes")
    });
    [machine, container].into_iter().flatten().min()
}

fn parse_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    #[test]
    fn meminfo_is_read_in_bytes() {
        assert_eq!(super::parse_meminfo("MemTotal: 9 kB\nMemAvailable:   1234 kB\n"), Some(1234 * 1024));
        assert_eq!(super::parse_meminfo("nothing"), None);
    }
}
