//! Which kernel a product over ranks runs on.

use crate::common::{Kind, matrix};
use sunzi::comm::{Transport, local};
use sunzi::distributed::{DistOptions, Team, TeamOptions, syrk};
use sunzi::{Context, SyrkOptions, syrk_with};

/// Large products go on the kernel of one process where all ranks would choose it, else on the one that all prefer;
/// the bits are the same.
#[test]
fn ranks_agree_on_the_kernel_of_a_large_product() {
    let (rows, cols, bits) = (200, 256, 64);
    let p = matrix(Kind::Unit, rows, cols, bits, 5);
    let free = || Context::builder().threads(1).build().unwrap();
    let preferred = free().kernel().name();
    let one = syrk_with(&free(), p.view(), bits, &SyrkOptions::new()).unwrap();
    for (forced, kernel) in [(None, one.report.kernel), (Some(0), preferred), (Some(1), preferred)] {
        local::run(2, |rank| {
            let ctx = match forced {
                Some(which) if which == rank.rank() => Context::builder().threads(1).kernel(preferred).build().unwrap(),
                _ => free(),
            };
            let mut team = Team::new(rank.split(0).unwrap(), TeamOptions::default()).unwrap();
            let own = p.view().block(rank.rank() * rows / 2..(rank.rank() + 1) * rows / 2, 0..cols).unwrap();
            let outcome = syrk(&ctx, &mut team, &[own], bits, &DistOptions::new()).unwrap();
            assert_eq!(outcome.report.kernel, kernel, "forced on {forced:?}");
            let whole = outcome.result.gather(team.world(), 0).unwrap();
            assert!(whole.is_none_or(|whole| whole == one.result), "forced on {forced:?}");
            team.close().unwrap();
        });
    }
}
