//! `tensor` operations that only change a type: casts and reshapes keep the buffer if its layout allows it.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Attr, DYNAMIC, Diagnostic, Diagnostics, MemRefType, Op, OpSpec, Type, Value};

use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::expansions::{collapsed_again, expanded_as};
use crate::memref_types::{has_identity_layout, times};
use crate::op_model::{AliasModel, Buffers, OpModel, OpModels, UseModel};
use crate::options::Options;
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::tensor::CAST, Cast);
    models.add(ops::tensor::EXPAND_SHAPE, Expand);
    models.add(ops::tensor::COLLAPSE_SHAPE, Collapse);
    models.add(ops::tensor::RESHAPE, Reshape);
}

struct Cast;

/// The buffer of a cast tensor: the new shape, with the layout of the source. An unranked source may have any layout.
fn cast_type<'c>(source: Type<'c>, result: Type<'c>) -> Type<'c> {
    let space = source.memref_space();
    match (source.shape(), result.shape()) {
        (_, None) => Type::unranked_memref(source.element(), space),
        (Some(_), Some(shape)) => source.memref_of_shape(&shape),
        (None, Some(shape)) => {
            Type::strided_memref(&shape, source.element(), DYNAMIC, &vec![DYNAMIC; shape.len()], space)
        }
    }
}

impl OpModel for Cast {
    super::is_its_operand!();
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let ty = cast_type(types.of(op.operand(0)), op.result(0).ty());
        types.set(op.result(0), ty);
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let source: Value = buffers.operand(0);
        let ty = cast_type(source.ty(), op.result(0).ty());
        // A cast of the encoding only, or between unranked tensors.
        if ty == source.ty() {
            rw.replace_op(op, &[source]);
            return Ok(());
        }
        let cast = rw.create(OpSpec::new(ops::memref::CAST, op.location()).operands(&[source]).results(&[ty]))?;
        rw.replace_op(op, &[cast.result(0)]);
        Ok(())
    }
}

/// The groups of dimensions of a reshape.
fn reassociation<'c>(op: Op<'c>) -> Option<(Attr<'c>, Vec<Vec<usize>>)> {
    let attr = op.attr("reassociation")?;
    let group = |g: &Attr<'c>| g.as_ints()?.into_iter().map(|d| usize::try_from(d).ok()).collect::<Option<Vec<_>>>();
    let groups = attr.as_array()?.iter().map(group).collect::<Option<Vec<_>>>()?;
    Some((attr, groups))
}

/// The type of `memref.expand_shape`: inside a group the last dimension has the stride of the dimension expanded.
fn expanded<'c>(ty: Type<'c>, shape: &[i64], groups: &[Vec<usize>]) -> Option<Type<'c>> {
    let source = ty.as_memref()?;
    if has_identity_layout(ty) {
        return Some(Type::memref(shape, source.element, source.memory_space));
    }
    let mut strides = vec![1; shape.len()];
    for (group, stride) in groups.iter().zip(&source.strides) {
        let mut stride = *stride;
        for &dim in group.iter().rev() {
            *strides.get_mut(dim)? = stride;
            stride = times(stride, *shape.get(dim)?);
        }
    }
    Some(Type::strided_memref(shape, source.element, source.offset, &strides, source.memory_space))
}

struct Expand;

impl Expand {
    fn ty<'c>(op: Op<'c>, source: Type<'c>) -> Option<(Attr<'c>, Type<'c>)> {
        let (attr, groups) = reassociation(op)?;
        Some((attr, expanded(source, &op.result(0).ty().shape()?, &groups)?))
    }
    /// The first dimension with another size in the result's type.
    fn denied_size(op: Op) -> Option<usize> {
        let sizes = op.attr("static_output_shape")?.as_ints()?;
        op.result(0).ty().shape()?.iter().zip(&sizes).position(|(ty, size)| *ty != DYNAMIC && ty != size)
    }
}

impl OpModel for Expand {
    fn use_of<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel::NONE
    }
    fn aliases<'c>(&self, op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        vec![AliasModel { retypes: true, ..AliasModel::equivalent(op.result(0)) }]
    }
    fn refuse(&self, op: Op, options: &Options) -> Option<Diagnostic> {
        // Tensors may have sizes here that contradict their type, memrefs may not.
        let dim = Self::denied_size(op)?;
        let message = match options.extensions {
            true => {
                format!("{} with another size of dimension {dim} than its type has cannot be bufferized", op.name())
            }
            false => format!("'memref.expand_shape' op invalid output shape provided at pos {dim}"),
        };
        let help = "write the sizes of the result's type in output_shape";
        Some(Diagnostic::error("B0104", op.location(), message).with_help(help))
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        if let Some((_, ty)) = Self::ty(op, types.of(op.operand(0))) {
            types.set(op.result(0), ty);
        }
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let (Some((groups, ty)), Some(sizes)) = (Self::ty(op, buffers.operand(0).ty()), op.attr("static_output_shape"))
        else {
            return Err(pass.unsupported(op, "a source without strides").into());
        };
        let spec = OpSpec::new(ops::memref::EXPAND_SHAPE, op.location())
            .operands(buffers.operands())
            .results(&[ty])
            .attr("reassociation", groups)
            .attr("static_output_shape", sizes);
        let view = rw.create(spec)?;
        rw.replace_op(op, &[view.result(0)]);
        Ok(())
    }
}

/// Whether a group of dimensions with this last stride is certainly contiguous.
fn is_contiguous(source: &MemRefType, group: &[usize], mut stride: i64) -> bool {
    for &dim in group.iter().skip(1).rev() {
        stride = times(stride, source.shape[dim]);
        // Dimensions of size 1 may have any stride; all others must be adjacent.
        let outer = dim - 1;
        if source.shape[outer] != 1 && (stride == DYNAMIC || source.strides[outer] != stride) {
            return false;
        }
    }
    true
}

/// The type of `memref.collapse_shape`; `None` if the layout may not allow it.
fn collapsed<'c>(ty: Type<'c>, shape: &[i64], groups: &[Vec<usize>]) -> Option<Type<'c>> {
    let source = ty.as_memref()?;
    if has_identity_layout(ty) {
        return Some(Type::memref(shape, source.element, source.memory_space));
    }
    let mut strides = Vec::with_capacity(groups.len());
    for group in groups {
        // The last dimension not of size 1 gives the stride, unless it may be of size 1 at run time.
        let last = group.iter().rposition(|d| source.shape[*d] != 1).unwrap_or(0);
        let dim = *group.get(last)?;
        let stride = if source.shape[dim] == DYNAMIC && last > 0 { DYNAMIC } else { source.strides[dim] };
        if !is_contiguous(&source, group, stride) {
            return None;
        }
        strides.push(stride);
    }
    Some(Type::strided_memref(shape, source.element, source.offset, &strides, source.memory_space))
}

struct Collapse;

impl Collapse {
    /// The attribute with the groups, and the type of the view; `None` if the source has to be copied first.
    fn ty<'c>(op: Op<'c>, source: Type<'c>) -> Option<(Attr<'c>, Option<Type<'c>>)> {
        let (attr, groups) = reassociation(op)?;
        let shape = op.result(0).ty().shape()?;
        if groups.iter().flatten().any(|d| *d >= source.shape().unwrap_or_default().len()) {
            return None;
        }
        Some((attr, collapsed(source, &shape, &groups)))
    }
    /// The predicted type of a view of the buffer before an expansion, where its own strides do not allow one.
    fn seen<'c>(op: Op<'c>, types: &BufferTypes<'c, '_>) -> Option<Type<'c>> {
        collapsed_again(op).filter(|_| types.extensions()).map(|whole| types.of(whole))
    }
}

/// A row-major memref of the same shape, elements and space.
fn contiguous<'c>(memref: &MemRefType<'c>) -> Type<'c> {
    Type::memref(&memref.shape, memref.element, memref.memory_space)
}

impl OpModel for Collapse {
    fn use_of<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        // It may have to copy.
        UseModel::READ
    }
    fn aliases<'c>(&self, op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        vec![AliasModel { retypes: true, ..AliasModel::equivalent(op.result(0)) }]
    }
    fn copies_for_layout<'c>(&self, op: Op<'c>, _operand: usize, types: &BufferTypes<'c, '_>) -> bool {
        let is_view = Self::ty(op, types.of(op.operand(0))).is_some_and(|(_, ty)| ty.is_some());
        !is_view && Self::seen(op, types).is_none()
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let source = types.of(op.operand(0));
        if let (Some((_, ty)), Some(memref)) = (Self::ty(op, source), source.as_memref()) {
            let shape = op.result(0).ty().shape().unwrap_or_default();
            let copied = || Type::memref(&shape, memref.element, memref.memory_space);
            let ty = ty.or_else(|| Self::seen(op, types)).unwrap_or_else(copied);
            types.set(op.result(0), ty);
        }
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let mut source = buffers.operand(0);
        let (Some((groups, ty)), Some(memref)) = (Self::ty(op, source.ty()), source.ty().as_memref()) else {
            return Err(pass.unsupported(op, "a source without strides").into());
        };
        let expand = source.defining_op().filter(|made| made.is(ops::memref::EXPAND_SHAPE));
        let whole = expand.and_then(|made| expanded_as(made, op));
        // Only as predicted: other types follow from that.
        let ty = match (ty, whole.filter(|whole| whole.ty() == pass.types.of(op.result(0)))) {
            (Some(ty), _) => ty,
            (None, Some(whole)) => {
                rw.replace_op(op, &[whole]);
                return Ok(());
            }
            (None, None) => {
                source = pass.cast_or_copy(rw, op, source, contiguous(&memref))?;
                Type::memref(&op.result(0).ty().shape().unwrap_or_default(), memref.element, memref.memory_space)
            }
        };
        let spec = OpSpec::new(ops::memref::COLLAPSE_SHAPE, op.location())
            .operands(&[source])
            .results(&[ty])
            .attr("reassociation", groups);
        let view = rw.create(spec)?;
        rw.replace_op(op, &[view.result(0)]);
        Ok(())
    }
}

/// Whether MLIR reshapes a buffer of this type only after a copy: a ranked one must be row-major.
fn needs_copy(source: Type) -> bool {
    source.shape().is_some() && !has_identity_layout(source)
}

/// The buffer of a reshaped tensor: row-major, in the memory space of the source.
fn reshaped<'c>(source: Type<'c>, result: Type<'c>) -> Type<'c> {
    match result.shape() {
        Some(shape) => Type::memref(&shape, result.element(), source.memref_space()),
        None => Type::unranked_memref(result.element(), source.memref_space()),
    }
}

/// `tensor.reshape`: the shape is a tensor, too, and is read.
struct Reshape;

impl OpModel for Reshape {
    fn use_of<'c>(&self, _op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel::reading(operand == 1)
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        if operand == 1 {
            return vec![];
        }
        vec![AliasModel { retypes: true, ..AliasModel::equivalent(op.result(0)) }]
    }
    fn copies_for_layout<'c>(&self, op: Op<'c>, operand: usize, types: &BufferTypes<'c, '_>) -> bool {
        operand == 0 && needs_copy(types.of(op.operand(0)))
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let ty = reshaped(types.of(op.operand(0)), op.result(0).ty());
        types.set(op.result(0), ty);
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let mut source = buffers.operand(0);
        if let Some(memref) = source.ty().as_memref().filter(|_| needs_copy(source.ty())) {
            source = pass.cast_or_copy(rw, op, source, contiguous(&memref))?;
        }
        let ty = reshaped(source.ty(), op.result(0).ty());
        let spec =
            OpSpec::new(ops::memref::RESHAPE, op.location()).operands(&[source, buffers.operand(1)]).results(&[ty]);
        let view = rw.create(spec)?;
        rw.replace_op(op, &[view.result(0)]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use monopour_ir::Context;

    /// The type of a view with these sizes and strides, its dimensions collapsed by groups; `None` if that needs a copy.
    fn strides(shape: &[i64], strides: &[i64], groups: &[Vec<usize>]) -> Option<Vec<i64>> {
        let element = Type::f32(Context::new());
        let ty = Type::strided_memref(shape, element, 0, strides, None);
        let collapsed = vec![DYNAMIC; groups.len()];
        super::collapsed(ty, &collapsed, groups).map(|ty| ty.as_memref().expect("a memref").strides)
    }

    /// The stride of a group is that of its last dimension, unless that one may be of size 1.
    #[test]
    fn strides_of_collapsed_dimensions() {
        assert_eq!(strides(&[DYNAMIC, 4], &[64, 2], &[vec![0], vec![1]]), Some(vec![64, 2]));
        assert_eq!(strides(&[4, 8, 3], &[64, 8, 2], &[vec![0, 1], vec![2]]), Some(vec![8, 2]));
        assert_eq!(strides(&[4, 8, 3], &[128, 8, 2], &[vec![0, 1], vec![2]]), None);
        assert_eq!(strides(&[4, 1], &[64, 2], &[vec![0, 1]]), Some(vec![64]));
        assert_eq!(strides(&[1, DYNAMIC], &[64, 2], &[vec![0, 1]]), Some(vec![DYNAMIC]));
        assert_eq!(strides(&[4, DYNAMIC], &[64, 2], &[vec![0, 1]]), None);
    }
}
