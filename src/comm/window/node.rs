//! The window of a node as its ranks use it: shared by several, or the own memory of a single rank.

use crate::comm::Fence;
use crate::comm::window::{Beside, Partition, SharedWindow, Shares, TwoParts};
use crate::error::Result;

/// A window in the phases of an operation.
///
/// A single rank on its node needs no agreement: its phases have no fence, and a phase with an error ends at once.
pub enum NodeWindow<'w> {
    /// Memory of the only rank.
    Alone(&'w mut [u64]),
    /// Memory that the ranks of the node share.
    Shared(&'w mut SharedWindow),
}

impl NodeWindow<'_> {
    /// As [`SharedWindow::read`].
    ///
    /// # Errors
    /// As [`SharedWindow::read`].
    pub fn read(&mut self, fence: &Fence<'_>, outcome: Result<()>) -> Result<&[u64]> {
        match self {
            NodeWindow::Alone(words) => outcome.map(|()| &**words),
            NodeWindow::Shared(window) => window.read(fence, outcome),
        }
    }

    /// As [`SharedWindow::write`].
    ///
    /// # Errors
    /// As [`SharedWindow::write`].
    pub fn write<'w>(
        &'w mut self,
        fence: &Fence<'_>,
        outcome: Result<()>,
        partition: &'w Partition,
    ) -> Result<Shares<'w>> {
        match self {
            NodeWindow::Alone(words) => outcome.map(|()| Shares::alone(words, partition)),
            NodeWindow::Shared(window) => window.write(fence, outcome, partition),
        }
    }

    /// As [`SharedWindow::write_from`]; both windows are shared, or both belong to a single rank.
    ///
    /// # Errors
    /// As [`SharedWindow::write_from`].
    pub fn write_from<'w>(
        &'w mut self,
        source: &'w mut NodeWindow<'_>,
        fence: &Fence<'_>,
        outcome: Result<()>,
        partition: &'w Partition,
    ) -> Result<(&'w [u64], Shares<'w>)> {
        match (self, source) {
            (NodeWindow::Shared(window), NodeWindow::Shared(source)) => {
                window.write_from(source, fence, outcome, partition)
            }
            (window, source) => {
                let words = source.read(fence, outcome)?;
                Ok((words, window.write(fence, Ok(()), partition)?))
            }
        }
    }

    /// As [`SharedWindow::write_beside`].
    ///
    /// # Errors
    /// As [`SharedWindow::write_beside`].
    ///
    /// # Panics
    /// If the window belongs to a single rank, which has no other rank to exchange words with.
    pub fn write_beside<'w>(
        &'w mut self,
        source: &'w mut NodeWindow<'_>,
        fence: &Fence<'_>,
        outcome: Result<()>,
        parts: (&'w Partition, Beside<'w>),
    ) -> Result<TwoParts<'w>> {
        match (self, source) {
            (NodeWindow::Shared(window), NodeWindow::Shared(source)) => {
                window.write_beside(source, fence, outcome, parts)
            }
            _ => panic!("a rank by itself exchanges words with nobody"),
        }
    }
}
