//! Power cuts at any call: what was acknowledged is there and whole, all else is there and whole or not there.

use super::fixture::Opened;
use crate::common::{Rng, seeds};
use std::collections::BTreeMap;
use sunzi::advanced::storage::{Durability, SimulatedFaults, SimulatedFolder, StorageOptions};
use sunzi::{Error, Result};

/// What is known of a group after the calls so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    Published,
    Deleted,
    /// The answer was an error: there or not, but whole.
    Open,
}

/// Objects of the group `index`, from its number alone.
fn objects(index: usize) -> Vec<(String, usize)> {
    let size = |object: usize| (index * 7919 + object * 4801) % 9000;
    (0..index % 4).map(|object| (format!("{index}/{object}"), size(object))).collect()
}

fn borrowed(objects: &[(String, usize)]) -> Vec<(&str, usize)> {
    objects.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect()
}

/// Publishes and deletes at random until a call fails or it is enough.
fn work(folder: &SimulatedFolder, rng: &mut Rng, known: &mut BTreeMap<usize, Known>) -> Result<()> {
    let opened = Opened::simulated(folder)?;
    for _ in 0..6 {
        let index = rng.below(8);
        let is_there = known.get(&index) == Some(&Known::Published);
        let before = known.insert(index, Known::Open);
        if before == Some(Known::Open) {
            continue;
        }
        match is_there {
            true => opened.delete(&format!("g{index}"))?,
            false => opened.publish(&format!("g{index}"), &borrowed(&objects(index)))?,
        }
        known.insert(index, if is_there { Known::Deleted } else { Known::Published });
    }
    Ok(())
}

/// Opens the directory after a cut and compares it with what is known.
fn check(folder: &SimulatedFolder, known: &mut BTreeMap<usize, Known>, seed: u64) {
    let opened = Opened::simulated(folder).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(opened.storage.damaged(), [], "seed {seed}");
    let there = opened.storage.objects();
    for (index, known) in known.iter_mut() {
        let wanted = objects(*index);
        let found = there.iter().filter(|object| object.group.as_str() == format!("g{index}")).count();
        let file = folder.files().contains_key(&format!("g{index}.group"));
        match known {
            Known::Published => assert!(file && found == wanted.len(), "seed {seed}: group {index} is lost"),
            Known::Deleted => assert!(!file, "seed {seed}: group {index} is back"),
            Known::Open => assert!(found == if file { wanted.len() } else { 0 }, "seed {seed}: group {index} in parts"),
        }
        for (name, bytes) in wanted.iter().filter(|_| file) {
            assert!(there.iter().any(|object| object.name.as_str() == name && object.bytes == *bytes as u64));
            opened.check(&[name]).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        *known = if file { Known::Published } else { Known::Deleted };
    }
    let temporary = folder.files().into_keys().find(|name| name.ends_with(".tmp"));
    assert_eq!(temporary, None, "seed {seed}");
}

#[test]
fn acknowledged_groups_outlast_power_cuts_and_all_others_are_whole() {
    let (mut cut, mut whole) = (0, 0);
    for seed in seeds(120) {
        let mut rng = Rng::new(seed);
        let (mut folder, mut known) = (SimulatedFolder::new(), BTreeMap::new());
        for _ in 0..3 {
            let power_cut_at = Some(rng.below(90) as u64);
            folder.set_faults(SimulatedFaults { power_cut_at, ragged: rng.coin(), ..SimulatedFaults::default() });
            match work(&folder, &mut rng, &mut known) {
                Ok(()) => whole += 1,
                Err(_) => cut += 1,
            }
            folder = folder.after_power_cut(rng.word());
            check(&folder, &mut known, seed);
        }
    }
    assert!(cut > whole && whole > 0, "{cut} cut, {whole} whole");
}

/// All of them at a time, on threads whose steps mix in another way each time.
fn publish_all(folder: &SimulatedFolder, known: &mut BTreeMap<usize, Known>) -> Result<()> {
    let opened = Opened::simulated_with(folder, 4)?;
    let missing = (0..8).filter(|index| known.get(index) != Some(&Known::Published)).collect::<Vec<_>>();
    for &index in &missing {
        opened.begin_publishing(&format!("g{index}"), &borrowed(&objects(index)), index as u64)?;
        known.insert(index, Known::Open);
    }
    for _ in missing {
        let done = opened.answer();
        if done.result.is_ok() {
            known.insert(done.tag as usize, Known::Published);
        }
    }
    Ok(())
}

#[test]
fn what_several_threads_publish_at_a_time_outlasts_power_cuts_as_well() {
    let mut parts = 0;
    for seed in seeds(60) {
        let mut rng = Rng::new(seed);
        let (mut folder, mut known) = (SimulatedFolder::new(), BTreeMap::new());
        for _ in 0..3 {
            let power_cut_at = Some(5 + rng.below(90) as u64);
            folder.set_faults(SimulatedFaults { power_cut_at, ..SimulatedFaults::default() });
            // An error here is one of opening the directory.
            let _ = publish_all(&folder, &mut known);
            let published = known.values().filter(|known| **known == Known::Published).count();
            parts += usize::from(0 < published && published < 8);
            folder = folder.after_power_cut(rng.word());
            check(&folder, &mut known, seed);
        }
    }
    assert!(parts > 20, "{parts} runs published some of the groups and not all");
}

/// Calls of a publication and of a deletion.
fn calls_of(folder: &SimulatedFolder, opened: &Opened) -> [u64; 2] {
    folder.set_faults(SimulatedFaults::default());
    opened.publish("counted", &[("counted", 5000)]).unwrap();
    let published = folder.calls();
    opened.check(&["counted"]).unwrap();
    folder.set_faults(SimulatedFaults::default());
    opened.delete("counted").unwrap();
    [published, folder.calls()]
}

#[test]
fn scratch_objects_wait_for_no_sync_and_are_never_wrong_after_a_power_cut() {
    let (mut lost, mut told, mut right) = (0, 0, 0);
    for seed in seeds(60) {
        let durable = SimulatedFolder::new();
        let [publish, delete] = calls_of(&durable, &Opened::simulated(&durable).unwrap());
        let folder = SimulatedFolder::new();
        let options = StorageOptions { durability: Durability::Scratch, threads: 1, ..StorageOptions::default() };
        let opened = Opened::simulated_as(&folder, options).unwrap();
        assert_eq!(calls_of(&folder, &opened), [publish - 2, delete - 1], "a sync of the file, two of the folder");
        let wanted = objects(7);
        opened.publish("g7", &borrowed(&wanted)).unwrap();
        wanted.iter().for_each(|(name, _)| opened.check(&[name]).unwrap());
        drop(opened);
        let opened = Opened::simulated(&folder.after_power_cut(seed)).unwrap();
        for (name, _) in &wanted {
            match opened.storage.objects().iter().any(|object| object.name.as_str() == name) {
                true => match opened.check(&[name]) {
                    Ok(()) => right += 1,
                    Err(Error::Damaged { .. } | Error::Truncated { .. }) => told += 1,
                    Err(other) => panic!("seed {seed}: {other}"),
                },
                false if opened.storage.damaged().is_empty() => lost += 1,
                false => told += 1,
            }
        }
    }
    assert!(lost > 0 && told > 0 && right > 0, "{lost} lost, {told} told, {right} right");
}

/// What the checks above have to find: the simulation must punish each step that is left out.
#[test]
fn a_name_that_is_durable_before_its_data_would_be_found() {
    use sunzi::advanced::storage::{Access, Folder};
    let (mut lost, mut torn, mut fine) = (0, 0, 0);
    for seed in 0..40 {
        let folder = SimulatedFolder::new();
        let file = folder.create("a.tmp", Access::Cached).unwrap();
        file.write_at(&[7; 2000], 0).unwrap();
        folder.rename("a.tmp", "a").unwrap();
        match folder.after_power_cut(seed).files().get("a") {
            None => lost += 1,
            Some(data) if *data == [7; 2000] => fine += 1,
            Some(_) => torn += 1,
        }
        let folder = SimulatedFolder::new();
        let file = folder.create("a.tmp", Access::Cached).unwrap();
        file.write_at(&[7; 2000], 0).unwrap();
        file.sync().unwrap();
        folder.rename("a.tmp", "a").unwrap();
        folder.sync().unwrap();
        assert_eq!(folder.after_power_cut(seed).files()["a"], [7; 2000]);
    }
    assert!(lost > 0 && torn > 0 && fine > 0, "{lost} lost, {torn} torn, {fine} fine");
}
