//! The `sunzi` program.

fn main() {
    println!("sunzi {}", env!("CARGO_PKG_VERSION"));
}
