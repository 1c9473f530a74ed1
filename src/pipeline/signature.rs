//! The boundary of a program, read from the entry function's type and attributes.

use monopour_contract::attributes;
use monopour_ir::{Attr, Diagnostic, Diagnostics, Op, Type};
use monopour_program::{DType, DYNAMIC, Signature, SizeRules, TensorDesc};

/// Names, types, donations and size rules of the entry function's arguments and results.
///
/// # Errors
/// F0003 for a type that cannot cross the boundary.
pub(super) fn of(entry: Op, sizes: SizeRules) -> Result<Signature, Diagnostics> {
    let (inputs, results) = entry.function_type().expect("the entry is a function");
    let describe = |list: &str, prefix: &str, types: Vec<Type>| -> Result<Vec<TensorDesc>, Diagnostics> {
        let attrs = entry.attr(list).and_then(|a| a.as_array()).unwrap_or_default();
        let each = types.into_iter().enumerate();
        each.map(|(i, ty)| Ok(tensor(entry, format!("{prefix}{i}"), ty, attrs.get(i).copied())?)).collect()
    };
    Ok(Signature {
        inputs: describe("arg_attrs", "arg", inputs)?,
        results: describe("res_attrs", "result", results)?,
        sizes,
    })
}

/// One argument or result; `position` is its default name.
fn tensor(entry: Op, position: String, ty: Type, attrs: Option<Attr>) -> Result<TensorDesc, Diagnostic> {
    let named = |key: &str| attrs.and_then(|a: Attr| a.get(key));
    let unsupported = || {
        let message = format!("{position} of type {ty} cannot cross the boundary of a program");
        Diagnostic::error("F0003", entry.location(), message)
            .with_help("pass ranked tensors, integers, floats and index values")
    };
    let size = |extent: i64| u64::try_from(extent).unwrap_or(DYNAMIC);
    // The import leaves no sign in a type; an unsigned one is an attribute.
    let unsigned = named(attributes::DTYPE).and_then(|d| d.as_string().and_then(DType::parse));
    let dtype = unsigned.or_else(|| DType::parse(&ty.element().to_string())).ok_or_else(unsupported)?;
    let shape = ty.as_tensor().map(|tensor| tensor.shape.into_iter().map(size).collect());
    Ok(TensorDesc {
        name: named(attributes::NAME).and_then(|n| n.as_string().map(str::to_owned)).unwrap_or(position),
        dtype,
        scalar: shape.is_none(),
        shape: shape.unwrap_or_default(),
        donated: named(attributes::DONATE).is_some(),
    })
}
