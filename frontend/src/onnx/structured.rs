//! Linalg ops: elementwise computations, reductions, sums of products.
//!
//! Every op is a `linalg.generic`: later phases recognise products, convolutions and row operations by their maps.
//! Dimensions of size 1 are dropped from operands and results, so that maps are projected permutations, and so that the views
//! between ops cancel whatever such dimensions a model adds.

use super::DataType;
use super::builder::{Builder, Failure};
use super::operand::Operand;
use super::predicate::CmpI;
use super::symbolic::Dim;
use monopour_ir::typed::linalg;
use monopour_ir::{Attr, Block, InsertionPoint, OpSpec, Region, Rewriter, Type, Value, ops};

/// An index of an operand in terms of loops.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A loop.
    Loop(usize),
    /// A sum of loops with factors, and a number.
    Sum(Vec<(usize, i64)>, i64),
}

/// Kind of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Iterator {
    /// In the result.
    Parallel,
    /// Summed over.
    Reduction,
}

/// A `linalg.generic`: operands and destinations with their indices.
#[derive(Clone, Debug, Default)]
pub struct Structured<'c> {
    /// Loops.
    pub loops: Vec<Iterator>,
    /// Operands.
    pub inputs: Vec<(Value<'c>, Vec<Expr>)>,
    /// Destinations.
    pub outputs: Vec<(Value<'c>, Vec<Expr>)>,
}

/// The loops over a shape: none over dimensions of size 1, so that a shape with more of them makes the same op.
struct Loops {
    /// The loop of each dimension.
    of_dim: Vec<Option<usize>>,
    /// Extents of the loops.
    shape: Vec<Dim>,
}

impl Loops {
    fn of(shape: &[Dim]) -> Self {
        let mut out = Self { of_dim: vec![], shape: vec![] };
        for dim in shape {
            out.of_dim.push((!dim.is(1)).then_some(out.shape.len()));
            if !dim.is(1) {
                out.shape.push(dim.clone());
            }
        }
        out
    }
}

/// An indexing map.
fn map_text(loops: usize, exprs: &[Expr]) -> String {
    let dims: Vec<String> = (0..loops).map(|d| format!("d{d}")).collect();
    let each = exprs.iter().map(|expr| match expr {
        Expr::Loop(d) => format!("d{d}"),
        Expr::Sum(parts, offset) => {
            let mut sum: Vec<String> = parts.iter().map(|(d, by)| format!("d{d} * {by}")).collect();
            if *offset != 0 || sum.is_empty() {
                sum.push(offset.to_string());
            }
            sum.join(" + ")
        }
    });
    format!("affine_map<({}) -> ({})>", dims.join(", "), each.collect::<Vec<_>>().join(", "))
}

/// The indices that are all loops in order.
pub fn identity(rank: usize) -> Vec<Expr> {
    (0..rank).map(Expr::Loop).collect()
}

/// How the body of an elementwise op reads an operand.
enum Access<'c> {
    /// The operand is a constant of the body.
    Constant,
    /// By its indexing map.
    Element,
    /// By indices: each a dimension of the result and a factor, which is 0 where the operand's size is 1 at run time.
    Read(Value<'c>, Vec<(usize, Value<'c>)>),
}

impl<'c> Builder<'c> {
    /// A `linalg.generic`; `body` takes the elements of operands, then of destinations, and returns those of the results.
    ///
    /// # Errors
    /// What `body` returns, or MLIR's diagnostics.
    pub fn structured(
        &mut self,
        op: &Structured<'c>,
        body: impl FnOnce(&mut Self, &[Value<'c>]) -> Result<Vec<Value<'c>>, Failure>,
    ) -> Result<Vec<Value<'c>>, Failure> {
        let (cx, loc) = (self.context(), self.loc);
        let operands: Vec<Value> = op.inputs.iter().chain(&op.outputs).map(|(value, _)| *value).collect();
        let arguments: Vec<_> = operands.iter().map(|v| (v.ty().element(), loc)).collect();
        let block = Block::new(&arguments);
        let region = Region::new();
        region.append(block);
        self.inside(InsertionPoint::End(block), |b| {
            let results = body(b, &block.args())?;
            b.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&results))
        })?;
        let mut maps = vec![];
        for (_, exprs) in op.inputs.iter().chain(&op.outputs) {
            let text = map_text(op.loops.len(), exprs);
            maps.push(Attr::parse(cx, &text).ok_or_else(|| format!("{text} is no map"))?);
        }
        let kinds = op.loops.iter().map(|kind| match kind {
            Iterator::Parallel => linalg::IteratorType::Parallel,
            Iterator::Reduction => linalg::IteratorType::Reduction,
        });
        let kinds = linalg::iterator_types_attr(cx, &kinds.collect::<Vec<_>>());
        let (inputs, outputs) = operands.split_at(op.inputs.len());
        let types: Vec<Type> = op.outputs.iter().map(|(value, _)| value.ty()).collect();
        let spec = OpSpec::new(ops::linalg::GENERIC, loc)
            .operand_segments(&[inputs, outputs])
            .results(&types)
            .attr("indexing_maps", Attr::array(cx, &maps))
            .attr("iterator_types", kinds)
            .region(region);
        Ok(self.create(spec)?.results())
    }

    /// The operand without the dimensions of size 1 that `shape` has larger, and the loops of the others.
    ///
    /// # Errors
    /// For an operand of a higher rank, or MLIR's diagnostics.
    pub fn broadcast_view(&mut self, operand: &Operand<'c>, shape: &[Dim]) -> Result<(Value<'c>, Vec<Expr>), Failure> {
        let first = first_dim(operand, shape)?;
        let keep: Vec<usize> =
            (0..operand.rank()).filter(|d| !operand.shape[*d].is(1) || shape[first + d].is(1)).collect();
        let value = self.keep_dims(operand, &keep)?;
        Ok((value, keep.into_iter().map(|d| Expr::Loop(first + d)).collect()))
    }

    /// An elementwise op with NumPy's broadcasting. Operands of one known element are constants of the body.
    ///
    /// # Errors
    /// For shapes that do not broadcast, or what `body` returns.
    pub fn elementwise(
        &mut self,
        operands: &[&Operand<'c>],
        dtype: DataType,
        body: impl FnOnce(&mut Self, &[Value<'c>]) -> Result<Value<'c>, Failure>,
    ) -> Result<Operand<'c>, Failure> {
        let shapes: Vec<&[Dim]> = operands.iter().map(|o| o.shape.as_slice()).collect();
        let shape = broadcast(&shapes)?;
        self.elementwise_of_shape(operands, dtype, shape, body)
    }

    /// As [`Self::elementwise`], with a result of that shape, to which the operands broadcast.
    ///
    /// # Errors
    /// What `body` returns.
    pub fn elementwise_of_shape(
        &mut self,
        operands: &[&Operand<'c>],
        dtype: DataType,
        shape: Vec<Dim>,
        body: impl FnOnce(&mut Self, &[Value<'c>]) -> Result<Value<'c>, Failure>,
    ) -> Result<Operand<'c>, Failure> {
        let loops = Loops::of(&shape);
        let (mut inputs, mut accesses) = (vec![], vec![]);
        for operand in operands {
            let access = self.access(operand, &shape)?;
            if matches!(access, Access::Element) {
                let first = shape.len() - operand.rank();
                inputs.push(self.view(operand, |d| loops.of_dim[first + d])?);
            }
            accesses.push(access);
        }
        let out = self.empty(dtype, &loops.shape)?;
        let op = Structured {
            loops: vec![Iterator::Parallel; loops.shape.len()],
            inputs,
            outputs: vec![(out, identity(loops.shape.len()))],
        };
        let results = self.structured(&op, |b, elements| {
            b.loop_of_dim = Some(loops.of_dim.clone());
            let mut elements = elements.iter().copied();
            let mut arguments = vec![];
            for (operand, access) in operands.iter().zip(&accesses) {
                arguments.push(match access {
                    Access::Constant => b.scalar(operand)?.expect("invariant: a known element"),
                    Access::Element => elements.next().expect("invariant: an element per operand"),
                    Access::Read(source, factors) => b.read_at(*source, factors)?,
                });
            }
            let element = body(b, &arguments);
            b.loop_of_dim = None;
            Ok(vec![element?])
        })?;
        self.reshaped(&Operand::value(dtype, loops.shape, results[0]), &shape)
    }

    /// How an elementwise op of that shape reads an operand.
    fn access(&mut self, operand: &Operand<'c>, shape: &[Dim]) -> Result<Access<'c>, Failure> {
        if operand.as_scalar().is_some() {
            return Ok(Access::Constant);
        }
        let first = first_dim(operand, shape)?;
        let wanted = &shape[first..];
        let is_open = |d: usize| operand.shape[d].may_differ(&wanted[d]);
        if !(0..operand.rank()).any(is_open) {
            return Ok(Access::Element);
        }
        let index = Type::index(self.context());
        let (zero, one) = (self.int(index, 0), self.int(index, 1));
        let mut factors = vec![];
        for (d, (own, wanted)) in operand.shape.iter().zip(wanted).enumerate() {
            let factor = match own.is(1) {
                true => zero,
                false if is_open(d) => self.stride_of_open(own, wanted)?,
                false => one,
            };
            factors.push((first + d, factor));
        }
        Ok(Access::Read(self.value(operand)?, factors))
    }

    /// 0 if a size is 1 at run time, and 1 if it is the wanted one; others end the run.
    fn stride_of_open(&mut self, size: &Dim, wanted: &Dim) -> Result<Value<'c>, Failure> {
        let (own, other) = (self.index(size)?, self.index(wanted)?);
        let (zero, one) = (self.int(own.ty(), 0), self.int(own.ty(), 1));
        let (is_one, is_wanted) = (self.compare(CmpI::Eq, own, one)?, self.compare(CmpI::Eq, own, other)?);
        let fits = self.binary(ops::arith::ORI, is_one, is_wanted)?;
        let message = format!("a dimension of size {size} broadcasts to {wanted}");
        let spec = OpSpec::new(ops::cf::ASSERT, self.loc).operands(&[fits]);
        self.create(spec.attr("msg", Attr::string(self.context(), &message)))?;
        self.select(is_one, zero, one)
    }

    /// In the body of an elementwise op: the element of a tensor at dimensions of the result by factors.
    fn read_at(&mut self, source: Value<'c>, factors: &[(usize, Value<'c>)]) -> Result<Value<'c>, Failure> {
        let mut place = vec![];
        for (dim, factor) in factors {
            let at = self.loop_index(*dim)?;
            place.push(match factor.constant_int() {
                Some(1) => at,
                _ => self.binary(ops::arith::MULI, at, *factor)?,
            });
        }
        self.read(source, &place)
    }

    /// The operand without its dimensions of size 1, and the loops of the others.
    fn view(
        &mut self,
        operand: &Operand<'c>,
        loop_of: impl Fn(usize) -> Option<usize>,
    ) -> Result<(Value<'c>, Vec<Expr>), Failure> {
        let keep: Vec<usize> = (0..operand.rank()).filter(|d| !operand.shape[*d].is(1)).collect();
        let loops: Option<Vec<Expr>> = keep.iter().map(|d| loop_of(*d).map(Expr::Loop)).collect();
        Ok((self.keep_dims(operand, &keep)?, loops.ok_or("an operand does not broadcast")?))
    }

    /// The element of an operand of one known element, as a constant.
    ///
    /// # Errors
    /// For types that the IR does not have.
    pub fn scalar(&mut self, operand: &Operand<'c>) -> Result<Option<Value<'c>>, Failure> {
        let Some(number) = operand.as_scalar() else { return Ok(None) };
        let ty = self.element(operand.dtype)?;
        // Not every 64-bit integer is an f64.
        let exact = operand.tensor().and_then(|t| t.to_i64());
        Ok(Some(match exact {
            Some(ints) => self.int(ty, ints[0]),
            None => self.number(ty, number),
        }))
    }

    /// A tensor of one number.
    ///
    /// # Errors
    /// As [`Builder::index`].
    pub fn filled(&mut self, dtype: DataType, shape: &[Dim], number: f64) -> Result<Value<'c>, Failure> {
        let element = self.element(dtype)?;
        let number = self.number(element, number);
        self.filled_with(dtype, shape, number)
    }

    /// A tensor of one scalar.
    ///
    /// # Errors
    /// As [`Builder::index`].
    pub fn filled_with(&mut self, dtype: DataType, shape: &[Dim], element: Value<'c>) -> Result<Value<'c>, Failure> {
        let out = self.empty(dtype, shape)?;
        let op = Structured {
            loops: vec![Iterator::Parallel; shape.len()],
            inputs: vec![],
            outputs: vec![(out, identity(shape.len()))],
        };
        Ok(self.structured(&op, |_, _| Ok(vec![element]))?[0])
    }

    /// A tensor whose elements follow from their indices.
    ///
    /// # Errors
    /// What `body` returns.
    pub fn computed(
        &mut self,
        dtype: DataType,
        shape: &[Dim],
        body: impl FnOnce(&mut Self, &[Value<'c>]) -> Result<Value<'c>, Failure>,
    ) -> Result<Operand<'c>, Failure> {
        let (out, rank) = (self.empty(dtype, shape)?, shape.len());
        let op =
            Structured { loops: vec![Iterator::Parallel; rank], inputs: vec![], outputs: vec![(out, identity(rank))] };
        let value = self.structured(&op, |b, _| {
            let at: Vec<Value> = (0..rank).map(|d| b.loop_index(d)).collect::<Result<_, _>>()?;
            Ok(vec![body(b, &at)?])
        })?[0];
        Ok(Operand::value(dtype, shape.to_vec(), value))
    }

    /// The element of a tensor at indices.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn read(&mut self, source: Value<'c>, at: &[Value<'c>]) -> Result<Value<'c>, Failure> {
        let operands = [&[source][..], at].concat();
        self.op(ops::tensor::EXTRACT, &operands, source.ty().element())
    }

    /// In a body: the index of a loop; of an elementwise op, the index of a dimension of its result.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn loop_index(&mut self, at: usize) -> Result<Value<'c>, Failure> {
        let cx = self.context();
        let at = match self.loop_of_dim.as_ref().map(|loops| loops[at]) {
            Some(Some(at)) => at,
            Some(None) => return Ok(self.int(Type::index(cx), 0)),
            None => at,
        };
        let spec = OpSpec::new(ops::linalg::INDEX, self.loc).results(&[Type::index(cx)]);
        Ok(self.create(spec.attr("dim", Attr::i64(cx, at as i64)))?.result(0))
    }

    /// A reduction over `axes`, which the result lacks, from `first` on; `body` takes an element and the result so far.
    ///
    /// # Errors
    /// What `body` returns.
    pub fn reduce(
        &mut self,
        operand: &Operand<'c>,
        axes: &[usize],
        first: (DataType, f64),
        body: impl FnOnce(&mut Self, Value<'c>, Value<'c>) -> Result<Value<'c>, Failure>,
    ) -> Result<Operand<'c>, Failure> {
        let element = self.element(first.0)?;
        let number = self.number(element, first.1);
        self.reduce_from(operand, axes, (first.0, number), body)
    }

    /// As [`Self::reduce`], from a scalar on.
    ///
    /// # Errors
    /// What `body` returns.
    pub fn reduce_from(
        &mut self,
        operand: &Operand<'c>,
        axes: &[usize],
        first: (DataType, Value<'c>),
        body: impl FnOnce(&mut Self, Value<'c>, Value<'c>) -> Result<Value<'c>, Failure>,
    ) -> Result<Operand<'c>, Failure> {
        let loops = Loops::of(&operand.shape);
        let shape_of = |kept: &dyn Fn(usize) -> bool| -> Vec<Dim> {
            (0..operand.rank()).filter(|d| kept(*d)).map(|d| operand.shape[d].clone()).collect()
        };
        let shape = shape_of(&|d| !axes.contains(&d));
        let inner = shape_of(&|d| !axes.contains(&d) && loops.of_dim[d].is_some());
        let out = self.filled_with(first.0, &inner, first.1)?;
        let reduced: Vec<usize> = axes.iter().filter_map(|d| loops.of_dim[*d]).collect();
        let kind = |l| if reduced.contains(&l) { Iterator::Reduction } else { Iterator::Parallel };
        let kinds: Vec<Iterator> = (0..loops.shape.len()).map(kind).collect();
        let kept = (0..kinds.len()).filter(|l| kinds[*l] == Iterator::Parallel).map(Expr::Loop).collect();
        let inputs = vec![self.view(operand, |d| loops.of_dim[d])?];
        let op = Structured { loops: kinds, inputs, outputs: vec![(out, kept)] };
        let results = self.structured(&op, |b, elements| Ok(vec![body(b, elements[0], elements[1])?]))?;
        self.reshaped(&Operand::value(first.0, inner, results[0]), &shape)
    }

    /// A sum of products, of halves in f32; each operand with its indices, the result's shape with its loops. Loops that the
    /// result lacks are summed over. Loops of the result over one element are not dropped.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn products(
        &mut self,
        operands: [(Value<'c>, Vec<Expr>); 2],
        loops: usize,
        dtype: DataType,
        result: (&[Dim], &[usize]),
    ) -> Result<Operand<'c>, Failure> {
        let (shape, dims) = result;
        let is_half = matches!(dtype, DataType::F16 | DataType::Bf16);
        let sum = if is_half { DataType::F32 } else { dtype };
        let (out, wide) = (self.filled(sum, shape, 0.0)?, self.element(sum)?);
        let kind = |d| if dims.contains(&d) { Iterator::Parallel } else { Iterator::Reduction };
        let op = Structured {
            loops: (0..loops).map(kind).collect(),
            inputs: operands.into(),
            outputs: vec![(out, dims.iter().copied().map(Expr::Loop).collect())],
        };
        let (multiply, add) =
            if dtype.is_float() { (ops::arith::MULF, ops::arith::ADDF) } else { (ops::arith::MULI, ops::arith::ADDI) };
        let results = self.structured(&op, |b, e| {
            let mut factors = e[..2].to_vec();
            for factor in factors.iter_mut().filter(|_| is_half) {
                *factor = b.op(ops::arith::EXTF, &[*factor], wide)?;
            }
            let product = b.binary(multiply, factors[0], factors[1])?;
            Ok(vec![b.binary(add, e[2], product)?])
        })?;
        let product = Operand::value(sum, shape.to_vec(), results[0]);
        if !is_half {
            return Ok(product);
        }
        let narrow = self.element(dtype)?;
        self.elementwise(&[&product], dtype, |b, e| b.op(ops::arith::TRUNCF, &[e[0]], narrow))
    }

    /// Gives the op of a sum of products a mark; that of halves, which are converted, none.
    pub fn mark_product(&mut self, product: &Operand<'c>, mark: &str) {
        let op = product.value.and_then(Value::defining_op).filter(|_| product.dtype == DataType::F32);
        if let Some(op) = op {
            Rewriter::new(self.context()).set_attr(op, mark, Attr::unit(self.context()));
        }
    }
}

/// The dimension of a shape that is an operand's first, which broadcasts to the shape as far as sizes are known.
fn first_dim(operand: &Operand, shape: &[Dim]) -> Result<usize, Failure> {
    let first = shape.len().checked_sub(operand.rank());
    let fits = |(own, wanted): (&Dim, &Dim)| {
        own.is(1) || own.as_constant().zip(wanted.as_constant()).is_none_or(|(own, wanted)| own == wanted)
    };
    let found = first.filter(|first| operand.shape.iter().zip(&shape[*first..]).all(fits));
    found.ok_or_else(|| {
        let [own, wanted] = [&operand.shape[..], shape].map(super::operand_shape);
        format!("an operand of shape {own} does not broadcast to {wanted}").into()
    })
}

/// The shape that shapes broadcast to.
///
/// # Errors
/// For numbers that differ and are not 1.
pub fn broadcast(shapes: &[&[Dim]]) -> Result<Vec<Dim>, Failure> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut out = vec![Dim::constant(1); rank];
    for shape in shapes {
        for (at, dim) in shape.iter().enumerate() {
            let place = &mut out[rank - shape.len() + at];
            match (place.as_constant(), dim.as_constant()) {
                (Some(a), Some(b)) if a != b && a != 1 && b != 1 => {
                    let text = shapes.iter().map(|s| super::operand_shape(s)).collect::<Vec<_>>().join(" and ");
                    return Err(format!("shapes {text} do not broadcast").into());
                }
                _ => *place = place.broadcast(dim),
            }
        }
    }
    Ok(out)
}
