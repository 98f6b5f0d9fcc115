//! Devices that several ranks of a machine use, of this team or of another: their users, and the memory that each rank
//! may take.

use crate::comm::{Reduction, Transport};
use crate::context::Context;
use crate::device::{Device, MemoryShare};
use crate::error::Result;
use std::sync::Arc;

/// Words that a rank sends for each device.
const WORDS: usize = 3;

/// The context of an operation over the ranks of `world`: of a device that several ranks of the machine have opened,
/// each rank takes an equal share of the memory that the one with the least may use. Nodes that are emulated share
/// the devices of their machine, and so do other teams on it, whose contexts count from when they were made
/// ([`users`](crate::device::DeviceStatus::users)). Collective; nothing is gathered where no rank has devices.
///
/// A rank opens its devices itself: the memory that its opening already holds is a part of its share.
///
/// # Errors
/// [`crate::Error::Transport`].
pub(crate) fn with_shared_devices(ctx: &Context, world: &dyn Transport) -> Result<Context> {
    let devices = &ctx.devices().devices;
    let mut most = [devices.len() as u64];
    world.all_reduce(Reduction::Max, &mut most)?;
    if most[0] == 0 {
        return Ok(ctx.clone());
    }
    let machine = world.machine()? as u64;
    // The machine, the number of devices, and the words of each device.
    let stride = 2 + WORDS * most[0] as usize;
    let mut own = vec![0; stride];
    (own[0], own[1]) = (machine, devices.len() as u64);
    for (words, device) in own[2..].chunks_exact_mut(WORDS).zip(devices) {
        words.copy_from_slice(&[device.identity(), device.capacity_bytes(), device.users() as u64]);
    }
    let mut all = vec![0; stride * world.size()];
    world.all_gather(&own, &mut all)?;
    let share = |device: &Arc<dyn Device>| {
        let here = all.chunks_exact(stride).filter(|rank| rank[0] == machine);
        let opened = here.flat_map(|rank| of_device(device.identity(), rank)).collect::<Vec<_>>();
        let capacity_bytes = opened.iter().map(|opening| opening[0]).min().unwrap_or(0);
        // The ranks count themselves: the system may report more users, or none.
        let users = opened.iter().map(|opening| opening[1]).max().unwrap_or(0);
        MemoryShare::of(opened.len().max(users as usize), capacity_bytes)
    };
    let shares = devices.iter().map(share).collect::<Vec<_>>();
    // Data kept for devices of only this rank serves its other calls too.
    Ok(if shares.iter().all(|share| share.ranks == 1) { ctx.clone() } else { ctx.with_device_shares(shares) })
}

/// The bytes that a rank may use of the device `identity`, and the number of users that it sees, for each time that it
/// has opened it.
fn of_device(identity: u64, rank: &[u64]) -> impl Iterator<Item = [u64; 2]> {
    let devices = rank[2..].chunks_exact(WORDS).take(rank[1] as usize);
    devices.filter(move |words| words[0] == identity).map(|words| [words[1], words[2]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
    use crate::device::soft::{SoftDevice, SoftOptions};

    /// The ranks of a share, and its bytes.
    fn of_share(share: MemoryShare) -> (usize, u64) {
        (share.ranks, share.bytes)
    }

    #[test]
    fn each_rank_learns_who_has_opened_its_devices() {
        let card = |capacity_bytes| SoftDevice::new(SoftOptions { capacity_bytes, ..SoftOptions::default() });
        let (shared, other) = (card(1 << 20), card(3 << 20));
        // Ranks 0, 1 and 2 have the first device, ranks 2 and 3 the second, rank 4 one of its own, rank 5 has
        // opened one twice, rank 6 has none.
        let shares = local::run(7, |rank| {
            let devices: Vec<Arc<dyn Device>> = match rank.rank() {
                0 | 1 => vec![Arc::new(shared.open_again())],
                2 => vec![Arc::new(other.open_again()), Arc::new(shared.open_again())],
                3 => vec![Arc::new(other.open_again())],
                4 => vec![Arc::new(card(5 << 20))],
                5 => {
                    let twice = card(4 << 20);
                    vec![Arc::new(twice.open_again()), Arc::new(twice)]
                }
                _ => Vec::new(),
            };
            let count = devices.len();
            let ctx = Context::builder().threads(1).devices(devices).build().unwrap();
            let ctx = with_shared_devices(&ctx, rank).unwrap();
            (0..count).map(|index| of_share(ctx.devices().allowance(index).share)).collect::<Vec<_>>()
        });
        let third = (3, (1 << 20) / 3 / 256 * 256);
        let half = (2, 3 << 19);
        let twice = vec![(2, 2 << 20); 2];
        let want = [
            vec![third],
            vec![third],
            vec![half, third],
            vec![half],
            vec![of_share(MemoryShare::WHOLE)],
            twice,
            vec![],
        ];
        assert_eq!(shares, want);
    }

    #[test]
    fn ranks_of_other_teams_count() {
        let card = SoftDevice::new(SoftOptions { capacity_bytes: 1 << 20, ..SoftOptions::default() });
        let context = || Context::builder().threads(1).devices(vec![Arc::new(card.open_again())]).build().unwrap();
        // Ranks 0 to 2 are a team, ranks 3 and 4 are each a team of one, and one context belongs to no rank.
        let (unranked, teams) = (context(), [0, 0, 0, 1, 2]);
        let shares = local::run(5, |rank| {
            let (ctx, team) = (context(), rank.split(teams[rank.rank()]).unwrap());
            crate::comm::barrier(rank).unwrap(); // all contexts are there
            let share = with_shared_devices(&ctx, &*team).unwrap().devices().allowance(0).share;
            crate::comm::barrier(rank).unwrap();
            of_share(share)
        });
        assert_eq!(shares, vec![(6, (1 << 20) / 6 / 256 * 256); 5]);
        // Closed contexts do not count any more, and a second context with the same opening is not a second user.
        let again = unranked.with_memory_bytes(Some(1));
        let share = with_shared_devices(&again, local::alone()).unwrap().devices().allowance(0).share;
        assert_eq!(share, MemoryShare::WHOLE);
    }
}
