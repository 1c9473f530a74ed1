//! Computes what a model computes of constants alone: its ops become a program for the baseline of this machine's architecture, which is run
//! once.
//!
//! The baseline, and not the widest registers that the machine has, so that the same model gives the same bytes on all machines of an
//! architecture.

use super::stages::{Model, OnTensors, Source};
use super::{compile_source, signature};
use crate::options::{CompileOptions, TargetDescription};
use monopour_frontend::{WeightTable, computed_constants};
use monopour_ir::{CANONICALIZE_PROGRAM, Context, Diagnostics, Module, Rewriter, run_passes};
use monopour_program::{CpuTarget, SizeRules};
use monopour_runtime::{Device, DeviceChoice, Options, Session};
use std::sync::Arc;
use tracing::debug;

/// Gives a model constants for what it computes of constants alone.
///
/// # Errors
/// None of its own; what MLIR's op builders report. What cannot be computed now is computed in each run.
pub(super) fn compute(model: &mut Model<'_>, options: &CompileOptions) -> Result<(), Diagnostics> {
    let Model { module, entry, weights, .. } = model;
    let host = module.symbol(entry).expect("the entry is a function of the module");
    let mut rw = Rewriter::new(module.context());
    let Some(computed) = computed_constants::find(host, &mut rw)? else { return Ok(()) };
    match run(computed.bytecode(), weights, options) {
        Ok(elements) => computed.replace(elements, weights, &mut rw)?,
        Err(reason) => debug!(target: "fuse", "not computed in advance: {reason}"),
    }
    run_passes(module.op(), &format!("builtin.module({CANONICALIZE_PROGRAM},cse)"))
}

/// The stage of a module of such ops.
///
/// # Errors
/// F0003 for values that no program returns.
pub(super) fn import<'c>(cx: Context<'c>, bytecode: &[u8], weights: WeightTable) -> Result<OnTensors<'c>, Diagnostics> {
    let (module, entry) = (Module::from_bytecode(cx, bytecode)?, computed_constants::ENTRY.to_owned());
    let host = module.symbol(&entry).expect("invariant: it has this function");
    let signature = signature::of(host, SizeRules::default())?;
    Ok(OnTensors { model: Model { module, entry, signature, weights } })
}

/// The elements of the values, or why there are none.
fn run(bytecode: &[u8], weights: &WeightTable, options: &CompileOptions) -> Result<Vec<Vec<u8>>, String> {
    let own = CpuTarget::parse("generic").expect("invariant: the baseline of each architecture is a target");
    let options = CompileOptions {
        targets: vec![TargetDescription::Cpu(own)],
        object_cache: options.object_cache.clone(),
        verify: options.verify,
        ..CompileOptions::default()
    };
    let compiled = compile_source(Source::Constants { bytecode, weights }, &options).map_err(|e| e.to_string())?;
    let values = || {
        let device = Device::open(&DeviceChoice::Cpu)?;
        let mut session = Session::load(&device, Arc::new(compiled.program), &Options::default())?;
        let results = session.execute(&[])?;
        session.readback(&results)
    };
    let values = values().map_err(|e| e.to_string())?;
    Ok(values.into_iter().map(|value| value.data().to_vec()).collect())
}
