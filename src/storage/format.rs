//! The file of a group: a header, then the bytes of each object, each padded to whole blocks.
//!
//! Little endian: magic (8 bytes), version, count of objects (4 each), bytes of the header, bytes of the file,
//! checksum of the directory's identity (8 each); length (4) and text of the group's name; for each object offset,
//! bytes and XXH3-64 of the bytes (8 each), length (4) and text of the name; zeros; the last 8 bytes of the header are
//! the XXH3-64 of all before them. Independent of: files.

use super::name::{GroupName, ObjectName};
use crate::store::IoBuffer;
use xxhash_rust::xxh3::xxh3_64;

/// The first bytes of a group's file.
const MAGIC: [u8; 8] = *b"SUNZIGRP";

/// Version of this format.
const VERSION: u32 = 1;

/// Bytes before the names.
const FIXED_BYTES: usize = 40;

/// Bytes of the checksum at the end of the header.
const CHECKSUM_BYTES: usize = 8;

/// The largest number of bytes of a header that are taken for possible.
const MAXIMUM_HEADER_BYTES: u64 = 1 << 30;

/// Bytes that an object of `bytes` bytes takes in a file and in a buffer: whole blocks of [`IoBuffer::ALIGNMENT`].
///
/// Objects that are read together are stored in the buffer one after another, each at the start of a block.
pub fn padded_bytes(bytes: u64) -> u64 {
    let alignment = IoBuffer::ALIGNMENT as u64;
    bytes.div_ceil(alignment).saturating_mul(alignment)
}

/// An object as the header has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectEntry {
    pub name: ObjectName,
    pub offset: u64,
    pub bytes: u64,
    pub checksum: u64,
}

/// The header before the objects of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupHeader {
    pub identity: u64,
    pub group: GroupName,
    pub entries: Vec<ObjectEntry>,
}

impl GroupHeader {
    /// The header of a group whose entries lie one after another behind it; their offsets are set here.
    pub fn new(identity: u64, group: GroupName, entries: Vec<ObjectEntry>) -> GroupHeader {
        let mut header = GroupHeader { identity, group, entries };
        let mut offset = header.bytes();
        for entry in &mut header.entries {
            entry.offset = offset;
            offset = offset.saturating_add(padded_bytes(entry.bytes));
        }
        header
    }

    /// Bytes of the header: whole blocks.
    pub fn bytes(&self) -> u64 {
        let names = self.entries.iter().map(|entry| 28 + entry.name.as_str().len()).sum::<usize>();
        padded_bytes((FIXED_BYTES + 4 + self.group.as_str().len() + names + CHECKSUM_BYTES) as u64)
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        let objects = self.entries.iter().map(|entry| padded_bytes(entry.bytes));
        objects.fold(self.bytes(), u64::saturating_add)
    }

    /// Writes the header over `block`, of [`GroupHeader::bytes`].
    pub fn encode(&self, block: &mut [u8]) {
        let mut bytes = Vec::with_capacity(block.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((self.entries.len() as u32).to_le_bytes());
        for number in [self.bytes(), self.file_bytes(), self.identity] {
            bytes.extend(number.to_le_bytes());
        }
        let text = |text: &str, bytes: &mut Vec<u8>| {
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.as_bytes());
        };
        text(self.group.as_str(), &mut bytes);
        for entry in &self.entries {
            for number in [entry.offset, entry.bytes, entry.checksum] {
                bytes.extend(number.to_le_bytes());
            }
            text(entry.name.as_str(), &mut bytes);
        }
        bytes.resize(block.len() - CHECKSUM_BYTES, 0);
        let checksum = xxh3_64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        block.copy_from_slice(&bytes);
    }

    /// Bytes of a header that begins with the block `first`.
    ///
    /// # Errors
    /// In words, why it is not valid.
    pub fn bytes_of(first: &[u8]) -> Result<u64, String> {
        let mut fields = Fields(first);
        if fields.take(8)? != MAGIC {
            return Err("it is not a file of a group of stored objects".to_string());
        }
        match fields.number_32()? {
            VERSION => {}
            version => return Err(format!("its version is {version} instead of {VERSION}")),
        }
        fields.number_32()?;
        match fields.number()? {
            bytes if bytes == padded_bytes(bytes) && (1..=MAXIMUM_HEADER_BYTES).contains(&bytes) => Ok(bytes),
            bytes => Err(format!("its header states an impossible length of {bytes} bytes")),
        }
    }

    /// The header whose bytes are all of `block`, of a file of `file_bytes` bytes.
    ///
    /// # Errors
    /// A description of the damage.
    pub fn decode(block: &[u8], file_bytes: u64) -> Result<GroupHeader, String> {
        let split = block.len().checked_sub(CHECKSUM_BYTES).ok_or("it is too short")?;
        let (body, expected) = block.split_at(split);
        let (expected, found) = (Fields(expected).number()?, xxh3_64(body));
        if expected != found {
            return Err(format!("the checksum of its header is {found:016x} instead of {expected:016x}"));
        }
        let mut fields = Fields(body);
        fields.take(12)?;
        let count = fields.number_32()?;
        fields.take(8)?;
        let (written_bytes, identity) = (fields.number()?, fields.number()?);
        let group = GroupName::new(fields.text()?).map_err(|wrong| wrong.to_string())?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let (offset, bytes, checksum) = (fields.number()?, fields.number()?, fields.number()?);
            let name = ObjectName::new(fields.text()?).map_err(|wrong| wrong.to_string())?;
            entries.push(ObjectEntry { name, offset, bytes, checksum });
        }
        let header = GroupHeader { identity, group, entries };
        let in_order = GroupHeader::new(identity, header.group.clone(), header.entries.clone());
        if header != in_order || written_bytes != header.file_bytes() || block.len() as u64 != header.bytes() {
            return Err("the offsets in its header do not fit its objects".to_string());
        }
        if file_bytes != written_bytes {
            return Err(format!("it has {file_bytes} bytes instead of {written_bytes}"));
        }
        Ok(header)
    }
}

/// The unread rest of a header.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or("its header ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, String> {
        Ok(self.take(8)?.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn number_32(&mut self) -> Result<u32, String> {
        Ok(self.take(4)?.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }

    fn text(&mut self) -> Result<&'a str, String> {
        let bytes = self.number_32()? as usize;
        std::str::from_utf8(self.take(bytes)?).map_err(|_| "a name in its header is not text".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(count: u64) -> GroupHeader {
        let name = |index: u64| ObjectName::new(&format!("tile {index} of a matrix, {}", "x".repeat(40))).unwrap();
        let entry = |index| ObjectEntry { name: name(index), offset: 0, bytes: 3000 * index, checksum: index << 40 };
        GroupHeader::new(77, GroupName::new("strip-3").unwrap(), (0..count).map(entry).collect())
    }

    fn encoded(header: &GroupHeader) -> Vec<u8> {
        let mut block = vec![1; header.bytes() as usize];
        header.encode(&mut block);
        block
    }

    #[test]
    fn headers_come_back_as_they_were() {
        for (count, blocks) in [(0, 1), (1, 1), (16, 1), (100, 3)] {
            let header = header(count);
            let block = encoded(&header);
            assert_eq!((block.len(), GroupHeader::bytes_of(&block[..4096])), (blocks * 4096, Ok(block.len() as u64)));
            assert_eq!(GroupHeader::decode(&block, header.file_bytes()).unwrap(), header);
        }
        let header = header(3);
        assert_eq!(header.entries.iter().map(|entry| entry.offset).collect::<Vec<_>>(), [4096, 4096, 8192]);
        assert_eq!(header.file_bytes(), 4 * 4096);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let header = header(4);
        let block = encoded(&header);
        for bit in 0..8 * 300 {
            let mut damaged = block.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let told = GroupHeader::bytes_of(&damaged).and_then(|_| GroupHeader::decode(&damaged, header.file_bytes()));
            assert!(told.is_err(), "bit {bit}");
        }
        for bytes in [0, 7, 100, 4095] {
            assert!(GroupHeader::decode(&block[..bytes], header.file_bytes()).is_err(), "{bytes}");
        }
        assert!(GroupHeader::bytes_of(&block[..19]).is_err());
        let told = GroupHeader::decode(&block, header.file_bytes() - 1).unwrap_err();
        assert!(told.contains("28671 bytes instead of 28672"), "{told}");
    }
}
