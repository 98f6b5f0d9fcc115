//! What nodes send each other in a product: residues, each once and packed.

use crate::common::{Kind, effort, kernel_names, matrix};
use sunzi::advanced::kernels::{self, EngineSpec};
use sunzi::comm::{Transport, local};
use sunzi::distributed::{DistOptions, Team, TeamOptions, even_share, syrk};
use sunzi::{Context, Matrix, SymmetricMatrix};

/// Two nodes send each residue of the triangle once, in as many bits as its modulus has.
#[test]
fn nodes_send_packed_residues_once() {
    let (cols, bits) = (200usize, 300);
    let p = matrix(Kind::Unit, 90, cols, bits, 12);
    for name in kernel_names() {
        let ctx = Context::builder().threads(1).kernel(name).build().unwrap();
        let want = sunzi::syrk(&ctx, &p, bits).unwrap();
        for per_node in [1, 2] {
            let outcomes = local::run(2 * per_node, |rank| {
                let mut team = Team::new(rank.split(0).unwrap(), TeamOptions::new().ranks_per_node(per_node)).unwrap();
                let own = p.view().block(even_share(90, team.size(), team.rank()), 0..cols).unwrap();
                let outcome = syrk(&ctx, &mut team, &[own], bits, &DistOptions::default()).unwrap();
                let whole = outcome.result.gather(team.world(), 0).unwrap();
                team.close().unwrap();
                (whole, outcome.report)
            });
            let (got, report) = outcomes.into_iter().next().unwrap();
            assert!(got.unwrap() == want, "{name}, {per_node} ranks a node");
            let spec = EngineSpec { operand_bits: bits, modulus_bits: 2 * bits + 80, redundant: false };
            let engine = kernels::by_name(name).unwrap().prepare(&spec).unwrap();
            assert!(engine.moduli().len() >= report.primes);
            let moduli = &engine.moduli()[..report.primes];
            let residue_bits = moduli.iter().map(|modulus| u64::from(64 - (modulus - 1).leading_zeros())).sum::<u64>();
            let least = residue_bits * (cols * (cols + 1) / 2) as u64 / 8;
            let team = report.team.as_ref().unwrap();
            let sent = team.exchanged_bytes;
            println!(
                "{name}, {per_node} ranks a node: {sent} bytes, {least} at least, {:.3}",
                sent as f64 / least as f64
            );
            assert!(sent as f64 <= 1.1 * least as f64, "{name}, {per_node} ranks a node: {sent} bytes of {least}");
            assert!(sent >= team.plan.sent_bytes);
            assert!(team.plan.exchange_parts > 1 && team.exchange_hidden > 0.0, "{name}: {team:?}");
        }
    }
}

/// While a part of the residues is on its way the next one is multiplied: the last part alone has nothing to hide
/// behind.
#[test]
fn the_exchange_is_hidden_behind_the_products() {
    let (rows, cols, bits) = (6000 * effort().min(10) as usize, 96usize, 200);
    let p = matrix(Kind::Unit, rows, cols, bits, 13);
    let one = Context::builder().threads(1).build().unwrap();
    let want = sunzi::syrk(&one, &p, bits).unwrap();
    // A machine that is busy with other things lets one rank wait for the other: the share is asked for in long runs,
    // of the best of several.
    let (least, runs) = if effort() > 1 { (0.8, 5) } else { (0.0, 1) };
    let shares = (0..runs).map(|_| hidden_share(&p, &want)).collect::<Vec<_>>();
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
    assert!(shares.iter().any(|&share| share >= least), "{shares:?}");
}

/// The share of the exchange that is hidden in a product on two nodes, whose result is compared.
fn hidden_share(p: &Matrix, want: &SymmetricMatrix) -> f64 {
    let (rows, cols, bits) = (p.rows(), p.cols(), p.precision_bits());
    let shares = local::run(2, |rank| {
        let mut team = Team::new(rank.split(0).unwrap(), TeamOptions::new().ranks_per_node(1)).unwrap();
        let ctx = Context::builder().threads(1).build().unwrap();
        let own = p.view().block(even_share(rows, 2, team.rank()), 0..cols).unwrap();
        let outcome = syrk(&ctx, &mut team, &[own], bits, &DistOptions::default()).unwrap();
        let got = outcome.result.gather(team.world(), 0).unwrap();
        assert!(got.is_none_or(|got| got == *want));
        team.close().unwrap();
        let team = outcome.report.team.unwrap();
        assert!(team.plan.exchange_parts > 1, "{} parts", team.plan.exchange_parts);
        println!(
            "{} primes in {} parts: {:.1} % of the exchange is hidden; {:?}",
            outcome.report.primes,
            team.plan.exchange_parts,
            100.0 * team.exchange_hidden,
            team.rank_phases
        );
        team.exchange_hidden
    });
    assert!(shares[0] == shares[1], "{shares:?}");
    shares[0]
}
