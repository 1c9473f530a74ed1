//! Operations on indices that a change makes, and that are taken back with it.

use monopour_ir::typed::{Index, Slice};
use monopour_ir::{Attr, Context, Diagnostics, Location, Op, OpSpec, Rewriter, Type, Value, ops};

use crate::subset_extraction::Edit;

/// Creates operations at the insertion point.
pub(crate) struct IndexOps<'c, 'a> {
    rw: &'a mut Rewriter<'c>,
    edits: &'a mut Vec<Edit<'c>>,
    pub(crate) loc: Location<'c>,
}

impl<'c, 'a> IndexOps<'c, 'a> {
    pub(crate) fn new(rw: &'a mut Rewriter<'c>, edits: &'a mut Vec<Edit<'c>>, loc: Location<'c>) -> Self {
        Self { rw, edits, loc }
    }

    pub(crate) fn context(&self) -> Context<'c> {
        self.rw.context()
    }

    /// The size of a dimension.
    pub(crate) fn size(&mut self, of: Value<'c>, at: usize) -> Result<Index<'c>, Diagnostics> {
        if let Some(known) = known_size(of, at) {
            return Ok(known);
        }
        let position = self.value(Index::Static(at as i64))?;
        self.op(ops::tensor::DIM, &[of, position]).map(Index::Dynamic)
    }

    pub(crate) fn value(&mut self, index: Index<'c>) -> Result<Value<'c>, Diagnostics> {
        let Index::Static(number) = index else { return Ok(index.value().expect("invariant: a value")) };
        let (cx, ty) = (self.rw.context(), Type::index(self.rw.context()));
        let spec = OpSpec::new(ops::arith::CONSTANT, self.loc).attr("value", Attr::index(cx, number));
        Ok(self.made(spec.results(&[ty]))?.result(0))
    }

    /// An op with one result of type `index`.
    pub(crate) fn op(&mut self, name: &str, operands: &[Value<'c>]) -> Result<Value<'c>, Diagnostics> {
        let ty = Type::index(self.rw.context());
        Ok(self.made(OpSpec::new(name, self.loc).operands(operands).results(&[ty]))?.result(0))
    }

    pub(crate) fn made(&mut self, spec: OpSpec<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        let op = self.rw.create(spec)?;
        self.edits.push(Edit::Made(op));
        Ok(op)
    }
}

/// The size of a dimension, a number or a value that is there already.
fn known_size<'c>(mut of: Value<'c>, mut at: usize) -> Option<Index<'c>> {
    loop {
        let shape = of.ty().shape()?;
        if shape[at] >= 0 {
            return Some(Index::Static(shape[at]));
        }
        let op = of.defining_op()?;
        let size = match op.name() {
            ops::tensor::EMPTY => op.operand(shape[..at].iter().filter(|size| **size < 0).count()),
            ops::tensor::EXTRACT_SLICE => {
                let sizes = Slice::of(op)?.sizes;
                // Of one rank: which dimensions a slice of lower rank has left out, its types say.
                sizes[at].value().filter(|_| sizes.len() == shape.len())?
            }
            ops::tensor::CAST => {
                of = op.operand(0);
                continue;
            }
            ops::scf::FORALL => {
                of = op.operand(op.num_operands() - op.num_results() + of.result_index()?);
                continue;
            }
            ops::tensor::INSERT_SLICE => {
                of = op.operand(1);
                continue;
            }
            ops::linalg::FILL => {
                of = op.operand(1);
                continue;
            }
            _ => return None,
        };
        let Some(dim) = size.defining_op().filter(|op| op.is(ops::tensor::DIM)) else { return Some(Index::of(size)) };
        let asked = dim.operand(1).constant_int().and_then(|number| usize::try_from(number).ok());
        match asked.map(|asked| (dim.operand(0), asked)) {
            Some((tensor, dimension)) if known_size(tensor, dimension).is_some() => (of, at) = (tensor, dimension),
            _ => return Some(Index::Dynamic(size)),
        }
    }
}
