//! The modules of a crate, one per file: the items, imports and paths of each.
//!
//! Tests (`#[cfg(test)]`) are left out. Reads tokens, not syntax: an item from a macro is unknown by name, and a path to it
//! leads to the file of its module.

use crate::source;
use std::collections::BTreeSet;

/// A file of a crate.
#[derive(Default, Debug)]
pub struct Module {
    /// Path from the root of the repository.
    pub file: String,
    /// Its module path; empty for the crate's root.
    pub name: Vec<String>,
    /// Items that it defines.
    pub items: BTreeSet<String>,
    /// Imports, re-exports included.
    pub imports: Vec<Import>,
    /// Paths in its code, imports left out.
    pub paths: Vec<Vec<String>>,
}

/// One name of a `use`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Import {
    /// The name in this module; `*` for all names of a module.
    pub name: String,
    /// The path behind it.
    pub path: Vec<String>,
    /// Whether it is re-exported (`pub use`).
    pub is_reexport: bool,
}

const DEFINING: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// Reads a file: `inner` is its path from the folder of the crate's root file, without `.rs`.
pub fn parse(file: &str, inner: &str, text: &str) -> Module {
    let mut name: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if matches!(name.last().map(String::as_str), Some("lib" | "main" | "mod")) {
        name.pop();
    }
    let tokens = without_tests(source::parse(text).tokens);
    let mut reader = Reader { tokens: &tokens, at: 0, inline: vec![], depth: 0, module: Module::default() };
    while reader.at < tokens.len() {
        reader.step();
    }
    Module { file: file.to_owned(), name, ..reader.module }
}

/// Drops every item behind `#[cfg(test)]`.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].len() >= mark.len() && tokens[at..].iter().zip(mark).all(|(token, mark)| token == mark) {
            at = item_end(&tokens, at + mark.len());
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The position behind an item: behind its `;`, or behind its braces.
fn item_end(tokens: &[String], start: usize) -> usize {
    let mut depth = 0usize;
    let is_use = tokens.get(start).is_some_and(|token| token == "use");
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token == "}" && !is_use {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

struct Reader<'a> {
    tokens: &'a [String],
    at: usize,
    /// The depths at which the inline modules around this position opened.
    inline: Vec<usize>,
    depth: usize,
    module: Module,
}

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).map_or("", String::as_str)
    }

    fn step(&mut self) {
        let token = self.peek(0);
        match token {
            "use" => self.import(),
            "mod" if self.peek(2) == "{" => {
                self.module.items.insert(self.peek(1).to_owned());
                self.at += 2;
                self.inline.push(self.depth);
            }
            "mod" if self.peek(2) == ";" => self.at += 3,
            "macro_rules" => {
                self.module.items.insert(self.peek(2).to_owned());
                self.at += 3;
            }
            _ if DEFINING.contains(&token) && is_name(self.peek(1)) => {
                // Deeper ones are associated items and locals.
                if self.depth == self.inline.len() {
                    self.module.items.insert(self.peek(1).to_owned());
                }
                self.at += 2;
            }
            "{" => {
                self.depth += 1;
                self.at += 1;
            }
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                if self.inline.last() == Some(&self.depth) {
                    self.inline.pop();
                }
                self.at += 1;
            }
            // A field or a method.
            "." if is_name(self.peek(1)) => self.at += 2,
            _ if is_name(token) => self.path(),
            _ => self.at += 1,
        }
    }

    /// `a::b::c`, up to the first segment that is no name.
    fn path(&mut self) {
        let mut segments = vec![self.peek(0).to_owned()];
        self.at += 1;
        while self.peek(0) == ":" && self.peek(1) == ":" && is_name(self.peek(2)) {
            segments.push(self.peek(2).to_owned());
            self.at += 3;
        }
        let path = self.outside(segments);
        self.module.paths.push(path);
    }

    /// `use tree;`.
    fn import(&mut self) {
        let before = self.at.checked_sub(1).map_or("", |at| self.tokens[at].as_str());
        let is_reexport = before == "pub" || before == ")";
        self.at += 1;
        let mut found = Vec::new();
        self.tree(vec![], &mut found);
        for (name, path) in found {
            let path = self.outside(path);
            self.module.imports.push(Import { name, path, is_reexport });
        }
    }

    fn tree(&mut self, mut prefix: Vec<String>, found: &mut Vec<(String, Vec<String>)>) {
        loop {
            match self.peek(0) {
                "{" => {
                    self.at += 1;
                    while !matches!(self.peek(0), "}" | "") {
                        self.tree(prefix.clone(), found);
                        self.at += usize::from(self.peek(0) == ",");
                    }
                    self.at += 1;
                    return;
                }
                ":" => self.at += 1,
                "as" => {
                    found.push((self.peek(1).to_owned(), prefix));
                    self.at += 2;
                    return;
                }
                "*" => {
                    found.push(("*".to_owned(), prefix));
                    self.at += 1;
                    return;
                }
                token if is_name(token) => {
                    // `{self}` is the path in front of the braces.
                    if token != "self" || prefix.is_empty() {
                        prefix.push(token.to_owned());
                    }
                    self.at += 1;
                }
                _ => {
                    found.extend(prefix.last().cloned().map(|name| (name, prefix)));
                    return;
                }
            }
        }
    }

    /// The path outside of the inline modules around this position.
    fn outside(&self, path: Vec<String>) -> Vec<String> {
        let supers = path.iter().take_while(|s| *s == "super").count();
        let inside = supers.min(self.inline.len());
        if inside == 0 {
            return path;
        }
        let here = if inside == supers { vec!["self".to_owned()] } else { vec![] };
        here.into_iter().chain(path.into_iter().skip(inside)).collect()
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(text: &str) -> Vec<String> {
        let module = parse("a.rs", "a", text);
        module.imports.iter().map(|i| format!("{}={}", i.name, i.path.join("::"))).collect()
    }

    #[test]
    fn use_trees_are_taken_apart() {
        let found = imports("pub(crate) use a::{b::{self, C}, d as e}; use super::*; use crate::f;\n");
        assert_eq!(found, ["b=a::b", "C=a::b::C", "e=a::d", "*=super", "f=crate::f"]);
        assert!(parse("a.rs", "a", "pub use b::C;").imports[0].is_reexport);
        assert!(!parse("a.rs", "a", "mod b; use b::C;").imports[0].is_reexport);
    }

    #[test]
    fn inline_modules_are_part_of_their_file() {
        let module = parse("a.rs", "a/mod", "mod inner { use super::super::X; fn f() { super::g() } } fn g() {}");
        assert_eq!(module.name, ["a"]);
        assert_eq!(module.imports[0].path, ["super", "X"]);
        assert!(module.paths.contains(&vec!["self".to_owned(), "g".to_owned()]));
        assert_eq!(module.items.iter().collect::<Vec<_>>(), ["f", "g", "inner"]);
    }

    #[test]
    fn tests_are_left_out() {
        let text =
            "#[cfg(test)] use crate::a::{B}; fn f() {}\n#[cfg(test)]\nmod tests { use crate::c; }\n#[cfg(test)] mod d;";
        let module = parse("a.rs", "a", text);
        assert!(module.imports.is_empty());
        assert_eq!(module.items.len(), 1);
    }
}
