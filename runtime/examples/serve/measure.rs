//! Several runs of a program: the results of one, the cost of a warm one.

use monopour_program::Program;
use monopour_runtime::{Device, HostForm, HostTensor, Options, Session};
use std::sync::Arc;

/// The results, and the cost of a warm run: dispatches, copies, transfers, submits, objects created, leaks.
pub struct Measured {
    pub outputs: Vec<HostTensor>,
    pub cost: [u64; 6],
}

/// Runs `program` on `threads` CPU threads, by both forms of its host function where it is trusted, which must agree: on
/// `first`, if these are others, then on `inputs`.
///
/// # Errors
/// The runtime's, as text; different results or costs of the forms.
pub fn run(
    device: &Device,
    program: Arc<Program>,
    threads: usize,
    first: &[HostTensor],
    inputs: &[HostTensor],
) -> Result<Measured, String> {
    let by_form = |host: HostForm| {
        let options = Options { threads, host, ..Options::default() };
        run_form(device, program.clone(), &options, first, inputs)
    };
    let data = by_form(HostForm::Data)?;
    if !program.is_trusted() {
        return Ok(data);
    }
    let native = by_form(HostForm::Native)?;
    if native.outputs != data.outputs {
        return Err("the forms of the host function give other results".to_owned());
    }
    if native.cost != data.cost {
        return Err(format!("the host function costs {:?} as native code, {:?} as data", native.cost, data.cost));
    }
    Ok(native)
}

fn run_form(
    device: &Device,
    program: Arc<Program>,
    options: &Options,
    first: &[HostTensor],
    inputs: &[HostTensor],
) -> Result<Measured, String> {
    let mut session = Session::load(device, program, options).map_err(|e| e.to_string())?;
    if inputs != first {
        let on_device = session.upload(first).map_err(|e| e.to_string())?;
        // Other values may break a rule of the program.
        let _ = session.execute(&on_device);
    }
    let on_device = session.upload(inputs).map_err(|e| e.to_string())?;
    let results = session.execute(&on_device).map_err(|e| e.to_string())?;
    let outputs = session.readback(&results).map_err(|e| e.to_string())?;
    drop(results);
    // Pools and caches are warm after a second run.
    session.execute(&on_device).map_err(|e| e.to_string())?;
    let results = session.execute(&on_device).map_err(|e| e.to_string())?;
    let stats = session.stats();
    drop((on_device, results));
    let leaks = session.close();
    let (counts, steady) = (stats.counts, stats.steady_state);
    let created = steady.buffers_created + steady.bind_groups_created + steady.pipelines_created;
    let leaks = leaks.buffers_alive + leaks.bytes_alive + leaks.unfreed_allocations;
    let cost = [counts.dispatches, counts.copies, counts.transfers, counts.submits, created, leaks];
    Ok(Measured { outputs, cost })
}
