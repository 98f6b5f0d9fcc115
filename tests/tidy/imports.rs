//! Who uses whom inside a package, and the circles in it.
//!
//! A *circle* is a set of two or more neighbours in one folder of which each uses each other one, directly or through
//! the rest. Neighbours are the files and folders that lie side by side; a file `x.rs` and the folder `x` beside it are
//! one, and a folder's `mod.rs` belongs to the folder itself. What counts as a use is a path that begins with `crate`,
//! `super`, `self` or a child module, in a `use` line or elsewhere, outside tests. A path through a re-export leads to
//! the file that is re-exported. A `pub use` is a use of what it shows, but for a folder's of what lies in it. `mod`
//! lines, and uses between a folder and what lies in it, do not count.

use super::scan::File;
use std::collections::{BTreeMap, BTreeSet};

/// The modules of one package, by path.
pub struct Package<'a> {
    /// The folder of its sources, without a slash behind.
    root: &'a str,
    modules: BTreeMap<Vec<String>, &'a File>,
    exports: BTreeMap<Vec<String>, Vec<Import>>,
}

/// One name that a file brings in or makes known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The path as it stands.
    pub path: Vec<String>,
    /// The name under which it is known; `*` for all names.
    pub name: String,
    /// Whether others can see it here.
    pub public: bool,
}

/// The module that a file is, or `None` for tests.
fn module_of(path: &str, root: &str) -> Option<Vec<String>> {
    let inside = path.strip_prefix(root)?.strip_suffix(".rs")?;
    let mut names = inside.split('/').map(str::to_string).collect::<Vec<_>>();
    if names.iter().any(|name| name == "tests" || name.ends_with("_tests")) {
        return None;
    }
    if ["mod", "lib", "main"].contains(&names.last()?.as_str()) {
        names.pop();
    }
    Some(names)
}

impl<'a> Package<'a> {
    /// The files below `root`, a folder such as `src/`.
    pub fn new(files: &'a [File], root: &'a str) -> Package<'a> {
        let modules = files.iter().filter_map(|file| Some((module_of(&file.path, root)?, file))).collect();
        let mut package = Package { root: root.trim_end_matches('/'), modules, exports: BTreeMap::new() };
        for (module, file) in &package.modules {
            let public = file.imports().into_iter().filter(|import| import.public).collect();
            package.exports.insert(module.clone(), public);
        }
        package
    }

    /// The module that `path`, read in `from`, leads to.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<Vec<String>> {
        let first = path.first()?;
        let (mut at, mut rest) = match first.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => (from.split_last()?.1.to_vec(), &path[1..]),
            name => {
                let child = [from, &[name.to_string()]].concat();
                self.modules.contains_key(&child).then_some((child, &path[1..]))?
            }
        };
        while let Some(name) = rest.first() {
            let child = [&at[..], std::slice::from_ref(name)].concat();
            if name == "super" {
                at.pop()?;
            } else if self.modules.contains_key(&child) {
                at = child;
            } else {
                return Some(self.exported(&at, name, depth).unwrap_or(at));
            }
            rest = &rest[1..];
        }
        Some(at)
    }

    /// The module that `module` re-exports `name` from.
    fn exported(&self, module: &[String], name: &str, depth: usize) -> Option<Vec<String>> {
        let exports = self.exports.get(module).filter(|_| depth < 8)?;
        let named = exports.iter().find(|export| export.name == name);
        self.resolve(module, &named?.path, depth + 1)
    }

    /// Pairs of modules of which the first uses the second.
    fn uses(&self) -> BTreeSet<(Vec<String>, Vec<String>)> {
        let mut found = BTreeSet::new();
        for (module, file) in &self.modules {
            let imported = file.imports().into_iter().map(|import| import.path);
            for path in imported.chain(file.inline_paths()) {
                if let Some(target) = self.resolve(module, &path, 0)
                    && target != *module
                {
                    found.insert((module.clone(), target));
                }
            }
        }
        found
    }

    /// All circles, each as a folder and the neighbours in it.
    pub fn circles(&self) -> Vec<String> {
        let uses = self.uses();
        let mut folders = BTreeMap::<&[String], BTreeSet<(&str, &str)>>::new();
        for (user, used) in &uses {
            let shared = user.iter().zip(used).take_while(|(left, right)| left == right).count();
            if let (Some(left), Some(right)) = (user.get(shared), used.get(shared)) {
                folders.entry(&user[..shared]).or_default().insert((left, right));
            }
        }
        let mut found = Vec::new();
        for (folder, edges) in folders {
            for group in groups(&edges) {
                let folder = folder.iter().fold(self.root.to_string(), |path, name| format!("{path}/{name}"));
                found.push(format!("{folder}: {}", group.join(" <-> ")));
            }
        }
        found
    }
}

/// Sets of two or more names that reach one another.
fn groups<'a>(edges: &BTreeSet<(&'a str, &'a str)>) -> Vec<Vec<&'a str>> {
    let names = edges.iter().flat_map(|&(left, right)| [left, right]).collect::<BTreeSet<_>>();
    let reached = |from: &'a str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            for &(_, next) in edges.iter().filter(|(left, _)| *left == at) {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reach = names.iter().map(|&name| (name, reached(name))).collect::<BTreeMap<_, _>>();
    let mut found = Vec::<Vec<&str>>::new();
    for &name in &names {
        let group = names.iter().copied().filter(|other| reach[name].contains(other) && reach[other].contains(name));
        let group = group.collect::<Vec<_>>();
        if group.len() > 1 && !found.contains(&group) {
            found.push(group);
        }
    }
    found
}
