//! Sizes that loops and branches keep are those of what they begin with.
//!
//! Before / after:
//!
//! ```text
//! %r = scf.for .. iter_args(%a = %x) {            %r = scf.for .. iter_args(%a = %x) {
//!   %n = tensor.dim %a, %c0                         %e = tensor.empty(%m)
//!   %e = tensor.empty(%n)                           %b = linalg.exp ins(%a) outs(%e)
//!   %b = linalg.exp ins(%a) outs(%e)          ==>   scf.yield %b
//!   scf.yield %b                                  }
//! }                                               %m stands above: tensor.dim %x, %c0
//! %k = tensor.dim %r, %c0
//! ```
//!
//! A size that depends on a loop keeps its buffers in the loop, and its result from the place where that is joined.
//! Requires: tensors. Ensures: the same values; a `tensor.dim` asks for what is known before the loop or branch, if that is as large.
//! Source: MLIR's `scf-for-loop-canonicalization`, LLVM 22. Differs: all sizes of a loop together, through slices, dispatches and
//! branches.
//! Limits: `scf.while`; one size in two ways of computing it.

use monopour_ir::typed::{Index, Slice};
use monopour_ir::{Block, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type, Value, interfaces, ops};
use std::collections::HashMap;

/// How often a loop is looked at; what it keeps by then is kept, all else is not.
const MOST_ROUNDS: usize = 4;

/// A size, told by where it comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size<'c> {
    Number(i64),
    Value(Value<'c>),
    /// Of a tensor's dimension.
    Of(Value<'c>, usize),
}

/// Replaces the sizes.
///
/// # Errors
/// MLIR's diagnostics for the ops.
pub(crate) fn run(module: &Module) -> Result<(), Diagnostics> {
    let dims = module.op().find_all(ops::tensor::DIM);
    if dims.is_empty() {
        return Ok(());
    }
    let mut sizes = Sizes::default();
    for function in module.op().find_all(ops::func::FUNC) {
        function.regions().into_iter().flat_map(|region| region.blocks()).for_each(|block| sizes.block(block));
    }
    let mut rw = Rewriter::new(module.context());
    for dim in dims {
        let at = dim.operand(1).constant_int().and_then(|at| usize::try_from(at).ok());
        let rank = dim.operand(0).ty().shape().map_or(0, |shape| shape.len());
        let Some(at) = at.filter(|at| *at < rank) else { continue };
        let size = sizes.of(dim.operand(0), at);
        if size != Size::Of(dim.operand(0), at) {
            let new = made(&mut rw, dim, size)?;
            rw.replace_op(dim, &[new]);
        }
    }
    Ok(())
}

/// The size as a value, before `dim`.
fn made<'c>(rw: &mut Rewriter<'c>, dim: Op<'c>, size: Size<'c>) -> Result<Value<'c>, Diagnostics> {
    rw.set_point(InsertionPoint::Before(dim));
    match size {
        Size::Value(value) => Ok(value),
        Size::Number(number) => Ok(rw.const_index(number, dim.location())),
        Size::Of(tensor, at) => {
            let at = rw.const_index(at as i64, dim.location());
            let index = Type::index(rw.context());
            let spec = OpSpec::new(ops::tensor::DIM, dim.location()).operands(&[tensor, at]).results(&[index]);
            Ok(rw.create(spec)?.result(0))
        }
    }
}

/// The sizes of what loops carry, and of the results of loops and branches.
#[derive(Default)]
struct Sizes<'c> {
    known: HashMap<(Value<'c>, usize), Size<'c>>,
    /// The keys of `known`, in order: what is learnt in a loop under a wrong assumption is forgotten.
    learnt: Vec<(Value<'c>, usize)>,
}

impl<'c> Sizes<'c> {
    fn learn(&mut self, of: (Value<'c>, usize), size: Size<'c>) {
        self.known.insert(of, size);
        self.learnt.push(of);
    }

    /// In program order: what an op reads is known.
    fn block(&mut self, block: Block<'c>) {
        for op in block.ops() {
            match op.name() {
                ops::scf::FOR => self.counted_loop(op),
                name => {
                    op.regions().into_iter().flat_map(|r| r.blocks()).for_each(|inner| self.block(inner));
                    if name == ops::scf::IF {
                        self.branches(op);
                    }
                }
            }
        }
    }

    /// A result has a size that both branches give it: what both know stands above.
    fn branches(&mut self, op: Op<'c>) {
        let yields: Vec<Op> = op.regions().iter().filter_map(|r| r.entry()?.terminator()).collect();
        let [one, other] = yields[..] else { return };
        for (i, at) in dynamic(&op.results()) {
            let (one, other) = (self.of(one.operand(i), at), self.of(other.operand(i), at));
            if one == other {
                self.learn((op.result(i), at), one);
            }
        }
    }

    /// A carried size stays, if each iteration hands on what it was given, with all that stay as the loop began.
    fn counted_loop(&mut self, op: Op<'c>) {
        let Some((body, last)) = op.body().and_then(|body| Some((body, body.terminator()?))) else { return };
        let inits: Vec<Value> = op.operands().into_iter().skip(3).collect();
        let args: Vec<Value> = body.args().into_iter().skip(1).collect();
        let mut kept: Vec<(usize, usize, Size)> =
            dynamic(&args).into_iter().map(|(i, at)| (i, at, self.of(inits[i], at))).collect();
        for round in 0.. {
            let before = self.learnt.len();
            if round == MOST_ROUNDS {
                kept.clear();
            }
            kept.iter().for_each(|(i, at, size)| self.learn((args[*i], *at), *size));
            self.block(body);
            let count = kept.len();
            kept.retain(|(i, at, size)| self.of(last.operand(*i), *at) == *size);
            if kept.len() == count {
                break;
            }
            for of in self.learnt.split_off(before) {
                self.known.remove(&of);
            }
        }
        kept.into_iter().for_each(|(i, at, size)| self.learn((op.result(i), at), size));
    }

    fn of(&self, mut tensor: Value<'c>, mut at: usize) -> Size<'c> {
        loop {
            let size = self.step(tensor, at);
            // A size that was asked for is that of the tensor.
            let asked = if let Size::Value(value) = size { asked(value) } else { None };
            (tensor, at) = match (size, asked) {
                (_, Some(of)) => of,
                (Size::Of(next, dim), None) if (next, dim) != (tensor, at) => (next, dim),
                _ => return size,
            };
        }
    }

    /// The size by what makes the tensor.
    fn step(&self, tensor: Value<'c>, at: usize) -> Size<'c> {
        let itself = Size::Of(tensor, at);
        let Some(shape) = tensor.ty().shape().filter(|shape| at < shape.len()) else { return itself };
        if shape[at] >= 0 {
            return Size::Number(shape[at]);
        }
        if let Some(known) = self.known.get(&(tensor, at)) {
            return *known;
        }
        let (Some(op), Some(result)) = (tensor.defining_op(), tensor.result_index()) else { return itself };
        match op.name() {
            ops::tensor::EMPTY => number(op.operand(shape[..at].iter().filter(|size| **size < 0).count())),
            ops::tensor::CAST => Size::Of(op.operand(0), at),
            ops::tensor::EXTRACT_SLICE => {
                // Of one rank: which dimensions a slice of lower rank has left out, its types say.
                let sizes = Slice::of(op).map(|slice| slice.sizes).filter(|sizes| sizes.len() == shape.len());
                match sizes.map(|sizes| sizes[at]) {
                    Some(Index::Dynamic(value)) => number(value),
                    Some(Index::Static(size)) => Size::Number(size),
                    None => itself,
                }
            }
            ops::scf::FORALL => Size::Of(op.operand(op.num_operands() - op.num_results() + result), at),
            _ => {
                let inits = interfaces::dps_inits(op).into_iter().map(|i| op.operand(i));
                inits.filter(|v| v.ty().is_tensor()).nth(result).map_or(itself, |init| Size::Of(init, at))
            }
        }
    }
}

fn number(value: Value) -> Size {
    value.constant_int().map_or(Size::Value(value), Size::Number)
}

/// The tensor and dimension whose size a value is.
fn asked(value: Value) -> Option<(Value, usize)> {
    let dim = value.defining_op().filter(|op| op.is(ops::tensor::DIM))?;
    let at = usize::try_from(dim.operand(1).constant_int()?).ok()?;
    Some((dim.operand(0), at))
}

/// The dynamic dimensions of the tensors among values, each with the value's position.
fn dynamic(values: &[Value]) -> Vec<(usize, usize)> {
    let of = |(i, value): (usize, &Value)| {
        let shape = value.ty().shape().filter(|_| value.ty().is_tensor()).unwrap_or_default();
        (0..shape.len()).filter(|at| shape[*at] < 0).map(|at| (i, at)).collect::<Vec<_>>()
    };
    values.iter().enumerate().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use monopour_ir::{CANONICALIZE, Context, run_passes};

    /// What the sizes that are left are of: inputs of the function (%x: 4x?, %y: 4x?, %n, %c: i1), or what makes them.
    fn asked(body: &str) -> Vec<String> {
        let text = format!(
            "func.func @main(%x: tensor<4x?xf32>, %y: tensor<4x?xf32>, %n: index, %c: i1) -> index {{
                %c0 = arith.constant 0 : index
                %c1 = arith.constant 1 : index
                %m = tensor.dim %x, %c1 : tensor<4x?xf32>
                {}
                %k = tensor.dim %r, %c1 : tensor<4x?xf32>
                return %k : index
            }}",
            body.replace("TYPE", "tensor<4x?xf32>")
        );
        let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("parses");
        run(&module).expect("runs");
        run_passes(module.op(), &format!("builtin.module({CANONICALIZE},cse)")).expect("canonical");
        let of = |dim: Op| match dim.operand(0).defining_op() {
            Some(op) => op.name().to_owned(),
            None if dim.operand(0).block().and_then(Block::parent_op).is_some_and(|op| op.is(ops::func::FUNC)) => {
                "input".to_owned()
            }
            None => "argument".to_owned(),
        };
        module.op().find_all(ops::tensor::DIM).into_iter().map(of).collect()
    }

    #[test]
    fn a_loop_keeps_what_it_hands_on() {
        let keeps = "%r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (TYPE) {
                %s = tensor.dim %a, %c1 : TYPE
                %e = tensor.empty(%s) : TYPE
                %b = linalg.exp ins(%a : TYPE) outs(%e : TYPE) -> TYPE
                scf.yield %b : TYPE
            }";
        assert_eq!(asked(keeps), ["input"]);
        let nested = "%r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (TYPE) {
                %q = scf.for %j = %c0 to %i step %c1 iter_args(%b = %a) -> (TYPE) {
                    %s = linalg.exp ins(%b : TYPE) outs(%b : TYPE) -> TYPE
                    scf.yield %s : TYPE
                }
                scf.yield %q : TYPE
            }";
        assert_eq!(asked(nested), ["input"]);
    }

    #[test]
    fn a_loop_that_hands_on_another_size_keeps_none() {
        let exchanged = |init: &str| {
            format!(
                "%e = tensor.empty(%m) : TYPE
                %r, %q = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = {init}) -> (TYPE, TYPE) {{
                    scf.yield %b, %a : TYPE, TYPE
                }}"
            )
        };
        assert_eq!(asked(&exchanged("%e")), ["input"]);
        assert_eq!(asked(&exchanged("%y")), ["scf.for"]);
        let grows = "%r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (TYPE) {
                %s = tensor.dim %a, %c1 : TYPE
                %t = arith.addi %s, %c1 : index
                %e = tensor.empty(%t) : TYPE
                scf.yield %e : TYPE
            }";
        assert_eq!(asked(grows), ["argument", "scf.for"]);
    }

    #[test]
    fn branches_agree_or_not() {
        let chosen = |size: &str| {
            format!(
                "%r = scf.if %c -> (TYPE) {{
                    %e = tensor.empty({size}) : TYPE
                    %b = linalg.exp ins(%x : TYPE) outs(%e : TYPE) -> TYPE
                    scf.yield %b : TYPE
                }} else {{
                    scf.yield %x : TYPE
                }}"
            )
        };
        assert_eq!(asked(&chosen("%m")), ["input"]);
        assert_eq!(asked(&chosen("%n")), ["scf.if"]);
    }
}
