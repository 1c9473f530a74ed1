//! `arith`, `func` and `cf` to the LLVM dialect: integers, floats, `index` as i64, vectors of one dimension.
//!
//! ```text
//! func.func @f(%a: index) -> (index, i1) {           llvm.func @f(%a: i64) -> !llvm.struct<(i64, i1)> {
//!   %0 = arith.addi %a, %a : index                     %0 = llvm.add %a, %a : i64
//!   ..                                        ==>      ..
//!   return %0, %p : index, i1                          %1 = llvm.mlir.poison : !llvm.struct<(i64, i1)>
//! }                                                    ..
//! ```
//!
//! Differs from upstream: nothing is folded, unreachable blocks are converted too, and features that need a wrapper or an ABI
//! are refused (`llvm.emit_c_interface`, variadic functions).

mod arith;
mod cf;
mod func;

use monopour_ir::conversion::{
    ConversionPattern, ConversionRewriter, ConversionStats, ConversionTarget, Declined, Mode, PatternSet,
    TypeConversion, TypeConverter, convert as run,
};
use monopour_ir::{Attr, Context, Diagnostics, Location, Op, OpSpec, OpTemplate, Type};
use std::cell::RefCell;
use std::rc::Rc;

pub use self::arith::add_arith;
pub use self::cf::add_cf;
pub use self::func::add_func;

/// Types of the LLVM dialect for those of the three dialects.
pub fn type_converter<'c>(cx: Context<'c>) -> TypeConverter<'c, 'c> {
    let (index, i64_ty) = (Type::index(cx), Type::integer(cx, 64));
    let pointer = Type::parse(cx, "!llvm.ptr").expect("the LLVM dialect is loaded");
    let scalar = move |ty: Type<'c>| {
        let stays = ty.integer_width().is_some() || ty.float_width().is_some_and(|width| width >= 16);
        if ty == index { Some(i64_ty) } else { stays.then_some(ty) }
    };
    let mut converter = TypeConverter::new();
    // Called once per type.
    converter.add(|ty| ty.to_string().starts_with("!llvm.").then(|| TypeConversion::one(ty)));
    converter.add(move |ty| ty.as_function().map(|_| TypeConversion::one(pointer)));
    converter.add(move |ty| scalar(ty).map(TypeConversion::one));
    converter.add(move |ty| {
        let vector = ty.as_vector().filter(|vector| vector.shape.len() == 1)?;
        let element = scalar(vector.element)?;
        // A scalable vector keeps its type, or is refused.
        let kept = (element == vector.element).then_some(ty);
        let to = if ty.is_scalable_vector() { kept? } else { Type::vector(&vector.shape, element) };
        Some(TypeConversion::one(to))
    });
    converter
}

/// All patterns.
pub fn patterns<'c, 'p>(cx: Context<'c>, converter: &'p TypeConverter<'c, 'p>) -> PatternSet<'c, 'p> {
    let mut set = PatternSet::with_converter(converter);
    add_arith(&mut set, cx, converter);
    add_func(&mut set, cx, converter);
    add_cf(&mut set, cx, converter);
    set
}

/// Ops of the three dialects are illegal, and unknown ones too.
pub fn target<'c>() -> ConversionTarget<'c, 'static> {
    let mut target = target_without(&["arith", "func", "cf"]);
    target.unknown_is_legal(false);
    target
}

/// Ops of these dialects are illegal.
pub fn target_without<'c>(dialects: &[&str]) -> ConversionTarget<'c, 'static> {
    let mut target = ConversionTarget::new();
    target.legal_dialect("llvm").legal_dialect("builtin");
    for dialect in dialects {
        target.illegal_dialect(dialect);
    }
    target
}

/// Converts a module in place, fully.
pub fn convert(module: Op) -> Result<ConversionStats, Diagnostics> {
    let converter = type_converter(module.context());
    run(module, &target(), &patterns(module.context(), &converter), Mode::Full)
}

/// A cast of the input, left by an earlier stage, is the converted operand.
pub fn add_reconcile(set: &mut PatternSet<'_, '_>) {
    set.add_fn(CAST, |op, adaptor, rw| {
        if op.num_operands() != 1 || op.num_results() != 1 {
            return Err(Declined::no_match("several values are cast at once"));
        }
        rw.replace_op(op, &[adaptor.operand(0)]);
        Ok(())
    });
}

/// The cast that a partial conversion leaves.
pub const CAST: &str = "builtin.unrealized_conversion_cast";

/// The one converted type.
fn convert_type<'c>(converter: &TypeConverter<'c, '_>, ty: Type<'c>) -> Result<Type<'c>, Declined> {
    // The text is built only if the pattern declines.
    converter.convert_to_one(ty).ok_or_else(|| Declined::no_match(format!("type {ty} has no counterpart")))
}

/// Copies the discardable attributes.
fn copy_discardable_attrs<'c>(rw: &mut ConversionRewriter<'c>, from: Op<'c>, to: Op<'c>) {
    for (name, value) in from.discardable_attrs() {
        rw.set_attr(to, name, value);
    }
}

/// Ops of a name without attributes.
fn template<'c>(cx: Context<'c>, name: &str) -> OpTemplate<'c> {
    OpTemplate::new(cx, OpSpec::new(name, Location::unknown(cx))).expect("no types are inferred")
}

/// Templates by a key that is known only per converted op.
struct Templates<'c, K>(RefCell<Vec<(K, Rc<OpTemplate<'c>>)>>);

impl<K> Default for Templates<'_, K> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<'c, K: PartialEq> Templates<'c, K> {
    fn get<'a>(&self, key: K, cx: Context<'c>, spec: impl FnOnce() -> OpSpec<'c, 'a>) -> Rc<OpTemplate<'c>> {
        let mut known = self.0.borrow_mut();
        if let Some((_, made)) = known.iter().find(|(k, _)| *k == key) {
            return made.clone();
        }
        let made = Rc::new(OpTemplate::new(cx, spec()).expect("no types are inferred"));
        known.push((key, made.clone()));
        made
    }
}

/// An attribute from text that is valid.
fn parse_attr<'c>(cx: Context<'c>, text: &str) -> Attr<'c> {
    Attr::parse(cx, text).expect("an attribute of a loaded dialect")
}

/// `!llvm.struct<(..)>` of these types; a single type stays itself.
fn pack<'c>(cx: Context<'c>, types: &[Type<'c>]) -> Type<'c> {
    if let [one] = types {
        return *one;
    }
    Type::parse(cx, &format!("!llvm.struct<({})>", join(types))).expect("fields of converted types")
}

fn join(types: &[Type]) -> String {
    types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ")
}
