//! Branches and loops: If, Loop and Scan to `scf`.
//!
//! ```text
//! If    scf.if; the branch itself where the condition is known
//! Loop  scf.for where its condition stays true, else scf.while; unrolled where it carries sequences
//! Scan  scf.for over slices
//! ```
//!
//! A body is lowered twice: first to learn which sizes of the carried values change, and what the scanned elements are.
//! Limits: a loop whose number of iterations has no bound does not stack elements.

use super::recurrence::{at, for_each, with};
use super::shapes::scalar;
use crate::onnx::graph::{Graph, ValueType};
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Failure, NodeContext, Registry, Results};
use monopour_ir::{Block, InsertionPoint, OpSpec, Region, Rewriter, Type, Value, ops};

/// Most iterations that are unrolled.
const MAX_UNROLLED: i64 = 4096;
/// More iterations are as good as no bound.
const MAX_ITERATIONS: i64 = 1 << 48;

pub(super) fn register(registry: &mut Registry) {
    registry.op("If", 1, branch, "branches of different ranks; sequences, where the condition is not a constant");
    registry.op(
        "Loop",
        1,
        iterate,
        "stacked elements without a bound; sequences, where the iterations are not constant",
    );
    registry.op("Scan", 8, scan, "sequences of different lengths in a batch");
}

/// The results of a body, with the sizes that the model states.
fn body<'c>(b: &mut Builder<'c>, graph: &Graph, inputs: Vec<Operand<'c>>) -> Result<Vec<Operand<'c>>, Failure> {
    let mut results = b.graph(graph, inputs)?;
    for (result, info) in results.iter_mut().zip(&graph.outputs) {
        let ValueType::Tensor(_, Some(stated)) = &info.ty else { continue };
        if stated.len() != result.rank() || result.value.is_none() {
            continue;
        }
        let refine = |(own, stated): (&Dim, &Option<Dim>)| match stated.as_ref().filter(|s| s.as_constant().is_some()) {
            Some(size) if own.as_constant().is_none() => size.clone(),
            _ => own.clone(),
        };
        let shape: Vec<Dim> = result.shape.iter().zip(stated).map(refine).collect();
        *result = as_shape(b, result, shape)?;
    }
    Ok(results)
}

/// The operand with sizes that are known better, or less.
fn as_shape<'c>(b: &mut Builder<'c>, x: &Operand<'c>, shape: Vec<Dim>) -> Result<Operand<'c>, Failure> {
    let (mut value, ty) = (b.value(x)?, b.tensor_type(x.dtype, &shape)?);
    if value.ty() != ty {
        value = b.op(ops::tensor::CAST, &[value], ty)?;
    }
    Ok(Operand::value(x.dtype, shape, value))
}

/// The result of an op, with sizes of its own where they are not known.
fn result_of<'c>(
    b: &mut Builder<'c>,
    value: Value<'c>,
    dtype: DataType,
    shape: &[Option<Dim>],
) -> Result<Operand<'c>, Failure> {
    let mut sizes = vec![];
    for (axis, size) in shape.iter().enumerate() {
        sizes.push(match size {
            Some(size) => size.clone(),
            None => {
                let size = b.dim_of(value, axis)?;
                b.new_symbol(size)
            }
        });
    }
    Ok(Operand::value(dtype, sizes, value))
}

/// A region of one block.
fn region_of(block: Block<'_>) -> Region<'_> {
    let region = Region::new();
    region.append(block);
    region
}

fn branch<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let graphs = [cx.graph("then_branch")?, cx.graph("else_branch")?];
    let condition = cx.operand(0)?;
    if let Some(known) = condition.as_scalar() {
        return body(b, &graphs[usize::from(known == 0.0)], vec![]);
    }
    let which = scalar(b, condition)?;
    let blocks = [Block::new(&[]), Block::new(&[])];
    let regions = blocks.map(region_of);
    let mut made = vec![];
    for (block, graph) in blocks.iter().zip(&graphs) {
        made.push(b.inside(InsertionPoint::End(*block), |b| body(b, graph, vec![])));
    }
    // From here on the op holds the blocks, whatever is found wrong.
    let joined = join(&made);
    let loc = b.loc;
    let mut types = vec![];
    for (block, results) in blocks.iter().zip(&made) {
        let values = b.inside(InsertionPoint::End(*block), |b| {
            let (Ok(results), Ok(joined)) = (results, &joined) else { return Ok(vec![]) };
            let shapes = results.iter().zip(joined).map(|(r, (_, shape))| widened(r, shape));
            let each =
                results.iter().zip(shapes).map(|(r, shape)| as_shape(b, r, shape)?.value.ok_or("no value".into()));
            each.collect::<Result<Vec<Value>, Failure>>()
        })?;
        types = values.iter().map(|v| v.ty()).collect();
        b.inside(InsertionPoint::End(*block), |b| b.create(OpSpec::new(ops::scf::YIELD, loc).operands(&values)))?;
    }
    let [then, otherwise] = regions;
    let spec = OpSpec::new(ops::scf::IF, loc).operands(&[which]).results(&types).region(then).region(otherwise);
    let op = b.create(spec)?;
    for results in made {
        results?;
    }
    joined?.iter().zip(op.results()).map(|((dtype, shape), value)| result_of(b, value, *dtype, shape)).collect()
}

/// The type of a value of two branches; `None`: a size that the branch decides.
type Joined = (DataType, Vec<Option<Dim>>);

fn join(made: &[Result<Vec<Operand<'_>>, Failure>]) -> Result<Vec<Joined>, Failure> {
    let [Ok(then), Ok(otherwise)] = made else { return Ok(vec![]) };
    let each = then.iter().zip(otherwise).map(|(x, y)| {
        if x.dtype != y.dtype || x.rank() != y.rank() || x.is_sequence() || y.is_sequence() {
            return Err("its branches have results of different types, which is not supported".into());
        }
        // Equal sizes were known before: a branch's own have names of their own.
        let size = |(x, y): (&Dim, &Dim)| (x == y).then(|| x.clone());
        Ok((x.dtype, x.shape.iter().zip(&y.shape).map(size).collect()))
    });
    each.collect()
}

/// The shape with a symbol where a size is decided elsewhere.
fn widened(x: &Operand, shape: &[Option<Dim>]) -> Vec<Dim> {
    let open = |(own, size): (&Dim, &Option<Dim>)| match size {
        None if own.as_constant().is_some() => Dim::symbol("?"),
        _ => own.clone(),
    };
    x.shape.iter().zip(shape).map(open).collect()
}

/// A value that a loop carries: its sizes, `None` where they change.
struct Carried<'c> {
    first: Operand<'c>,
    shape: Vec<Option<Dim>>,
}

impl<'c> Carried<'c> {
    fn new(first: &Operand<'c>) -> Self {
        Self { first: first.clone(), shape: first.shape.iter().cloned().map(Some).collect() }
    }
    /// The first value, of the type that all iterations have.
    fn start(&self, b: &mut Builder<'c>) -> Result<Value<'c>, Failure> {
        let shape = widened(&self.first, &self.shape);
        b.value(&self.first)?;
        as_shape(b, &self.first, shape)?.value.ok_or_else(|| "a carried value has no elements".into())
    }
    /// Gives up sizes that an iteration changes; whether there was one.
    fn give_up(&mut self, next: &Operand<'c>) -> Result<bool, Failure> {
        if next.dtype != self.first.dtype || next.rank() != self.first.rank() {
            return Err("a carried value changes its type or rank, which is not supported".into());
        }
        let mut changed = false;
        for (own, new) in self.shape.iter_mut().zip(&next.shape) {
            if own.as_ref().is_some_and(|size| size != new) {
                *own = None;
                changed = true;
            }
        }
        Ok(changed)
    }
}

/// Elements that the iterations make, stacked along an axis.
struct Stacked {
    axis: usize,
    reverse: bool,
    dtype: DataType,
    /// Of one element.
    shape: Vec<Dim>,
}

/// What an iteration makes.
pub(super) struct Made<'c> {
    /// Whether there is another one; `None`: always.
    pub goes_on: Option<Operand<'c>>,
    /// What it hands on.
    pub carried: Vec<Operand<'c>>,
    /// What is stacked.
    pub stacked: Vec<Operand<'c>>,
}

/// An iteration, of its number, condition and carried values.
type Iteration<'a, 'c> =
    &'a dyn Fn(&mut Builder<'c>, &Dim, Option<&Operand<'c>>, &[Operand<'c>]) -> Result<Made<'c>, Failure>;

/// A loop: how it starts, and what an iteration does with its number, condition and carried values.
pub(super) struct Loop<'a, 'c> {
    count: Dim,
    condition: Option<Operand<'c>>,
    carried: Vec<Carried<'c>>,
    /// Axes and directions of what is stacked.
    stacking: Vec<(i64, bool)>,
    bounded: bool,
    iteration: Iteration<'a, 'c>,
}

impl<'a, 'c> Loop<'a, 'c> {
    /// A loop of at most `count` iterations, with axes and directions of what is stacked.
    pub fn new(
        count: Dim,
        carried: Vec<Operand<'c>>,
        stacking: Vec<(i64, bool)>,
        iteration: Iteration<'a, 'c>,
    ) -> Self {
        let carried = carried.iter().map(Carried::new).collect();
        Self { count, condition: None, carried, stacking, bounded: true, iteration }
    }

    /// What is carried into the first iteration, of the types that all iterations have.
    fn starts(&self, b: &mut Builder<'c>) -> Result<Vec<Value<'c>>, Failure> {
        self.carried.iter().map(|c| c.start(b)).collect()
    }

    /// An iteration on a block's arguments.
    fn enter(
        &self,
        b: &mut Builder<'c>,
        number: Value<'c>,
        condition: Option<Value<'c>>,
        values: &[Value<'c>],
    ) -> Result<(Dim, Made<'c>), Failure> {
        let number = b.new_symbol(number);
        let mut carried = vec![];
        for (value, from) in values.iter().zip(&self.carried) {
            carried.push(result_of(b, *value, from.first.dtype, &from.shape)?);
        }
        let condition = condition.map(|value| Operand::value(DataType::Bool, vec![], value));
        let made = (self.iteration)(b, &number, condition.as_ref(), &carried)?;
        Ok((number, made))
    }

    /// Lowers the body into a block that is dropped, until the sizes of what is carried hold.
    fn learn(&mut self, b: &mut Builder<'c>) -> Result<(bool, Vec<Stacked>), Failure> {
        let mark = b.mark();
        loop {
            let (index, truth, loc) = (Type::index(b.context()), self.truth(b), b.loc);
            let mut types = vec![(index, loc), (truth, loc)];
            types.extend(self.starts(b)?.iter().map(|v| (v.ty(), loc)));
            let block = Block::new(&types);
            let region = region_of(block);
            let made = b.inside(InsertionPoint::End(block), |b| {
                let arguments = block.args();
                let condition = self.condition.as_ref().map(|_| arguments[1]);
                Ok(self.enter(b, arguments[0], condition, &arguments[2..])?.1)
            });
            // An op holds the block, so that it can be erased.
            let holder = b.create(OpSpec::new(ops::scf::EXECUTE_REGION, loc).region(region));
            let made = made?;
            let mut changed = false;
            for (carried, next) in self.carried.iter_mut().zip(&made.carried) {
                changed |= carried.give_up(next)?;
            }
            Rewriter::new(b.context()).erase(holder?);
            if !changed {
                let stays = made.goes_on.as_ref().is_none_or(|c| c.as_scalar().is_some_and(|c| c != 0.0));
                return Ok((stays && self.condition.is_none(), self.stacked(b, &made.stacked, mark)?));
            }
        }
    }

    fn truth(&self, b: &Builder<'c>) -> Type<'c> {
        Type::tensor(&[], Type::integer(b.context(), 1), None)
    }

    fn stacked(&self, b: &Builder<'c>, made: &[Operand<'c>], mark: usize) -> Result<Vec<Stacked>, Failure> {
        let each = made.iter().zip(&self.stacking).map(|(element, (axis, reverse))| {
            if !element.shape.iter().all(|size| b.outlives(size, mark)) {
                return Err("it stacks elements of different sizes".into());
            }
            let rank = element.rank() as i64 + 1;
            let axis = if *axis < 0 { axis + rank } else { *axis };
            let axis = usize::try_from(axis).ok().filter(|a| *a < rank as usize).ok_or("an axis does not exist")?;
            Ok(Stacked { axis, reverse: *reverse, dtype: element.dtype, shape: element.shape.clone() })
        });
        each.collect()
    }

    /// The carried values after the last iteration, then what is stacked.
    pub fn lower(mut self, b: &mut Builder<'c>) -> Results<'c> {
        let (stays, stacked) = self.learn(b)?;
        if !stacked.is_empty() && !self.bounded {
            return Err("it stacks elements, and its number of iterations has no bound".into());
        }
        let mut starts = self.starts(b)?;
        for one in &stacked {
            let mut shape = one.shape.clone();
            shape.insert(one.axis, self.count.clone());
            starts.push(b.empty(one.dtype, &shape)?);
        }
        let (values, ran) =
            if stays { self.counted(b, &stacked, &starts)? } else { self.conditional(b, &stacked, &starts)? };
        let (carried, stacks) = values.split_at(self.carried.len());
        let mut results = vec![];
        for (value, from) in carried.iter().zip(&self.carried) {
            results.push(result_of(b, *value, from.first.dtype, &from.shape)?);
        }
        for (value, one) in stacks.iter().zip(&stacked) {
            let mut shape = one.shape.clone();
            shape.insert(one.axis, self.count.clone());
            let whole = Operand::value(one.dtype, shape.clone(), *value);
            results.push(match &ran {
                None => whole,
                Some(ran) => {
                    // Only as many as there were iterations.
                    shape[one.axis] = ran.clone();
                    b.slice(&whole, &vec![Dim::default(); shape.len()], &shape, &vec![1; shape.len()])?
                }
            });
        }
        Ok(results)
    }

    /// What a body yields of an iteration: carried values and stacks.
    fn yields(
        &self,
        b: &mut Builder<'c>,
        number: &Dim,
        made: &Made<'c>,
        stacks: (&[Stacked], &[Value<'c>]),
    ) -> Result<Vec<Value<'c>>, Failure> {
        let mut values = vec![];
        for (next, from) in made.carried.iter().zip(&self.carried) {
            b.value(next)?;
            let shape = widened(next, &from.shape);
            values.push(as_shape(b, next, shape)?.value.ok_or("a carried value has no elements")?);
        }
        for ((element, one), stack) in made.stacked.iter().zip(stacks.0).zip(stacks.1) {
            let place = if one.reverse { self.count.plus(-1).sub(number) } else { number.clone() };
            values.push(with(b, *stack, element, one.axis, &place)?);
        }
        Ok(values)
    }

    /// As `scf.for`.
    fn counted(
        &self,
        b: &mut Builder<'c>,
        stacked: &[Stacked],
        starts: &[Value<'c>],
    ) -> Result<(Vec<Value<'c>>, Option<Dim>), Failure> {
        let results = for_each(b, &self.count, starts, |b, number, values| {
            let (carried, stacks) = values.split_at(self.carried.len());
            let (number, made) = self.enter(b, number, None, carried)?;
            self.yields(b, &number, &made, (stacked, stacks))
        })?;
        Ok((results, None))
    }

    /// As `scf.while`: the number of iterations, the condition, then as above.
    fn conditional(
        &self,
        b: &mut Builder<'c>,
        stacked: &[Stacked],
        starts: &[Value<'c>],
    ) -> Result<(Vec<Value<'c>>, Option<Dim>), Failure> {
        let (index, loc) = (Type::index(b.context()), b.loc);
        let (zero, count) = (b.int(index, 0), b.index(&self.count)?);
        let condition = match &self.condition {
            Some(condition) => b.reshaped(condition, &[])?,
            None => Operand::value(DataType::Bool, vec![], b.filled(DataType::Bool, &[], 1.0)?),
        };
        let all = [&[zero, b.value(&condition)?][..], starts].concat();
        let types: Vec<Type> = all.iter().map(|v| v.ty()).collect();
        let typed: Vec<_> = types.iter().map(|ty| (*ty, loc)).collect();
        let (before, after) = (Block::new(&typed), Block::new(&typed));
        let regions = (region_of(before), region_of(after));
        b.inside(InsertionPoint::End(before), |b| {
            let arguments = before.args();
            let (is_left, goes_on) = (b.compare(CmpI::Slt, arguments[0], count)?, b.read(arguments[1], &[])?);
            let both = b.binary(ops::arith::ANDI, is_left, goes_on)?;
            b.create(OpSpec::new(ops::scf::CONDITION, loc).operands(&[both]).operands(&arguments))
        })?;
        b.inside(InsertionPoint::End(after), |b| {
            let arguments = after.args();
            let (carried, stacks) = arguments[2..].split_at(self.carried.len());
            let (number, made) = self.enter(b, arguments[0], Some(arguments[1]), carried)?;
            let one = b.int(index, 1);
            let next = b.binary(ops::arith::ADDI, arguments[0], one)?;
            let goes_on = match &made.goes_on {
                Some(goes_on) => {
                    let flat = b.reshaped(goes_on, &[])?;
                    b.value(&flat)?
                }
                None => arguments[1],
            };
            let values = self.yields(b, &number, &made, (stacked, stacks))?;
            b.create(OpSpec::new(ops::scf::YIELD, loc).operands(&[next, goes_on]).operands(&values))
        })?;
        let spec = OpSpec::new(ops::scf::WHILE, loc).operands(&all).results(&types).region(regions.0).region(regions.1);
        let results = b.create(spec)?.results();
        let ran = b.new_symbol(results[0]);
        Ok((results[2..].to_vec(), Some(ran)))
    }
}

fn iterate<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let graph = cx.graph("body")?;
    let carried: Vec<&Operand> = (2..cx.num_operands()).map(|at| cx.operand(at)).collect::<Result<_, _>>()?;
    let count = match cx.optional(0) {
        Some(count) => Some(b.sizes_of(count)?.first().cloned().ok_or("its number of iterations is missing")?),
        None => None,
    };
    let condition = cx.optional(1).filter(|c| c.as_scalar().is_none_or(|c| c == 0.0)).cloned();
    if carried.iter().any(|c| c.is_sequence()) {
        let count = count.as_ref().and_then(Dim::as_constant).filter(|n| *n <= MAX_UNROLLED && condition.is_none());
        return unrolled(b, cx, &graph, count.ok_or("it carries sequences, and its iterations are not constant")?);
    }
    let known = Operand::constant(truth(true));
    let numbers = carried.len();
    let iteration = |b: &mut Builder<'c>, number: &Dim, condition: Option<&Operand<'c>>, values: &[Operand<'c>]| {
        let number = Operand::sizes(DataType::I64, vec![], vec![number.clone()]);
        let inputs = [&[number, condition.unwrap_or(&known).clone()][..], values].concat();
        let mut results = body(b, &graph, inputs)?;
        if results.len() < 1 + numbers {
            return Err("its body has too few results".into());
        }
        let stacked = results.split_off(1 + numbers);
        let carried = results.split_off(1);
        Ok(Made { goes_on: results.pop(), carried, stacked })
    };
    let stacking = vec![(0, false); graph.outputs.len().saturating_sub(1 + carried.len())];
    let count = count.filter(|n| n.as_constant().is_none_or(|n| n <= MAX_ITERATIONS));
    let bounded = count.is_some();
    let count = count.unwrap_or(Dim::constant(i64::MAX));
    let carried = carried.into_iter().map(Carried::new).collect();
    Loop { count, condition, carried, stacking, bounded, iteration: &iteration }.lower(b)
}

/// A truth value.
fn truth(value: bool) -> std::rc::Rc<crate::onnx::Tensor> {
    std::rc::Rc::new(crate::onnx::Tensor::new(DataType::Bool, vec![], vec![u8::from(value)]))
}

/// The iterations one after the other, as long as the condition is known.
fn unrolled<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, graph: &Graph, count: i64) -> Results<'c> {
    let mut carried: Vec<Operand> =
        (2..cx.num_operands()).map(|at| cx.operand(at).cloned()).collect::<Result<_, _>>()?;
    let mut stacked: Vec<Vec<Operand>> = vec![vec![]; graph.outputs.len().saturating_sub(1 + carried.len())];
    for number in 0..count {
        let number = Operand::sizes(DataType::I64, vec![], vec![number.into()]);
        let inputs = [&[number, Operand::constant(truth(true))][..], &carried].concat();
        let mut results = body(b, graph, inputs)?;
        if results.len() < 1 + carried.len() {
            return Err("its body has too few results".into());
        }
        let elements = results.split_off(1 + carried.len());
        carried = results.split_off(1);
        for (stack, element) in stacked.iter_mut().zip(elements) {
            stack.push(element);
        }
        match results[0].as_scalar() {
            Some(0.0) => break,
            Some(_) => {}
            None => return Err("it carries sequences, and its condition is not constant".into()),
        }
    }
    for stack in stacked {
        let mut rows = vec![];
        for element in &stack {
            rows.push(b.reshaped(element, &[&[Dim::constant(1)][..], &element.shape].concat())?);
        }
        let rows: Vec<&Operand> = rows.iter().collect();
        if rows.is_empty() {
            return Err("it stacks no elements".into());
        }
        carried.push(super::slices::join(b, &rows, 0)?);
    }
    Ok(carried)
}

fn scan<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let batched = cx.opset() < 9;
    let first = usize::from(batched);
    if batched && cx.optional(0).is_some() {
        return Err("sequences of different lengths are not supported".into());
    }
    let operands: Vec<&Operand> = (first..cx.num_operands()).map(|at| cx.operand(at)).collect::<Result<_, _>>()?;
    let count = usize::try_from(cx.int("num_scan_inputs", 0)?).ok().filter(|n| (1..=operands.len()).contains(n));
    let states = operands.len() - count.ok_or("attribute 'num_scan_inputs' does not fit its operands")?;
    if !batched {
        return scanned(b, cx, &operands, states);
    }
    // Each batch by itself.
    if operands.iter().any(|operand| operand.rank() == 0) {
        return Err("an operand has no batches".into());
    }
    let batches = operands[0].shape.first().and_then(Dim::as_constant).ok_or("its number of batches is unknown")?;
    let mut all: Vec<Vec<Operand>> = vec![];
    for batch in 0..batches {
        let mut own = vec![];
        for operand in &operands {
            own.push(at(b, operand, 0, &batch.into())?);
        }
        let results = scanned(b, cx, &own.iter().collect::<Vec<_>>(), states)?;
        all.resize(results.len(), vec![]);
        for (list, result) in all.iter_mut().zip(results) {
            list.push(b.reshaped(&result, &[&[Dim::constant(1)][..], &result.shape].concat())?);
        }
    }
    all.iter().map(|list| super::slices::join(b, &list.iter().collect::<Vec<_>>(), 0)).collect()
}

fn scanned<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, operands: &[&Operand<'c>], states: usize) -> Results<'c> {
    let graph = cx.graph("body")?;
    let (carried, inputs) = operands.split_at(states);
    let outputs = graph.outputs.len().checked_sub(states).ok_or("its body has too few results")?;
    let old = cx.opset() < 9;
    let directions = cx.ints_of(if old { "directions" } else { "scan_input_directions" }, inputs.len(), 0)?;
    let axes = if old { vec![0; inputs.len()] } else { cx.ints_of("scan_input_axes", inputs.len(), 0)? };
    let mut sliced = vec![];
    for ((input, axis), direction) in inputs.iter().zip(axes).zip(directions) {
        sliced.push((*input, cx.axis(axis, input.rank())?, direction != 0));
    }
    let (input, axis, _) = sliced.first().ok_or("it scans no operand")?;
    let count = input.shape[*axis].clone();
    for (input, axis, _) in &sliced {
        let own = &input.shape[*axis];
        if own.sub(&count).as_constant().is_some_and(|rest| rest != 0) {
            return Err(format!("it scans {count} and {own} elements").into());
        }
    }
    let (axes, backward) = if old {
        (vec![0; outputs], vec![0; outputs])
    } else {
        (cx.ints_of("scan_output_axes", outputs, 0)?, cx.ints_of("scan_output_directions", outputs, 0)?)
    };
    let stacking = axes.into_iter().zip(backward).map(|(axis, back)| (axis, back != 0)).collect();
    let length = count.clone();
    let iteration = |b: &mut Builder<'c>, number: &Dim, _: Option<&Operand<'c>>, values: &[Operand<'c>]| {
        let mut inputs = values.to_vec();
        for (input, axis, reverse) in &sliced {
            let place = if *reverse { length.plus(-1).sub(number) } else { number.clone() };
            inputs.push(at(b, input, *axis, &place)?);
        }
        let mut results = body(b, &graph, inputs)?;
        let stacked = results.split_off(states.min(results.len()));
        Ok(Made { goes_on: None, carried: results, stacked })
    };
    let carried = carried.iter().map(|c| (*c).clone()).collect();
    Loop::new(count, carried, stacking, &iteration).lower(b)
}
