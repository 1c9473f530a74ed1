//! Cuts a long host function into functions, because LLVM's code generation is not linear in the length of one.
//!
//! Before / after, `ops` being [`PART_OPS`] operations:
//!
//! ```text
//! func.func @main(%cx: i64) {      func.func @main(%cx: i64) {            func.func private @main.part0(%cx: i64) -> i64 {
//!   ops                              %h = call @main.part0(%cx)             ops
//!   %h = ..                          call @main.part1(%cx, %h)              %h = ..
//!   ops that use %h                  return                                 return %h
//!   return                         }                                      }    ..
//! }
//! ```
//!
//! Requires: what [`crate::to_llvm`] does of host functions. Long blocks of nested regions are cut too.
//! Ensures: the same calls in the same order. Constants are cloned into the parts; other scalars cross as arguments
//! and results.
//! Measured with `llc -O3` of LLVM 22.1, five calls per dispatch: 800 and 1,600 dispatches take 0.16 and 0.44 s as one function,
//! 0.13 and 0.26 s in parts.

use monopour_ir::ops;
use monopour_ir::{
    Attr, Block, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Use, Value, WalkOrder,
};
use std::collections::{HashMap, HashSet};

/// Operations of a part, nested ones counted.
const PART_OPS: usize = 1000;
/// Results of a part: where more values are in use the part gets longer.
const MOST_RESULTS: usize = 32;

/// Cuts the function `host` of `module`, if it is long.
///
/// # Errors
/// None on verified IR; MLIR's diagnostics otherwise.
pub(crate) fn run(module: &Module, host: &str) -> Result<(), Diagnostics> {
    let Some(func) = module.symbol(host) else { return Ok(()) };
    let mut cut = Cut { body: module.body(), prefix: part_prefix(host), parts: 0, rw: Rewriter::new(module.context()) };
    cut.regions(func)
}

/// Keeps LLVM from inlining the parts of `host` again. Requires: `module` in the llvm dialect.
pub(crate) fn keep_apart(module: &Module, host: &str) {
    let prefix = part_prefix(host);
    let mut rw = Rewriter::new(module.context());
    for func in module.op().find_all(ops::llvm::FUNC) {
        if func.symbol_name().is_some_and(|name| name.starts_with(&prefix)) {
            rw.set_attr(func, "no_inline", Attr::unit(module.context()));
            rw.set_attr(func, "linkage", crate::abi::linkage(module.context(), "internal"));
        }
    }
}

fn part_prefix(host: &str) -> String {
    format!("{host}.part")
}

struct Cut<'c> {
    /// The module's.
    body: Block<'c>,
    prefix: String,
    parts: usize,
    rw: Rewriter<'c>,
}

impl<'c> Cut<'c> {
    /// Cuts the blocks of an operation, inner ones first.
    fn regions(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        if size(op) < 2 * PART_OPS {
            return Ok(());
        }
        for block in op.regions().into_iter().flat_map(Region::blocks) {
            for inner in block.ops() {
                self.regions(inner)?;
            }
            self.block(block)?;
        }
        Ok(())
    }

    fn block(&mut self, block: Block<'c>) -> Result<(), Diagnostics> {
        let mut rest: Vec<Op> = block.ops();
        rest.pop();
        rest.retain(|op| !op.is(ops::arith::CONSTANT));
        let mut rest = rest.as_slice();
        let mut asked = PART_OPS;
        loop {
            let (part, later) = rest.split_at(prefix(rest, asked));
            // The last part stays where it is.
            if later.is_empty() {
                return Ok(());
            }
            let border = Border::of(block, part);
            if border.can_be_crossed() {
                self.outline(part, &border)?;
                (rest, asked) = (later, PART_OPS);
            } else {
                // Doubled, so that no operation is looked at more often than the logarithm of the length.
                asked *= 2;
            }
        }
    }

    /// Moves `part` into a function of its own, called in its place.
    fn outline(&mut self, part: &[Op<'c>], border: &Border<'c>) -> Result<(), Diagnostics> {
        let (cx, loc) = (self.rw.context(), part[0].location());
        let name = format!("{}{}", self.prefix, self.parts);
        self.parts += 1;
        let types = |values: &[Value<'c>]| values.iter().map(|v| v.ty()).collect::<Vec<_>>();
        let (inputs, results) = (types(&border.captured), types(&border.results));
        self.rw.set_point(InsertionPoint::Before(part[0]));
        let spec = OpSpec::new(ops::func::CALL, loc).attr("callee", Attr::symbol(cx, &name));
        let call = self.rw.create(spec.operands(&border.captured).results(&results))?;
        for (index, value) in border.results.iter().enumerate() {
            for used in border.used_later(*value) {
                self.rw.set_operand(used.op, used.index, call.result(index));
            }
        }
        let body = Block::new(&inputs.iter().map(|ty| (*ty, loc)).collect::<Vec<_>>());
        self.rw.set_point(InsertionPoint::End(body));
        let mut map: HashMap<Value, Value> = border.captured.iter().copied().zip(body.args()).collect();
        for constant in &border.constants {
            let copy = self.rw.clone_op(*constant, |value| value);
            self.rw.insert(copy);
            map.insert(constant.result(0), copy.result(0));
        }
        for op in part {
            self.rw.move_to_end(*op, body);
            for nested in op.nested(WalkOrder::Pre) {
                for (index, value) in nested.operands().into_iter().enumerate() {
                    if let Some(new) = map.get(&value) {
                        self.rw.set_operand(nested, index, *new);
                    }
                }
            }
        }
        self.rw.set_point(InsertionPoint::End(body));
        self.rw.create(OpSpec::new(ops::func::RETURN, loc).operands(&border.results))?;
        let region = Region::new();
        region.append(body);
        let func = OpSpec::new(ops::func::FUNC, loc)
            .attr("sym_name", Attr::string(cx, &name))
            .attr("sym_visibility", Attr::string(cx, "private"))
            .attr("function_type", Attr::ty(Type::function(cx, &inputs, &results)))
            .region(region)
            .build(cx)?;
        self.rw.set_point(InsertionPoint::End(self.body));
        self.rw.insert(func);
        Ok(())
    }
}

/// The values that a part takes from outside and gives to it.
struct Border<'c> {
    block: Block<'c>,
    inside: HashSet<Op<'c>>,
    captured: Vec<Value<'c>>,
    constants: Vec<Op<'c>>,
    results: Vec<Value<'c>>,
}

impl<'c> Border<'c> {
    fn of(block: Block<'c>, part: &[Op<'c>]) -> Self {
        let inside = part.iter().copied().collect();
        let mut border = Self { block, inside, captured: vec![], constants: vec![], results: vec![] };
        let mut seen = HashSet::new();
        for op in part {
            for value in op.nested(WalkOrder::Pre).into_iter().flat_map(Op::operands) {
                if border.defines(value) || !seen.insert(value) {
                    continue;
                }
                match value.defining_op().filter(|def| def.is(ops::arith::CONSTANT)) {
                    Some(constant) => border.constants.push(constant),
                    None => border.captured.push(value),
                }
            }
        }
        let results = part.iter().flat_map(|op| op.results()).filter(|value| !border.used_later(*value).is_empty());
        border.results = results.collect();
        border
    }

    /// Whether few enough values cross, all of them of types that every CPU passes in registers: no float of 16 bits.
    fn can_be_crossed(&self) -> bool {
        let crosses = |value: &Value| {
            let ty = value.ty();
            ty.is_index() || ty.integer_width().is_some() || ty.float_width().is_some_and(|bits| bits >= 32)
        };
        self.results.len() <= MOST_RESULTS && self.captured.iter().chain(&self.results).all(crosses)
    }

    /// Whether the part has an operation, itself or nested.
    fn has(&self, op: Op<'c>) -> bool {
        let mut at = Some(op);
        while let Some(op) = at {
            if op.block() == Some(self.block) {
                return self.inside.contains(&op);
            }
            at = op.parent();
        }
        false
    }

    fn defines(&self, value: Value<'c>) -> bool {
        match value.defining_op() {
            Some(op) => self.has(op),
            None => value.block().and_then(Block::parent_op).is_some_and(|op| self.has(op)),
        }
    }

    fn used_later(&self, value: Value<'c>) -> Vec<Use<'c>> {
        value.uses().into_iter().filter(|used| !self.has(used.op)).collect()
    }
}

/// How many of `ops`, from the first, have `asked` operations; all if they have fewer.
fn prefix(ops: &[Op], asked: usize) -> usize {
    let mut sum = 0;
    let full = ops.iter().position(|op| {
        sum += size(*op);
        sum >= asked
    });
    full.map_or(ops.len(), |last| last + 1)
}

/// The number of an operation and those nested in it.
fn size(op: Op) -> usize {
    let mut number = 0;
    op.walk(WalkOrder::Pre, |_| number += 1);
    number
}
