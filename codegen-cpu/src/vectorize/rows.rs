//! Takes each row of a task through all ops before the next one.
//!
//! Before / after; `i` are the task's rows:
//!
//! ```text
//! m[i] = max(m[i], x[i, j])             for i:
//! y[i, j] = exp(x[i, j] - m[i])           m = max(m, x[i, j])
//! s[i] += y[i, j]                         line[j] = exp(x[i, j] - m); fetch x[i + 1, j]
//! y[i, j] = y[i, j] / s[i]                s += line[j]
//!                                         y[i, j] = line[j] / s
//! ```
//!
//! A row stays in the first-level cache between its ops, where a task's rows do not. While an op computes, the next row is
//! fetched: no core's prefetcher follows a row that is read once and then waited for. A result that passes the caches
//! ([`past_caches`]) is written once: what it held in between lies in a line on the stack.
//! Measured on a core of Zen 4, 4096 rows of 1024 f32: layer norm 0.43 of its time, softmax 0.6.
//!
//! Requires: a kernel of class row whose ops follow each other, on views of rows: what is written has the row as one
//! dimension in each op that touches it, so that no row depends on another.
//! Limits: rows whose number is known.

use super::nest::{Nest, Operand};
use super::past_caches;
use monopour_contract::{KernelClass, attributes};
use monopour_ir::control_flow::viewed;
use monopour_ir::typed::linalg::{Operands, generic};
use monopour_ir::typed::{Index, Slice, memref};
use monopour_ir::{
    AffineMap, Attr, Block, DYNAMIC, Diagnostics, InsertionPoint, Location, Op, OpSpec, Region, Rewriter, Type, Value,
    ops,
};
use monopour_program::CpuTarget;
use std::collections::HashMap;

/// Most bytes of a task's rows that stay in the first-level cache from op to op.
const CACHED_BYTES: u64 = 16 << 10;
/// Least bytes of a row: several short ones are summed side by side.
const LEAST_ROW_BYTES: u64 = 2 << 10;
/// Narrowest vectors that fetch: narrower ones would fetch each line several times.
const LEAST_FETCHING_BITS: u32 = 256;
/// Most bytes of a line on the stack, beside what a task has there already, and its alignment.
const MOST_LINE_BYTES: u64 = 64 << 10;
const ALIGNMENT: i64 = 64;

/// Rewrites a kernel whose linalg ops are generics.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(super) fn run<'c>(kernel: Op<'c>, cpu: &CpuTarget, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let class = kernel.attr(attributes::KERNEL).and_then(|choice| choice.get("class")?.as_string());
    let Some(body) = kernel.body().filter(|_| class == Some(KernelClass::Row.as_str())) else { return Ok(()) };
    let Some(rows) = Rows::of(body).filter(Rows::pay) else { return Ok(()) };
    let fetched = if cpu.vector_bits >= LEAST_FETCHING_BITS { rows.fetched() } else { vec![] };
    let line = rows.line();
    let loc = rows.nests[0].op.location();
    Writer { rows: &rows, body, loc, point: InsertionPoint::Start(body), rw }.write(&fetched, line.as_ref())
}

/// The ops of a task, and the loop over rows that all of them have.
struct Rows<'c> {
    nests: Vec<Nest<'c>>,
    /// The loop's number in each op, and its iterations.
    row: usize,
    count: i64,
}

/// A view of which the next row is fetched, by an op as an input of a map.
struct Fetched<'c> {
    view: Value<'c>,
    by: Op<'c>,
    map: AffineMap<'c>,
}

/// A result that is written last by an op, and held by a line before.
struct Line<'c> {
    result: Value<'c>,
    last: Op<'c>,
}

impl<'c> Rows<'c> {
    fn of(body: Block<'c>) -> Option<Self> {
        let (structured, others): (Vec<Op>, Vec<Op>) = body.ops().into_iter().partition(|op| op.dialect() == "linalg");
        if structured.len() < 2 || !others.iter().all(|op| touches_nothing(*op)) {
            return None;
        }
        let nests: Vec<Nest> = structured.into_iter().map(Nest::of).collect::<Option<_>>()?;
        let is_row = |d: &usize| {
            let here = |nest: &Nest| nest.loops.get(*d).filter(|l| !l.reduction).and_then(|l| l.extent);
            nests.iter().all(|nest| here(nest) == here(&nests[0])) && here(&nests[0]).is_some_and(|extent| extent > 1)
        };
        let row = (0..nests[0].loops.len()).find(is_row)?;
        let count = nests[0].loops[row].extent?;
        let rows = Self { nests, row, count };
        (rows.are_apart() && !rows.know_places()).then_some(rows)
    }

    /// The dimension of an operand that is the rows; `None` within if it has none.
    fn dim(&self, operand: &Operand<'c>) -> Option<Option<usize>> {
        let mut with = (0..operand.subscripts.len()).filter(|at| operand.subscripts[*at].factors[self.row] != 0);
        match (with.next(), with.next()) {
            (None, _) => Some(None),
            (Some(at), None) if operand.subscripts[at].as_dim() == Some(self.row) => Some(Some(at)),
            _ => None,
        }
    }

    fn operands(&self) -> impl Iterator<Item = &Operand<'c>> {
        self.nests.iter().flat_map(|nest| nest.inputs.iter().chain(&nest.outputs))
    }

    /// Whether no op reads what another row writes.
    fn are_apart(&self) -> bool {
        let written: Vec<Value> = self.nests.iter().flat_map(|nest| &nest.outputs).map(|o| o.value).collect();
        let fits = |operand: &Operand<'c>| {
            let same = written.iter().filter(|w| viewed(**w) == viewed(operand.value));
            let mut views = same.map(|w| *w == operand.value || are_equal_views(*w, operand.value)).peekable();
            match self.dim(operand) {
                Some(Some(at)) => views.all(|same| same) && extent(operand.value, at) == Some(self.count),
                Some(None) => views.peek().is_none(),
                None => false,
            }
        };
        self.operands().all(fits)
    }

    /// Whether a body asks for its row.
    fn know_places(&self) -> bool {
        let asks = |op: &Op| op.attr("dim").and_then(|dim| usize::try_from(dim.as_int()?).ok()) == Some(self.row);
        self.nests.iter().any(|nest| {
            nest.body.ops().iter().any(|op| op.is(ops::memref::LOAD) || op.is(ops::linalg::INDEX) && asks(op))
        })
    }

    /// Whether the rows are long, and more than a cache keeps.
    fn pay(&self) -> bool {
        let mut views: Vec<Value> = vec![];
        for operand in self.operands().filter(|operand| matches!(self.dim(operand), Some(Some(_)))) {
            if !views.iter().any(|view| *view == operand.value || are_equal_views(*view, operand.value)) {
                views.push(operand.value);
            }
        }
        let Some(bytes) = views.iter().map(|view| view_bytes(*view)).collect::<Option<Vec<_>>>() else { return false };
        let longest = bytes.iter().max().copied().unwrap_or(0) / self.count.unsigned_abs();
        longest >= LEAST_ROW_BYTES && bytes.iter().sum::<u64>() > CACHED_BYTES
    }

    /// The rows of arguments that the first long op reads, each fetched by the pointwise op behind it.
    fn fetched(&self) -> Vec<Fetched<'c>> {
        let is_long = |operand: &Operand<'c>| {
            let bytes = view_bytes(operand.value).unwrap_or(0);
            matches!(self.dim(operand), Some(Some(_))) && bytes / self.count.unsigned_abs() >= LEAST_ROW_BYTES
        };
        let reads = |nest: &Nest<'c>| nest.inputs.iter().any(is_long);
        let Some(first) = self.nests.iter().position(reads) else { return vec![] };
        let mut sources = self.nests[first].inputs.iter().filter(|input| is_long(input) && is_part_of_argument(input));
        let by = self.nests[first + 1..].iter().find(|nest| nest.reductions().is_empty() && reads(nest));
        let Some(by) = by else { return vec![] };
        let alike = |source: &Operand<'c>| {
            let shape = source.value.ty().shape();
            let operands = by.inputs.iter().chain(&by.outputs).enumerate();
            let mut alike = operands.filter(|(_, o)| self.dim(o) == self.dim(source) && o.value.ty().shape() == shape);
            let maps = by.op.attr("indexing_maps")?.as_array()?;
            let map = maps[alike.next()?.0].as_affine_map()?;
            Some(Fetched { view: source.value, by: by.op, map })
        };
        sources.by_ref().filter_map(alike).collect()
    }

    /// The result that passes the caches, if ops before the last one hold something else in it.
    fn line(&self) -> Option<Line<'c>> {
        let last = self.nests.last()?;
        let [output] = &last.outputs[..] else { return None };
        let result = output.value;
        let is_whole = |nest: &Nest<'c>, operand: &Operand<'c>| {
            let loops = operand.subscripts.iter().enumerate();
            let each = loops.filter(|(d, subscript)| subscript.as_dim() == Some(*d)).count();
            nest.reductions().is_empty() && each == nest.loops.len() && each == operand.subscripts.len()
        };
        let touching: Vec<(&Nest, &Operand)> = self
            .nests
            .iter()
            .flat_map(|nest| nest.inputs.iter().chain(&nest.outputs).map(move |operand| (nest, operand)))
            .filter(|(_, operand)| viewed(operand.value) == viewed(result))
            .collect();
        let (first, written) = touching.first()?;
        let starts = first.outputs.len() == 1 && first.outputs[0].value == written.value;
        let fits = first.op != last.op
            && starts
            && is_whole(first, written)
            && first.output_arg(0).is_unused()
            && is_whole(last, output)
            && !last.output_arg(0).is_unused()
            && touching.iter().all(|(_, operand)| operand.value == result)
            && last.inputs.iter().all(|input| input.value != result);
        let is_short = view_bytes(result)? / self.count.unsigned_abs() <= MOST_LINE_BYTES;
        (fits && is_short && past_caches::is_large(result)).then_some(Line { result, last: last.op })
    }
}

/// Whether an op touches no memory.
fn touches_nothing(op: Op) -> bool {
    let views = [ops::memref::ALLOCA, ops::memref::SUBVIEW, ops::memref::CAST, ops::memref::COLLAPSE_SHAPE];
    let is_plain = matches!(op.dialect(), "arith" | "affine") && op.regions().is_empty();
    is_plain || views.contains(&op.name()) || op.is_terminator()
}

/// Whether two values are the same part of one memref.
fn are_equal_views<'c>(a: Value<'c>, b: Value<'c>) -> bool {
    let part = |value: Value<'c>| value.defining_op().filter(|op| op.is(ops::memref::SUBVIEW));
    let (Some(a), Some(b)) = (part(a), part(b)) else { return false };
    a.operands() == b.operands() && Slice::of(a) == Slice::of(b) && a.result(0).ty() == b.result(0).ty()
}

/// Whether an operand is a part of a kernel's argument of known sizes, of neighbours along each dimension.
fn is_part_of_argument(operand: &Operand) -> bool {
    let Some(part) = operand.value.defining_op().filter(|op| op.is(ops::memref::SUBVIEW)) else { return false };
    let source = part.operand(0);
    let slice = Slice::of(part).filter(|slice| slice.strides.iter().all(|stride| *stride == Index::Static(1)));
    let keeps_rank = source.ty().shape().map(|s| s.len()) == operand.value.ty().shape().map(|s| s.len());
    slice.is_some() && keeps_rank && source.as_block_arg().is_some() && source.ty().static_size_bytes().is_some()
}

fn extent(value: Value, dim: usize) -> Option<i64> {
    value.ty().shape().map(|shape| shape[dim])
}

/// Bytes of the elements of a view of known sizes.
fn view_bytes(value: Value) -> Option<u64> {
    let (shape, element) = (value.ty().shape()?, value.ty().element().element_size_bytes()?);
    shape.iter().try_fold(element, |bytes, extent| bytes.checked_mul(u64::try_from(*extent).ok()?))
}

/// Creates ops one after the other.
struct Writer<'c, 'a> {
    rows: &'a Rows<'c>,
    body: Block<'c>,
    loc: Location<'c>,
    point: InsertionPoint<'c>,
    rw: &'a mut Rewriter<'c>,
}

impl<'c> Writer<'c, '_> {
    fn create(&mut self, spec: OpSpec<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        self.rw.set_point(self.point);
        self.rw.create(spec)
    }

    fn index(&mut self, value: i64) -> Value<'c> {
        self.rw.set_point(self.point);
        self.rw.const_index(value, self.loc)
    }

    fn write(&mut self, fetched: &[Fetched<'c>], line: Option<&Line<'c>>) -> Result<(), Diagnostics> {
        let held = line.map(|line| self.stack(line.result)).transpose()?;
        let terminator = self.body.terminator().expect("invariant: a function has one");
        self.point = InsertionPoint::Before(terminator);
        let bounds = [0, self.rows.count, 1].map(|bound| self.index(bound));
        let block = Block::new(&[(Type::index(self.rw.context()), self.loc)]);
        let region = Region::new();
        region.append(block);
        self.create(OpSpec::new(ops::scf::FOR, self.loc).operands(&bounds).region(region))?;
        self.point = InsertionPoint::End(block);
        let mut views = HashMap::new();
        for nest in &self.rows.nests {
            let mut inputs = nest.inputs.clone();
            let mut outputs = nest.outputs.clone();
            let mut maps: Vec<AffineMap> = maps(nest.op);
            let is_last = line.is_some_and(|line| line.last == nest.op);
            for operand in inputs.iter_mut().chain(outputs.iter_mut().filter(|_| !is_last)) {
                match (line, held) {
                    (Some(line), Some(held)) if operand.value == line.result => operand.value = held,
                    _ => operand.value = self.row(operand, block.arg(0), &mut views)?,
                }
            }
            let mut added = vec![];
            if let (true, Some(held)) = (is_last, held) {
                let output = &mut outputs[0];
                output.value = self.row(output, block.arg(0), &mut views)?;
                added.push((held, maps[inputs.len()]));
            }
            let mut following = vec![];
            for fetched in fetched.iter().filter(|fetched| fetched.by == nest.op) {
                following.push((inputs.len() + added.len()) as i64);
                added.push((self.next_row(fetched.view, block.arg(0))?, fetched.map));
            }
            let at = inputs.len();
            let mut values: Vec<Value> = inputs.iter().map(|input| input.value).collect();
            values.extend(added.iter().map(|(value, _)| *value));
            maps.splice(at..at, added.iter().map(|(_, map)| *map));
            let outputs: Vec<Value> = outputs.iter().map(|output| output.value).collect();
            self.copy(nest, Operands { inputs: &values, outputs: &outputs }, &maps, (is_last, &following))?;
        }
        self.create(OpSpec::new(ops::scf::YIELD, self.loc))?;
        for nest in self.rows.nests.iter().rev() {
            self.rw.erase(nest.op);
        }
        Ok(())
    }

    /// The op on other operands; `reads_line` if the input behind the old ones is what the output's argument was.
    fn copy(
        &mut self,
        nest: &Nest<'c>,
        operands: Operands<'c, '_>,
        maps: &[AffineMap<'c>],
        (reads_line, fetched): (bool, &[i64]),
    ) -> Result<(), Diagnostics> {
        let (copy, region) = (self.rw.clone_op(nest.op, |value| value), Region::new());
        self.rw.set_point(self.point);
        self.rw.insert(copy);
        let body = copy.body().expect("invariant: a generic has one");
        for (i, value) in operands.inputs.iter().enumerate().skip(nest.inputs.len()) {
            self.rw.insert_block_arg(body, i, value.ty().element(), self.loc);
        }
        if reads_line {
            let (output, line) = (body.arg(operands.inputs.len()), body.arg(nest.inputs.len()));
            self.rw.replace_all_uses(output, line);
        }
        self.rw.take_region(region, copy.region(0));
        let kinds = copy.attr("iterator_types").expect("invariant: a generic has them");
        let mut spec = generic(self.loc, operands, maps, kinds, region);
        if !fetched.is_empty() {
            spec = spec.attr(attributes::FETCHED, Attr::dense_i64(self.rw.context(), fetched));
        }
        self.create(spec)?;
        self.rw.erase(copy);
        Ok(())
    }

    /// A row of an operand that has rows; else its value.
    fn row(
        &mut self,
        operand: &Operand<'c>,
        row: Value<'c>,
        views: &mut HashMap<Value<'c>, Value<'c>>,
    ) -> Result<Value<'c>, Diagnostics> {
        let Some(Some(dim)) = self.rows.dim(operand) else { return Ok(operand.value) };
        if let Some(view) = views.get(&operand.value) {
            return Ok(*view);
        }
        let shape = operand.value.ty().shape().expect("invariant: it has a dimension");
        let slice = Slice::fixed(&vec![0; shape.len()], &shape);
        let view = self.part(operand.value, slice, (dim, row))?;
        views.insert(operand.value, view);
        Ok(view)
    }

    /// The row behind that of a part of an argument, or the argument's last one.
    fn next_row(&mut self, view: Value<'c>, row: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        let part = view.defining_op().expect("invariant: it is a part");
        let mut slice = Slice::of(part).expect("invariant: it is a part");
        let source = part.operand(0);
        let dim = self.rows.operands().find(|o| o.value == view).and_then(|o| self.rows.dim(o)).flatten();
        let dim = dim.expect("invariant: it has rows");
        let last = self.index(extent(source, dim).expect("invariant: it has the dimension") - 1);
        let (one, index) = (self.index(1), row.ty());
        let first = match slice.offsets[dim] {
            Index::Dynamic(value) => value,
            Index::Static(number) => self.index(number),
        };
        let mut next = first;
        for term in [row, one] {
            let spec = OpSpec::new(ops::arith::ADDI, self.loc).operands(&[next, term]).results(&[index]);
            next = self.create(spec)?.result(0);
        }
        let spec = OpSpec::new(ops::arith::MINUI, self.loc).operands(&[next, last]).results(&[index]);
        next = self.create(spec)?.result(0);
        slice.sizes[dim] = Index::Static(1);
        self.part(source, slice, (dim, next))
    }

    /// A part of a memref: one index of a dimension.
    fn part(
        &mut self,
        source: Value<'c>,
        mut slice: Slice<'c>,
        (dim, at): (usize, Value<'c>),
    ) -> Result<Value<'c>, Diagnostics> {
        let ty = source.ty().as_memref().expect("invariant: it has a dimension");
        (slice.offsets[dim], slice.sizes[dim]) = (Index::Dynamic(at), Index::Static(1));
        let shape: Vec<i64> = slice.sizes.iter().map(|size| size.number()).collect();
        let ty = Type::strided_memref(&shape, ty.element, DYNAMIC, &ty.strides, ty.memory_space);
        Ok(self.create(memref::subview(self.loc, source, &slice, ty))?.result(0))
    }

    /// A line on the stack, of the shape of a result's row.
    fn stack(&mut self, result: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        let mut shape = result.ty().shape().expect("invariant: a memref has one");
        shape[self.rows.row] = 1;
        let ty = Type::memref(&shape, result.ty().element(), None);
        let spec = memref::alloca(self.loc, &[], ty);
        let alignment = Attr::int(Type::integer(self.rw.context(), 64), ALIGNMENT);
        Ok(self.create(spec.attr("alignment", alignment))?.result(0))
    }
}

fn maps<'c>(op: Op<'c>) -> Vec<AffineMap<'c>> {
    let maps = op.attr("indexing_maps").and_then(|maps| maps.as_array()).unwrap_or_default();
    maps.into_iter().filter_map(|map| map.as_affine_map()).collect()
}
