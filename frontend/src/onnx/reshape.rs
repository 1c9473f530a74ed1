//! Views of values: dimensions of size 1 dropped and added, reshapes, slices, permutations, casts.

use super::builder::{Builder, Failure};
use super::operand::Operand;
use super::structured::{Expr, Iterator as LoopKind, Structured, identity};
use super::symbolic::Dim;
use monopour_ir::{Attr, DYNAMIC, OpSpec, Type, Value, ops};
use std::collections::HashMap;

/// Groups of dimensions.
type Groups = Vec<Vec<usize>>;

/// How a shape becomes another: its dimensions in groups, each of which is a group of the other.
#[derive(PartialEq, Eq, Debug)]
struct Regrouping {
    from: Groups,
    to: Groups,
    /// Size of each group.
    sizes: Vec<Dim>,
}

/// The finest groups of equal sizes; `None` where sizes are not known to be equal.
fn regroup(from: &[Dim], to: &[Dim]) -> Option<Regrouping> {
    let prefixes = |shape: &[Dim]| -> Vec<(usize, Dim)> {
        let mut product = Dim::constant(1);
        let mut out = vec![];
        for (at, dim) in shape.iter().enumerate().filter(|(_, d)| !d.is(1)) {
            product = product.mul(dim);
            out.push((at, product.clone()));
        }
        out
    };
    let (left, right) = (prefixes(from), prefixes(to));
    if left.last().map(|p| &p.1) != right.last().map(|p| &p.1) {
        return None;
    }
    let ends: HashMap<&Dim, usize> = right.iter().map(|(at, product)| (product, *at)).collect();
    let mut out = Regrouping { from: vec![], to: vec![], sizes: vec![] };
    let (mut start, mut to_start) = (0, 0);
    for (at, product) in &left {
        let Some(end) = ends.get(product).copied() else { continue };
        out.from.push((start..=*at).collect());
        out.to.push((to_start..=end).collect());
        out.sizes.push(from[start..=*at].iter().fold(Dim::constant(1), |n, d| n.mul(d)));
        (start, to_start) = (at + 1, end + 1);
    }
    // Dimensions of size 1 at the end belong to the last group.
    if let (Some(last), Some(to_last)) = (out.from.last_mut(), out.to.last_mut()) {
        last.extend(start..from.len());
        to_last.extend(to_start..to.len());
    }
    Some(out)
}

/// Whether an operand has as many elements as a shape, as far as sizes are known.
fn has_elements(operand: &Operand, shape: &[Dim]) -> Result<(), Failure> {
    match (operand.elements().as_constant(), Dim::product(shape).as_constant()) {
        (Some(own), Some(wanted)) if own != wanted => {
            Err(format!("{own} elements do not have the shape {}", super::operand_shape(shape)).into())
        }
        _ => Ok(()),
    }
}

impl<'c> Builder<'c> {
    /// The operand with these of its dimensions; the others are 1.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn keep_dims(&mut self, operand: &Operand<'c>, keep: &[usize]) -> Result<Value<'c>, Failure> {
        let shape: Vec<Dim> = keep.iter().map(|d| operand.shape[*d].clone()).collect();
        Ok(self.reshaped_value(operand, &shape)?.0)
    }

    /// The same elements, row-major, under another shape.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn reshaped(&mut self, operand: &Operand<'c>, shape: &[Dim]) -> Result<Operand<'c>, Failure> {
        has_elements(operand, shape)?;
        if operand.value.is_none()
            && let Some(folded) = super::fold::reshape(operand, shape)
        {
            return Ok(folded);
        }
        let (value, _) = self.reshaped_value(operand, shape)?;
        Ok(Operand { value: Some(value), shape: shape.to_vec(), ..operand.clone() })
    }

    fn reshaped_value(&mut self, operand: &Operand<'c>, shape: &[Dim]) -> Result<(Value<'c>, Type<'c>), Failure> {
        let ty = self.tensor_type(operand.dtype, shape)?;
        has_elements(operand, shape)?;
        if operand.shape == shape {
            return Ok((self.value(operand)?, ty));
        }
        if let Some(folded) = super::fold::reshape(operand, shape).filter(|_| operand.value.is_none()) {
            return Ok((self.value(&folded)?, ty));
        }
        let value = self.value(operand)?;
        if shape.iter().any(|d| d.is(0)) {
            return Ok((self.empty(operand.dtype, shape)?, ty));
        }
        let Some(groups) = regroup(&operand.shape, shape) else { return Ok((self.by_data(value, shape, ty)?, ty)) };
        let mut value = value;
        if groups.from.len() != operand.rank() {
            let middle = self.tensor_type(operand.dtype, &groups.sizes)?;
            let spec = OpSpec::new(ops::tensor::COLLAPSE_SHAPE, self.loc).operands(&[value]).results(&[middle]);
            value = self.create(spec.attr("reassociation", self.groups(&groups.from)))?.result(0);
        }
        if groups.to.len() != shape.len() {
            let sizes = self.dynamic(shape)?;
            let known: Vec<i64> = shape.iter().map(|d| d.as_constant().unwrap_or(DYNAMIC)).collect();
            let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, self.loc)
                .operands(&[value])
                .operands(&sizes)
                .results(&[ty])
                .attr("reassociation", self.groups(&groups.to))
                .attr("static_output_shape", Attr::dense_i64(self.context(), &known));
            value = self.create(spec)?.result(0);
        }
        // Equal sizes may be written differently.
        let value = if value.ty() == ty { value } else { self.op(ops::tensor::CAST, &[value], ty)? };
        Ok((value, ty))
    }

    fn groups(&self, groups: &Groups) -> Attr<'c> {
        let cx = self.context();
        let group = |g: &Vec<usize>| Attr::array(cx, &g.iter().map(|d| Attr::i64(cx, *d as i64)).collect::<Vec<_>>());
        Attr::array(cx, &groups.iter().map(group).collect::<Vec<_>>())
    }

    /// A reshape between sizes that are not known to agree.
    fn by_data(&mut self, value: Value<'c>, shape: &[Dim], ty: Type<'c>) -> Result<Value<'c>, Failure> {
        let sizes: Vec<Value> = shape.iter().map(|d| self.index(d)).collect::<Result<_, _>>()?;
        let index = Type::index(self.context());
        let sizes = self.op(ops::tensor::FROM_ELEMENTS, &sizes, Type::tensor(&[shape.len() as i64], index, None))?;
        self.op(ops::tensor::RESHAPE, &[value, sizes], ty)
    }

    /// A slice: first index, size and step of each dimension. Steps are positive.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn slice(
        &mut self,
        operand: &Operand<'c>,
        first: &[Dim],
        shape: &[Dim],
        steps: &[i64],
    ) -> Result<Operand<'c>, Failure> {
        if shape.len() != operand.rank() {
            return Err(format!("an operand of rank {} is not of rank {}", operand.rank(), shape.len()).into());
        }
        if shape.iter().chain(&operand.shape).any(|d| d.is(0)) {
            // A first index behind the end is no index of a slice.
            return Ok(Operand::value(operand.dtype, shape.to_vec(), self.empty(operand.dtype, shape)?));
        }
        // Dimensions of size 1 that stay whole are dropped meanwhile.
        let kept: Vec<usize> = (0..operand.rank()).filter(|d| !(operand.shape[*d].is(1) && shape[*d].is(1))).collect();
        if kept.len() < operand.rank() {
            let of = |dims: &[Dim]| kept.iter().map(|d| dims[*d].clone()).collect::<Vec<_>>();
            let inner = self.reshaped(operand, &of(&operand.shape))?;
            let steps: Vec<i64> = kept.iter().map(|d| steps[*d]).collect();
            let slice = self.slice(&inner, &of(first), &of(shape), &steps)?;
            return self.reshaped(&slice, shape);
        }
        let value = self.value(operand)?;
        let ty = self.tensor_type(operand.dtype, shape)?;
        let spec = self.slicing(ops::tensor::EXTRACT_SLICE, &[value], (first, shape, steps))?;
        let value = self.create(spec.results(&[ty]))?.result(0);
        Ok(Operand::value(operand.dtype, shape.to_vec(), value))
    }

    /// `into` with `operand` at `first`.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn insert(&mut self, operand: &Operand<'c>, into: Value<'c>, first: &[Dim]) -> Result<Value<'c>, Failure> {
        self.insert_by(operand, into, first, &vec![1; first.len()])
    }

    /// As [`Self::insert`], with steps.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn insert_by(
        &mut self,
        operand: &Operand<'c>,
        into: Value<'c>,
        first: &[Dim],
        steps: &[i64],
    ) -> Result<Value<'c>, Failure> {
        let sizes = into.ty().shape().unwrap_or_default();
        let kept: Vec<usize> = (0..operand.rank()).filter(|d| !(sizes[*d] == 1 && operand.shape[*d].is(1))).collect();
        if kept.len() < operand.rank() {
            // Sizes of `into` that are not known are read from it.
            let mut whole = vec![];
            for (axis, size) in sizes.into_iter().enumerate() {
                whole.push(if size == DYNAMIC {
                    let size = self.dim_of(into, axis)?;
                    self.size(size)
                } else {
                    Dim::constant(size)
                });
            }
            let of = |dims: &[Dim]| kept.iter().map(|d| dims[*d].clone()).collect::<Vec<_>>();
            let inner = self.reshaped(operand, &of(&operand.shape))?;
            let into = self.reshaped(&Operand::value(operand.dtype, whole.clone(), into), &of(&whole))?;
            let (target, steps): (_, Vec<i64>) = (self.value(&into)?, kept.iter().map(|d| steps[*d]).collect());
            let value = self.insert_by(&inner, target, &of(first), &steps)?;
            let made = self.reshaped(&Operand::value(operand.dtype, of(&whole), value), &whole)?;
            return self.value(&made);
        }
        let value = self.value(operand)?;
        let spec = self.slicing(ops::tensor::INSERT_SLICE, &[value, into], (first, &operand.shape, steps))?;
        Ok(self.create(spec.results(&[into.ty()]))?.result(0))
    }

    fn slicing<'a>(
        &mut self,
        name: &'a str,
        tensors: &[Value<'c>],
        (first, sizes, steps): (&[Dim], &[Dim], &[i64]),
    ) -> Result<OpSpec<'c, 'a>, Failure> {
        let cx = self.context();
        let known = |dims: &[Dim]| dims.iter().map(|d| d.as_constant().unwrap_or(DYNAMIC)).collect::<Vec<_>>();
        let (open_first, open_sizes) = (self.dynamic(first)?, self.dynamic(sizes)?);
        let mut segments: Vec<&[Value]> = tensors.chunks(1).collect();
        segments.extend([&open_first[..], &open_sizes, &[]]);
        Ok(OpSpec::new(name, self.loc)
            .operand_segments(&segments)
            .attr("static_offsets", Attr::dense_i64(cx, &known(first)))
            .attr("static_sizes", Attr::dense_i64(cx, &known(sizes)))
            .attr("static_strides", Attr::dense_i64(cx, steps)))
    }

    /// The operand with its dimensions in another order: dimension `i` of the result is `order[i]` of the operand.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn permuted(&mut self, operand: &Operand<'c>, order: &[usize]) -> Result<Operand<'c>, Failure> {
        if order.len() != operand.rank() {
            return Err(format!("an operand of rank {} is not of rank {}", operand.rank(), order.len()).into());
        }
        if order.iter().enumerate().all(|(at, from)| at == *from) {
            return Ok(operand.clone());
        }
        let shape: Vec<Dim> = order.iter().map(|d| operand.shape[*d].clone()).collect();
        let kept: Vec<usize> = (0..operand.rank()).filter(|d| !operand.shape[*d].is(1)).collect();
        let inner: Vec<Dim> = kept.iter().map(|d| operand.shape[*d].clone()).collect();
        let moved: Vec<usize> = order.iter().filter_map(|d| kept.iter().position(|k| k == d)).collect();
        let operand = self.reshaped(operand, &inner)?;
        let moved = self.permuted_whole(&operand, &moved)?;
        self.reshaped(&moved, &shape)
    }

    /// As [`Self::permuted`], with all dimensions.
    fn permuted_whole(&mut self, operand: &Operand<'c>, order: &[usize]) -> Result<Operand<'c>, Failure> {
        if order.is_sorted() {
            return Ok(operand.clone());
        }
        let shape: Vec<Dim> = order.iter().map(|d| operand.shape[*d].clone()).collect();
        let value = self.value(operand)?;
        let out = self.empty(operand.dtype, &shape)?;
        let place = |d: usize| order.iter().position(|from| *from == d).unwrap_or(d);
        let op = Structured {
            loops: vec![LoopKind::Parallel; shape.len()],
            inputs: vec![(value, (0..operand.rank()).map(|d| Expr::Loop(place(d))).collect())],
            outputs: vec![(out, identity(shape.len()))],
        };
        let value = self.structured(&op, |_, elements| Ok(vec![elements[0]]))?[0];
        Ok(Operand::value(operand.dtype, shape, value))
    }

    /// The operand with one number around it.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn padded(
        &mut self,
        operand: &Operand<'c>,
        before: &[Dim],
        after: &[Dim],
        number: Value<'c>,
    ) -> Result<Operand<'c>, Failure> {
        // Dimensions of size 1 that stay so are dropped meanwhile.
        let kept: Vec<usize> =
            (0..operand.rank()).filter(|d| !(operand.shape[*d].is(1) && before[*d].is(0) && after[*d].is(0))).collect();
        if kept.len() < operand.rank() {
            let of = |dims: &[Dim]| kept.iter().map(|d| dims[*d].clone()).collect::<Vec<_>>();
            let inner = self.reshaped(operand, &of(&operand.shape))?;
            let padded = self.padded(&inner, &of(before), &of(after), number)?;
            let sizes = operand.shape.iter().zip(before.iter().zip(after));
            return self.reshaped(&padded, &sizes.map(|(d, (b, a))| d.add(b).add(a)).collect::<Vec<_>>());
        }
        let cx = self.context();
        let shape: Vec<Dim> =
            operand.shape.iter().zip(before.iter().zip(after)).map(|(d, (b, a))| d.add(b).add(a)).collect();
        let (value, ty) = (self.value(operand)?, self.tensor_type(operand.dtype, &shape)?);
        let (low, high) = (self.dynamic(before)?, self.dynamic(after)?);
        let known = |dims: &[Dim]| dims.iter().map(|d| d.as_constant().unwrap_or(DYNAMIC)).collect::<Vec<_>>();
        let index = Type::index(cx);
        let block = monopour_ir::Block::new(&vec![(index, self.loc); operand.rank()]);
        let region = monopour_ir::Region::new();
        region.append(block);
        let loc = self.loc;
        self.inside(monopour_ir::InsertionPoint::End(block), |b| {
            b.create(OpSpec::new(ops::tensor::YIELD, loc).operands(&[number]))
        })?;
        let spec = OpSpec::new(ops::tensor::PAD, self.loc)
            .operand_segments(&[&[value], &low, &high])
            .results(&[ty])
            .attr("static_low", Attr::dense_i64(cx, &known(before)))
            .attr("static_high", Attr::dense_i64(cx, &known(after)))
            .region(region);
        let value = self.create(spec)?.result(0);
        Ok(Operand::value(operand.dtype, shape, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_the_finest_of_equal_sizes() {
        let n = Dim::symbol("n");
        let numbers = |sizes: &[i64]| sizes.iter().map(|s| Dim::constant(*s)).collect::<Vec<_>>();
        let found = regroup(&numbers(&[2, 3, 4, 1]), &numbers(&[6, 2, 2])).unwrap();
        assert_eq!((found.from, found.to), (vec![vec![0, 1], vec![2, 3]], vec![vec![0], vec![1, 2]]));
        let (from, to) = ([n.clone(), 12.into()], [n.clone(), 3.into(), 4.into()]);
        let found = regroup(&from, &to).unwrap();
        assert_eq!((found.from, found.to), (vec![vec![0], vec![1]], vec![vec![0], vec![1, 2]]));
        let found = regroup(&numbers(&[1, 1]), &[]).unwrap();
        assert_eq!((found.from, found.sizes), (vec![], vec![]));
        assert_eq!(regroup(&numbers(&[2, 3]), &numbers(&[5])), None);
    }
}
