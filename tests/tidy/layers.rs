//! The layers of each package, and the border between the two packages of the library.
//!
//! A module knows those below it in its package, and all of the packages that its own stands on.

use super::scan::File;
use super::{enforce, root};
use std::collections::BTreeSet;
use std::fs;

/// The modules of a package, lowest first; a module knows none of its own row, and those above it here.
type Layers = &'static [&'static [&'static str]];

/// The layers of the package of the kernels, which knows no other package of this tree.
const KERNELS: Layers =
    &[&["error", "testing"], &["math", "store"], &["matrix", "device"], &["tile"], &["plan", "runtime"], &["kernels"]];

/// The layers of the library, which knows the package of the kernels and calls its modules by names of its own crate.
const LIBRARY: Layers = &[
    &["options"],
    &["comm", "storage"],
    &["context"],
    &["drive", "io", "site"],
    &["gallery"],
    &["ops"],
    &["advanced", "batch", "blas", "devices", "eigenvalue", "estimate", "plans", "report", "sparse"],
];

/// What modules of the library do not use of the package of the kernels, although it lies below all of them.
const UNUSED_BELOW: [(&str, &[&str]); 3] = [
    ("options", &["math", "store", "matrix", "device", "tile", "plan", "runtime", "kernels"]),
    ("comm", &["kernels"]),
    ("storage", &["kernels"]),
];

/// The layers of what commands share, which knows the library.
const SESSION: Layers = &[&["report", "plot", "units"], &["memory"], &["engine"], &["session"], &["trace"]];

/// The layers of the laboratory, which knows both.
const LAB: Layers =
    &[&["baselines"], &["machine"], &["bench", "forecast", "simulate"], &["conformance"], &["gpu_check"]];

/// The layers of the front end, which knows the library.
const FRONT_END: Layers = &[
    &["random", "chunks", "sum", "small"],
    &["sparse", "dense", "partition"],
    &["gallery", "market", "engine"],
    &["front"],
    &["lobpcg"],
];

/// The layers of the solver, which knows the library.
const SOLVER: Layers = &[
    &["balance", "calls", "forms"],
    &["numbers", "proof", "ranks", "workers"],
    &["block"],
    &["problem"],
    &["options", "polynomial"],
    &["read", "iterate"],
    &["certify", "checkpoint", "output", "pace"],
];

/// The layers of the program, which knows all of these but the front end.
const PROGRAM: Layers = &[
    &["args", "files", "number", "output"],
    &["operands", "ranks", "signals", "triangles"],
    &["progress"],
    &["session"],
    &["input"],
    &["rank_memory"],
    &["commands"],
];

/// A package: the folder of its sources, its layers, and those of the package whose names it brings in as its own.
struct Room {
    folder: &'static str,
    layers: Layers,
    below: Layers,
}

const ROOMS: [Room; 7] = [
    Room { folder: "kernels/src/", layers: KERNELS, below: &[] },
    Room { folder: "src/", layers: LIBRARY, below: KERNELS },
    Room { folder: "session/src/", layers: SESSION, below: &[] },
    Room { folder: "lab/src/", layers: LAB, below: &[] },
    Room { folder: "laf/src/", layers: FRONT_END, below: &[] },
    Room { folder: "sdp/src/", layers: SOLVER, below: &[] },
    Room { folder: "cli/src/", layers: PROGRAM, below: &[] },
];

fn layer_of(layers: Layers, module: &str) -> Option<usize> {
    layers.iter().position(|row| row.contains(&module))
}

/// A name that a package's `lib.rs` re-exports, and the module that it comes from.
struct Reexport {
    folder: &'static str,
    name: String,
    module: String,
}

/// What the `pub use` lines of the two packages of the library re-export.
fn reexports() -> Vec<Reexport> {
    let of_package = |folder: &'static str| {
        let text = fs::read_to_string(root().join(folder).join("lib.rs")).unwrap();
        let imports = File::new("lib.rs", &text).imports().into_iter().filter(|import| import.public);
        let named = imports.filter(|import| import.path.len() > 1);
        named.map(move |import| Reexport { folder, name: import.name, module: import.path[0].clone() })
    };
    ["src/", "kernels/src/"].into_iter().flat_map(of_package).collect()
}

/// Every `crate::` path of a file must lead to a lower layer or stay in its own top module.
fn layer_violations(file: &File, reexports: &[Reexport]) -> Vec<String> {
    let Some(room) = ROOMS.iter().find(|room| file.path.starts_with(room.folder)) else { return Vec::new() };
    let inside = &file.path[room.folder.len()..];
    let own = inside.split(['/', '.']).next().unwrap();
    if ["lib", "main"].contains(&own) {
        return Vec::new();
    }
    let Some(own_layer) = layer_of(room.layers, own) else {
        return vec![format!("{}: module '{own}' has no place in the layer list", file.path)];
    };
    let unused = UNUSED_BELOW.iter().find(|(module, _)| room.folder == "src/" && *module == own);
    let unused = unused.map_or(&[][..], |(_, unused)| unused);
    let mut found = Vec::new();
    for (line, name) in file.crate_paths() {
        let reexport = reexports.iter().find(|reexport| reexport.folder == room.folder && reexport.name == name);
        let module = reexport.map_or(name.as_str(), |reexport| &reexport.module);
        let is_lower = layer_of(room.layers, module).is_some_and(|layer| layer < own_layer);
        let is_below = layer_of(room.below, module).is_some() && !unused.contains(&module);
        if module != own && !is_lower && !is_below {
            found.push(format!("{}:{line}: layer '{own}' must not know 'crate::{name}'", file.path));
        }
    }
    let depth = inside.matches('/').count() + usize::from(!inside.ends_with("mod.rs"));
    for (line, supers) in file.super_chains() {
        if supers >= depth {
            found.push(format!("{}:{line}: 'super' leaves the module '{own}'; write the crate path", file.path));
        }
    }
    found
}

/// The package of the kernels names nothing above it, and all others reach it through the library: only `src/lib.rs`
/// names it, and what others get of it is what the library shows them.
fn border_violations(file: &File) -> Vec<String> {
    let (other, why) = match file.path.as_str() {
        "src/lib.rs" => return Vec::new(),
        path if path.starts_with("kernels/") => ("sunzi", "the package of the kernels must not know the library"),
        _ => ("sunzi_kernels", "only src/lib.rs names the package of the kernels"),
    };
    let as_crate = file.words(other).into_iter().filter(|word| {
        let rest = word.rest.trim_start();
        other == "sunzi_kernels" || rest.starts_with("::") || word.before.trim_end().ends_with("use")
    });
    as_crate.map(|word| format!("{}:{}: {why}", file.path, word.line)).collect()
}

#[test]
fn layers_know_only_lower_layers() {
    let reexports = reexports();
    for (folder, name, module) in [("src/", "Matrix", "matrix"), ("kernels/src/", "Error", "error")] {
        let found = reexports.iter().find(|reexport| reexport.folder == folder && reexport.name == name);
        assert!(found.is_some_and(|reexport| reexport.module == module), "{folder}: {name}");
    }
    enforce(|file| layer_violations(file, &reexports));
}

#[test]
fn the_kernels_lie_behind_the_library() {
    enforce(border_violations);
}

/// The names that `src/lib.rs` brings in from the package of the kernels are those of its layers, all of them.
#[test]
fn the_library_brings_in_all_layers_of_the_kernels() {
    let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let imports = File::new("src/lib.rs", &text).imports();
    let names = imports.iter().filter(|import| import.path[0] == "sunzi_kernels").map(|import| &*import.name);
    assert_eq!(names.collect::<BTreeSet<_>>(), KERNELS.concat().into_iter().collect());
}

/// Each rule finds a violation planted for it, and nothing in the same code done well.
#[test]
fn layers_and_the_border_find_planted_violations() {
    let reexport = |folder, name: &str, module: &str| Reexport { folder, name: name.into(), module: module.into() };
    let reexports = [reexport("src/", "Context", "context"), reexport("kernels/src/", "Error", "error")];
    let layers = |path: &str, text: &str| layer_violations(&File::new(path, text), &reexports).len();
    assert_eq!(layers("kernels/src/math/a.rs", "use crate::ops::syrk;\n"), 1);
    assert_eq!(layers("kernels/src/math/a.rs", "use crate::{error::Error, plan::{Job, Cut}, Context};\n"), 2);
    assert_eq!(layers("kernels/src/math/a.rs", "use crate::{Error, math::b, testing::effort};\n"), 0);
    assert_eq!(layers("kernels/src/store/a.rs", "fn f() { crate::kernels::f() }\n"), 1);
    assert_eq!(layers("kernels/src/math/a.rs", "use super::super::plan;\n"), 1);
    assert_eq!(layers("kernels/src/newcomer.rs", ""), 1);
    // The border between the two packages: up is forbidden, down is free but for what is listed.
    assert_eq!(layers("kernels/src/kernels/a.rs", "use crate::context::Context;\n"), 1);
    assert_eq!(layers("kernels/src/kernels/a.rs", "use crate::comm::Transport;\n"), 1);
    assert_eq!(layers("src/drive/a.rs", "use crate::{kernels::Engine, math::float, runtime::protocol};\n"), 0);
    assert_eq!(layers("src/comm/a.rs", "use crate::{kernels::Engine, store::Buffer};\n"), 1);
    assert_eq!(layers("src/options.rs", "use crate::{error::Error, math::float};\n"), 1);
    // A module of the lower package has no place in the upper one.
    assert_eq!(layers("src/math/a.rs", ""), 1);
    assert_eq!(layers("src/context/a.rs", "use crate::ops::syrk;\nuse crate::drive::run;\n"), 2);
    assert_eq!(layers("src/newcomer.rs", ""), 1);
    assert_eq!(layers("session/src/units.rs", "use crate::session::Session;\n"), 1);
    assert_eq!(layers("cli/src/commands/a.rs", "use crate::session::Session;\nuse super::b;\n"), 0);
    assert_eq!(layers("cli/src/session.rs", "use crate::commands::run;\n"), 1);
    let tested = "// crate::ops\n#[cfg(test)]\nmod tests {\n    use crate::ops::syrk;\n}\n";
    assert_eq!(layers("kernels/src/math/a.rs", &format!("use crate::error::Error;\nuse super::b;\n{tested}")), 0);

    let border = |path: &str, text: &str| border_violations(&File::new(path, text)).len();
    assert_eq!(border("kernels/src/kernels/a.rs", "use sunzi::Context;\nfn f() { sunzi::syrk() }\n"), 2);
    assert_eq!(border("kernels/build.rs", "use sunzi as library;\n"), 1);
    assert_eq!(border("kernels/src/a.rs", "/// As `sunzi::syrk`.\nfn f() { name(\"sunzi\", sunzi) }\n"), 0);
    assert_eq!(border("src/ops/a.rs", "use sunzi_kernels::math::float;\n"), 1);
    assert_eq!(border("sdp/src/a.rs", "fn f() { sunzi_kernels::math::bound::f() }\n"), 1);
    assert_eq!(border("src/lib.rs", "use sunzi_kernels::{device, error};\n"), 0);
    assert_eq!(border("lab/src/a.rs", "use sunzi::Matrix; // not sunzi_kernels\n"), 0);
}
