//! Emits loops, subscripts and vector accesses.

use super::instructions::Forms;
use super::nest::{Access, Loop, Operand, Panel};
use super::segments::{Bound, Segment};
use monopour_ir::ops;
use monopour_ir::typed::arith::{CmpFPredicate, CmpIPredicate};
use monopour_ir::{
    Attr, Block, Builder, Context, DYNAMIC, InsertionPoint, LinearForm, Location, Op, OpSpec, Region, Rewriter, Type,
    Value,
};
use monopour_program::CpuTarget;

/// Bytes of a line of the caches.
pub(super) const CACHE_LINE_BYTES: i64 = 64;

/// Least bytes of a vector that is stored past the caches.
const LEAST_PAST_BYTES: i64 = 16;

/// LLVM's name of the fence behind them.
const FENCE: &str = "llvm.x86.sse.sfence";

/// MLIR's hints for the caches that a line is fetched to.
const FIRST: &str = "3 : i32";
const SECOND: &str = "2 : i32";

/// Bytes of the shortest elements of a streamed matrix that the prefetcher alone keeps up with.
pub(super) const WIDE_ELEMENT_BYTES: i64 = 4;

/// Bytes of an operand's element.
pub(super) fn element_bytes(operand: &Operand) -> i64 {
    operand.element().element_size_bytes().map_or(8, |bytes| bytes as i64)
}

/// Elements of an operand in a line of the caches; at least 1.
fn line_elements(operand: &Operand) -> i64 {
    (CACHE_LINE_BYTES / element_bytes(operand).max(1)).max(1)
}

/// Lanes of a value: 1 for a scalar.
pub(super) type Width = i64;

/// A loop's position: a value plus a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Position<'c> {
    /// `None` for 0.
    pub(super) base: Option<Value<'c>>,
    /// The constant.
    pub(super) offset: i64,
}

impl Position<'_> {
    /// A constant.
    pub(super) fn at(offset: i64) -> Self {
        Self { base: None, offset }
    }

    /// `self + n`.
    pub(super) fn plus(self, n: i64) -> Self {
        Self { offset: self.offset + n, ..self }
    }
}

/// Emits an iteration: takes its position and iter_args, returns the next iter_args.
pub(super) type Iteration<'c, 'a> = &'a mut dyn FnMut(&mut Emit<'c>, Position<'c>, &[Value<'c>]) -> Vec<Value<'c>>;

/// Creates ops one after the other.
pub(super) struct Emit<'c> {
    pub(super) b: Builder<'c>,
    pub(super) loc: Location<'c>,
    pub(super) cx: Context<'c>,
    /// Forms of ops that the target has.
    pub(super) forms: Forms,
    /// Whether vectors of whole lines are stored past the caches ([`super::past_caches`]).
    pub(super) passes_caches: bool,
    is_x86: bool,
}

impl<'c> Emit<'c> {
    /// Creates ops for `cpu` before `op`.
    pub(super) fn before(op: Op<'c>, cpu: &CpuTarget) -> Self {
        let forms = Forms::of(cpu);
        let (b, loc, cx) = (Builder::before(op), op.location(), op.context());
        Self { b, loc, cx, forms, passes_caches: false, is_x86: cpu.arch == "x86_64" }
    }

    /// Creates an op.
    pub(super) fn create(&mut self, spec: OpSpec<'c, '_>) -> Op<'c> {
        self.b.create(spec).expect("invariant: an op of matching types builds")
    }

    /// A copy of an op.
    pub(super) fn copy(&mut self, op: Op<'c>) {
        let copy = Rewriter::new(self.cx).clone_op(op, |value| value);
        self.b.insert(copy);
    }

    /// The same op without regions, with other operands and result types.
    pub(super) fn recreate(&mut self, op: Op<'c>, operands: &[Value<'c>], types: &[Type<'c>]) -> Op<'c> {
        self.create(OpSpec::new(op.name(), self.loc).operands(operands).results(types).attrs(&op.attrs()))
    }

    /// The op `name` with one result.
    pub(super) fn op(&mut self, name: &str, operands: &[Value<'c>], ty: Type<'c>) -> Value<'c> {
        self.create(OpSpec::new(name, self.loc).operands(operands).results(&[ty])).result(0)
    }

    /// The op `name` of an index and a constant.
    pub(super) fn op_with(&mut self, name: &str, value: Value<'c>, constant: i64) -> Value<'c> {
        let constant = self.index(constant);
        self.op(name, &[value, constant], value.ty())
    }

    /// An index.
    pub(super) fn index(&mut self, value: i64) -> Value<'c> {
        self.b.const_index(value, self.loc)
    }

    /// The index of a position.
    pub(super) fn position(&mut self, at: Position<'c>) -> Value<'c> {
        match (at.base, at.offset) {
            (None, offset) => self.index(offset),
            (Some(base), 0) => base,
            (Some(base), offset) => {
                let offset = self.index(offset);
                self.op(ops::arith::ADDI, &[base, offset], Type::index(self.cx))
            }
        }
    }

    fn bound(&mut self, bound: Bound<'c>) -> Value<'c> {
        match bound {
            Bound::Static(v) => self.index(v),
            Bound::Dynamic(v) => v,
        }
    }

    /// The value of a subscript.
    fn subscript(&mut self, subscript: &LinearForm, at: &[Position<'c>]) -> Value<'c> {
        let index = Type::index(self.cx);
        let mut constant = subscript.constant;
        let mut sum: Option<Value> = None;
        for (factor, position) in subscript.factors.iter().zip(at) {
            constant += factor * position.offset;
            let (Some(base), true) = (position.base, *factor != 0) else { continue };
            let term = if *factor == 1 {
                base
            } else {
                let factor = self.index(*factor);
                self.op(ops::arith::MULI, &[base, factor], index)
            };
            sum = Some(sum.map_or(term, |s| self.op(ops::arith::ADDI, &[s, term], index)));
        }
        self.position(Position { base: sum, offset: constant })
    }

    /// The subscripts of an operand's element.
    fn subscripts(&mut self, operand: &Operand<'c>, at: &[Position<'c>]) -> Vec<Value<'c>> {
        let mut at = at.to_vec();
        if let Some(Panel::Vector(dim)) = operand.panel {
            // The first lane within the panel.
            at[dim] = at[at.len() - 1];
        }
        operand.subscripts.iter().map(|s| self.subscript(s, &at)).collect()
    }

    /// The element, or the `width` elements along `dim`, at a position.
    pub(super) fn load(&mut self, operand: &Operand<'c>, at: &[Position<'c>], dim: usize, width: Width) -> Value<'c> {
        if !operand.is_memory() {
            return operand.value;
        }
        let element = operand.element();
        let lanes = if operand.access(dim) == Access::Invariant { 1 } else { width };
        if let Access::Interleaved(stride) = operand.access(dim)
            && lanes >= stride
        {
            return self.load_interleaved(operand, at, (lanes, stride));
        }
        if lanes > 1 && !matches!(operand.access(dim), Access::Contiguous) {
            let parts: Vec<Value> = (0..lanes)
                .map(|lane| {
                    let mut here = at.to_vec();
                    here[dim] = here[dim].plus(lane);
                    self.load(operand, &here, dim, 1)
                })
                .collect();
            return self.op(ops::vector::FROM_ELEMENTS, &parts, Type::vector(&[lanes], element));
        }
        let mut operands = vec![operand.value];
        operands.extend(self.subscripts(operand, at));
        if lanes > 1 {
            self.op(ops::vector::LOAD, &operands, Type::vector(&[lanes], element))
        } else {
            self.op(ops::memref::LOAD, &operands, element)
        }
    }

    /// As [`Self::load`], where only the first `used` lanes of a register lie in memory, at least half: two vectors of half the
    /// lanes that overlap. The other lanes are copies.
    pub(super) fn load_short(
        &mut self,
        operand: &Operand<'c>,
        at: &[Position<'c>],
        dim: usize,
        (width, used): (Width, Width),
    ) -> Value<'c> {
        if used == width || !operand.uses(dim) || operand.panel == Some(Panel::Line) {
            return self.load(operand, at, dim, width);
        }
        let (half, high) = (width / 2, upper_half(at, dim, (width, used)));
        let parts = [at, &high].map(|at| self.load(operand, at, dim, half));
        let lane = |lane: i64| if lane < half { lane } else { half + (lane - (used - half)).min(half - 1) };
        self.shuffle(parts[0], parts[1], &(0..width).map(lane).collect::<Vec<_>>())
    }

    /// Every `stride`-th of the elements from the position on: `stride` vectors, the last of which ends with the last lane's.
    fn load_interleaved(
        &mut self,
        operand: &Operand<'c>,
        at: &[Position<'c>],
        (lanes, stride): (Width, i64),
    ) -> Value<'c> {
        let ty = Type::vector(&[lanes], operand.element());
        let mut operands = vec![operand.value];
        operands.extend(self.subscripts(operand, at));
        let first = self.op(ops::vector::LOAD, &operands, ty);
        let base = operands.pop();
        (1..stride).fold(first, |picked, part| {
            let start = if part == stride - 1 { part * (lanes - 1) } else { part * lanes };
            let place = self.position(Position { base, offset: start });
            let loaded = self.op(ops::vector::LOAD, &[&operands[..], &[place]].concat(), ty);
            // Lanes that neither vector has are picked later.
            let lane = |lane: i64| match lane * stride - start {
                within if (0..lanes).contains(&within) => lanes + within,
                _ if part == 1 => (lane * stride).min(lanes - 1),
                _ => lane,
            };
            self.shuffle(picked, loaded, &(0..lanes).map(lane).collect::<Vec<_>>())
        })
    }

    /// Fetches the cache lines of a vector to the second-level cache, of an operand that is read later.
    pub(super) fn prefetch(&mut self, operand: &Operand<'c>, at: &[Position<'c>], dim: usize, width: Width) {
        self.fetch(operand, at, (dim, width), SECOND);
    }

    /// The same, to the first-level cache: what is read soon.
    pub(super) fn prefetch_soon(&mut self, operand: &Operand<'c>, at: &[Position<'c>], dim: usize, width: Width) {
        self.fetch(operand, at, (dim, width), FIRST);
    }

    /// Fetches the cache line of an element to the second-level cache; it may lie behind the operand's end.
    pub(super) fn prefetch_line(&mut self, operand: &Operand<'c>, at: &[Position<'c>]) {
        self.fetch_line(operand, at, SECOND);
    }

    fn fetch(&mut self, operand: &Operand<'c>, at: &[Position<'c>], (dim, width): (usize, Width), hint: &str) {
        for lane in (0..width).step_by(line_elements(operand) as usize) {
            let mut at = at.to_vec();
            at[dim] = at[dim].plus(lane);
            self.fetch_line(operand, &at, hint);
        }
    }

    fn fetch_line(&mut self, operand: &Operand<'c>, at: &[Position<'c>], hint: &str) {
        let mut operands = vec![operand.value];
        operands.extend(self.subscripts(operand, at));
        let flag = |set: bool| Attr::bool(self.cx, set);
        let spec = OpSpec::new(ops::memref::PREFETCH, self.loc).operands(&operands);
        let hint = Attr::parse(self.cx, hint).expect("invariant: a number");
        self.create(spec.attr("isWrite", flag(false)).attr("localityHint", hint).attr("isDataCache", flag(true)));
    }

    /// A comparison of floats, lane by lane.
    pub(super) fn compare(&mut self, predicate: CmpFPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let bit = Type::integer(self.cx, 1);
        let ty = a.ty().as_vector().map_or(bit, |v| Type::vector(&v.shape, bit));
        let spec = OpSpec::new(ops::arith::CMPF, self.loc).operands(&[a, b]).results(&[ty]);
        self.create(spec.attr("predicate", predicate.to_attr(self.cx))).result(0)
    }

    /// `count` elements that lie side by side, from a position on.
    pub(super) fn load_line(&mut self, operand: &Operand<'c>, at: &[Position<'c>], count: i64) -> Value<'c> {
        let mut operands = vec![operand.value];
        operands.extend(self.subscripts(operand, at));
        self.op(ops::vector::LOAD, &operands, Type::vector(&[count], operand.element()))
    }

    /// The address of an element of an operand whose strides are known.
    pub(super) fn address(&mut self, operand: &Operand<'c>, at: &[Position<'c>]) -> Value<'c> {
        let subscripts = self.subscripts(operand, at);
        self.address_of(operand.value, &subscripts)
    }

    /// The address of an element of a memref whose strides are known.
    pub(super) fn address_of(&mut self, memref: Value<'c>, subscripts: &[Value<'c>]) -> Value<'c> {
        let address = self.address_as_index(memref, subscripts);
        let address = self.op(ops::arith::INDEX_CAST, &[address], Type::integer(self.cx, 64));
        let pointer = Type::parse(self.cx, "!llvm.ptr").expect("invariant: a type of the llvm dialect");
        self.op(ops::llvm::INTTOPTR, &[address], pointer)
    }

    /// Whether an element of an operand whose strides are known is the first of a line of the caches.
    pub(super) fn begins_a_line(&mut self, operand: &Operand<'c>, at: &[Position<'c>]) -> Value<'c> {
        let subscripts = self.subscripts(operand, at);
        let address = self.address_as_index(operand.value, &subscripts);
        let (line, zero) = (self.index(CACHE_LINE_BYTES), self.index(0));
        let within = self.op(ops::arith::REMUI, &[address, line], Type::index(self.cx));
        self.compare_indices(CmpIPredicate::Eq, within, zero)
    }

    fn address_as_index(&mut self, memref: Value<'c>, subscripts: &[Value<'c>]) -> Value<'c> {
        let ty = memref.ty().as_memref().expect("invariant: strides are known");
        let index = Type::index(self.cx);
        let offset = if ty.offset == DYNAMIC {
            let base = Type::memref(&[], ty.element, ty.memory_space);
            let types: Vec<Type> = std::iter::once(base).chain(vec![index; 1 + 2 * ty.shape.len()]).collect();
            let spec = OpSpec::new(ops::memref::EXTRACT_STRIDED_METADATA, self.loc).operands(&[memref]);
            self.create(spec.results(&types)).result(1)
        } else {
            self.index(ty.offset)
        };
        let element = subscripts.iter().zip(&ty.strides).fold(offset, |sum, (subscript, stride)| {
            let stride = self.index(*stride);
            let term = self.op(ops::arith::MULI, &[*subscript, stride], index);
            self.op(ops::arith::ADDI, &[sum, term], index)
        });
        let size = self.index(ty.element.element_size_bytes().map_or(8, |bytes| bytes as i64));
        let bytes = self.op(ops::arith::MULI, &[element, size], index);
        let base = self.op(ops::memref::EXTRACT_ALIGNED_POINTER_AS_INDEX, &[memref], index);
        self.op(ops::arith::ADDI, &[base, bytes], index)
    }

    /// A call of an intrinsic of LLVM's.
    pub(super) fn intrinsic(&mut self, name: &str, operands: &[Value<'c>], ty: Type<'c>) -> Value<'c> {
        self.call_intrinsic(name, operands, &[ty]).result(0)
    }

    /// As [`Self::intrinsic`], with any number of results.
    pub(super) fn call_intrinsic(&mut self, name: &str, operands: &[Value<'c>], types: &[Type<'c>]) -> Op<'c> {
        let spec = OpSpec::new(ops::llvm::CALL_INTRINSIC, self.loc).operand_segments(&[operands, &[]]).results(types);
        let spec = spec.attr("intrin", Attr::string(self.cx, name));
        self.create(spec.attr("op_bundle_sizes", Attr::dense_i32(self.cx, &[])))
    }

    /// The lanes of two values in turn.
    pub(super) fn interleave(&mut self, [a, b]: [Value<'c>; 2]) -> Value<'c> {
        let Some(ty) = a.ty().as_vector() else {
            return self.op(ops::vector::FROM_ELEMENTS, &[a, b], Type::vector(&[2], a.ty()));
        };
        let lanes = ty.shape[0];
        self.shuffle(a, b, &(0..lanes).flat_map(|lane| [lane, lanes + lane]).collect::<Vec<_>>())
    }

    /// Writes a scalar or a vector along the last dimension.
    pub(super) fn store(&mut self, value: Value<'c>, operand: &Operand<'c>, at: &[Position<'c>]) {
        let name = if value.ty().is_vector() { ops::vector::STORE } else { ops::memref::STORE };
        let lanes = value.ty().as_vector().map_or(1, |v| v.shape[0]);
        let bytes = lanes * element_bytes(operand);
        if self.passes_caches && bytes >= LEAST_PAST_BYTES {
            return self.store_past_caches(value, operand, at, bytes.min(CACHE_LINE_BYTES));
        }
        let mut operands = vec![value, operand.value];
        operands.extend(self.subscripts(operand, at));
        self.create(OpSpec::new(name, self.loc).operands(&operands));
    }

    /// As [`Self::store`], by LLVM's op: passes of upstream's that fold views drop the hint of others.
    fn store_past_caches(&mut self, value: Value<'c>, operand: &Operand<'c>, at: &[Position<'c>], alignment: i64) {
        let address = self.address(operand, at);
        let spec = OpSpec::new(ops::llvm::STORE, self.loc).operands(&[value, address]);
        self.create(spec.attr("nontemporal", Attr::unit(self.cx)).attr("alignment", Attr::i64(self.cx, alignment)));
    }

    /// Orders stores past the caches before whatever comes after a kernel's body.
    pub(super) fn order_stores(&mut self, kernel: Block<'c>) {
        // Elsewhere they are as weakly ordered as all others, and whoever hands the result on orders those.
        let [.., before, end] = kernel.ops()[..] else { return };
        let is_fence = before.attr("intrin").is_some_and(|name| name.as_string() == Some(FENCE));
        if !self.is_x86 || is_fence {
            return;
        }
        let here = self.b.point();
        self.b.set_point(InsertionPoint::Before(end));
        self.call_intrinsic(FENCE, &[], &[]);
        self.b.set_point(here);
    }

    /// Stores into a panel, at a position within it.
    pub(super) fn store_panel(&mut self, value: Value<'c>, panel: &Operand<'c>, at: &[Position<'c>]) {
        self.store(value, &Operand { panel: None, ..panel.clone() }, at);
    }

    /// A position plus another.
    pub(super) fn sum(&mut self, a: Position<'c>, b: Position<'c>) -> Position<'c> {
        let base = match (a.base, b.base) {
            (Some(x), Some(y)) => Some(self.op(ops::arith::ADDI, &[x, y], Type::index(self.cx))),
            (x, y) => x.or(y),
        };
        Position { base, offset: a.offset + b.offset }
    }

    /// A position times a constant.
    pub(super) fn times(&mut self, a: Position<'c>, factor: i64) -> Position<'c> {
        let base = a.base.map(|base| {
            let factor = self.index(factor);
            self.op(ops::arith::MULI, &[base, factor], base.ty())
        });
        Position { base, offset: a.offset * factor }
    }

    /// A position divided by a constant, rounded down.
    pub(super) fn divided(&mut self, a: Position<'c>, by: i64) -> Position<'c> {
        if by == 1 {
            return a;
        }
        let (value, by) = (self.position(a), self.index(by));
        Position { base: Some(self.op(ops::arith::DIVUI, &[value, by], value.ty())), offset: 0 }
    }

    /// Picks lanes of the concatenation of `a` and `b`.
    pub(super) fn shuffle(&mut self, a: Value<'c>, b: Value<'c>, mask: &[i64]) -> Value<'c> {
        let ty = Type::vector(&[mask.len() as i64], a.ty().element());
        let spec = OpSpec::new(ops::vector::SHUFFLE, self.loc).operands(&[a, b]).results(&[ty]);
        self.create(spec.attr("mask", Attr::dense_i64(self.cx, mask))).result(0)
    }

    /// A value broadcast to `width` lanes.
    pub(super) fn splat(&mut self, value: Value<'c>, width: Width) -> Value<'c> {
        if width == 1 || value.ty().is_vector() {
            return value;
        }
        self.op(ops::vector::BROADCAST, &[value], Type::vector(&[width], value.ty()))
    }

    /// A constant broadcast to `width` lanes.
    pub(super) fn constant(&mut self, value: Attr<'c>, ty: Type<'c>, width: Width) -> Value<'c> {
        let scalar = self.b.constant(value, ty, self.loc);
        self.splat(scalar, width)
    }

    /// Lanes `from .. from + count` of a vector; a scalar for one.
    pub(super) fn lanes(&mut self, vector: Value<'c>, from: i64, count: i64) -> Value<'c> {
        let element = vector.ty().element();
        let ints = |v: i64| Attr::array(self.cx, &[Attr::i64(self.cx, v)]);
        let spec = if count == 1 {
            let position = Attr::dense_i64(self.cx, &[from]);
            OpSpec::new(ops::vector::EXTRACT, self.loc).results(&[element]).attr("static_position", position)
        } else {
            OpSpec::new(ops::vector::EXTRACT_STRIDED_SLICE, self.loc)
                .results(&[Type::vector(&[count], element)])
                .attr("offsets", ints(from))
                .attr("sizes", ints(count))
                .attr("strides", ints(1))
        };
        self.create(spec.operands(&[vector])).result(0)
    }

    /// `scf.for` over a segment with iter_args `inits`; the body returns the next ones. A segment of one iteration needs no
    /// loop.
    pub(super) fn for_each(
        &mut self,
        segment: Segment<'c>,
        inits: &[Value<'c>],
        body: Iteration<'c, '_>,
    ) -> Vec<Value<'c>> {
        if let (Bound::Static(from), Bound::Static(to)) = (segment.from, segment.to) {
            if to <= from {
                return inits.to_vec();
            }
            if to <= from + segment.step {
                return body(self, Position::at(from), inits);
            }
        }
        let (from, to, step) = (self.bound(segment.from), self.bound(segment.to), self.index(segment.step));
        let mut args = vec![(Type::index(self.cx), self.loc)];
        args.extend(inits.iter().map(|v| (v.ty(), self.loc)));
        let block = Block::new(&args);
        let outside = self.b.point();
        self.b.set_point(InsertionPoint::End(block));
        let at = Position { base: Some(block.arg(0)), offset: 0 };
        let next = body(self, at, &block.args()[1..]);
        self.create(OpSpec::new(ops::scf::YIELD, self.loc).operands(&next));
        self.b.set_point(outside);
        let region = Region::new();
        region.append(block);
        let types: Vec<Type> = inits.iter().map(|v| v.ty()).collect();
        let spec = OpSpec::new(ops::scf::FOR, self.loc).operands(&[from, to, step]).operands(inits);
        self.create(spec.results(&types).region(region)).results()
    }

    /// The number of a loop's iterations.
    pub(super) fn iterations(&mut self, l: &Loop<'c>) -> Value<'c> {
        let extent = self.extent(l);
        self.bound(extent)
    }

    /// Whether a loop has at most `most` iterations.
    pub(super) fn is_at_most(&mut self, l: &Loop<'c>, most: i64) -> Value<'c> {
        let (extent, most) = (self.iterations(l), self.index(most));
        self.compare_indices(CmpIPredicate::Ule, extent, most)
    }

    pub(super) fn compare_indices(&mut self, predicate: CmpIPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let spec = OpSpec::new(ops::arith::CMPI, self.loc).operands(&[a, b]).results(&[Type::integer(self.cx, 1)]);
        self.create(spec.attr("predicate", predicate.to_attr(self.cx))).result(0)
    }

    /// `scf.if` without results.
    pub(super) fn either(
        &mut self,
        condition: Value<'c>,
        then: &mut dyn FnMut(&mut Self),
        otherwise: &mut dyn FnMut(&mut Self),
    ) {
        let nothing = |e: &mut Self, body: &mut dyn FnMut(&mut Self)| {
            body(e);
            None
        };
        self.branch(condition, &[], &mut |e| nothing(e, then), &mut |e| nothing(e, otherwise));
    }

    /// `scf.if` with at most one result, of this type.
    pub(super) fn branch(
        &mut self,
        condition: Value<'c>,
        ty: &[Type<'c>],
        then: &mut dyn FnMut(&mut Self) -> Option<Value<'c>>,
        otherwise: &mut dyn FnMut(&mut Self) -> Option<Value<'c>>,
    ) -> Op<'c> {
        let outside = self.b.point();
        let mut region = |body: &mut dyn FnMut(&mut Self) -> Option<Value<'c>>| {
            let block = Block::new(&[]);
            self.b.set_point(InsertionPoint::End(block));
            let value = body(self);
            self.create(OpSpec::new(ops::scf::YIELD, self.loc).operands(value.as_slice()));
            let region = Region::new();
            region.append(block);
            region
        };
        let (then, otherwise) = (region(then), region(otherwise));
        self.b.set_point(outside);
        let spec = OpSpec::new(ops::scf::IF, self.loc).operands(&[condition]).results(ty);
        self.create(spec.region(then).region(otherwise))
    }

    /// The whole loop, one iteration at a time.
    pub(super) fn whole(&mut self, l: &Loop<'c>) -> Segment<'c> {
        let to = self.extent(l);
        Segment { from: Bound::Static(0), to, step: 1 }
    }

    fn extent(&mut self, l: &Loop<'c>) -> Bound<'c> {
        match l.extent {
            Some(extent) => Bound::Static(extent),
            None => {
                let dim = self.index(l.witness.1 as i64);
                Bound::Dynamic(self.op(ops::memref::DIM, &[l.witness.0, dim], Type::index(self.cx)))
            }
        }
    }
}

/// The place of the upper half of a register's lanes, of which `used` lie in memory.
pub(super) fn upper_half<'c>(at: &[Position<'c>], dim: usize, (width, used): (Width, Width)) -> Vec<Position<'c>> {
    let mut at = at.to_vec();
    at[dim] = at[dim].plus(used - width / 2);
    at
}
