//! Slices of operands at the rows of a tile, and its temporaries: of static size along the rows, also in a partial last
//! tile.

use crate::linalg;
use monopour_ir::ops;
use monopour_ir::typed::{Index, Slice, tensor};
use monopour_ir::{
    AffineExprKind, Attr, Block, DYNAMIC, Diagnostics, InsertionPoint, Location, Op, OpSpec, Rewriter, Type, Value,
};
use std::collections::HashMap;

/// A tiled row loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut<'c> {
    id: Value<'c>,
    size: i64,
    extent: Index<'c>,
    count: (i64, Option<Value<'c>>),
}

impl<'c> Cut<'c> {
    /// A loop over dimension `dim` of `value` in tiles of `size`, at tile `id`; ops outside of the forall are created before
    /// `anchor`.
    pub fn new(
        id: Value<'c>,
        value: Value<'c>,
        dim: usize,
        size: i64,
        anchor: Op<'c>,
        rw: &mut Rewriter<'c>,
    ) -> Result<Self, Diagnostics> {
        let extent = extent(value, dim, anchor, rw)?;
        let count = match extent {
            Index::Static(extent) => ((extent + size - 1) / size, None),
            Index::Dynamic(extent) if size == 1 => (DYNAMIC, Some(extent)),
            Index::Dynamic(extent) => {
                rw.set_point(InsertionPoint::Before(anchor));
                let map = format!("affine_map<()[s0] -> (s0 ceildiv {size})>");
                (DYNAMIC, Some(affine(ops::affine::APPLY, &map, &[extent], anchor.location(), rw)?))
            }
        };
        Ok(Self { id, size, extent, count })
    }
    /// The same loop at another tile id.
    pub fn counted_by(self, id: Value<'c>) -> Self {
        Self { id, ..self }
    }
    /// Number of tiles.
    pub fn count(&self) -> (i64, Option<Value<'c>>) {
        self.count
    }
}

/// The extent of a dimension; a `tensor.dim` is created before `anchor`.
fn extent<'c>(value: Value<'c>, dim: usize, anchor: Op<'c>, rw: &mut Rewriter<'c>) -> Result<Index<'c>, Diagnostics> {
    let known = value.ty().shape().and_then(|s| s.get(dim).copied()).unwrap_or(DYNAMIC);
    if known != DYNAMIC {
        return Ok(Index::Static(known));
    }
    rw.set_point(InsertionPoint::Before(anchor));
    let loc = anchor.location();
    let position = rw.const_index(i64::try_from(dim).unwrap_or(0), loc);
    let spec = OpSpec::new(ops::tensor::DIM, loc).operands(&[value, position]).results(&[Type::index(rw.context())]);
    Ok(Index::Dynamic(rw.create(spec)?.result(0)))
}

pub(crate) fn affine<'c>(
    name: &str,
    map: &str,
    operands: &[Value<'c>],
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let cx = rw.context();
    let map = Attr::parse(cx, map).expect("invariant: a map of constants parses");
    let spec = OpSpec::new(name, loc).operands(operands).attr("map", map).results(&[Type::index(cx)]);
    Ok(rw.create(spec)?.result(0))
}

/// Slices operands at one tile.
pub(crate) struct Slicer<'c> {
    root: Op<'c>,
    cuts: Vec<Cut<'c>>,
    body: Block<'c>,
    /// Offset and size of each tiled loop, once computed.
    tile: Vec<(Index<'c>, Index<'c>)>,
    /// The initial tensor of each shared output.
    inits: HashMap<Value<'c>, Value<'c>>,
    /// The slice of each shared output.
    cut_outputs: HashMap<Value<'c>, Slice<'c>>,
}

impl<'c> Slicer<'c> {
    /// For the ops before `root`, in `body`; `inits` are the initial tensors of the shared outputs.
    pub fn new(root: Op<'c>, cuts: Vec<Cut<'c>>, body: Block<'c>, inits: HashMap<Value<'c>, Value<'c>>) -> Self {
        Self { root, cuts, body, tile: vec![], inits, cut_outputs: HashMap::new() }
    }

    fn inside(&self, rw: &mut Rewriter<'c>) {
        rw.set_point(InsertionPoint::End(self.body));
    }

    fn tile(&mut self, rw: &mut Rewriter<'c>) -> Result<Vec<(Index<'c>, Index<'c>)>, Diagnostics> {
        if self.tile.is_empty() {
            self.inside(rw);
            for cut in &self.cuts {
                self.tile.push(offset_and_size(cut, self.root.location(), rw)?);
            }
        }
        Ok(self.tile.clone())
    }

    /// The slice of `value`, operand `index` of an op, at the tile's rows; `None` where it has no row dimension.
    fn of(
        &mut self,
        op: Op<'c>,
        index: usize,
        value: Value<'c>,
        rw: &mut Rewriter<'c>,
    ) -> Result<Option<Slice<'c>>, Diagnostics> {
        let Some(shape) = value.ty().shape() else { return Ok(None) };
        if self.cuts.is_empty() {
            return Ok(None);
        }
        let tile = self.tile(rw)?;
        let rows = self.row_of_dims(op, index, shape.len());
        if rows.iter().all(Option::is_none) {
            return Ok(None);
        }
        let (mut offsets, mut sizes) = (vec![], vec![]);
        for (dim, row) in rows.into_iter().enumerate() {
            let (offset, size) = match row {
                Some(row) => tile[row],
                None => (Index::Static(0), extent(op.operand(index), dim, self.root, rw)?),
            };
            offsets.push(offset);
            sizes.push(size);
        }
        Ok(Some(Slice::new(offsets, sizes)))
    }

    /// The row loop of each dimension of an operand.
    fn row_of_dims(&self, op: Op<'c>, index: usize, rank: usize) -> Vec<Option<usize>> {
        let cut = |d: usize| Some(d).filter(|d| *d < self.cuts.len());
        match linalg::indexing_maps(op) {
            Some(maps) => {
                let dim = |e: monopour_ir::AffineExpr<'c>| match e.kind() {
                    AffineExprKind::Dim(d) => cut(d),
                    _ => None,
                };
                maps[index].results().into_iter().map(dim).collect()
            }
            // A fill.
            None => (0..rank).map(cut).collect(),
        }
    }

    /// An input at the tile's rows.
    pub fn read(&mut self, op: Op<'c>, index: usize, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let value = op.operand(index);
        match self.of(op, index, value, rw)? {
            Some(slice) => self.extract(value, &slice, rw),
            None => Ok(value),
        }
    }

    /// The slice of a shared output as the destination `index` of an op.
    pub fn slice(
        &mut self,
        op: Op<'c>,
        index: usize,
        output: Value<'c>,
        rw: &mut Rewriter<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let slice = match self.of(op, index, output, rw)? {
            Some(slice) => slice,
            None => self.whole(output, rw)?,
        };
        let value = self.extract(output, &slice, rw)?;
        self.cut_outputs.insert(output, slice);
        Ok(value)
    }

    fn whole(&self, output: Value<'c>, rw: &mut Rewriter<'c>) -> Result<Slice<'c>, Diagnostics> {
        let init = self.inits[&output];
        let rank = output.ty().shape().map_or(0, |s| s.len());
        let sizes = (0..rank).map(|dim| extent(init, dim, self.root, rw)).collect::<Result<Vec<_>, _>>()?;
        Ok(Slice::new(vec![Index::Static(0); rank], sizes))
    }

    /// A temporary as the destination `index` of an op; a slice of the destination, where that has values.
    pub fn temporary(&mut self, op: Op<'c>, index: usize, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let value = op.operand(index);
        let Some(empty) = value.defining_op().filter(|def| def.is(ops::tensor::EMPTY)) else {
            return self.read(op, index, rw);
        };
        let slice = self.of(op, index, value, rw)?;
        let shape = value.ty().shape().unwrap_or_default();
        let rows = self.row_of_dims(op, index, shape.len());
        let mut dynamic = empty.operands().into_iter();
        let mut sizes = vec![];
        for (dim, extent) in shape.iter().enumerate() {
            let old =
                if *extent == DYNAMIC { dynamic.next().map(Index::Dynamic) } else { Some(Index::Static(*extent)) };
            let old = old.expect("invariant: an empty tensor has an operand for each dynamic dimension");
            // A partial tile gets a temporary of the full size.
            sizes.push(match (&slice, rows[dim]) {
                (Some(slice), Some(row)) => match slice.sizes[dim] {
                    Index::Static(size) => Index::Static(size),
                    Index::Dynamic(_) => Index::Static(self.cuts[row].size),
                },
                _ => old,
            });
        }
        self.inside(rw);
        let whole = numbers(&sizes);
        let operands: Vec<Value> = sizes.iter().filter_map(|size| size.value()).collect();
        let ty = Type::tensor(&whole, value.ty().element(), None);
        let spec = OpSpec::new(ops::tensor::EMPTY, empty.location()).operands(&operands).results(&[ty]);
        let room = rw.create(spec)?.result(0);
        let Some(slice) = slice.filter(|s| numbers(&s.sizes) != whole) else { return Ok(room) };
        let part = Slice::new(vec![Index::Static(0); shape.len()], slice.sizes);
        self.extract(room, &part, rw)
    }

    fn extract(
        &mut self,
        value: Value<'c>,
        slice: &Slice<'c>,
        rw: &mut Rewriter<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        self.inside(rw);
        let ty =
            Type::tensor(&numbers(&slice.sizes), value.ty().element(), value.ty().as_tensor().and_then(|t| t.encoding));
        Ok(rw.create(tensor::extract_slice(self.root.location(), value, slice, ty))?.result(0))
    }

    /// The insertion of a result into its shared output.
    pub fn insertion(
        &mut self,
        value: Value<'c>,
        output: Value<'c>,
        rw: &mut Rewriter<'c>,
    ) -> Result<OpSpec<'c, 'static>, Diagnostics> {
        let slice = match self.cut_outputs.get(&output) {
            Some(slice) => slice.clone(),
            None => self.whole(output, rw)?,
        };
        Ok(tensor::parallel_insert_slice(self.root.location(), value, output, &slice))
    }

    /// Clones the op onto these operands, with the types of its destinations; `linalg.index` is offset by the tile's rows.
    pub fn clone_onto(
        &mut self,
        op: Op<'c>,
        operands: &[Value<'c>],
        rw: &mut Rewriter<'c>,
    ) -> Result<Op<'c>, Diagnostics> {
        let tile = self.tile(rw)?;
        self.inside(rw);
        let copy = rw.clone_op(op, |v| v);
        rw.insert(copy);
        let inputs = linalg::num_inputs(op);
        for (i, value) in operands.iter().enumerate() {
            rw.set_operand(copy, i, *value);
        }
        for (result, destination) in copy.results().into_iter().zip(&operands[inputs..]) {
            rw.set_type(result, destination.ty());
        }
        for counter in copy.find_all(ops::linalg::INDEX) {
            let dim = counter.attr("dim").and_then(|a| a.as_int()).and_then(|d| usize::try_from(d).ok());
            let offset = dim.and_then(|d| tile.get(d)).map(|(offset, _)| *offset);
            if let Some(Index::Dynamic(offset)) = offset {
                rw.set_point(InsertionPoint::After(counter));
                let index = counter.result(0);
                let uses = index.uses();
                let ty = Type::index(rw.context());
                let sum = OpSpec::new(ops::arith::ADDI, counter.location()).operands(&[index, offset]).results(&[ty]);
                let sum = rw.create(sum)?.result(0);
                uses.into_iter().for_each(|u| rw.set_operand(u.op, u.index, sum));
            }
        }
        Ok(copy)
    }
}

fn offset_and_size<'c>(
    cut: &Cut<'c>,
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<(Index<'c>, Index<'c>), Diagnostics> {
    let t = cut.size;
    if cut.count.0 == 1 {
        return Ok((Index::Static(0), cut.extent));
    }
    if t == 1 {
        return Ok((Index::Dynamic(cut.id), Index::Static(1)));
    }
    let offset = affine(ops::affine::APPLY, &format!("affine_map<(d0) -> (d0 * {t})>"), &[cut.id], loc, rw)?;
    let size = match cut.extent {
        Index::Static(e) if e % t == 0 => Index::Static(t),
        Index::Static(e) => {
            let map = format!("affine_map<(d0) -> (d0 * -{t} + {e}, {t})>");
            Index::Dynamic(affine(ops::affine::MIN, &map, &[cut.id], loc, rw)?)
        }
        Index::Dynamic(e) => {
            let map = format!("affine_map<(d0)[s0] -> (d0 * -{t} + s0, {t})>");
            Index::Dynamic(affine(ops::affine::MIN, &map, &[cut.id, e], loc, rw)?)
        }
    };
    Ok((Index::Dynamic(offset), size))
}

/// Static numbers, [`DYNAMIC`] for others.
fn numbers(list: &[Index]) -> Vec<i64> {
    list.iter().map(|index| index.number()).collect()
}
