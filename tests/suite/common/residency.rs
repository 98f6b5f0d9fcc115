//! How much memory a device needs to keep tiles of a factorisation, and what its cache says of its traffic.

use std::sync::Arc;
use sunzi::advanced::device::Traffic;
use sunzi::advanced::device::soft::{SoftDevice, SoftOptions};
use sunzi::advanced::kernels::EngineSpec;
use sunzi::advanced::kernels::device::DeviceFamily;
use sunzi::advanced::math::bound::{cholesky_modulus_bits, cholesky_working_bits};
use sunzi::advanced::runtime::CacheCounters;
use sunzi::devices::Device;
use sunzi::{CholeskyOptions, Context, Error, Matrix, cholesky_with};

/// Lanes of a device that is not short of memory.
const LANES: u64 = 3;

/// Bytes of a device that has room for `count` tiles of `rows` rows, beside the memory of its lanes.
pub fn room_for_tiles(family: &str, (bits, rows): (u32, usize), count: usize) -> u64 {
    let slot = slot_bytes(family, bits, rows);
    let lane = least_bytes(family, bits, rows) - 2 * slot;
    LANES * lane + count as u64 * slot
}

/// Bytes of the operand planes of one tile.
fn slot_bytes(family: &str, bits: u32, rows: usize) -> u64 {
    let working = cholesky_working_bits(bits);
    let spec = EngineSpec { operand_bits: working, modulus_bits: cholesky_modulus_bits(working), redundant: false };
    let family = DeviceFamily::by_name(family).unwrap();
    let padded = rows.next_multiple_of(16);
    (family.plane_count(&spec) * family.element().operand_bytes() * padded * padded).next_multiple_of(256) as u64
}

/// Bytes of tables, one lane and two tiles.
fn least_bytes(family: &str, bits: u32, rows: usize) -> u64 {
    let device: Arc<dyn Device> = Arc::new(SoftDevice::new(SoftOptions { capacity_bytes: 1000, ..Default::default() }));
    let ctx = Context::builder().threads(1).devices(vec![device]).kernel(family).build().unwrap();
    let mut identity = Matrix::zeros(2 * rows, 2 * rows, bits).unwrap();
    (0..2 * rows).for_each(|at| identity.set_f64(at, at, 1.0).unwrap());
    let options = CholeskyOptions::new().tile_rows(rows);
    match cholesky_with(&ctx, &identity, bits, &options) {
        Err(Error::DeviceLimit { minimum_bytes, .. }) => minimum_bytes,
        other => panic!("1000 bytes do: {}", other.is_ok()),
    }
}

/// What a device must have counted itself, by its cache of tiles.
pub fn counted_traffic(cache: &CacheCounters) -> Traffic {
    Traffic {
        h2d_bytes: cache.up_bytes,
        d2h_bytes: cache.down_bytes,
        h2d_copies: cache.uploads,
        d2h_copies: cache.write_backs,
    }
}
