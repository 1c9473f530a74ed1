//! Lengths of files and functions, and numbers of parameters.

use crate::source::Source;

const MAX_FILE_LINES: usize = 600;
/// From `fn` to the closing brace.
const MAX_FUNCTION_LINES: usize = 60;
/// Without `self`.
const MAX_PARAMETERS: usize = 6;
/// Files, and functions `path:name`, that may exceed a limit. At most five.
const EXCEPTIONS: &[&str] = &[];
const _: () = assert!(EXCEPTIONS.len() <= 5);

/// A finding, and the exception that would allow it.
struct Finding {
    exception: String,
    text: String,
}

/// The findings of all files.
#[derive(Default)]
pub struct Lengths {
    findings: Vec<Finding>,
}

impl Lengths {
    /// Counts the lines of a file.
    pub fn file(&mut self, path: &str, text: &str) {
        let is_code = [".rs", ".cpp", ".wgsl", ".py", ".sh"].iter().any(|end| path.ends_with(end));
        let lines = text.lines().count();
        if is_code && lines > MAX_FILE_LINES {
            let text = format!("{path}: {lines} lines, at most {MAX_FILE_LINES}");
            self.findings.push(Finding { exception: path.to_owned(), text });
        }
    }

    /// Counts the lines and the parameters of each function of a Rust file.
    pub fn functions(&mut self, path: &str, parsed: &Source) {
        for Function { name, line, lines, parameters } in functions(parsed) {
            let counts = [(lines, MAX_FUNCTION_LINES, "lines"), (parameters, MAX_PARAMETERS, "parameters")];
            for (count, most, unit) in counts.into_iter().filter(|(count, most, _)| count > most) {
                let text = format!("{path}:{line}: `{name}` has {count} {unit}, at most {most}");
                self.findings.push(Finding { exception: format!("{path}:{name}"), text });
            }
        }
    }

    /// The findings that no exception covers, and the exceptions that cover none.
    pub fn finish(self) -> Vec<String> {
        self.without(EXCEPTIONS)
    }

    fn without(self, exceptions: &[&str]) -> Vec<String> {
        let is_needed = |exception: &str| self.findings.iter().any(|finding| finding.exception == exception);
        let stale = exceptions.iter().filter(|exception| !is_needed(exception));
        let mut out: Vec<String> = stale.map(|e| format!("{e}: an exception from the lengths without need")).collect();
        let is_excepted = |finding: &Finding| exceptions.contains(&finding.exception.as_str());
        out.extend(self.findings.into_iter().filter(|f| !is_excepted(f)).map(|finding| finding.text));
        out
    }
}

/// A function with a body or without.
#[derive(PartialEq, Eq, Debug)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
    parameters: usize,
}

/// All functions, those in macros and in other functions too. Declarations of C functions are left out.
fn functions(source: &Source) -> Vec<Function> {
    let tokens = &source.tokens;
    let mut out = Vec::new();
    let mut at = 0;
    while at + 1 < tokens.len() {
        match (tokens[at].as_str(), tokens[at + 1].as_str()) {
            ("extern", "{") => at += closing(&tokens[at + 1..]).unwrap_or(0),
            ("fn", name) if is_name(name) => out.extend(function(source, at)),
            _ => {}
        }
        at += 1;
    }
    out
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The function whose `fn` is token `start`; `None` where the text ends within it.
fn function(source: &Source, start: usize) -> Option<Function> {
    let (tokens, name, line) = (&source.tokens, source.tokens[start + 1].clone(), source.token_lines[start]);
    let open = (start + 2..tokens.len()).find(|at| tokens[*at] == "(" && depth(&tokens[start + 2..*at]) == 0)?;
    let close = open + closing(&tokens[open..])?;
    let body = (close..tokens.len()).find(|at| tokens[*at] == "{" || tokens[*at] == ";")?;
    let end = if tokens[body] == "{" { body + closing(&tokens[body..])? } else { body };
    let lines = source.token_lines[end] - line + 1;
    Some(Function { name, line, lines, parameters: parameters(&tokens[open + 1..close]) })
}

/// The position of the bracket that closes the one at the beginning.
fn closing(tokens: &[String]) -> Option<usize> {
    let mut open = 0usize;
    tokens.iter().position(|token| {
        match token.as_str() {
            "(" | "[" | "{" => open += 1,
            ")" | "]" | "}" => open = open.saturating_sub(1),
            _ => {}
        }
        open == 0
    })
}

/// Brackets that are open at the end, those of generic arguments too. The `>` of an arrow is none.
fn depth(tokens: &[String]) -> i32 {
    let change = |(at, token): (usize, &String)| match token.as_str() {
        "(" | "[" | "{" | "<" => 1,
        ">" if at > 0 && tokens[at - 1] == "-" => 0,
        ")" | "]" | "}" | ">" => -1,
        _ => 0,
    };
    tokens.iter().enumerate().map(change).sum()
}

/// The number of parameters in a list of them, `self` left out.
fn parameters(tokens: &[String]) -> usize {
    let is_border = |at: &usize| tokens[*at] == "," && depth(&tokens[..*at]) == 0;
    let mut ends: Vec<usize> = (0..tokens.len()).filter(is_border).collect();
    ends.push(tokens.len());
    let mut begin = 0;
    let mut count = 0;
    for end in ends {
        let parameter = &tokens[begin.min(end)..end];
        let is_self = parameter.iter().take_while(|token| *token != ":").any(|token| token == "self");
        count += usize::from(!parameter.is_empty() && !is_self);
        begin = end + 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source;

    fn of(text: &str) -> Vec<(String, usize, usize)> {
        functions(&source::parse(text)).into_iter().map(|f| (f.name, f.lines, f.parameters)).collect()
    }

    fn findings(text: &str, exceptions: &[&str]) -> Vec<String> {
        let mut lengths = Lengths::default();
        lengths.file("a.rs", text);
        lengths.functions("a.rs", &source::parse(text));
        lengths.without(exceptions)
    }

    #[test]
    fn lines_are_counted_from_fn_to_the_closing_brace() {
        let text = "/// Doc.\n#[test]\npub fn a(\n) {\n  \"}\";\n  '}';\n  fn b() {}\n}\ntrait T {\n  fn c(&self) -> [u8; 2];\n}\n";
        let expected = [("a", 6, 0), ("b", 1, 0), ("c", 1, 0)];
        assert_eq!(of(text), expected.map(|(name, lines, parameters)| (name.to_owned(), lines, parameters)));
    }

    #[test]
    fn parameters_are_counted_without_self() {
        let count = |text: &str| of(text)[0].2;
        assert_eq!(count("fn f(&'a mut self, (a, b): (u8, u8), c: [u8; 2],) {}"), 2);
        assert_eq!(count("fn f<F: Fn(u8, u8) -> u8>(self: Rc<Self>, f: F, g: &dyn Fn(u8) -> HashMap<u8, u8>) {}"), 2);
        assert_eq!(count("fn f(myself: u8, of: fn(u8, u8) -> u8) {}"), 2);
        assert!(of("unsafe extern \"C\" { fn f(a: u8, b: u8); }").is_empty());
        assert_eq!(of("extern \"C\" fn f(a: u8, b: u8) {}")[0].2, 2);
        assert!(of("type F = fn(u8, u8); macro_rules! m { ($n:ident) => { fn $n() {} } }").is_empty());
    }

    #[test]
    fn what_exceeds_a_limit_is_found() {
        let body = |lines: usize| format!("fn f() {{\n{}}}\n", ";\n".repeat(lines - 2));
        assert!(findings(&body(60), &[]).is_empty());
        assert_eq!(findings(&body(61), &[]), ["a.rs:1: `f` has 61 lines, at most 60"]);
        assert!(findings("fn f(a: A, b: B, c: C, d: D, e: E, f: F) {}", &[]).is_empty());
        let seven = "\nfn f(a: A, b: B, c: C, d: D, e: E, f: F, g: G) {}";
        assert_eq!(findings(seven, &[]), ["a.rs:2: `f` has 7 parameters, at most 6"]);
        assert!(findings(&"\n".repeat(600), &[]).is_empty());
        assert_eq!(findings(&"\n".repeat(601), &[]), ["a.rs: 601 lines, at most 600"]);
    }

    #[test]
    fn exceptions_hold_until_they_are_not_needed() {
        let long = format!("fn f() {{\n{}}}\n", ";\n".repeat(60));
        assert!(findings(&long, &["a.rs:f"]).is_empty());
        assert_eq!(findings("fn f() {}", &["a.rs:f"]), ["a.rs:f: an exception from the lengths without need"]);
    }
}
