//! The `sunzi` program: arguments in, exit code out; all else is `sunzi_cli`.

use std::process::ExitCode;
use std::thread::Builder;

/// The stack of the thread that does all: that of a process may be limited to less.
const STACK_BYTES: usize = 4 << 20;

/// Counts bytes, so that `bench` can say what a call took at its peak.
#[global_allocator]
static ALLOCATOR: sunzi::advanced::store::CountingAllocator = sunzi::advanced::store::CountingAllocator;

fn main() -> ExitCode {
    sunzi::advanced::store::return_freed_memory();
    let run = || sunzi_cli::run(std::env::args_os());
    match Builder::new().name("main".into()).stack_size(STACK_BYTES).spawn(run).map(|thread| thread.join()) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        // Without room for another thread the stack of the process has to do.
        Err(_) => ExitCode::from(sunzi_cli::run(std::env::args_os())),
    }
}
