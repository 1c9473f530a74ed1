//! Which part of its buffer a value occupies: slices of slices, composed down to the buffer.
//!
//! ```text
//! %h = extract %a [0:p:1]            %h is [0, p) of %a
//! %t = extract %h [64*s1:64:1]       %t is within [0, p), and is [64*s1, 64*s1 + 64) of %a
//! %b = insert %x, %a put [p:1:1]     writes [p, p + 1) of %a: no part of %h or %t
//! ```
//!
//! A value has a *root*, the value from which slices and operations in place lead to it, and the boxes that it lies in, one
//! within the other. Wherever two values of one root share a buffer, that buffer starts at the same element for both: it is the
//! root's, or a copy of a value on the way to both. So if a box of the one and a box of the other have no element in
//! common, the values share no memory, whatever is decided.
//!
//! Two boxes have no element in common if in some dimension one begins behind the end of the other, by a constant distance once
//! equal symbols cancel, or if their strides keep them apart. A symbol has one value within an iteration of the loop that
//! defines it. Accesses of different iterations are compared without the symbols that the loop defines (`scope`).
//!
//! A loop writes to its initial value what its body writes to the iteration argument, for all iterations together, if the
//! iterations hand on that argument alone and nothing else may be its buffer.
//!
//! Limits: numbers of boxes that are not affine are unknown, and so is a slice behind a reshape. At most [`MOST_LEVELS`] boxes of
//! a value are compared, and a loop has at most [`MOST_PARTS`] parts.
//! Source: the comparison of hyper-rectangles is that of MLIR's `ValueBoundsConstraintSet` for slices, on normal forms.

use std::collections::HashMap;
use std::rc::Rc;

use crate::dominance::is_within;
use crate::effects::{Affine, Slice};
use crate::facts::{Facts, Relation, Subset, ValueDef};
use crate::index::{BlockId, IndexVec, OperandId, RegionId, ValueId};
use crate::subsets::{Walk, walk};

/// The innermost boxes of each value that are compared: tiling adds one or two, and models slice a slice.
const MOST_LEVELS: usize = 6;

/// The parts that a loop writes: more are taken as the whole.
const MOST_PARTS: usize = 8;

/// The parts of buffers that values occupy and operands access.
#[derive(Clone, Debug)]
pub(crate) struct Footprints {
    places: IndexVec<ValueId, Place>,
    boxes: Vec<Node>,
    /// The box that each operand reads; `None`: all of the buffer.
    reads: IndexVec<OperandId, Option<u32>>,
    /// The boxes that a loop writes through an operand, if they are not that of the operand's value.
    loops: HashMap<OperandId, Vec<u32>>,
    /// The box that an insertion writes.
    insertions: HashMap<OperandId, Option<u32>>,
}

/// The place of a value.
#[derive(Clone, Debug)]
struct Place {
    root: ValueId,
    /// The innermost box; `None`: all of the buffer.
    within: Option<u32>,
    frame: Frame,
}

/// Where the elements of a value lie in its root.
#[derive(Clone, Debug)]
enum Frame {
    /// Element for element.
    Whole,
    /// By dimension of the value.
    Axes(Rc<[Axis]>),
    /// Unknown.
    Lost,
}

/// A dimension of a value.
#[derive(Clone, Debug)]
struct Axis {
    /// The dimension of the root.
    dimension: usize,
    offset: Affine,
    stride: Affine,
    /// Of size 1: it may be left out of the value's type.
    is_unit: bool,
}

/// A box in a root, and the one around it.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<u32>,
    depth: u32,
    /// By dimension of the root; `None`: unknown.
    sides: Rc<[Option<Side>]>,
}

/// `size` elements from `offset`, `stride` apart.
#[derive(Clone, Debug)]
struct Side {
    offset: Affine,
    size: Affine,
    stride: Affine,
}

impl Footprints {
    /// `None` if blocks repeat: behind a cycle a symbol has the value of the last pass, and earlier ones had others.
    pub fn new(facts: &Facts) -> Option<Self> {
        let number = |block: BlockId| facts.places[block].number;
        let goes_back = |block: BlockId| facts.successors(block).iter().any(|&to| number(to) <= number(block));
        if facts.blocks().ids().any(goes_back) {
            return None;
        }
        let own = |root| Place { root, within: None, frame: Frame::Whole };
        let mut this = Self {
            places: facts.values().ids().map(own).collect(),
            boxes: Vec::new(),
            reads: IndexVec::new(),
            loops: HashMap::new(),
            insertions: HashMap::new(),
        };
        let Walk { order, looped } = walk(facts);
        for value in order.into_iter().filter(|value| !looped[*value]) {
            if let Some(place) = this.place_of(facts, value) {
                this.places[value] = place;
            }
        }
        for (operand, used) in facts.operands().iter_enumerated() {
            let place = this.places[used.value].clone();
            let mut read = place.within;
            match facts.ops()[used.op].subset {
                Some(Subset::Extraction { container, result, .. }) if container == operand && !used.reads => {
                    read = this.places[result].within;
                }
                Some(Subset::Insertion { destination, slice: Some(slice), .. }) if destination == operand => {
                    let part = this.part(&place, &sides(&facts.slices()[slice]));
                    this.insertions.insert(operand, part.within);
                }
                _ => {}
            }
            this.reads.push(read);
        }
        this.add_loops(facts);
        Some(this)
    }

    /// Whether the read and the write touch no common element. `scope`: they may belong to different iterations of this region.
    pub fn are_disjoint(&self, facts: &Facts, read: OperandId, write: OperandId, scope: Option<RegionId>) -> bool {
        let root = |operand: OperandId| self.places[facts.operands()[operand].value].root;
        if root(read) != root(write) {
            return false;
        }
        // Each iteration has a root of its own, and one may be a part of that of another.
        if scope.is_some_and(|scope| is_within(facts, facts.defining_region(root(read)), scope)) {
            return false;
        }
        let Some(read) = self.reads[read] else { return false };
        let one;
        let parts: &[u32] = match (self.loops.get(&write), self.insertions.get(&write)) {
            (Some(parts), _) => parts,
            (None, Some(part)) => {
                one = part.as_slice();
                one
            }
            (None, None) => self.places[facts.operands()[write].value].within.as_slice(),
        };
        !parts.is_empty() && parts.iter().all(|part| self.are_apart(facts, read, *part, scope))
    }

    // ---- Places of values. ----

    /// The place that follows from those of the sources; `None`: the value is its own root.
    fn place_of(&mut self, facts: &Facts, value: ValueId) -> Option<Place> {
        if let Some((container, slice)) = facts.extracted(value) {
            let place = self.places[container].clone();
            return Some(self.part(&place, &sides(&facts.slices()[slice])));
        }
        let mut places = facts.sources(value).iter().map(|source| {
            let place = self.places[facts.operands()[source.operand].value].clone();
            let holds = match source.relation {
                Relation::Equivalent => true,
                Relation::Unknown => false,
                Relation::EquivalentIf { first, second } => {
                    [Some(first), second].into_iter().flatten().all(|(a, b)| self.is_all_of(b, a))
                }
            };
            let frame = if source.retypes { Frame::Lost } else { place.frame };
            holds.then_some(Place { frame, ..place })
        });
        let first = places.next()??;
        places.try_fold(first, |a, b| self.common(a, b?))
    }

    /// Whether the value is the buffer of the root, from its first element to its last.
    fn is_all_of(&self, value: ValueId, root: ValueId) -> bool {
        let place = &self.places[value];
        place.root == root && place.within.is_none() && matches!(place.frame, Frame::Whole)
    }

    /// A place of what may be at either place.
    fn common(&self, a: Place, b: Place) -> Option<Place> {
        if a.root != b.root {
            return None;
        }
        if a.within == b.within && matches!((&a.frame, &b.frame), (Frame::Whole, Frame::Whole)) {
            return Some(a);
        }
        let (mut first, mut second) = (a.within, b.within);
        while first != second {
            let depth = |node: Option<u32>| node.map_or(0, |node| self.boxes[node as usize].depth);
            let parent = |node: Option<u32>| node.and_then(|node| self.boxes[node as usize].parent);
            if depth(first) >= depth(second) { first = parent(first) } else { second = parent(second) }
        }
        Some(Place { root: a.root, within: first, frame: Frame::Lost })
    }

    /// The place of a slice of what is at a place.
    fn part(&mut self, place: &Place, sides: &[Option<Side>]) -> Place {
        let lost = |within| Place { root: place.root, within, frame: Frame::Lost };
        let Some(axes) = axes_for(&place.frame, sides.len()) else { return lost(place.within) };
        let mut composed: Vec<Option<Side>> = match (&place.frame, place.within) {
            // The dimensions that the value's type leaves out.
            (Frame::Axes(_), Some(around)) => self.boxes[around as usize].sides.to_vec(),
            _ => vec![None; sides.len()],
        };
        let mut inner = Vec::with_capacity(axes.len());
        for (axis, side) in axes.iter().zip(sides) {
            let side = side.as_ref().and_then(|side| axis.compose(side));
            inner.extend(side.as_ref().map(|side| Axis {
                dimension: axis.dimension,
                offset: side.offset.clone(),
                stride: side.stride.clone(),
                is_unit: side.size == Affine::constant(1),
            }));
            let Some(place) = composed.get_mut(axis.dimension) else { return lost(place.within) };
            *place = side;
        }
        let frame = if inner.len() == axes.len() { Frame::Axes(inner.into()) } else { Frame::Lost };
        Place { root: place.root, within: Some(self.node(place.within, composed)), frame }
    }

    fn node(&mut self, parent: Option<u32>, sides: Vec<Option<Side>>) -> u32 {
        let depth = parent.map_or(1, |parent| self.boxes[parent as usize].depth + 1);
        self.boxes.push(Node { parent, depth, sides: sides.into() });
        u32::try_from(self.boxes.len() - 1).unwrap_or(u32::MAX)
    }

    /// The innermost boxes around a box, itself first.
    fn levels(&self, node: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(node), |node| self.boxes[*node as usize].parent).take(MOST_LEVELS)
    }

    fn are_apart(&self, facts: &Facts, a: u32, b: u32, scope: Option<RegionId>) -> bool {
        self.levels(a).any(|a| {
            self.levels(b).any(|b| {
                let (first, second) = (&self.boxes[a as usize].sides, &self.boxes[b as usize].sides);
                let pairs = || first.iter().zip(second.iter());
                let holds = |side: &Side| scope.is_none_or(|scope| !side.varies(facts, scope));
                a != b
                    && first.len() == second.len()
                    && pairs().any(|pair| match pair {
                        (Some(a), Some(b)) => holds(a) && holds(b) && a.is_apart_from(b),
                        _ => false,
                    })
            })
        })
    }

    // ---- Loops. ----

    /// What loops write, inner loops first.
    fn add_loops(&mut self, facts: &Facts) {
        let leaked = self.leaked_roots(facts);
        let mut writers: HashMap<ValueId, Vec<OperandId>> = HashMap::new();
        for (operand, used) in facts.operands().iter_enumerated().filter(|(_, used)| used.writes) {
            writers.entry(self.places[used.value].root).or_default().push(operand);
        }
        let mut arguments: HashMap<OperandId, Vec<ValueId>> = HashMap::new();
        for (value, info) in facts.values().iter_enumerated() {
            if matches!(info.def, ValueDef::Argument(_)) {
                for &operand in facts.flows(value) {
                    arguments.entry(operand).or_default().push(value);
                }
            }
        }
        for &op in facts.order.iter().rev().filter(|op| !facts.regions_of(**op).is_empty()) {
            for &operand in facts.operands_of(op).iter().filter(|id| facts.operands()[**id].writes) {
                let entered = arguments.get(&operand).map_or(&[][..], |all| all);
                let Some(parts) = self.written(facts, operand, entered, &leaked, &writers) else { continue };
                self.loops.insert(operand, parts);
            }
        }
    }

    /// Roots that something else may be, so that what is written to them is not known.
    fn leaked_roots(&self, facts: &Facts) -> IndexVec<ValueId, bool> {
        let mut leaked = IndexVec::filled(false, facts.values().len());
        let root = |operand: OperandId| self.places[facts.operands()[operand].value].root;
        for (value, info) in facts.values().iter_enumerated() {
            if self.places[value].root == value {
                for source in facts.sources(value) {
                    leaked[root(source.operand)] = true;
                }
            }
            let ValueDef::Argument(block) = info.def else { continue };
            let owner = facts.regions()[facts.blocks()[block].region].op;
            for &operand in facts.flows(value) {
                let used = facts.operands()[operand];
                let enters = Some(used.op) == owner && used.writes;
                leaked[root(operand)] |= !enters && root(operand) != value;
            }
        }
        for &(a, b) in facts.shared_values() {
            leaked[self.places[a].root] = true;
            leaked[self.places[b].root] = true;
        }
        leaked
    }

    /// The boxes in which an operation writes through an operand; `None`: all of it.
    fn written(
        &mut self,
        facts: &Facts,
        operand: OperandId,
        arguments: &[ValueId],
        leaked: &IndexVec<ValueId, bool>,
        writers: &HashMap<ValueId, Vec<OperandId>>,
    ) -> Option<Vec<u32>> {
        let used = facts.operands()[operand];
        let place = self.places[used.value].clone();
        let mut parts = Vec::new();
        for &argument in arguments {
            let returns =
                |from: &OperandId| *from == operand || self.is_all_of(facts.operands()[*from].value, argument);
            if leaked[argument] || !facts.flows(argument).iter().all(returns) {
                return None;
            }
            let region = facts.defining_region(argument);
            for &writer in writers.get(&argument).into_iter().flatten() {
                let written: Vec<u32> = match (self.loops.get(&writer), self.insertions.get(&writer)) {
                    (Some(parts), _) => parts.clone(),
                    (None, Some(part)) => vec![(*part)?],
                    (None, None) => vec![self.places[facts.operands()[writer].value].within?],
                };
                for part in written {
                    parts.push(self.moved(facts, part, &place, region)?);
                }
            }
        }
        (!parts.is_empty() && parts.len() <= MOST_PARTS).then_some(parts)
    }

    /// A box of a region's argument as a box of what enters it, for all iterations of the region.
    fn moved(&mut self, facts: &Facts, part: u32, into: &Place, region: RegionId) -> Option<u32> {
        let mut levels: Vec<u32> = self.levels(part).collect();
        levels.reverse();
        let mut within = into.within;
        for level in levels {
            let fixed = |side: &Option<Side>| side.clone().filter(|side| !side.varies(facts, region));
            let sides: Vec<Option<Side>> = self.boxes[level as usize].sides.iter().map(fixed).collect();
            within = self.part(&Place { within, ..into.clone() }, &sides).within;
        }
        within
    }
}

/// The dimensions of a value, for a slice with this number of dimensions.
fn axes_for(frame: &Frame, count: usize) -> Option<Vec<Axis>> {
    let whole =
        |dimension| Axis { dimension, offset: Affine::constant(0), stride: Affine::constant(1), is_unit: false };
    match frame {
        Frame::Whole => Some((0..count).map(whole).collect()),
        Frame::Lost => None,
        Frame::Axes(axes) if axes.len() == count => Some(axes.to_vec()),
        Frame::Axes(axes) => {
            // Only if it is clear which dimensions the type leaves out.
            let kept: Vec<Axis> = axes.iter().filter(|axis| !axis.is_unit).cloned().collect();
            (kept.len() == count).then_some(kept)
        }
    }
}

/// The sides of a slice.
fn sides(slice: &Slice) -> Vec<Option<Side>> {
    let numbers = slice.offsets.iter().zip(&slice.sizes).zip(&slice.strides);
    let side = |((offset, size), stride): ((&Affine, &Affine), &Affine)| Side {
        offset: offset.clone(),
        size: size.clone(),
        stride: stride.clone(),
    };
    numbers.map(|numbers| Some(side(numbers))).collect()
}

impl Axis {
    /// The side in the root of a side in the value.
    fn compose(&self, side: &Side) -> Option<Side> {
        Some(Side {
            offset: self.offset.plus(&self.stride.times(&side.offset)?)?,
            size: side.size.clone(),
            stride: self.stride.times(&side.stride)?,
        })
    }
}

impl Side {
    /// Whether a number has a symbol that iterations of the region may give different values.
    fn varies(&self, facts: &Facts, region: RegionId) -> bool {
        let symbols = [&self.offset, &self.size, &self.stride].into_iter().flat_map(|number| &number.terms);
        symbols.into_iter().any(|(symbol, _)| facts.symbol_scope(*symbol).is_none_or(|s| is_within(facts, s, region)))
    }

    fn is_apart_from(&self, other: &Self) -> bool {
        self.ends_before(other) || other.ends_before(self) || self.interleaves(other)
    }

    /// Whether the last element lies before the first one of the other, or there is none.
    fn ends_before(&self, other: &Self) -> bool {
        if self.size == Affine::constant(0) {
            return true;
        }
        let Some(stride) = self.stride.as_constant().filter(|stride| *stride > 0) else { return false };
        // The first position that is not taken: offset + (size - 1) * stride + 1.
        let end = || {
            let last = self.size.plus(&Affine::constant(-1))?.times(&Affine::constant(stride))?;
            self.offset.plus(&last)?.plus(&Affine::constant(1))
        };
        let distance = end().and_then(|end| other.offset.plus(&end.times(&Affine::constant(-1))?));
        distance.and_then(|distance| distance.as_constant()).is_some_and(|distance| distance >= 0)
    }

    /// Whether the strides never meet: `x[0::2]` and `x[1::2]`.
    fn interleaves(&self, other: &Self) -> bool {
        // One element has any stride.
        let stride = |side: &Self| if side.size == Affine::constant(1) { Some(0) } else { side.stride.as_constant() };
        let strides = stride(self).zip(stride(other));
        let distance = other.offset.plus(&match self.offset.times(&Affine::constant(-1)) {
            Some(negated) => negated,
            None => return false,
        });
        let Some(((a, b), distance)) = strides.zip(distance.and_then(|d| d.as_constant())) else { return false };
        let step = divisor(a.unsigned_abs(), b.unsigned_abs());
        !distance.unsigned_abs().is_multiple_of(step)
    }
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
