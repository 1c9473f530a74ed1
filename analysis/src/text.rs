//! Facts and decisions as text, for tests, bug reports and fuzzing.
//!
//! ```text
//! block(%in<frozen 4096B>)
//! %0<never alloc> = empty
//! %1 = fill we%0>%1
//! %2 = extract %1~%2 take 0 [0:4:1]
//! %3 = for branch w%1>(%i=%y)%3^%i {
//!   region repeat trips=10 next 0 {
//!     block(%i)
//!     %y = insert r%2, rw%i>%y put 0 1 [s7:4:1]
//!     yield rm%y^%i^%3
//!   }
//! }
//! return r%3
//! ```
//!
//! * A line is an operation: results, `=`, a name, `branch` if control enters its regions along declared edges only,
//!   `ends` if it forwards its operands to the parent operation, operands, what it takes or puts, and `{` if regions follow.
//! * A value may have properties in `<>`: `frozen` (not writable), `alloc`, `always`, `never` (is a definition),
//!   `unranked`, a size in bytes.
//! * An operand is a use and a value. The use is letters: `r` reads, `w` writes, `m` must be in place, `e` elementwise;
//!   `r(%x)` reads if `%x` is read. After it, `>%v` is an equivalent aliasing value, `>?%v` one of several,
//!   `>(%a=%b)%v` equivalent if the pairs are, `~%v` and `~?%v` unknown relation, `!` before the value turns the edge
//!   into one that changes (`>`) or keeps (`~`) the type. `^%v`: the value receives the operand's contents.
//! * `take CONTAINER SLICE` makes the first result a slice of an operand; `put SOURCE DESTINATION SLICE` overwrites a
//!   slice with an operand, `put - 1 all` with something else and wholly. A slice is `[offset:size:stride, ...]` of
//!   numbers such as `4`, `s7` or `4+2*s7`.
//! * `region`s have `repeat`, `parallel`, `graph`, `trips=N`, and `next` with the numbers of their successor regions.
//!   `block(...)` starts a block with arguments, `next` as for regions; the first one may be left out.
//! * `symbols s1, s2` declares the symbols that the region defines; others are defined anywhere.
//! * `//` starts a comment.

use std::collections::HashMap;
use std::fmt;

use crate::builder::{FactsBuilder, FactsError};
use crate::cursor::Cursor;
use crate::facts::{
    Affine, Alias, Definition, Facts, Label, Reads, RegionInfo, Relation, Slice, Subset, Use, ValueInfo,
};
use crate::index::{BlockId, IndexVec, OpId, OperandId, RegionId, SliceId, ValueId};
use crate::one_shot::Placement;

/// The largest symbol that a text may declare.
const MOST_SYMBOLS: u32 = 1 << 16;

/// The names of labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    names: Vec<String>,
}

impl Names {
    /// No names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Add a name and return its label.
    pub fn add(&mut self, name: impl Into<String>) -> Label {
        self.names.push(name.into());
        Label::try_from(self.names.len() - 1).unwrap_or(Label::MAX)
    }

    /// The name of a label, if it was added.
    pub fn get(&self, label: Label) -> Option<&str> {
        self.names.get(label as usize).map(String::as_str)
    }
}

/// An error in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Another token was expected here.
    Expected(&'static str),
    /// No value has this name.
    UnknownValue(String),
    /// Two values have this name.
    DuplicateValue(String),
    /// An operation has no operand with this number.
    UnknownOperand(u64),
    /// There is no region or block with this number.
    UnknownSuccessor(u64),
    /// A brace is not closed, or closes nothing.
    UnbalancedBraces,
    /// The facts are well-formed but inconsistent.
    Inconsistent(FactsError),
}

/// An error in the text of facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The line, from 1; 0 for an error of the whole text.
    pub line: u32,
    /// The message.
    pub problem: Problem,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.problem {
            Problem::Expected(what) => write!(f, "expected {what}"),
            Problem::UnknownValue(name) => write!(f, "no value is named %{name}"),
            Problem::DuplicateValue(name) => write!(f, "two values are named %{name}"),
            Problem::UnknownOperand(number) => write!(f, "the operation has no operand {number}"),
            Problem::UnknownSuccessor(number) => write!(f, "there is no {number} to pass control to"),
            Problem::UnbalancedBraces => write!(f, "unbalanced braces"),
            Problem::Inconsistent(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for TextError {}

/// Parse facts. Labels of operations and values are indices into the returned names.
///
/// # Errors
/// The first problem, with its line.
pub fn parse(text: &str) -> Result<(Facts, Names), TextError> {
    let mut parser = Parser::default();
    let root = parser.b.region(None, RegionInfo::default());
    parser.open.push(Open::Region { region: root, blocks: Vec::new(), op: None });
    for (line, number) in text.lines().zip(1_u32..) {
        parser.line = number;
        let line = line.split("//").next().unwrap_or_default();
        let mut cursor = Cursor::new(line);
        if cursor.is_done() {
            continue;
        }
        parser.line(&mut cursor).map_err(|problem| TextError { line: number, problem })?;
    }
    parser.finish()
}

enum Open {
    Op { op: OpId, regions: Vec<RegionId> },
    Region { region: RegionId, blocks: Vec<BlockId>, op: Option<OpId> },
}

/// An edge whose value may be named later in the text.
struct Edge {
    line: u32,
    operand: OperandId,
    value: String,
    kind: EdgeKind,
}

enum EdgeKind {
    Flow,
    Alias { pairs: Option<Vec<(String, String)>>, equivalent: bool, definite: bool, retypes: bool },
}

#[derive(Default)]
struct Parser {
    b: FactsBuilder,
    names: Names,
    values: HashMap<String, ValueId>,
    open: Vec<Open>,
    edges: Vec<Edge>,
    reads_if: Vec<(u32, OperandId, String)>,
    /// Uses of values of later blocks.
    forward: Vec<(u32, OperandId, String)>,
    /// Successors by number, resolved when all siblings are known.
    region_next: Vec<(u32, RegionId, Option<OpId>, u64)>,
    block_next: Vec<(u32, BlockId, RegionId, u64)>,
    siblings: HashMap<OpId, Vec<RegionId>>,
    blocks: HashMap<RegionId, Vec<BlockId>>,
    line: u32,
}

impl Parser {
    fn line(&mut self, c: &mut Cursor<'_>) -> Result<(), Problem> {
        if c.eat("}") {
            return self.close(c);
        }
        match self.open.last() {
            None => Err(Problem::UnbalancedBraces),
            Some(Open::Op { .. }) if c.eat_word("region") => self.region(c),
            Some(Open::Op { .. }) => Err(Problem::Expected("`region` or `}`")),
            Some(Open::Region { .. }) if c.eat_word("block") => self.block(c).map(|_| ()),
            Some(Open::Region { region, .. }) if c.eat_word("symbols") => {
                let region = *region;
                self.symbols(c, region)
            }
            Some(Open::Region { .. }) => self.op(c),
        }
    }

    fn close(&mut self, c: &mut Cursor<'_>) -> Result<(), Problem> {
        c.expect_end()?;
        if self.open.len() < 2 {
            return Err(Problem::UnbalancedBraces);
        }
        match self.open.pop() {
            Some(Open::Op { op, regions }) => {
                self.siblings.insert(op, regions);
            }
            Some(Open::Region { region, blocks, .. }) => {
                self.blocks.insert(region, blocks);
            }
            None => {}
        }
        Ok(())
    }

    fn region(&mut self, c: &mut Cursor<'_>) -> Result<(), Problem> {
        let mut info = RegionInfo::default();
        let mut next = Vec::new();
        while !c.eat("{") {
            match c.word()? {
                "repeat" => info.repetitive = true,
                "parallel" => info.parallel = true,
                "graph" => info.graph = true,
                "trips" if c.eat("=") => info.trip_count = Some(c.number()?),
                "next" => next = c.numbers(),
                _ => return Err(Problem::Expected("a property of a region or `{`")),
            }
        }
        c.expect_end()?;
        let Some(Open::Op { op, regions }) = self.open.last_mut() else { return Err(Problem::UnbalancedBraces) };
        let op = *op;
        let region = self.b.region(Some(op), info);
        regions.push(region);
        self.region_next.extend(next.into_iter().map(|number| (self.line, region, Some(op), number)));
        self.open.push(Open::Region { region, blocks: Vec::new(), op: Some(op) });
        Ok(())
    }

    fn block(&mut self, c: &mut Cursor<'_>) -> Result<BlockId, Problem> {
        let Some(Open::Region { region, blocks, .. }) = self.open.last_mut() else {
            return Err(Problem::UnbalancedBraces);
        };
        let region = *region;
        let block = self.b.block(region);
        blocks.push(block);
        if c.eat("(") {
            while !c.eat(")") {
                let (name, info) = self.value(c)?;
                let value = self.b.argument(block, info);
                self.define(name, value)?;
                c.eat(",");
            }
        }
        if c.eat_word("next") {
            let next = c.numbers();
            self.block_next.extend(next.into_iter().map(|number| (self.line, block, region, number)));
        }
        c.expect_end()?;
        Ok(block)
    }

    fn symbols(&mut self, c: &mut Cursor<'_>, region: RegionId) -> Result<(), Problem> {
        while let Some(symbol) = c.symbol()? {
            // The table has an entry for each number below.
            if symbol > MOST_SYMBOLS {
                return Err(Problem::Expected("a smaller symbol"));
            }
            self.b.symbol(symbol, region);
            c.eat(",");
        }
        c.expect_end()
    }

    fn current_block(&mut self) -> Result<BlockId, Problem> {
        match self.open.last() {
            Some(Open::Region { blocks, .. }) if !blocks.is_empty() => Ok(blocks[blocks.len() - 1]),
            _ => self.block(&mut Cursor::new("")),
        }
    }

    fn value(&mut self, c: &mut Cursor<'_>) -> Result<(String, ValueInfo), Problem> {
        let name = c.value_name()?.to_owned();
        let mut info = ValueInfo { label: self.names.add(format!("%{name}")), ..ValueInfo::default() };
        if c.eat("<") {
            while !c.eat(">") {
                if let Some(bytes) = c.try_number() {
                    info.size_bytes = Some(bytes);
                    c.eat("B");
                    continue;
                }
                match c.word()? {
                    "frozen" => info.buffer.writable = false,
                    "alloc" => info.buffer.allocates = true,
                    "always" => info.buffer.definition = Definition::Always,
                    "never" => info.buffer.definition = Definition::Never,
                    "unranked" => info.ranked = false,
                    _ => return Err(Problem::Expected("a property of a value")),
                }
            }
        }
        Ok((name, info))
    }

    fn define(&mut self, name: String, value: ValueId) -> Result<(), Problem> {
        match self.values.insert(name.clone(), value) {
            None => Ok(()),
            Some(_) => Err(Problem::DuplicateValue(name)),
        }
    }

    fn op(&mut self, c: &mut Cursor<'_>) -> Result<(), Problem> {
        let block = self.current_block()?;
        let mut results = Vec::new();
        while c.peek("%") {
            results.push(self.value(c)?);
            c.eat(",");
        }
        if !results.is_empty() {
            c.expect("=", "`=`")?;
        }
        let name = c.word()?;
        let label = self.names.add(name);
        let op = self.b.op(block, label);
        let mut first_result = None;
        for (name, info) in results {
            let result = self.b.result(op, info);
            first_result = first_result.or(Some(result));
            self.define(name, result)?;
        }
        if c.eat_word("branch") {
            self.b.region_branch(op);
        }
        if c.eat_word("ends") {
            self.b.gives_out(op);
        }
        let mut operands = Vec::new();
        while !c.is_done() && !c.peek("{") && !c.peek_word("take") && !c.peek_word("put") {
            operands.push(self.operand(c, op)?);
            c.eat(",");
        }
        if let Some(subset) = self.subset(c, &operands, first_result)? {
            self.b.subset(op, subset);
        }
        if c.eat("{") {
            self.open.push(Open::Op { op, regions: Vec::new() });
        }
        c.expect_end()
    }

    fn operand(&mut self, c: &mut Cursor<'_>, op: OpId) -> Result<OperandId, Problem> {
        let mut used = Use::default();
        let mut reads_if = None;
        loop {
            if c.eat("r") {
                used.reads = Reads::Yes;
                if c.eat("(") {
                    reads_if = Some(c.value_name()?.to_owned());
                    c.expect(")", "`)`")?;
                }
            } else if c.eat("w") {
                used.writes = true;
            } else if c.eat("m") {
                used.must_in_place = true;
            } else if c.eat("e") {
                used.elementwise = true;
            } else {
                break;
            }
        }
        let name = c.value_name()?;
        let known = self.values.get(name).copied();
        let operand = self.b.operand(op, known.unwrap_or(ValueId::new(0)), used);
        if known.is_none() {
            self.forward.push((self.line, operand, name.to_owned()));
        }
        self.reads_if.extend(reads_if.map(|name| (self.line, operand, name)));
        while let Some(kind) = edge_kind(c)? {
            let value = c.value_name()?.to_owned();
            self.edges.push(Edge { line: self.line, operand, value, kind });
        }
        Ok(operand)
    }

    fn subset(
        &mut self,
        c: &mut Cursor<'_>,
        operands: &[OperandId],
        result: Option<ValueId>,
    ) -> Result<Option<Subset>, Problem> {
        let operand = |c: &mut Cursor<'_>| {
            let number = c.number()?;
            let index = usize::try_from(number).unwrap_or(usize::MAX);
            operands.get(index).copied().ok_or(Problem::UnknownOperand(number))
        };
        if c.eat_word("take") {
            let container = operand(c)?;
            let result = result.ok_or(Problem::Expected("a result before `take`"))?;
            let slice = self.slice(c)?;
            return Ok(Some(Subset::Extraction { container, result, slice }));
        }
        if !c.eat_word("put") {
            return Ok(None);
        }
        let source = if c.eat("-") { None } else { Some(operand(c)?) };
        let destination = operand(c)?;
        let slice = if c.eat_word("all") { None } else { Some(self.slice(c)?) };
        Ok(Some(Subset::Insertion { source, destination, slice }))
    }

    fn slice(&mut self, c: &mut Cursor<'_>) -> Result<SliceId, Problem> {
        let mut slice = Slice::default();
        c.expect("[", "`[`")?;
        while !c.eat("]") {
            slice.offsets.push(affine(c)?);
            c.expect(":", "`:`")?;
            slice.sizes.push(affine(c)?);
            c.expect(":", "`:`")?;
            slice.strides.push(affine(c)?);
            c.eat(",");
        }
        Ok(self.b.slice(slice))
    }

    fn named(&self, line: u32, name: &str) -> Result<ValueId, TextError> {
        let unknown = || TextError { line, problem: Problem::UnknownValue(name.to_owned()) };
        self.values.get(name).copied().ok_or_else(unknown)
    }

    fn finish(mut self) -> Result<(Facts, Names), TextError> {
        let end = |problem| TextError { line: self.line, problem };
        match self.open.pop() {
            Some(Open::Region { region, blocks, op: None }) => self.blocks.insert(region, blocks),
            _ => return Err(end(Problem::UnbalancedBraces)),
        };
        for index in 0..self.edges.len() {
            self.resolve_edge(index)?;
        }
        for (line, operand, name) in std::mem::take(&mut self.forward) {
            let value = self.named(line, &name)?;
            self.b.use_value(operand, value);
        }
        for (line, operand, name) in std::mem::take(&mut self.reads_if) {
            let value = self.named(line, &name)?;
            self.b.reads_if(operand, value);
        }
        let missing = |line, number| TextError { line, problem: Problem::UnknownSuccessor(number) };
        for &(line, region, op, number) in &self.region_next {
            let siblings = op.and_then(|op| self.siblings.get(&op));
            let next = siblings.and_then(|all| all.get(usize::try_from(number).ok()?));
            self.b.region_successor(region, *next.ok_or_else(|| missing(line, number))?);
        }
        for &(line, block, region, number) in &self.block_next {
            let next = self.blocks.get(&region).and_then(|all| all.get(usize::try_from(number).ok()?));
            self.b.block_successor(block, *next.ok_or_else(|| missing(line, number))?);
        }
        let line = 0;
        let facts = self.b.finish().map_err(|error| TextError { line, problem: Problem::Inconsistent(error) })?;
        Ok((facts, self.names))
    }

    fn resolve_edge(&mut self, index: usize) -> Result<(), TextError> {
        let Edge { line, operand, value, kind } = &self.edges[index];
        let (line, operand) = (*line, *operand);
        let value = self.named(line, value)?;
        let EdgeKind::Alias { pairs, equivalent, definite, retypes } = kind else {
            self.b.flow(operand, value);
            return Ok(());
        };
        let mut resolved = Vec::new();
        for (a, b) in pairs.iter().flatten() {
            resolved.push((self.named(line, a)?, self.named(line, b)?));
        }
        let relation = match resolved.first() {
            Some(&first) => Relation::EquivalentIf { first, second: resolved.get(1).copied() },
            None if *equivalent => Relation::Equivalent,
            None => Relation::Unknown,
        };
        let alias = Alias { value, relation, definite: *definite, retypes: *retypes };
        self.b.alias(operand, alias);
        Ok(())
    }
}

fn edge_kind(c: &mut Cursor<'_>) -> Result<Option<EdgeKind>, Problem> {
    if c.eat("^") {
        return Ok(Some(EdgeKind::Flow));
    }
    let equivalent = c.eat(">");
    if !equivalent && !c.eat("~") {
        return Ok(None);
    }
    let definite = !c.eat("?");
    let retypes = c.eat("!") == equivalent;
    let mut pairs = None;
    if c.eat("(") {
        let mut list = Vec::new();
        while !c.eat(")") {
            let first = c.value_name()?.to_owned();
            c.expect("=", "`=`")?;
            list.push((first, c.value_name()?.to_owned()));
            c.eat(",");
        }
        if list.is_empty() || list.len() > 2 || !equivalent {
            return Err(Problem::Expected("one or two pairs after `>`"));
        }
        pairs = Some(list);
    }
    Ok(Some(EdgeKind::Alias { pairs, equivalent, definite, retypes }))
}

fn affine(c: &mut Cursor<'_>) -> Result<Affine, Problem> {
    let mut sum = Affine::default();
    loop {
        if let Some(symbol) = c.symbol()? {
            sum.terms.push((symbol, 1));
        } else {
            let number = c.signed()?;
            if c.eat("*") {
                let symbol = c.symbol()?.ok_or(Problem::Expected("a symbol"))?;
                sum.terms.push((symbol, number));
            } else {
                sum.constant = sum.constant.checked_add(number).ok_or(Problem::Expected("a smaller number"))?;
            }
        }
        if !c.eat("+") {
            return Ok(sum.normalised());
        }
    }
}

/// Parse placements: `in` or `out` for each operand, in order, separated by spaces.
///
/// # Errors
/// A word is neither, or there are too few or too many.
pub fn parse_placements(facts: &Facts, text: &str) -> Result<IndexVec<OperandId, Placement>, TextError> {
    let wrong = |what| TextError { line: 1, problem: Problem::Expected(what) };
    let placements: Result<IndexVec<OperandId, Placement>, _> = text
        .split_whitespace()
        .map(|word| match word {
            "in" => Ok(Placement::InPlace),
            "out" => Ok(Placement::OutOfPlace),
            _ => Err(wrong("`in` or `out`")),
        })
        .collect();
    let placements = placements?;
    if placements.len() != facts.operands().len() {
        return Err(wrong("as many words as there are operands"));
    }
    Ok(placements)
}
