//! Elements of a line that lie near each other, as those around the places of a resized image: a register or two of the line, permuted.
//!
//! ```text
//! %first = least of %place[0] and what leaves a register of the line      %v = line[%first .. %first + 16]
//! if all of %place - %first < 16:                                         %r = vpermps(%place - %first, %v)
//! else:                                                                   %r = line[%place[0]], line[%place[1]], ..
//! ```
//!
//! Whether they do is asked for each vector. An element taken by itself costs an extraction, a load and an insertion: an image
//! that is resized with four for each of its elements takes 0.4 of the time (Granite Rapids, 16 lanes).
//!
//! Limits: f32; AVX2 and AVX-512; lines of known length, at least a register.

use super::emit::{Emit, Width};
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{Attr, OpSpec, Type, Value, ops};

/// Floats of a register of AVX-512.
const WIDEST: Width = 16;

/// The elements at these subscripts, of which the last one differs by lane and no other (`alone`); `None` where the target or the line
/// has no such form. `each` takes them one by one.
pub(super) fn gather<'c>(
    e: &mut Emit<'c>,
    subscripts: &[Value<'c>],
    (width, ty): (Width, Type<'c>),
    alone: bool,
    each: &dyn Fn(&mut Emit<'c>) -> Value<'c>,
) -> Option<Value<'c>> {
    let length = *subscripts[0].ty().as_memref()?.shape.last()?;
    let fits = alone
        && e.forms.permuted == Some(width)
        && (width..=i64::from(i32::MAX)).contains(&length)
        && ty.element().float_width() == Some(32);
    let (places, others) = subscripts.split_last().filter(|_| fits)?;
    // AVX-512 picks from two registers as fast as from one: images that shrink to half of their size read every second element.
    let registers = if width == WIDEST && length >= 2 * width { 2 } else { 1 };
    let window = registers * width;
    let first = e.lanes(*places, 0, 1);
    let last = e.index(length - window);
    let first = e.op(ops::arith::MINSI, &[first, last], first.ty());
    let splat = e.splat(first, width);
    let apart = e.op(ops::arith::SUBI, &[*places, splat], places.ty());
    let word = Type::integer(e.cx, 32);
    let apart = e.op(ops::arith::INDEX_CAST, &[apart], Type::vector(&[width], word));
    let flags = Type::vector(&[width], Type::integer(e.cx, 1));
    let most = e.constant(Attr::int(word, window), word, width);
    let spec = OpSpec::new(ops::arith::CMPI, e.loc).operands(&[apart, most]).results(&[flags]);
    let near = e.create(spec.attr("predicate", CmpIPredicate::Ult.to_attr(e.cx))).result(0);
    let all = e.intrinsic(&format!("llvm.vector.reduce.and.v{width}i1"), &[near], Type::integer(e.cx, 1));
    let permuted = |e: &mut Emit<'c>| {
        let line = e.op(ops::vector::LOAD, &[others, &[first]].concat(), ty);
        if registers == 2 {
            let second = e.op_with(ops::arith::ADDI, first, width);
            let rest = e.op(ops::vector::LOAD, &[others, &[second]].concat(), ty);
            return e.intrinsic("llvm.x86.avx512.vpermi2var.ps.512", &[line, apart, rest], ty);
        }
        match width {
            WIDEST => e.intrinsic("llvm.x86.avx512.permvar.sf.512", &[line, apart], ty),
            _ => e.intrinsic("llvm.x86.avx2.permps", &[line, apart], ty),
        }
    };
    Some(e.branch(all, &[ty], &mut |e| Some(permuted(e)), &mut |e| Some(each(e))).result(0))
}
