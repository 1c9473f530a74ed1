//! Upstream's form: one `bufferization.dealloc` at the end of each block, retaining what the terminator forwards.
//!
//! ```text
//! %a = memref.alloc() : memref<8xf32>       %base, .. = memref.extract_strided_metadata %a
//! scf.yield %a                        ==>   %own = bufferization.dealloc (%base) if (%true) retain (%a)
//!                                           scf.yield %a, %own
//! ```
//!
//! Every memref of a block has an ownership indicator there, an `i1`: true for allocations and results of calls, false for
//! arguments of the function, globals, and what is captured from outside. Results of `scf.if` and `scf.for` and arguments of
//! loops come with one. What a function returns is cloned unless its indicator is set.
//! Source: MLIR's ownership-based buffer deallocation, LLVM 22; equal to it after canonicalization.

use std::collections::HashMap;

use monopour_ir::{Attr, Block, Diagnostics, InsertionPoint, Location, Op, OpSpec, Region, Rewriter, Type, Value};

use crate::Stats;
use crate::indicators::if_owned;

/// Who owns a memref in a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    /// This block, if the indicator is set.
    Unique(Value),
    /// One of several, by indicators that differ.
    Unknown,
}

/// What is known in one block.
#[derive(Default)]
struct Scope {
    own: HashMap<Value, Own>,
    /// Freed at the end unless retained, in order.
    candidates: Vec<Value>,
}

pub(crate) fn run(function: Op, stats: &mut Stats) -> Result<(), Diagnostics> {
    let Some(body) = function.body() else { return Ok(()) };
    let mut pass = Retain { rw: Rewriter::new(function.context()), stats };
    let mut scope = Scope::default();
    pass.rw.set_point(InsertionPoint::Start(body));
    for arg in body.args().into_iter().filter(|a| a.ty().is_memref()) {
        let never = pass.constant(function.location(), false);
        scope.own.insert(arg, Own::Unique(never));
        scope.candidates.push(arg);
    }
    pass.block(body, scope)
}

struct Retain<'a> {
    rw: Rewriter,
    stats: &'a mut Stats,
}

impl Retain<'_> {
    fn block(&mut self, block: Block, mut scope: Scope) -> Result<(), Diagnostics> {
        for op in block.ops() {
            if op.is_terminator() {
                self.terminator(op, scope)?;
                break;
            }
            self.op(op, &mut scope)?;
        }
        Ok(())
    }

    fn op(&mut self, op: Op, scope: &mut Scope) -> Result<(), Diagnostics> {
        self.rw.set_point(InsertionPoint::Before(op));
        let memrefs: Vec<Value> = op.results().into_iter().filter(|r| r.ty().is_memref()).collect();
        match op.name() {
            "scf.if" | "scf.for" => return self.region_op(op, scope),
            "scf.forall" => {
                let body = op.body().map(|b| self.block(b, Scope::default()));
                return body.unwrap_or(Ok(()));
            }
            "memref.alloc" | "bufferization.clone" | "func.call" => {
                for value in memrefs {
                    let always = self.constant(op.location(), true);
                    scope.own.insert(value, Own::Unique(always));
                    scope.candidates.push(value);
                }
            }
            "arith.select" => {
                for value in memrefs {
                    let (a, b) =
                        (self.of(scope, op.location(), op.operand(1)), self.of(scope, op.location(), op.operand(2)));
                    let own = match (a, b) {
                        (Own::Unique(a), Own::Unique(b)) if a != b => Own::Unique(self.select(op, a, b)?),
                        (a, b) => join(a, b),
                    };
                    scope.own.insert(value, own);
                }
            }
            _ => {
                for value in memrefs {
                    let mut sources = op.operands().into_iter().filter(|v| v.ty().is_memref());
                    let own = match sources.next() {
                        None => Own::Unique(self.constant(op.location(), false)),
                        Some(first) => {
                            let mut own = self.of(scope, op.location(), first);
                            for next in sources {
                                own = join(own, self.of(scope, op.location(), next));
                            }
                            own
                        }
                    };
                    scope.own.insert(value, own);
                }
            }
        }
        Ok(())
    }

    /// The ownership of a memref in this block; what is captured from outside is not owned.
    fn of(&mut self, scope: &mut Scope, loc: Location, value: Value) -> Own {
        if let Some(own) = scope.own.get(&value) {
            return *own;
        }
        let own = Own::Unique(self.constant(loc, false));
        scope.own.insert(value, own);
        own
    }

    fn select(&mut self, op: Op, on_true: Value, on_false: Value) -> Result<Value, Diagnostics> {
        let bit = Type::integer(self.rw.context(), 1);
        let spec =
            OpSpec::new("arith.select", op.location()).operands(&[op.operand(0), on_true, on_false]).results(&[bit]);
        Ok(self.rw.create(spec)?.result(0))
    }

    /// `scf.if` or `scf.for`, with an indicator for each memref that it forwards.
    fn region_op(&mut self, op: Op, scope: &mut Scope) -> Result<(), Diagnostics> {
        let slots: Vec<usize> = (0..op.num_results()).filter(|i| op.result(*i).ty().is_memref()).collect();
        let count = op.num_results();
        let new = if slots.is_empty() { op } else { self.extended(op, &slots)? };
        for region in new.regions() {
            let Some(block) = region.entry() else { continue };
            let mut inner = Scope::default();
            if new.is("scf.for") {
                let bit = Type::integer(self.rw.context(), 1);
                for slot in &slots {
                    let indicator = self.rw.add_block_arg(block, bit, new.location());
                    inner.own.insert(block.arg(slot + 1), Own::Unique(indicator));
                    inner.candidates.push(block.arg(slot + 1));
                }
            }
            self.block(block, inner)?;
        }
        for (extra, slot) in slots.iter().enumerate() {
            scope.own.insert(new.result(*slot), Own::Unique(new.result(count + extra)));
            scope.candidates.push(new.result(*slot));
        }
        Ok(())
    }

    fn extended(&mut self, op: Op, slots: &[usize]) -> Result<Op, Diagnostics> {
        let bit = Type::integer(self.rw.context(), 1);
        let mut operands = op.operands();
        if op.is("scf.for") {
            // An initial value stays with whoever owns it outside.
            for _ in slots {
                operands.push(self.constant(op.location(), false));
            }
        }
        let mut results: Vec<Type> = op.results().iter().map(|r| r.ty()).collect();
        results.extend(slots.iter().map(|_| bit));
        let attrs = op.attrs();
        let mut spec = OpSpec::new(op.name(), op.location()).operands(&operands).results(&results);
        for (name, value) in &attrs {
            spec = spec.attr(name, *value);
        }
        for _ in op.regions() {
            spec = spec.region(Region::new());
        }
        let new = self.rw.create(spec)?;
        for (to, from) in new.regions().into_iter().zip(op.regions()) {
            self.rw.take_region(to, from);
        }
        let kept: Vec<Value> = new.results()[..op.num_results()].to_vec();
        self.rw.replace_op(op, &kept);
        Ok(new)
    }

    fn terminator(&mut self, op: Op, mut scope: Scope) -> Result<(), Diagnostics> {
        self.rw.set_point(InsertionPoint::Before(op));
        if op.is("func.return") {
            for index in (0..op.num_operands()).filter(|i| op.operand(*i).ty().is_memref()) {
                self.own_returned(op, index, &mut scope)?;
            }
        }
        let retained: Vec<Value> = op.operands().into_iter().filter(|v| v.ty().is_memref()).collect();
        let indicators = self.dealloc(op, &scope, &retained)?;
        // A region's results come with their indicators; a function's caller owns them all.
        if op.is("scf.yield") && !retained.is_empty() {
            let mut operands = op.operands();
            operands.extend(indicators);
            self.rw.set_operands(op, &operands);
        }
        Ok(())
    }

    /// Makes sure that the function owns what it returns.
    fn own_returned(&mut self, op: Op, index: usize, scope: &mut Scope) -> Result<(), Diagnostics> {
        let (value, loc) = (op.operand(index), op.location());
        let ty = value.ty();
        let new = match self.of(scope, loc, value) {
            Own::Unique(indicator) if is_true(indicator) => return Ok(()),
            Own::Unique(indicator) => {
                let clone = |rw: &mut Rewriter| clone_of(rw, loc, value).map(|v| vec![v]);
                if_owned(&mut self.rw, InsertionPoint::Before(op), loc, indicator, &[ty], |_| Ok(vec![value]), clone)?
                    .result(0)
            }
            Own::Unknown => clone_of(&mut self.rw, loc, value)?,
        };
        self.stats.clones += 1;
        let always = self.constant(loc, true);
        scope.own.insert(new, Own::Unique(always));
        scope.candidates.push(new);
        self.rw.set_operand(op, index, new);
        Ok(())
    }

    fn dealloc(&mut self, at: Op, scope: &Scope, retained: &[Value]) -> Result<Vec<Value>, Diagnostics> {
        let loc = at.location();
        let mut bases = Vec::new();
        let mut conditions = Vec::new();
        for candidate in &scope.candidates {
            // Candidates come with an indicator by construction.
            let Some(Own::Unique(indicator)) = scope.own.get(candidate) else { continue };
            bases.push(self.base(loc, *candidate)?);
            conditions.push(*indicator);
        }
        if bases.is_empty() {
            return Ok(retained.iter().map(|_| self.constant(loc, false)).collect());
        }
        let cx = self.rw.context();
        let bit = Type::integer(cx, 1);
        let length = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        let segments = [length(bases.len()), length(conditions.len()), length(retained.len())];
        let results: Vec<Type> = retained.iter().map(|_| bit).collect();
        let spec = OpSpec::new("bufferization.dealloc", loc)
            .operands(&bases)
            .operands(&conditions)
            .operands(retained)
            .results(&results)
            .attr("operandSegmentSizes", Attr::dense_i32(cx, &segments));
        self.stats.deallocs += 1;
        Ok(self.rw.create(spec)?.results())
    }

    /// The base buffer of a memref, whatever its offset.
    fn base(&mut self, loc: Location, value: Value) -> Result<Value, Diagnostics> {
        let index = Type::index(self.rw.context());
        let (Some(memref), rank) = (value.ty().as_memref(), value.ty().shape().map_or(0, |s| s.len())) else {
            return Ok(value);
        };
        let mut results = vec![Type::memref(&[], memref.element, memref.memory_space), index];
        results.extend(std::iter::repeat_n(index, 2 * rank));
        let spec = OpSpec::new("memref.extract_strided_metadata", loc).operands(&[value]).results(&results);
        Ok(self.rw.create(spec)?.result(0))
    }

    fn constant(&mut self, loc: Location, value: bool) -> Value {
        let cx = self.rw.context();
        let spec =
            OpSpec::new("arith.constant", loc).results(&[Type::integer(cx, 1)]).attr("value", Attr::bool(cx, value));
        self.rw.create(spec).expect("arith.constant of a matching type always builds").result(0)
    }
}

fn join(a: Own, b: Own) -> Own {
    match (a, b) {
        (Own::Unique(a), Own::Unique(b))
            if a == b || (a.constant_int().is_some() && a.constant_int() == b.constant_int()) =>
        {
            Own::Unique(a)
        }
        _ => Own::Unknown,
    }
}

fn is_true(indicator: Value) -> bool {
    indicator.constant_int().is_some_and(|v| v != 0)
}

fn clone_of(rw: &mut Rewriter, loc: Location, value: Value) -> Result<Value, Diagnostics> {
    Ok(rw.create(OpSpec::new("bufferization.clone", loc).operands(&[value]).results(&[value.ty()]))?.result(0))
}
