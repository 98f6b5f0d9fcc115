//! The objects of a directory, and their places.
//!
//! Pure bookkeeping: no files, no threads. An object is known from the moment when its group is on disk until the group
//! is to be deleted; its name is taken from the request to publish it until its file is gone.

use super::format::{GroupHeader, ObjectEntry};
use super::name::{GroupName, ObjectName};
use crate::error::{Error, Result};
use crate::plan::overhead;
use std::collections::{BTreeMap, HashMap};

/// An object in a group on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectInfo {
    /// Its name.
    pub name: ObjectName,
    /// Its length.
    pub bytes: u64,
    /// The group in which it was published.
    pub group: GroupName,
}

/// A group whose file cannot be used; after the group is deleted, its name can be used again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DamagedGroup {
    /// The name of the group, from the name of the file.
    pub group: GroupName,
    /// The defect of the file.
    pub reason: String,
}

/// The position of an object in its file.
#[derive(Clone, Debug)]
pub struct ObjectExtent {
    pub group: GroupName,
    pub offset: u64,
    pub bytes: u64,
    pub checksum: u64,
}

enum GroupState {
    Publishing,
    Published,
    Damaged(String),
    Deleting,
}

struct CatalogGroup {
    state: GroupState,
    objects: Vec<ObjectName>,
}

/// The amount of data in a directory, for a plan of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageContents {
    /// Groups.
    pub groups: u64,
    /// Number of objects in all groups.
    pub objects: u64,
    /// Bytes of all names, of groups and objects.
    pub name_bytes: u64,
}

impl StorageContents {
    /// Largest number of bytes of the catalog of all groups, including those for opening the directory.
    pub fn memory_bytes(&self) -> u64 {
        let names = self.name_bytes.saturating_mul(2);
        let places =
            self.objects.saturating_mul(overhead::OBJECT).saturating_add(self.groups.saturating_mul(overhead::GROUP));
        names.saturating_add(places)
    }
}

/// All groups and objects of a directory.
#[derive(Default)]
pub struct Catalog {
    groups: BTreeMap<GroupName, CatalogGroup>,
    places: HashMap<ObjectName, ObjectExtent>,
}

impl Catalog {
    /// Notes a group that was found on disk.
    pub fn add_found(&mut self, header: GroupHeader) {
        let twice = header.entries.iter().find_map(|entry| Some((&entry.name, &self.places.get(&entry.name)?.group)));
        if let Some((name, other)) = twice {
            let reason = format!("its object '{name}' is also in group '{other}'");
            return self.add_damaged(header.group, reason);
        }
        // A name that one header has twice is no longer free for the second one.
        match self.begin_publishing(header.group.clone(), &header.entries) {
            Ok(()) => self.published(&header.group, &header.entries),
            Err(wrong) => self.add_damaged(header.group, wrong.to_string()),
        }
    }

    /// Notes a group whose file cannot be used.
    pub fn add_damaged(&mut self, group: GroupName, reason: String) {
        self.groups.insert(group, CatalogGroup { state: GroupState::Damaged(reason), objects: Vec::new() });
    }

    /// Takes the names of a group and of its objects.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the first name that is not free; no name is taken then.
    pub fn begin_publishing(&mut self, group: GroupName, entries: &[ObjectEntry]) -> Result<()> {
        if let Some(known) = self.groups.get(&group) {
            let told = match known.state {
                GroupState::Damaged(_) => "is damaged and must be deleted first",
                GroupState::Deleting => "is being deleted",
                GroupState::Publishing | GroupState::Published => "exists already",
            };
            return Err(Error::InvalidArgument(format!("cannot publish group '{group}': it {told}")));
        }
        let mut objects = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Some(place) = self.places.get(&entry.name) {
                let told = format!("cannot publish object '{}': it is already in group '{}'", entry.name, place.group);
                self.free(&objects);
                return Err(Error::InvalidArgument(told));
            }
            let &ObjectEntry { offset, bytes, checksum, .. } = entry;
            self.places.insert(entry.name.clone(), ObjectExtent { group: group.clone(), offset, bytes, checksum });
            objects.push(entry.name.clone());
        }
        self.groups.insert(group, CatalogGroup { state: GroupState::Publishing, objects });
        Ok(())
    }

    /// The group is on disk, its objects with these checksums: they are known from now on.
    pub fn published(&mut self, group: &GroupName, entries: &[ObjectEntry]) {
        for entry in entries {
            if let Some(place) = self.places.get_mut(&entry.name) {
                place.checksum = entry.checksum;
            }
        }
        if let Some(known) = self.groups.get_mut(group) {
            known.state = GroupState::Published;
        }
    }

    /// The group is not, or no longer, on disk: its names are free.
    pub fn forget(&mut self, group: &GroupName) {
        if let Some(known) = self.groups.remove(group) {
            self.free(&known.objects);
        }
    }

    fn free(&mut self, objects: &[ObjectName]) {
        for name in objects {
            self.places.remove(name);
        }
    }

    /// From now on the objects of the group are unknown.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no such group.
    pub fn begin_deleting(&mut self, group: &GroupName) -> Result<()> {
        match self.groups.get_mut(group) {
            Some(known) if matches!(known.state, GroupState::Published | GroupState::Damaged(_)) => {
                known.state = GroupState::Deleting;
                Ok(())
            }
            _ => Err(Error::InvalidArgument(format!("cannot delete group '{group}': it does not exist"))),
        }
    }

    /// The position of an object, if it can be read.
    pub fn find(&self, name: &ObjectName) -> Option<&ObjectExtent> {
        self.places.get(name).filter(|place| self.is_published(&place.group))
    }

    fn is_published(&self, group: &GroupName) -> bool {
        self.groups.get(group).is_some_and(|known| matches!(known.state, GroupState::Published))
    }

    /// All objects that can be read, group by group, each group in the order of its file.
    pub fn objects(&self) -> Vec<ObjectInfo> {
        let published = self.groups.iter().filter(|(_, known)| matches!(known.state, GroupState::Published));
        published
            .flat_map(|(group, known)| known.objects.iter().map(move |name| (group, name)))
            .map(|(group, name)| ObjectInfo {
                name: name.clone(),
                bytes: self.places.get(name).map_or(0, |place| place.bytes),
                group: group.clone(),
            })
            .collect()
    }

    /// All groups that cannot be used.
    pub fn damaged(&self) -> Vec<DamagedGroup> {
        let damaged = self.groups.iter().filter_map(|(group, known)| match &known.state {
            GroupState::Damaged(reason) => Some(DamagedGroup { group: group.clone(), reason: reason.clone() }),
            _ => None,
        });
        damaged.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(group: &str, names: &[&str]) -> GroupHeader {
        let entry =
            |name: &&str| ObjectEntry { name: ObjectName::new(name).unwrap(), offset: 0, bytes: 9, checksum: 1 };
        GroupHeader::new(0, GroupName::new(group).unwrap(), names.iter().map(entry).collect())
    }

    fn known(catalog: &Catalog) -> Vec<String> {
        catalog.objects().into_iter().map(|object| format!("{}/{}", object.group, object.name)).collect()
    }

    #[test]
    fn objects_are_known_while_their_group_is_on_disk() {
        let mut catalog = Catalog::default();
        catalog.add_found(header("a", &["x", "y"]));
        let (b, one) = (header("b", &["z"]), GroupName::new("b").unwrap());
        catalog.begin_publishing(one.clone(), &b.entries).unwrap();
        assert!(catalog.find(&b.entries[0].name).is_none() && catalog.begin_deleting(&one).is_err());
        assert!(catalog.begin_publishing(one.clone(), &[]).is_err());
        catalog.published(&one, &b.entries);
        assert_eq!(known(&catalog), ["a/x", "a/y", "b/z"]);
        catalog.begin_deleting(&one).unwrap();
        assert_eq!(known(&catalog), ["a/x", "a/y"]);
        let taken = catalog.begin_publishing(GroupName::new("c").unwrap(), &b.entries).unwrap_err();
        assert!(taken.to_string().contains("it is already in group 'b'"), "{taken}");
        catalog.forget(&one);
        catalog.begin_publishing(GroupName::new("c").unwrap(), &b.entries).unwrap();
    }

    #[test]
    fn a_name_is_free_or_taken_as_a_whole_group() {
        let mut catalog = Catalog::default();
        catalog.add_found(header("a", &["x"]));
        catalog.add_found(header("b", &["y", "x"]));
        catalog.add_found(header("c", &["y", "y"]));
        let damaged = catalog.damaged().into_iter().map(|group| group.group.to_string()).collect::<Vec<_>>();
        assert_eq!((damaged, known(&catalog)), (vec!["b".to_string(), "c".to_string()], vec!["a/x".to_string()]));
        catalog.add_found(header("d", &["y"]));
        assert_eq!(known(&catalog), ["a/x", "d/y"]);
        catalog.begin_deleting(&GroupName::new("b").unwrap()).unwrap();
        assert_eq!(catalog.damaged().len(), 1);
    }
}
