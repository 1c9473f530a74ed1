//! Building the pipelines of a program: each distinct kernel once, on all cores, while constants are uploaded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use monopour_program::{GpuKernel, Kernel, Program, Variant};

use crate::buffer::GpuBuffer;
use crate::device::GpuDevice;
use crate::error::Error;
use crate::executor::Constant;
use crate::executor::gpu::make_buffer;
use crate::pipeline_cache::Pipeline;
use crate::pool::{Pool, SharedAccount};
use crate::upload::Uploader;
use crate::validate::{self, STACK_BYTES};

/// A program's pipelines with those of the runtime that it uses, and their cost: once for all sessions.
#[derive(Debug)]
pub(crate) struct Kernels {
    /// One per kernel, in order.
    pub pipelines: Vec<Pipeline>,
    /// Pipelines of the runtime, by kernel and constant.
    utilities: Mutex<HashMap<(&'static str, u32), Arc<Pipeline>>>,
    /// Number of pipelines created for the program.
    pub count: u64,
    /// Total wall time to do so.
    pub elapsed_ms: f64,
}

impl Kernels {
    /// The pipeline of the runtime with this name and constant, and whether this call created it by `make`.
    pub fn utility(&self, name: (&'static str, u32), make: impl FnOnce() -> Pipeline) -> (Arc<Pipeline>, bool) {
        let mut utilities = self.utilities.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = utilities.get(&name) {
            return (pipeline.clone(), false);
        }
        let pipeline = Arc::new(make());
        utilities.insert(name, pipeline.clone());
        (pipeline, true)
    }
}

/// Constants on a device.
pub(crate) type Constants = Vec<Constant<GpuBuffer>>;

/// Builds kernels on other threads, while this one uploads constants. Those of a program that is not trusted are validated.
///
/// # Errors
/// Those of [`Pipeline::new`], of the first kernel that fails; the device's errors.
pub(crate) fn load(
    gpu: &GpuDevice,
    (program, variant, is_trusted): (&Program, &Variant, bool),
    (pool, account): (&Arc<Pool<GpuBuffer>>, &SharedAccount),
) -> Result<(Kernels, Constants), Error> {
    let kernels = variant.kernels.iter().filter_map(|k| if let Kernel::Gpu(k) = k { Some(k) } else { None });
    let kernels: Vec<&GpuKernel> = kernels.collect();
    std::thread::scope(|scope| {
        let building = std::thread::Builder::new().stack_size(STACK_BYTES);
        let building = building.spawn_scoped(scope, || build(gpu, &kernels, is_trusted));
        let building = building.map_err(|error| Error::native(format!("no thread: {error}")))?;
        let uploaded = gpu.scoped("uploading constants", || upload_constants(gpu, program, (pool, account)));
        let built = match building.join() {
            Ok(built) => built,
            // The device API's own defects, which a file that no one vouches for may find.
            Err(_) if !is_trusted => {
                let what = "the device API cannot translate its kernels".to_owned();
                Err(Error::Kernel { kernel: String::new(), what })
            }
            Err(panic) => std::panic::resume_unwind(panic),
        };
        // A kernel that the device rejects is more specific than an upload that failed beside it.
        built.and_then(|built| Ok((built, uploaded?)))
    })
}

fn upload_constants(
    gpu: &GpuDevice,
    program: &Program,
    (pool, account): (&Arc<Pool<GpuBuffer>>, &SharedAccount),
) -> Result<Constants, Error> {
    let mut uploader = Uploader::new(gpu, account);
    let constants = program.constants.iter().map(|constant| {
        let data = constant.data.bytes();
        let bytes = data.len() as u64;
        let buffer = Arc::new(pool.take(bytes, |bytes| make_buffer(gpu, bytes))?);
        uploader.write(&buffer, data)?;
        Ok(Constant { buffer, bytes })
    });
    let constants = constants.collect::<Result<Constants, Error>>()?;
    if !constants.is_empty() {
        uploader.finish()?;
    }
    Ok(constants)
}

/// Builds the pipelines of `kernels`.
///
/// # Errors
/// Those of [`Pipeline::new`], of the first kernel that fails.
fn build(gpu: &GpuDevice, kernels: &[&GpuKernel], is_trusted: bool) -> Result<Kernels, Error> {
    let start = Instant::now();
    if !is_trusted {
        let checked = on_all_cores(kernels.len(), |n| validate::check(kernels[n]));
        checked.into_iter().collect::<Result<(), Error>>()?;
    }
    let (distinct, positions) = distinct(kernels);
    let made = on_all_cores(distinct.len(), |n| Pipeline::new(gpu, kernels[distinct[n]], is_trusted));
    let made = made.into_iter().collect::<Result<Vec<_>, Error>>()?;
    if let Some(disk) = &gpu.disk_cache
        && !made.is_empty()
    {
        disk.save();
    }
    let count = made.len() as u64;
    let pipelines = positions.into_iter().zip(kernels).map(|(n, kernel)| made[n].of(kernel)).collect();
    let elapsed_ms = start.elapsed().as_secs_f64() * 1e3;
    Ok(Kernels { pipelines, utilities: Mutex::default(), count, elapsed_ms })
}

/// The first of each group of equal kernels, and for each kernel the index of its group. Counts for `--stats` are ignored.
fn distinct(kernels: &[&GpuKernel]) -> (Vec<usize>, Vec<usize>) {
    let (mut first, mut known) = (Vec::new(), HashMap::new());
    let positions = kernels.iter().enumerate().map(|(at, kernel)| {
        let bindings: Vec<_> = kernel.bindings.iter().map(|binding| binding.access.is_written()).collect();
        let kind = (&kernel.name, &kernel.wgsl, &kernel.spirv, kernel.workgroup_size, bindings, &kernel.scalars);
        *known.entry(kind).or_insert_with(|| {
            first.push(at);
            first.len() - 1
        })
    });
    let positions = positions.collect();
    (first, positions)
}

/// `f` of every number below `count`, in order. Error scopes belong to a thread, so that each sees its own errors only.
fn on_all_cores<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(count);
    if threads <= 1 {
        return (0..count).map(f).collect();
    }
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
    let work = || {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= count {
                return;
            }
            let value = f(n);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((n, value));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // A thread less is only slower.
            let _ = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use monopour_program::DispatchCopies;

    #[test]
    fn equal_kernels_are_one_kind_whatever_they_count() {
        let kernel = |wgsl: &str, count: u32| {
            let copies = DispatchCopies { count, ..DispatchCopies::default() };
            GpuKernel { wgsl: wgsl.into(), copies, ..GpuKernel::default() }
        };
        let (a, b, c, d) = (kernel("a", 0), kernel("b", 0), kernel("a", 1), kernel("b", 0));
        assert_eq!(distinct(&[&a, &b, &c, &d]), (vec![0, 1], vec![0, 1, 0, 1]));
        let numbers = GpuKernel { scalars: vec![4], ..a.clone() };
        assert_eq!(distinct(&[&a, &numbers]).0.len(), 2);
    }

    #[test]
    fn results_come_in_order() {
        assert_eq!(on_all_cores(1000, |n| n * n), (0..1000).map(|n| n * n).collect::<Vec<_>>());
        assert!(on_all_cores(0, |n| n).is_empty());
    }
}
