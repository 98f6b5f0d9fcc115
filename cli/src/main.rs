//! The `sunzi` program: arguments in, exit code out; all else is `sunzi_cli`.

use std::process::ExitCode;

/// Counts bytes, so that `bench` can say what a call took at its peak.
#[global_allocator]
static ALLOCATOR: sunzi::advanced::store::CountingAllocator = sunzi::advanced::store::CountingAllocator;

fn main() -> ExitCode {
    ExitCode::from(sunzi_cli::run(std::env::args_os()))
}
