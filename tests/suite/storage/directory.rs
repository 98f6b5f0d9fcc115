//! Opening: whose directory it is, who works there, what a file system without direct I/O does.

use super::fixture::{Opened, identity, told};
use super::service::places;
use std::fs;
use std::sync::Arc;
use sunzi::advanced::storage::{Caching, Folder, Identity, SimulatedFaults, SimulatedFolder, Storage, StorageOptions};

fn open(path: &std::path::Path, identity: &Identity) -> sunzi::Result<Storage> {
    Storage::open(path, identity, StorageOptions::default(), Box::new(drop))
}

#[test]
fn a_directory_of_something_else_is_refused_by_the_key_that_differs() {
    let place = &places()[0];
    let path = place.path().join("d");
    drop(open(&path, &identity()).unwrap());
    drop(open(&path, &identity()).unwrap());
    let other = identity().with("precision_bits", 1024);
    let (words, code) = told(open(&path, &other));
    let expected = "the directory belongs to another computation: precision_bits is '768' there and '1024' in this run";
    assert!(words.ends_with(expected) && words.starts_with(&*path.to_string_lossy()) && code == 3, "{words}");
    fs::write(path.join("identity.json"), "{}").unwrap();
    let (words, _) = told(open(&path, &identity()));
    assert!(words.contains("identity.json: the identity file of the storage directory is damaged"), "{words}");
}

#[test]
fn two_runs_do_not_share_a_directory() {
    let place = &places()[0];
    let path = place.path().join("d");
    let first = open(&path, &identity()).unwrap();
    let (words, code) = told(open(&path, &identity()));
    let expected = format!("process {} is using this directory", std::process::id());
    assert!(words.ends_with(&expected) && code == 3, "{words}");
    drop(first);
    open(&path, &identity()).unwrap();
}

#[test]
fn foreign_folders_files_and_missing_parents_are_refused_and_left_alone() {
    let place = &places()[0];
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("photos")).unwrap();
    fs::write(at("photos/cat.jpg"), "meow").unwrap();
    fs::write(at("file"), "text").unwrap();
    for (name, expected) in [
        ("photos", "this is not a storage directory: it contains 'cat.jpg' and no 'identity.json'"),
        ("file", "cannot open the folder: Not a directory"),
        ("missing/d", "cannot make the folder: No such file or directory"),
    ] {
        let (words, code) = told(open(&at(name), &identity()));
        assert!(words.starts_with(&*at(name).to_string_lossy()) && words.contains(expected) && code == 3, "{words}");
    }
    assert_eq!(fs::read_dir(at("photos")).unwrap().count(), 1);
    assert_eq!(fs::read(at("file")).unwrap(), b"text");
    // A file beside the groups is in nobody's way once the directory is one of ours.
    drop(open(&at("d"), &identity()).unwrap());
    fs::write(at("d/notes.txt"), "mine").unwrap();
    drop(open(&at("d"), &identity()).unwrap());
    assert_eq!(fs::read(at("d/notes.txt")).unwrap(), b"mine");
}

#[test]
fn a_folder_that_cannot_be_written_is_one_clear_error() {
    for (error, expected) in [
        (rustix::io::Errno::ROFS, "/simulated: cannot write in this directory: Read-only file system"),
        (rustix::io::Errno::ACCESS, "/simulated: cannot write in this directory: Permission denied"),
    ] {
        let folder = SimulatedFolder::new();
        let errors = [(1, error.raw_os_error())].into();
        folder.set_faults(SimulatedFaults { errors, ..SimulatedFaults::default() });
        let (words, code) = told(Opened::simulated(&folder));
        assert!(words.starts_with(expected) && code == 3, "{words}");
    }
}

#[test]
fn without_direct_io_pages_are_dropped_and_the_report_says_so() {
    let folder = SimulatedFolder::new();
    folder.set_faults(SimulatedFaults { no_direct_io: true, ..SimulatedFaults::default() });
    let opened = Opened::simulated(&folder).unwrap();
    let report = opened.storage.report().clone();
    assert_eq!((report.caching, report.alignment), (Caching::DropBehind, None));
    let remark = report.remarks.concat();
    let absent = "/simulated: direct I/O is not available (the simulated file system does not support it)";
    assert!(remark.starts_with(absent), "{remark}");
    opened.publish("g", &[("a", 5)]).unwrap();
    opened.check(&["a"]).unwrap();
    drop(opened);

    let folder = SimulatedFolder::new();
    let report = Opened::simulated(&folder).unwrap().storage.report().clone();
    assert_eq!((report.caching, report.alignment, report.remarks), (Caching::Direct, Some(512), Vec::new()));
    for place in places() {
        let opened = Opened::on_disk(&place.path().join("d"), Caching::Direct).unwrap();
        let report = opened.storage.report();
        assert_eq!(report.alignment.is_some(), report.remarks.is_empty(), "{report:?}");
        assert_eq!(report.caching == Caching::Direct, report.alignment.is_some());
        if place.path().starts_with("/dev/shm") {
            assert!(report.remarks[0].contains("the directory is in memory"), "{report:?}");
        }
    }
}

#[test]
fn a_full_disk_is_told_in_bytes_and_the_directory_goes_on() {
    let folder = SimulatedFolder::new();
    let opened = Opened::simulated(&folder).unwrap();
    opened.publish("g", &[("a", 8000)]).unwrap();
    let used = folder.files().values().map(|data| data.len() as u64).sum::<u64>();
    folder.set_faults(SimulatedFaults { capacity_bytes: Some(used + 20_000), ..SimulatedFaults::default() });
    let (words, code) = told(opened.publish("h", &[("b", 20_000)]));
    let expected = "/simulated/h.group: the disk is full: 24 KiB (24576 bytes) are to be written, \
                    19.54 KiB (20000 bytes) are free";
    assert_eq!((words.as_str(), code), (expected, 4));
    assert!(folder.files().keys().all(|name| !name.ends_with(".tmp")));
    opened.check(&["a"]).unwrap();
    opened.publish("h", &[("b", 10_000)]).unwrap();
    drop(opened);
    assert_eq!(Opened::simulated(&folder).unwrap().names(), ["a", "b"]);
    let full = SimulatedFolder::new();
    full.set_faults(SimulatedFaults { capacity_bytes: Some(10), ..SimulatedFaults::default() });
    let (words, code) = told(Opened::simulated(&full));
    assert!(words.contains("identity.json: the disk is full") && code == 4, "{words}");
}

#[test]
fn every_call_that_fails_is_an_error_and_leaves_a_directory_to_resume() {
    let count = {
        let folder = SimulatedFolder::new();
        let opened = Opened::simulated(&folder).unwrap();
        opened.publish("g", &[("a", 9000)]).unwrap();
        opened.delete("g").unwrap();
        folder.calls()
    };
    assert!(count >= 20, "{count} calls");
    for call in 0..count {
        let folder = SimulatedFolder::new();
        let errors = [(call, rustix::io::Errno::IO.raw_os_error())].into();
        folder.set_faults(SimulatedFaults { errors, ..SimulatedFaults::default() });
        let tried = Opened::simulated(&folder).and_then(|opened| {
            opened.publish("g", &[("a", 9000)])?;
            opened.delete("g")
        });
        // A probe for direct I/O that fails is an answer.
        if let Err(error) = tried {
            assert!(error.to_string().contains("Input/output error"), "call {call}: {error}");
        }
        folder.set_faults(SimulatedFaults::default());
        let opened = Opened::simulated(&folder).unwrap();
        if opened.names() == ["a"] {
            opened.check(&["a"]).unwrap();
            opened.delete("g").unwrap();
        }
        opened.publish("g", &[("a", 100)]).unwrap();
        opened.check(&["a"]).unwrap();
        let temporary = folder.files().keys().filter(|name| name.ends_with(".tmp")).count();
        assert_eq!(temporary, 0, "call {call}");
    }
}

#[test]
fn a_simulated_folder_is_one_more_folder() {
    let folder: Arc<dyn Folder> = Arc::new(SimulatedFolder::new());
    let first = Storage::open_in(Arc::clone(&folder), &identity(), StorageOptions::default(), Box::new(drop)).unwrap();
    let second = Storage::open_in(Arc::clone(&folder), &identity(), StorageOptions::default(), Box::new(drop));
    assert!(told(second).0.contains("process 1 is using this directory"));
    drop(first);
}
