//! Circles between the files of a crate.
//!
//! A file depends on another if it names an item that the other defines, by a path or an import; a re-exported item counts
//! where it is defined. `mod x;` and `pub use` alone are no dependences.

use crate::layering::LAYERS;
use crate::modules::{self, Module};
use monopour_analysis::components::components;
use std::collections::{BTreeMap, BTreeSet};

/// Most files of one circle.
const MAX_FILES: usize = 4;

/// A crate: a package, or one of its programs.
pub struct Crate {
    package: &'static str,
    modules: Vec<Module>,
}

/// The crates of the repository, from its Rust files.
pub fn crates(files: &[(String, String)]) -> Vec<Crate> {
    let mut by_root: BTreeMap<(&str, String), Vec<Module>> = BTreeMap::new();
    for (path, text) in files {
        let Some(layer) = LAYERS.iter().find(|l| path.starts_with(l.folder)) else { continue };
        let Some(inner) = path[layer.folder.len()..].strip_prefix("src/").and_then(|p| p.strip_suffix(".rs")) else {
            continue;
        };
        // `bin/NAME/` holds a program.
        let root_len = match inner.strip_prefix("bin/").and_then(|rest| rest.find('/')) {
            Some(at) => "bin/".len() + at + 1,
            None => 0,
        };
        let (root, inner) = inner.split_at(root_len);
        by_root.entry((layer.package, root.to_owned())).or_default().push(modules::parse(path, inner, text));
    }
    by_root.into_iter().map(|((package, _), modules)| Crate { package, modules }).collect()
}

/// One line for each circle that is too large.
pub fn check(crates: &[Crate]) -> Vec<String> {
    let mut out = Vec::new();
    for a_crate in crates {
        let large = a_crate.circles().into_iter().filter(|files| files.len() > MAX_FILES);
        out.extend(large.map(|files| {
            let count = files.len();
            format!("{}: {count} files in a circle, at most {MAX_FILES}: {}", a_crate.package, files.join(" "))
        }));
    }
    out
}

/// The largest circle of each crate, with the names behind each dependence in it.
pub fn report(crates: &[Crate]) -> Vec<String> {
    let mut out = Vec::new();
    for a_crate in crates {
        let Some(largest) = a_crate.circles().into_iter().max_by_key(Vec::len) else { continue };
        out.push(format!("{}: {} files in the largest circle", a_crate.package, largest.len()));
        for (from, to, names) in a_crate.dependences() {
            if largest.contains(&from) && largest.contains(&to) {
                out.push(format!("  {from} -> {to}: {}", names.into_iter().collect::<Vec<_>>().join(" ")));
            }
        }
    }
    out
}

/// The target of a path.
enum Target {
    /// A module itself.
    Module(usize),
    /// An item of a module.
    Item(usize),
}

impl Crate {
    /// Circles of two files and more, the files of each sorted.
    fn circles(&self) -> Vec<Vec<&str>> {
        let dependences = self.dependences();
        let number = |file: &str| self.modules.iter().position(|m| m.file == file);
        let mut successors = vec![vec![]; self.modules.len()];
        for (from, to, _) in &dependences {
            if let (Some(from), Some(to)) = (number(from), number(to)) {
                successors[from].push(to);
            }
        }
        let found = components(self.modules.len(), |node, at| successors[node].get(at).copied());
        let files = |nodes: Vec<usize>| {
            let mut files: Vec<&str> = nodes.into_iter().map(|n| self.modules[n].file.as_str()).collect();
            files.sort_unstable();
            files
        };
        found.into_iter().filter(|nodes| nodes.len() > 1).map(files).collect()
    }

    /// Which file depends on which, and by which names.
    fn dependences(&self) -> Vec<(&str, &str, BTreeSet<String>)> {
        let mut found: BTreeMap<(usize, usize), BTreeSet<String>> = BTreeMap::new();
        for (from, module) in self.modules.iter().enumerate() {
            let imports = module.imports.iter().filter(|i| !i.is_reexport).map(|i| (&i.path, i.name == "*"));
            // Alone, a word counts only if it is re-exported here: other imports count themselves.
            let is_counted = |path: &&Vec<String>| {
                path.len() > 1 || module.imports.iter().any(|i| i.is_reexport && i.name == path[0])
            };
            let paths = module.paths.iter().filter(is_counted).map(|path| (path, false));
            for (path, is_glob) in imports.chain(paths) {
                let to = match self.lookup(from, path, 0) {
                    Some(Target::Item(to)) => to,
                    Some(Target::Module(to)) if is_glob => to,
                    _ => continue,
                };
                if to != from {
                    let name = path.last().cloned().unwrap_or_default();
                    found.entry((from, to)).or_default().insert(name);
                }
            }
        }
        let file = |node: usize| self.modules[node].file.as_str();
        found.into_iter().map(|((from, to), names)| (file(from), file(to), names)).collect()
    }

    /// The target of a path in a module; `None` outside of this crate.
    fn lookup(&self, module: usize, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let (start, rest) = match first.as_str() {
            "crate" => (self.find(&[])?, rest),
            "self" => (module, rest),
            "super" => (self.parent(module)?, rest),
            _ => return self.lookup_name(module, path, depth),
        };
        if rest.is_empty() {
            return Some(Target::Module(start));
        }
        let is_super = rest[0] == "super";
        let found = if is_super { self.lookup(start, rest, depth) } else { self.lookup_name(start, rest, depth) };
        // An item of an unknown name is its module's.
        Some(found.unwrap_or(Target::Item(start)))
    }

    /// A path that begins with a name of the module.
    fn lookup_name(&self, module: usize, path: &[String], depth: usize) -> Option<Target> {
        const MAX_DEPTH: usize = 16;
        let (name, rest) = path.split_first().filter(|_| depth < MAX_DEPTH)?;
        let here = &self.modules[module];
        if let Some(child) = self.child(module, name) {
            if rest.is_empty() {
                return Some(Target::Module(child));
            }
            return Some(self.lookup_name(child, rest, depth + 1).unwrap_or(Target::Item(child)));
        }
        if here.items.contains(name) {
            return Some(Target::Item(module));
        }
        if let Some(import) = here.imports.iter().find(|i| i.name == *name) {
            let full: Vec<String> = import.path.iter().chain(rest).cloned().collect();
            // An import of a name by itself leads to another crate.
            return if full == path { None } else { self.lookup(module, &full, depth + 1) };
        }
        here.imports.iter().filter(|i| i.name == "*").find_map(|glob| {
            let Some(Target::Module(from)) = self.lookup(module, &glob.path, depth + 1) else { return None };
            self.lookup_name(from, path, depth + 1)
        })
    }

    fn find(&self, name: &[String]) -> Option<usize> {
        self.modules.iter().position(|m| m.name == name)
    }

    fn parent(&self, module: usize) -> Option<usize> {
        let (_, name) = self.modules[module].name.split_last()?;
        self.find(name)
    }

    fn child(&self, module: usize, name: &str) -> Option<usize> {
        let parent = &self.modules[module].name;
        let is_child = |m: &Module| m.name.split_last().is_some_and(|(last, rest)| last == name && rest == parent);
        self.modules.iter().position(is_child)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependences(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(f, t)| (format!("analysis/src/{f}.rs"), (*t).to_owned())).collect();
        let crates = crates(&files);
        let short = |file: &str| file.trim_start_matches("analysis/src/").trim_end_matches(".rs").to_owned();
        crates[0].dependences().into_iter().map(|(a, b, _)| format!("{} {}", short(a), short(b))).collect()
    }

    #[test]
    fn items_count_where_they_are_defined() {
        let found = dependences(&[
            ("lib", "mod a; mod b; mod c; pub use a::Foo; pub use c::*; fn f() -> b::Bar {}"),
            ("a", "pub struct Foo;"),
            ("b", "use crate::{Foo, Baz}; use super::a; fn g() {} pub struct Bar;"),
            ("c", "pub struct Baz;"),
        ]);
        assert_eq!(found, ["lib b", "b a", "b c"]);
    }

    #[test]
    fn modules_are_followed_by_their_names() {
        let found = dependences(&[
            ("lib", "mod a; mod b;"),
            ("a", "use crate::b; use std::rc::Rc; fn f() { b::inner::g(); Rc::new(1); x.b() }"),
            ("b", "pub mod inner; pub fn h() {}"),
            ("b/inner", "pub fn g() { super::h(); super::unknown() }"),
        ]);
        assert_eq!(found, ["a b/inner", "b/inner b"]);
    }

    #[test]
    fn names_that_are_re_exported_and_used_count() {
        let found = dependences(&[("lib", "mod a; pub use a::{f, g}; fn h() { f() }"), ("a", "pub fn f() {}")]);
        assert_eq!(found, ["lib a"]);
        assert!(dependences(&[("lib", "mod a; pub use a::f;"), ("a", "pub fn f() {}")]).is_empty());
    }

    fn ring(folder: &str, len: usize) -> Vec<Crate> {
        let file = |i: usize| {
            let text = format!("use crate::m{}::F; pub struct F;", (i + 1) % len);
            (format!("{folder}src/m{i}.rs"), text)
        };
        let root = (format!("{folder}src/lib.rs"), String::new());
        crates(&(0..len).map(file).chain([root]).collect::<Vec<_>>())
    }

    #[test]
    fn large_circles_are_found() {
        assert_eq!(check(&ring("program/", 4)), Vec::<String>::new());
        assert_eq!(check(&ring("program/", 5)).len(), 1);
        assert!(report(&ring("program/", 5))[0].contains("5 files"));
        let bin = [("src/bin/x/main.rs".to_owned(), "mod a;".to_owned()), ("src/a.rs".to_owned(), String::new())];
        assert_eq!(crates(&bin).len(), 2);
    }
}
