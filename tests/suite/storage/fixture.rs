//! An open directory with its answers, and objects whose bytes follow from their names.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use sunzi::advanced::storage::{
    Caching, Completion, DeleteRequest, Folder, GroupName, Identity, NewObject, ObjectName, Priority, PublishRequest,
    ReadRequest, SimulatedFolder, Storage, StorageOptions, padded_bytes,
};
use sunzi::advanced::store::IoBuffer;
use sunzi::{Error, Result};

/// How long an answer may take before a test has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn identity() -> Identity {
    Identity::new("test").with("order", 12).with("precision_bits", 768)
}

pub fn object(name: &str) -> ObjectName {
    ObjectName::new(name).unwrap()
}

pub fn group(name: &str) -> GroupName {
    GroupName::new(name).unwrap()
}

/// The bytes of the object `name`.
pub fn contents(name: &str, bytes: usize) -> Vec<u8> {
    let mut state = name.bytes().fold(bytes as u64 + 1, |state, byte| state.wrapping_mul(31).wrapping_add(byte.into()));
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let words = std::iter::repeat_with(next).take(bytes.div_ceil(8)).collect::<Vec<_>>();
    words.as_flattened()[..bytes].to_vec()
}

/// Objects of one group in one buffer, each at the start of a block.
pub fn new_objects(objects: &[(&str, usize)]) -> Vec<NewObject> {
    let total = objects.iter().map(|object| padded_bytes(object.1 as u64)).sum::<u64>();
    let mut buffer = IoBuffer::new(total as usize).unwrap();
    let mut start = 0;
    for &(name, bytes) in objects {
        buffer.as_bytes_mut()[start..start + bytes].copy_from_slice(&contents(name, bytes));
        start += padded_bytes(bytes as u64) as usize;
    }
    let (buffer, mut start) = (Arc::new(buffer), 0);
    let place = |&(name, bytes): &(&str, usize)| {
        let new = NewObject { name: object(name), buffer: Arc::clone(&buffer), start, bytes: bytes as u64 };
        start += padded_bytes(bytes as u64) as usize;
        new
    };
    objects.iter().map(place).collect()
}

pub struct Opened {
    pub storage: Storage,
    pub completions: mpsc::Receiver<Completion>,
}

impl Opened {
    fn new(open: impl FnOnce(sunzi::advanced::storage::Deliver) -> Result<Storage>) -> Result<Opened> {
        let (sender, completions) = mpsc::channel();
        let storage = open(Box::new(move |completion| drop(sender.send(completion))))?;
        Ok(Opened { storage, completions })
    }

    pub fn on_disk(path: &Path, caching: Caching) -> Result<Opened> {
        Opened::with(path, StorageOptions { caching, ..StorageOptions::default() })
    }

    pub fn with(path: &Path, options: StorageOptions) -> Result<Opened> {
        Opened::new(|deliver| Storage::open(path, &identity(), options, deliver))
    }

    /// With one thread, so that calls come in the same order each time.
    pub fn simulated(folder: &SimulatedFolder) -> Result<Opened> {
        Opened::simulated_with(folder, 1)
    }

    pub fn simulated_with(folder: &SimulatedFolder, threads: usize) -> Result<Opened> {
        Opened::simulated_as(folder, StorageOptions { threads, ..StorageOptions::default() })
    }

    pub fn simulated_as(folder: &SimulatedFolder, options: StorageOptions) -> Result<Opened> {
        let folder: Arc<dyn Folder> = Arc::new(folder.clone());
        Opened::new(|deliver| Storage::open_in(folder, &identity(), options, deliver))
    }

    pub fn answer(&self) -> Completion {
        self.completions.recv_timeout(PATIENCE).expect("no answer")
    }

    pub fn begin_publishing(&self, name: &str, objects: &[(&str, usize)], tag: u64) -> Result<()> {
        let objects = new_objects(objects);
        self.storage.publish(PublishRequest { group: group(name), objects, tag, priority: Priority::InOrder })
    }

    /// Publishes a group and waits for the answer.
    pub fn publish(&self, name: &str, objects: &[(&str, usize)]) -> Result<()> {
        self.begin_publishing(name, objects, 1)?;
        self.answer().result
    }

    pub fn begin_reading(&self, names: &[&str], tag: u64) -> Result<()> {
        let objects = names.iter().map(|name| object(name)).collect::<Vec<_>>();
        let padded = |name| self.storage.object(name).map_or(0, |object| padded_bytes(object.bytes));
        let bytes = objects.iter().map(padded).sum::<u64>();
        let mut buffer = IoBuffer::new(bytes as usize)?;
        buffer.words_mut().fill(0x55aa_55aa_55aa_55aa);
        self.storage.read(ReadRequest { objects, buffer, tag, priority: Priority::InOrder })
    }

    /// Reads objects and compares them with what was published.
    pub fn check(&self, names: &[&str]) -> Result<()> {
        self.begin_reading(names, 2)?;
        let completion = self.answer();
        completion.result?;
        let buffer = completion.buffer.expect("a read gives its buffer back");
        let mut start = 0;
        for name in names {
            let bytes = self.storage.object(&object(name)).unwrap().bytes as usize;
            assert!(buffer.as_bytes()[start..start + bytes] == contents(name, bytes), "{name} is wrong");
            start += padded_bytes(bytes as u64) as usize;
        }
        Ok(())
    }

    pub fn delete(&self, name: &str) -> Result<()> {
        self.storage.delete(DeleteRequest { group: group(name), tag: 3 })?;
        self.answer().result
    }

    /// Names of all objects that can be read.
    pub fn names(&self) -> Vec<String> {
        self.storage.objects().into_iter().map(|object| object.name.to_string()).collect()
    }
}

/// The error of what should have failed, in words and by its exit code.
pub fn told<T>(result: Result<T>) -> (String, u8) {
    let error: Error = result.err().expect("it should have failed");
    (error.to_string(), error.exit_code())
}
