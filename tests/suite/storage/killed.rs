//! `kill -9` inside writes: a child of this very program publishes until it is killed, again and again.

use super::children::child;
use super::fixture::{Opened, PATIENCE, object};
use super::service::places;
use crate::common::{Rng, effort};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use sunzi::advanced::storage::Caching;

/// Names the directory to the child, and so makes it one.
const DIRECTORY: &str = "SUNZI_TEST_STORAGE_CHILD";

const BYTES: usize = 300_000;

/// Groups that the child publishes at a time.
const UNDER_WAY: usize = 8;

fn caching(path: &Path) -> Caching {
    if path.starts_with("/dev/shm") { Caching::Cached } else { Caching::Direct }
}

/// The child: publishes groups, the next ones each time, and says the number of each that was acknowledged.
#[test]
fn child_publishes_until_it_is_killed() {
    let Ok(path) = std::env::var(DIRECTORY) else { return };
    let path = Path::new(&path);
    let opened = Opened::on_disk(path, caching(path)).unwrap();
    let publish = |index: usize| {
        let (a, b) = (format!("{index}a"), format!("{index}b"));
        opened.begin_publishing(&format!("g{index}"), &[(&a, BYTES), (&b, index)], index as u64).unwrap();
    };
    // The groups of a killed run need not be a first part of all: the next names are free in any case.
    let first = opened.storage.objects().iter().filter_map(|object| object.group.as_str()[1..].parse().ok()).max();
    let first = first.map_or(0, |last: usize| last + 1);
    (first..first + UNDER_WAY).for_each(publish);
    for next in first + UNDER_WAY.. {
        let done = opened.answer();
        done.result.unwrap();
        publish(next);
        eprintln!("published {}", done.tag);
    }
}

/// Runs the child for a while, kills it, and returns the groups that it was told of.
fn run_and_kill(path: &Path, after: Duration) -> Vec<usize> {
    let mut child = child(module_path!(), "child_publishes_until_it_is_killed", DIRECTORY, path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let begun = Instant::now();
    let mut killed = false;
    let mut published = Vec::new();
    for line in lines.map_while(std::io::Result::ok) {
        published.extend(line.strip_prefix("published ").map(|number| number.parse::<usize>().unwrap()));
        assert!(line.starts_with("published "), "{line}");
        if !killed && begun.elapsed() >= after {
            child.kill().unwrap();
            killed = true;
        }
        assert!(begun.elapsed() < PATIENCE);
    }
    child.wait().unwrap();
    published
}

#[test]
fn groups_outlast_kills_and_nothing_half_written_is_taken_for_one() {
    let (mut rng, mut kills, mut inside) = (Rng::new(5), 0, 0);
    for place in places() {
        let (path, mut told) = (place.path().join("d"), Vec::new());
        for round in 0..5 * effort() {
            kills += 1;
            told.extend(run_and_kill(&path, Duration::from_millis(rng.below(60) as u64)));
            let left = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
            inside += u64::from(left.filter(|name| name.to_string_lossy().ends_with(".tmp")).count() > 0);
            let opened = Opened::on_disk(&path, caching(&path)).unwrap();
            let objects = opened.storage.objects();
            assert_eq!((opened.storage.damaged().len(), objects.len() % 2), (0, 0), "round {round}");
            for number in &told {
                assert!(objects.iter().any(|known| known.name == object(&format!("{number}a"))), "round {round}");
            }
            for known in &objects {
                opened.check(&[known.name.as_str()]).unwrap();
            }
            // Few groups stay, so that many rounds take no longer each.
            told.retain(|&number| number % 16 == 0);
            for known in objects.iter().filter(|known| known.name.as_str().ends_with('a')) {
                let number = known.group.as_str()[1..].parse::<usize>().unwrap();
                if number % 16 != 0 {
                    opened.delete(known.group.as_str()).unwrap();
                }
            }
            let left = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
            assert_eq!(left.filter(|name| name.to_string_lossy().ends_with(".tmp")).count(), 0);
        }
    }
    println!("{inside} of {kills} kills fell into a write");
    // A few kills may all miss the writes on a busy machine.
    assert!(kills < 40 || 8 * inside >= kills, "{inside} of {kills} kills fell into a write");
}
