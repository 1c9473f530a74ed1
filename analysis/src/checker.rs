//! An independent check of decisions by abstract execution: it shares only the facts with the decider.
//!
//! A function is executed twice at the same time: with values (each tensor has immutable
//! contents) and with buffers (operands in place write to the buffer of their value, others to a copy).
//! Contents are terms with a normal form; at each read the buffer must hold the contents of the value. Values
//! that are claimed to be equivalent must be the same buffer.
//! Many executions are tried: branches and trip counts are those tried least (`paths`), until no new path comes up.
//!
//! Pessimistic on purpose:
//! * an operation stores before it loads, unless it is elementwise on exactly this buffer;
//! * different slices overlap, if they are known by name alone ([`check`]), and parts at unknown positions;
//! * a buffer that parallel iterations share holds garbage after they write to it.
//!
//! For [`check_elements`] slices are numbers: each symbol gets a value when its region is entered, mostly the next one in a loop.
//! So which elements two slices have in common is not derived, as in the decider, but seen. An execution in which a slice leaves
//! its tensor, or is overwritten by a tensor of another size, is undefined from there on and left; so is one that is cut off in
//! a cycle, as it never comes to what follows the cycle.
//!
//! Limits: it runs a sample of paths, so a pass is not a proof; loops run a few times only, parallel loops once.
//! Contents of region arguments follow [`Facts::flows`]; without flows they are unknown, and so are results.
//! A terminator's operand that is not its own iteration argument is copied, as the rewrite does.

mod claims;
mod elements;
mod paths;
mod targets;

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use self::claims::Claims;
use self::elements::symbol_count;
use self::paths::{Paths, Point};
use self::targets::targets;
use crate::facts::{Alias, Definition, Facts, Operand, Relation, Subset};
use crate::index::{BlockId, IndexVec, OpId, OperandId, RegionId, SliceId, ValueId};
use crate::one_shot::{Decisions, InPlaceAnalysis};
use crate::terms::{Location, Memory, Part, TermId, Terms, UNDEFINED};

/// How often a loop runs at most.
const MOST_TRIPS: u32 = 3;

/// How deep regions may nest; deeper ones are not executed (the walk is recursive).
const MOST_DEPTH: u32 = 500;

/// Least and most executions of [`check`].
const EXECUTIONS: std::ops::Range<u64> = 16..150;

/// [`check`] stops when the last `1 / QUIET_PART` of all executions found no new path.
const QUIET_PART: u64 = 2;

/// How many operations one execution runs at most: nested loops multiply.
const MOST_OPS: u32 = 20_000;

/// A defect of decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// The operand's buffer does not hold the contents of its value.
    ReadsOtherContents(OperandId),
    /// The operand stores to a buffer that is not writable.
    WritesFrozenBuffer(OperandId),
    /// The operand must be in place and is not.
    CopiesWhatMustBeInPlace(OperandId),
    /// The values are claimed to be equivalent and are not the same buffer.
    IsAnotherBuffer(ValueId, ValueId),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadsOtherContents(operand) => write!(f, "operand {operand} reads contents that are not its value's"),
            Self::WritesFrozenBuffer(operand) => write!(f, "operand {operand} writes to a buffer that is not writable"),
            Self::CopiesWhatMustBeInPlace(operand) => write!(f, "operand {operand} must be in place and is not"),
            Self::IsAnotherBuffer(value, other) => write!(f, "value {value} is not the buffer of {other}"),
        }
    }
}

impl std::error::Error for Violation {}

/// Run a function with its decisions.
///
/// # Errors
/// The first violation in one of the executions.
pub fn check(facts: &Facts, decisions: &Decisions) -> Result<(), Violation> {
    run(facts, decisions, false).map(|_| ())
}

/// As [`check`], with the elements of slices, for decisions that know which slices have none in common.
/// Returns the number of executions that came to an end.
///
/// # Errors
/// The first violation in one of the executions.
pub fn check_elements(facts: &Facts, decisions: &Decisions) -> Result<u32, Violation> {
    run(facts, decisions, true)
}

fn run(facts: &Facts, decisions: &Decisions, by_element: bool) -> Result<u32, Violation> {
    let copied = |(id, used): (OperandId, &Operand)| used.must_in_place && !decisions.is_in_place(id);
    if let Some(id) = facts.operands().ids().find(|&id| copied((id, &facts.operands()[id]))) {
        return Err(Violation::CopiesWhatMustBeInPlace(id));
    }
    let targets = targets(facts);
    let mut paths = Paths::new();
    let (mut last_news, mut ended) = (0, 0);
    for number in 0..EXECUTIONS.end {
        paths.begin();
        ended += u32::from(Machine::new(facts, decisions, &targets, &mut paths, by_element).run()?);
        if paths.found_news() {
            last_news = number;
        }
        if number >= EXECUTIONS.start && (number - last_news) * QUIET_PART > number {
            break;
        }
    }
    Ok(ended)
}

/// A value at run time: its expected contents, and its location.
#[derive(Clone, Debug)]
struct Cell {
    contents: TermId,
    location: Location,
    /// The sizes of a slice.
    sizes: Option<Rc<[i64]>>,
    /// The value whose elements the positions of slices count, if it has another shape than the location (a reshape).
    shape: Option<ValueId>,
}

struct Machine<'a> {
    facts: &'a Facts,
    decisions: &'a Decisions,
    paths: &'a mut Paths,
    terms: Terms,
    memory: Memory,
    cells: IndexVec<ValueId, Option<Cell>>,
    /// Contents that flowed to an argument or result and will be bound to it.
    pending: IndexVec<ValueId, Option<Cell>>,
    /// Values that the operand flows to: arguments and results of region operations.
    targets: &'a IndexVec<OperandId, Vec<ValueId>>,
    claims: Claims,
    /// The parallel regions that are running, outermost first.
    parallel: Vec<RegionId>,
    /// Slices are numbers.
    by_element: bool,
    /// The execution is undefined from here on.
    is_undefined: bool,
    /// The values of symbols.
    symbols: HashMap<u32, i64>,
    /// One more than the largest symbol.
    symbol_count: u32,
    left: u32,
}

impl<'a> Machine<'a> {
    fn new(
        facts: &'a Facts,
        decisions: &'a Decisions,
        targets: &'a IndexVec<OperandId, Vec<ValueId>>,
        paths: &'a mut Paths,
        by_element: bool,
    ) -> Self {
        Self {
            facts,
            decisions,
            paths,
            terms: Terms::new(),
            memory: Memory::default(),
            cells: IndexVec::filled(None, facts.values().len()),
            pending: IndexVec::filled(None, facts.values().len()),
            targets,
            claims: Claims::default(),
            parallel: Vec::new(),
            by_element,
            is_undefined: false,
            symbols: HashMap::new(),
            symbol_count: symbol_count(facts),
            left: MOST_OPS,
        }
    }

    /// Whether the execution came to an end.
    fn run(mut self) -> Result<bool, Violation> {
        self.draw_symbols(RegionId::new(0));
        self.region(RegionId::new(0), 0)?;
        Ok(!self.is_undefined && self.left > 0)
    }

    /// Leaves the execution.
    fn leave(&mut self) {
        self.is_undefined = true;
        self.left = 0;
    }

    fn owner(&self) -> Option<u32> {
        self.parallel.last().map(|region| region.number())
    }

    fn fresh(&mut self, contents: TermId, writable: bool) -> Location {
        let owner = self.owner();
        self.memory.allocate(contents, writable, owner)
    }

    /// The cell of a value; unknown contents if none was bound to it (an unreachable path, or missing flows).
    fn cell(&mut self, value: ValueId) -> Cell {
        if let Some(cell) = &self.cells[value] {
            return cell.clone();
        }
        let contents = self.terms.unique();
        let location = self.fresh(contents, self.facts.values()[value].info.buffer.writable);
        let cell = Cell { contents, location, sizes: None, shape: None };
        self.cells[value] = Some(cell.clone());
        cell
    }

    // ---- Control flow. ----

    fn region(&mut self, region: RegionId, depth: u32) -> Result<(), Violation> {
        let blocks = self.facts.blocks_of(region);
        let mut current = blocks.first().copied();
        // Enough to pass every block on the way, and a cycle a few times.
        let most_jumps = MOST_TRIPS as usize * blocks.len();
        let mut jumps = 0;
        while let Some(block) = current {
            self.block(block, depth)?;
            let next = self.facts.block_successors.of(block);
            let choice = self.paths.choose(Point::After(block), next.len());
            current = next.get(choice).copied().filter(|_| jumps < most_jumps);
            jumps += 1;
        }
        Ok(())
    }

    fn block(&mut self, block: BlockId, depth: u32) -> Result<(), Violation> {
        let parallel = self.facts.regions()[self.facts.blocks()[block].region].info.parallel;
        for &argument in self.facts.arguments_of(block) {
            self.cells[argument] = self.pending[argument].take();
            // Without flows into an argument, its buffer is unknown.
            let is_known = self.cells[argument].is_some() || depth == 0;
            let mut cell = self.cell(argument);
            // Each iteration owns its part of a shared output, if the enclosing iteration owns the output.
            let outer = self.parallel.iter().nth_back(1).map(|region| region.number());
            if parallel && cell.location.owner == outer {
                cell.location.owner = self.owner();
            }
            self.cells[argument] = Some(cell);
            if is_known {
                self.check_claims(argument)?;
            }
        }
        for &op in self.facts.ops_of(block) {
            if self.left == 0 {
                return Ok(());
            }
            self.left -= 1;
            self.op(op, depth)?;
        }
        Ok(())
    }

    fn regions(&mut self, op: OpId, depth: u32) -> Result<(), Violation> {
        let regions = self.facts.regions_of(op);
        let leads_on = |region: &&RegionId| !self.facts.region_successors.of(**region).is_empty();
        let Some(&first) = regions.first().filter(|_| depth < MOST_DEPTH) else { return Ok(()) };
        if !self.facts.ops()[op].region_branch {
            return regions.iter().try_for_each(|&region| self.enter(region, depth));
        }
        if !regions.iter().any(|region| leads_on(&region)) {
            let choice = self.paths.choose(Point::Branch(op), regions.len());
            return self.enter(regions[choice], depth);
        }
        // A loop: enter at the first region, leave where every result has a source.
        let mut current = first;
        let mut trips = 0;
        let parallel = self.facts.regions()[first].info.parallel;
        if !parallel && self.may_leave(op, None) && !self.paths.decide(Point::Enter(op)) {
            return Ok(());
        }
        loop {
            self.enter(current, depth)?;
            trips += 1;
            let stop = parallel || trips >= MOST_TRIPS || self.paths.decide(Point::Leave(current));
            let next = self.facts.region_successors.of(current);
            let choice = self.paths.choose(Point::Follow(current), next.len());
            match next.get(choice) {
                Some(&next) if !(stop && self.may_leave(op, Some(current))) && trips < 4 * MOST_TRIPS => current = next,
                _ => return Ok(()),
            }
        }
    }

    /// Whether the results are known after a region (or before any).
    fn may_leave(&self, op: OpId, region: Option<RegionId>) -> bool {
        self.facts.results_of(op).iter().all(|&result| {
            let flows = self.facts.flows(result);
            flows.is_empty()
                || flows.iter().any(|&operand| {
                    let from = self.facts.operands()[operand].op;
                    match region {
                        None => from == op,
                        Some(region) => self.facts.region_spans[region].contains(self.facts.span(from).first),
                    }
                })
        })
    }

    fn enter(&mut self, region: RegionId, depth: u32) -> Result<(), Violation> {
        let outer = self.parallel.len();
        self.draw_symbols(region);
        if self.facts.regions()[region].info.parallel {
            self.parallel.push(region);
        }
        let bound = self.claims.depth();
        let result = self.region(region, depth + 1);
        self.claims.leave(bound);
        self.parallel.truncate(outer);
        result
    }

    /// Checks the claimed equivalences of a value when it is bound.
    fn check_claims(&mut self, value: ValueId) -> Result<(), Violation> {
        let class = self.decisions.equivalence_class(value);
        let here = self.cell(value).location;
        if self.is_undefined {
            return Ok(());
        }
        for other in self.claims.bind(self.facts, class, value) {
            if !self.cell(other).location.is_same(&here) {
                return Err(Violation::IsAnotherBuffer(value, other));
            }
        }
        Ok(())
    }

    // ---- One operation. ----

    fn op(&mut self, op: OpId, depth: u32) -> Result<(), Violation> {
        let operands = self.facts.operands_of(op);
        let cells: Vec<(OperandId, Cell)> = operands.iter().map(|&id| (id, self.buffer(id))).collect();
        let (carried, accessed): (Vec<_>, Vec<_>) =
            cells.iter().cloned().partition(|(id, _)| !self.targets[*id].is_empty() && !self.is_insertion(op));
        for (id, cell) in &carried {
            self.carry(*id, cell);
        }
        self.check_accesses(op, &accessed)?;
        let read: Vec<_> = accessed.iter().filter(|(id, _)| self.facts.operands()[*id].reads).collect();
        let inputs: Vec<TermId> = read.iter().map(|(_, cell)| cell.contents).collect();
        let written = self.write(op, &accessed, &inputs);
        self.regions(op, depth)?;
        for (index, &result) in self.facts.results_of(op).iter().enumerate() {
            let output = u32::try_from(index).unwrap_or(u32::MAX);
            let cell = match self.pending[result].take() {
                Some(mut cell) => {
                    let inside = |region: &RegionId| Some(region.number()) == cell.location.owner;
                    if self.facts.regions_of(op).iter().any(inside) {
                        cell.location.owner = self.owner();
                    }
                    cell
                }
                None if self.facts.flows(result).is_empty() => self.result(op, output, result, &written, &inputs),
                // The path was cut off in a cycle of the regions: it has not left them.
                None => {
                    self.leave();
                    return Ok(());
                }
            };
            self.cells[result] = Some(cell);
        }
        self.copy_results(op);
        self.facts.results_of(op).iter().try_for_each(|&result| self.check_claims(result))
    }

    fn is_insertion(&self, op: OpId) -> bool {
        matches!(self.facts.ops()[op].subset, Some(Subset::Insertion { .. }))
    }

    /// The buffer that the operation uses: that of the value, or a copy.
    fn buffer(&mut self, id: OperandId) -> Cell {
        let cell = self.cell(self.facts.operands()[id].value);
        match self.decisions.copy(id) {
            Some(copy) if copy.result.is_none() => self.copied(&cell, copy.contents),
            _ => cell,
        }
    }

    fn copied(&mut self, cell: &Cell, contents: bool) -> Cell {
        let held = match contents {
            true => self.memory.read(&mut self.terms, &cell.location),
            false if cell.contents == UNDEFINED => UNDEFINED,
            false => self.terms.unique(),
        };
        Cell { contents: cell.contents, location: self.fresh(held, true), sizes: cell.sizes.clone(), shape: cell.shape }
    }

    fn copy_results(&mut self, op: OpId) {
        for &id in self.facts.operands_of(op) {
            let Some(copy) = self.decisions.copy(id) else { continue };
            let Some(result) = copy.result else { continue };
            let cell = self.cell(result);
            self.cells[result] = Some(self.copied(&cell, copy.contents));
        }
    }

    /// Forward an operand to an argument or result.
    fn carry(&mut self, id: OperandId, cell: &Cell) {
        let op = self.facts.operands()[id].op;
        let block = self.facts.ops()[op].block;
        let region = self.facts.blocks()[block].region;
        let number = self.facts.operands_of(op).iter().position(|&other| other == id).unwrap_or(usize::MAX);
        let is_terminator = self.facts.ops_of(block).last() == Some(&op);
        let mut passed = cell.clone();
        // A loop keeps the buffer of the iteration argument; anything else is copied.
        if is_terminator && self.facts.regions()[region].info.repetitive {
            let own = self.facts.arguments_of(block).get(number).copied();
            let keeps = own.is_some_and(|own| self.cell(own).location.is_same(&cell.location));
            if !keeps {
                passed = self.copied(cell, true);
            }
        }
        for target in self.targets[id].clone() {
            self.pending[target] = Some(passed.clone());
        }
    }

    /// The part of memory that an operand stores to, and the part of the operand's value, if it is not all of it.
    fn stored(&mut self, op: OpId, id: OperandId, cell: &Cell) -> (Location, Option<Part>) {
        match self.inserted(op) {
            Some((destination, Some(slice))) if destination == id => {
                let part = self.slice(slice, cell);
                let location = part.map(|part| cell.location.part(&mut self.terms, part));
                (location.unwrap_or_else(|| cell.location.clone()), part)
            }
            _ => (cell.location.clone(), None),
        }
    }

    /// The destination of an insertion, and the slice that it overwrites; no slice for the whole.
    fn inserted(&self, op: OpId) -> Option<(OperandId, Option<SliceId>)> {
        let Some(Subset::Insertion { source, destination, slice }) = self.facts.ops()[op].subset else { return None };
        let value = |id: OperandId| self.facts.operands()[id].value;
        let is_whole = source.is_some_and(|source| self.are_of_one_size(value(source), value(destination)));
        Some((destination, slice.filter(|_| !is_whole)))
    }

    /// Whether a slice that is one of these values covers the whole of the other.
    fn are_of_one_size(&self, slice: ValueId, container: ValueId) -> bool {
        let size = |value: ValueId| self.facts.values()[value].info.size_bytes;
        size(slice).is_some() && size(slice) == size(container)
    }

    fn check_accesses(&mut self, op: OpId, accessed: &[(OperandId, Cell)]) -> Result<(), Violation> {
        let facts = self.facts;
        let writes: Vec<_> = accessed.iter().filter(|(id, _)| facts.operands()[*id].writes).collect();
        if let Some((id, _)) = writes.iter().find(|(_, cell)| !self.memory.is_writable(&cell.location)) {
            return Err(Violation::WritesFrozenBuffer(*id));
        }
        for (id, cell) in accessed.iter().filter(|(id, _)| facts.operands()[*id].reads) {
            // The other writes of the operation come first, unless they go position by position.
            let mut memory = self.memory.clone();
            for (other, written) in writes.iter().filter(|(other, _)| other != id) {
                let (location, _) = self.stored(op, *other, written);
                let together = facts.operands()[*id].elementwise && facts.operands()[*other].elementwise;
                let in_step = (together || self.is_insertion(op)) && location.is_same(&cell.location);
                if !in_step {
                    let garbage = self.terms.unique();
                    memory.write(&mut self.terms, &location, garbage);
                }
            }
            let mut actual = memory.read(&mut self.terms, &cell.location);
            let mut expected = cell.contents;
            // The slice that an insertion overwrites need not hold its contents.
            if let Some((destination, slice)) = self.inserted(op)
                && destination == *id
            {
                let Some(slice) = slice else { continue };
                let Some(part) = self.slice(slice, cell) else { continue };
                actual = self.terms.insert(actual, part, UNDEFINED);
                expected = self.terms.insert(expected, part, UNDEFINED);
            }
            // The slice of another operand may have left its tensor.
            if !self.terms.matches(expected, actual) && !self.is_undefined {
                return Err(Violation::ReadsOtherContents(*id));
            }
        }
        Ok(())
    }

    /// Store, and return the new cell of each operand's value.
    fn write(&mut self, op: OpId, accessed: &[(OperandId, Cell)], inputs: &[TermId]) -> Vec<(OperandId, Cell)> {
        let mut after = accessed.to_vec();
        for (index, (id, cell)) in accessed.iter().enumerate() {
            if !self.facts.operands()[*id].writes {
                continue;
            }
            let (location, part) = self.stored(op, *id, cell);
            let number = u32::try_from(index).unwrap_or(u32::MAX / 2);
            let source = match self.facts.ops()[op].subset {
                Some(Subset::Insertion { source: Some(source), destination, .. }) if destination == *id => {
                    accessed.iter().find(|(other, _)| *other == source).map(|(_, cell)| cell)
                }
                _ => None,
            };
            // For undefined contents, the copy holds whatever the source buffer holds.
            let (stored, copied) = match source {
                Some(from) => {
                    let held = self.memory.read(&mut self.terms, &from.location);
                    let sizes = self.stored_sizes(cell, part);
                    let sizes = sizes.as_deref();
                    (self.first(from, from.contents, sizes), self.first(from, held, sizes))
                }
                None => {
                    let made = self.terms.computed(op, u32::MAX - number, inputs.to_vec());
                    (made, made)
                }
            };
            // Other iterations store to a shared buffer at the same time.
            let is_private = self.parallel.is_empty() || location.owner == self.owner();
            let held = if is_private { copied } else { self.terms.unique() };
            self.memory.write(&mut self.terms, &location, held);
            after[index].1.contents = match part {
                Some(part) => self.terms.insert(cell.contents, part, stored),
                None => stored,
            };
            for target in self.targets[*id].clone() {
                self.pending[target] = Some(after[index].1.clone());
            }
            if self.facts.results_of(op).is_empty() && self.is_insertion(op) {
                // An insertion without a result updates the value itself (`tensor.parallel_insert_slice`).
                self.cells[self.facts.operands()[*id].value] = Some(after[index].1.clone());
            }
        }
        after
    }

    fn result(
        &mut self,
        op: OpId,
        output: u32,
        result: ValueId,
        after: &[(OperandId, Cell)],
        inputs: &[TermId],
    ) -> Cell {
        if let Some(Subset::Extraction { container, result: slice_of, slice }) = self.facts.ops()[op].subset
            && slice_of == result
            && let Some((_, cell)) = after.iter().find(|(id, _)| *id == container)
        {
            let whole = self.are_of_one_size(result, self.facts.operands()[container].value);
            let part = if whole { None } else { self.slice(slice, cell) };
            return part.map_or_else(|| cell.clone(), |part| self.part(cell, part));
        }
        let mut own: Vec<(Alias, Cell)> = after
            .iter()
            .flat_map(|(id, cell)| self.facts.aliasing_values(*id).iter().map(move |alias| (*alias, cell.clone())))
            .filter(|(alias, _)| alias.value == result)
            .collect();
        // A value that is a definite alias of one operand is no alias of another.
        let certain = own.iter().any(|(alias, _)| alias.definite);
        own.retain(|(alias, _)| alias.definite || !certain);
        let choice = self.paths.choose(Point::Source(result), own.len());
        match own.get(choice) {
            Some((alias, cell)) if alias.relation == Relation::Unknown => self.part(cell, Part::View(result)),
            Some((alias, cell)) if alias.retypes => Cell { sizes: None, shape: Some(result), ..cell.clone() },
            Some((_, cell)) => cell.clone(),
            None => {
                let info = self.facts.values()[result].info;
                let undefined = info.buffer.definition == Definition::Never;
                let contents = if undefined { UNDEFINED } else { self.terms.computed(op, output, inputs.to_vec()) };
                Cell { contents, location: self.fresh(contents, info.buffer.writable), sizes: None, shape: None }
            }
        }
    }

    fn part(&mut self, cell: &Cell, part: Part) -> Cell {
        let contents = self.terms.extract(cell.contents, part);
        let sizes = self.terms.sides(part).map(|sides| sides.iter().map(|side| side.size).collect());
        let location = cell.location.part(&mut self.terms, part);
        Cell { contents, location, sizes, shape: None }
    }
}
