//! Flipped bits and cut files: found, named, and out of the way when the group is deleted.

use super::fixture::{Opened, contents, object, told};
use super::service::places;
use crate::common::{Rng, seeds};
use std::os::unix::fs::FileExt;
use sunzi::advanced::storage::{Calls, SimulatedFolder, StorageOptions};

const OBJECTS: [(&str, usize); 3] = [("a", 5000), ("b", 4096), ("c", 700)];

fn published() -> (SimulatedFolder, Vec<u8>) {
    let folder = SimulatedFolder::new();
    Opened::simulated(&folder).unwrap().publish("g", &OBJECTS).unwrap();
    let file = folder.files().remove("g.group").unwrap();
    assert_eq!(file.len(), 5 * 4096);
    (folder, file)
}

#[test]
fn a_flipped_bit_of_an_object_is_found_by_its_checksum() {
    for seed in seeds(30) {
        let mut rng = Rng::new(seed);
        let (folder, mut file) = published();
        let (name, start, bytes) = rng.pick(&[("a", 4096, 5000), ("b", 3 * 4096, 4096), ("c", 4 * 4096, 700)]);
        file[start + rng.below(bytes)] ^= 1 << rng.below(8);
        folder.put_file("g.group", file);
        let opened = Opened::simulated(&folder).unwrap();
        let (words, code) = told(opened.check(&["a", "b", "c"]));
        let expected = format!("/simulated/g.group: object '{name}' is damaged: its checksum is ");
        assert!(words.starts_with(&expected) && code == 3, "seed {seed}: {words}");
        for (other, _) in OBJECTS {
            assert_eq!(opened.check(&[other]).is_err(), other == name, "seed {seed}: {other}");
        }
        assert_eq!(opened.storage.statistics().failures, 2);
        opened.delete("g").unwrap();
        opened.publish("g", &OBJECTS).unwrap();
        opened.check(&["c", "a", "b"]).unwrap();
    }
}

#[test]
fn a_file_cut_while_it_is_in_use_names_the_object_and_what_is_missing() {
    let (folder, file) = published();
    let opened = Opened::simulated(&folder).unwrap();
    for (bytes, first) in [(4 * 4096 + 512, "c"), (3 * 4096 + 1, "b"), (4096, "a"), (10, "a")] {
        folder.put_file("g.group", file[..bytes].to_vec());
        let (words, code) = told(opened.check(&["a", "b", "c"]));
        let (start, length) = [("a", (4096, 5000)), ("b", (3 * 4096, 4096)), ("c", (4 * 4096, 700))]
            .into_iter()
            .find_map(|(name, place)| (name == first).then_some(place))
            .unwrap();
        let missing = start + length - bytes.max(4096);
        let expected =
            format!("/simulated/g.group: object '{first}' is damaged: the file ends {missing} bytes too early");
        assert_eq!((words, code), (expected, 3));
    }
}

#[test]
fn a_damaged_header_or_a_cut_file_is_reported_when_the_directory_is_opened() {
    let (_, file) = published();
    let mut flipped = file.clone();
    flipped[100] ^= 4;
    let mut renamed = file.clone();
    renamed.truncate(file.len() - 1);
    let cases = [
        (flipped, "the checksum of its header is"),
        (file[..file.len() - 4096].to_vec(), "it has 16384 bytes instead of 20480"),
        (file[..100].to_vec(), "its header states 4096"),
        (Vec::new(), "its header ends too early"),
        (b"text of somebody else's, long enough for a header".to_vec(), "not a file of a group"),
        (renamed, "it has 20479 bytes instead of 20480"),
    ];
    for (damaged, reason) in cases {
        let (folder, file) = published();
        folder.put_file("g.group", damaged);
        folder.put_file("copy.group", file.clone());
        let opened = Opened::simulated(&folder).unwrap();
        let found = opened.storage.damaged();
        let found = found.iter().map(|group| (group.group.as_str(), group.reason.as_str())).collect::<Vec<_>>();
        assert_eq!((found.len(), found[0]), (2, ("copy", "it is the file of group 'g'")));
        assert!(found[1].0 == "g" && found[1].1.contains(reason), "{found:?}");
        assert_eq!(opened.names(), Vec::<String>::new());
        assert!(told(opened.publish("g", &OBJECTS)).0.contains("is damaged and must be deleted first"));
        opened.delete("g").unwrap();
        opened.delete("copy").unwrap();
        opened.publish("g", &OBJECTS).unwrap();
        opened.check(&["a", "b", "c"]).unwrap();
    }
}

#[test]
fn damage_on_a_real_disk_is_found_by_both_kinds_of_calls() {
    for (place, calls) in places().iter().flat_map(|place| [(place, Calls::Ordinary), (place, Calls::Ring)]) {
        let path = place.path().join(format!("{calls:?}"));
        let opened = Opened::with(&path, StorageOptions { calls, ..StorageOptions::default() }).unwrap();
        opened.publish("g", &[("a", 5_000_000), ("b", 100)]).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(path.join("g.group")).unwrap();
        let good = contents("a", 5_000_000)[4_444_444];
        file.write_all_at(&[good ^ 16], 4096 + 4_444_444).unwrap();
        file.sync_all().unwrap();
        let (words, code) = told(opened.check(&["a", "b"]));
        assert!(words.contains("g.group: object 'a' is damaged: its checksum") && code == 3, "{words}");
        opened.check(&["b"]).unwrap();
        file.write_all_at(&[good], 4096 + 4_444_444).unwrap();
        file.set_len(4096 + 4_500_000).unwrap();
        file.sync_all().unwrap();
        let (words, _) = told(opened.check(&["a", "b"]));
        assert!(words.contains("object 'a' is damaged: the file ends 500000 bytes too early"), "{words}");
        std::fs::remove_file(path.join("g.group")).unwrap();
        let (words, _) = told(opened.check(&["b"]));
        assert!(words.contains("g.group: cannot open: No such file"), "{words}");
        let info = opened.storage.object(&object("b")).unwrap();
        assert!(told(opened.delete(info.group.as_str())).0.contains("cannot remove: No such file"));
        opened.publish("g", &[("a", 7)]).unwrap();
        opened.check(&["a"]).unwrap();
    }
}

#[test]
fn a_group_of_another_directory_is_not_taken_for_one_of_this() {
    let (_, file) = published();
    let folder = SimulatedFolder::new();
    let other = super::fixture::identity().with("order", 13);
    let options = StorageOptions::default();
    let open = || {
        let folder = std::sync::Arc::new(folder.clone());
        sunzi::advanced::storage::Storage::open_in(folder, &other, options, Box::new(drop)).unwrap()
    };
    drop(open());
    folder.put_file("g.group", file);
    assert_eq!(open().damaged()[0].reason, "it belongs to another directory");
}
