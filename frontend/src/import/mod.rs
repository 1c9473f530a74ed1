//! A model becomes one entry function of canonical linalg on tensors, and a table of its mapped weights.
//!
//! Before / after:
//!
//! ```text
//! func.func private @relu(%x: tensor<4xf32>) ...            (inlined, gone)
//! func.func @main(%x: tensor<4xf32>) {                      func.func @main(%x: tensor<4xf32>) {
//!   %0 = arith.addf %x, %x : tensor<4xf32>                    %0 = linalg.generic ... arith.addf ...
//!   %1 = call @relu(%0)                                       %1 = linalg.generic ... arith.maximumf ...
//! ```
//!
//! Ensures: one public function with a body; ranked tensors and scalars of supported types; what `decompose.rs` leaves.
//! Limits: F0001 to F0008, F0010 to F0012, F0014, F0015 and F0030, see `docs/errors/`.
//!
//! The steps, in order:
//!
//! * `signs`: signs of integer types become attributes; `tosa`: the ops of TOSA.
//! * `plain`: bufferization ops and special control flow as plain ops; `vectors`: vectors outside of kernels as tensors.
//! * `verify`: diagnostics for ops, types and shapes that are not supported.
//! * `lower`: gathers, scatters and reshapes by data; `expand`: scalar ops that some devices lack.
//! * `sizes`: equalities between the sizes of inputs; `checks`: run-time checks.
//! * `decompose`: composed ops; `sliced_joins`: slices of concatenations; `growing_joins`: concatenations of the same parts and more each time; `guards`, with `ranges`: indices and divisors in kernels.
//! * `weights`: values of constants without a blob.

mod checks;
mod decompose;
mod expand;
mod growing_joins;
mod guards;
mod lower;
mod plain;
mod ranges;
mod signs;
mod sizes;
mod sliced_joins;
mod tosa;
mod vectors;
mod verify;
mod weights;

use crate::onnx::{self, Model, Registry};
use monopour_ir::ops;
pub use weights::{Weight, WeightTable};

use monopour_contract::attributes;
use monopour_ir::{Attr, Context, Diagnostic, Diagnostics, Module, Op, Rewriter, run_passes};
use monopour_program::{Map, SizeRules};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of [`run`].
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The function to compile; `None`: `main`, or the only public one.
    pub entry: Option<String>,
    /// A safetensors file, or a folder of them, with the values of `dense_resource` constants without a blob; `None`: the
    /// file that the module's `monopour.weights` attribute names, relative to the model.
    pub weights: Option<PathBuf>,
    /// Names of arguments that the program may overwrite and return, besides those that carry `monopour.donate`.
    pub donate: Vec<String>,
    /// Of an ONNX model: sizes for symbols.
    pub dims: BTreeMap<String, i64>,
    /// The ops of ONNX models.
    pub ops: Registry,
}

/// A model, ready for [`crate::fuse`].
#[derive(Debug)]
pub struct Imported<'c> {
    /// The module: one public function, no other ops.
    pub module: Module<'c>,
    /// Name of the entry function.
    pub entry: String,
    /// Values of the `dense_resource` constants that have no blob in the module.
    pub weights: WeightTable,
    /// Equalities between the sizes of inputs that the ops of the entry block require.
    pub sizes: SizeRules,
}

/// Imports a model from MLIR text or bytecode; `file` is its path, for locations and relative weights.
///
/// # Errors
/// I0001 and I0002 for what does not parse or verify, F codes for what is not supported.
pub fn run<'c>(
    cx: Context<'c>,
    source: &[u8],
    file: &str,
    options: &ImportOptions,
) -> Result<Imported<'c>, Diagnostics> {
    let (module, digits) = Module::parse_without_blobs(cx, source, file)?;
    let weights = weights::in_text(&module, source, digits);
    finish(module, file, options, weights)
}

/// As [`run`], for mapped bytecode: the values of its resources stay in the file.
///
/// # Errors
/// Those of [`run`].
pub fn run_mapped<'c>(
    cx: Context<'c>,
    source: &Arc<Map>,
    file: &str,
    options: &ImportOptions,
) -> Result<Imported<'c>, Diagnostics> {
    let (module, ranges) = Module::parse_in_place(cx, source, file)?;
    let weights = weights::in_file(&module, source, ranges);
    finish(module, file, options, weights)
}

/// Imports an ONNX model.
///
/// # Errors
/// F codes.
pub fn run_onnx<'c>(cx: Context<'c>, model: &Model, options: &ImportOptions) -> Result<Imported<'c>, Diagnostics> {
    let (module, weights) = onnx::lower(cx, model, &options.ops, &options.dims)?;
    finish(module, &model.file, options, weights)
}

/// The steps after the module is there; `own` are the weights that the model itself gives.
fn finish<'c>(
    module: Module<'c>,
    file: &str,
    options: &ImportOptions,
    own: WeightTable,
) -> Result<Imported<'c>, Diagnostics> {
    let entry = find_entry(&module, options.entry.as_deref())?;
    isolate(&module, entry)?;
    let entry = module.functions().into_iter().find(|f| f.is_public()).expect("the entry is kept: it is public");
    let name = entry.symbol_name().expect("a function has a name");
    tosa::unsigned::run(&module)?;
    signs::erase(&module, entry)?;
    tosa::run(&module, entry)?;
    plain::run(&module)?;
    vectors::run(&module, entry)?;
    verify::run(&module, entry)?;
    donate(entry, &options.donate)?;
    run_passes(module.op(), "builtin.module(func.func(convert-elementwise-to-linalg))")?;
    lower::run(&module)?;
    expand::run(&module)?;
    // Before decomposition: the rules of composed ops are known, those of their steps not always.
    let sizes = sizes::rules(entry);
    checks::run(&module, &sizes)?;
    decompose::run(&module)?;
    sliced_joins::run(&module)?;
    growing_joins::run(&module)?;
    guards::run(&module)?;
    let weights = weights::bind(&module, file, options.weights.as_deref(), own)?;
    Ok(Imported { module, entry: name, weights, sizes })
}

fn find_entry<'c>(module: &'c Module<'c>, wanted: Option<&str>) -> Result<Op<'c>, Diagnostics> {
    let functions = module.functions();
    let public: Vec<Op> = functions.iter().copied().filter(|f| f.is_public()).collect();
    let names = public.iter().filter_map(|f| f.symbol_name()).collect::<Vec<_>>().join(", ");
    let found = match wanted {
        Some(name) => functions.iter().copied().find(|f| f.symbol_name().as_deref() == Some(name)),
        None => public.iter().copied().find(|f| f.symbol_name().as_deref() == Some("main")).or(match public[..] {
            [only] => Some(only),
            _ => None,
        }),
    };
    let message = match (found, wanted) {
        (Some(entry), _) if entry.body().is_some() => return Ok(entry),
        (Some(entry), _) => {
            let message = format!("entry function @{} has no body", entry.symbol_name().unwrap_or_default());
            return Err(Diagnostic::error("F0001", entry.location(), message).with_help("define the function").into());
        }
        (None, Some(name)) => format!("no function @{name}; public functions: {names}"),
        (None, None) if public.is_empty() => "the module has no public function".to_owned(),
        (None, None) => format!("several public functions and none is called main: {names}"),
    };
    Err(Diagnostic::error("F0001", module.op().location(), message).with_help("name one with `--entry FUNC`").into())
}

/// Marks arguments as donated, by their names.
fn donate<'c>(entry: Op<'c>, names: &[String]) -> Result<(), Diagnostics> {
    let cx = entry.context();
    let (inputs, _) = entry.function_type().expect("a function has a type");
    let given = entry.attr("arg_attrs").and_then(|a| a.as_array()).unwrap_or_default();
    let mut dicts: Vec<Vec<(String, Attr)>> =
        (0..inputs.len()).map(|i| given.get(i).and_then(|d| d.as_dict()).unwrap_or_default()).collect();
    let name_of = |i: usize, dict: &[(String, Attr)]| {
        let named = dict.iter().find(|(key, _)| key == attributes::NAME);
        named.and_then(|(_, n)| n.as_string().map(str::to_owned)).unwrap_or_else(|| format!("arg{i}"))
    };
    for name in names {
        let found = dicts.iter().enumerate().position(|(i, dict)| name_of(i, dict) == *name);
        let Some(found) = found.filter(|i| inputs[*i].is_tensor()) else {
            let message = format!("no tensor argument is called '{name}', which is to be donated");
            let all = dicts.iter().enumerate().map(|(i, dict)| name_of(i, dict)).collect::<Vec<_>>().join(", ");
            let help = format!("the arguments are {all}; numbers cannot be donated");
            return Err(Diagnostic::error("F0015", entry.location(), message).with_help(help).into());
        };
        if !dicts[found].iter().any(|(key, _)| key == attributes::DONATE) {
            dicts[found].push((attributes::DONATE.to_owned(), Attr::unit(cx)));
        }
    }
    if !names.is_empty() {
        let dict = |entries: &Vec<(String, Attr<'c>)>| {
            Attr::dict(cx, &entries.iter().map(|(key, value)| (key.as_str(), *value)).collect::<Vec<_>>())
        };
        let dicts: Vec<Attr> = dicts.iter().map(dict).collect();
        Rewriter::new(cx).set_attr(entry, "arg_attrs", Attr::array(cx, &dicts));
    }
    Ok(())
}

/// Inlines every call and drops every other function.
fn isolate(module: &Module, entry: Op) -> Result<(), Diagnostics> {
    let cx = module.context();
    let mut rw = Rewriter::new(cx);
    for function in module.functions() {
        let visibility = if function == entry { "public" } else { "private" };
        rw.set_attr(function, "sym_visibility", Attr::string(cx, visibility));
    }
    // Inline first: a called function must still exist.
    run_passes(module.op(), "builtin.module(inline{default-pipeline=},symbol-dce)")?;
    let Some(call) = module.op().find_all(ops::func::CALL).into_iter().next() else { return Ok(()) };
    let callee = call.attr("callee").map(|a| a.to_string()).unwrap_or_default();
    let message = format!("call of {callee} cannot be inlined");
    let help = "define the callee; where it calls itself, carry what it hands on through scf.while or scf.for";
    Err(Diagnostic::error("F0011", call.location(), message).with_help(help).into())
}
