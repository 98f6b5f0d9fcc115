//! The pages: what they show is what the program does.
//!
//! Shell blocks (`sh`) are run, sessions (`console`) are run and their output compared, page by page in one folder, so
//! that a later block finds the files of an earlier one. `SUNZI_WRITE_PAGES=1` writes what is said now into the pages.

mod mask;
mod page;

use super::sandbox::Sandbox;
use page::{Block, Page};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The pages whose blocks are run.
const PAGES: [&str; 16] = [
    "docs/OUT_OF_CORE.md",
    "README.md",
    "docs/INSTALL.md",
    "docs/CLUSTER.md",
    "docs/TUTORIAL.md",
    "docs/COOKBOOK.md",
    "docs/TROUBLESHOOTING.md",
    "docs/PRECISION.md",
    "docs/FORMATS.md",
    "docs/SDP.md",
    "docs/DEVICES.md",
    "docs/SIMULATION.md",
    "docs/BENCHMARKS.md",
    "docs/history/measurements.md",
    "docs/PYTHON.md",
    "docs/C_API.md",
];

/// What other steps of the suite run, by the first word: `.ci/c-examples` the installation, `.ci/python-tests` the
/// wheel. Here each must name a target of the Makefile, a package or a file that there is.
const ELSEWHERE: [&str; 9] = ["make", "cargo", "pip", "cc", "c++", "mpicc", "git", "scp", "ssh"];

/// What a machine of the suite need not have, or what takes too long there: the arguments are checked and no more.
const TOO_MUCH: [&str; 7] = [
    " --device 0",
    " --device all",
    "--device-memory 10G",
    "sunzi bench",
    "sunzi simulate",
    "sunzi demo",
    "sunzi gpu-check",
];

/// Starts the program for MPI's processes, where the build has ranks.
const LAUNCHER: &str = "mpirun";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn writing() -> bool {
    std::env::var_os("SUNZI_WRITE_PAGES").is_some()
}

/// A folder in which the commands of a page run as a reader's: `sunzi` is on the path, the shell is `sh`.
struct Reader {
    sandbox: Sandbox,
    /// Exit code of the command before, for a reader who asks `echo $?`.
    last: Cell<i32>,
}

impl Reader {
    fn shell(&self, line: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_sunzi"));
        let mut path = program.parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("exec 2>&1; (exit {}); {line}", self.last.get())])
            .current_dir(self.sandbox.path("."))
            .env("PATH", path);
        command.env("HOME", self.sandbox.path(".")).env_remove("SUNZI_WRITE_PAGES");
        // More ranks than processors, as whoever runs the tests.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
            .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
            .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
        command.output().unwrap()
    }
}

/// Whether the commands of this block can run here; what cannot is said.
fn runs_here(page: &str, block: &Block) -> bool {
    let words = block.commands().map(|command| page::first_word(&command.line).to_string()).collect::<Vec<_>>();
    let has_launcher = cfg!(feature = "mpi") && Command::new(LAUNCHER).arg("--version").output().is_ok();
    if words.iter().any(|word| ELSEWHERE.contains(&word.as_str())) {
        return false;
    }
    if words.iter().any(|word| word == LAUNCHER) && !has_launcher {
        println!("skipped: {page}, line {}: the commands of ranks: no {LAUNCHER}, or a build without MPI", block.line);
        return false;
    }
    true
}

/// Runs one command: its exit code and what it said.
fn said(reader: &Reader, page: &str, line: usize, command: &str) -> (i32, String) {
    let output = reader.shell(command);
    let text = String::from_utf8(output.stdout).unwrap();
    let code = output.status.code().unwrap_or(-1);
    assert!(code != 70 && code >= 0, "{page}:{line}: {command}: {code}\n{text}");
    reader.last.set(code);
    (code, text)
}

/// Runs a page from its beginning; says which outputs differ, and corrects them where that is asked for.
fn check(name: &str) -> Vec<String> {
    let path = root().join(name);
    let Ok(text) = std::fs::read_to_string(&path) else { return Vec::new() };
    let mut page = Page::read(&text);
    let reader = Reader { sandbox: Sandbox::new(), last: Cell::new(0) };
    for (file, text) in page.files() {
        reader.sandbox.write(&file, text);
    }
    let mut wrong = Vec::new();
    for at in 0..page.blocks.len() {
        let block = page.blocks[at].clone();
        if !runs_here(name, &block) {
            continue;
        }
        for command in block.commands() {
            if TOO_MUCH.iter().any(|part| command.line.contains(part)) {
                let words = command.line.split_whitespace().skip_while(|word| *word != "sunzi").map(Into::into);
                wrong.extend(
                    sunzi_cli::check_arguments(words).err().map(|error| format!("{name}:{}: {error}", command.at)),
                );
                continue;
            }
            let (code, text) = said(&reader, name, command.at, &command.line);
            match command.expected {
                None if code != 0 => {
                    wrong.push(format!("{name}:{}: {} ends with {code}:\n{text}", command.at, command.line))
                }
                None => {}
                Some(expected) if mask::matches(&expected, &text) => {}
                Some(expected) => {
                    let shown = format!("-- the page has\n{expected}\n-- the program says\n{text}");
                    wrong.push(format!("{name}:{}: {}\n{shown}", command.at, command.line));
                    page.correct(command.at, &text);
                }
            }
        }
    }
    if writing() && !wrong.is_empty() {
        std::fs::write(path, page.text()).unwrap();
    }
    wrong
}

/// Each page on its own thread of the test program: one test a page would not find pages that are added.
#[test]
fn the_commands_of_the_pages_run_as_written() {
    let wrong = PAGES.iter().flat_map(|name| check(name)).collect::<Vec<_>>();
    assert!(wrong.is_empty() || writing(), "{}\nSUNZI_WRITE_PAGES=1 writes what is said now", wrong.join("\n"));
}

/// Every page with a block of commands is among those that are run.
#[test]
fn no_page_with_commands_is_left_out() {
    let mut found = 0;
    let pages = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    for path in pages.filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let name = format!("docs/{}", path.file_name().unwrap().to_str().unwrap());
        let page = Page::read(&std::fs::read_to_string(&path).unwrap());
        if !page.blocks.is_empty() {
            assert!(PAGES.contains(&name.as_str()), "{name} has commands: it belongs into the list of pages");
            found += 1;
        }
    }
    assert!(found >= 4, "{found}");
}

/// What other steps run: targets of make exist, packages that cargo is to install too.
#[test]
fn commands_of_other_tools_name_what_there_is() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let mut seen = 0;
    for name in PAGES {
        let Ok(text) = std::fs::read_to_string(root().join(name)) else { continue };
        for command in Page::read(&text).blocks.iter().flat_map(Block::commands) {
            let words = command.line.split_whitespace().collect::<Vec<_>>();
            let place = format!("{name}:{}: {}", command.at, command.line);
            match words.iter().position(|word| *word == "make" || *word == "cargo") {
                Some(at) if words[at] == "make" => {
                    let targets = words[at + 1..].iter().filter(|word| !word.contains('=') && !word.starts_with('-'));
                    for target in targets {
                        assert!(makefile.contains(&format!("\n{target}:")), "{place}: no target {target}");
                        seen += 1;
                    }
                }
                Some(at) => {
                    let folder = words[at..].iter().skip_while(|word| **word != "--path").nth(1);
                    assert!(folder.is_none_or(|folder| root().join(folder).join("Cargo.toml").exists()), "{place}");
                    seen += 1;
                }
                None => {}
            }
        }
    }
    assert!(seen >= 4, "{seen}");
}

/// The page of options is that of the program.
#[test]
fn the_page_of_options_is_current() {
    let path = root().join("docs/OPTIONS.md");
    let wanted = sunzi_cli::options_page();
    if writing() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    let first = found.lines().zip(wanted.lines()).position(|(found, wanted)| found != wanted);
    assert!(found == wanted, "docs/OPTIONS.md differs from line {first:?}: SUNZI_WRITE_PAGES=1 writes it anew");
}

/// The cells of the table below a heading, row by row.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let rows = page.split(&format!("\n## {heading}\n")).nth(1).unwrap();
    let rows =
        rows.lines().skip_while(|line| !line.starts_with("|---")).skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect()).collect()
}

/// The figures that the README quotes are those of the tables.
#[test]
fn the_readme_quotes_the_tables() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap().replace('\n', " ");
    let page = std::fs::read_to_string(root().join("docs/BENCHMARKS.md")).unwrap();
    let products = table(&page, "SYRK, one thread");
    let rounded = |cell: &str, places: usize| {
        let number = cell.split_whitespace().next().unwrap().parse::<f64>().unwrap();
        format!("{number:.places$}")
    };
    let syrk = products.iter().find(|row| row[0] == "4000 x 1000, 1024").unwrap();
    let factors = table(&page, "Cholesky");
    let cholesky = factors.iter().find(|row| row[0] == "1000, 1024").unwrap();
    let milliseconds = rounded(&cholesky[2], 0).parse::<f64>().unwrap();
    let wanted = [
        format!("at 1024 bits takes {} s: {} times faster", rounded(&syrk[2], 1), rounded(&syrk[4], 0)),
        format!("SDPB's algorithm and {} times faster than FLINT", rounded(&syrk[5], 0)),
        format!("takes {:.2} s, {} times faster than FLINT's", milliseconds / 1000.0, cholesky[3]),
    ];
    for words in wanted {
        assert!(readme.contains(&words), "the README does not say: {words}");
    }
}

/// One statement of the range of precision, on every page and true of every kernel.
#[test]
fn the_range_of_precision_is_that_of_the_kernels() {
    let said = Sandbox::new().run("info");
    let reach = |line: &str| line.split_once("up to ")?.1.split_once(" bits")?.0.parse::<u32>().ok();
    let reaches = said.lines().filter_map(reach).collect::<Vec<_>>();
    assert!(reaches.len() >= 2 && reaches.iter().all(|&bits| bits >= 5000), "{said}");
    for name in ["README.md", "src/lib.rs", "bindings/python/README.md", "bindings/python/python/sunzi/__init__.py"] {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        assert!(text.contains("2 to 5000 bits"), "{name}");
    }
}

/// Every error of the library is explained on the page of messages: its longest piece that is always the same is there.
#[test]
fn every_message_is_explained() {
    let page = std::fs::read_to_string(root().join("docs/TROUBLESHOOTING.md")).unwrap();
    let source = std::fs::read_to_string(root().join("kernels/src/error.rs")).unwrap();
    let mut seen = 0;
    for text in source.split("#[error(").skip(1) {
        let text = text.trim_start().trim_start_matches('"').split('"').next().unwrap();
        let text = text.split("\\\n").map(str::trim_start).collect::<String>();
        let fixed = text.split('{').map(|piece| piece.split_once('}').map_or(piece, |(_, rest)| rest));
        let words = fixed.max_by_key(|words| words.len()).unwrap().trim();
        assert!(page.contains(words), "docs/TROUBLESHOOTING.md has nothing on: {words}");
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}
