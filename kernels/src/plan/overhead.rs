//! Overheads: the bytes of a call that its plan does not count individually.
//!
//! A plan counts matrices, windows, tiles, scratch and tables by the functions that size their allocations. The
//! remaining overhead is small and has no function of its own: lists, locks, queues, names, the stacks of threads, the
//! records of the allocator and of libraries. Each constant is the largest overhead of one unit, as measured with the
//! counting allocators of the memory tests, which compare the peak of every verb with its plan and fail if a constant
//! is too small.

/// Once per call: queues, lists of tiles and their locks, slices.
pub const CALL: u64 = 16 << 10;

/// Once per call of a factorisation on a rank: messages, queues, the state of the rank.
pub const FACTOR_RANK: u64 = 8 << 10;

/// Once per call with files: passes over them, checksums, lists of the storage.
pub const FILE_CALL: u64 = 6 << 20;

/// The passes of a solve over files of its triangle and its right-hand sides.
pub const FILE_PASS: u64 = 4 << 20;

/// Opening a storage directory: texts and blocks.
pub const STORAGE: u64 = 128 << 10;

/// A worker thread: lists of its tasks, records of the thread pool.
pub const WORKER: u64 = 1 << 10;

/// A thread that reads a file in advance, or works on tiles of one: the used part of its stack, lists, locks.
pub const FILE_THREAD: u64 = 64 << 10;

/// An I/O thread of a storage directory: the used part of its stack, lists of pieces, the header of a group, a ring.
pub const STORAGE_THREAD: u64 = 128 << 10;

/// A rank of a product: lists that do not grow with sizes.
pub const RANK: u64 = 64 << 10;

/// For each rank of all nodes, on a rank of a product: shapes, layout, times.
pub const PEER: u64 = 256;

/// The same on a rank with devices: its turn, the cursor over its entries, its rows and its node.
pub const DEVICE_PEER: u64 = 3 << 9;

/// For each other rank of a factorisation: the final report on its part, and its place in the mailbox.
pub const FACTOR_PEER: u64 = 160;

/// For each rank of the node, on a rank of a product: runs of words in the windows, and their order.
pub const NEIGHBOUR: u64 = 512;

/// A job of a product: its place in a queue, its cost, its worker and its words; also the slices of one panel, for each
/// prime.
pub const PRIME: u64 = 512;

/// A job of a node's product: the job, its cost, worker and words.
pub const NODE_JOB: u64 = 256;

/// A tile of a factorisation in one process: lists and locks.
pub const TILE: u64 = 160;

/// A tile of the solution or of the triangle in a solve: lists.
pub const SOLVE_TILE: u64 = 80;

/// A tile of a factorisation over ranks, own or not: lists and locks.
pub const RANK_TILE: u64 = 512;

/// A slot for a tile of another rank that receives no tile.
pub const EMPTY_SLOT: u64 = 72;

/// The locks on one column of operands of a strip of tiles.
pub const STRIP: u64 = 512;

/// A tile of a factorisation on disk, in memory or not: its place, its progress, its name in the storage.
pub const DISK_TILE: u64 = 640;

/// A tile of a product on disk, in memory or not: whether it is there.
pub const RESULT_TILE: u64 = 64;

/// The name of a tile or panel in a storage directory, and the name of its group.
pub const NAME: u64 = 64;

/// An object of a storage directory: a place in a growing table, its entry in the header, its name twice.
pub const OBJECT: u64 = 320;

/// A group of a storage directory: a place in a tree, its name, its file's name, its header.
pub const GROUP: u64 = 480;

/// A row of a matrix over ranks: its shifts are stored twice.
pub const RANK_ROW: u64 = 16;

/// A row of a matrix in files: exponents, shifts, norms, weights.
pub const FILE_ROW: u64 = 128;

/// A column of a product of files while its norm is computed.
pub const FILE_COLUMN: u64 = 32;

/// A run of neighbouring words in the lists that assign words to ranks.
pub const RUN: u64 = 96;
