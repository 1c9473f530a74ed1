//! Sessions and what they run at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::device::Device;
use crate::model::Model;
use crate::options::{Options, options_of};
use crate::program::Program;
use crate::status::{Failure, guard};
use crate::structs::{free, give, object, slice_mut, write_sized};
use crate::tensor::{Place, Results, Tensor, inputs_of, places_of};

/// A model with the memory of its runs. Threads may share it: one call runs at a time.
pub struct Session {
    pub(crate) session: SharedSession,
}

/// Runs that were submitted read their results back through it.
pub(crate) type SharedSession = Arc<Mutex<monopour_runtime::Session>>;

pub(crate) fn lock(session: &SharedSession) -> MutexGuard<'_, monopour_runtime::Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shared(session: monopour_runtime::Session) -> Session {
    Session { session: Arc::new(Mutex::new(session)) }
}

/// Loads a program on a device, as a model of its own. `options` may be null. The session keeps what it needs of both.
///
/// # Safety
/// `device` and `program` are a device and a program; `options` is null or a `monopour_options` whose `size` is set;
/// `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_session_load(
    device: *const Device,
    program: *const Program,
    options: *const Options,
    out: *mut *mut Session,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let device = unsafe { object(device, "device") }?;
        // SAFETY: the caller's word.
        let program = unsafe { object(program, "program") }?;
        // SAFETY: the caller's word.
        let options = unsafe { options_of(options) }?;
        let load = || {
            let session = monopour_runtime::Session::load(&device.device, program.program.clone(), &options)?;
            Ok(shared(session))
        };
        // SAFETY: the caller's word.
        unsafe { give(out, load) }
    })
}

/// A further session of a model, which it shares kernels and constants with. Of the options, which may be null, the
/// form of the host function is the model's, and the limit of bytes is of this session alone.
///
/// # Safety
/// `model` is a model; `options` is null or a `monopour_options` whose `size` is set; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_session_new(
    model: *const Model,
    options: *const Options,
    out: *mut *mut Session,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let model = unsafe { object(model, "model") }?;
        // SAFETY: the caller's word.
        let options = unsafe { options_of(options) }?;
        let new = || Ok(shared(monopour_runtime::Session::new(&model.model, &options)?));
        // SAFETY: the caller's word.
        unsafe { give(out, new) }
    })
}

/// Runs the program on its inputs, in their order, and waits for the results.
///
/// # Safety
/// `session` is a session; `inputs` points to `inputs_len` tensors whose `size` is set and whose pointers hold what
/// they say; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_session_run(
    session: *const Session,
    inputs: *const Tensor,
    inputs_len: usize,
    out: *mut *mut Results,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let session = unsafe { object(session, "session") }?;
        // SAFETY: the caller's word.
        let given = unsafe { inputs_of(inputs, inputs_len) }?;
        let run = || {
            let mut session = lock(&session.session);
            let inputs = session.upload_from(&given)?;
            let outputs = session.execute(&inputs)?;
            Ok(Results::new(session.readback(&outputs)?))
        };
        // SAFETY: the caller's word.
        unsafe { give(out, run) }
    })
}

/// As `monopour_session_run`, with each result in memory of the caller: the places are in the order of the results.
///
/// # Safety
/// As `monopour_session_run`; `places` points to `places_len` places whose `size` is set, and whose pointers are null
/// or point to as much as they say, which no one else reads or writes meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_session_run_into(
    session: *const Session,
    inputs: *const Tensor,
    inputs_len: usize,
    places: *mut Place,
    places_len: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let session = unsafe { object(session, "session") }?;
        // SAFETY: the caller's word.
        let given = unsafe { inputs_of(inputs, inputs_len) }?;
        // SAFETY: the caller's word.
        let places = unsafe { places_of(places, places_len) }?;
        let mut session = lock(&session.session);
        let ranks: Vec<usize> = session.signature().results.iter().map(|result| result.shape.len()).collect();
        if places.iter().zip(ranks).any(|((_, place), rank)| !place.shape.is_null() && place.rank < rank) {
            return Err(Failure::argument("a place has no room for the sizes of its result"));
        }
        let mut memory = Vec::with_capacity(places.len());
        for (_, place) in &places {
            // SAFETY: the caller's word.
            memory.push(unsafe { slice_mut(place.data, place.bytes, "a place") }?);
        }
        let inputs = session.upload_from(&given)?;
        let outputs = session.execute(&inputs)?;
        session.readback_into(&outputs, &mut memory)?;
        for ((at, place), output) in places.into_iter().zip(outputs) {
            let (bytes, shape) = (output.size_bytes() as usize, output.shape());
            if !place.shape.is_null() {
                // SAFETY: the caller's word, for `place.rank` sizes.
                unsafe { slice_mut(place.shape, place.rank, "a shape") }?[..shape.len()].copy_from_slice(shape);
            }
            // SAFETY: the caller's word.
            unsafe { write_sized(at, Place { bytes, rank: shape.len(), ..place }) }?;
        }
        Ok(())
    })
}

/// Frees a session. Its runs go on.
///
/// # Safety
/// `session` is null, or a session that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_session_free(session: *mut Session) {
    // SAFETY: the caller's word.
    unsafe { free(session) };
}
