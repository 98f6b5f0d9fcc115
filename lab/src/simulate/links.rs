//! Links between processes: each is free at some time, and tiles go one after the other.
//!
//! A tile goes through the link out of its node, perhaps the links of two racks, and the link into the other node; each
//! link starts as soon as it is free and the first bytes have come (virtual cut-through). Inside a node it is copied
//! once.

use super::Cluster;

/// When each link is free, and how long it was in use.
pub(super) struct Links {
    out: Vec<Link>,
    into: Vec<Link>,
    local: Vec<Link>,
    rack_out: Vec<Link>,
    rack_into: Vec<Link>,
    per_node: usize,
    per_rack: usize,
    /// Seconds for a tile between nodes, inside a node, through a rack's link.
    tile: f64,
    local_tile: f64,
    rack_tile: Option<f64>,
    latency: f64,
    local_latency: f64,
}

#[derive(Clone, Copy, Default)]
struct Link {
    free: f64,
    busy: f64,
}

impl Link {
    /// The start of a use that can begin at `time`.
    fn take(&mut self, time: f64, seconds: f64) -> f64 {
        let start = time.max(self.free);
        self.free = start + seconds;
        self.busy += seconds;
        start
    }
}

/// A copy on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CopySpan {
    /// When it begins.
    pub start: f64,
    /// When it ends.
    pub end: f64,
}

impl Links {
    /// The links of `processes` processes.
    pub fn new(machine: &Cluster, processes: usize) -> Links {
        let bytes = machine.tile_bytes() as f64;
        let nodes = processes.div_ceil(machine.layout.processes_per_node);
        let racks = nodes.div_ceil(machine.layout.nodes_per_rack);
        let network = &machine.network;
        let links = |count: usize| vec![Link::default(); count];
        Links {
            out: links(nodes),
            into: links(nodes),
            local: links(nodes),
            rack_out: links(racks),
            rack_into: links(racks),
            per_node: machine.layout.processes_per_node,
            per_rack: machine.layout.nodes_per_rack,
            tile: bytes / network.bandwidth,
            local_tile: bytes / network.local_bandwidth,
            rack_tile: network.rack_bandwidth.map(|bandwidth| bytes / bandwidth),
            latency: network.latency,
            local_latency: network.local_latency,
        }
    }

    /// Whether two processes share a node.
    pub fn is_local(&self, from: usize, to: usize) -> bool {
        from / self.per_node == to / self.per_node
    }

    /// Seconds from one process to another.
    pub fn latency(&self, from: usize, to: usize) -> f64 {
        if self.is_local(from, to) { self.local_latency } else { self.latency }
    }

    /// A copy inside a node.
    pub fn copy(&mut self, process: usize, now: f64, factor: f64) -> CopySpan {
        let seconds = self.local_tile * factor;
        let start = self.local[process / self.per_node].take(now, seconds);
        CopySpan { start, end: start + seconds + self.local_latency }
    }

    /// A turn on the link out of the node of a process.
    pub fn leave(&mut self, from: usize, now: f64, factor: f64) -> CopySpan {
        let seconds = self.tile * factor;
        let start = self.out[from / self.per_node].take(now, seconds);
        CopySpan { start, end: start + seconds }
    }

    /// The way of a tile that begins to leave now: when its first and last bytes come in.
    pub fn enter(&mut self, from: usize, to: usize, now: f64, factor: f64) -> CopySpan {
        let (from, to) = (from / self.per_node, to / self.per_node);
        let (rack_from, rack_to) = (from / self.per_rack, to / self.per_rack);
        let (mut head, mut tail) = (now, now);
        if let Some(seconds) = self.rack_tile.filter(|_| rack_from != rack_to) {
            head = self.rack_out[rack_from].take(head, seconds * factor);
            head = self.rack_into[rack_to].take(head, seconds * factor);
            tail = head + seconds * factor;
        }
        let seconds = self.tile * factor;
        let start = self.into[to].take(head + self.latency, seconds);
        // The last bytes cannot be in before they have crossed the slowest link.
        CopySpan { start, end: (start + seconds).max(tail + self.latency) }
    }

    /// Parts of `seconds` that links were busy on average: out of nodes, and inside them.
    pub fn busy(&self, seconds: f64) -> [f64; 3] {
        [&self.out, &self.into, &self.local].map(|links| {
            let sum = links.iter().map(|link| link.busy).sum::<f64>();
            sum / (links.len() as f64 * seconds).max(f64::MIN_POSITIVE)
        })
    }

    /// The fraction of `seconds` in which the busiest link out of a node was in use.
    pub fn busiest_out(&self, seconds: f64) -> f64 {
        self.out.iter().map(|link| link.busy).fold(0.0, f64::max) / seconds.max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_follow_each_other_on_a_link() {
        let mut machine = Cluster::built_in("tsubame2.5").unwrap();
        machine.network.bandwidth = machine.tile_bytes() as f64;
        machine.network.latency = 0.25;
        let mut links = Links::new(&machine, 9);
        assert!(links.is_local(0, 2) && !links.is_local(2, 3));
        let spans = [0, 1].map(|process| links.leave(process, 5.0, 1.0));
        assert_eq!(spans, [CopySpan { start: 5.0, end: 6.0 }, CopySpan { start: 6.0, end: 7.0 }]);
        assert_eq!(links.enter(0, 3, 5.0, 1.0), CopySpan { start: 5.25, end: 6.25 });
        // From another node at the same time: the link in is taken.
        assert_eq!(links.enter(6, 4, 5.0, 1.0), CopySpan { start: 6.25, end: 7.25 });
        assert_eq!(links.busy(4.0)[0], 2.0 / 12.0);
        machine.network.rack_bandwidth = Some(machine.tile_bytes() as f64 / 10.0);
        machine.layout.nodes_per_rack = 1;
        let mut racks = Links::new(&machine, 9);
        racks.enter(0, 3, 0.0, 1.0);
        assert_eq!(racks.enter(1, 6, 0.0, 1.0).start, 10.25);
    }
}
