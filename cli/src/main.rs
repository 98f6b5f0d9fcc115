//! The `sunzi` program: arguments in, exit code out; all else is `sunzi_cli`.

use std::process::ExitCode;
use std::thread::Builder;
use sunzi::advanced::store::{CountingAllocator, address_space, end_where_refused, return_freed_memory};

/// The stack of the thread that does all: that of a process may be limited to less.
const STACK_BYTES: usize = 4 << 20;

/// The memory that the smallest command takes in addition to it.
const SPARE_BYTES: usize = 4 << 20;

/// Counts bytes, so that `bench` can report the peak of a call.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    return_freed_memory();
    end_where_refused();
    // A thread without room for its stack would end the process; without any thread the stack of the process has to do.
    if let Err(error) = address_space(STACK_BYTES + SPARE_BYTES) {
        eprintln!("sunzi: error: {error}");
        return ExitCode::from(error.exit_code());
    }
    let run = || sunzi_cli::run(std::env::args_os());
    match Builder::new().name("main".into()).stack_size(STACK_BYTES).spawn(run).map(|thread| thread.join()) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(_) => ExitCode::from(sunzi_cli::run(std::env::args_os())),
    }
}
