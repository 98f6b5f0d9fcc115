//! The memory in use at each step of an iteration at one precision, to the byte except where it depends on numbers.
//!
//! The memory that stays in use through a step is its `held`; tasks and calls of the step take memory in addition.
//! Blocks and columns are counted one by one, as the steps make and drop them. Data that may exist are counted as if
//! they did: the best point, products with residuals.

use super::calls::{BlockCalls, Calls, Gap};
use super::lists;
use super::{Planners, ProgramPart};
use crate::block::Shape;
use crate::iterate::point::Cone;
use crate::iterate::share::Share;
use crate::iterate::side::Side;
use crate::problem::{Constraints, Group, Problem, Sampled, Sparse, entry_bytes};
use crate::ranks::ROOT;
use crate::workers::{TaskBytes, Workers};
use std::collections::BTreeMap;
use sunzi::{Accuracy, Matrix, Result};

/// Bytes of an MPFR number in addition to its limbs, with the overhead of the allocator.
const FLOAT_BYTES: u64 = 48;

/// Bits at which matrices for step lengths are formed mostly.
const STEP_BITS: u32 = 128;

/// The parts of an iteration, which differ in the data that exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IterationStep {
    /// Residuals of the next point.
    Residuals,
    /// The Schur complement and its factor.
    System,
    /// The parts of directions that do not depend on dx.
    Constants,
    /// The equation for a direction, and its blocks.
    Directions,
    /// Eigenvalues for the step lengths.
    Eigenvalues,
    /// The next point and its factors.
    Next,
}

/// All steps of an iteration, in the order of their numbers.
pub const STEPS: [IterationStep; 6] = [
    IterationStep::Residuals,
    IterationStep::System,
    IterationStep::Constants,
    IterationStep::Directions,
    IterationStep::Eigenvalues,
    IterationStep::Next,
];

/// The tasks on each block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConeTask {
    /// `A(x) - C - X`.
    Residual,
    /// `A* (M)`.
    Pairing,
    /// A product with a residual.
    Product,
    /// The part of dY that does not depend on dx.
    Constant,
    /// dX and dY.
    Direction,
}

/// The bytes that stay in use through a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Blocks and columns.
    pub blocks: u64,
    /// The Schur complement's factor, and the matrices of free variables.
    pub system: u64,
}

/// The memory of the tasks on a block.
#[derive(Clone, Copy, Debug)]
struct ConeBytes {
    own: u64,
    tasks: [TaskBytes; 5],
    factors: [SideBytes; 2],
    eigenvalues: [SideBytes; 2],
}

/// A task on one side of a block, whose bits depend on its numbers.
#[derive(Clone, Copy, Debug)]
struct SideBytes {
    /// In most cases: room for it while others are at work.
    mostly: TaskBytes,
    /// In any case: room for it while no other is at work.
    any: TaskBytes,
}

/// See the module.
pub struct Ledger {
    /// The precision.
    pub bits: u32,
    /// Lists and contexts.
    pub base: u64,
    /// The program at this precision, and tables of sparse matrices.
    pub program: u64,
    held: [Held; 6],
    work: [u64; 6],
    cones: Vec<ConeBytes>,
    groups: Vec<TaskBytes>,
}

impl Ledger {
    /// The ledger of a program at `bits` bits, even if it has more, in contexts of all threads and of one, for a run at
    /// `precisions` precisions.
    ///
    /// # Errors
    /// The errors of the library's plans.
    pub fn new(planners: &Planners, part: ProgramPart<'_>, bits: u32, gap: Gap, precisions: usize) -> Result<Ledger> {
        let ProgramPart { problem, cones, share } = part;
        let calls = |ctx| Calls { ctx, bits, gap };
        let (all, single) = (calls(&planners.all), calls(&planners.single));
        let mut sizes = ProgramSizes { problem, cones, share, all, single, blocks: BTreeMap::new() };
        let list = (0..cones.len()).map(|at| sizes.cone(at)).collect::<Result<Vec<_>>>()?;
        let system = sizes.system()?;
        let mut ledger = Ledger {
            bits,
            base: sizes.base() + lists::of_blocks(cones.len(), precisions),
            program: sizes.program()?,
            held: [Held::default(); 6],
            work: [0; 6],
            cones: list,
            groups: system.groups.clone(),
        };
        for step in STEPS {
            (ledger.held[step as usize], ledger.work[step as usize]) = sizes.step(&ledger, &system, step)?;
        }
        ledger.base += lists::between(ledger.held.iter().map(|held| held.blocks).max().unwrap_or(0));
        Ok(ledger)
    }

    /// The bytes that stay in use through a step.
    pub fn held(&self, step: IterationStep) -> Held {
        self.held[step as usize]
    }

    /// The bytes of all data at a step.
    pub fn total(&self, step: IterationStep) -> u64 {
        let Held { blocks, system } = self.held(step);
        self.program + blocks + system + self.work[step as usize]
    }

    /// The step that takes most.
    pub fn peak(&self) -> IterationStep {
        STEPS.into_iter().max_by_key(|&step| self.total(step)).unwrap_or(IterationStep::Next)
    }

    /// A task on a block.
    pub fn task(&self, task: ConeTask, at: usize) -> TaskBytes {
        self.cones[at].tasks[task as usize]
    }

    /// Factoring one side of a block.
    pub fn factor(&self, at: usize, side: Side) -> TaskBytes {
        self.cones[at].factors[side as usize].mostly
    }

    /// The eigenvalue of one side.
    pub fn eigenvalue(&self, at: usize, side: Side) -> TaskBytes {
        self.cones[at].eigenvalues[side as usize].mostly
    }

    /// The system of a group of samples.
    pub fn group(&self, at: usize) -> TaskBytes {
        self.groups[at]
    }

    fn tasks(&self, task: ConeTask) -> Vec<TaskBytes> {
        (0..self.cones.len()).map(|at| self.task(task, at)).collect()
    }
}

/// The memory of the equation for the direction.
struct SystemBytes {
    own: u64,
    work: u64,
    groups: Vec<TaskBytes>,
}

/// Sizes of a program at one precision.
struct ProgramSizes<'a> {
    problem: &'a Problem,
    cones: &'a [Cone],
    share: &'a Share,
    all: Calls<'a>,
    single: Calls<'a>,
    /// Calls on blocks that are known, by their order, their bits, and whether they have one thread.
    blocks: BTreeMap<(usize, u32, bool), BlockCalls>,
}

impl<'a> ProgramSizes<'a> {
    fn bits(&self) -> u32 {
        self.all.bits
    }

    fn matrix(&self, rows: usize, cols: usize) -> u64 {
        Matrix::bytes_for(rows, cols, self.bits())
    }

    fn floats(&self, count: usize) -> u64 {
        count as u64 * (FLOAT_BYTES + 8 * u64::from(self.bits().div_ceil(64)))
    }

    fn threads(&self) -> usize {
        self.all.ctx.threads()
    }

    /// Contexts and lists.
    fn base(&self) -> u64 {
        let orders = self.cones.iter().map(|cone| match cone.shape {
            Shape::Dense(order) => order,
            Shape::Diagonal(_) => 0,
        });
        lists::base(self.threads(), orders.chain([self.share.most_variables()]).max().unwrap_or(0))
    }

    fn at_work(&self, tasks: usize) -> usize {
        Workers::at_work(self.threads(), tasks).0
    }

    /// The calls of one of `tasks` tasks.
    fn calls(&self, tasks: usize) -> Calls<'a> {
        if Workers::at_work(self.threads(), tasks).1 { self.single } else { self.all }
    }

    fn together(&self, tasks: &[TaskBytes]) -> u64 {
        TaskBytes::together(tasks, self.at_work(tasks.len()))
    }

    fn on_block(&mut self, order: usize, bits: u32, tasks: usize) -> Result<BlockCalls> {
        let key = (order, bits, Workers::at_work(self.threads(), tasks).1);
        if let Some(&known) = self.blocks.get(&key) {
            return Ok(known);
        }
        let found = Calls { bits, ..self.calls(tasks) }.on_block(order)?;
        self.blocks.insert(key, found);
        Ok(found)
    }

    /// Blocks of all ranks, where there are several.
    fn blocks_of_all(&self) -> u64 {
        let stored = |cone: &Cone| {
            let (rows, cols) = cone.shape.stored();
            self.matrix(rows, cols)
        };
        if self.share.ranks.are_several() { self.share.all.iter().map(stored).sum() } else { 0 }
    }

    /// The memory that the root takes to gather a point with the best one and to write both, where there are several
    /// ranks.
    fn gathering(&self) -> u64 {
        if self.share.ranks.rank() == ROOT { 9 * self.blocks_of_all() } else { 0 }
    }

    /// Tables of sparse matrices at the program's precision, and the numbers and tables of a rounded program.
    fn program(&self) -> Result<u64> {
        let is_rounded = self.bits() != self.problem.precision_bits;
        let of_group = |group: &Group| {
            let own = self.matrix(group.costs.rows(), 1 + group.free.cols());
            Ok(match &group.constraints {
                Constraints::Sampled(sampled) => {
                    let basis = |shape: &Shape| self.matrix(shape.order() / sampled.dim(), sampled.points());
                    if is_rounded { own + sampled.shapes().iter().map(basis).sum::<u64>() } else { 0 }
                }
                Constraints::Sparse(sparse) => {
                    let tables = sparse.table_bytes()?;
                    // A rounded program has no more limbs than the whole one.
                    if is_rounded { own + 2 * tables + sparse.bytes() } else { tables }
                }
                Constraints::Scalars(scalars) => match is_rounded {
                    true => own + self.matrix(scalars.variables(), 1),
                    false => 0,
                },
            })
        };
        // A rank has a copy of its part.
        let part = if self.share.ranks.are_several() { self.problem.bytes() } else { 0 };
        Ok(part + self.problem.groups.iter().map(of_group).sum::<Result<u64>>()?)
    }

    fn cone(&mut self, at: usize) -> Result<ConeBytes> {
        let cone = self.cones[at];
        let (rows, cols) = cone.shape.stored();
        let own = self.matrix(rows, cols);
        let constraints = &self.problem.groups[cone.group].constraints;
        let (sum, pairing) = match constraints {
            Constraints::Sampled(sampled) => self.sampled_sums(sampled, cone.number)?,
            Constraints::Sparse(sparse) => (own + self.matrix(sparse.heights()?[cone.number], 1), TaskBytes::default()),
            Constraints::Scalars(scalars) => {
                let result = self.floats(scalars.variables());
                (own, TaskBytes { result, work: result + lists::plain(self.bits()) })
            }
        };
        let plain = lists::plain(self.bits());
        let task = |result: u64, work: u64| TaskBytes { result, work: work.max(result) + plain };
        let residual = task(own, sum.max(3 * own));
        let Shape::Dense(order) = cone.shape else {
            let tasks = [residual, pairing, task(own, 2 * own), task(own, 5 * own), task(2 * own, 6 * own)];
            let same = |task| SideBytes { mostly: task, any: task };
            let factors = [same(task(own, 2 * own)), same(task(0, 0))];
            return Ok(ConeBytes { own, tasks, factors, eigenvalues: [same(task(0, 0)); 2] });
        };
        let calls = self.on_block(order, self.bits(), self.cones.len())?;
        let entries = match constraints {
            Constraints::Sparse(sparse) => sparse.sparse_bytes(cone.number, self.bits())?,
            Constraints::Sampled(_) | Constraints::Scalars(_) => None,
        };
        // A product with few entries takes these, itself, and the matrix that is added to it.
        let gemm = calls.gemm.max(entries.map_or(0, |entries| entries + own));
        let constant = match constraints.meets_few(cone.number, self.bits())? {
            true => task(2 * own, 2 * own + gemm),
            false => task(own, 2 * own + gemm.max(calls.syr2k)),
        };
        let product = entries.map_or(calls.gemm, |entries| entries + 2 * own);
        let direction = [sum, own + product, 2 * own + calls.syr2k, 4 * own];
        let direction = task(2 * own, direction.into_iter().fold(0, u64::max));
        // Both sides of a block are tasks.
        let sides = 2 * self.cones.len();
        let (calls, few_bits) = (self.on_block(order, self.bits(), sides)?, self.bits().min(STEP_BITS));
        let few = self.on_block(order, few_bits, sides)?;
        let (identity, rounded) = (Matrix::bytes_for(order, order, 2), Matrix::bytes_for(order, order, few_bits));
        let solve = (own + identity + calls.trsm).max(2 * own + identity + calls.syrk);
        let side = |mostly, any| SideBytes { mostly, any };
        let entries = entries.unwrap_or(0);
        let congruence = |square: u64, gemm: u64| task(0, (3 * square + gemm).max(2 * square + entries));
        Ok(ConeBytes {
            own,
            tasks: [residual, pairing, task(own, calls.gemm), constant, direction],
            factors: [
                side(task(2 * own, solve.max(calls.cholesky)), task(2 * own, solve.max(calls.any_cholesky))),
                side(task(own, calls.cholesky), task(own, calls.any_cholesky)),
            ],
            eigenvalues: [
                side(congruence(rounded, few.gemm), congruence(own, calls.gemm)),
                side(task(0, 3 * rounded + few.trsm), task(0, 3 * own + calls.trsm)),
            ],
        })
    }

    /// A sum of matrices of samples in a block, and pairings with them.
    fn sampled_sums(&self, sampled: &Sampled, number: usize) -> Result<(u64, TaskBytes)> {
        let (shape, dim, points) = (sampled.shapes()[number], sampled.dim(), sampled.points());
        let (rows, order, calls) = (shape.order(), shape.order() / dim, self.calls(self.cones.len()));
        let weights = entry_bytes(points, self.bits());
        let whole =
            self.matrix(rows, rows) + self.matrix(order, points) + weights + calls.gemm(order, order, points)?;
        let result = self.floats(sampled.variables());
        Ok((whole, TaskBytes { result, work: result + calls.gemm(order, points, order)? + lists::plain(self.bits()) }))
    }

    /// The bytes that stay in use through a step, and those of the work then.
    fn step(&self, ledger: &Ledger, system: &SystemBytes, step: IterationStep) -> Result<(Held, u64)> {
        let all = ledger.cones.iter().map(|cone| cone.own).sum::<u64>();
        let is_dense = |at: &usize| matches!(self.cones[*at].shape, Shape::Dense(_));
        let dense = (0..self.cones.len()).filter(is_dense).map(|at| ledger.cones[at].own).sum::<u64>();
        let of_x = self.problem.groups.iter().map(|group| self.matrix(group.costs.rows(), 1)).sum::<u64>();
        let columns = of_x + self.matrix(self.problem.free_variables(), 1);
        let positions = self.positions()?;
        let (point, factors) = (2 * all + columns, all + 2 * dense);
        // The state, the best point, factors, residuals.
        let base = 2 * point + factors + all + columns;
        let together = |task| self.together(&ledger.tasks(task));
        // Products with residuals, and a predictor.
        let directions = all + point;
        let constants = ledger.tasks(ConeTask::Constant).iter().map(|task| task.result).sum::<u64>();
        let sides = |of: &dyn Fn(&ConeBytes) -> [SideBytes; 2]| {
            let all = ledger.cones.iter().flat_map(of).collect::<Vec<_>>();
            let mostly = all.iter().map(|side| side.mostly).collect::<Vec<_>>();
            let any = all.iter().map(|side| side.any).collect::<Vec<_>>();
            self.together(&mostly).max(TaskBytes::together(&any, 1))
        };
        // Between ranks they travel: buffers for sending, for receiving, and for the sum of each.
        let travelling = if self.share.ranks.are_several() { 4 * (positions + columns) } else { 0 };
        let pairings = travelling
            + (4 * positions + 4 * columns).max(together(ConeTask::Pairing) + columns)
            + lists::plain(self.bits());
        let largest = ledger.cones.iter().map(|cone| cone.own).max().unwrap_or(0);
        let (blocks, with_system, work) = match step {
            IterationStep::Residuals => {
                let work = [
                    together(ConeTask::Residual),
                    all + pairings,
                    self.gathering(),
                    lists::reading(4 * self.blocks_of_all(), self.bits()),
                ];
                (base + point + factors, false, work.into_iter().fold(0, u64::max))
            }
            IterationStep::System => (base, false, system.work),
            IterationStep::Constants => (base + directions, true, together(ConeTask::Constant)),
            IterationStep::Directions => {
                let work = [together(ConeTask::Direction), pairings, self.solve(columns)?];
                (base + directions + constants, true, work.into_iter().fold(0, u64::max))
            }
            IterationStep::Eigenvalues => (base + point, false, sides(&|cone| cone.eigenvalues)),
            IterationStep::Next => {
                let factors = sides(&|cone| cone.factors);
                (base + 2 * point, false, factors.max(largest + lists::plain(self.bits())))
            }
        };
        Ok((Held { blocks, system: if with_system { system.own } else { 0 } }, work))
    }

    /// The numbers at the positions of all sparse matrices.
    fn positions(&self) -> Result<u64> {
        let mut positions = 0;
        for group in &self.problem.groups {
            if let Constraints::Sparse(sparse) = &group.constraints {
                positions += self.matrix(sparse.heights()?.iter().sum(), 1);
            }
        }
        Ok(positions)
    }

    /// The equation for a direction with its factor.
    fn solve(&self, columns: u64) -> Result<u64> {
        let free = self.problem.free_variables();
        let of_group = |group: &Group| {
            let order = group.costs.rows();
            if let Constraints::Scalars(_) = group.constraints {
                return Ok(3 * self.matrix(order, 1) + self.floats(order) + lists::plain(self.bits()));
            }
            let solve = self.all.solve(order, Accuracy::Entrywise)?;
            // With free variables both triangles are solved by themselves, in addition to products.
            Ok(if free > 0 { solve.max(self.all.trsm(order, 1)?) } else { solve })
        };
        let each = self.problem.groups.iter().map(of_group).collect::<Result<Vec<_>>>()?;
        let most = each.into_iter().max().unwrap_or(0).max(self.all.solve(free, Accuracy::Norm)?);
        Ok(5 * columns + self.at_work(self.problem.groups.len()).max(1) as u64 * most)
    }

    /// The equation for the direction.
    fn system(&self) -> Result<SystemBytes> {
        let groups = &self.problem.groups;
        let free = self.problem.free_variables();
        // Groups that one rank has by itself.
        let is_sampled = |group: &&Group| !matches!(group.constraints, Constraints::Sparse(_));
        let calls = self.calls(groups.iter().filter(is_sampled).count());
        let of_group = |group: &Group| match &group.constraints {
            Constraints::Sampled(sampled) => self.sampled_system(calls, sampled),
            Constraints::Scalars(scalars) => Ok(self.scalars_system(scalars.variables())),
            Constraints::Sparse(_) => Ok(TaskBytes::default()),
        };
        let tasks = groups.iter().map(of_group).collect::<Result<Vec<_>>>()?;
        let sampled = groups.iter().zip(&tasks).filter(|(group, _)| is_sampled(group)).map(|(_, &task)| task);
        let sampled = sampled.collect::<Vec<_>>();
        let (mut own, mut work) = (sampled.iter().map(|task| task.result).sum::<u64>(), self.together(&sampled));
        for group in groups {
            let Constraints::Sparse(sparse) = &group.constraints else { continue };
            work = work.max(own + self.sparse_system(sparse)?);
            own += self.matrix(sparse.variables, sparse.variables) + self.matrix(sparse.variables, free);
        }
        if free > 0 {
            let rows = self.share.variables();
            let square = self.matrix(free, free);
            let forming = self.all.gram(rows, free)?.max(square + self.all.norm_cholesky(free)?);
            work = work.max(own + self.matrix(rows, free) + forming);
            own += square;
        }
        Ok(SystemBytes { own, work: work + lists::plain(self.bits()), groups: tasks })
    }

    /// The Schur complement of a group of samples, its factor, and its solution for free variables.
    fn sampled_system(&self, calls: Calls<'_>, sampled: &Sampled) -> Result<TaskBytes> {
        let (variables, free) = (sampled.variables(), self.problem.free_variables());
        let width = sampled.dim() * sampled.points();
        let (square, gram, shapes) = (self.matrix(variables, variables), self.matrix(width, width), sampled.shapes());
        // Both Gram matrices of all blocks exist together with the sum of their products.
        let mut work = 2 * shapes.len() as u64 * gram + square;
        for (number, shape) in shapes.iter().enumerate() {
            let (rows, order) = (shape.order(), shape.order() / sampled.dim());
            let spread = self.matrix(rows, width);
            let forming = calls.gemm(rows, sampled.points(), order)?.max(spread + calls.syrk(rows, width)?);
            work = work.max((2 * number as u64 + 1) * gram + forming);
        }
        let factor = calls.system_cholesky(variables)?;
        let of_free = if free > 0 { square + calls.trsm(variables, free)? } else { 0 };
        let work = work.max(square + factor.max(of_free));
        Ok(TaskBytes { result: square + self.matrix(variables, free), work: work + lists::plain(self.bits()) })
    }

    /// The bytes for one-point blocks that were combined.
    fn scalars_system(&self, variables: usize) -> TaskBytes {
        let (column, free) = (self.matrix(variables, 1), self.problem.free_variables());
        let result = column + self.matrix(variables, free);
        TaskBytes { result, work: result + column + self.floats(variables) + lists::plain(self.bits()) }
    }

    /// The same of a group of sparse matrices.
    fn sparse_system(&self, sparse: &Sparse) -> Result<u64> {
        let (variables, free) = (sparse.variables, self.problem.free_variables());
        let square = self.matrix(variables, variables);
        let tasks = sparse.schur_tasks(self.bits(), |count| {
            let calls = self.calls(count);
            move |rows, cols, terms| calls.gemm(rows, cols, terms)
        })?;
        let columns = tasks.iter().map(|task| task.result).sum::<u64>();
        let forming = sparse.schur_beside(self.bits()) + self.together(&tasks);
        // Both factors of all blocks, while the second one travels; then the buffers for sending, receiving and
        // combining.
        let blocks = self.blocks_of_all();
        let is_root = self.share.ranks.rank() == ROOT;
        let (travelling, columns) = match blocks {
            0 => (0, columns),
            _ => (5 * blocks, if is_root { 3 * columns } else { 2 * columns }),
        };
        let forming = (2 * blocks + forming).max(2 * blocks + columns + square).max(travelling);
        // The tiles exist together with the matrix that they are made of.
        let tiles = if blocks > 0 { square } else { 0 };
        let factor = tiles + square + self.all.system_cholesky(variables)?;
        let of_free = if free > 0 { square + self.all.trsm(variables, free)? } else { 0 };
        Ok(forming.max(factor).max(tiles + of_free))
    }
}
