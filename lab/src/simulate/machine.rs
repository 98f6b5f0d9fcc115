//! The machine to be simulated: sizes, rates and delays, from a TOML file or built in.
//!
//! Depends on: numbers. Independent of: the place of the file, the use of the numbers.

use serde::{Deserialize, Serialize};
use sunzi::advanced::runtime::{LevelShape, Task};
use sunzi::{Error, Result};

/// The TSUBAME 2.5 of 2013 to 2017, with a source for each value.
const TSUBAME: &str = include_str!("../../machines/tsubame2.5.toml");

/// A cluster.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Its name, for reports.
    pub name: String,
    /// Processes, and where they are.
    pub layout: ProcessLayout,
    /// Between processes.
    pub network: Network,
    /// The devices of a process; without them the processors run all tasks.
    pub device: Option<Device>,
    /// The disk below the memory of a process; without one memory holds all tiles.
    pub disk: Option<Disk>,
    /// Flop/s of each kind of task.
    pub rates: Rates,
    /// The tiles that are factored.
    pub tiles: Tiles,
}

/// Processes and nodes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessLayout {
    /// Processes of a node.
    pub processes_per_node: usize,
    /// Nodes of a rack.
    pub nodes_per_rack: usize,
    /// Threads of a process that run tasks.
    pub workers: usize,
    /// Bytes of host memory that a process has for its own tiles and those of others; above a disk for those of them
    /// that are in memory.
    pub host_memory_bytes: u64,
}

/// Links and messages. Seconds, and bytes per second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Between nodes.
    pub latency: f64,
    /// The bandwidth of a node in each direction, shared by its processes.
    pub bandwidth: f64,
    /// The latency between processes of a node.
    pub local_latency: f64,
    /// The bandwidth between processes of a node, shared by them.
    pub local_bandwidth: f64,
    /// The bandwidth of a rack in each direction; without it racks do not limit transfers.
    pub rack_bandwidth: Option<f64>,
    /// Seconds that the progress thread of a process takes for a message.
    pub message_seconds: f64,
}

/// Devices. Seconds, and bytes per second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Devices of a process.
    pub count: usize,
    /// Memory of each.
    pub memory_bytes: u64,
    /// Seconds that a launch of a kernel takes.
    pub launch_seconds: f64,
    /// Bytes a second from the host to a device.
    pub up_bandwidth: f64,
    /// Bytes a second from a device to the host.
    pub down_bandwidth: f64,
    /// Seconds of latency of a copy.
    pub latency: f64,
    /// Bytes per second of all copies of a node in both directions together; without it only the limits of each device
    /// hold.
    pub node_bandwidth: Option<f64>,
}

/// A disk. Seconds, and bytes per second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Bytes a second of reads.
    pub read_bandwidth: f64,
    /// Bytes a second of writes.
    pub write_bandwidth: f64,
    /// Seconds of a request from its last byte to its answer.
    pub latency: f64,
    /// Whether the processes of a node share one; else each has one of its own.
    #[serde(default)]
    pub shared: bool,
    /// The bytes under way that a process may have of tiles that its tasks read, and the same number of tiles that they
    /// have finished, which also limits the tiles that they may finish together; without it there is no limit.
    pub in_flight_bytes: Option<u64>,
    /// The bytes of an element of the input matrix, which is on the disk as well; without it the size is that of tiles.
    pub matrix_element_bytes: Option<u64>,
    /// The bytes of an element in memory; without it the size is that of tiles.
    pub memory_element_bytes: Option<u64>,
    /// Bytes of finished tiles that a worker makes ready for tasks; without it that takes no time.
    pub convert_bandwidth: Option<f64>,
}

impl Disk {
    /// A disk that moves `bandwidth` bytes in a second each way, without latency.
    pub fn with_bandwidth(bandwidth: f64) -> Disk {
        Disk {
            read_bandwidth: bandwidth,
            write_bandwidth: bandwidth,
            latency: 0.0,
            shared: false,
            in_flight_bytes: None,
            matrix_element_bytes: None,
            memory_element_bytes: None,
            convert_bandwidth: None,
        }
    }
}

/// Flop/s.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Of a diagonal tile: always on the processors, one at a time where there are devices.
    pub potrf: f64,
    /// Of a triangular solve.
    pub trsm: f64,
    /// Of the update of a diagonal tile.
    pub syrk: f64,
    /// Of other updates.
    pub gemm: f64,
}

/// The tiles.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiles {
    /// Rows of a tile.
    pub rows: usize,
    /// Bytes of an element, as tiles travel and as finished ones lie on a disk.
    pub element_bytes: u64,
}

/// The largest number of devices of a process.
const MOST_DEVICES: usize = 64;

impl Cluster {
    /// Machines that need no file.
    pub const BUILT_IN: [&str; 1] = ["tsubame2.5"];

    /// The machine of that name, where it is built in.
    pub fn built_in(name: &str) -> Option<Cluster> {
        (name == Cluster::BUILT_IN[0]).then(|| Cluster::from_toml(TSUBAME, name).expect("a test reads it"))
    }

    /// Reads the text of a file; `name` is for errors.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for text that is not TOML, unknown or missing keys, and values that are not valid.
    pub fn from_toml(text: &str, name: &str) -> Result<Cluster> {
        let refused = |error: toml::de::Error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            let message = error.message().split('\n').map(str::trim).collect::<Vec<_>>().join(" ");
            Error::InvalidArgument(format!("machine {name}, line {line}: {message}"))
        };
        let machine = toml::from_str::<Cluster>(text).map_err(refused)?;
        machine.check().map_err(|message| Error::InvalidArgument(format!("machine {name}: {message}")))?;
        Ok(machine)
    }

    /// Returns the machine, unless one of its values is not valid.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the key and the value.
    pub fn checked(self) -> Result<Cluster> {
        let refused = |message| Error::InvalidArgument(format!("machine {}: {message}", self.name));
        self.check().map_err(refused).map(|()| self)
    }

    /// Bytes of a tile.
    pub fn tile_bytes(&self) -> u64 {
        (self.tiles.rows as u64).pow(2) * self.tiles.element_bytes
    }

    /// Bytes of a tile of the matrix on a disk.
    pub(super) fn matrix_tile_bytes(&self) -> u64 {
        self.tile_bytes_of(|disk| disk.matrix_element_bytes)
    }

    fn tile_bytes_of(&self, element_bytes: impl Fn(&Disk) -> Option<u64>) -> u64 {
        let own = self.disk.as_ref().and_then(element_bytes);
        (self.tiles.rows as u64).pow(2) * own.unwrap_or(self.tiles.element_bytes)
    }

    /// Tiles that the memory of a process above a disk has room for.
    pub(super) fn level_room_tiles(&self) -> usize {
        (self.layout.host_memory_bytes / self.tile_bytes_of(|disk| disk.memory_element_bytes)) as usize
    }

    /// Finished tiles that may be on their way to the disk of a process.
    pub(super) fn written_together(&self) -> usize {
        let bytes = self.disk.as_ref().and_then(|disk| disk.in_flight_bytes);
        bytes.map_or(usize::MAX, |bytes| (bytes / self.tile_bytes()) as usize)
    }

    /// The number of tiles that fit in the memory of a device.
    pub fn room_tiles(&self) -> usize {
        self.device.as_ref().map_or(usize::MAX, |device| (device.memory_bytes / self.tile_bytes()) as usize)
    }

    /// Flop/s of a task.
    pub(super) fn rate(&self, task: Task) -> f64 {
        match task {
            Task::Potrf { .. } => self.rates.potrf,
            Task::Trsm { .. } => self.rates.trsm,
            Task::Syrk { .. } => self.rates.syrk,
            Task::Gemm { .. } => self.rates.gemm,
        }
    }

    fn check(&self) -> std::result::Result<(), String> {
        let Cluster { layout, network, rates, tiles, .. } = self;
        let mut counts = vec![
            ("layout.processes_per_node", layout.processes_per_node as u64),
            ("layout.nodes_per_rack", layout.nodes_per_rack as u64),
            ("layout.workers", layout.workers as u64),
            ("layout.host_memory_bytes", layout.host_memory_bytes),
            ("tiles.rows", tiles.rows as u64),
            ("tiles.element_bytes", tiles.element_bytes),
        ];
        let mut speeds = vec![
            ("network.bandwidth", network.bandwidth),
            ("network.local_bandwidth", network.local_bandwidth),
            ("rates.potrf", rates.potrf),
            ("rates.trsm", rates.trsm),
            ("rates.syrk", rates.syrk),
            ("rates.gemm", rates.gemm),
        ];
        speeds.extend(network.rack_bandwidth.map(|value| ("network.rack_bandwidth", value)));
        let mut delays = vec![
            ("network.latency", network.latency),
            ("network.local_latency", network.local_latency),
            ("network.message_seconds", network.message_seconds),
        ];
        if let Some(device) = &self.device {
            counts.extend([("device.count", device.count as u64), ("device.memory_bytes", device.memory_bytes)]);
            speeds.extend([("device.up_bandwidth", device.up_bandwidth)]);
            speeds.extend([("device.down_bandwidth", device.down_bandwidth)]);
            speeds.extend(device.node_bandwidth.map(|value| ("device.node_bandwidth", value)));
            delays.extend([("device.launch_seconds", device.launch_seconds), ("device.latency", device.latency)]);
        }
        if let Some(disk) = &self.disk {
            counts.extend(disk.in_flight_bytes.map(|bytes| ("disk.in_flight_bytes", bytes)));
            counts.extend(disk.matrix_element_bytes.map(|bytes| ("disk.matrix_element_bytes", bytes)));
            counts.extend(disk.memory_element_bytes.map(|bytes| ("disk.memory_element_bytes", bytes)));
            speeds.extend([("disk.read_bandwidth", disk.read_bandwidth)]);
            speeds.extend([("disk.write_bandwidth", disk.write_bandwidth)]);
            speeds.extend(disk.convert_bandwidth.map(|value| ("disk.convert_bandwidth", value)));
            delays.extend([("disk.latency", disk.latency)]);
        }
        if let Some((key, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(format!("{key} = 0: it must be at least 1"));
        }
        if let Some((key, value)) = speeds.iter().find(|(_, value)| !(value.is_finite() && *value > 0.0)) {
            return Err(format!("{key} = {value}: it must be above 0"));
        }
        if let Some((key, value)) = delays.iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0)) {
            return Err(format!("{key} = {value}: it must be 0 or more"));
        }
        if let Some(device) = self.device.as_ref().filter(|device| device.count > MOST_DEVICES) {
            return Err(format!("device.count = {}: at most {MOST_DEVICES} per process", device.count));
        }
        self.check_tiles()
    }

    fn check_tiles(&self) -> std::result::Result<(), String> {
        let Tiles { rows, element_bytes } = self.tiles;
        let disk = self.disk.as_ref();
        let others = disk.iter().flat_map(|disk| [disk.matrix_element_bytes, disk.memory_element_bytes]).flatten();
        let element_bytes = others.fold(element_bytes, u64::max);
        let bytes = (rows as u128).saturating_pow(2).saturating_mul(element_bytes.into());
        if bytes > u128::from(u32::MAX) << 10 {
            return Err(format!(
                "tiles of {rows} rows with {element_bytes} bytes per element: {bytes} bytes are too many"
            ));
        }
        let least_room = LevelShape::SINGLE_TILES.least_room(1);
        match &self.device {
            // An update holds three tiles.
            Some(device) if self.room_tiles() < 3 => {
                Err(format!("device.memory_bytes = {}: an update needs 3 tiles of {bytes} bytes", device.memory_bytes))
            }
            Some(_) if disk.is_some() => {
                Err("device and disk: out of core only the workers compute, so remove one of the two".into())
            }
            None if disk.is_some() && self.level_room_tiles() < least_room => {
                let (memory, each) =
                    (self.layout.host_memory_bytes, self.tile_bytes_of(|disk| disk.memory_element_bytes));
                Err(format!(
                    "layout.host_memory_bytes = {memory}: out of core a task needs {least_room} tiles of {each} bytes"
                ))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_machine_is_sound_and_unknown_keys_are_not() {
        let machine = Cluster::built_in("tsubame2.5").unwrap();
        assert_eq!((machine.layout.processes_per_node, machine.tiles.rows), (3, 2048));
        assert_eq!(machine.room_tiles(), 156);
        assert!(Cluster::built_in("tsubame9").is_none());
        let refused = |text: &str| Cluster::from_toml(text, "m").unwrap_err();
        let unknown = refused(&TSUBAME.replace("[tiles]", "[tiles]\ncolour = 3"));
        assert!(unknown.to_string().contains("colour"), "{unknown}");
        assert_eq!(unknown.exit_code(), 2);
        let zero = refused(&TSUBAME.replace("processes_per_node = 3", "processes_per_node = 0"));
        assert!(zero.to_string().contains("layout.processes_per_node = 0"), "{zero}");
        let small = refused(&TSUBAME.replace("memory_bytes = 5_242_880_000", "memory_bytes = 66_000_000"));
        assert!(small.to_string().contains("66000000"), "{small}");
    }
}
