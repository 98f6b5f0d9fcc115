//! `Team`: the ranks that compute together, their nodes, and the memory that they keep between calls.

use crate::comm::window::{SharedWindow, WindowKind, room};
use crate::comm::{PlannedRank, Reduction, Transport, agree, local};
use crate::error::{Error, Result};
use crate::options::setters;
use crate::store::available_bytes;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Options of a [`Team`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TeamOptions {
    /// Treats each group of this many ranks of a machine as a node, for tests of many nodes on one machine;
    /// `None` makes a node of each machine.
    pub ranks_per_node: Option<usize>,
    /// The source of the memory that ranks share.
    pub window: WindowKind,
}

setters! { new TeamOptions { ranks_per_node: impl Into<Option<usize>>, window: WindowKind } }

impl TeamOptions {
    /// The default options, with the ranks per node of the environment variable `SUNZI_RANKS_PER_NODE` if it is set.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the variable is not a count of at least 1.
    pub fn from_environment() -> Result<TeamOptions> {
        let ranks_per_node = match std::env::var("SUNZI_RANKS_PER_NODE") {
            Err(_) => None,
            Ok(text) => match text.trim().parse::<usize>() {
                Ok(count) if count > 0 => Some(count),
                _ => {
                    let message = format!("SUNZI_RANKS_PER_NODE is '{text}': it must be a count of at least 1");
                    return Err(Error::InvalidArgument(message));
                }
            },
        };
        Ok(TeamOptions { ranks_per_node, ..TeamOptions::default() })
    }
}

/// The nodes of the ranks; the same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLayout {
    /// The ranks of each node, in ascending order; nodes are in the order of their first ranks.
    pub nodes: Vec<Vec<usize>>,
    /// The node of each rank.
    pub node_of: Vec<usize>,
    /// The index of each rank within its node.
    pub local_of: Vec<usize>,
}

impl NodeLayout {
    /// The layout of ranks on machines: `machine_of` has a number for each rank, equal for ranks of one machine, and a
    /// node has at most `ranks_per_node` ranks.
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
            Err(Error::Rank { rank: number, exit_code, message, own }) if local < self.node_of.len() => {
                let ranks = &self.nodes[self.node_of[rank]];
                Err(Error::Rank { rank: ranks.get(number).copied().unwrap_or(number), exit_code, message, own })
            }
            other => other,
        }
    }
}

/// The ranks that compute together, as seen by one of them.
///
/// Every method and every operation that takes a team is collective: all ranks call it, in the same order. Windows,
/// groups of ranks and their layout are kept between calls. [`Team::close`] releases the windows.
pub struct Team {
    world: Box<dyn Transport>,
    node: Box<dyn Transport>,
    layout: NodeLayout,
    /// Nodes that share this rank's machine; more than one if nodes are emulated.
    nodes_on_machine: usize,
    window: WindowKind,
    /// Windows of products.
    windows: Mutex<Option<Windows>>,
    /// Windows that factors and solves keep between calls without a memory limit.
    tile_windows: Mutex<Option<[SharedWindow; 2]>>,
    /// Bytes that the machine has free, where it reports them.
    pub(crate) machine_bytes: fn() -> Option<u64>,
}

/// The shared memory of a node.
pub(crate) struct Windows {
    /// Residues of the operands.
    pub operands: SharedWindow,
    /// Residues of the product.
    pub products: SharedWindow,
}

impl Team {
    /// The team of one process.
    pub(crate) fn one_process() -> &'static Team {
        static ALONE: LazyLock<Team> = LazyLock::new(|| {
            let rank = || Box::new(local::group(1).remove(0));
            Team {
                world: rank(),
                node: rank(),
                layout: NodeLayout::new(&[0], None),
                nodes_on_machine: 1,
                window: WindowKind::Heap,
                windows: Mutex::default(),
                tile_windows: Mutex::default(),
                machine_bytes: available_bytes,
            }
        });
        &ALONE
    }

    /// The team of all ranks of `world`. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`]; [`Error::InvalidArgument`] if ranks pass different options.
    pub fn new(world: Box<dyn Transport>, options: TeamOptions) -> Result<Team> {
        let (rank, size) = (world.rank(), world.size());
        let mut facts = vec![0; 3 * size];
        let own = [world.machine()?, options.ranks_per_node.unwrap_or(0), options.window as usize];
        world.all_gather(&own.map(|number| number as u64), &mut facts)?;
        let facts = facts.chunks_exact(3).map(|of| [of[0], of[1], of[2]]).collect::<Vec<_>>();
        if let Some(other) = facts.iter().position(|of| of[1..] != facts[0][1..]) {
            let message = format!("ranks 0 and {other} pass different numbers of ranks per node or kinds of windows");
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
            windows: Mutex::default(),
            tile_windows: Mutex::default(),
            machine_bytes: available_bytes,
        })
    }

    /// The team of a planned rank, on nodes of `ranks_per_node` ranks that have as much memory as a plan takes.
    ///
    /// # Errors
    /// As [`Team::new`].
    pub(crate) fn planned(rank: PlannedRank, ranks_per_node: usize) -> Result<Team> {
        let options = TeamOptions { ranks_per_node: Some(ranks_per_node), window: WindowKind::Heap };
        Ok(Team { machine_bytes: || None, ..Team::new(Box::new(rank), options)? })
    }

    /// The number of this rank, counted from 0.
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

    /// The nodes of the ranks.
    pub fn layout(&self) -> &NodeLayout {
        &self.layout
    }

    /// Ranks of this rank's node, which share its memory limit.
    pub(crate) fn ranks_here(&self) -> u64 {
        self.layout.nodes[self.layout.node_of[self.rank()]].len() as u64
    }

    /// Bytes that a node may take: the least of the limits of its ranks, or else its share of the machine's free memory
    /// plus that of all kept windows, since a call that has no room next to them releases them ([`Team::make_room`]).
    /// The same on all ranks of a node. Collective over the node.
    pub(crate) fn node_bytes(&self, limit_bytes: Option<u64>) -> Result<u64> {
        let mut least = [limit_bytes.unwrap_or_else(|| self.free_bytes(self.window_bytes()))];
        self.node.all_reduce(Reduction::Min, &mut least)?;
        Ok(least[0])
    }

    /// This node's share of the machine's free memory, plus `held_bytes` that the node holds.
    fn free_bytes(&self, held_bytes: u64) -> u64 {
        // Windows that are not on the heap live in a file system of their own, which may be smaller.
        let is_shared = self.node.size() > 1 && self.window != WindowKind::Heap;
        let shared = is_shared.then(|| room::free_bytes(self.window)).flatten();
        let available = [(self.machine_bytes)(), shared].into_iter().flatten().min();
        available.map_or(u64::MAX, |bytes| (bytes / self.nodes_on_machine as u64).saturating_add(held_bytes))
    }

    /// Releases the windows that factors and solves have kept where a call that takes `planned_bytes` of its node has
    /// no room next to them, and under a limit, where plans do not count kept windows. Collective over the node, whose
    /// ranks pass the same arguments.
    pub(crate) fn make_room(&self, planned_bytes: u64, limited: bool) -> Result<()> {
        if self.tile_window_bytes() == 0 {
            return Ok(());
        }
        let mut free = [self.free_bytes(self.product_window_bytes())];
        self.node.all_reduce(Reduction::Min, &mut free)?;
        if limited || planned_bytes > free[0] { self.close_tile_windows() } else { Ok(()) }
    }

    /// Whether a rank has a memory limit; if so, all kept windows are released on all ranks: plans under a limit do not
    /// count kept windows. Collective.
    pub(crate) fn drop_windows_if_limited(&self, limit_bytes: Option<u64>) -> Result<bool> {
        let mut any_limit = [u64::from(limit_bytes.is_some())];
        self.world.all_reduce(Reduction::Max, &mut any_limit)?;
        if any_limit[0] > 0 {
            self.release()?;
        }
        Ok(any_limit[0] > 0)
    }

    /// Two windows of at least `words` words: the kept ones where they are large enough. The first one is for entries,
    /// the second one for tiles. An error is the same on all ranks of the node, and leaves no window kept. Collective
    /// over the node.
    pub(crate) fn take_tile_windows(&self, words: [usize; 2]) -> Result<[SharedWindow; 2]> {
        let mut kept = self.kept_windows().map_or([None, None], |kept| kept.map(Some));
        // Windows that are too small are closed before any is opened.
        let mut closed = Ok(());
        for (window, words) in kept.iter_mut().zip(words) {
            let small = window.take_if(|window| window.len() < words);
            closed = closed.and(small.map_or(Ok(()), SharedWindow::close));
        }
        // All ranks open the next windows, or none does.
        if let Err(error) = agree(&*self.node, closed) {
            return close_some(kept).and(Err(error));
        }
        let holds = kept.iter().flatten().any(|window| !window.is_empty());
        match self.open_tile_windows(words, kept) {
            // The kept windows have been released, so that there is more room.
            Err(_) if holds => self.open_tile_windows(words, [None, None]),
            opened => opened,
        }
    }

    /// Opens the missing windows. After an error none is open.
    fn open_tile_windows(&self, words: [usize; 2], kept: [Option<SharedWindow>; 2]) -> Result<[SharedWindow; 2]> {
        let [first, second] = kept;
        let open = |window: Option<SharedWindow>, words: usize| {
            window.map_or_else(|| SharedWindow::open(&*self.node, self.window, words), Ok)
        };
        let first = match open(first, words[0]) {
            Ok(first) => first,
            Err(error) => return close_some([second, None]).and(Err(error)),
        };
        match open(second, words[1]) {
            Ok(second) => Ok([first, second]),
            Err(error) => first.close().and(Err(error)),
        }
    }

    /// Keeps such windows for the next call. The same on all ranks of the node.
    pub(crate) fn keep_tile_windows(&self, windows: [SharedWindow; 2]) {
        *self.tile_windows.lock().unwrap_or_else(PoisonError::into_inner) = Some(windows);
    }

    /// Bytes that windows of tiles may have together: [`Team::take_tile_windows`] releases kept windows where it must.
    /// Not the same on all ranks.
    pub(crate) fn tile_window_room(&self) -> u64 {
        self.free_bytes(self.tile_window_bytes())
    }

    fn kept_windows(&self) -> Option<[SharedWindow; 2]> {
        self.tile_windows.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Bytes of the windows kept on this node.
    pub fn window_bytes(&self) -> u64 {
        self.tile_window_bytes() + self.product_window_bytes()
    }

    fn lock_windows(&self) -> MutexGuard<'_, Option<Windows>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn product_window_bytes(&self) -> u64 {
        self.lock_windows().as_ref().map_or(0, |windows| windows.operands.bytes() + windows.products.bytes())
    }

    fn tile_window_bytes(&self) -> u64 {
        let kept = self.tile_windows.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map_or(0, |kept| kept.iter().map(SharedWindow::bytes).sum())
    }

    /// The source of the memory of products' windows: `heap`, `mpi`, `posix`, or `none` before the first product.
    /// Factors and solves use the same source.
    pub fn window_kind(&self) -> &'static str {
        self.lock_windows().as_ref().map_or("none", |windows| windows.products.kind())
    }

    /// An outcome of this rank's node with the number of a rank of the node as that of the team.
    pub(crate) fn in_world(&self, outcome: Result<()>) -> Result<()> {
        self.layout.in_world(self.rank(), self.node.size(), outcome)
    }

    /// Windows of these words for a product: the kept ones where they are large enough, with `exact` only those of this
    /// very size. [`Team::keep_windows`] takes them back. Collective over the node.
    pub(crate) fn take_windows(&self, operand_words: usize, product_words: usize, exact: bool) -> Result<Windows> {
        let [operand_bytes, product_bytes] = [operand_words, product_words].map(SharedWindow::bytes_for);
        let fits = |held: u64, needed: u64| if exact { held == needed } else { held >= needed };
        let kept = self.lock_windows().take_if(|windows| {
            fits(windows.operands.bytes(), operand_bytes) && fits(windows.products.bytes(), product_bytes)
        });
        // Nodes differ in their operands, so that some may keep what others must open: each node decides separately.
        if let Some(windows) = kept {
            return Ok(windows);
        }
        let closed = self.close_product_windows();
        agree(&*self.node, closed)?;
        match self.open_product_windows(operand_words, product_words) {
            Err(_) if self.tile_window_bytes() > 0 => {
                agree(&*self.node, self.close_tile_windows())?;
                self.open_product_windows(operand_words, product_words)
            }
            opened => opened,
        }
    }

    /// Keeps the windows of a product for the next one. The same on all ranks of the node.
    pub(crate) fn keep_windows(&self, windows: Windows) {
        *self.lock_windows() = Some(windows);
    }

    fn open_product_windows(&self, operand_words: usize, product_words: usize) -> Result<Windows> {
        let operands = SharedWindow::open(&*self.node, self.window, operand_words)?;
        match SharedWindow::open(&*self.node, self.window, product_words) {
            Ok(products) => Ok(Windows { operands, products }),
            Err(error) => operands.close().and(Err(error)),
        }
    }

    /// Releases all windows that earlier calls have kept ([`Team::window_bytes`] on this node); calls under a memory
    /// limit do so automatically. Calls without a team, such as [`crate::distributed::DistMatrix::redistribute`] and
    /// factorisations of doubles in memory, cannot release them. Collective.
    ///
    /// Cost: one agreement of all ranks; the next call opens its windows anew, and the system clears their pages at
    /// some gigabytes per second. Source: docs/decisions/083-finished-tiles-in-a-window.md.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn release(&self) -> Result<()> {
        agree(&*self.world, self.close_tile_windows().and(self.close_product_windows()))
    }

    /// Releases the windows that a product has kept. Collective over the node.
    pub(crate) fn close_product_windows(&self) -> Result<()> {
        let kept = self.lock_windows().take();
        match kept {
            Some(Windows { operands, products }) => operands.close().and(products.close()),
            None => Ok(()),
        }
    }

    /// Releases the windows that a factor or a solve has kept. Collective over the node.
    pub(crate) fn close_tile_windows(&self) -> Result<()> {
        self.kept_windows().map_or(Ok(()), close_all)
    }

    /// Releases the windows. Collective. If a team is dropped without this call, MPI's windows exist until the end of
    /// the program.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn close(self) -> Result<()> {
        let (tiles, products) = (self.close_tile_windows(), self.close_product_windows());
        let closed = tiles.and(products);
        agree(&*self.world, closed)
    }
}

/// Releases the windows that are there. Collective over their node.
fn close_some(windows: [Option<SharedWindow>; 2]) -> Result<()> {
    let [first, second] = windows.map(|window| window.map_or(Ok(()), SharedWindow::close));
    first.and(second)
}

/// Releases two windows. Collective over their node.
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

    /// Runs `check` on two ranks of a node, whose team keeps a window of `words` words for tiles.
    fn with_kept(words: usize, check: impl Fn(&mut Team) + Sync) {
        local::run(2, |rank| {
            let options = TeamOptions::new().window(WindowKind::Heap);
            let mut team = Team::new(rank.split(0).unwrap(), options).unwrap();
            team.machine_bytes = || Some(1 << 20);
            let kept = team.take_tile_windows([0, words]).unwrap();
            team.keep_tile_windows(kept);
            check(&mut team);
            team.close().unwrap();
        });
    }

    #[test]
    fn plans_count_what_factors_keep_and_give_it_back_where_they_need_it() {
        let kept = 8 << 15;
        with_kept(1 << 15, |team| {
            assert_eq!((team.window_bytes(), team.node_bytes(None).unwrap()), (kept, (1 << 20) + kept));
            assert_eq!((team.node_bytes(Some(9)).unwrap(), team.tile_window_room()), (9, (1 << 20) + kept));
            team.make_room(1 << 20, false).unwrap();
            let windows = team.take_windows(512, 1024, false).unwrap();
            team.keep_windows(windows);
            assert_eq!(team.window_bytes(), kept + 3 * 4096, "nothing needs it");
            team.make_room((1 << 20) + 3 * 4096 + 1, false).unwrap();
            assert_eq!(team.window_bytes(), 3 * 4096, "a byte more");
        });
        with_kept(1 << 15, |team| {
            team.make_room(0, true).unwrap();
            assert_eq!(team.window_bytes(), 0, "a limit");
        });
        with_kept(1 << 15, |team| {
            let windows = team.take_windows(512, 1024, false).unwrap();
            team.keep_windows(windows);
            let kept = kept + 3 * 4096;
            assert!(!team.drop_windows_if_limited(None).unwrap() && team.window_bytes() == kept);
            let limit = (team.rank() == 1).then_some(1 << 30);
            assert!(team.drop_windows_if_limited(limit).unwrap() && team.window_bytes() == 0, "the limit of one rank");
        });
    }

    #[test]
    fn a_product_has_the_room_of_an_idle_window() {
        use crate::ops::distributed::{DistOptions, syrk};
        with_kept(1 << 22, |team| {
            team.machine_bytes = || Some(0);
            let ctx = crate::Context::builder().threads(1).build().unwrap();
            let block = crate::Matrix::zeros(20, 16, 100).unwrap();
            syrk(&ctx, team, &[block.view()], 100, &DistOptions::default()).unwrap();
            assert!(team.tile_window_bytes() == 0 && team.window_bytes() > 0);
        });
    }

    #[test]
    fn kept_windows_are_taken_again_and_small_ones_replaced() {
        with_kept(1 << 10, |team| {
            let [entries, tiles] = team.take_tile_windows([512, 1 << 10]).unwrap();
            assert_eq!((entries.bytes(), tiles.bytes(), team.window_bytes()), (4096, 8 << 10, 0));
            team.keep_tile_windows([entries, tiles]);
            let windows = team.take_tile_windows([1, 1 << 11]).unwrap();
            assert_eq!(windows.each_ref().map(SharedWindow::bytes), [4096, 16 << 10]);
            close_all(windows).unwrap();
        });
    }
}
