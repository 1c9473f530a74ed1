//! Recording a run into an encoder of the caller.

use std::sync::Arc;

use super::core::{AnyEngine, Core, Memory, bits, check_count, check_places_count};
use crate::buffer::{BufferSlice, GpuBuffer, HostTensor, RecordInput, RecordedResult, check_sizes};
use crate::cancel::Cancel;
use crate::error::Error;
use crate::executor::gpu::GpuBackend;
use crate::executor::{Backend, Engine, Gate, Input, Outcome, Place, Value};
use crate::host_function::LoadedHost;
use crate::spans::Work;
use crate::stats::RunCounts;
use monopour_program::{Signature, TensorDesc};

impl Core {
    /// Records a run: see [`Session::record`](super::Session::record).
    pub fn record(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        inputs: &[RecordInput],
        results: &[Option<BufferSlice>],
    ) -> Result<Vec<RecordedResult>, Error> {
        let signature = self.model.signature();
        check_count(signature.inputs.len(), inputs.len())?;
        check_places_count(signature.results.len(), results.len())?;
        let AnyEngine::Gpu { engine, recording, .. } = &mut self.engine else {
            return Err(Error::Record { what: "its model is on the CPU".into() });
        };
        let described = describe(signature, inputs)?;
        let run = Recording { host: &mut self.host, inputs: described, descs: &signature.results, places: results };
        let work = self.model.work(Work::record);
        let (outcome, counts) = work.within(|| run.record(engine, recording, encoder))?;
        work.ran(&counts);
        self.record.counts = counts;
        Ok(outcome)
    }
}

/// Inputs with their bytes, in the order of the signature.
type Described<'a> = Vec<(&'a TensorDesc, &'a RecordInput, u64)>;

/// Checks the inputs of a run.
fn describe<'a>(signature: &'a Signature, inputs: &'a [RecordInput]) -> Result<Described<'a>, Error> {
    let each = signature.inputs.iter().zip(inputs);
    let described = each.map(|(desc, input)| Ok((desc, input, input.check(desc)?)));
    let described = described.collect::<Result<Described<'_>, Error>>()?;
    check_sizes(signature, |size| inputs.get(size.input as usize)?.size(size.dim))?;
    Ok(described)
}

/// A run to record.
struct Recording<'a> {
    host: &'a mut LoadedHost,
    inputs: Described<'a>,
    descs: &'a [TensorDesc],
    places: &'a [Option<BufferSlice>],
}

impl Recording<'_> {
    fn record(
        self,
        engine: &mut Engine<GpuBackend>,
        memory: &mut Memory,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<(Vec<RecordedResult>, RunCounts), Error> {
        memory.swap(engine);
        engine.backend.begin_recording();
        let gate = engine.backend.gate();
        let outcome = gate.run(|| self.call(engine));
        engine.backend.end_recording(outcome.is_ok().then_some(encoder));
        engine.backend.end_run(&engine.pool.end_run());
        memory.swap(engine);
        outcome
    }

    fn call(self, engine: &mut Engine<GpuBackend>) -> Result<(Vec<RecordedResult>, RunCounts), Error> {
        let Recording { host, inputs, descs, places } = self;
        let mut copied = RunCounts::default();
        let inputs = inputs.into_iter().map(|(desc, input, bytes)| {
            let value = match input {
                RecordInput::Scalar(number) => Value::Scalar(bits(number.data())),
                RecordInput::Buffer { slice, .. } => {
                    let bound = bind(engine, slice, (bytes, desc.donated, &mut copied))?;
                    Value::Buffer(bound)
                }
            };
            Ok(Input { value, bytes, shape: input.shape().to_vec(), donated: desc.donated })
        });
        let inputs = inputs.collect::<Result<Vec<_>, Error>>()?;
        let Outcome { results, mut counts, .. } = engine.call(host, (inputs, descs), &Cancel::default())?;
        counts.copies += copied.copies;
        counts.copied_bytes += copied.copied_bytes;
        let recorded = descs.iter().zip(results).zip(places).map(|((desc, (value, shape)), place)| {
            let scalar = match (value, place) {
                (Value::Scalar(bits), _) => {
                    let bytes = bits.to_le_bytes()[..desc.dtype.size_bytes() as usize].to_vec();
                    Some(HostTensor::new(desc.dtype, shape.clone(), bytes)?)
                }
                (Value::Buffer(_), None) => None,
                (Value::Buffer(result), Some(place)) => {
                    let bytes = shape.iter().copied().fold(desc.dtype.size_bytes(), u64::saturating_mul);
                    engine.backend.copy_out(&result, place, (bytes, &mut counts))?;
                    None
                }
            };
            Ok(RecordedResult { dtype: desc.dtype, shape, scalar })
        });
        let recorded = recorded.collect::<Result<Vec<_>, Error>>()?;
        engine.backend.stage_numbers()?;
        Ok((recorded, counts))
    }
}

/// The place of an input: the caller's, or a copy.
fn bind(
    engine: &mut Engine<GpuBackend>,
    slice: &BufferSlice,
    (bytes, is_donated, counts): (u64, bool, &mut RunCounts),
) -> Result<Place<GpuBuffer>, Error> {
    if let Some(place) = engine.backend.bind(slice, (bytes, is_donated)) {
        return Ok(place);
    }
    let copy = Arc::new(engine.take(bytes)?);
    engine.backend.copy_in(slice, &copy, (bytes, counts))?;
    Ok(Place::own(copy))
}
