//! `Context`: the options of a caller (threads, memory, kernel, checks, progress) and the data kept between calls.
//!
//! Depends on: the thread pool, the engines (moduli and tables) and the windows of earlier calls. Independent of:
//! operations. Calls on one context may overlap, but only one of them uses the kept windows; the memory limit holds for
//! each call separately.

mod budget;
mod builder;
mod cache;
mod devices;
mod pool;
mod workspace;

pub(crate) use budget::MemoryBudget;
pub use builder::ContextBuilder;
pub use devices::DeviceSet;
pub use workspace::{WorkerSpace, Workspace, WorkspaceNeeds};

pub(crate) use crate::context::cache::KEPT_ENGINES;
use crate::context::cache::KeyedCache;
use crate::context::pool::WorkerPool;
use crate::device::MemoryShare;
use crate::error::{Error, Result};
use crate::kernels::tiles::TileEngine;
use crate::kernels::{self, EngineSpec, Multipliers, PlaneEngine, PlaneKernel};
use crate::math::bound::cholesky_modulus_bits;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The progress of a call, passed to a progress callback.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The current phase, such as `scale`, `product`, `factor`, `solve`, `read`, `write`.
    pub phase: &'static str,
    /// Units of work done in the whole call, out of `total`.
    pub done: u64,
    /// Units of work of the whole call.
    pub total: u64,
    /// The progress of the disk, in out-of-core calls.
    pub disk: Option<DiskProgress>,
}

/// The progress of the disk so far, in this call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DiskProgress {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes of objects that tasks read while the objects were still in memory.
    pub reused_bytes: u64,
    /// Age of the oldest request to the disk that has no answer yet.
    pub waiting: Option<Duration>,
}

impl Progress {
    /// Reports that `done` units of `total` are done.
    pub fn new(phase: &'static str, done: u64, total: u64) -> Progress {
        Progress { phase, done, total, disk: None }
    }
}

/// A progress callback: returns `false` to cancel the call, which then ends with [`Error::Cancelled`].
pub type ProgressCallback = dyn Fn(Progress) -> bool + Send + Sync;

/// Choices and kept state for all operations: threads, memory limit, kernel, devices, checks, caches.
///
/// A second call of the same shape and precision allocates only its result. A clone is cheap: threads, tables and kept
/// memory are shared with the original. Dropping the last clone waits until the threads have ended.
#[derive(Clone)]
pub struct Context {
    threads: usize,
    memory: MemoryBudget,
    /// Whether the memory is limited, here or in the context from which this one was cloned without its limit.
    under_limit: bool,
    kernel: Option<&'static dyn PlaneKernel>,
    /// The multiplier units that the choice of a kernel assumes; `None` for the units of this CPU.
    multipliers: Option<Multipliers>,
    devices: Arc<DeviceSet>,
    self_check: bool,
    freivalds: bool,
    progress: Option<Arc<ProgressCallback>>,
    pool: Option<Arc<WorkerPool>>,
    kept: Arc<ContextCache>,
}

/// The data that calls keep for later ones.
#[derive(Default)]
struct ContextCache {
    tables: Arc<Tables>,
    workspace: Mutex<Workspace>,
}

/// The engines of earlier calls, with their tables.
#[derive(Default)]
struct Tables {
    /// By kernel.
    engines: KeyedCache<(&'static str, bool, EngineSpec), Arc<dyn PlaneEngine>>,
    /// Cached by the properties for which they are made.
    tile_engines: KeyedCache<TileEngineKey, Arc<dyn TileEngine>>,
    /// The engines for few rows, which have no tables, by kernel and working bits.
    small_tile_engines: KeyedCache<(&'static str, u32), Arc<dyn TileEngine>>,
}

/// Kernel, working bits and shares of devices.
type TileEngineKey = (&'static str, u32, Arc<[MemoryShare]>);

/// The workspace of a context for the time of one call; dropping it returns the memory for the next call.
pub struct WorkspaceLease<'a> {
    home: &'a Mutex<Workspace>,
    workspace: Workspace,
}

impl Deref for WorkspaceLease<'_> {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl DerefMut for WorkspaceLease<'_> {
    fn deref_mut(&mut self) -> &mut Workspace {
        &mut self.workspace
    }
}

impl Drop for WorkspaceLease<'_> {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = std::mem::take(&mut self.workspace);
    }
}

impl Context {
    /// A context with all defaults.
    ///
    /// # Errors
    /// [`Error::Threads`] where the threads cannot be started.
    pub fn new() -> Result<Context> {
        Context::builder().build()
    }

    /// A builder.
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// Number of worker threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The memory limit in bytes, if there is one.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.memory.limit_bytes()
    }

    /// The memory limit, and the bytes held of it outside the operation.
    pub(crate) fn memory(&self) -> MemoryBudget {
        self.memory
    }

    /// A clone under another memory limit.
    ///
    /// Callers use it to reserve a part of the limit during one call, for example for copies of operands.
    pub fn with_memory_bytes(&self, memory_bytes: Option<u64>) -> Context {
        self.with_memory(self.memory.within(memory_bytes))
    }

    /// Whether less memory is preferred to less time: under a limit, also in plans that consider a part of a call
    /// without it.
    pub(crate) fn under_limit(&self) -> bool {
        self.under_limit
    }

    /// Runs a step for which a plan reserved `planned_bytes` of the limit, held bytes included: within them where they
    /// are enough, since a step that needs fewer bits than planned would otherwise take more memory for wider bands;
    /// else within the limit.
    ///
    /// # Errors
    /// The errors of the step.
    pub(crate) fn within_plan<R>(&self, planned_bytes: u64, mut step: impl FnMut(&Context) -> Result<R>) -> Result<R> {
        match self.memory_bytes() {
            Some(limit_bytes) if planned_bytes < limit_bytes => {
                match step(&self.with_memory_bytes(Some(planned_bytes))) {
                    Err(Error::MemoryLimit { .. }) => step(self),
                    other => other,
                }
            }
            _ => step(self),
        }
    }

    /// A clone for operations inside one that itself holds `bytes` bytes of the limit.
    pub(crate) fn holding(&self, bytes: u64) -> Context {
        self.with_memory(self.memory.holding(bytes))
    }

    /// A clone with another budget.
    pub(crate) fn with_memory(&self, memory: MemoryBudget) -> Context {
        let under_limit = self.under_limit || memory.limit_bytes().is_some();
        Context { memory, under_limit, ..self.clone() }
    }

    /// `count` contexts of one thread, for workers of this context that call whole operations. They have the same
    /// choices and tables, their own workspaces, no memory limit and no devices; the first one has the workspace of
    /// this context.
    pub(crate) fn workers(&self, count: usize) -> impl Iterator<Item = Context> {
        // With devices the tile engines in the tables are theirs.
        let shares = self.devices.is_empty();
        let first = Some(self.alone(Arc::clone(&self.kept))).filter(|_| shares);
        let tables = if shares { Arc::clone(&self.kept.tables) } else { Arc::default() };
        let other =
            move |_| self.alone(Arc::new(ContextCache { tables: Arc::clone(&tables), workspace: Mutex::default() }));
        first.into_iter().chain((0..).map(other)).take(count)
    }

    /// A clone on the same threads with its own cache: tables of plans that are never run are dropped with it. The
    /// clone has the same memory limit.
    #[must_use]
    pub fn without_cache(&self) -> Context {
        Context { kept: Arc::default(), ..self.clone() }
    }

    /// A context of one thread, without devices and limit, with its own cache, for plans that are never run.
    #[must_use]
    pub fn apart(&self) -> Context {
        self.alone(Arc::default())
    }

    fn alone(&self, kept: Arc<ContextCache>) -> Context {
        let devices = Arc::new(DeviceSet::new(Vec::new(), None));
        Context { threads: 1, memory: MemoryBudget::default(), devices, pool: None, kept, ..self.clone() }
    }

    /// Whether there is a progress callback.
    pub(crate) fn is_watched(&self) -> bool {
        self.progress.is_some()
    }

    /// Checks that a call of `bytes` bytes fits the memory limit, in addition to the part of the limit that is reserved
    /// outside the call.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`].
    pub fn admit(&self, bytes: u64) -> Result<()> {
        self.memory.admit(bytes).map(drop)
    }

    /// The kernel that the caller has selected by name, if any.
    pub fn forced_kernel(&self) -> Option<&'static dyn PlaneKernel> {
        self.kernel
    }

    /// The kernel that calls run on: the one that the caller has selected by name, else the fastest available. If none
    /// is selected, large calls may run on another kernel that is faster for them, and calls that need more bits than
    /// the moduli of this kernel provide run on one with more; reports name the kernel used.
    pub fn kernel(&self) -> &'static dyn PlaneKernel {
        self.kernel.unwrap_or_else(kernels::preferred)
    }

    /// The multipliers that the choice of a kernel for a large product assumes.
    pub(crate) fn multipliers(&self) -> Multipliers {
        self.multipliers.unwrap_or_else(kernels::multipliers)
    }

    /// A clone whose kernels are chosen as on a processor with these.
    #[cfg(test)]
    pub(crate) fn with_multipliers(&self, multipliers: Multipliers) -> Context {
        Context { multipliers: Some(multipliers), ..self.clone() }
    }

    /// The kernel for moduli of `modulus_bits` bits: the forced one, else [`Context::kernel`] or, where its primes end
    /// before that, another one whose primes do not.
    pub(crate) fn kernel_for(&self, modulus_bits: u32) -> &'static dyn PlaneKernel {
        self.kernel.unwrap_or_else(|| kernels::preferred_for(modulus_bits))
    }

    /// Bits up to which [`Context::kernel_for`] finds one.
    pub(crate) fn maximum_modulus_bits(&self) -> u32 {
        self.kernel.map_or_else(kernels::largest_modulus_bits, |kernel| kernel.maximum_modulus_bits())
    }

    /// The devices that products run on.
    pub fn devices(&self) -> &DeviceSet {
        &self.devices
    }

    /// A clone whose operations take no more than these shares of the devices, one for each.
    pub(crate) fn with_device_shares(&self, shares: Vec<MemoryShare>) -> Context {
        Context { devices: Arc::new(self.devices.shared(shares.into())), ..self.clone() }
    }

    /// Whether results are checked by a redundant prime.
    pub fn self_check(&self) -> bool {
        self.self_check
    }

    /// Whether products are tested with a random vector before they are rounded.
    pub fn freivalds(&self) -> bool {
        self.freivalds
    }

    /// Runs `work` on the context's threads, or on the calling thread if the context has only one.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// A clone with another progress callback.
    ///
    /// Callers use it to follow, or to cancel, one of several calls that share a context.
    pub fn with_progress(&self, callback: impl Fn(Progress) -> bool + Send + Sync + 'static) -> Context {
        Context { progress: Some(Arc::new(callback)), ..self.clone() }
    }

    /// Calls the progress callback, if any.
    ///
    /// # Errors
    /// [`Error::Cancelled`] where the callback requests a stop.
    pub fn report_progress(&self, progress: Progress) -> Result<()> {
        match &self.progress {
            Some(callback) if !callback(progress) => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }

    /// The product engine of `kernel` for `spec`; it is made by the first call and kept.
    ///
    /// # Errors
    /// The errors of [`PlaneKernel::prepare`].
    pub fn engine(&self, kernel: &'static dyn PlaneKernel, spec: EngineSpec) -> Result<Arc<dyn PlaneEngine>> {
        self.kept_engine(kernel, spec, false)
    }

    /// The same with panels that [`PlaneKernel::prepare_tiles`] chooses.
    ///
    /// # Errors
    /// As [`Context::engine`].
    pub(crate) fn engine_for_tiles(
        &self,
        kernel: &'static dyn PlaneKernel,
        spec: EngineSpec,
    ) -> Result<Arc<dyn PlaneEngine>> {
        self.kept_engine(kernel, spec, true)
    }

    fn kept_engine(
        &self,
        kernel: &'static dyn PlaneKernel,
        spec: EngineSpec,
        for_tiles: bool,
    ) -> Result<Arc<dyn PlaneEngine>> {
        // Entrywise accuracy needs other bits in each call, but the same engine in most.
        let key = (kernel.name(), for_tiles, kernel.class(spec));
        let make = || if for_tiles { kernel.prepare_tiles(&spec) } else { kernel.prepare(&spec) };
        // Plans count the tables of the engine that runs.
        match self.memory_bytes().is_some() {
            true => self.kept.tables.engines.get_or_replace(key, make),
            false => self.kept.tables.engines.get_or_make(key, make),
        }
    }

    /// Lets `kernel` measure its instructions before `multiplications` multiplications of numbers, with moduli of
    /// `modulus_bits` bits. Not under a memory limit, whose plans do not count the memory for that.
    pub(crate) fn settle(&self, kernel: &dyn PlaneKernel, modulus_bits: u32, multiplications: f64) {
        if !self.under_limit {
            kernel.settle_instructions(multiplications / self.threads() as f64, modulus_bits);
        }
    }

    /// The budget of a step that uses none of the tables that the engines of earlier calls keep.
    pub(crate) fn memory_beside_tables(&self) -> MemoryBudget {
        match self.memory_bytes() {
            Some(_) => self.memory.holding(self.kept.tables.engines.bytes(|engine| engine.table_bytes())),
            None => self.memory,
        }
    }

    /// The tile kernels of `kernel` for `working_bits`; they are made by the first call and kept.
    ///
    /// With devices, the first device runs the updates, and `kernel` everything else.
    ///
    /// # Errors
    /// The errors of [`PlaneKernel::tile_engine`].
    pub fn tile_engine(&self, kernel: &'static dyn PlaneKernel, working_bits: u32) -> Result<Arc<dyn TileEngine>> {
        let (key, kept) = ((kernel.name(), working_bits, self.devices.shares()), &self.kept.tables.tile_engines);
        let make = || self.devices.tile_engine(working_bits, self.self_check, kernel.tile_engine(working_bits)?);
        // Plans count the tables of the engine that runs, and a device's memory is for one engine.
        match self.memory_bytes().is_some() || !self.devices.is_empty() {
            true => kept.get_or_replace(key, make),
            false => kept.get_or_make(key, make),
        }
    }

    /// The tile kernels for a triangle of `order` rows in one process: those of [`Context::tile_engine`], or others
    /// that are faster for this order.
    ///
    /// # Errors
    /// As [`Context::tile_engine`].
    pub(crate) fn tile_engine_for(&self, working_bits: u32, order: usize) -> Result<Arc<dyn TileEngine>> {
        let is_small = order <= self.kernel().most_rows_in_small_tiles(working_bits);
        match is_small && self.devices.is_empty() {
            true => Ok(self.small_tile_engine(working_bits)),
            false => self.tile_engine(self.tile_kernel(working_bits), working_bits),
        }
    }

    /// The kernel of tiles of `working_bits` bits.
    pub(crate) fn tile_kernel(&self, working_bits: u32) -> &'static dyn PlaneKernel {
        self.kernel_for(cholesky_modulus_bits(working_bits))
    }

    /// The tile kernels for few rows, made at the first call and kept.
    pub(crate) fn small_tile_engine(&self, working_bits: u32) -> Arc<dyn TileEngine> {
        let kernel = self.kernel();
        let make = || kernel.small_tile_engine(working_bits);
        self.kept.tables.small_tile_engines.get_or_create((kernel.name(), working_bits), make)
    }

    /// Releases the memory kept between calls where there is a limit: for a step that needs it otherwise.
    pub(crate) fn release(&self) {
        if self.memory_bytes().is_some() {
            *self.workspace() = Workspace::default();
        }
    }

    /// The windows and scratch memory kept between calls. If calls on the same context overlap, each of them has its
    /// own windows and scratch memory.
    pub fn workspace(&self) -> WorkspaceLease<'_> {
        let workspace = std::mem::take(&mut *self.kept.workspace.lock().unwrap_or_else(PoisonError::into_inner));
        WorkspaceLease { home: &self.kept.workspace, workspace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_under_another_limit_shares_what_is_kept() {
        let ctx = Context::builder().threads(2).memory_bytes(1000).build().unwrap();
        ctx.workspace().left_shifts.push(7);
        let other = ctx.with_memory_bytes(Some(300));
        assert_eq!((other.threads(), other.memory_bytes(), ctx.memory_bytes()), (2, Some(300), Some(1000)));
        assert_eq!(other.workspace().left_shifts, [7]);
        other.workspace().left_shifts.push(8);
        assert_eq!(ctx.workspace().left_shifts, [7, 8]);
        assert!(matches!(other.admit(301), Err(Error::MemoryLimit { limit_bytes: 300, minimum_bytes: 301 })));
        assert!(ctx.with_memory_bytes(None).admit(u64::MAX).is_ok() && ctx.admit(301).is_ok());
        let holding = other.holding(200);
        assert!(holding.admit(100).is_ok());
        assert!(matches!(holding.admit(101), Err(Error::MemoryLimit { limit_bytes: 300, minimum_bytes: 301 })));
        drop(ctx);
        assert_eq!(other.install(|| 1), 1);
    }

    /// A class has no more than one engine, and bits beyond its ends have another one.
    #[test]
    fn specs_of_one_class_share_their_engine() -> Result<()> {
        let ctx = Context::builder().threads(1).build()?;
        for kernel in kernels::available() {
            let engine = |operand_bits, modulus_bits, redundant| {
                ctx.engine(kernel, EngineSpec { operand_bits, modulus_bits, redundant })
            };
            let first = engine(260, 572, false)?;
            for (operand_bits, modulus_bits, redundant) in
                [(311, 623, false), (312, 572, false), (260, 624, false), (260, 572, true), (259, 571, false)]
            {
                let spec = EngineSpec { operand_bits, modulus_bits, redundant };
                let other = engine(operand_bits, modulus_bits, redundant)?;
                let first_spec = EngineSpec { operand_bits: 260, modulus_bits: 572, redundant: false };
                let are_alike = kernel.class(spec) == kernel.class(first_spec);
                assert_eq!(
                    are_alike,
                    kernel.family() == "ifma52" && kernel.name() != "reference" && operand_bits == 311
                );
                assert_eq!(Arc::ptr_eq(&first, &other), are_alike, "{}", kernel.name());
                let made = kernel.prepare(&spec)?;
                assert_eq!((made.moduli(), made.table_bytes()), (other.moduli(), other.table_bytes()));
            }
        }
        Ok(())
    }
}
