//! Unrolls the loops of a shader's text.
//!
//! Lines between `//# for NAME FROM TO` and `//# end` are repeated, `TO` excluded. `$(EXPRESSION)` is a number: names and
//! numbers with `+ - * / %`, from left to right.

use std::collections::HashMap;

type Scope<'a> = HashMap<&'a str, i64>;

/// The text for these values of its parameters.
///
/// # Panics
/// A loop or an expression that is not one: the shaders are part of the bench.
pub fn expand(text: &str, parameters: &[(&str, i64)]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    block(&lines, &mut parameters.iter().copied().collect(), &mut out);
    out
}

fn block<'a>(lines: &[&'a str], scope: &mut Scope<'a>, out: &mut String) {
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let Some(header) = line.trim().strip_prefix("//# for ") else {
            out.push_str(&substituted(line, scope));
            out.push('\n');
            at += 1;
            continue;
        };
        let mut words = header.split(' ');
        let (name, [from, to]) = (words.next().expect("a loop has a name"), [(); 2].map(|()| words.next()));
        let bound = |word: Option<&str>| value(word.expect("a loop has two bounds"), scope);
        let (from, to) = (bound(from), bound(to));
        let end = at + 1 + length(&lines[at + 1..]);
        for i in from..to {
            let before = scope.insert(name, i);
            block(&lines[at + 1..end], scope, out);
            match before {
                Some(value) => scope.insert(name, value),
                None => scope.remove(name),
            };
        }
        at = end + 1;
    }
}

/// Lines up to the end of the loop that these are the body of.
fn length(lines: &[&str]) -> usize {
    let mut depth = 0;
    let is_end = |line: &&str| {
        let line = line.trim();
        depth += i64::from(line.starts_with("//# for ")) - i64::from(line == "//# end");
        depth < 0
    };
    lines.iter().position(is_end).expect("a loop has an end")
}

fn substituted(line: &str, scope: &Scope<'_>) -> String {
    let mut parts = line.split("$(");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once(')').expect("an expression has an end");
        out.push_str(&value(expression, scope).to_string());
        out.push_str(rest);
    }
    out
}

fn value(expression: &str, scope: &Scope<'_>) -> i64 {
    let is_op = |c: char| "+-*/%".contains(c);
    let of = |word: &str| word.parse().ok().or_else(|| scope.get(word).copied()).expect("a number or a known name");
    let mut words = expression.split(is_op);
    let mut total = of(words.next().unwrap_or_default());
    for (op, word) in expression.chars().filter(|c| is_op(*c)).zip(words) {
        let by = of(word);
        total = match op {
            '+' => total + by,
            '-' => total - by,
            '*' => total * by,
            '/' => total / by,
            _ => total % by,
        };
    }
    total
}
