//! A program loaded on a device: its kernels and constants, once for all sessions.

use std::sync::Arc;

use monopour_program::{Program, Signature, Variant};

use crate::buffer::GpuBuffer;
use crate::choice::{Choice, choose, runs_native_kernels};
use crate::device::{Device, Opened};
use crate::error::Error;
use crate::executor::Constant;
use crate::ffi::{self, HostFunction, NativeModule};
use crate::host_function::{HostForm, LoadedHost};
use crate::interpret::Interpreter;
use crate::kernels::{self, Kernels};
use crate::memory::HostMemory;
use crate::pool::{Loan, Pool, SharedAccount};
use crate::session::Options;
use crate::sites::Turns;
use crate::spans::Work;

/// The most steps of a host function that no one vouched for: some seconds.
const UNTRUSTED_STEPS: u64 = 1 << 28;

/// A program on a device: its kernels are built and its constants uploaded once, however many sessions run it.
///
/// Sessions share it by `Arc`, on any threads: [`Session::new`](crate::Session::new).
pub struct Model {
    device: Device,
    program: Arc<Program>,
    variant: usize,
    form: HostForm,
    is_trusted: bool,
    module: Option<Arc<NativeModule>>,
    parts: Parts,
    account: SharedAccount,
}

/// What a model keeps on its device.
pub(crate) enum Parts {
    Gpu { kernels: Arc<Kernels>, constants: Vec<Constant<GpuBuffer>>, pool: Arc<Pool<GpuBuffer>> },
    Cpu { constants: Vec<Constant<HostMemory>>, pool: Arc<Pool<HostMemory>> },
}

impl Model {
    /// Loads the best variant of `program` that fits `device`: host function, constants, pipelines.
    ///
    /// Of the options, [`Options::host`] chooses the form of the host function, and [`Options::memory_limit`] bounds the bytes of
    /// the model with all of its sessions. Native code and SPIR-V are used only if the program is trusted
    /// ([`Program::trust`](fn@Program::trust)); of others the kernels are validated and the host function is interpreted.
    ///
    /// # Errors
    /// [`Error::NoVariant`]; [`Error::Untrusted`], [`Error::Kernel`]; [`Error::NativeCode`], [`Error::UndefinedSymbol`];
    /// [`Error::MemoryLimit`] and the device's errors; a P code for an inconsistent program.
    pub fn load(device: &Device, program: Arc<Program>, options: &Options) -> Result<Model, Error> {
        let work = Work::load(&program.entry, device.name());
        let model = work.within(|| Model::load_variant(device, program, options))?;
        work.loaded(|| model.variant().target.label(), model.form.as_str());
        Ok(model)
    }

    fn load_variant(device: &Device, program: Arc<Program>, options: &Options) -> Result<Model, Error> {
        program.verify()?;
        let is_trusted = program.is_trusted();
        let Choice { variant, form } = choose(device, &program, (options.host, is_trusted))?;
        let chosen = &program.variants[variant];
        let is_native = form == HostForm::Native || runs_native_kernels(chosen);
        let module = is_native.then(|| ffi::load(&chosen.host)).transpose()?;
        let account = device.account.part(options.memory_limit);
        let parts = match &device.kind {
            Opened::Gpu(gpu) => {
                let pool = Pool::new(account.clone());
                let (kernels, constants) = kernels::load(gpu, (&program, chosen, is_trusted), (&pool, &account))?;
                Parts::Gpu { kernels: Arc::new(kernels), constants, pool }
            }
            Opened::Cpu => {
                let pool = Pool::new(account.clone());
                Parts::Cpu { constants: place_constants(&pool, &program)?, pool }
            }
        };
        Ok(Model { device: device.clone(), program, variant, form, is_trusted, module, parts, account })
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Inputs and results.
    pub fn signature(&self) -> &Signature {
        &self.program.signature
    }

    /// The variant that runs.
    pub fn variant(&self) -> &Variant {
        &self.program.variants[self.variant]
    }

    /// The form of the host function that runs: native code or data.
    pub fn host_form(&self) -> HostForm {
        self.form
    }

    /// Bytes that the model and all of its sessions hold on the device.
    pub fn used_bytes(&self) -> u64 {
        self.account.lock().used
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Counts the dispatches of a session's runs, which are traced if `always`.
    pub(crate) fn turns(&self, always: bool) -> Turns {
        Turns::new((self.program.clone(), self.variant), always)
    }

    /// Work on it, for who listens.
    pub(crate) fn work(&self, kind: impl FnOnce(&str, &str) -> Work) -> Work {
        kind(&self.program.entry, self.device.name())
    }

    pub(crate) fn account(&self) -> &SharedAccount {
        &self.account
    }

    pub(crate) fn module(&self) -> Option<&Arc<NativeModule>> {
        self.module.as_ref()
    }

    /// The host function for one session, whose interpreted runs take at most `steps` steps.
    pub(crate) fn host(&self, steps: Option<u64>) -> Result<LoadedHost, Error> {
        match &self.module {
            Some(module) if self.form == HostForm::Native => {
                Ok(LoadedHost::Native(HostFunction::find(module, &self.variant().host.entry)?))
            }
            _ => {
                let limit = steps.or((!self.is_trusted).then_some(UNTRUSTED_STEPS));
                Ok(LoadedHost::Data(Interpreter::new(self.program.clone(), self.variant, limit)))
            }
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // Nothing keeps what comes back: a pool of its own has no further takers.
        match self {
            Parts::Gpu { pool, .. } => pool.close(),
            Parts::Cpu { pool, .. } => pool.close(),
        }
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let variant = self.variant().target.label();
        f.debug_struct("Model").field("device", &self.device.name()).field("variant", &variant).finish_non_exhaustive()
    }
}

fn place_constants(pool: &Arc<Pool<HostMemory>>, program: &Program) -> Result<Vec<Constant<HostMemory>>, Error> {
    let each = program.constants.iter().map(|constant| {
        let data = constant.data.bytes();
        let bytes = data.len() as u64;
        // Constants of a mapped artifact are used in place.
        let loan = match HostMemory::constant(&constant.data) {
            Some(memory) => Loan::foreign(memory),
            None => {
                let loan = pool.take(bytes, HostMemory::new)?;
                loan.write(data);
                loan
            }
        };
        Ok(Constant { buffer: Arc::new(loan), bytes })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_on_any_thread_share_it() {
        fn shared<T: Send + Sync>() {}
        shared::<Model>();
        shared::<Arc<Model>>();
    }
}
