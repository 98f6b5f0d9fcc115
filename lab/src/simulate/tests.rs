//! Figures that must hold: the same again, bounds, fewer bytes than without memory, and many seeds.

use super::*;
use sunzi::advanced::runtime::protocol::DeliveryKind;
use sunzi::advanced::runtime::{Eviction, Policy};
use sunzi::distributed::RankGrid;

/// Seeds of the ordinary run, times the requested effort.
fn seeds() -> u64 {
    60 * sunzi::advanced::testing::effort()
}

fn tsubame() -> Cluster {
    Cluster::built_in("tsubame2.5").unwrap()
}

fn run(machine: &Cluster, options: &SimulationOptions) -> Simulation {
    simulate(machine, options, &mut Recorder::none(), &|| true).unwrap()
}

/// 40 tile rows on 12 processes.
fn options() -> SimulationOptions {
    SimulationOptions { watch: true, ..SimulationOptions::new(RankGrid { rows: 3, cols: 4 }, 40 * 2048) }
}

#[test]
fn any_seed_comes_to_its_end() {
    for seed in 0..seeds() {
        if let Err(error) = soak_case(seed).run() {
            panic!("{error}; to reproduce: sunzi simulate soak --first {seed} --seeds 1");
        }
    }
}

#[test]
fn a_seed_gives_the_same_figures_again() {
    let case = |seed, jitter| run(&tsubame(), &SimulationOptions { seed, jitter, ..options() });
    let timeless = |simulation: Simulation| Simulation { wall_seconds: 0.0, ..simulation };
    assert_eq!(timeless(case(1, 0.2)), timeless(case(1, 0.2)));
    assert_ne!(case(1, 0.2).makespan_seconds, case(2, 0.2).makespan_seconds);
    assert!(case(1, 0.2).makespan_seconds > case(1, 0.0).makespan_seconds);
}

#[test]
fn memory_saves_copies_and_steps_do_not() {
    let simulation = |delivery| run(&tsubame(), &SimulationOptions { delivery, ..options() });
    for delivery in DeliveryKind::ALL {
        let simulation = simulation(delivery);
        let moved = simulation.up_bytes + simulation.down_bytes;
        assert!(moved < simulation.baseline_bytes, "{}", delivery.name());
        assert!(simulation.busy.devices <= 1.0 && simulation.busy.copies_up <= 1.0);
        if delivery == DeliveryKind::Synchronous {
            // Every update takes its tile there and back.
            assert!(simulation.down_bytes > simulation.baseline_bytes / 5);
        } else {
            assert!(simulation.down_bytes < simulation.baseline_bytes / 20, "{}", delivery.name());
        }
    }
}

#[test]
fn one_device_of_one_process_is_busy_all_the_time() {
    let grid = RankGrid { rows: 1, cols: 1 };
    let mut machine = tsubame();
    let large = SimulationOptions { policy: Policy::Panels, ..SimulationOptions::new(grid, 24 * 2048) };
    let simulation = run(&machine, &large);
    assert!(simulation.busy.devices > 0.8, "{:?}", simulation.busy);
    assert!(simulation.makespan_seconds >= simulation.work_seconds.max(simulation.critical_path_seconds));
    assert_eq!(simulation.messages, MessageCounts::default());
    // Half the speed of every kernel: at least that much longer.
    machine.rates.gemm /= 2.0;
    assert!(run(&machine, &large).makespan_seconds > 1.5 * simulation.makespan_seconds);
}

#[test]
fn a_machine_without_devices_computes_on_its_workers() {
    let mut machine = tsubame();
    machine.device = None;
    let simulation = run(&machine, &SimulationOptions { most_updates: 4, ..options() });
    assert_eq!((simulation.up_bytes, simulation.baseline_bytes, simulation.peak_device_bytes), (0, 0, 0));
    assert!(simulation.busy.devices > 0.1 && simulation.makespan_seconds >= simulation.work_seconds);
}

#[test]
fn a_slow_process_holds_up_the_others() {
    let slow = SimulationOptions { slow: vec![(5, 10.0)], ..options() };
    assert!(run(&tsubame(), &slow).makespan_seconds > 2.0 * run(&tsubame(), &options()).makespan_seconds);
}

#[test]
fn recordings_keep_to_their_sizes() {
    let mut recorder = Recorder::none().with_trace(2, 500).with_samples();
    let simulation = simulate(&tsubame(), &options(), &mut recorder, &|| true).unwrap();
    assert_eq!(recorder.spans.len(), 500);
    assert!(recorder.spans.iter().all(|span| span.process < 2 && span.start <= span.end));
    assert!(recorder.samples.len() > 100 && recorder.samples.len() < 1024);
    let last = recorder.samples.last().unwrap();
    assert!(last.time <= simulation.makespan_seconds);
    let most = recorder.samples.iter().map(|sample| sample.slots.most).fold(0.0, f64::max);
    assert!(most > 0.0 && most <= simulation.peak_slots as f64);
}

#[test]
fn what_cannot_be_simulated_is_refused_with_numbers() {
    let refused = |options: &SimulationOptions| {
        let error = simulate(&tsubame(), options, &mut Recorder::none(), &|| true).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    assert!(refused(&SimulationOptions { slots: Some(1), ..options() }).contains("needs at least"));
    assert!(refused(&SimulationOptions { order: 0, ..options() }).contains("0 tile rows"));
    assert!(refused(&SimulationOptions { jitter: -1.0, ..options() }).contains("jitter -1"));
    assert!(refused(&SimulationOptions { slow: vec![(12, 2.0)], ..options() }).contains("12 processes"));
    assert!(
        refused(&SimulationOptions { most_updates: 2, ..options() }).contains("2 updates at a time are not possible")
    );
    let stopped =
        simulate(&tsubame(), &SimulationOptions { order: 150_000, ..options() }, &mut Recorder::none(), &|| false);
    assert_eq!(stopped.unwrap_err().exit_code(), 130);
}

#[test]
fn evictions_and_policies_change_what_is_moved() {
    let moved = |policy, eviction| {
        let grid = RankGrid { rows: 1, cols: 1 };
        let simulation =
            run(&tsubame(), &SimulationOptions { policy, eviction, ..SimulationOptions::new(grid, 30 * 2048) });
        simulation.up_bytes + simulation.down_bytes
    };
    assert!(moved(Policy::Panels, Eviction::Lru) < moved(Policy::Random(1), Eviction::Fifo));
}
