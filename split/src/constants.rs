//! Moves the weights out of the IR, into the program.
//!
//! A `memref.global` that the host function refers to becomes a [`Constant`] of the program; mapped weights stay mapped.
//! Requires: scheduled. Limits: a global without data (S0005), or of a type that a program's constant cannot have (S0004).

use crate::error;
use monopour_ir::{Diagnostics, Module, Op, ops};
use monopour_program::{Constant, ConstantData, DType};
use std::collections::HashMap;

/// The value of a `dense_resource` without a blob in the module, by name.
pub type Weights<'a> = dyn Fn(&str) -> Option<ConstantData> + 'a;

/// Constants that a program has from other variants.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Indices of those that are globals of the module, by symbol.
    pub(crate) indices: HashMap<String, i64>,
    /// How many there are.
    pub(crate) count: usize,
}

impl Known {
    /// Finds the globals of `module` that are among `constants`, by type and elements: variants number their symbols each.
    pub fn of(module: &Module, constants: &[Constant], weights: &Weights<'_>) -> Self {
        let globals = module.body().ops().into_iter().filter(|op| op.is(ops::memref::GLOBAL) && !constants.is_empty());
        let index = |global: Op| {
            let symbol = global.symbol_name()?;
            // What cannot be read is reported once it is collected.
            let own = constant(module, Some(global), &symbol, weights).ok()?;
            let equal =
                |other: &Constant| (own.dtype, &own.shape, &own.data) == (other.dtype, &other.shape, &other.data);
            Some((symbol, i64::try_from(constants.iter().position(equal)?).ok()?))
        };
        Self { indices: globals.filter_map(index).collect(), count: constants.len() }
    }
}

/// The constants named by `symbols`, in that order.
///
/// # Errors
/// S0004, S0005; see the module documentation.
pub fn collect(module: &Module, symbols: &[String], weights: &Weights<'_>) -> Result<Vec<Constant>, Diagnostics> {
    let globals = module.symbols();
    symbols.iter().map(|symbol| constant(module, globals.get(symbol).copied(), symbol, weights)).collect()
}

fn constant(module: &Module, global: Option<Op>, symbol: &str, weights: &Weights<'_>) -> Result<Constant, Diagnostics> {
    let global = global.ok_or_else(|| error::no_data(module.op(), symbol))?;
    let ty = global.attr("type").and_then(|a| a.as_type()).ok_or_else(|| error::no_data(global, symbol))?;
    let text = ty.to_string();
    let dtype = DType::parse(&ty.element().to_string()).ok_or_else(|| error::not_contiguous(global, &text))?;
    let dims = ty.shape().unwrap_or_default();
    let shape: Result<Vec<u64>, _> = dims.into_iter().map(u64::try_from).collect();
    let shape = shape.map_err(|_| error::not_contiguous(global, &text))?;
    let (name, data) = value(global, symbol, weights)?;
    let constant = Constant { name, dtype, shape, data };
    if constant.size_bytes() != Some(constant.data.bytes().len() as u64) {
        return Err(error::no_data(global, &constant.name).into());
    }
    Ok(constant)
}

fn value(global: Op, symbol: &str, weights: &Weights<'_>) -> Result<(String, ConstantData), Diagnostics> {
    let attr = global.attr("initial_value").ok_or_else(|| error::no_data(global, symbol))?;
    let name = attr.resource_name().unwrap_or(symbol).to_owned();
    let data = attr.elements_bytes().map(ConstantData::from).or_else(|| weights(&name));
    let data = data.ok_or_else(|| error::no_data(global, &name))?;
    Ok((name, data))
}
