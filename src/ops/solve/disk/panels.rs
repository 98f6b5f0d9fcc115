//! Solutions on their way to a file: panels of columns, each an object of a storage directory.

use crate::error::{Error, Result};
use crate::io::{Block, MatrixFileWriter};
use crate::matrix::Matrix;
use crate::ops::solve::memory::LEAST_COLUMNS;
use crate::storage::{
    AnsweredStorage, Caching, GroupName, Identity, NewObject, ObjectName, Priority, PublishRequest, Storage,
    padded_bytes,
};
use crate::store::IoBuffer;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A directory of panels, and how it is used.
#[derive(Clone, Copy)]
pub(super) struct PanelPlace<'a> {
    pub directory: &'a Path,
    pub identity: &'a Identity,
    pub caching: Caching,
}

/// Panels of a solution of `order` rows.
pub(super) struct Panels {
    objects: AnsweredStorage,
    order: usize,
    columns: usize,
    buffer_bytes: usize,
    /// What a panel is written from and read into.
    buffer: Option<IoBuffer>,
    /// Groups that were damaged and are to be made again.
    pub repaired: usize,
}

/// The name of a panel.
fn name(panel: usize) -> String {
    format!("columns-{panel}")
}

/// Bytes of the words of a panel.
fn panel_bytes(order: usize, precision_bits: u32) -> u64 {
    Matrix::bytes_for(order, LEAST_COLUMNS, precision_bits)
}

impl Panels {
    /// Opens the directory of a solution, without panels that are damaged.
    ///
    /// # Errors
    /// Those of [`Storage::open`].
    pub fn open(
        PanelPlace { directory, identity, caching }: PanelPlace<'_>,
        (order, columns): (usize, usize),
        precision_bits: u32,
    ) -> Result<Panels> {
        let (objects, repaired) = AnsweredStorage::open(directory, identity, caching)?;
        let buffer_bytes = padded_bytes(panel_bytes(order, precision_bits)) as usize;
        let buffer = Some(IoBuffer::new(buffer_bytes)?);
        Ok(Panels { objects, order, columns, buffer_bytes, buffer, repaired })
    }

    /// Bytes of memory that it takes beside what is in the directory.
    pub fn memory_bytes(order: usize, precision_bits: u32) -> u64 {
        IoBuffer::memory_bytes(padded_bytes(panel_bytes(order, precision_bits)))
    }

    /// The directory.
    pub fn storage(&self) -> &Storage {
        &self.objects.storage
    }

    /// How many there are in all.
    pub fn count(&self) -> usize {
        self.columns.div_ceil(LEAST_COLUMNS)
    }

    /// The columns of some panels.
    pub fn columns(&self, panels: &Range<usize>) -> Range<usize> {
        panels.start * LEAST_COLUMNS..(panels.end * LEAST_COLUMNS).min(self.columns)
    }

    /// Whether a panel is there.
    pub fn has(&self, panel: usize) -> bool {
        ObjectName::new(&name(panel)).is_ok_and(|name| self.objects.storage.object(&name).is_some())
    }

    /// Writes panels whose columns are those of `x`, one after the other.
    ///
    /// # Errors
    /// Those of [`Storage::publish`].
    pub fn publish(&mut self, panels: Range<usize>, x: &Matrix) -> Result<()> {
        let (heads, limbs) = x.parts();
        let width = x.limbs_per_element();
        let first = self.columns(&panels).start;
        for panel in panels {
            let cols = self.columns(&(panel..panel + 1));
            let entries = (cols.start - first) * self.order..(cols.end - first) * self.order;
            let mut buffer = self.buffer.take().expect("the last panel has left it");
            let (own_heads, rest) = buffer.words_mut().split_at_mut(entries.len());
            own_heads.copy_from_slice(&heads[entries.clone()]);
            rest[..entries.len() * width].copy_from_slice(&limbs[entries.start * width..entries.end * width]);
            let (buffer, bytes) = (Arc::new(buffer), 8 * (entries.len() * (1 + width)) as u64);
            let object = NewObject { name: ObjectName::new(&name(panel))?, buffer: buffer.clone(), start: 0, bytes };
            let (group, objects) = (GroupName::new(&name(panel))?, vec![object]);
            self.objects.storage.publish(PublishRequest { group, objects, tag: 0, priority: Priority::default() })?;
            let answer = self.objects.answers.wait_for(0);
            self.buffer = Arc::into_inner(buffer);
            answer.result?;
        }
        Ok(())
    }

    /// Reads a panel and writes it where it belongs; one that is damaged is deleted, and its error returned.
    ///
    /// # Errors
    /// Those of [`Storage::read`], and of writing.
    pub fn copy(&mut self, panel: usize, writer: &MatrixFileWriter<'_>) -> Result<()> {
        let (object, buffer) =
            (ObjectName::new(&name(panel))?, self.buffer.take().expect("the last panel has left it"));
        match self.objects.read_now(object, buffer, 0) {
            Ok(buffer) => self.buffer = Some(buffer),
            Err(error) => {
                self.buffer = Some(IoBuffer::new(self.buffer_bytes)?);
                if is_damage(&error) {
                    self.objects.discard(&name(panel))?;
                    self.repaired += 1;
                }
                return Err(error);
            }
        }
        let cols = self.columns(&(panel..panel + 1));
        let count = self.order * cols.len();
        let words = self.buffer.as_ref().expect("a read has a buffer").words();
        let (heads, rest) = words.split_at(count);
        writer.write_block(&Block { rows: 0..self.order, cols }, heads, rest)
    }
}

/// Whether an error says that an object is not what was published.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Damaged { .. } | Error::Truncated { .. })
}
