//! Reads the tokens of one line.

use crate::text::Problem;

/// A place in a line; spaces are skipped before every token.
pub(crate) struct Cursor<'a> {
    rest: &'a str,
}

const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '#')
}

impl<'a> Cursor<'a> {
    pub fn new(line: &'a str) -> Self {
        Self { rest: line.trim_start() }
    }

    fn advance(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest.trim_start();
        taken
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        self.advance(end)
    }

    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn expect_end(&self) -> Result<(), Problem> {
        if self.is_done() { Ok(()) } else { Err(Problem::Expected("the end of the line")) }
    }

    pub fn peek(&self, token: &str) -> bool {
        self.rest.starts_with(token)
    }

    pub fn eat(&mut self, token: &str) -> bool {
        let found = self.peek(token);
        if found {
            self.advance(token.len());
        }
        found
    }

    pub fn expect(&mut self, token: &str, what: &'static str) -> Result<(), Problem> {
        if self.eat(token) { Ok(()) } else { Err(Problem::Expected(what)) }
    }

    /// Whether this whole word comes next.
    pub fn peek_word(&self, word: &str) -> bool {
        self.rest.strip_prefix(word).is_some_and(|rest| !rest.starts_with(is_name))
    }

    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word(word);
        if found {
            self.advance(word.len());
        }
        found
    }

    pub fn word(&mut self) -> Result<&'a str, Problem> {
        let word = self.take_while(is_name);
        if word.is_empty() { Err(Problem::Expected("a name")) } else { Ok(word) }
    }

    /// The name after a `%`.
    pub fn value_name(&mut self) -> Result<&'a str, Problem> {
        self.expect("%", "a value")?;
        self.word()
    }

    pub fn try_number(&mut self) -> Option<u64> {
        let digits = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let number = self.rest[..digits].parse().ok()?;
        self.advance(digits);
        Some(number)
    }

    pub fn number(&mut self) -> Result<u64, Problem> {
        self.try_number().ok_or(Problem::Expected("a number"))
    }

    pub fn signed(&mut self) -> Result<i64, Problem> {
        let negative = self.eat("-");
        let number = i64::try_from(self.number()?).map_err(|_| Problem::Expected("a smaller number"))?;
        Ok(if negative { -number } else { number })
    }

    /// A symbol `s7`, if one comes next.
    pub fn symbol(&mut self) -> Result<Option<u32>, Problem> {
        if !self.eat("s") {
            return Ok(None);
        }
        u32::try_from(self.number()?).map(Some).map_err(|_| Problem::Expected("a smaller number"))
    }

    /// Numbers as long as there are any.
    pub fn numbers(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(number) = self.try_number() {
            numbers.push(number);
            self.eat(",");
        }
        numbers
    }
}
