//! A Rust file as tokens: code, comments and strings apart.

/// A tokenized Rust file.
#[derive(Default, Debug)]
pub struct Source {
    /// Identifiers and keywords of the code, with their lines.
    pub words: Vec<(usize, String)>,
    /// The code: words, and every other character but white space by itself.
    pub tokens: Vec<String>,
    /// The line of each token.
    pub token_lines: Vec<usize>,
    /// Text of string literals, with their lines.
    pub strings: Vec<(usize, String)>,
    /// Text of comments, with their lines.
    pub comments: Vec<(usize, String)>,
}

/// Tokenizes a file. Unterminated literals end with the file.
pub fn parse(text: &str) -> Source {
    let mut reader = Reader { rest: text, line: 1, source: Source::default() };
    while !reader.rest.is_empty() {
        reader.step();
    }
    reader.source
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    source: Source,
}

impl<'a> Reader<'a> {
    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            let text = self.take(rest.find('\n').unwrap_or(rest.len()));
            self.source.comments.push(text);
        } else if rest.starts_with("/*") {
            let text = self.take(block_comment(rest));
            self.source.comments.push(text);
        } else if let Some(hashes) = raw_string(rest) {
            let open = rest.find('"').map_or(rest.len(), |i| i + 1);
            let close = format!("\"{}", "#".repeat(hashes));
            let end = rest[open..].find(&close).map_or(rest.len(), |i| open + i + close.len());
            let text = self.take(end);
            self.source.strings.push(text);
        } else if rest.starts_with('"') {
            let (line, text) = self.take(quoted(rest, '"'));
            self.source.strings.push((line, text.trim_matches('"').to_owned()));
        } else if rest.starts_with('\'') {
            self.take(char_or_lifetime(rest));
        } else if rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let word = self.take(end);
            self.source.tokens.push(word.1.clone());
            self.source.token_lines.push(word.0);
            self.source.words.push(word);
        } else {
            let (line, mark) = self.take(rest.chars().next().map_or(1, char::len_utf8));
            if !mark.trim().is_empty() {
                self.source.tokens.push(mark);
                self.source.token_lines.push(line);
            }
        }
    }

    fn take(&mut self, end: usize) -> (usize, String) {
        let (text, rest) = self.rest.split_at(end);
        let line = self.line;
        self.line += text.matches('\n').count();
        self.rest = rest;
        (line, text.to_owned())
    }
}

/// Number of `#` of a raw string that starts here.
fn raw_string(text: &str) -> Option<usize> {
    let after = ["r", "br", "cr"].iter().find_map(|p| text.strip_prefix(p))?;
    let quoted = after.trim_start_matches('#');
    quoted.starts_with('"').then(|| after.len() - quoted.len())
}

/// Length of a literal with escapes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return i + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Length of `'x'`, `'\n'`, or of the quote of a lifetime.
fn char_or_lifetime(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    let (first, second) = (chars.next(), chars.next());
    match (first, second) {
        (Some((_, '\\')), _) => quoted(text, '\''),
        (Some(_), Some((i, '\''))) => i + 1,
        _ => 1,
    }
}

/// Length of a block comment, which may hold others.
fn block_comment(text: &str) -> usize {
    let mut depth = 0usize;
    let mut i = 0;
    while i < text.len() {
        if text[i..].starts_with("/*") {
            depth += 1;
            i += 2;
        } else if text[i..].starts_with("*/") {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return i;
            }
        } else {
            i += text[i..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_comments_and_strings_come_apart() {
        let text = "// unsafe in a comment\nlet s = \"unsafe \\\" in a string\";\nlet r = r#\"unsafe \" raw\"#;\n/* a /* b */ unsafe */\n\
            fn f<'a>(c: char) -> bool { c == '\"' || c == '\\'' }\nunsafe { g() }\n";
        let source = parse(text);
        let found: Vec<_> = source.words.iter().filter(|w| w.1 == "unsafe").map(|w| w.0).collect();
        assert_eq!(found, [6]);
        assert_eq!(source.strings.iter().map(|s| s.0).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(source.comments.len(), 2);
    }
}
