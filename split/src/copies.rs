//! Copies of a run: those of the host function, and those inside of kernels.
//!
//! ```text
//! memref.copy %x, %y                    one copy of its bytes; on a GPU two, if both overlap in the arena
//! scf.forall (%i) in (7) {              one copy per dispatch, of the bytes of all tiles together
//!   call @main_dispatch_1(%x, %y, %i)
//! }
//! ```
//! Requires: [`of_kernels`] after outlining, [`of_host`] after planning.
//! Ensures: each copy counts as often as a run executes it.

use crate::flows::Flows;
use crate::plan::in_arena;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{Attr, Block, DYNAMIC, Module, Op, Rewriter, Type, Value, WalkOrder};
use std::collections::HashMap;

/// Granularity of a GPU's copy command.
const WORD_BYTES: u64 = 4;

/// A copy op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// `file:line:column`; empty when unknown.
    pub location: String,
    /// Bytes per execution; `None` if dynamic.
    pub bytes: Option<u64>,
    /// Executions in a run; `None` if dynamic.
    pub times: Option<u64>,
}

/// The copies of one dispatch of each kernel that has any.
pub type KernelCopies = Vec<Vec<Site>>;

/// Finds the copies in kernels, from one argument to another, and marks them with their bytes.
pub fn of_kernels(module: &Module) -> KernelCopies {
    let tiles = tiles_of_dispatches(module);
    let mut rw = Rewriter::new(module.context());
    let mut found = KernelCopies::new();
    for kernel in module.functions().into_iter().filter(|f| f.attr(attributes::GRID_RANK).is_some()) {
        let name = kernel.symbol_name().unwrap_or_default();
        let tiles = tiles.get(&name).copied().flatten();
        let mut sites = vec![];
        for copy in kernel.find_all(ops::memref::COPY) {
            if tiles == Some(0) || !is_between_arguments(kernel, copy) {
                continue;
            }
            let bytes = bytes_of_all_tiles(kernel, copy, tiles);
            let number = bytes.and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(0);
            rw.set_attr(copy, attributes::COPIED_BYTES, Attr::i64(copy.context(), number));
            if bytes.is_none() {
                let sizes: Vec<Attr> = sizes_by_scalars(kernel, copy);
                rw.set_attr(copy, attributes::COPIED_SIZES, Attr::array(copy.context(), &sizes));
            }
            sites.push(Site { location: copy.location().to_string(), bytes, times: Some(1) });
        }
        if !sites.is_empty() {
            let number = i64::try_from(found.len()).unwrap_or(i64::MAX);
            rw.set_attr(kernel, attributes::COPY_SITES, Attr::i64(kernel.context(), number));
            found.push(sites);
        }
    }
    found
}

/// The copies of a run, in the order of the host function.
pub fn of_host(module: &Module, host: Op, kernels: &KernelCopies, is_gpu: bool) -> Vec<Site> {
    let mut sites = Vec::new();
    let symbols = module.symbols();
    let of_kernel = |call: Op| {
        let kernel = symbols.get(call.callee()?)?;
        kernels.get(usize::try_from(kernel.attr(attributes::COPY_SITES)?.as_int()?).ok()?)
    };
    let (in_arena, flows) = (in_arena(host), Flows::of(host));
    host.walk(WalkOrder::Pre, |op| match op.name() {
        ops::memref::COPY if op.operand(0).ty().memref_space() == op.operand(1).ty().memref_space() => {
            let bytes = op.operand(1).ty().static_size_bytes().or_else(|| op.operand(0).ty().static_size_bytes());
            let in_words = bytes.is_none_or(|bytes| bytes.is_multiple_of(WORD_BYTES));
            let is_within = is_gpu && in_words && op.operands().iter().all(|operand| in_arena.contains(operand));
            // The GPU copies within one buffer by a kernel, and what overlaps through a temporary buffer.
            let copies = if is_within { overlap(op, &flows).map(|overlap| 1 + u64::from(overlap)) } else { Some(1) };
            let times = runs(op, host).zip(copies).map(|(times, copies)| times * copies);
            sites.push(Site { location: op.location().to_string(), bytes, times });
        }
        ops::func::CALL => {
            let times = runs(op, host);
            sites.extend(of_kernel(op).into_iter().flatten().map(|site| Site { times, ..site.clone() }));
        }
        _ => {}
    });
    sites
}

/// Whether source and target of a copy within the arena overlap; `None` if a run decides.
fn overlap<'c>(copy: Op<'c>, flows: &Flows<'c>) -> Option<bool> {
    let [source, target] = [0, 1].map(|operand| flows.places_of(copy.operand(operand)));
    // Buffers that are alive at once are apart.
    if source.is_disjoint(&target) {
        return Some(false);
    }
    let range = |operand: usize| {
        let ty = copy.operand(operand).ty();
        let (bytes, count) = (ty.static_size_bytes()?, ty.shape()?.iter().product::<i64>());
        let offset = u64::try_from(ty.as_memref()?.offset).ok()?;
        let start = offset.checked_mul(bytes.checked_div(u64::try_from(count).ok()?)?)?;
        Some((start, start.checked_add(bytes)?))
    };
    let are_one = source.len() == 1 && target.len() == 1;
    let ((from, end), (to, to_end)) = range(0).zip(range(1)).filter(|_| are_one)?;
    // What does not begin with a word is copied by a kernel.
    let in_words = (from | to).is_multiple_of(WORD_BYTES);
    Some(in_words && from < to_end && to < end)
}

/// Executions of an op of the host function; `None` behind a condition or in a loop of dynamic length.
fn runs(op: Op, host: Op) -> Option<u64> {
    let mut times = 1u64;
    for around in std::iter::successors(op.parent(), |op| op.parent()).take_while(|op| *op != host) {
        match around.name() {
            // The tiles of a dispatch count as one.
            ops::scf::FORALL => {}
            ops::scf::FOR => {
                let bound = |i: usize| {
                    let constant = around.operand(i).defining_op().filter(|op| op.is(ops::arith::CONSTANT));
                    constant.and_then(|op| op.attr("value")?.as_int())
                };
                let (lower, upper, step) = (bound(0)?, bound(1)?, bound(2).filter(|step| *step > 0)?);
                let length = u64::try_from(upper.checked_sub(lower)?).unwrap_or(0);
                times = times.checked_mul(length.div_ceil(step.unsigned_abs()))?;
            }
            _ => return None,
        }
    }
    Some(times)
}

/// The number of tiles of each kernel's dispatch; `None` if dynamic.
fn tiles_of_dispatches(module: &Module) -> HashMap<String, Option<u64>> {
    let mut tiles = HashMap::new();
    for forall in module.op().find_all(ops::scf::FORALL) {
        let call = forall.body().and_then(Block::first_op).filter(|op| op.is(ops::func::CALL));
        let Some(name) = call.and_then(Op::callee) else { continue };
        let bounds = forall.attr("staticUpperBound").and_then(|a| a.as_ints()).unwrap_or_default();
        let product = |product: u64, bound: i64| product.checked_mul(u64::try_from(bound).ok()?);
        let known = bounds.iter().all(|bound| *bound != DYNAMIC);
        tiles.insert(name.to_owned(), bounds.into_iter().try_fold(1, product).filter(|_| known));
    }
    tiles
}

/// The argument that a value is a view of.
fn argument<'c>(kernel: Op<'c>, value: Value<'c>) -> Option<Value<'c>> {
    let base = views(value).last()?;
    base.as_block_arg().filter(|(block, _)| Some(*block) == kernel.body()).map(|_| base)
}

/// A value and the chain of its view sources.
fn views<'c>(value: Value<'c>) -> impl Iterator<Item = Value<'c>> {
    std::iter::successors(Some(value), |value| {
        let source = value.defining_op()?.operands().first().copied()?;
        source.ty().is_memref().then_some(source)
    })
}

/// A value and its view sources, each at least as large: what a `reinterpret_cast` views has any type, such as `memref<f32>`.
fn slices<'c>(value: Value<'c>) -> impl Iterator<Item = Value<'c>> {
    std::iter::successors(Some(value), |value| {
        let source =
            value.defining_op().filter(|op| !op.is(ops::memref::REINTERPRET_CAST))?.operands().first().copied()?;
        source.ty().is_memref().then_some(source)
    })
}

fn is_between_arguments(kernel: Op, copy: Op) -> bool {
    copy.operands().into_iter().all(|value| argument(kernel, value).is_some())
}

/// The bytes of all tiles together, at most those of any view that the tiles slice.
fn bytes_of_all_tiles(kernel: Op, copy: Op, tiles: Option<u64>) -> Option<u64> {
    let sizes = |value: Value| slices(value).skip(1).filter_map(|v| v.ty().static_size_bytes()).collect::<Vec<_>>();
    let whole = copy.operands().into_iter().flat_map(sizes).min();
    let tile = copy.operands().into_iter().filter_map(|v| v.ty().static_size_bytes()).min();
    // A copy in a loop of the kernel runs several times.
    let once = copy.block().and_then(Block::parent_op) == Some(kernel);
    let parts = tile.zip(tiles).filter(|_| once).and_then(|(tile, tiles)| tile.checked_mul(tiles));
    let direct = copy.operands().into_iter().filter(|v| v.as_block_arg().is_some());
    let direct = direct.filter_map(|v: Value| Type::static_size_bytes(v.ty())).min();
    [whole, parts, direct].into_iter().flatten().min()
}

/// What [`attributes::COPIED_SIZES`] says of a copy: the bytes of each view that the tiles slice and whose sizes are scalar arguments.
/// What casts an argument is no tile.
fn sizes_by_scalars<'c>(kernel: Op<'c>, copy: Op<'c>) -> Vec<Attr<'c>> {
    let scalars: Vec<Value> = kernel.body().map(|body| body.args()).unwrap_or_default();
    let scalars: Vec<Value> = scalars.into_iter().filter(|arg| !arg.ty().is_memref()).collect();
    let bytes = |view: Value<'c>| {
        let mut list = vec![i64::try_from(view.ty().element_size_bytes()?).ok()?];
        for size in Slice::of(view.defining_op()?)?.sizes {
            match size {
                Index::Static(size) => list[0] = list[0].checked_mul(size)?,
                Index::Dynamic(size) => list.push(scalars.iter().position(|scalar| *scalar == size)? as i64),
            }
        }
        Some(Attr::dense_i64(copy.context(), &list))
    };
    let is_cast = |value: &Value<'c>| value.defining_op().is_some_and(|op| op.is(ops::memref::REINTERPRET_CAST));
    let sliced =
        |value| views(value).enumerate().filter(move |(at, view)| *at > 0 || is_cast(view)).map(|(_, view)| view);
    copy.operands().into_iter().flat_map(sliced).filter_map(bytes).collect()
}
