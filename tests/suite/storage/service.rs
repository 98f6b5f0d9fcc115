//! Publishing, reading and deleting, in every kind of caching, on disk and in memory.

use super::fixture::{Opened, PATIENCE, contents, group, identity, new_objects, object, told};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use sunzi::Error;
use sunzi::advanced::storage::{
    Caching, Calls, Completion, Priority, PublishRequest, ReadRequest, SimulatedFaults, SimulatedFolder, Storage,
    StorageOptions,
};
use sunzi::advanced::store::IoBuffer;

/// A folder on a disk, and one in memory where there is one.
pub fn places() -> Vec<tempfile::TempDir> {
    let memory = PathBuf::from("/dev/shm");
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target");
    let places = [target, memory].into_iter().filter(|place| place.is_dir());
    places.map(|place| tempfile::tempdir_in(place).unwrap()).collect()
}

#[test]
fn what_is_published_can_be_read_at_once_and_after_reopening() {
    let sizes = [("empty", 0), ("byte", 1), ("block", 4096), ("more", 4097), ("large", 4_500_001)];
    for place in places() {
        for (caching, calls) in [
            (Caching::Direct, Calls::Ordinary),
            (Caching::Cached, Calls::Ordinary),
            (Caching::DropBehind, Calls::Ordinary),
            (Caching::Direct, Calls::Ring),
            (Caching::Cached, Calls::Ring),
        ] {
            let path = place.path().join(format!("{caching:?} {calls:?}"));
            let opened = Opened::with(&path, StorageOptions { caching, calls, ..StorageOptions::default() }).unwrap();
            let report = opened.storage.report();
            assert!(report.calls == calls || report.remarks.concat().contains("no io_uring here"), "{report:?}");
            opened.publish("first", &sizes).unwrap();
            opened.publish("second", &[("other", 70_000)]).unwrap();
            opened.publish("nothing", &[]).unwrap();
            for names in [&["large"][..], &["empty", "byte", "block"], &["other", "more", "large", "byte"], &[]] {
                opened.check(names).unwrap();
            }
            drop(opened);
            let opened = Opened::on_disk(&path, caching).unwrap();
            assert_eq!(opened.names(), ["empty", "byte", "block", "more", "large", "other"]);
            let objects = opened.storage.objects();
            assert_eq!((objects[4].bytes, objects[4].group.as_str()), (4_500_001, "first"));
            opened.check(&["empty", "byte", "block", "more", "large", "other"]).unwrap();
            opened.delete("first").unwrap();
            assert_eq!(opened.names(), ["other"]);
            assert!(!path.join("first.group").exists());
            let again = opened.begin_reading(&["byte"], 1).map(drop);
            assert_eq!(told(again), ("there is no stored object 'byte'".to_string(), 2));
            opened.publish("first", &[("byte", 2)]).unwrap();
            opened.check(&["byte", "other"]).unwrap();
        }
    }
}

#[test]
fn neighbours_are_read_by_one_call() {
    let folder = SimulatedFolder::new();
    let opened = Opened::simulated(&folder).unwrap();
    opened.publish("g", &[("a", 5000), ("b", 1), ("c", 4096), ("d", 9)]).unwrap();
    for (names, calls) in [(&["a", "b", "c"][..], 2), (&["a", "c"], 3), (&["b", "a"], 3), (&["d"], 2)] {
        folder.set_faults(SimulatedFaults::default());
        opened.check(names).unwrap();
        assert_eq!(folder.calls(), calls, "one to open the file and one for each run of {names:?}");
    }
}

#[test]
fn many_requests_are_all_answered_and_counted() {
    let place = &places()[0];
    let opened = Opened::on_disk(&place.path().join("d"), Caching::Direct).unwrap();
    let names = (0..40).map(|index| format!("object {index}")).collect::<Vec<_>>();
    for (index, name) in names.iter().enumerate() {
        opened.begin_publishing(&format!("g{index}"), &[(name, 1000 * index)], index as u64).unwrap();
    }
    let mut tags = (0..40).map(|_| opened.answer()).map(|done| done.result.map(|()| done.tag).unwrap());
    let mut tags: Vec<u64> = tags.by_ref().collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..40).collect::<Vec<_>>());
    for (index, name) in names.iter().enumerate() {
        opened.begin_reading(&[name], index as u64).unwrap();
    }
    for _ in 0..40 {
        let done = opened.answer();
        let (name, bytes) = (&names[done.tag as usize], 1000 * done.tag as usize);
        done.result.unwrap();
        assert!(done.buffer.unwrap().as_bytes()[..bytes] == contents(name, bytes), "{name}");
    }
    let statistics = opened.storage.statistics();
    let padded = (0..40u64).map(|index| (1000 * index).div_ceil(4096) * 4096).sum::<u64>();
    assert_eq!((statistics.reads, statistics.publications, statistics.failures), (40, 40, 0));
    assert_eq!((statistics.read_bytes, statistics.written_bytes), (padded, padded + 40 * 4096));
    assert_eq!((statistics.under_way, statistics.waiting, opened.storage.oldest_request()), (0, 0, None));
    assert!(statistics.busy_seconds >= statistics.longest_seconds && statistics.longest_seconds > 0.0);
}

#[test]
fn buffers_are_the_callers_again_when_the_answer_comes() {
    let opened = Opened::simulated(&SimulatedFolder::new()).unwrap();
    let objects = new_objects(&[("a", 10), ("b", 10)]);
    let buffer = Arc::clone(&objects[0].buffer);
    let priority = Priority::InOrder;
    opened.storage.publish(PublishRequest { group: group("g"), objects, tag: 9, priority }).unwrap();
    assert_eq!(opened.answer().tag, 9);
    assert!(Arc::try_unwrap(buffer).is_ok());
}

#[test]
fn a_request_that_cannot_be_meant_is_refused_with_its_numbers() {
    let opened = Opened::simulated(&SimulatedFolder::new()).unwrap();
    opened.publish("g", &[("a", 5000)]).unwrap();
    let request = |object_name: &str, group_name: &str, start, bytes| {
        let buffer = Arc::new(IoBuffer::new(8192).unwrap());
        let objects = vec![sunzi::advanced::storage::NewObject { name: object(object_name), buffer, start, bytes }];
        let priority = Priority::InOrder;
        told(opened.storage.publish(PublishRequest { group: group(group_name), objects, tag: 0, priority }))
    };
    for (refused, words) in [
        (request("b", "g", 0, 1), "group 'g': it exists already"),
        (request("a", "h", 0, 1), "object 'a': it is already in group 'g'"),
        (request("b", "h", 0, 8193), "of 8193 bytes from byte 0 does not fit a buffer of 8192"),
        (request("b", "h", 4096, 4097), "from byte 4096"),
        (request("b", "h", 8, 8), "from byte 8 "),
        (request("b", "h", 1 << 20, 0), "from byte 1048576"),
        (told(opened.delete("h")), "cannot delete group 'h': it does not exist"),
    ] {
        assert!(refused.0.contains(words) && refused.1 == 2, "{refused:?}");
    }
    let (objects, buffer) = (vec![object("a")], IoBuffer::new(4096).unwrap());
    let small = told(opened.storage.read(ReadRequest { objects, buffer, tag: 0, priority: Priority::InOrder }));
    assert_eq!(small.0, "8192 bytes of stored objects do not fit a buffer of 4096 bytes");
    assert_eq!((opened.names(), opened.completions.try_recv().is_err()), (vec!["a".to_string()], true));
}

#[test]
fn a_stalled_disk_is_seen_urgent_requests_go_first_and_dropping_cancels_the_rest() {
    let folder = SimulatedFolder::new();
    let Opened { storage, completions } = Opened::simulated(&folder).unwrap();
    let opened = Opened { storage, completions };
    opened.publish("g", &[("a", 100), ("b", 100)]).unwrap();
    folder.set_faults(SimulatedFaults { stall_at: Some(0), ..SimulatedFaults::default() });
    opened.begin_reading(&["a"], 10).unwrap();
    while opened.storage.statistics().under_way == 0 {
        std::thread::yield_now();
    }
    for (tag, priority) in [(11, Priority::InOrder), (12, Priority::Urgent)] {
        let (objects, buffer) = (vec![object("b")], IoBuffer::new(100).unwrap());
        opened.storage.read(ReadRequest { objects, buffer, tag, priority }).unwrap();
    }
    let earlier = opened.storage.oldest_request().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert!(opened.storage.oldest_request().unwrap() > earlier);
    assert_eq!((opened.storage.statistics().waiting, opened.completions.try_recv().is_err()), (2, true));
    folder.resume();
    assert_eq!([opened.answer().tag, opened.answer().tag, opened.answer().tag], [10, 12, 11]);

    folder.set_faults(SimulatedFaults { stall_at: Some(0), ..SimulatedFaults::default() });
    opened.begin_publishing("h", &[("c", 100)], 20).unwrap();
    while opened.storage.statistics().under_way == 0 {
        std::thread::yield_now();
    }
    opened.begin_reading(&["a"], 21).unwrap();
    let Opened { storage, completions } = opened;
    let closing = std::thread::spawn(move || drop(storage));
    let first = completions.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(first.result, Err(Error::Cancelled)) && first.tag == 21 && first.buffer.is_some());
    assert!(!closing.is_finished(), "it waits for what is under way");
    folder.resume();
    closing.join().unwrap();
    let second = completions.recv().unwrap();
    assert!(second.result.is_ok() && second.tag == 20);
    assert!(folder.files().keys().all(|name| !name.ends_with(".tmp")));
    assert_eq!(Opened::simulated(&folder).unwrap().names(), ["a", "b", "c"]);
}

#[test]
fn the_last_handle_may_be_dropped_by_the_callback() {
    type Slot = Arc<Mutex<Option<Storage>>>;
    let (slot, (sender, ended)) = (Slot::default(), mpsc::channel());
    let deliver = {
        let slot = Arc::clone(&slot);
        Box::new(move |completion: Completion| {
            drop(slot.lock().unwrap().take());
            sender.send((completion.tag, completion.result.is_ok())).unwrap();
        })
    };
    let folder = SimulatedFolder::new();
    let options = StorageOptions { threads: 3, ..StorageOptions::default() };
    let storage = Storage::open_in(Arc::new(folder.clone()), &identity(), options, deliver).unwrap();
    let mut guard = slot.lock().unwrap();
    let objects = new_objects(&[("a", 10)]);
    storage.publish(PublishRequest { group: group("g"), objects, tag: 5, priority: Priority::InOrder }).unwrap();
    *guard = Some(storage);
    drop(guard);
    assert_eq!(ended.recv_timeout(PATIENCE), Ok((5, true)));
    assert_eq!(Opened::simulated(&folder).unwrap().names(), ["a"]);
}

#[test]
fn ragged_transfers_end_with_the_same_bytes() {
    let folder = SimulatedFolder::new();
    let opened = Opened::simulated(&folder).unwrap();
    folder.set_faults(SimulatedFaults { ragged: true, ..SimulatedFaults::default() });
    for index in 0..20 {
        let (a, b) = (format!("a{index}"), format!("b{index}"));
        opened.publish(&format!("g{index}"), &[(&a, 30_000), (&b, 3 + 999 * index)]).unwrap();
        opened.check(&[&a, &b]).unwrap();
    }
}

#[test]
fn a_part_that_could_not_be_removed_is_in_nobodys_way() {
    let folder = SimulatedFolder::new();
    let opened = Opened::simulated(&folder).unwrap();
    folder.put_file("g.group.tmp", vec![7; 20_000]);
    opened.publish("g", &[("a", 100)]).unwrap();
    opened.check(&["a"]).unwrap();
    assert!(!folder.files().contains_key("g.group.tmp"));
}

#[test]
fn rates_are_measured_and_leave_nothing() {
    for place in places() {
        let path = place.path().join("d");
        let opened = Opened::on_disk(&path, StorageOptions::default().caching).unwrap();
        let rates = opened.storage.measure_rates(9 << 20).unwrap();
        for rate in [rates.read_bytes_per_second, rates.write_bytes_per_second] {
            assert!(rate.is_finite() && rate > 1e5, "{rates:?}");
        }
        let mut left = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        left.sort();
        assert_eq!(left, ["identity.json", "lock"]);
    }
}
