//! Which values must share a layout, and what each group of them gains.

use super::{Layout, parts, tokens};
use crate::fuse::duplicate_per_use;
use crate::narrow::constants::stored;
use crate::{kernel_cpu, linalg, products};
use monopour_ir::ops;
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{AffineExprKind, AffineMap, DYNAMIC, Module, Op, Rewriter, Type, Value, WalkOrder};
use monopour_program::CpuTarget;
use std::collections::{HashMap, HashSet};
use tracing::{Level, enabled, trace};

/// Multiplications of a convolution, by windows and of single elements, that gain as much as copying one element to another
/// layout costs (measured: a quarter and a tenth of the time of 90 multiplications per ns, beside 0.5 ns per element).
const WORK_PER_ELEMENT: [i64; 2] = [180, 400];
/// Multiplications that take as long as copying an element.
const ALL_WORK_PER_ELEMENT: i64 = 45;
/// As much faster are products of 8 bits.
const FASTER_IN_BYTES: i64 = 4;
/// Fewest channels, and bytes of each, of a plain image that a convolution does not read: a step of its sum is in another
/// page.
const FEWEST_CHANNELS: i64 = 8;
const PLANE_BYTES: i64 = 2_048;
/// Elements of a depthwise convolution's or a pool's result that gain as much.
const RESULTS_PER_ELEMENT: i64 = 2;
/// A copy out of a layout that a convolution's task makes of its tile (`turned.rs`) costs such a part of one through memory.
const FUSED_COPY: i64 = 8;
/// Registers of a block of channels: as wide as a register tile.
pub(crate) const REGISTERS: i64 = 2;

/// The layouts of values, and what does not follow.
pub(super) struct Decided<'c> {
    /// Values of other layouts than the plain one, in program order.
    pub(super) layouts: Vec<(Value<'c>, Layout)>,
    /// Ops that can follow, in program order.
    pub(super) ops: Vec<Op<'c>>,
    /// Operands that are read plain.
    pub(super) plain_uses: HashSet<(Op<'c>, usize)>,
    /// Results that are written plain.
    pub(super) plain_results: HashSet<Value<'c>>,
    /// Operands of convolutions that read a copy of a plain image.
    pub(super) copied_uses: Vec<(Op<'c>, usize, Layout)>,
    /// Whether the target is a CPU, whose code sums in lanes where channels are few.
    pub(super) on_cpu: bool,
}

/// Every use of a fill or `tensor.empty` gets its own: a shared one ties its readers to one layout.
pub(super) fn unshare<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) {
    let is_fill = |op: &Op| op.operands()[..linalg::num_inputs(*op)].iter().all(|value| !value.ty().is_tensor());
    let fills = module.op().find_all(ops::linalg::GENERIC).into_iter().filter(is_fill);
    // Fills first: the copies of a fill share its `tensor.empty`.
    for op in module.op().find_all(ops::linalg::FILL).into_iter().chain(fills) {
        if op.num_results() == 1 {
            duplicate_per_use(op, rw);
        }
    }
    module.op().find_all(ops::tensor::EMPTY).into_iter().for_each(|op| duplicate_per_use(op, rw));
}

/// Decides for all images of a module; `cpu` is none for GPUs, where channels are last.
pub(super) fn decide<'c>(module: &'c Module<'c>, cpu: Option<&CpuTarget>) -> Decided<'c> {
    let lanes = cpu.map(|cpu| i64::from(cpu.vector_bits) / 32);
    let mut groups = Groups { lanes, ..Groups::default() };
    for function in module.functions() {
        for op in function.nested(WalkOrder::Pre).into_iter().filter(|op| *op != function) {
            let top = op.parent() == Some(function);
            match op.name() {
                ops::linalg::GENERIC if top => groups.generic(op),
                ops::linalg::FILL if top => groups.share(op),
                ops::tensor::EMPTY if top => groups.share(op),
                ops::tensor::INSERT_SLICE | ops::tensor::EXTRACT_SLICE if top => groups.slice(op),
                ops::tensor::EXPAND_SHAPE | ops::tensor::COLLAPSE_SHAPE if top && keeps_image(op) => groups.share(op),
                _ => groups.plain(op),
            }
        }
    }
    groups.finish()
}

/// Whether a value is a tensor of three dimensions or more, of known sizes, that is computed.
fn has_image(value: Value) -> bool {
    let Some(shape) = value.ty().as_tensor().filter(|ty| ty.encoding.is_none()).map(|ty| ty.shape) else {
        return false;
    };
    let constant = value.defining_op().is_some_and(|op| op.is(ops::arith::CONSTANT));
    shape.len() >= 3 && is_known(&shape) && !constant
}

/// Whether an image has known sizes but in front, where batches are, and none is 0.
pub(super) fn is_known(shape: &[i64]) -> bool {
    let (front, image) = parts(shape);
    front.iter().all(|size| *size != 0) && image.iter().all(|size| *size > 0)
}

/// Whether a reshape adds or drops dimensions of one element in front of an image.
fn keeps_image(op: Op) -> bool {
    let shapes = [op.operand(0), op.result(0)].map(|value| value.ty().shape().unwrap_or_default());
    shapes.iter().all(|shape| shape.len() >= 3 && parts(shape).0.iter().all(|size| *size == 1))
        && parts(&shapes[0]).1 == parts(&shapes[1]).1
}

fn elements(value: Value) -> i64 {
    count(value.ty().shape().unwrap_or_default())
}

/// Elements of 32 bits that take as long to copy as a value.
fn copied_elements(value: Value) -> i64 {
    let bytes = value.ty().element().element_size_bytes().map_or(4, |bytes| bytes as i64);
    elements(value) * bytes.min(4) / 4
}

/// The product of some sizes; an unknown one counts as 1.
fn count(sizes: Vec<i64>) -> i64 {
    sizes.into_iter().map(|size| if size == DYNAMIC { 1 } else { size }).fold(1, i64::saturating_mul)
}

/// The loop that indexes an operand's channels.
pub(super) fn channel_loop(map: AffineMap) -> Option<usize> {
    let results = map.results();
    if results.len() < 3 {
        return None;
    }
    let (_, [channels, ..]) = parts(&results);
    match channels.kind() {
        AffineExprKind::Dim(d) => Some(d),
        _ => None,
    }
}

/// Groups of values, by union and find.
#[derive(Default)]
struct Groups<'c> {
    /// Elements of a register of a CPU.
    lanes: Option<i64>,
    ids: HashMap<Value<'c>, usize>,
    values: Vec<Value<'c>>,
    parents: Vec<usize>,
    /// Per value, in elements that a copy moves.
    gains: Vec<i64>,
    ops: Vec<Op<'c>>,
    plain_uses: HashSet<(Op<'c>, usize)>,
    plain_results: HashSet<Value<'c>>,
    /// Numbers that a block of a value's group has to divide.
    divisible: Vec<(usize, i64)>,
    /// Values that are copied once for all readers in the other layout.
    copied: HashSet<Value<'c>>,
    /// Convolutions, the operand that is their image, and their result.
    convolutions: Vec<(Op<'c>, usize, Value<'c>)>,
}

impl<'c> Groups<'c> {
    /// Whether a value is an image that may get another layout.
    fn is_image(&self, value: Value) -> bool {
        has_image(value) && (is_stored_alike(value.ty()) || self.lanes.is_none() && value.ty().element().is_float())
    }

    fn id(&mut self, value: Value<'c>) -> usize {
        if let Some(id) = self.ids.get(&value) {
            return *id;
        }
        let id = self.values.len();
        self.ids.insert(value, id);
        self.values.push(value);
        self.parents.push(id);
        self.gains.push(0);
        let shape = value.ty().shape().unwrap_or_default();
        self.divisible.push((id, parts(&shape).1[0]));
        if value.defining_op().is_none() {
            self.write_plain(value);
        }
        id
    }

    fn root(&self, mut id: usize) -> usize {
        while self.parents[id] != id {
            id = self.parents[id];
        }
        id
    }

    fn unite(&mut self, a: Value<'c>, b: Value<'c>) {
        let (a, b) = (self.id(a), self.id(b));
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }

    fn gain(&mut self, value: Value<'c>, elements: i64) {
        let id = self.id(value);
        self.gains[id] += elements;
    }

    /// A copy for all readers of the other kind.
    fn copy(&mut self, value: Value<'c>) {
        if self.copied.insert(value) {
            // Squares of registers are turned: rests would be element by element.
            let channels = parts(&value.ty().shape().unwrap_or_default()).1[0];
            let squares = channels % self.lanes.unwrap_or(1).max(1) == 0;
            let part = if squares && is_finished_by_reader(value) { FUSED_COPY } else { 1 };
            self.gain(value, -copied_elements(value) / part);
        }
    }

    fn read_plain(&mut self, op: Op<'c>, index: usize) {
        if self.is_image(op.operand(index)) && self.plain_uses.insert((op, index)) {
            self.copy(op.operand(index));
        }
    }

    fn write_plain(&mut self, value: Value<'c>) {
        if self.is_image(value) && self.plain_results.insert(value) {
            self.copy(value);
        }
    }

    /// An op of which nothing is known.
    fn plain(&mut self, op: Op<'c>) {
        (0..op.num_operands()).for_each(|index| self.read_plain(op, index));
        op.results().into_iter().for_each(|result| self.write_plain(result));
    }

    /// An op whose images all share a layout.
    fn share(&mut self, op: Op<'c>) {
        let images: Vec<Value> = op.operands().into_iter().chain(op.results()).filter(|v| self.is_image(*v)).collect();
        images.iter().for_each(|v| self.unite(images[0], *v));
        self.ops.push(op);
    }

    fn slice(&mut self, op: Op<'c>) {
        let tensors: Vec<Value> =
            op.operands().into_iter().chain(op.results()).filter(|value| value.ty().is_tensor()).collect();
        let ranks: Vec<_> = tensors.iter().map(|v| v.ty().shape().map(|s| s.len())).collect();
        // Those in front are kept as they are.
        let front = ranks.first().copied().flatten().map_or(0, |rank| rank.saturating_sub(3));
        let read = |list: &[Index<'c>]| {
            let number = |(d, i): (usize, &Index<'c>)| i.constant().or((d < front).then_some(DYNAMIC));
            list.iter().enumerate().map(number).collect::<Option<Vec<i64>>>()
        };
        let known =
            Slice::of(op).and_then(|slice| Some([read(&slice.offsets)?, read(&slice.sizes)?, read(&slice.strides)?]));
        let images = tensors.into_iter().all(|value| self.is_image(value));
        match known {
            Some([offsets, sizes, strides])
                if images && ranks.iter().all(|r| *r == ranks[0]) && parts(&strides).1[0] == 1 =>
            {
                self.share(op);
                let id = self.ids[&op.result(0)];
                self.divisible.extend([(id, parts(&offsets).1[0]), (id, parts(&sizes).1[0])]);
            }
            _ => self.plain(op),
        }
    }

    fn generic(&mut self, op: Op<'c>) {
        let (Some(maps), inputs) = (linalg::indexing_maps(op), linalg::num_inputs(op)) else { return self.plain(op) };
        let filter = filter(op);
        let stored = |i: usize| op.operand(i).defining_op().is_some_and(|def| def.is(ops::arith::CONSTANT));
        if !op.find_all(ops::linalg::INDEX).is_empty()
            || filter.is_some_and(|filter| !stored(filter))
            || is_of_other_images(op)
        {
            return self.plain(op);
        }
        let mut channels: Vec<Option<usize>> =
            (0..op.num_operands()).map(|i| channel_loop(maps[i]).filter(|_| self.is_image(op.operand(i)))).collect();
        if let Some(image) = tokens::image_side(op) {
            channels[1 - image] = None;
        }
        // A loop that is cut into blocks indexes whole dimensions.
        let whole = |d: usize| maps.iter().all(|map| map.results().iter().all(|e| is_apart(*e, d)));
        let once = |map: AffineMap, d: usize| map.results().iter().filter(|e| e.dims().contains(&d)).count() <= 1;
        let loops: Vec<usize> = channels.iter().copied().flatten().filter(|d| whole(*d)).collect();
        let mut first: HashMap<usize, Value> = HashMap::new();
        for i in 0..op.num_operands() {
            let value = op.operand(i);
            if !self.is_image(value) {
                continue;
            }
            let own = channels[i].filter(|d| loops.contains(d) && loops.iter().all(|l| once(maps[i], *l)));
            // Another image's channels are none of this one's other dimensions.
            let own = own.filter(|own| {
                maps[i].results().iter().all(|e| e.dims().iter().all(|d| d == own || !loops.contains(d)))
            });
            let result = i.checked_sub(inputs).map(|r| op.result(r));
            match own {
                Some(own) => {
                    let leader = *first.entry(own).or_insert(value);
                    self.unite(leader, value);
                    result.into_iter().for_each(|result| self.unite(value, result));
                }
                None => {
                    self.read_plain(op, i);
                    result.into_iter().for_each(|result| self.write_plain(result));
                }
            }
        }
        self.ops.push(op);
        self.weigh(op, filter);
    }

    /// What an op gains if its result has channels in blocks.
    fn weigh(&mut self, op: Op<'c>, filter: Option<usize>) {
        let Some(result) = op.results().first().copied().filter(|r| self.is_image(*r)) else { return };
        let windows = linalg::indexing_maps(op).is_some_and(|maps| maps.iter().any(|m| !m.is_projected_permutation()));
        let sums = linalg::parallel_loops(op).is_some_and(|p| p.contains(&false));
        let depthwise = products::convolution_loops(op).is_some_and(|found| found.channels.is_empty());
        let gain = if filter.is_some() && !depthwise {
            let work = count(linalg::loop_extents(op).unwrap_or_default());
            let image = 1 - filter.unwrap_or(0);
            if !self.plain_uses.contains(&(op, image)) {
                self.convolutions.push((op, image, result));
            }
            let bytes = op.operand(image).ty().element().integer_width().is_some_and(|bits| bits == 8);
            let per_element = WORK_PER_ELEMENT[usize::from(!windows)];
            let work = if bytes { work / FASTER_IN_BYTES } else { work };
            // An image of halves would be widened for each vector of channels that its elements meet.
            let alike = self.lanes.is_none() || op.operands().iter().all(|v| is_stored_alike(v.ty()));
            let idle = if windows || bytes { 0 } else { self.idle_work(result, work) };
            if alike { work / per_element + idle / ALL_WORK_PER_ELEMENT } else { 0 }
        } else if windows && sums {
            elements(result) / RESULTS_PER_ELEMENT
        } else {
            0
        };
        self.gain(result, gain);
    }

    /// Multiplications of lanes that a plain image leaves empty: its elements are no whole registers.
    fn idle_work(&self, result: Value<'c>, work: i64) -> i64 {
        let shape = result.ty().shape().unwrap_or_default();
        let [_, height, width] = parts(&shape).1;
        let (pixels, lanes) = (height.saturating_mul(width).max(1), self.lanes.unwrap_or(1).max(1));
        work.saturating_mul((lanes - pixels % lanes) % lanes) / pixels
    }

    /// The groups that gain. What a convolution reads of a group that does not is copied, which costs those that it belongs
    /// to: until no group stops to gain by it.
    fn finish(self) -> Decided<'c> {
        let lanes = self.lanes;
        let roots: Vec<usize> = (0..self.values.len()).map(|id| self.root(id)).collect();
        let of = |value: &Value<'c>| self.ids.get(value).map(|id| roots[*id]);
        let mut gains: HashMap<usize, i64> = HashMap::new();
        for (id, root) in roots.iter().enumerate() {
            *gains.entry(*root).or_default() += self.gains[id];
        }
        let mut copies: HashSet<(usize, Value<'c>)> = HashSet::new();
        loop {
            let chosen = |root: Option<usize>| root.is_some_and(|root| gains[&root] > 0);
            let plain = |(op, image, result): &(Op<'c>, usize, Value<'c>)| {
                let (read, root) = (op.operand(*image), of(result)?);
                let copied = chosen(Some(root)) && !chosen(of(&read)) && is_slow_to_read(*op, read);
                Some((root, read)).filter(|copy| copied && !copies.contains(copy))
            };
            let more: Vec<(usize, Value)> = self.convolutions.iter().filter_map(plain).collect();
            for (root, read) in &more {
                if copies.insert((*root, *read)) {
                    *gains.entry(*root).or_default() -= copied_elements(*read);
                }
            }
            if more.is_empty() {
                break;
            }
        }
        let mut sizes: HashMap<usize, Vec<i64>> = HashMap::new();
        for (id, size) in &self.divisible {
            sizes.entry(roots[*id]).or_default().push(*size);
        }
        let layout = |sizes: &[i64]| {
            let divides = |block: &i64| sizes.iter().all(|size| size % block == 0);
            let blocks = lanes.into_iter().flat_map(|lanes| [REGISTERS * lanes, lanes]).find(divides);
            blocks.map_or(Layout::Last, Layout::Blocks)
        };
        let chosen: HashMap<usize, Layout> =
            gains.iter().filter(|(_, gain)| **gain > 0).map(|(root, _)| (*root, layout(&sizes[root]))).collect();
        self.log(&gains, &chosen);
        let copied = |(op, image, result): &(Op<'c>, usize, Value<'c>)| {
            let (read, root) = (op.operand(*image), of(result)?);
            let shape = read.ty().shape().unwrap_or_default();
            let copied = chosen.contains_key(&root) && copies.contains(&(root, read));
            copied.then(|| (*op, *image, layout(&[parts(&shape).1[0]])))
        };
        let layouts = self.values.iter().filter_map(|value| Some((*value, *chosen.get(&of(value)?)?))).collect();
        let copied_uses = self.convolutions.iter().filter_map(copied).collect();
        let (ops, plain_uses, plain_results) = (self.ops, self.plain_uses, self.plain_results);
        Decided { layouts, ops, plain_uses, plain_results, copied_uses, on_cpu: lanes.is_some() }
    }

    fn log(&self, gains: &HashMap<usize, i64>, chosen: &HashMap<usize, Layout>) {
        if !enabled!(target: "fuse", Level::TRACE) {
            return;
        }
        let mut chosen: Vec<(usize, Layout)> = chosen.iter().map(|(root, layout)| (*root, *layout)).collect();
        chosen.sort_by_key(|(root, _)| *root);
        for (root, layout) in chosen {
            let loc = self.values[root].defining_op().map(Op::location);
            let loc = loc.map_or_else(String::new, |loc| format!("{loc}: "));
            trace!(target: "fuse", "{loc}{layout:?} for a group of images that gains {} elements", gains[&root]);
        }
    }
}

/// Whether the only reader of a value can be a part of the convolution that makes it, or of which pointwise ops make it.
fn is_finished_by_reader(value: Value) -> bool {
    let Some(op) = value.defining_op().filter(|_| value.only_use().is_some()) else { return false };
    let images = || op.operands().into_iter().filter(|operand| has_image(*operand)).collect::<Vec<_>>();
    match op.name() {
        ops::linalg::GENERIC if filter(op).is_some() => true,
        ops::linalg::GENERIC => linalg::is_elementwise(op) && images().into_iter().any(is_finished_by_reader),
        ops::tensor::EXPAND_SHAPE | ops::tensor::COLLAPSE_SHAPE => is_finished_by_reader(op.operand(0)),
        _ => false,
    }
}

/// Whether a convolution reads an image at some of its pixels: windows of one element are apart.
fn skips_pixels(op: Op) -> bool {
    let Some(found) = products::convolution_loops(op) else { return false };
    let extents = linalg::loop_extents(op).unwrap_or_default();
    let single = found.window.iter().all(|d| extents.get(*d) == Some(&1));
    single && kernel_cpu::line_stride(op, &found).is_some_and(|stride| stride > 1)
}

/// Whether a convolution is slow in reading a plain image: its planes are large, pixels that it skips lie between those that it
/// reads, or several bytes are one factor.
fn is_slow_to_read(op: Op, image: Value) -> bool {
    let shape = image.ty().shape().filter(|_| has_image(image)).unwrap_or_default();
    let size = image.ty().element().element_size_bytes().map_or(4, |bytes| bytes as i64);
    let [channels, height, width] = if shape.is_empty() { [0; 3] } else { parts(&shape).1 };
    let far = height * width * size > PLANE_BYTES || skips_pixels(op);
    channels >= FEWEST_CHANNELS && (size == 1 || far)
}

/// Whether an expression is loop `d` alone, or without it.
fn is_apart(expr: monopour_ir::AffineExpr, d: usize) -> bool {
    matches!(expr.kind(), AffineExprKind::Dim(_)) || !expr.dims().contains(&d)
}

/// The filter of a convolution over images, or of one with windows of one element.
pub(super) fn filter(op: Op) -> Option<usize> {
    if let Some(found) = products::convolution_loops(op) {
        return Some(1 - found.input).filter(|_| found.image.len() + found.batch.len() > 1);
    }
    let found = products::contraction_loops(op)?;
    let filter = op.operand(found.lhs);
    let stored = filter.defining_op().is_some_and(|def| def.is(ops::arith::CONSTANT));
    let pointwise = found.m.len() == 1 && found.n.len() > 1 && found.k.len() == 1 && found.batch.is_empty();
    (stored && pointwise).then_some(found.lhs)
}

/// Whether the dimension before the last two of a convolution's result is not that of its channels, but of volumes, say.
fn is_of_other_images(op: Op) -> bool {
    let channels = match (products::convolution_loops(op), products::contraction_loops(op)) {
        (Some(found), _) => [found.channels, found.depth].concat(),
        (_, Some(found)) if found.n.len() > 2 => found.m,
        _ => return false,
    };
    let result = linalg::indexing_maps(op).and_then(|maps| channel_loop(*maps.last()?));
    result.is_some_and(|d| !channels.contains(&d))
}

/// The left operand of a product of several rows and constant weights.
pub(super) fn rows_times_weights(op: Op) -> Option<usize> {
    let (found, extents) = products::contraction_loops(op).zip(linalg::loop_extents(op))?;
    if linalg::num_inputs(op) != 2 {
        return None;
    }
    let several = found.m.iter().any(|d| extents[*d] != 1) && !found.n.is_empty();
    let weights = op.operand(1 - found.lhs);
    (several && stored(moved(weights).unwrap_or(weights)).is_some()).then_some(found.lhs)
}

/// What a transposition, or another copy in front of the ops that read it, moves.
fn moved(value: Value) -> Option<Value> {
    let op = value.defining_op().filter(|op| op.is(ops::linalg::GENERIC) && linalg::num_inputs(*op) == 1)?;
    let body = op.body()?;
    (body.terminator()?.operand(0) == body.arg(0)).then(|| op.operand(0))
}

/// Whether elements are bytes in memory, and not widened floats.
fn is_stored_alike(ty: Type) -> bool {
    let bits = ty.element().float_width().map_or(ty.element().integer_width(), |bits| Some(bits).filter(|b| *b >= 32));
    bits.is_some_and(|bits| bits >= 8)
}
