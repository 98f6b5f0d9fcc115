//! Bytes as this crate counts them beside those that the system counts for the process.

use super::children::child;
use super::fixture::Opened;
use super::service::places;
use std::fs;
use std::path::Path;
use sunzi::advanced::storage::Caching;

/// Names the directory to the child, and so makes it one.
const DIRECTORY: &str = "SUNZI_TEST_STORAGE_COUNTED";

/// A counter of the system for this process.
fn counter(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap().parse().unwrap()
}

/// The child, which has the counters for itself.
#[test]
fn child_compares_its_counts_with_the_systems() {
    let Ok(path) = std::env::var(DIRECTORY) else { return };
    let opened = Opened::on_disk(Path::new(&path), Caching::Direct).unwrap();
    let names = (0..12).map(|index| format!("object {index}")).collect::<Vec<_>>();
    let before = (counter("read_bytes"), counter("write_bytes"));
    for (index, name) in names.iter().enumerate() {
        opened.publish(&format!("g{index}"), &[(name, 300_000), (&format!("{name} more"), 5)]).unwrap();
    }
    names.iter().for_each(|name| opened.check(&[name]).unwrap());
    let (read, written) = (counter("read_bytes") - before.0, counter("write_bytes") - before.1);
    let statistics = opened.storage.statistics();
    assert_eq!(statistics.read_bytes, 12 * 74 * 4096);
    assert_eq!(statistics.written_bytes, 12 * 76 * 4096);
    // What the file system writes for itself comes on top.
    for (ours, systems) in [(statistics.read_bytes, read), (statistics.written_bytes, written)] {
        assert!(ours <= systems && systems <= ours + ours / 4, "{ours} against {systems}");
    }
}

#[test]
fn counts_are_those_of_the_system() {
    let place = &places()[0];
    let path = place.path().join("d");
    let report = Opened::on_disk(&path, Caching::Direct).unwrap().storage.report().clone();
    if report.caching != Caching::Direct || !Path::new("/proc/self/io").exists() {
        return println!("skipped: no direct I/O in {}, or no counters", path.display());
    }
    let ended = child(module_path!(), "child_compares_its_counts_with_the_systems", DIRECTORY, &path).output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&ended.stderr));
}
