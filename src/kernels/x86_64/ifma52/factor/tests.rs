//! Tile kernels against integers.

use super::*;
