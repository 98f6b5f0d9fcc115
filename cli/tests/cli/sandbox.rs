//! A temporary folder to run the program in, and what it printed.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No command of these tests takes as long on any machine: what does hangs.
const PATIENCE: Duration = Duration::from_secs(600);

/// A multiplier of cases; 1 in `make test`.
pub fn effort() -> u32 {
    sunzi::advanced::testing::effort() as u32
}

/// What a run left behind.
#[derive(Debug)]
pub struct Output {
    /// Exit code; -1 where a signal ended the process.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A folder of its own for each test.
pub struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        Sandbox { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts `sunzi` with the words of `line` in the folder.
    pub fn start(&self, line: &str) -> Child {
        self.spawn(&mut Command::new(env!("CARGO_BIN_EXE_sunzi")), line)
    }

    /// Starts `sunzi` as [`Sandbox::start`], in a shell that has set `limits` before, such as `ulimit -f 100`.
    #[cfg(unix)]
    pub fn start_within(&self, limits: &str, line: &str) -> Child {
        let script = format!("ulimit -c 0; {limits}; exec \"$0\" \"$@\"");
        self.spawn(Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_sunzi")]), line)
    }

    fn spawn(&self, command: &mut Command, line: &str) -> Child {
        let command = command.args(line.split_whitespace()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits for a command to end; one that hangs is killed, and the test fails with what its threads were doing.
    pub fn finish(&self, child: Child) -> Output {
        let process = child.id();
        let (ended, end) = channel::<()>();
        let watch = std::thread::spawn(move || {
            let hangs = end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
            hangs.then(|| {
                let threads = threads_of(process);
                let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
                threads
            })
        });
        let output = child.wait_with_output().unwrap();
        drop(ended);
        if let Some(threads) = watch.join().unwrap() {
            panic!("a command hangs: {threads}, {output:?}");
        }
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn output(&self, line: &str) -> Output {
        self.finish(self.start(line))
    }

    /// Runs a command that must succeed without a word on standard error; returns what it printed.
    ///
    /// The one word allowed is that of `bench` about an OpenBLAS that does not know the CPU.
    pub fn run(&self, line: &str) -> String {
        let output = self.output(line);
        let words = output.stderr.lines().filter(|line| !line.starts_with("sunzi: OpenBLAS "));
        assert_eq!((output.code, words.collect::<String>().as_str()), (0, ""), "sunzi {line}");
        output.stdout
    }

    /// Runs a command that must fail with `code` and one line on standard error; returns that line.
    pub fn fail(&self, line: &str, code: i32) -> String {
        let output = self.output(line);
        assert_eq!((output.code, output.stdout.as_str()), (code, ""), "sunzi {line}: {output:?}");
        assert!(output.stderr.starts_with("sunzi: error: "), "sunzi {line}: {}", output.stderr);
        assert_eq!(output.stderr.matches('\n').count(), 1, "sunzi {line}: {}", output.stderr);
        assert!(output.stderr.ends_with('\n'), "sunzi {line}: {}", output.stderr);
        output.stderr
    }

    pub fn signal(&self, child: &Child, name: &str) {
        // A busy machine may take long to start the program: before it answers signals they have another effect.
        if let Some(bit) =
            ["INT", "TERM"].into_iter().zip([1, 14]).find(|(known, _)| *known == name).map(|found| found.1)
        {
            let start = Instant::now();
            while !answers(child.id(), bit) && start.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), contents).unwrap();
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    pub fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_slice(&self.bytes(name)).unwrap()
    }

    /// Names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// The command line of a process, and for each of its threads the name and where in the kernel it waits, where the
/// system tells them.
fn threads_of(process: u32) -> String {
    let folder = PathBuf::from(format!("/proc/{process}"));
    let line = std::fs::read(folder.join("cmdline")).unwrap_or_default();
    let mut told = String::from_utf8_lossy(&line).replace('\0', " ");
    for thread in std::fs::read_dir(folder.join("task")).into_iter().flatten().flatten() {
        let read = |name: &str| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        told += &format!("; {} waits in {}", read("comm").trim(), read("wchan"));
    }
    told
}

/// The least limit in bytes that a refusal names, as `22 MiB (23068672 bytes)` or as `1000 bytes`.
pub fn named_minimum(error: &str) -> u64 {
    let named = error.split("at least ").nth(1).unwrap();
    let bytes = named.split_once('(').map_or(named, |(_, bytes)| bytes);
    bytes.split(' ').next().unwrap().parse().unwrap()
}

/// Whether a process has a handler of the signal with this bit in its masks, as far as the system shows it.
fn answers(process: u32, bit: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{process}/status")) else { return true };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask >> bit & 1 == 1)
}
