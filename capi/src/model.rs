//! Models.

use std::sync::Arc;

use crate::device::Device;
use crate::options::{Options, options_of};
use crate::program::Program;
use crate::status::guard;
use crate::structs::{free, give, object};

/// A program on a device: kernels are built and constants are there once, for any number of sessions on any threads.
pub struct Model {
    pub(crate) model: Arc<monopour_runtime::Model>,
}

/// Loads a program on a device. Of the options, which may be null, the form of the host function counts, and the limit
/// of bytes, for the model with all of its sessions. The model keeps what it needs of both.
///
/// # Safety
/// `device` and `program` are a device and a program; `options` is null or a `monopour_options` whose `size` is set;
/// `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_model_load(
    device: *const Device,
    program: *const Program,
    options: *const Options,
    out: *mut *mut Model,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let device = unsafe { object(device, "device") }?;
        // SAFETY: the caller's word.
        let program = unsafe { object(program, "program") }?;
        // SAFETY: the caller's word.
        let options = unsafe { options_of(options) }?;
        let load = || {
            let model = monopour_runtime::Model::load(&device.device, program.program.clone(), &options)?;
            Ok(Model { model: Arc::new(model) })
        };
        // SAFETY: the caller's word.
        unsafe { give(out, load) }
    })
}

/// Bytes that the model and all of its sessions hold on the device; 0 of null.
///
/// # Safety
/// `model` is null or a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_model_used_bytes(model: *const Model) -> u64 {
    // SAFETY: the caller's word.
    unsafe { model.as_ref() }.map_or(0, |model| model.model.used_bytes())
}

/// Frees a model. Its sessions go on.
///
/// # Safety
/// `model` is null, or a model that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_model_free(model: *mut Model) {
    // SAFETY: the caller's word.
    unsafe { free(model) };
}
