//! The next request, and whether it may begin.
//!
//! Pure bookkeeping. Requests begin in the order in which they came, urgent ones before all others; none overtakes one
//! that waits for room, so that a large one is not put off for ever.

use std::collections::VecDeque;

/// The position of a request in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Priority {
    /// After all earlier requests.
    #[default]
    InOrder,
    /// Before all requests that are not urgent.
    Urgent,
}

/// Bounds on the requests under way at a time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub requests: usize,
    pub bytes: u64,
}

/// A request with the bytes that it moves.
struct Waiting<T> {
    bytes: u64,
    request: T,
}

/// Requests that wait, and how many are under way.
pub struct Queue<T> {
    urgent: VecDeque<Waiting<T>>,
    in_order: VecDeque<Waiting<T>>,
    limits: Limits,
    requests_under_way: usize,
    bytes_under_way: u64,
}

impl<T> Queue<T> {
    /// An empty queue. A request of more bytes than the limit runs with no other.
    pub fn new(limits: Limits) -> Queue<T> {
        let (urgent, in_order) = (VecDeque::new(), VecDeque::new());
        Queue { urgent, in_order, limits, requests_under_way: 0, bytes_under_way: 0 }
    }

    /// Puts a request that moves `bytes` behind the others of its priority.
    pub fn push(&mut self, priority: Priority, bytes: u64, request: T) {
        match priority {
            Priority::Urgent => self.urgent.push_back(Waiting { bytes, request }),
            Priority::InOrder => self.in_order.push_back(Waiting { bytes, request }),
        }
    }

    /// The next request, where it may begin, and the bytes to pass to [`Queue::finish`] when it is done.
    pub fn begin(&mut self) -> Option<(T, u64)> {
        let line = if self.urgent.is_empty() { &mut self.in_order } else { &mut self.urgent };
        let bytes = self.bytes_under_way.saturating_add(line.front()?.bytes);
        let has_room = self.requests_under_way < self.limits.requests.max(1) && bytes <= self.limits.bytes;
        if !has_room && self.requests_under_way > 0 {
            return None;
        }
        let next = line.pop_front()?;
        self.requests_under_way += 1;
        self.bytes_under_way = bytes;
        Some((next.request, next.bytes))
    }

    /// A request of `bytes` bytes is done.
    pub fn finish(&mut self, bytes: u64) {
        self.requests_under_way -= 1;
        self.bytes_under_way -= bytes;
    }

    /// Requests that have not begun, taken out in the order in which they would have.
    pub fn take_waiting(&mut self) -> Vec<T> {
        let waiting = self.urgent.drain(..).chain(self.in_order.drain(..));
        waiting.map(|waiting| waiting.request).collect()
    }

    /// The number of requests that have not begun.
    pub fn waiting(&self) -> usize {
        self.urgent.len() + self.in_order.len()
    }

    /// The number of requests that have begun and are not done.
    pub fn under_way(&self) -> usize {
        self.requests_under_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_begin_in_order_within_both_limits() {
        let mut queue = Queue::new(Limits { requests: 3, bytes: 100 });
        for (request, bytes) in [("a", 60), ("b", 40), ("large", 500), ("d", 1), ("e", 1), ("f", 1), ("g", 1)] {
            queue.push(Priority::InOrder, bytes, request);
        }
        assert_eq!((queue.begin(), queue.begin(), queue.begin()), (Some(("a", 60)), Some(("b", 40)), None));
        queue.finish(60);
        assert_eq!(queue.begin(), None, "a large one waits until it is alone, and nobody overtakes it");
        queue.finish(40);
        assert_eq!((queue.begin(), queue.begin()), (Some(("large", 500)), None));
        queue.push(Priority::Urgent, 1, "urgent");
        queue.finish(500);
        assert_eq!(queue.begin(), Some(("urgent", 1)));
        assert_eq!((queue.begin(), queue.begin(), queue.begin()), (Some(("d", 1)), Some(("e", 1)), None));
        assert_eq!((queue.waiting(), queue.under_way(), queue.take_waiting()), (2, 3, vec!["f", "g"]));
    }
}
