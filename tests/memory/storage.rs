//! An open directory of stored objects takes no more memory than it says, and not a fraction of it.

use crate::{alone, rise};
use std::sync::Arc;
use std::sync::mpsc;
use sunzi::advanced::storage::{
    Caching, GroupName, Identity, NewObject, ObjectName, PublishRequest, ReadRequest, Storage, StorageContents,
    StorageOptions,
};
use sunzi::advanced::store::IoBuffer;

#[test]
fn a_directory_takes_what_it_says() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d");
    let options = StorageOptions { caching: Caching::Cached, threads: 4, ..StorageOptions::default() };
    let open = || {
        let (sender, completions) = mpsc::channel();
        let deliver = Box::new(move |completion| drop(sender.send(completion)));
        (Storage::open(&path, &Identity::new("test"), options, deliver).unwrap(), completions)
    };
    let mut contents = StorageContents::default();
    let (storage, completions) = open();
    let buffer = Arc::new(IoBuffer::new(4096).unwrap());
    let (peak, ()) = rise(|| {
        // Each group waits for the disk.
        for group in 0..60 {
            let group = GroupName::new(&format!("strip-{group}")).unwrap();
            let name = |index: usize| ObjectName::new(&format!("tile {index} of {group}, a factor")).unwrap();
            let new = |index| NewObject { name: name(index), buffer: Arc::clone(&buffer), start: 0, bytes: 8 };
            let objects = (0..16).map(new).collect::<Vec<_>>();
            contents.groups += 1;
            contents.objects += 16;
            contents.name_bytes += objects.iter().map(|object| object.name.as_str().len() as u64).sum::<u64>();
            contents.name_bytes += group.as_str().len() as u64;
            storage.publish(PublishRequest { group, objects, tag: 0, priority: Default::default() }).unwrap();
            assert!(completions.recv().unwrap().result.is_ok());
        }
    });
    drop(storage);
    let planned = options.memory_bytes(&contents);
    let (reopened, (storage, completions)) = rise(open);
    assert_eq!(storage.report().calls, options.calls);
    for (what, bytes) in [("publishing", peak), ("opening", reopened)] {
        assert!(bytes <= planned && bytes >= planned / 8, "{what} took {bytes} of {planned} bytes");
    }
    let objects = vec![ObjectName::new("tile 3 of strip-7, a factor").unwrap()];
    let buffer = IoBuffer::new(4096).unwrap();
    let (reading, ()) = rise(|| {
        storage.read(ReadRequest { objects, buffer, tag: 0, priority: Default::default() }).unwrap();
        assert!(completions.recv().unwrap().result.is_ok());
    });
    assert!(reading < 64 << 10, "{reading}");
}
