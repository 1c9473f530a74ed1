//! The header of a file test.
//!
//! ```text
//! // test: bufferize function-boundaries
//! // oracle: -one-shot-bufferize="bufferize-function-boundaries test-analysis-only"
//! // differs: upstream copies where slices are disjoint
//! // Two readers of %t: the second write must be copied.
//! func.func @main(...)
//! // -----
//! // expect:
//! module { ... }
//! ```

/// Separates the input from the expected output; upstream's tools split at its first line.
const SEPARATOR: &str = "// -----\n// expect:\n";

/// A parsed file test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileTest {
    /// The pass or phase to run.
    pub pass: String,
    /// The rest of the `test:` line.
    pub options: String,
    /// Arguments for `mlir-opt`, if its decisions are to be compared.
    pub oracle: Option<String>,
    /// The reason of a known difference from upstream's decisions.
    pub differs: Option<String>,
    /// Header and program, up to the separator.
    pub input: String,
    /// The whole output; empty before the first bless.
    pub expected: String,
}

impl FileTest {
    /// Parses a file.
    ///
    /// # Errors
    /// The defect of its header.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (input, expected) = text.split_once(SEPARATOR).unwrap_or((text, ""));
        let line = |key: &str| {
            let prefix = format!("// {key}:");
            let found = input.lines().take_while(|l| l.starts_with("//")).find_map(|l| l.strip_prefix(&prefix));
            found.map(|v| v.trim().to_owned())
        };
        let test = line("test").ok_or("the first comment lines have no `// test: PASS OPTIONS`")?;
        let (pass, options) = test.split_once(' ').unwrap_or((&test, ""));
        let parsed = Self {
            pass: pass.to_owned(),
            options: options.trim().to_owned(),
            oracle: line("oracle"),
            differs: line("differs"),
            input: input.to_owned(),
            expected: expected.to_owned(),
        };
        if parsed.differs.is_some() && parsed.oracle.is_none() {
            return Err("`// differs:` without `// oracle:`".to_owned());
        }
        Ok(parsed)
    }

    /// The file with another expected output.
    pub fn with_expected(&self, output: &str) -> String {
        let newline = if self.input.ends_with('\n') { "" } else { "\n" };
        format!("{}{newline}{SEPARATOR}{}\n", self.input, output.trim_end())
    }
}

/// Splits a command line at blanks; double or single quotes keep blanks together.
pub fn split_arguments(line: &str) -> Vec<String> {
    let (mut out, mut current, mut quote) = (vec![], None::<String>, None);
    for c in line.chars() {
        match quote {
            Some(q) if q == c => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                current.get_or_insert_default();
            }
            None if c.is_whitespace() => out.extend(current.take()),
            _ => current.get_or_insert_default().push(c),
        }
    }
    out.extend(current);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blessed_file_parses_back() {
        let test = FileTest::parse("// test: cse fast\n// Folds.\nmodule {}\n").expect("parses");
        assert_eq!((test.pass.as_str(), test.options.as_str(), test.expected.as_str()), ("cse", "fast", ""));
        let blessed = FileTest::parse(&test.with_expected("module {\n}\n\n")).expect("parses");
        assert_eq!(blessed, FileTest { expected: "module {\n}\n".into(), ..test });
    }

    #[test]
    fn headers_are_checked() {
        assert!(FileTest::parse("module {}").is_err());
        assert!(FileTest::parse("// test: a\n// differs: because\n").is_err());
    }

    #[test]
    fn quotes_keep_blanks() {
        assert_eq!(split_arguments(r#"-a="b c"  'd e' """#), ["-a=b c", "d e", ""]);
    }
}
