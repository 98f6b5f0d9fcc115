//! Jobs of processes: finding `mpirun`, starting it in folders of its own, ending it in time, cleaning up.
//!
//! Depends on: Open MPI and MPICH (with its relatives). Independent of: what the processes do.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// First argument of this program as a rank; the case and the number of ranks follow.
pub const RANK_FLAG: &str = "--be-a-rank";

/// Longest time that a job may take where its processes have the processors for themselves; most take a few seconds,
/// the longest 20.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// At most this many times as long where other work runs at the same time.
const MOST_TIMES: u32 = 8;

/// The time that a job may take under the load of the last minute: ranks that wait for each other share the processors
/// with all other work.
fn time_limit() -> Duration {
    let average = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = average.split(' ').next().and_then(|load| load.parse::<f64>().ok()).unwrap_or(1.0);
    let processors = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
    TIME_LIMIT.mul_f64((load / processors).clamp(1.0, MOST_TIMES.into()))
}

/// How long a launcher may go on after all of its ranks have died. That of Open MPI 4.1 may lock itself up then: where
/// a rank is killed while MPI starts, `mpirun` may wait for a lock in `PMIx_server_finalize` that nobody gives back.
const LAUNCHER_LIMIT: Duration = Duration::from_secs(10);

/// Folder of the memory that processes share.
pub const SHARED_MEMORY: &str = "/dev/shm";

/// The launcher of this machine.
pub struct Launcher {
    program: PathBuf,
    open_mpi: bool,
    version: String,
}

/// Processes to start.
pub struct Job {
    /// How many.
    pub ranks: usize,
    /// What they run.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables of the environment beside those that are inherited.
    pub variables: Vec<(String, String)>,
}

/// How a job ended.
pub struct Ended {
    what: String,
    /// Of the launcher; `None` where it had to be ended.
    pub status: Option<ExitStatus>,
    /// What all ranks wrote.
    pub output: String,
    /// What all ranks and the launcher wrote beside it.
    pub errors: String,
    /// Time that it took.
    pub took: Duration,
    /// Names in the shared memory that windows of this job left there.
    pub left: Vec<String>,
}

impl Job {
    /// This program as the ranks of a case.
    pub fn of_case(name: &str, ranks: usize) -> Job {
        let program = std::env::current_exe().expect("the path of this program");
        Job::of_program(program, ranks, &[RANK_FLAG, name, &ranks.to_string()])
    }

    /// Any program.
    pub fn of_program(program: impl Into<PathBuf>, ranks: usize, arguments: &[&str]) -> Job {
        let arguments = arguments.iter().map(OsString::from).collect();
        Job { ranks, program: program.into(), arguments, variables: Vec::new() }
    }
}

impl Launcher {
    /// The launcher that `MPIRUN` names, else `mpirun` on the path.
    pub fn find() -> Result<Launcher, String> {
        let program = std::env::var_os("MPIRUN").map_or(PathBuf::from("mpirun"), PathBuf::from);
        let answer = Command::new(&program).arg("--version").output();
        let answer = answer.map_err(|error| format!("no MPI launcher: {}: {error}", program.display()))?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let open_mpi = text.contains("Open MPI") || text.contains("OpenRTE");
        let version = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("an unknown MPI").trim().to_string();
        Ok(Launcher { program, open_mpi, version })
    }

    /// The launcher's own name for itself.
    pub fn name(&self) -> &str {
        &self.version
    }

    /// Runs `job` to its end, or until its time is over, and removes what it leaves behind.
    pub fn run(&self, job: &Job) -> Ended {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let folder = tempfile::Builder::new().prefix("sz").tempdir().expect("a folder for a job");
        let id = format!("mpi-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let shared = Folder::new(&Path::new(SHARED_MEMORY).join(id));
        let before = windows();
        let (output, errors) = (folder.path().join("output"), folder.path().join("errors"));
        let mut command = self.command(job, folder.path(), &shared.0);
        command.stdout(File::create(&output).unwrap()).stderr(File::create(&errors).unwrap());
        let start = Instant::now();
        let mut child = command.spawn().expect("the launcher was found before");
        let status = wait(&mut child, start, LAUNCHER_LIMIT);
        let took = start.elapsed();
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let left = windows_left().difference(&before).cloned().collect();
        let what = format!("{} {:?} on {} ranks", job.program.display(), job.arguments, job.ranks);
        Ended { what, status, output: read(&output), errors: read(&errors), took, left }
    }

    /// The launcher with all that makes it work as root, on few cores, and without traces outside our folders.
    fn command(&self, job: &Job, folder: &Path, shared: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.env("TMPDIR", folder);
        if self.open_mpi {
            command.args(["--oversubscribe", "--bind-to", "none"]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            // The kernel's copies between processes need rights that containers lack, and are slower than ours.
            command.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
            command.env("OMPI_MCA_btl_vader_backing_directory", shared);
            command.env("OMPI_MCA_osc_sm_backing_directory", shared);
        }
        command.args(["-n", &job.ranks.to_string()]).arg(&job.program).args(&job.arguments);
        command.envs(job.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Waits for the launcher; where its time is over it is asked to end its job, then killed, and `None` is returned. One
/// that goes on for longer than `limit` without any rank is killed: its job has ended, and failed.
pub fn wait(child: &mut Child, start: Instant, limit: Duration) -> Option<ExitStatus> {
    use rustix::process::{Pid, Signal, kill_process};
    let (mut asked, mut alone_since) = (false, None);
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return (!asked).then_some(status);
        }
        let waited = start.elapsed();
        if !has_dead_ranks_alone(child.id()) {
            alone_since = None;
        } else if alone_since.get_or_insert(waited).saturating_add(limit) < waited {
            let _ = child.kill();
        }
        if waited > TIME_LIMIT {
            let over = waited.saturating_sub(time_limit());
            if !over.is_zero() && !asked {
                asked = true;
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
            } else if over > Duration::from_secs(10) {
                let _ = child.kill();
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process has children, none of which lives.
fn has_dead_ranks_alone(launcher: u32) -> bool {
    let children = fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).unwrap_or_default();
    // The state stands behind the name, which is in brackets.
    let is_dead = |child: &str| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat"));
        stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
    };
    !children.trim().is_empty() && children.split_whitespace().all(is_dead)
}

impl Ended {
    /// Fails with all that the job wrote where it failed, hung, or left a window behind.
    pub fn expect_success(&self) {
        let fine = self.status.is_some_and(|status| status.success());
        assert!(fine, "{}", self.report());
        assert!(self.left.is_empty(), "windows {:?} were left by {}", self.left, self.what);
    }

    /// What a failed test should say.
    pub fn report(&self) -> String {
        let end = self.status.map_or("no end within its time".to_string(), |status| status.to_string());
        format!("{}: {end}\n--- output\n{}--- errors\n{}---", self.what, self.output, self.errors)
    }
}

/// A folder that goes with the value, and all in it.
struct Folder(PathBuf);

impl Folder {
    fn new(path: &Path) -> Folder {
        fs::create_dir_all(path).expect("a folder in the shared memory");
        Folder(path.to_path_buf())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Names of windows in the shared memory.
fn windows() -> BTreeSet<String> {
    let entries = fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("sunzi-")).collect()
}

/// Names of windows whose process is gone.
pub fn windows_left() -> BTreeSet<String> {
    let owner = |name: &str| name.split('-').nth(1).map(|owner| Path::new("/proc").join(owner));
    windows().into_iter().filter(|name| owner(name).is_some_and(|owner| !owner.exists())).collect()
}

/// Ends this rank when its launcher is gone, however that ends, and at the latest when nobody can be waiting for it.
pub fn end_with_parent() {
    std::thread::spawn(|| {
        std::thread::sleep(TIME_LIMIT * MOST_TIMES + Duration::from_secs(30));
        std::process::exit(102);
    });
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}
