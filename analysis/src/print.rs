//! Writes facts and decisions in the form of [`crate::text`].

use std::fmt::{self, Write as _};

use crate::facts::{Affine, Alias, Definition, Facts, Label, Reads, Relation, Slice, Subset};
use crate::index::{BlockId, Id, Lists, OpId, OperandId, RegionId, ValueId};
use crate::one_shot::{Decisions, Placement, Reason};
use crate::text::Names;

/// Facts as text; labels are looked up in the names, `o3` and `%v3` replace missing ones.
pub fn facts(facts: &Facts, names: &Names) -> String {
    let mut printer = Printer::new(facts, names);
    // Writing to a string cannot fail.
    let _ = printer.all();
    printer.out
}

/// Decisions as text: for each operation its operands with `in`, or `out` and the reason, then the alias classes
/// (`~`) and equivalence classes (`=`).
pub fn decisions(facts: &Facts, names: &Names, decisions: &Decisions) -> String {
    let mut printer = Printer::new(facts, names);
    let _ = printer.decisions(decisions);
    printer.out
}

struct Printer<'a> {
    facts: &'a Facts,
    names: &'a Names,
    /// Values that receive the contents of each operand.
    flows: Lists<OperandId, ValueId>,
    out: String,
}

/// The items still to be printed, on an explicit stack, because nesting may be deep.
enum Step {
    Region(RegionId, usize),
    Block(BlockId, bool, usize),
    Op(OpId, usize),
    Close(usize),
}

impl<'a> Printer<'a> {
    fn new(facts: &'a Facts, names: &'a Names) -> Self {
        let flows = facts.values().ids().flat_map(|value| facts.flows(value).iter().map(move |&from| (from, value)));
        let flows = Lists::group(facts.operands().len(), &flows.collect::<Vec<_>>());
        Self { facts, names, flows, out: String::new() }
    }

    fn all(&mut self) -> fmt::Result {
        let mut stack = vec![];
        self.symbols(RegionId::new(0), 0)?;
        self.push_blocks(&mut stack, RegionId::new(0), 0);
        while let Some(step) = stack.pop() {
            match step {
                Step::Close(depth) => writeln!(self.out, "{:depth$}}}", "")?,
                Step::Region(region, depth) => {
                    self.region(region, depth)?;
                    self.symbols(region, depth + 2)?;
                    stack.push(Step::Close(depth));
                    self.push_blocks(&mut stack, region, depth + 2);
                }
                Step::Block(block, only, depth) => {
                    self.block(block, only, depth)?;
                    stack.extend(self.facts.ops_of(block).iter().rev().map(|&op| Step::Op(op, depth)));
                }
                Step::Op(op, depth) => {
                    self.op(op, depth)?;
                    let regions = self.facts.regions_of(op);
                    if !regions.is_empty() {
                        stack.push(Step::Close(depth));
                        stack.extend(regions.iter().rev().map(|&region| Step::Region(region, depth + 2)));
                    }
                }
            }
        }
        Ok(())
    }

    fn push_blocks(&self, stack: &mut Vec<Step>, region: RegionId, depth: usize) {
        let blocks = self.facts.blocks_of(region);
        stack.extend(blocks.iter().rev().map(|&block| Step::Block(block, blocks.len() == 1, depth)));
    }

    fn region(&mut self, region: RegionId, depth: usize) -> fmt::Result {
        let info = self.facts.regions()[region].info;
        write!(self.out, "{:depth$}region", "")?;
        for (word, set) in [(" repeat", info.repetitive), (" parallel", info.parallel), (" graph", info.graph)] {
            self.out.push_str(if set { word } else { "" });
        }
        if let Some(trips) = info.trip_count {
            write!(self.out, " trips={trips}")?;
        }
        let siblings = self.facts.regions()[region].op.map_or(&[][..], |op| self.facts.regions_of(op));
        self.next(self.facts.region_successors.of(region), siblings)?;
        writeln!(self.out, " {{")
    }

    fn symbols(&mut self, region: RegionId, depth: usize) -> fmt::Result {
        let scopes = self.facts.symbol_scopes.iter().enumerate();
        let own: Vec<_> = scopes.filter(|(_, scope)| **scope == Some(region)).map(|(s, _)| format!("s{s}")).collect();
        if own.is_empty() { Ok(()) } else { writeln!(self.out, "{:depth$}symbols {}", "", own.join(", ")) }
    }

    fn next<I: Id>(&mut self, successors: &[I], siblings: &[I]) -> fmt::Result {
        for (index, successor) in successors.iter().enumerate() {
            let number = siblings.iter().position(|other| other == successor).unwrap_or(usize::MAX);
            write!(self.out, "{}{number}", if index == 0 { " next " } else { ", " })?;
        }
        Ok(())
    }

    fn block(&mut self, block: BlockId, only: bool, depth: usize) -> fmt::Result {
        let arguments = self.facts.arguments_of(block);
        let next = self.facts.block_successors.of(block);
        if only && arguments.is_empty() && next.is_empty() {
            return Ok(());
        }
        write!(self.out, "{:depth$}block", "")?;
        for (index, &argument) in arguments.iter().enumerate() {
            self.out.push_str(if index == 0 { "(" } else { ", " });
            self.definition(argument)?;
        }
        self.out.push_str(if arguments.is_empty() { "" } else { ")" });
        self.next(next, self.facts.blocks_of(self.facts.blocks()[block].region))?;
        writeln!(self.out)
    }

    fn op_name(&self, op: OpId) -> String {
        self.name(self.facts.ops()[op].label).unwrap_or_else(|| format!("{op}"))
    }

    fn name(&self, label: Label) -> Option<String> {
        self.names.get(label).map(str::to_owned)
    }

    fn value(&self, value: ValueId) -> String {
        self.name(self.facts.values()[value].info.label).unwrap_or_else(|| format!("%{value}"))
    }

    fn definition(&mut self, value: ValueId) -> fmt::Result {
        let info = self.facts.values()[value].info;
        let mut words = Vec::new();
        words.extend((!info.buffer.writable).then(|| "frozen".to_owned()));
        words.extend(info.buffer.allocates.then(|| "alloc".to_owned()));
        words.extend((!info.ranked).then(|| "unranked".to_owned()));
        match info.buffer.definition {
            Definition::Inferred => {}
            Definition::Always => words.push("always".to_owned()),
            Definition::Never => words.push("never".to_owned()),
        }
        words.extend(info.size_bytes.map(|bytes| format!("{bytes}B")));
        write!(self.out, "{}", self.value(value))?;
        if words.is_empty() { Ok(()) } else { write!(self.out, "<{}>", words.join(" ")) }
    }

    fn op(&mut self, op: OpId, depth: usize) -> fmt::Result {
        write!(self.out, "{:depth$}", "")?;
        for (index, &result) in self.facts.results_of(op).iter().enumerate() {
            self.out.push_str(if index == 0 { "" } else { ", " });
            self.definition(result)?;
        }
        let equals = if self.facts.results_of(op).is_empty() { "" } else { " = " };
        write!(self.out, "{equals}{}", self.op_name(op))?;
        self.out.push_str(if self.facts.ops()[op].region_branch { " branch" } else { "" });
        self.out.push_str(if self.facts.ops()[op].gives_out { " ends" } else { "" });
        for (index, &operand) in self.facts.operands_of(op).iter().enumerate() {
            self.out.push_str(if index == 0 { " " } else { ", " });
            self.operand(operand)?;
        }
        self.subset(op)?;
        writeln!(self.out, "{}", if self.facts.regions_of(op).is_empty() { "" } else { " {" })
    }

    fn operand(&mut self, operand: OperandId) -> fmt::Result {
        let used = self.facts.operands()[operand];
        match self.facts.declared_reads[operand] {
            Reads::No => {}
            Reads::Yes => self.out.push('r'),
            Reads::IfRead(value) => write!(self.out, "r({})", self.value(value))?,
        }
        for (letter, set) in [("w", used.writes), ("m", used.must_in_place), ("e", used.elementwise)] {
            self.out.push_str(if set { letter } else { "" });
        }
        write!(self.out, "{}", self.value(used.value))?;
        for alias in self.facts.aliasing_values(operand) {
            self.alias(alias)?;
        }
        for index in 0..self.flows.of(operand).len() {
            write!(self.out, "^{}", self.value(self.flows.of(operand)[index]))?;
        }
        Ok(())
    }

    fn alias(&mut self, alias: &Alias) -> fmt::Result {
        let unknown = alias.relation == Relation::Unknown;
        self.out.push(if unknown { '~' } else { '>' });
        self.out.push_str(if alias.definite { "" } else { "?" });
        self.out.push_str(if alias.retypes == unknown { "" } else { "!" });
        if let Relation::EquivalentIf { first, second } = alias.relation {
            let pair = |(a, b)| format!("{}={}", self.value(a), self.value(b));
            let pairs: Vec<_> = [Some(first), second].into_iter().flatten().map(pair).collect();
            write!(self.out, "({})", pairs.join(", "))?;
        }
        write!(self.out, "{}", self.value(alias.value))
    }

    fn subset(&mut self, op: OpId) -> fmt::Result {
        let operands = self.facts.operands_of(op);
        let number = |operand: OperandId| operands.iter().position(|&other| other == operand).unwrap_or(usize::MAX);
        match self.facts.ops()[op].subset {
            None => Ok(()),
            Some(Subset::Extraction { container, slice, .. }) => {
                write!(self.out, " take {} {}", number(container), slice_text(&self.facts.slices()[slice]))
            }
            Some(Subset::Insertion { source, destination, slice }) => {
                let source = source.map_or("-".to_owned(), |source| number(source).to_string());
                let slice = slice.map_or("all".to_owned(), |slice| slice_text(&self.facts.slices()[slice]));
                write!(self.out, " put {source} {} {slice}", number(destination))
            }
        }
    }

    fn decisions(&mut self, decisions: &Decisions) -> fmt::Result {
        for index in 0..self.facts.order.len() {
            let op = self.facts.order[index];
            let operands = self.facts.operands_of(op);
            if operands.is_empty() {
                continue;
            }
            write!(self.out, "{}:", self.op_name(op))?;
            for &operand in operands {
                write!(self.out, " {}", self.value(self.facts.operands()[operand].value))?;
                match decisions.placements()[operand] {
                    Placement::InPlace => self.out.push_str(" in"),
                    Placement::OutOfPlace => self.reason(decisions.reason(operand))?,
                }
            }
            writeln!(self.out)?;
        }
        self.classes("~", |value| decisions.alias_class(value))?;
        self.classes("=", |value| decisions.equivalence_class(value))
    }

    fn reason(&mut self, reason: Option<Reason>) -> fmt::Result {
        let used = |operand: OperandId| {
            let op = self.facts.operands()[operand].op;
            let number = self.facts.operands_of(op).iter().position(|&other| other == operand).unwrap_or_default();
            format!("{}#{number}", self.op_name(op))
        };
        let text = match reason {
            None => String::new(),
            Some(Reason::NotWritable { write, value }) => {
                format!("({} writes, {} is not writable)", used(write), self.value(value))
            }
            Some(Reason::SharedByParallelIterations { read, write }) => {
                format!("({} writes what iterations share, {} reads)", used(write), used(read))
            }
            Some(Reason::ReadAfterWrite { read, write, definition }) => {
                format!("({} writes, {} reads {})", used(write), used(read), self.value(definition))
            }
            Some(Reason::CopyBeforeWrite) => "(no analysis)".to_owned(),
        };
        write!(self.out, " OUT{text}")
    }

    fn classes(&mut self, sign: &str, class: impl Fn(ValueId) -> ValueId) -> fmt::Result {
        let mut members = vec![Vec::new(); self.facts.values().len()];
        for value in self.facts.values().ids() {
            members[class(value).index()].push(value);
        }
        let mut shared: Vec<_> = members.into_iter().filter(|members| members.len() > 1).collect();
        shared.sort_unstable();
        for members in shared {
            let names: Vec<_> = members.into_iter().map(|value| self.value(value)).collect();
            writeln!(self.out, "{sign} {}", names.join(" "))?;
        }
        Ok(())
    }
}

fn slice_text(slice: &Slice) -> String {
    let dims = slice.offsets.iter().zip(&slice.sizes).zip(&slice.strides);
    let dims: Vec<_> = dims
        .map(|((offset, size), stride)| format!("{}:{}:{}", affine(offset), affine(size), affine(stride)))
        .collect();
    format!("[{}]", dims.join(", "))
}

fn affine(number: &Affine) -> String {
    let mut parts = Vec::new();
    if number.constant != 0 || number.terms.is_empty() {
        parts.push(number.constant.to_string());
    }
    parts.extend(number.terms.iter().map(|&(symbol, factor)| match factor {
        1 => format!("s{symbol}"),
        _ => format!("{factor}*s{symbol}"),
    }));
    parts.join("+")
}
