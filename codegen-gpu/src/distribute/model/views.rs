//! Views of buffers as slices of their base.

use super::{Model, Size, Slice};
use crate::distribute::code::Code;
use crate::error;
use monopour_ir::ops;
use monopour_ir::{DYNAMIC, Diagnostics, InsertionPoint, Op, Value};

/// Whether an op makes a view of its first operand.
pub(super) fn is_view(name: &str) -> bool {
    matches!(
        name,
        ops::memref::SUBVIEW
            | ops::memref::CAST
            | ops::memref::COLLAPSE_SHAPE
            | ops::memref::EXPAND_SHAPE
            | ops::memref::REINTERPRET_CAST
            | ops::memref::MEMORY_SPACE_CAST
    )
}

/// The entries of a mixed static and dynamic list: constants and operands.
fn entries<'c>(
    code: &mut Code<'c, '_>,
    op: Op<'c>,
    name: &str,
    dynamic: &mut impl Iterator<Item = Value<'c>>,
) -> Result<Vec<Value<'c>>, Diagnostics> {
    let list =
        op.attr(name).and_then(|a| a.as_ints()).ok_or_else(|| error::not_a_tile(op, "an attribute is missing"))?;
    list.into_iter()
        .map(|v| {
            if v != DYNAMIC {
                return Ok(code.c(v));
            }
            dynamic.next().ok_or_else(|| error::not_a_tile(op, "an operand is missing"))
        })
        .collect()
}

impl<'c> Model<'c> {
    pub(super) fn view(&mut self, code: &mut Code<'c, '_>, op: Op<'c>) -> Result<(), Diagnostics> {
        // Before the op: later ops use the sums of offsets.
        code.at(InsertionPoint::Before(op));
        match op.name() {
            ops::memref::SUBVIEW => self.subview(code, op)?,
            ops::memref::COLLAPSE_SHAPE => self.collapse(code, op)?,
            ops::memref::EXPAND_SHAPE => self.expand(code, op)?,
            ops::memref::REINTERPRET_CAST => self.reinterpret(code, op)?,
            _ => {
                let source = self.slice_of(op, op.operand(0))?;
                self.by_value.insert(op.result(0), source);
            }
        }
        self.replaced.push(op);
        Ok(())
    }

    fn subview(&mut self, code: &mut Code<'c, '_>, op: Op<'c>) -> Result<(), Diagnostics> {
        let source = self.slices[self.slice_of(op, op.operand(0))?].clone();
        let mut dynamic = op.operands().into_iter().skip(1);
        let offsets = entries(code, op, "static_offsets", &mut dynamic)?;
        let sizes = entries(code, op, "static_sizes", &mut dynamic)?;
        let strides = entries(code, op, "static_strides", &mut dynamic)?;
        let mut offset = source.offset;
        for (o, stride) in offsets.iter().zip(&source.strides) {
            let scaled = code.mul(*o, *stride);
            offset = code.add(offset, scaled);
        }
        let kept = kept_dims(op);
        let stride_values: Vec<Value> = kept.iter().map(|d| code.mul(source.strides[*d], strides[*d])).collect();
        let sizes = kept.iter().map(|d| Size::new(sizes[*d])).collect();
        self.define(op.result(0), Slice { offset, strides: stride_values, sizes, ..source });
        Ok(())
    }

    /// Offset, sizes and strides are relative to the base, not to the operand.
    fn reinterpret(&mut self, code: &mut Code<'c, '_>, op: Op<'c>) -> Result<(), Diagnostics> {
        let source = self.slices[self.slice_of(op, op.operand(0))?].clone();
        let mut dynamic = op.operands().into_iter().skip(1);
        let offset = entries(code, op, "static_offsets", &mut dynamic)?[0];
        let sizes = entries(code, op, "static_sizes", &mut dynamic)?.into_iter().map(Size::new).collect();
        let stride_values = entries(code, op, "static_strides", &mut dynamic)?;
        self.define(op.result(0), Slice { offset, strides: stride_values, sizes, ..source });
        Ok(())
    }

    fn collapse(&mut self, code: &mut Code<'c, '_>, op: Op<'c>) -> Result<(), Diagnostics> {
        let source = self.slices[self.slice_of(op, op.operand(0))?].clone();
        let (mut sizes, mut stride_values) = (Vec::new(), Vec::new());
        for group in reassociation(op)? {
            let mut size = code.c(1);
            for d in &group {
                size = code.mul(size, source.sizes[*d].value);
            }
            // The innermost dimension of the group that is not of extent 1 has the stride.
            let last = group.iter().rev().find(|d| source.sizes[**d].exact() != Some(1)).or(group.last());
            stride_values.push(match last {
                Some(d) => source.strides[*d],
                None => code.c(1),
            });
            sizes.push(Size::new(size));
        }
        self.define(op.result(0), Slice { strides: stride_values, sizes, ..source });
        Ok(())
    }

    fn expand(&mut self, code: &mut Code<'c, '_>, op: Op<'c>) -> Result<(), Diagnostics> {
        let source = self.slices[self.slice_of(op, op.operand(0))?].clone();
        let mut dynamic = op.operands().into_iter().skip(1);
        let shape = entries(code, op, "static_output_shape", &mut dynamic)?;
        let mut stride_values = shape.clone();
        let groups = reassociation(op)?;
        let grouped: Vec<usize> = groups.iter().flatten().copied().collect();
        for d in (0..shape.len()).filter(|d| !grouped.contains(d)) {
            stride_values[d] = code.c(1);
        }
        for (group, stride) in groups.iter().zip(&source.strides) {
            let mut stride = *stride;
            for d in group.iter().rev() {
                stride_values[*d] = stride;
                stride = code.mul(stride, shape[*d]);
            }
        }
        let sizes = shape.into_iter().map(Size::new).collect();
        self.define(op.result(0), Slice { strides: stride_values, sizes, ..source });
        Ok(())
    }

    /// The extent that a `memref.dim` returns.
    pub(super) fn extent(&self, op: Op<'c>) -> Result<Value<'c>, Diagnostics> {
        let slice = &self.slices[self.slice_of(op, op.operand(0))?];
        let position = op.operand(1).constant_int().and_then(|d| usize::try_from(d).ok());
        let size = position.and_then(|d| slice.sizes.get(d));
        Ok(size.ok_or_else(|| error::not_a_tile(op, "the dimension is not a constant of the memref's rank"))?.value)
    }

    /// Resolves ops that return extents, strides and offsets.
    pub(super) fn metadata(&mut self, code: &mut Code<'c, '_>, op: Op<'c>) -> Result<(), Diagnostics> {
        if op.is(ops::memref::DIM) {
            let size = self.extent(op)?;
            code.rw.replace_all_uses(op.result(0), size);
        } else {
            let source = self.slices[self.slice_of(op, op.operand(0))?].clone();
            let sizes = source.sizes.iter().map(|s| s.value);
            let numbers: Vec<Value> = [source.offset].into_iter().chain(sizes).chain(source.strides.clone()).collect();
            for (result, number) in op.results().into_iter().skip(1).zip(numbers) {
                code.rw.replace_all_uses(result, number);
            }
            code.at(InsertionPoint::Before(op));
            let offset = code.c(0);
            let base = Slice { offset, strides: vec![], sizes: vec![], ..source };
            self.define(op.result(0), base);
        }
        self.replaced.push(op);
        Ok(())
    }
}

fn reassociation(op: Op) -> Result<Vec<Vec<usize>>, Diagnostics> {
    let groups = op.attr("reassociation").and_then(|a| a.as_array());
    let groups = groups.ok_or_else(|| error::not_a_tile(op, "an attribute is missing"))?;
    let dims = |group: monopour_ir::Attr| -> Vec<usize> {
        group.as_array().unwrap_or_default().iter().filter_map(|d| d.as_int()).map(|d| d as usize).collect()
    };
    Ok(groups.into_iter().map(dims).collect())
}

/// Dimensions of a subview that its result keeps. Any of several unit extents may be dropped: their index is 0.
fn kept_dims(op: Op) -> Vec<usize> {
    let sizes = op.attr("static_sizes").and_then(|a| a.as_ints()).unwrap_or_default();
    let result = op.result(0).ty().shape().unwrap_or_default();
    let mut kept = Vec::new();
    for (d, size) in sizes.iter().enumerate() {
        let all_needed = sizes.len() - d == result.len() - kept.len();
        if all_needed || result.get(kept.len()) == Some(size) {
            kept.push(d);
        }
    }
    kept.truncate(result.len());
    kept
}
