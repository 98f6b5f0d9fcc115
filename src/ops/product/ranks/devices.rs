//! Products on ranks whose contexts have devices: each rank multiplies its own rows on its own devices, and the owner
//! of an entry adds up the residues of all ranks for it, reconstructs it and rounds it once, on its device.
//!
//! Sums of residues are exact, so the order of the ranks cannot change a bit. Ranks may have devices of different kinds
//! and in any number; their moduli are the same.

use crate::comm::{Reduction, agree, local};
use crate::context::{Context, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::math::float::limbs_for;
use crate::matrix::{MatrixView, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::shared_devices::with_shared_devices;
use crate::ops::product::clock::PhaseClock;
use crate::ops::product::combine::Epilogue;
use crate::ops::product::device::{DevicePlan, DeviceReport, DeviceRequest, DeviceRun, Owners};
use crate::ops::product::plan::{Plan, TeamPlan};
use crate::ops::product::problem::{Bits, Hooks, OperandRows, ProductSize};
use crate::ops::product::sink::ResultTarget;
use crate::plan::overhead;
use crate::plan::{DeviceCut, PlanBytes, even_share};
use crate::site::{NodeLayout, Site};
use crate::tile::TileMap;

/// Number of parts in which a rank exchanges its entries, one after the other, so that the residues held meanwhile take
/// less memory than its result.
const EXCHANGES: usize = 16;

/// Least number of entries that are exchanged together, where there are as many.
const LEAST_EXCHANGED: usize = 1 << 12;

/// The largest number of entries of a copy: tried in this order, until the rank's share of its node's memory suffices.
const COPY_ENTRIES: [usize; 4] = [usize::MAX, 1 << 14, 1 << 11, 1 << 8];

/// A product of which each rank has some rows.
pub(super) struct RankProduct<'a> {
    pub left: OperandRows<'a>,
    /// `None` for SYRK.
    pub right: Option<OperandRows<'a>>,
    pub size: ProductSize,
    /// Bit counts of the product.
    pub bits: Bits,
    /// Tiles of the result.
    pub map: TileMap,
    /// The last steps on the product.
    pub epilogue: Epilogue<'a>,
    /// Changes that tests make.
    pub hooks: Hooks<'a>,
}

/// The numbers from which the memory of a product on devices of ranks follows.
#[derive(Clone, Copy)]
pub(super) struct DeviceShape {
    pub size: ProductSize,
    pub bits: Bits,
    pub map: TileMap,
    /// Whether the result is the product itself.
    pub plain: bool,
    pub input_limbs: usize,
    /// Threads of a rank, where they make Freivalds' test.
    pub check_threads: Option<usize>,
    /// A cut that a test prescribes.
    pub cut: Option<DeviceCut>,
}

/// A product planned on the devices of ranks.
pub(super) struct DeviceRankPlan {
    request: DeviceRequest,
    devices: DevicePlan,
    /// The plan as users see it.
    pub plan: Plan,
}

impl DeviceShape {
    /// The request of a rank with `contracted` rows to its devices.
    pub fn request(&self, contracted: usize, ranks: usize, most_entries: usize) -> DeviceRequest {
        let largest = (0..ranks).map(|rank| self.map.entries_of(rank)).max().unwrap_or(0);
        DeviceRequest {
            size: ProductSize { contracted, ..self.size },
            upper: self.map.triangle == Some(Uplo::Upper),
            plain: self.plain,
            input_limbs: self.input_limbs,
            bits: self.bits,
            cut: self.cut,
            exchanged: largest.div_ceil(EXCHANGES).max(LEAST_EXCHANGED).min(largest.max(1)),
            most_entries,
        }
    }

    /// Host bytes of a rank: its tiles of the result, buffers of copies, sums and messages, the shifts.
    pub fn bytes(&self, rank: usize, layout: &NodeLayout, devices: &DevicePlan) -> PlanBytes {
        PlanBytes {
            result: DistMatrix::bytes_for(&self.map, rank, self.bits.result),
            scratch: devices.pinned_bytes(),
            lists: overhead::RANK
                + layout.node_of.len() as u64 * overhead::DEVICE_PEER
                + devices.exchange_bytes(&self.map, layout)
                + devices.list_bytes(self.check_threads)
                // Sums of Freivalds' test on their way to all ranks.
                + self.check_threads.map_or(0, |_| 2 * 8 * self.size.rows as u64),
            ..PlanBytes::default()
        }
    }

    /// The plan that users read, of `planned_bytes` on the node that takes most, `bytes` of them on this rank.
    pub fn describe(
        &self,
        devices: &DevicePlan,
        bytes: PlanBytes,
        planned_bytes: u64,
        threads: usize,
        team: TeamPlan,
    ) -> Plan {
        Plan {
            planned_bytes,
            team: Some(TeamPlan {
                grid: (self.map.grid.rows, self.map.grid.cols),
                tile_size: self.map.tile_size,
                exchange_parts: 1,
                ..team
            }),
            ..Plan::on_devices(self.size.operation(), &self.size, &self.bits, devices, threads, bytes)
        }
    }
}

/// The plan of a product whose contracted rows are shared out evenly over the ranks of `nodes`, each with devices like
/// those of the context: the bytes are those of rank `own_rank`. No rank waits for another.
///
/// # Errors
/// [`Error::MemoryLimit`] names the least bytes of a node that would do, [`Error::DeviceLimit`].
pub(super) fn plan_ahead(ctx: &Context, layout: &NodeLayout, own_rank: usize, shape: &DeviceShape) -> Result<Plan> {
    let ctx = &with_shared_devices(ctx, local::alone())?;
    let ranks = layout.node_of.len();
    let rows = |rank: usize| even_share(shape.size.contracted, ranks, rank).len();
    let limit_bytes = ctx.memory_bytes().unwrap_or(u64::MAX);
    let (mut fit, mut minimum_bytes) = (None, u64::MAX);
    for most_entries in COPY_ENTRIES {
        let [most, least] = [0, ranks - 1].map(|rank| shape.request(rows(rank), ranks, most_entries));
        let plans = [DevicePlan::among(ctx, &[most, least])?, DevicePlan::among(ctx, &[least, most])?];
        let each = [0, 1].map(|plan| shape.bytes(own_rank, layout, &plans[plan]));
        // Shares of rows have two sizes, and ranks differ in their tiles.
        let plan_of = |rank: usize| usize::from(rows(rank) != most.size.contracted);
        let bytes_of = |&rank: &usize| {
            let result = DistMatrix::bytes_for(&shape.map, rank, shape.bits.result);
            PlanBytes { result, ..each[plan_of(rank)] }
        };
        let of_node = |node: &Vec<usize>| node.iter().map(|rank| bytes_of(rank).total()).sum::<u64>();
        let planned_bytes = layout.nodes.iter().map(of_node).max().unwrap_or(0);
        minimum_bytes = minimum_bytes.min(planned_bytes);
        let [first, second] = plans;
        let devices = if plan_of(own_rank) == 0 { first } else { second };
        fit = Some((devices, bytes_of(&own_rank), planned_bytes));
        if planned_bytes <= limit_bytes {
            break;
        }
    }
    let (devices, bytes, planned_bytes) = fit.expect("a plan was made");
    if planned_bytes > limit_bytes {
        return Err(Error::MemoryLimit { limit_bytes, minimum_bytes });
    }
    let sends = (0..ranks).map(|rank| rows(rank) > 0).collect::<Vec<_>>();
    let messages = devices.message_words(&shape.map, ranks);
    let sent_by = |&rank: &usize| Owners { rank, layout, map: &shape.map, sends: &sends }.sent_bytes(&messages);
    let of_nodes = layout.nodes.iter().map(|node| node.iter().map(sent_by).sum::<u64>());
    let sent_bytes = of_nodes.max().unwrap_or(0);
    let team = TeamPlan { nodes: layout.nodes.len(), ranks, sent_bytes, ..TeamPlan::default() };
    Ok(shape.describe(&devices, bytes, planned_bytes, ctx.threads() * ranks, team))
}

impl RankProduct<'_> {
    /// Contracted rows of this rank.
    fn own_rows(&self) -> usize {
        self.left.blocks.iter().map(MatrixView::rows).sum()
    }

    fn shape(&self, ctx: &Context) -> DeviceShape {
        let blocks = self.left.blocks.iter().chain(self.right.iter().flat_map(|right| right.blocks));
        let widths = blocks.map(MatrixView::limbs_per_element);
        DeviceShape {
            size: self.size,
            bits: self.bits,
            map: self.map,
            plain: self.epilogue.is_plain(),
            input_limbs: widths.max().unwrap_or(limbs_for(self.bits.result)),
            check_threads: ctx.freivalds().then(|| ctx.threads()),
            cut: self.hooks.device_cut,
        }
    }

    /// The plan of the product on ranks with `threads` threads together; `sends` marks the ranks that have rows.
    /// Collective.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] where a node needs more than the `node_bytes` that it may take, [`Error::DeviceLimit`];
    /// on all ranks.
    pub fn plan(&self, site: Site<'_>, sends: &[bool], node_bytes: u64, threads: usize) -> Result<DeviceRankPlan> {
        let Site { ctx, team } = site;
        let (world, layout, shape) = (team.world(), team.layout(), self.shape(ctx));
        let (mut fit, mut minimum_bytes) = (None, u64::MAX);
        for most_entries in COPY_ENTRIES {
            let request = shape.request(self.own_rows(), world.size(), most_entries);
            let devices = DevicePlan::new(site, &request, None)?;
            let bytes = shape.bytes(world.rank(), layout, &devices);
            let mut node = [bytes.total()];
            team.node().all_reduce(Reduction::Sum, &mut node)?;
            let mut refused = [u64::from(node[0] > node_bytes)];
            world.all_reduce(Reduction::Max, &mut refused)?;
            minimum_bytes = minimum_bytes.min(node[0]);
            fit = Some((request, devices, bytes, node[0]));
            if refused[0] == 0 {
                break;
            }
        }
        let (request, devices, bytes, own_node) = fit.expect("a plan was made");
        let refusal = Error::MemoryLimit { limit_bytes: node_bytes, minimum_bytes };
        agree(world, if own_node <= node_bytes { Ok(()) } else { Err(refusal) })?;
        let owners = Owners { rank: world.rank(), layout, map: &self.map, sends };
        let mut sent = [owners.sent_bytes(&devices.message_words(&self.map, world.size()))];
        team.node().all_reduce(Reduction::Sum, &mut sent)?;
        let mut most = [own_node, sent[0]];
        world.all_reduce(Reduction::Max, &mut most)?;
        let [planned_bytes, sent_bytes] = most;
        let (nodes, ranks) = (layout.nodes.len(), world.size());
        let team = TeamPlan { nodes, ranks, sent_bytes, ..TeamPlan::default() };
        let plan = shape.describe(&devices, bytes, planned_bytes, threads, team);
        Ok(DeviceRankPlan { request, devices, plan })
    }

    /// Fills this rank's tiles of the result; returns the reports of its devices. Collective.
    ///
    /// # Errors
    /// The errors of [`crate::syrk_with`] on devices, on all ranks.
    pub fn compute(
        &self,
        site: Site<'_>,
        sends: &[bool],
        planned: DeviceRankPlan,
        clock: &mut PhaseClock,
        result: &mut DistMatrix,
    ) -> Result<Vec<DeviceReport>> {
        let (ctx, DeviceRankPlan { request, devices, plan }) = (site.ctx, planned);
        let needs = WorkspaceNeeds { planned_bytes: plan.planned_bytes, ..WorkspaceNeeds::default() };
        ctx.workspace().trim(ctx.memory(), &needs);
        let map = *result.map();
        let layout = site.team.layout();
        let owners = Some(Owners { rank: site.team.rank(), layout, map: &map, sends });
        let RankProduct { left, right, epilogue, .. } = *self;
        let run = DeviceRun { site, left, right, epilogue, request, owners };
        Ok(run.run(devices, ResultTarget::Tiles(result), clock)?.1)
    }
}
