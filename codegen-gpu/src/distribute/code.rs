//! Builder of per-invocation code: index arithmetic with folding, loops, loads and stores.

use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::typed::gpu::{AddressSpace, Dimension};
use monopour_ir::typed::memref;
use monopour_ir::{
    Attr, Block, Context, Diagnostics, InsertionPoint, Location, Op, OpSpec, Region, Rewriter, Type, Value,
};

/// Facts that follow from an index value's definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    /// The value is a multiple of this; 0 for the constant 0.
    pub(super) divisor: i64,
    /// The value is at most this.
    pub(super) bound: Option<i64>,
}

/// A builder at an insertion point of a kernel.
pub(super) struct Code<'c, 'r> {
    pub(super) rw: &'r mut Rewriter<'c>,
    pub(super) loc: Location<'c>,
    pub(super) cx: Context<'c>,
    pub(super) index: Type<'c>,
    point: InsertionPoint<'c>,
}

impl<'c, 'r> Code<'c, 'r> {
    pub(super) fn before(rw: &'r mut Rewriter<'c>, op: Op<'c>) -> Self {
        let cx = op.context();
        let mut code = Self { rw, loc: op.location(), cx, index: Type::index(cx), point: InsertionPoint::Before(op) };
        code.at(InsertionPoint::Before(op));
        code
    }
    pub(super) fn at(&mut self, point: InsertionPoint<'c>) {
        self.point = point;
        self.rw.set_point(point);
    }
    /// The insertion point.
    pub(super) fn point(&self) -> InsertionPoint<'c> {
        self.point
    }
    /// The block at whose end ops are inserted, in the body of a loop or condition under construction.
    pub(super) fn block(&self) -> Option<Block<'c>> {
        match self.point {
            InsertionPoint::End(block) | InsertionPoint::Start(block) => Some(block),
            InsertionPoint::Before(op) | InsertionPoint::After(op) => op.block(),
        }
    }
    pub(super) fn create(&mut self, spec: OpSpec<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        self.rw.create(spec)
    }
    /// An op with one result of a known type, which cannot fail to build.
    pub(super) fn op1(&mut self, name: &str, operands: &[Value<'c>], ty: Type<'c>) -> Value<'c> {
        let spec = OpSpec::new(name, self.loc).operands(operands).results(&[ty]);
        self.rw.create(spec).expect("invariant: operands and result type fit the op").result(0)
    }

    // Index arithmetic.

    pub(super) fn c(&mut self, value: i64) -> Value<'c> {
        self.rw.const_index(value, self.loc)
    }
    pub(super) fn add(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        match (a.constant_int(), b.constant_int()) {
            (Some(x), Some(y)) => self.c(x + y),
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ => self.op1(ops::arith::ADDI, &[a, b], self.index),
        }
    }
    pub(super) fn mul(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        match (a.constant_int(), b.constant_int()) {
            (Some(x), Some(y)) => self.c(x * y),
            (Some(0), _) | (_, Some(1)) => a,
            (_, Some(0)) | (Some(1), _) => b,
            _ => self.op1(ops::arith::MULI, &[a, b], self.index),
        }
    }
    pub(super) fn add_const(&mut self, a: Value<'c>, b: i64) -> Value<'c> {
        if b == 0 {
            return a;
        }
        let b = self.c(b);
        self.add(a, b)
    }
    pub(super) fn mul_const(&mut self, a: Value<'c>, b: i64) -> Value<'c> {
        if b == 1 {
            return a;
        }
        let b = self.c(b);
        self.mul(a, b)
    }
    pub(super) fn min(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        match (a.constant_int(), b.constant_int()) {
            (Some(x), Some(y)) => self.c(x.min(y)),
            _ if a == b => a,
            _ => self.op1(ops::arith::MINSI, &[a, b], self.index),
        }
    }
    pub(super) fn max(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        match (a.constant_int(), b.constant_int()) {
            (Some(x), Some(y)) => self.c(x.max(y)),
            _ => self.op1(ops::arith::MAXSI, &[a, b], self.index),
        }
    }
    /// Quotient of values that are not negative.
    pub(super) fn div(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        match (a.constant_int(), b.constant_int()) {
            (Some(x), Some(y)) if y > 0 => self.c(x / y),
            (_, Some(1)) => a,
            _ => self.op1(ops::arith::DIVUI, &[a, b], self.index),
        }
    }
    /// Remainder of values that are not negative.
    pub(super) fn rem(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        match (a.constant_int(), b.constant_int()) {
            (Some(x), Some(y)) if y > 0 => self.c(x % y),
            (_, Some(1)) => self.c(0),
            _ => self.op1(ops::arith::REMUI, &[a, b], self.index),
        }
    }
    /// Quotient rounded up, of values that are not negative.
    pub(super) fn ceil_div_const(&mut self, a: Value<'c>, b: i64) -> Value<'c> {
        let sum = self.add_const(a, b - 1);
        let b = self.c(b);
        self.div(sum, b)
    }
    pub(super) fn less(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let predicate = CmpIPredicate::Slt.to_attr(self.cx);
        let spec = OpSpec::new(ops::arith::CMPI, self.loc)
            .operands(&[a, b])
            .results(&[Type::integer(self.cx, 1)])
            .attr("predicate", predicate);
        self.rw.create(spec).expect("invariant: operands are indices").result(0)
    }
    pub(super) fn both(&mut self, a: Option<Value<'c>>, b: Option<Value<'c>>) -> Option<Value<'c>> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.op1(ops::arith::ANDI, &[a, b], Type::integer(self.cx, 1))),
            (a, b) => a.or(b),
        }
    }

    // Ids.

    /// `gpu.block_id` or `gpu.thread_id` of dimension 0 (x), 1 or 2.
    pub(super) fn id(&mut self, name: &str, dimension: usize) -> Value<'c> {
        let attr = Dimension::ALL[dimension].to_attr(self.cx).expect("invariant: the gpu dialect is loaded");
        let spec = OpSpec::new(name, self.loc).results(&[self.index]).attr("dimension", attr);
        self.rw.create(spec).expect("invariant: an id has no operands").result(0)
    }
    /// Linear id of the invocation in its workgroup, x fastest.
    pub(super) fn linear_id(&mut self, size: [i64; 3]) -> Value<'c> {
        let mut linear = self.c(0);
        let mut stride = 1;
        for (dimension, extent) in size.into_iter().enumerate() {
            if extent > 1 {
                let id = self.id(ops::gpu::THREAD_ID, dimension);
                let scaled = self.mul_const(id, stride);
                linear = self.add(linear, scaled);
            }
            stride *= extent;
        }
        linear
    }

    // Control flow.

    /// `scf.for`; `body` gets the induction variable and the iter_args, and returns the next ones.
    pub(super) fn for_loop(
        &mut self,
        bounds: [Value<'c>; 3],
        inits: &[Value<'c>],
        body: impl FnOnce(&mut Self, Value<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>, Diagnostics>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let types: Vec<Type> = inits.iter().map(|v| v.ty()).collect();
        let args: Vec<_> = std::iter::once(self.index).chain(types.iter().copied()).map(|t| (t, self.loc)).collect();
        let block = Block::new(&args);
        let region = Region::new();
        region.append(block);
        let outer = self.point;
        self.at(InsertionPoint::End(block));
        let carried: Vec<Value> = block.args()[1..].to_vec();
        let next = body(self, block.arg(0), &carried);
        if let Ok(next) = &next {
            self.create(OpSpec::new(ops::scf::YIELD, self.loc).operands(next))?;
        }
        self.at(outer);
        next?;
        let spec =
            OpSpec::new(ops::scf::FOR, self.loc).operands(&bounds).operands(inits).results(&types).region(region);
        Ok(self.create(spec)?.results())
    }
    /// A loop over `0..count` that carries nothing; no loop for a count of 1.
    pub(super) fn repeat(
        &mut self,
        count: Value<'c>,
        body: impl FnOnce(&mut Self, Value<'c>) -> Result<(), Diagnostics>,
    ) -> Result<(), Diagnostics> {
        let (zero, one) = (self.c(0), self.c(1));
        if count.constant_int() == Some(1) {
            return body(self, zero);
        }
        self.for_loop([zero, count, one], &[], |code, i, _| body(code, i).map(|()| vec![]))?;
        Ok(())
    }
    /// `scf.if` without results; just the body without a condition.
    pub(super) fn guarded(
        &mut self,
        condition: Option<Value<'c>>,
        body: impl FnOnce(&mut Self) -> Result<(), Diagnostics>,
    ) -> Result<(), Diagnostics> {
        let Some(condition) = condition else { return body(self) };
        let block = Block::new(&[]);
        let region = Region::new();
        region.append(block);
        let outer = self.point;
        self.at(InsertionPoint::End(block));
        let result = body(self);
        self.create(OpSpec::new(ops::scf::YIELD, self.loc))?;
        self.at(outer);
        result?;
        self.create(OpSpec::new(ops::scf::IF, self.loc).operands(&[condition]).region(region).region(Region::new()))?;
        Ok(())
    }
    /// `scf.if` with results: what `then` yields where the condition holds, else `kept`.
    pub(super) fn choose(
        &mut self,
        condition: Value<'c>,
        kept: &[Value<'c>],
        then: impl FnOnce(&mut Self) -> Result<Vec<Value<'c>>, Diagnostics>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let types: Vec<Type> = kept.iter().map(|v| v.ty()).collect();
        let outer = self.point;
        let begin = |code: &mut Self| {
            let (region, block) = (Region::new(), Block::new(&[]));
            region.append(block);
            code.at(InsertionPoint::End(block));
            region
        };
        let first = begin(self);
        let changed = then(self);
        if let Ok(changed) = &changed {
            self.create(OpSpec::new(ops::scf::YIELD, self.loc).operands(changed))?;
        }
        let second = begin(self);
        self.create(OpSpec::new(ops::scf::YIELD, self.loc).operands(kept))?;
        self.at(outer);
        changed?;
        let spec =
            OpSpec::new(ops::scf::IF, self.loc).operands(&[condition]).results(&types).region(first).region(second);
        Ok(self.create(spec)?.results())
    }
    pub(super) fn barrier(&mut self) -> Result<(), Diagnostics> {
        self.create(OpSpec::new(ops::gpu::BARRIER, self.loc)).map(|_| ())
    }

    // Vectors and memory.

    pub(super) fn vector_type(&self, element: Type<'c>, lanes: u32) -> Type<'c> {
        if lanes == 1 { element } else { Type::vector(&[i64::from(lanes)], element) }
    }
    /// A value broadcast to `lanes` lanes; vectors stay as they are.
    pub(super) fn broadcast(&mut self, value: Value<'c>, lanes: u32) -> Value<'c> {
        if lanes == 1 || value.ty().is_vector() {
            return value;
        }
        let ty = self.vector_type(value.ty(), lanes);
        self.op1(ops::vector::BROADCAST, &[value], ty)
    }
    pub(super) fn extract(&mut self, vector: Value<'c>, lane: u32) -> Value<'c> {
        if !vector.ty().is_vector() {
            return vector;
        }
        let position = Attr::dense_i64(self.cx, &[i64::from(lane)]);
        let spec = OpSpec::new(ops::vector::EXTRACT, self.loc)
            .operands(&[vector])
            .results(&[vector.ty().element()])
            .attr("static_position", position);
        self.rw.create(spec).expect("invariant: the lane exists").result(0)
    }
    pub(super) fn vector_of(&mut self, elements: &[Value<'c>]) -> Value<'c> {
        if let &[only] = elements {
            return only;
        }
        let ty = self.vector_type(elements[0].ty(), elements.len() as u32);
        self.op1(ops::vector::FROM_ELEMENTS, elements, ty)
    }
    /// The value of lane `lane` (a constant) of the subgroup.
    pub(super) fn shuffle(&mut self, value: Value<'c>, lane: u32, subgroup_size: u32) -> Value<'c> {
        self.shuffle_mode("idx", value, lane, subgroup_size)
    }
    /// The value of lane `lane`, an index that all lanes agree on.
    pub(super) fn shuffle_from(&mut self, value: Value<'c>, lane: Value<'c>, subgroup_size: u32) -> Value<'c> {
        let i32_type = Type::integer(self.cx, 32);
        let lane = self.op1(ops::arith::INDEX_CAST, &[lane], i32_type);
        self.shuffle_at("idx", value, lane, subgroup_size)
    }
    /// The value of the lane whose number differs in the bits of `mask`.
    pub(super) fn shuffle_xor(&mut self, value: Value<'c>, mask: u32, subgroup_size: u32) -> Value<'c> {
        self.shuffle_mode("xor", value, mask, subgroup_size)
    }
    fn shuffle_mode(&mut self, mode: &str, value: Value<'c>, lane: u32, subgroup_size: u32) -> Value<'c> {
        let lane = self.number(lane);
        self.shuffle_at(mode, value, lane, subgroup_size)
    }
    /// A constant i32.
    fn number(&mut self, value: u32) -> Value<'c> {
        let ty = Type::integer(self.cx, 32);
        let value = Attr::int(ty, i64::from(value));
        let spec = OpSpec::new(ops::arith::CONSTANT, self.loc).results(&[ty]).attr("value", value);
        self.rw.create(spec).expect("invariant: a constant fits its type").result(0)
    }
    fn shuffle_at(&mut self, mode: &str, value: Value<'c>, lane: Value<'c>, subgroup_size: u32) -> Value<'c> {
        let operands = [value, lane, self.number(subgroup_size)];
        let mode = Attr::parse(self.cx, &format!("#gpu<shuffle_mode {mode}>"));
        let mode = mode.expect("invariant: the gpu dialect is loaded");
        let spec = OpSpec::new(ops::gpu::SHUFFLE, self.loc)
            .operands(&operands)
            .results(&[value.ty(), Type::integer(self.cx, 1)])
            .attr("mode", mode);
        self.rw.create(spec).expect("invariant: a shuffle takes a value, a lane and a width").result(0)
    }
    /// Zero.
    pub(super) fn zero(&mut self, ty: Type<'c>) -> Value<'c> {
        let value = if ty.is_float() { Attr::float(ty, 0.0) } else { Attr::int(ty, 0) };
        let spec = OpSpec::new(ops::arith::CONSTANT, self.loc).results(&[ty]).attr("value", value);
        self.rw.create(spec).expect("invariant: a constant fits its type").result(0)
    }
    /// Memory that the invocations of a workgroup share; diagnostics about it are at `loc`.
    pub(super) fn workgroup_buffer(
        &mut self,
        loc: Location<'c>,
        element: Type<'c>,
        elements: i64,
    ) -> Result<Value<'c>, Diagnostics> {
        let ty = Type::memref(&[elements], element, AddressSpace::Workgroup.to_attr(self.cx));
        Ok(self.create(memref::alloca(loc, &[], ty))?.result(0))
    }
    /// Loads `lanes` elements at a linear index.
    pub(super) fn load(&mut self, buffer: Value<'c>, index: Value<'c>, lanes: u32) -> Value<'c> {
        let ty = self.vector_type(buffer.ty().element(), lanes);
        self.op1(if lanes == 1 { ops::memref::LOAD } else { ops::vector::LOAD }, &[buffer, index], ty)
    }
    /// Stores a scalar or a vector at a linear index.
    pub(super) fn store(&mut self, value: Value<'c>, buffer: Value<'c>, index: Value<'c>) -> Result<(), Diagnostics> {
        let name = if value.ty().is_vector() { ops::vector::STORE } else { ops::memref::STORE };
        self.create(OpSpec::new(name, self.loc).operands(&[value, buffer, index])).map(|_| ())
    }
}

/// Facts from the ops that define an index; without any, a multiple of 1.
pub(super) fn facts(value: Value) -> Facts {
    if let Some(c) = value.constant_int() {
        return Facts { divisor: c.abs(), bound: Some(c) };
    }
    let unknown = Facts { divisor: 1, bound: None };
    let Some(op) = value.defining_op() else { return induction_facts(value).unwrap_or(unknown) };
    if op.num_operands() != 2 {
        return unknown;
    }
    match op.name() {
        ops::arith::ADDI | ops::arith::MULI | ops::arith::MINSI | ops::arith::MAXSI => {}
        // For operands that are not negative.
        ops::arith::DIVUI => {
            let by = op.operand(1).constant_int().filter(|c| *c > 0);
            return Facts { divisor: 1, bound: by.and_then(|c| Some(facts(op.operand(0)).bound?.max(0) / c)) };
        }
        _ => return unknown,
    }
    let (a, b) = (facts(op.operand(0)), facts(op.operand(1)));
    let pair = a.bound.zip(b.bound);
    match op.name() {
        ops::arith::ADDI => Facts { divisor: gcd(a.divisor, b.divisor), bound: pair.map(|(x, y)| x + y) },
        ops::arith::MINSI => Facts {
            divisor: gcd(a.divisor, b.divisor),
            bound: pair.map_or(a.bound.or(b.bound), |(x, y)| Some(x.min(y))),
        },
        ops::arith::MAXSI => Facts { divisor: gcd(a.divisor, b.divisor), bound: pair.map(|(x, y)| x.max(y)) },
        _ => Facts { divisor: a.divisor.saturating_mul(b.divisor), bound: product_bound(op, a, b) },
    }
}

/// An induction variable is a multiple of the common divisor of start and step, and less than the end.
fn induction_facts(value: Value) -> Option<Facts> {
    let (block, position) = value.as_block_arg()?;
    let op = block.parent_op().filter(|op| op.is(ops::scf::FOR) && position == 0)?;
    let divisor = gcd(facts(op.operand(0)).divisor, facts(op.operand(2)).divisor);
    Some(Facts { divisor, bound: facts(op.operand(1)).bound.map(|end| end - 1) })
}

/// A product with a constant, whose other factor is a tile id and so not negative.
fn product_bound(op: Op, a: Facts, b: Facts) -> Option<i64> {
    let (factor, other) = match (op.operand(0).constant_int(), op.operand(1).constant_int()) {
        (Some(c), _) => (c, b),
        (_, Some(c)) => (c, a),
        _ => return None,
    };
    if factor <= 0 { Some(0) } else { other.bound?.checked_mul(factor) }
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}
