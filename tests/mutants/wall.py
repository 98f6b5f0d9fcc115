#!/usr/bin/env python3
"""The wall of mutants: faults that the test suite must find.

mutants.txt has 40 faults of one or two lines each. They were chosen from the code alone, before the tests that must find
them were looked at. This script builds all of them at once in a copy of the tree, each behind a switch that the variable
SUNZI_MUTANT sets when a program runs, and runs the tests for each until one fails.

    tests/mutants/wall.py build            copy the tree, plant the mutants, compile all tests
    tests/mutants/wall.py run [01 02 ...]  run the tests for each mutant that has no result yet, or for those named
    tests/mutants/wall.py list             the results so far, as a table

A failure counts when the failing test fails once more by itself with the mutant, and passes without it. A program of tests
that does not end within its limit counts as a hang; the limit is ten times the seconds that it takes without a mutant, and
a minute. Results are kept in target/wall/results.json, so that a run that was stopped goes on where it was.
tests/mutants/caught.txt names the test that caught each mutant when the wall was run last: those tests are tried first.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WALL = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "wall"
TREE = WALL / "tree"
TARGET = WALL / "target"
RESULTS = WALL / "results.json"
PROGRAMS = WALL / "programs.json"
FEATURES = os.environ.get("FEATURES", "blas mpi cuda mpc")

# These look at the sources, which differ in the copy, or compare bits with a table: a catch of theirs does not count.
LEFT_OUT = {"tidy", "checksums", "header", "nvrtc"}

SWITCH = """

/// Which mutant is switched on.
#[doc(hidden)]
pub mod mutant_switch {
    use std::sync::atomic::{AtomicU32, Ordering};

    static CHOSEN: AtomicU32 = AtomicU32::new(u32::MAX);

    /// Whether it is this one.
    pub fn on(number: u32) -> bool {
        let mut chosen = CHOSEN.load(Ordering::Relaxed);
        if chosen == u32::MAX {
            chosen = std::env::var("SUNZI_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            CHOSEN.store(chosen, Ordering::Relaxed);
        }
        chosen == number
    }
}
"""


def mutants():
    """The blocks of mutants.txt, by number."""
    found = {}
    for block in (HERE / "mutants.txt").read_text().strip().split("\n\n"):
        fields = {}
        for line in block.splitlines():
            name, _, text = line.partition(":")
            text = text[1:] if text.startswith(" ") else text
            fields[name] = fields[name] + "\n" + text if name in fields else text
        found[fields["mutant"]] = fields
    return found


def caught_before():
    """The program and the test that caught each mutant when the wall was run last."""
    file = HERE / "caught.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    words = [line.split() for line in lines if line and not line.startswith("#")]
    return {line[0]: (line[1], line[2]) for line in words if len(line) >= 3}


def crate_root(path):
    """The file to which the switch of the crate of `path` is added."""
    folder = path.parent
    while folder.name != "src" or not (folder / "lib.rs").exists():
        folder = folder.parent
    return folder / "lib.rs"


def planted(text, mutant):
    """The file's text with the mutant behind its switch, or in place where it has a build of its own."""
    old, new = mutant["old"], mutant["new"]
    if text.count(old) != 1:
        sys.exit(f"error: mutant {mutant['mutant']}: its text is {text.count(old)} times in {mutant['file']}")
    if mutant["kind"] == "build":
        return text.replace(old, new)
    choice = f"if crate::mutant_switch::on({int(mutant['mutant'])}) {{ {new} }} else {{ {old} }}"
    return text.replace(old, choice if mutant["kind"] == "statement" else f"({choice})")


def environment():
    """That of the suite's builds."""
    read = ["bash", "-c", ". .ci/environment && env -0"]
    lines = subprocess.run(read, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    settings = dict(line.split("=", 1) for line in lines if "=" in line)
    settings |= {"CARGO_TARGET_DIR": str(TARGET), "CARGO_TERM_COLOR": "never"}
    settings.pop("SUNZI_MUTANT", None)
    libraries = subprocess.run(["rustc", "--print", "target-libdir"], capture_output=True, text=True, check=True)
    paths = [libraries.stdout.strip(), settings.get("LD_LIBRARY_PATH", "")]
    settings["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
    return settings


def copy_tree(chosen):
    """A fresh copy of the tree with these mutants in it; files that stay as they were keep their times."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    texts = {}
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            texts[name] = (ROOT / name).read_bytes()
    for mutant in chosen:
        texts[mutant["file"]] = planted(texts[mutant["file"]].decode(), mutant).encode()
    roots = {crate_root(ROOT / mutant["file"]).relative_to(ROOT) for mutant in mutants().values()}
    for root in roots:
        texts[str(root)] += SWITCH.encode()
    for name, content in texts.items():
        path = TREE / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            shutil.copymode(ROOT / name, path)
    shared = ROOT.parent / "shared"
    if shared.exists() and not (WALL / "shared").exists():
        (WALL / "shared").symlink_to(shared)


def compile_tests():
    """Compiles all tests of the copy; the programs, each with the folder of its package, or None where it does not compile."""
    command = ["cargo", "test", "--workspace", "--exclude", "sunzi-python", "--all-targets", "--no-run"]
    command += ["--features", FEATURES.replace(" ", ","), "--message-format", "json-render-diagnostics"]
    done = subprocess.run(command, cwd=TREE, env=environment(), stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return None
    programs = []
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message.get("executable") and message["profile"]["test"]:
            name, kind = message["target"]["name"], message["target"]["kind"][0]
            folder = str(Path(message["manifest_path"]).parent)
            if kind != "bench" and name not in LEFT_OUT:
                package = Path(folder).name if folder != str(TREE) else "sunzi"
                unit = kind not in ("test", "example")
                programs.append({"name": f"{package}/{'unit' if unit else name}", "folder": folder,
                                 "path": message["executable"]})
    return programs


class Run:
    """One run of a program of tests; ends at the first test that fails."""

    def __init__(self, program, number, limit, test=None):
        self.failed = None
        self.hung = False
        arguments = [program["path"]]
        own_harness = program["name"] in ("sunzi/mpi", "cli/ranks")
        if test:
            arguments += [test] if own_harness else ["--exact", test]
        settings = dict(environment(), SUNZI_MUTANT=str(number))
        begin = time.monotonic()
        child = subprocess.Popen(arguments, cwd=program["folder"], env=settings, stdin=subprocess.DEVNULL, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                 errors="replace")
        timer = threading.Timer(limit, lambda: self.end(child, True))
        timer.start()
        for line in child.stdout:
            match = re.match(r"test (\S+)(?: - should panic)? \.\.\. (.*)", line)
            if match and "FAILED" in match[2]:
                self.failed = match[1]
                self.end(child, False)
        self.status = child.wait()
        timer.cancel()
        self.seconds = time.monotonic() - begin
        if self.status != 0 and self.failed is None:
            self.failed = "hang" if self.hung else "end of the program"

    def end(self, child, hung):
        self.hung = hung
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def is_confirmed(program, number, failed, limit):
    """Whether that test fails by itself with the mutant, and passes without it."""
    if failed in ("hang", "end of the program"):
        return Run(program, 0, limit).failed is None
    return Run(program, number, limit, failed).failed is not None and Run(program, 0, limit, failed).failed is None


def look_for(number, mutant, programs, seconds):
    """The program and the test that fail with this mutant, or None."""
    by_name = {program["name"]: program for program in programs}
    tried, order = [], sorted(programs, key=lambda program: seconds.get(program["name"], 0.0))
    known = caught_before().get(mutant["mutant"])
    if known and known[0] in by_name:
        tried = [(by_name[known[0]], None if known[1] in ("hang", "end") else known[1])]
    package = mutant["file"].split("/src/")[0] if "/src/" in mutant["file"] else "sunzi"
    likely = [f"{Path(package).name}/unit"] + [f"{Path(package).name}/cli"] * (package == "cli")
    likely += ["sunzi/suite"] * (package in ("sunzi", "kernels"))
    near = [by_name[name] for name in likely if name in by_name]
    near += [program for program in order if program["name"].startswith(f"{Path(package).name}/") and program not in near]
    rest = [program for program in order if program not in near]
    for program, test in tried + [(program, None) for program in near + rest]:
        limit = 10 * seconds.get(program["name"], 60.0) + 60
        run = Run(program, number, limit, test)
        if run.failed and is_confirmed(program, number, run.failed, limit):
            return program["name"], run.failed
    return None


def build():
    chosen = [mutant for mutant in mutants().values() if mutant["kind"] != "build"]
    copy_tree(chosen)
    programs = compile_tests()
    if programs is None:
        sys.exit("error: the copy does not compile")
    RESULTS.unlink(missing_ok=True)
    PROGRAMS.write_text(json.dumps({"programs": programs, "seconds": {}}, indent=1))
    seconds = {}
    for program in programs:
        run = Run(program, 0, 1800)
        seconds[program["name"]] = run.seconds
        print(f"{program['name']}: {run.seconds:.1f} s without a mutant{', FAILED ' + run.failed if run.failed else ''}",
              flush=True)
        PROGRAMS.write_text(json.dumps({"programs": programs, "seconds": seconds}, indent=1))


def results():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def run(numbers):
    known = json.loads(PROGRAMS.read_text())
    found = results()
    listed = mutants()
    for number in numbers or [number for number in listed if number not in found]:
        mutant = listed[number]
        programs = known["programs"]
        begin = time.monotonic()
        if mutant["kind"] == "build":
            copy_tree([mutant])
            programs = compile_tests()
        # An assertion on constants is a test that the compiler runs.
        caught = look_for(int(number), mutant, programs, known["seconds"]) if programs else ["compiler", "assertion"]
        found[number] = caught or ["", "NOT CAUGHT"]
        print(number, *found[number], f"{time.monotonic() - begin:.0f} s", flush=True)
        RESULTS.write_text(json.dumps(found, indent=1))
        if mutant["kind"] == "build":
            copy_tree([other for other in listed.values() if other["kind"] != "build"])
            compile_tests()


def show():
    found = results()
    for number, mutant in mutants().items():
        print(f"{number}  {' '.join(found.get(number, ['no result yet']))}  # {mutant['area']}")
    caught = sum(1 for program, _ in found.values() if program)
    print(f"# {caught} of {len(mutants())} caught, {len(mutants()) - len(found)} without a result")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "run", "list"])
    parser.add_argument("numbers", nargs="*", help="numbers of mutants, as 01")
    arguments = parser.parse_args()
    WALL.mkdir(parents=True, exist_ok=True)
    {"build": build, "run": lambda: run(arguments.numbers), "list": show}[arguments.command]()


if __name__ == "__main__":
    main()
