//! Programs that own MPI, as SDPB does: it is theirs before, while and after a group of ours works on it.

use crate::{Case, Run};
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::traits::{Communicator, CommunicatorCollectives};
use sunzi::advanced::testing::effort;
use sunzi::comm::mpi::{Environment, MpiRank};
use sunzi::comm::window::{SharedWindow, WindowKind};
use sunzi::comm::{Fence, Reduction, Transport, barrier};

/// The cases of this file.
pub const CASES: &[Case] = &[
    Case { name: "hosts::a_host_keeps_mpi", ranks: &[1, 3, 4], run: Run::Process(keeps) },
    Case { name: "hosts::calls_keep_to_the_main_thread_where_mpi_asks", ranks: &[2], run: Run::Process(funneled) },
    Case { name: "hosts::one_thread_alone_may_have_been_promised", ranks: &[2], run: Run::Process(single) },
    Case { name: "hosts::calls_take_turns_where_mpi_asks", ranks: &[2, 3], run: Run::Process(serialized) },
    Case { name: "hosts::ranks_answer_with_errors_after_the_end", ranks: &[1, 2], run: Run::Process(after_the_end) },
];

fn sum_by_host(world: &impl CommunicatorCollectives) {
    let mut sum = 0;
    world.all_reduce_into(&1, &mut sum, SystemOperation::sum());
    assert_eq!(sum, world.size());
}

fn work(rank: &dyn Transport) {
    let mut words = [1, rank.rank() as u64];
    rank.all_reduce(Reduction::Sum, &mut words).unwrap();
    assert_eq!(words[0] as usize, rank.size());
    let mut window = SharedWindow::open(rank, WindowKind::Mpi, 1000).unwrap();
    assert_eq!(window.read(&Fence::new(rank), Ok(())).unwrap()[999], 0);
    window.close().unwrap();
    rank.split(rank.rank() % 2).unwrap();
}

fn keeps(ranks: usize) {
    let (universe, level) = mpi::initialize_with_threading(Threading::Multiple).unwrap();
    assert_eq!(level, Threading::Multiple);
    let world = universe.world();
    let part = world.split_by_color(mpi::topology::Color::with_value(world.rank() % 2)).unwrap();
    for _ in 0..3 {
        let ours = MpiRank::from_communicator(&world).unwrap();
        assert_eq!(ours.size(), ranks);
        work(&ours);
        let of_part = MpiRank::from_communicator(&part).unwrap();
        assert_eq!((of_part.rank(), of_part.size()), (part.rank() as usize, part.size() as usize));
        work(&of_part);
        drop(ours);
        let environment = Environment::start().unwrap();
        barrier(&environment.world().unwrap()).unwrap();
        environment.finish().unwrap();
        drop(Environment::start().unwrap());
        assert!(mpi::environment::is_initialized() && !mpi::environment::is_finalized());
        sum_by_host(&world);
        sum_by_host(&part);
    }
    let last = MpiRank::from_communicator(&world).unwrap();
    drop((part, universe));
    assert!(mpi::environment::is_finalized());
    let error = barrier(&last).unwrap_err();
    assert!(error.to_string().contains("finalised"), "{error}");
}

fn funneled(_: usize) {
    main_thread(Threading::Funneled);
}

fn single(_: usize) {
    main_thread(Threading::Single);
}

fn main_thread(asked: Threading) {
    let (universe, _) = mpi::initialize_with_threading(asked).unwrap();
    let ours = MpiRank::from_communicator(&universe.world()).unwrap();
    work(&ours);
    if mpi::environment::threading_support() < Threading::Serialized {
        let error = std::thread::scope(|scope| scope.spawn(|| barrier(&ours).unwrap_err()).join().unwrap());
        assert!(error.to_string().contains("main thread"), "{error}");
    }
    work(&ours);
}

/// Threads on groups of their own, whose ranks wait for each other in no order: nobody may wait inside of MPI.
fn serialized(_: usize) {
    let (universe, _) = mpi::initialize_with_threading(Threading::Serialized).unwrap();
    let groups: Vec<MpiRank> = (0..3).map(|_| MpiRank::from_communicator(&universe.world()).unwrap()).collect();
    std::thread::scope(|scope| {
        for (index, group) in groups.iter().enumerate() {
            scope.spawn(move || {
                for round in 0..if effort() > 1 { 200 } else { 60 } {
                    if (round as usize + group.rank() + index).is_multiple_of(7) {
                        std::thread::sleep(std::time::Duration::from_micros(50 * index as u64));
                    }
                    let mut words = vec![round; 1 + 3000 * index];
                    group.all_reduce(Reduction::Sum, &mut words).unwrap();
                    assert!(words.iter().all(|&word| word == round * group.size() as u64));
                }
            });
        }
    });
    groups.iter().for_each(|group| work(group));
}

fn after_the_end(_: usize) {
    let environment = Environment::start().unwrap();
    let world = environment.world().unwrap();
    let part = world.split(0).unwrap();
    environment.finish().unwrap();
    for error in [barrier(&world).unwrap_err(), barrier(&*part).unwrap_err()] {
        assert!(error.to_string().contains("finalised"), "{error}");
    }
    assert!(Environment::start().is_err());
    assert!(world.machine().is_err() && world.open_window(WindowKind::Mpi, 100).is_err());
}
