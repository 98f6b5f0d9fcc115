//! Tile registers in plain Rust, as the manual describes them, and two ways to run the kernel on them: the same calls
//! as `amx` makes, and `amx` itself, whose instructions are emulated one by one where the CPU refuses them.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, LDTILECFG to TILEZERO.

use super::tiles::{Extent, STEP_GROUPS, TileColumns, TileRows, TileSums, Unit};
use super::vectors::PlainVector;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod trap;

/// Bytes of a row, and rows of a tile, in palette 1.
const ROW_BYTES: usize = 64;
const ROWS: usize = 16;

/// Eight tile registers.
pub struct TileRegisters {
    /// Rows and bytes of a row of each tile; `None` before a configuration is loaded.
    shapes: Option<[(usize, usize); 8]>,
    tiles: [[[u8; ROW_BYTES]; ROWS]; 8],
}

impl TileRegisters {
    /// Without a configuration.
    pub const fn new() -> TileRegisters {
        TileRegisters { shapes: None, tiles: [[[0; ROW_BYTES]; ROWS]; 8] }
    }

    /// LDTILECFG; panics where the CPU would raise a fault.
    pub fn configure(&mut self, bytes: &[u8; 64]) {
        if bytes[0] == 0 {
            self.release();
            return;
        }
        assert_eq!(bytes[0], 1, "palettes 0 and 1 exist");
        assert!(bytes[2..16].iter().all(|&byte| byte == 0), "reserved bytes are not 0");
        assert!(bytes[32..48].iter().chain(&bytes[56..]).all(|&byte| byte == 0), "there are only eight tiles");
        assert_eq!(bytes[1], 0, "a load was not interrupted");
        self.shapes = Some(std::array::from_fn(|tile| {
            let row_bytes = usize::from(u16::from_le_bytes([bytes[16 + 2 * tile], bytes[17 + 2 * tile]]));
            let rows = usize::from(bytes[48 + tile]);
            assert!(row_bytes <= ROW_BYTES && rows <= ROWS, "tile {tile}: {rows} rows of {row_bytes} bytes");
            assert_eq!(row_bytes == 0, rows == 0, "tile {tile} has no rows or no columns");
            (rows, row_bytes)
        }));
        self.tiles = [[[0; ROW_BYTES]; ROWS]; 8];
    }

    /// TILERELEASE.
    pub fn release(&mut self) {
        *self = TileRegisters::new();
    }

    fn shape(&self, tile: usize) -> (usize, usize) {
        let (rows, row_bytes) = self.shapes.expect("the tiles are configured")[tile];
        assert!(rows > 0 && row_bytes > 0, "tile {tile} is not configured");
        (rows, row_bytes)
    }

    /// TILEZERO.
    pub fn zero(&mut self, tile: usize) {
        self.shape(tile);
        self.tiles[tile] = [[0; ROW_BYTES]; ROWS];
    }

    /// TILELOADD of rows that `row` gives.
    pub fn load<'a>(&mut self, tile: usize, row: impl Fn(usize, usize) -> &'a [u8]) {
        let (rows, row_bytes) = self.shape(tile);
        self.tiles[tile] = [[0; ROW_BYTES]; ROWS];
        for number in 0..rows {
            self.tiles[tile][number][..row_bytes].copy_from_slice(row(number, row_bytes));
        }
    }

    /// TILESTORED to rows that `row` takes.
    pub fn store(&self, tile: usize, mut row: impl FnMut(usize, &[u8])) {
        let (rows, row_bytes) = self.shape(tile);
        for number in 0..rows {
            row(number, &self.tiles[tile][number][..row_bytes]);
        }
    }

    /// TDPBSUD, or TDPBSSD: products of the signed bytes of `rows` with those of `columns` are added to `sums`.
    pub fn multiply(&mut self, [sums, rows, columns]: [usize; 3], columns_are_signed: bool) {
        let [of_sums, of_rows, of_columns] = [sums, rows, columns].map(|tile| self.shape(tile));
        assert!(sums != rows && sums != columns && rows != columns, "tiles {sums}, {rows} and {columns} are not three");
        assert_eq!((of_sums.0, of_sums.1, of_rows.1), (of_rows.0, of_columns.1, 4 * of_columns.0), "shapes");
        for m in 0..of_sums.0 {
            for n in 0..of_sums.1 / 4 {
                let word: &mut [u8; 4] = &mut self.tiles[sums][m][4 * n..][..4].try_into().unwrap();
                let mut sum = i32::from_le_bytes(*word);
                for k in 0..of_columns.0 {
                    for byte in 0..4 {
                        let (a, b) = (self.tiles[rows][m][4 * k + byte], self.tiles[columns][k][4 * n + byte]);
                        let b = if columns_are_signed { i32::from(b as i8) } else { i32::from(b) };
                        sum = sum.wrapping_add(i32::from(a as i8) * b);
                    }
                }
                self.tiles[sums][m][4 * n..][..4].copy_from_slice(&sum.to_le_bytes());
            }
        }
    }
}

/// The unit of `amx`, call by call.
pub struct Emulated;

impl Unit for Emulated {
    type Vectors = PlainVector;

    fn multiply<const SIGNED: bool>(rows: &[TileRows], columns: &[TileColumns], extent: Extent, sums: &mut TileSums) {
        let mut machine = TileRegisters::new();
        machine.configure(&CONFIGURATION);
        (0..4).for_each(|tile| machine.zero(tile));
        let steps = extent.groups.div_ceil(STEP_GROUPS);
        for (rows, columns) in rows[..steps].iter().zip(&columns[..steps]) {
            for half in 0..2 {
                machine.load(4 + half, |row, _| bytemuck::cast_slice(&rows[16 * half + row]));
                machine.load(6 + half, |row, _| bytemuck::cast_slice(&columns[half][row]));
            }
            for tile in 0..4 {
                machine.multiply([tile, 4 + tile / 2, 6 + tile % 2], SIGNED);
            }
        }
        for tile in 0..4 {
            machine.store(tile, |row, bytes| {
                let out = &mut sums[16 * (tile / 2) + row][16 * (tile % 2)..][..16];
                bytemuck::cast_slice_mut::<i32, u8>(out).copy_from_slice(bytes);
            });
        }
    }
}

/// Palette 1, and eight tiles of 16 rows of 64 bytes.
const CONFIGURATION: [u8; 64] = {
    let mut bytes = [0; 64];
    bytes[0] = 1;
    let mut tile = 0;
    while tile < 8 {
        (bytes[16 + 2 * tile], bytes[48 + tile]) = (64, 16);
        tile += 1;
    }
    bytes
};

#[cfg(target_arch = "x86_64")]
#[test]
fn the_configuration_is_that_of_the_manual() {
    assert_eq!(*super::amx::configuration(), CONFIGURATION);
}

#[test]
fn the_emulated_tiles_keep_to_their_limits() {
    let refused = |change: &dyn Fn(&mut [u8; 64])| {
        let mut bytes = CONFIGURATION;
        change(&mut bytes);
        std::panic::catch_unwind(move || TileRegisters::new().configure(&bytes)).is_err()
    };
    assert!(!refused(&|_| {}));
    assert!(!refused(&|bytes| bytes[0] = 0));
    assert!(refused(&|bytes| bytes[0] = 2));
    assert!(refused(&|bytes| bytes[48] = 17));
    assert!(refused(&|bytes| bytes[16] = 65));
    assert!(refused(&|bytes| bytes[17] = 1));
    assert!(refused(&|bytes| bytes[48] = 0));
    assert!(refused(&|bytes| bytes[56] = 1));
    assert!(refused(&|bytes| bytes[32] = 1));
    assert!(refused(&|bytes| bytes[2] = 1));
    // A tile of 3 rows of 8 bytes times one of 2 groups of 5 columns, all bytes -1: unsigned 255 on the right.
    let mut bytes = CONFIGURATION;
    (bytes[16], bytes[48]) = (20, 3);
    (bytes[18], bytes[49]) = (8, 3);
    (bytes[20], bytes[50]) = (20, 2);
    for signed in [false, true] {
        let mut machine = TileRegisters::new();
        machine.configure(&bytes);
        machine.zero(0);
        machine.load(1, |_, length| &[0xff; ROW_BYTES][..length]);
        machine.load(2, |_, length| &[0xff; ROW_BYTES][..length]);
        machine.multiply([0, 1, 2], signed);
        let mut stored = 0;
        machine.store(0, |_, row| {
            stored += 1;
            let words = row.chunks_exact(4).map(|word| i32::from_le_bytes(word.try_into().unwrap()));
            assert!(words.eq([if signed { 8 } else { -8 * 255 }; 5]));
        });
        assert_eq!(stored, 3);
    }
}
