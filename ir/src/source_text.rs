//! Text that is refused before MLIR's parser sees it.
//!
//! The parser recurses over brackets and signs without a bound, simplifies an affine expression at each of its operators,
//! and repeats a token in its message about it, so that absurd text ends it by its stack or takes minutes.

use std::ops::Range;

/// Deepest nesting of brackets that is given to the parser.
const MAX_NESTING: usize = 1_000;
/// Most signs in a row.
const MAX_SIGNS: usize = 1_000;
/// Most divisions in one affine map or set: each is simplified with all those before it.
const MAX_DIVISIONS: usize = 5_000;
/// Longest token outside of quotes; tensor contents are quoted.
const MAX_TOKEN_BYTES: usize = 1 << 16;
/// Largest number of results: the parser allocates that many values before it reads the operation.
const MAX_RESULT: usize = 1 << 16;
/// The line at which `-split-input-file` starts another module.
const SPLIT_MARKER: &[u8] = b"// -----";

/// The reason and position of a refusal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// 1-based.
    pub line: usize,
    /// Lower case, no full stop.
    pub message: String,
}

/// Checks text; upstream treats a NUL byte as a blank, unless it ends the input silently. Returns the places of the
/// strings in file metadata, `{-# ... #-}`, with their quotes.
pub(crate) fn check(source: &[u8], allow_nul: bool) -> Result<Vec<Range<usize>>, Refusal> {
    let mut scan = Scan { line: 1, ..Scan::default() };
    let mut strings = vec![];
    let mut at = 0;
    while let Some(&byte) = source.get(at) {
        let rest = &source[at..];
        scan.in_metadata = (scan.in_metadata && !rest.starts_with(b"#-}")) || rest.starts_with(b"{-#");
        at += match byte {
            0 if !allow_nul => return Err(scan.refuse("the text contains a NUL byte".to_owned())),
            b'"' => {
                let len = scan.string(rest);
                strings.extend(scan.in_metadata.then(|| at..at + len));
                len
            }
            b'/' if rest.starts_with(b"//") => scan.comment(rest),
            _ if is_word(byte) => scan.word(rest)?,
            b'-' if rest.starts_with(b"->") => scan.arrow(),
            b'#' => scan.number(rest)?,
            _ => scan.mark(byte)?,
        };
    }
    Ok(strings)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

/// The state of the scan.
#[derive(Default)]
struct Scan {
    line: usize,
    depth: usize,
    signs: usize,
    divisions: usize,
    in_metadata: bool,
}

impl Scan {
    fn refuse(&self, message: String) -> Refusal {
        Refusal { line: self.line, message }
    }

    /// A string ends at its quote, or as an error at the end of the line.
    fn string(&mut self, rest: &[u8]) -> usize {
        self.signs = 0;
        let mut at = 1;
        while let Some(next) = rest.get(at..).and_then(|rest| memchr::memchr3(b'"', b'\n', b'\\', rest)) {
            at += next;
            match rest[at] {
                b'"' => return at + 1,
                b'\n' => return at,
                _ => at += 2,
            }
        }
        rest.len()
    }

    fn comment(&mut self, rest: &[u8]) -> usize {
        if rest.starts_with(SPLIT_MARKER) {
            (self.depth, self.signs, self.divisions) = (0, 0, 0);
        }
        rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
    }

    fn word(&mut self, rest: &[u8]) -> Result<usize, Refusal> {
        self.signs = 0;
        let len = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
        if len > MAX_TOKEN_BYTES {
            return Err(self.refuse(format!("a token has {len} bytes, at most {MAX_TOKEN_BYTES} are read")));
        }
        match &rest[..len] {
            b"affine_map" | b"affine_set" => self.divisions = 0,
            b"mod" | b"floordiv" | b"ceildiv" => self.divisions += 1,
            _ => {}
        }
        if self.divisions > MAX_DIVISIONS {
            return Err(self.refuse(format!("an affine map or set has more than {MAX_DIVISIONS} divisions")));
        }
        Ok(len)
    }

    fn arrow(&mut self) -> usize {
        self.signs = 0;
        2
    }

    /// `%r#3`; an attribute name after `#` is read as a word.
    fn number(&mut self, rest: &[u8]) -> Result<usize, Refusal> {
        self.signs = 0;
        let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit());
        let number = digits.fold(0usize, |n, byte| n.saturating_mul(10).saturating_add(usize::from(byte - b'0')));
        if number > MAX_RESULT {
            return Err(self.refuse(format!("a result has a number above {MAX_RESULT}")));
        }
        Ok(1)
    }

    fn mark(&mut self, byte: u8) -> Result<usize, Refusal> {
        match byte {
            b'\n' => self.line += 1,
            b' ' | b'\t' | b'\r' | 0 => {}
            b'-' => self.signs += 1,
            _ => self.signs = 0,
        }
        match byte {
            b'(' | b'[' | b'{' | b'<' => self.depth += 1,
            b')' | b']' | b'}' | b'>' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if self.depth > MAX_NESTING {
            return Err(self.refuse(format!("brackets nest deeper than {MAX_NESTING}")));
        }
        if self.signs > MAX_SIGNS {
            return Err(self.refuse(format!("more than {MAX_SIGNS} signs in a row")));
        }
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Option<String> {
        check(text.as_bytes(), false).err().map(|refusal| format!("{}: {}", refusal.line, refusal.message))
    }

    #[test]
    fn strings_of_file_metadata_are_found() {
        let text = "a 'no' {-# b: 'yes', c: { 'd\\'': '0x' } #-} {-e 'no' #f 'no' \n {-# 'open".replace('\'', "\"");
        let found = check(text.as_bytes(), false).unwrap().into_iter().map(|place| text[place].replace('"', "'"));
        assert_eq!(found.collect::<Vec<_>>(), ["'yes'", "'d\\''", "'0x'", "'open"]);
    }

    #[test]
    fn absurd_text_is_refused_and_other_text_is_not() {
        let deep = |n: usize| format!("\n{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(message(&deep(1_000)), None);
        assert_eq!(message(&deep(1_001)).unwrap(), "2: brackets nest deeper than 1000");
        // Brackets in strings and comments nest nothing, whatever is escaped before them.
        assert_eq!(message(&format!("\"{0}\\\"{0}\" // {0}\n", "(".repeat(600))), None);
        assert_eq!(message(&format!("\"\\\\\" {}", "(".repeat(1_001))).unwrap(), "1: brackets nest deeper than 1000");
        assert_eq!(message(&"((\n// -----\n".repeat(900)), None);
        assert_eq!(message(&"- ".repeat(1_001)).unwrap(), "1: more than 1000 signs in a row");
        assert_eq!(message(&"(- 1) ->".repeat(2_000)), None);
        assert_eq!(message(&"a".repeat(65_537)).unwrap(), "1: a token has 65537 bytes, at most 65536 are read");
        assert_eq!(message(&format!("\"{}\"", "F".repeat(100_000))), None);
        let divisions = |n: usize| format!("affine_map<(d0) -> (d0{})>", " mod 3".repeat(n));
        assert_eq!(message(&divisions(5_000).repeat(3)), None);
        assert!(message(&divisions(5_001)).unwrap().contains("5000 divisions"));
        assert_eq!(message("return %r#65536"), None);
        assert_eq!(message("return %r#2147483648").unwrap(), "1: a result has a number above 65536");
        assert_eq!(message("a\n\0").unwrap(), "2: the text contains a NUL byte");
        assert_eq!(check(b"a\n\0", true), Ok(vec![]));
    }
}
