//! What must be the same in a call over ranks and in its twin in one process.

use crate::dealt::Deal;
use crate::problem::{Ended, Problem, Verb};
use rug::Float;
use sunzi_c::sunzi_status::{self, *};

/// Runs a problem on ranks and alone; fails where they do not come to the same.
pub fn check(problem: &Problem, ranks: usize) {
    let ended = problem.over(ranks, |_, _| ());
    let limit = problem.choice.memory_bytes;
    if ended.iter().any(|of| of.status == SUNZI_MEMORY_LIMIT) {
        return check_refusal(&ended, limit);
    }
    check_alone(problem, &ended);
}

/// Fails where a refusal does not explain itself: it needs more than the limit, which is the one that was set.
fn check_refusal(ended: &[Ended], limit: u64) {
    for of in ended {
        let bytes = numbers(&of.message);
        let explained = matches!(bytes[..], [.., set, needed] if set == limit && needed > limit);
        assert!(limit > 0 && explained, "a limit of {limit}: {}", of.message);
        assert!(matches!(of.status, SUNZI_MEMORY_LIMIT | SUNZI_COMMUNICATION), "{}", of.message);
    }
}

/// The numbers of bytes in a message.
fn numbers(message: &str) -> Vec<u64> {
    let words = message.split([' ', '(', ')', ',', ':']).collect::<Vec<_>>();
    words.windows(2).filter(|pair| pair[1] == "bytes").filter_map(|pair| pair[0].parse().ok()).collect()
}

/// Fails where what a problem came to on ranks is not what it comes to alone: the status and the place on a rank at
/// fault, that of another rank's fault on all others; the bits; the report but for memory and time.
pub fn check_alone(problem: &Problem, ended: &[Ended]) {
    let alone = problem.alone();
    let Problem { verb, scalapack, deals, kinds, choice, fault, wrong, operands, .. } = problem;
    let shapes = operands.iter().map(|of| (of.rows, of.cols)).collect::<Vec<_>>();
    let ranks = ended.len();
    let what = format!(
        "{verb:?} {scalapack} {shapes:?} {deals:?} {kinds:?} {choice:?} {fault:?} {wrong:?} on {ranks}; alone {:?} {}",
        alone.status, alone.message
    );
    let said = || ended.iter().map(|of| (of.status, &of.message)).collect::<Vec<_>>();
    assert!(ended.iter().any(|of| of.status == alone.status), "{what}: {:?}", said());
    let found = ended.iter().any(|of| of.place == alone.place);
    assert!(
        found || alone.status != SUNZI_EXPONENT_RANGE,
        "no rank finds the place of one process: {what}: {:?}",
        said()
    );
    for (rank, of) in ended.iter().enumerate() {
        if of.status == SUNZI_COMMUNICATION && alone.status != SUNZI_OK {
            assert!(
                !holds_fault(problem, rank, alone.status),
                "a fault of its own: {what}, rank {rank}: {}",
                of.message
            );
            assert!(of.message.contains("rank "), "{what}: {}", of.message);
        } else {
            // Arguments have other numbers in the one and the other.
            let info = |info: i64| info.max(-1);
            let found = (of.status, info(of.info));
            assert_eq!(found, (alone.status, info(alone.info)), "{what}, rank {rank}: {}", of.message);
            let alone_at_fault = problem.wrong.is_none_or(|(at, ..)| at == rank);
            assert!(alone_at_fault, "a fault of another rank: {what}, rank {rank}: {}", of.message);
            check_answer(problem, (rank, of), &alone, &what);
        }
        let kept = alone.status == SUNZI_OK
            || alone.status != SUNZI_EXPONENT_RANGE
                && !matches!(problem.verb, Verb::Inverse { .. } | Verb::FactorInverse { .. });
        if let Some((deal, whole)) = problem.deals.last().zip(problem.operands.last()).filter(|_| kept) {
            let wanted = part(deal, (whole.rows, &alone.entries), rank);
            let same = |(one, other): (&Float, &Float)| one == other || one.is_nan() && other.is_nan();
            let differs = of.entries.iter().zip(&wanted).position(|pair| !same(pair));
            assert!(differs.is_none() && of.entries.len() == wanted.len(), "bits: {what}, rank {rank}: {differs:?}");
        }
    }
}

/// Whether a rank has what makes no sense, or the entry that cannot be read.
fn holds_fault(problem: &Problem, rank: usize, status: sunzi_status) -> bool {
    if let Some((at, ..)) = problem.wrong {
        return at == rank;
    }
    let unreadable = matches!(status, SUNZI_NOT_FINITE | SUNZI_INVALID_ENTRY);
    problem.fault.filter(|_| unreadable).is_some_and(|[at, row, col]| {
        let [rows, cols] = problem.deals[at].places(rank);
        rows.contains(&row) && cols.contains(&col)
    })
}

/// Fails where a rank's own answer has another place, or another report.
fn check_answer(problem: &Problem, (rank, of): (usize, &Ended), alone: &Ended, what: &str) {
    if alone.status == SUNZI_OK {
        if matches!(problem.verb, Verb::LogDet { .. } | Verb::FactorLogDet { .. }) && !problem.asks[rank] {
            return; // nothing is stored
        }
        let report = |of: &Ended| (of.report.precision_bits, of.report.accuracy, of.report.range_bits);
        assert_eq!(report(of), report(alone), "the report: {what}, rank {rank}");
        assert!(of.number.as_ref().is_none_or(|number| Some(number) == alone.number.as_ref()), "number: {what}");
        return;
    }
    let mut place = alone.place;
    if let (SUNZI_NOT_FINITE | SUNZI_INVALID_ENTRY, Some([at, row, col])) = (alone.status, problem.fault) {
        // Of an entry that was read it is the place in the array.
        let [rows, cols] = problem.deals[at].places(rank);
        let local =
            |places: &[usize], at: usize| places.iter().position(|&place| place == at).map_or(-1, |at| at as i64);
        place = (local(&rows, row), local(&cols, col));
        assert!(place.0 >= 0 && place.1 >= 0, "a fault of another rank: {what}, rank {rank}: {}", of.message);
    }
    // Where several entries of a result are beyond the exponents, each rank finds one of its own.
    if alone.status != SUNZI_EXPONENT_RANGE {
        assert_eq!(of.place, place, "the place: {what}, rank {rank}: {}", of.message);
    }
}

/// The part of a rank of a matrix of so many rows.
fn part(deal: &Deal, (height, entries): (usize, &[Float]), rank: usize) -> Vec<Float> {
    let [rows, cols] = deal.places(rank);
    cols.iter().flat_map(|col| rows.iter().map(move |row| entries[row + col * height].clone())).collect()
}
