//! `Team`: the ranks that compute together, how they lie on nodes, and what they keep between calls.

use crate::comm::window::{SharedWindow, WindowKind};
use crate::comm::{Reduction, Transport, agree, local};
use crate::error::{Error, Result};
use crate::options::setters;
use crate::store::{available_bytes, shared_memory_bytes};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Choices of a [`Team`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TeamOptions {
    /// Treats every so many ranks of a machine as a node of their own, for tests of many nodes on one machine;
    /// `None` makes a node of each machine.
    pub ranks_per_node: Option<usize>,
    /// Where the memory that ranks share comes from.
    pub window: WindowKind,
}

setters! { new TeamOptions { ranks_per_node: impl Into<Option<usize>>, window: WindowKind } }

impl TeamOptions {
    /// The default, but with as many ranks per node as `SUNZI_RANKS_PER_NODE` says where it is set.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the variable is no count from 1 on.
    pub fn from_environment() -> Result<TeamOptions> {
        let ranks_per_node = match std::env::var("SUNZI_RANKS_PER_NODE") {
            Err(_) => None,
            Ok(text) => match text.trim().parse::<usize>() {
                Ok(count) if count > 0 => Some(count),
                _ => {
                    let message = format!("SUNZI_RANKS_PER_NODE is '{text}': it must be a count from 1 on");
                    return Err(Error::InvalidArgument(message));
                }
            },
        };
        Ok(TeamOptions { ranks_per_node, ..TeamOptions::default() })
    }
}

/// Which ranks lie on which node; the same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLayout {
    /// The ranks of each node, in ascending order; nodes are in the order of their first ranks.
    pub nodes: Vec<Vec<usize>>,
    /// The node of each rank.
    pub node_of: Vec<usize>,
    /// The place of each rank within its node.
    pub local_of: Vec<usize>,
}

impl NodeLayout {
    /// The layout of ranks on machines, given by a number for each rank, with at most `ranks_per_node` ranks a node.
    pub fn new(machine_of: &[usize], ranks_per_node: Option<usize>) -> NodeLayout {
        let mut nodes: Vec<(usize, Vec<usize>)> = Vec::new();
        let most = ranks_per_node.unwrap_or(usize::MAX).max(1);
        for (rank, &machine) in machine_of.iter().enumerate() {
            let open = nodes.iter_mut().find(|(of, ranks)| *of == machine && ranks.len() < most);
            match open {
                Some((_, ranks)) => ranks.push(rank),
                None => nodes.push((machine, vec![rank])),
            }
        }
        let (mut node_of, mut local_of) = (vec![0; machine_of.len()], vec![0; machine_of.len()]);
        for (node, (_, ranks)) in nodes.iter().enumerate() {
            for (local, &rank) in ranks.iter().enumerate() {
                (node_of[rank], local_of[rank]) = (node, local);
            }
        }
        NodeLayout { nodes: nodes.into_iter().map(|(_, ranks)| ranks).collect(), node_of, local_of }
    }
}

impl NodeLayout {
    /// An outcome of the node of `rank`, on which `local` ranks agreed, with the number of a rank of the node as that
    /// of the team.
    pub(crate) fn in_world(&self, rank: usize, local: usize, outcome: Result<()>) -> Result<()> {
        match outcome {
            Err(Error::Rank { rank: number, exit_code, message }) if local < self.node_of.len() => {
                let ranks = &self.nodes[self.node_of[rank]];
                Err(Error::Rank { rank: ranks.get(number).copied().unwrap_or(number), exit_code, message })
            }
            other => other,
        }
    }
}

/// The ranks that take part in an operation, seen from one of them.
#[derive(Clone, Copy)]
pub(crate) struct Ranks<'a> {
    /// All of them.
    pub world: &'a dyn Transport,
    /// Those of this rank's node.
    pub node: &'a dyn Transport,
    /// Which of them lie on which node.
    pub layout: &'a NodeLayout,
}

impl Ranks<'_> {
    /// One process by itself.
    pub fn alone() -> Ranks<'static> {
        static LAYOUT: LazyLock<NodeLayout> = LazyLock::new(|| NodeLayout::new(&[0], None));
        Ranks { world: local::alone(), node: local::alone(), layout: &LAYOUT }
    }

    /// An outcome of this rank's node with the number of a rank of the node as that among all ranks.
    pub fn in_world(&self, outcome: Result<()>) -> Result<()> {
        self.layout.in_world(self.world.rank(), self.node.size(), outcome)
    }
}

/// The ranks that compute together, seen from one of them.
///
/// Every method and every operation that takes a team is collective: all ranks call it, in the same order. Windows,
/// groups of ranks and their layout are kept between calls. [`Team::close`] gives the windows back.
pub struct Team {
    world: Box<dyn Transport>,
    node: Box<dyn Transport>,
    layout: NodeLayout,
    /// Nodes that share this rank's machine; more than one where nodes are emulated.
    nodes_on_machine: usize,
    window: WindowKind,
    windows: Option<Windows>,
    /// What factors and solves kept of their windows, between calls without a memory limit.
    tile_windows: Mutex<Option<[SharedWindow; 2]>>,
}

/// The shared memory of a node.
pub(crate) struct Windows {
    /// Residues of the operands.
    pub operands: SharedWindow,
    /// Residues of the product.
    pub products: SharedWindow,
}

impl Team {
    /// The team of all ranks of `world`. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`]; [`Error::InvalidArgument`] where ranks pass different options.
    pub fn new(world: Box<dyn Transport>, options: TeamOptions) -> Result<Team> {
        let (rank, size) = (world.rank(), world.size());
        let mut facts = vec![0; 3 * size];
        let own = [world.machine()?, options.ranks_per_node.unwrap_or(0), options.window as usize];
        world.all_gather(&own.map(|number| number as u64), &mut facts)?;
        let facts = facts.chunks_exact(3).map(|of| [of[0], of[1], of[2]]).collect::<Vec<_>>();
        if let Some(other) = facts.iter().position(|of| of[1..] != facts[0][1..]) {
            let message = format!("ranks 0 and {other} ask for different nodes or windows");
            return Err(Error::InvalidArgument(message));
        }
        let machine_of = facts.iter().map(|of| of[0] as usize).collect::<Vec<_>>();
        let layout = NodeLayout::new(&machine_of, options.ranks_per_node);
        let same_machine = |ranks: &&Vec<usize>| machine_of[ranks[0]] == machine_of[rank];
        let nodes_on_machine = layout.nodes.iter().filter(same_machine).count();
        let node = world.split(layout.node_of[rank])?;
        Ok(Team {
            world,
            node,
            layout,
            nodes_on_machine,
            window: options.window,
            windows: None,
            tile_windows: Mutex::default(),
        })
    }

    /// This rank, from 0.
    pub fn rank(&self) -> usize {
        self.world.rank()
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.world.size()
    }

    /// All ranks.
    pub fn world(&self) -> &dyn Transport {
        &*self.world
    }

    /// The ranks of this rank's node.
    pub fn node(&self) -> &dyn Transport {
        &*self.node
    }

    /// Which ranks lie on which node.
    pub fn layout(&self) -> &NodeLayout {
        &self.layout
    }

    /// Ranks of this rank's node, which share its memory limit.
    pub(crate) fn ranks_here(&self) -> u64 {
        self.layout.nodes[self.layout.node_of[self.rank()]].len() as u64
    }

    /// Bytes that a node may take: the least of the limits of its ranks, else its share of what the machine has free,
    /// with what the windows of products hold. The same on all ranks of a node. Collective over the node.
    pub(crate) fn node_bytes(&self, limit_bytes: Option<u64>) -> Result<u64> {
        let held = self.product_window_bytes();
        // Windows that are not on the heap live in a file system of their own, which may be smaller.
        let shared = if self.node.size() > 1 && self.window != WindowKind::Heap { shared_memory_bytes() } else { None };
        let available = [available_bytes(), shared].into_iter().flatten().min();
        let share = || available.map(|bytes| bytes / self.nodes_on_machine as u64 + held);
        let bytes = limit_bytes.or_else(share).unwrap_or(u64::MAX);
        let mut least = [bytes];
        self.node.all_reduce(Reduction::Min, &mut least)?;
        Ok(least[0])
    }

    /// Two windows of so many words at least: those that are kept, where they do. The first one is for entries, the
    /// second one for tiles. Collective over the node.
    pub(crate) fn take_tile_windows(&self, words: [usize; 2]) -> Result<[SharedWindow; 2]> {
        let [first, second] = self.kept_windows().map_or([None, None], |kept| kept.map(Some));
        // What is too small goes before anything is opened.
        let large = |window: Option<SharedWindow>, words: usize| match window {
            Some(window) if window.len() < words => window.close().map(|()| None),
            window => Ok(window),
        };
        let (first, second) = (large(first, words[0]), large(second, words[1]));
        let open = |window: Option<SharedWindow>, words: usize| {
            window.map_or_else(|| SharedWindow::open(&*self.node, self.window, words), Ok)
        };
        match (first, second) {
            (Ok(first), Ok(second)) => {
                let first = open(first, words[0]);
                match (first, open(second, words[1])) {
                    (Ok(first), Ok(second)) => Ok([first, second]),
                    (Ok(window), Err(error)) | (Err(error), Ok(window)) => window.close().and(Err(error)),
                    (Err(error), Err(_)) => Err(error),
                }
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    /// Keeps such windows for the next call. The same on all ranks of the node.
    pub(crate) fn keep_tile_windows(&self, windows: [SharedWindow; 2]) {
        *self.tile_windows.lock().unwrap_or_else(PoisonError::into_inner) = Some(windows);
    }

    /// Bytes that a window may have: what there is room for in the file system where windows lie, for this node with
    /// what it keeps.
    pub(crate) fn window_room(&self) -> u64 {
        let shared = if self.node.size() > 1 && self.window != WindowKind::Heap { shared_memory_bytes() } else { None };
        let share = |bytes: u64| (bytes / self.nodes_on_machine as u64).saturating_add(self.tile_window_bytes());
        shared.map_or(u64::MAX, share)
    }

    fn kept_windows(&self) -> Option<[SharedWindow; 2]> {
        self.tile_windows.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Bytes of the windows kept on this node.
    pub fn window_bytes(&self) -> u64 {
        self.tile_window_bytes() + self.product_window_bytes()
    }

    fn product_window_bytes(&self) -> u64 {
        self.windows.as_ref().map_or(0, |windows| windows.operands.bytes() + windows.products.bytes())
    }

    fn tile_window_bytes(&self) -> u64 {
        let kept = self.tile_windows.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map_or(0, |kept| kept.iter().map(SharedWindow::bytes).sum())
    }

    /// Where the windows' memory comes from: `heap`, `mpi`, `posix`, or `none` before the first call.
    pub fn window_kind(&self) -> &'static str {
        self.windows.as_ref().map_or("none", |windows| windows.products.kind())
    }

    /// An outcome of this rank's node with the number of a rank of the node as that of the team.
    pub(crate) fn in_world(&self, outcome: Result<()>) -> Result<()> {
        self.layout.in_world(self.rank(), self.node.size(), outcome)
    }

    /// Windows of so many words, the kept ones where they do. Collective.
    ///
    /// With `exact`, larger ones are given back first, and those of factors and solves.
    pub(crate) fn open_windows(&mut self, words: (usize, usize), exact: bool) -> Result<()> {
        if exact {
            self.close_tile_windows()?; // no limit counts on what earlier calls have kept
        }
        let bytes = (SharedWindow::bytes_for(words.0), SharedWindow::bytes_for(words.1));
        let fits = |held: u64, needed: u64| if exact { held == needed } else { held >= needed };
        let kept = self
            .windows
            .as_ref()
            .is_some_and(|windows| fits(windows.operands.bytes(), bytes.0) && fits(windows.products.bytes(), bytes.1));
        // Nodes differ in their operands, so that some may keep what others must open: each node decides alone.
        if kept {
            return Ok(());
        }
        self.close_windows()?;
        let operands = SharedWindow::open(&*self.node, self.window, words.0)?;
        let products = match SharedWindow::open(&*self.node, self.window, words.1) {
            Ok(products) => products,
            Err(error) => {
                operands.close()?;
                return Err(error);
            }
        };
        self.windows = Some(Windows { operands, products });
        Ok(())
    }

    /// All ranks, those of this node, and the layout.
    pub(crate) fn ranks(&self) -> Ranks<'_> {
        Ranks { world: &*self.world, node: &*self.node, layout: &self.layout }
    }

    /// The ranks, and the node's windows, which are open.
    pub(crate) fn parts(&mut self) -> (Ranks<'_>, &mut Windows) {
        let windows = self.windows.as_mut().expect("opened before");
        (Ranks { world: &*self.world, node: &*self.node, layout: &self.layout }, windows)
    }

    fn close_windows(&mut self) -> Result<()> {
        self.close_tile_windows()?;
        match self.windows.take() {
            Some(Windows { operands, products }) => operands.close().and(products.close()),
            None => Ok(()),
        }
    }

    /// Gives back what a factor or a solve has kept. Collective over the node.
    pub(crate) fn close_tile_windows(&self) -> Result<()> {
        self.kept_windows().map_or(Ok(()), close_all)
    }

    /// Gives the windows back. Collective. A team that is dropped without leaves MPI's windows to the end of the
    /// program.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn close(mut self) -> Result<()> {
        let closed = self.close_windows();
        agree(&*self.world, closed)
    }
}

/// Gives two windows back. Collective over their node.
pub(crate) fn close_all(windows: [SharedWindow; 2]) -> Result<()> {
    let [first, second] = windows.map(SharedWindow::close);
    first.and(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_grouped_by_machine_in_any_placement() {
        let layout = NodeLayout::new(&[5, 9, 5, 9, 5], None);
        assert_eq!(layout.nodes, [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!((layout.node_of, layout.local_of), (vec![0, 1, 0, 1, 0], vec![0, 0, 1, 1, 2]));
        let layout = NodeLayout::new(&[5, 9, 5, 9, 5], Some(2));
        assert_eq!(layout.nodes, [vec![0, 2], vec![1, 3], vec![4]]);
    }
}
