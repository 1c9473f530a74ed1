//! Memrefs viewed as tensors without `restrict`: which may alias, and whether their contents stay the same.
//!
//! ```text
//! %a = bufferization.to_tensor %m writable : memref<4xf32> to tensor<4xf32>
//! %b = bufferization.to_tensor %m : memref<4xf32> to tensor<4xf32>
//! %c = tensor.insert %x into %a[%i] : tensor<4xf32>       copied: the old contents are read below, through %b
//! %y = tensor.extract %b[%i] : tensor<4xf32>
//! ```
//!
//! A tensor has the contents of the memref at its `to_tensor`. Those that may share memory are taken as aliases, tensor arguments of
//! the function included; a write to such a memref may come before, or after the last use, and is an error between (B0122).
//! Memory is distinguished by origin: an allocation, a global, an argument; other origins are unknown.
//! Requires: `extensions`; without them every such tensor is refused, as upstream does.
//! Cost: uses of the tensors, plus tensors times writes of memory that they may alias.

use monopour_ir::ops;
use std::collections::HashSet;

use monopour_ir::interfaces::{self, EffectKind};
use monopour_ir::{Block, Diagnostic, Diagnostics, Op, Value, WalkOrder};

/// The origin of a memref.
#[derive(Clone, PartialEq, Eq)]
enum Memory<'c> {
    Allocation(Value<'c>),
    Global(String),
    Argument,
    Unknown,
}

impl<'c> Memory<'c> {
    fn of(memref: Value<'c>) -> Self {
        let mut value = memref;
        while let Some(op) = value.defining_op() {
            match op.name() {
                ops::memref::ALLOC | ops::memref::ALLOCA => return Self::Allocation(value),
                ops::memref::GET_GLOBAL => {
                    return op
                        .attr("name")
                        .and_then(|n| n.as_symbol().map(|n| Self::Global(n.to_owned())))
                        .unwrap_or(Self::Unknown);
                }
                ops::memref::CAST
                | ops::memref::SUBVIEW
                | ops::memref::REINTERPRET_CAST
                | ops::memref::COLLAPSE_SHAPE
                | ops::memref::EXPAND_SHAPE
                | ops::memref::RESHAPE
                | ops::memref::TRANSPOSE
                | ops::memref::VIEW
                | ops::memref::MEMORY_SPACE_CAST => value = op.operand(0),
                _ => return Self::Unknown,
            }
        }
        let is_entry =
            |block: Block<'c>| block.parent_op().is_some_and(|p| p.is(ops::func::FUNC) && p.body() == Some(block));
        if value.as_block_arg().is_some_and(|(block, _)| is_entry(block)) { Self::Argument } else { Self::Unknown }
    }

    fn may_be(&self, other: &Self) -> bool {
        // An argument is no allocation of this function, but may be a global whose address escaped.
        match (self, other) {
            (Self::Allocation(a), Self::Allocation(b)) => a == b,
            (Self::Global(a), Self::Global(b)) => a == b,
            (Self::Allocation(_), Self::Global(_) | Self::Argument) => false,
            (Self::Global(_) | Self::Argument, Self::Allocation(_)) => false,
            _ => true,
        }
    }
}

/// Pairs of tensors that may share memory, of a function or of each function of a module.
///
/// # Errors
/// B0122 if such memory is written between the `to_tensor` and the tensor's last use.
pub(crate) fn pairs<'c>(root: Op<'c>) -> Result<Vec<(Value<'c>, Value<'c>)>, Diagnostics> {
    if root.is(ops::func::FUNC) {
        return pairs_of(root);
    }
    let mut pairs = Vec::new();
    for function in root.find_all(ops::func::FUNC) {
        pairs.extend(pairs_of(function)?);
    }
    Ok(pairs)
}

fn pairs_of<'c>(function: Op<'c>) -> Result<Vec<(Value<'c>, Value<'c>)>, Diagnostics> {
    let seen: Vec<Op> =
        function.find_all(ops::bufferization::TO_TENSOR).into_iter().filter(|op| is_shared(*op)).collect();
    if seen.is_empty() {
        return Ok(vec![]);
    }
    let memories: Vec<Memory> = seen.iter().map(|op| Memory::of(op.operand(0))).collect();
    check_writes(function, &seen, &memories)?;
    let arguments: Vec<Value> = function.body().map(|b| b.args()).unwrap_or_default();
    let tensors = || arguments.iter().filter(|a| a.ty().is_tensor());
    let mut pairs = Vec::new();
    for (index, (op, memory)) in seen.iter().zip(&memories).enumerate() {
        // Sharing is taken as transitive, so the first match of each kind suffices.
        let earlier = (0..index).filter(|i| memories[*i].may_be(memory));
        pairs.extend(earlier.map(|i| (seen[i].result(0), op.result(0))));
        if memory.may_be(&Memory::Argument) {
            pairs.extend(tensors().map(|a| (*a, op.result(0))));
        }
    }
    Ok(pairs)
}

fn is_shared(op: Op) -> bool {
    op.attr("restrict").is_none() && !op.result(0).is_unused()
}

fn check_writes(function: Op, seen: &[Op], memories: &[Memory]) -> Result<(), Diagnostics> {
    let users: Vec<Vec<Op>> = seen.iter().map(|op| users_of(op.result(0))).collect();
    let mut errors = Diagnostics::default();
    for write in function.nested(WalkOrder::Pre) {
        let written = written_memories(write);
        for (index, op) in seen.iter().enumerate() {
            if written.iter().any(|memory| memory.may_be(&memories[index]))
                && !is_apart(write, *op, &memories[index], &users[index])
            {
                errors.0.push(written_between(*op, write));
            }
        }
    }
    if errors.has_errors() { Err(errors) } else { Ok(()) }
}

/// The memory that an operation may write through its memref operands.
fn written_memories<'c>(op: Op<'c>) -> Vec<Memory<'c>> {
    let memrefs: Vec<Value> = op.operands().into_iter().filter(|v| v.ty().is_memref()).collect();
    if memrefs.is_empty() || op.is(ops::bufferization::TO_TENSOR) || interfaces::is_memory_effect_free(op) {
        return vec![];
    }
    let written: Vec<Value> = match interfaces::memory_effects(op) {
        Some(effects) => {
            let writes = |kind: EffectKind| matches!(kind, EffectKind::Write | EffectKind::Free);
            let named: Vec<_> = effects.into_iter().filter(|e| writes(e.kind)).map(|e| e.value).collect();
            // A write without a value may be to any.
            if named.contains(&None) { memrefs } else { named.into_iter().flatten().collect() }
        }
        // Nested operations have their own writes.
        None if interfaces::has_recursive_effects(op) => vec![],
        None => memrefs,
    };
    written.into_iter().filter(|v| v.ty().is_memref()).map(Memory::of).collect()
}

/// Every operation that uses the tensor, or a tensor that may be derived from it.
fn users_of<'c>(tensor: Value<'c>) -> Vec<Op<'c>> {
    let (mut users, mut done, mut open) = (vec![], HashSet::new(), vec![tensor]);
    while let Some(value) = open.pop() {
        for used in value.uses() {
            let op = used.op;
            users.push(op);
            let inside = op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args());
            let around = op.parent().filter(|_| op.block().and_then(|b| b.terminator()) == Some(op));
            let handed = around.into_iter().flat_map(|p| {
                let args = p.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args()).collect::<Vec<_>>();
                p.results().into_iter().chain(args)
            });
            let made = op.results().into_iter().chain(inside).chain(handed).filter(|v| v.ty().is_tensor());
            open.extend(made.filter(|v| done.insert(*v)));
        }
    }
    users
}

/// Whether a write certainly comes before the `to_tensor`, or after the tensor's last use.
fn is_apart<'c>(write: Op<'c>, seen: Op<'c>, memory: &Memory<'c>, users: &[Op<'c>]) -> bool {
    let Some(block) = seen.block() else { return false };
    let in_block = |op: Op<'c>| {
        let mut at = Some(op);
        while let Some(op) = at {
            if op.block() == Some(block) {
                return Some(op);
            }
            at = op.parent();
        }
        None
    };
    let Some(write) = in_block(write) else { return false };
    let is_terminator = |op: Op| block.terminator() == Some(op);
    let places: Option<Vec<Op>> = users.iter().map(|op| in_block(*op)).collect();
    // A tensor that leaves the block may be used at any time.
    let Some(places) = places.filter(|places| !places.iter().any(|op| is_terminator(*op))) else {
        // Memory allocated in the block is new each time.
        let is_own = matches!(memory, Memory::Allocation(value) if value.block() == Some(block));
        return (is_own || !repeats(seen)) && write.is_before_in_block(seen);
    };
    write.is_before_in_block(seen) || places.iter().all(|op| *op != write && op.is_before_in_block(write))
}

/// Whether the operation may be repeated.
fn repeats(op: Op) -> bool {
    op.parent().is_none_or(|parent| !parent.is(ops::func::FUNC) || op.block() != parent.body())
}

fn written_between(seen: Op, write: Op) -> Diagnostic {
    let message =
        format!("the memory of a 'bufferization.to_tensor' without 'restrict' is written by {}", write.name());
    Diagnostic::error("B0122", seen.location(), message)
        .with_note(format!("written at {}, where the tensor is still used afterwards", write.location()))
        .with_help("copy the tensor first, with bufferization.alloc_tensor copy(..), or write before it is seen as one")
}
