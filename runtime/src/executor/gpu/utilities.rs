//! The runtime's own kernels: fills, writes of scalars, copies of bytes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use monopour_program::{Access, Binding, GpuFeature, GpuKernel};

use super::{FILL_WORKGROUP, GpuBackend};
use crate::kernels::Kernels;
use crate::pipeline_cache::Pipeline;

const FILL_WGSL: &str = include_str!("../../../../shaders/runtime/fill.wgsl");
const WRITE_WGSL: &str = include_str!("../../../../shaders/runtime/write.wgsl");
/// Parameters of the write kernel.
const WRITE_WORDS: usize = 7;

/// A pipeline of a run.
#[derive(Clone, Copy)]
pub(super) enum PipelineId {
    Kernel(usize),
    Fill(u32),
    Write,
    Copy,
}

const WRITE_NUMBER: u64 = 1 << 62;
const COPY_NUMBER: u64 = 1 << 61;

/// The runtime's own pipelines, each once it is needed.
#[derive(Default)]
pub(super) struct Utilities {
    /// By fill pattern; their numbers follow those of the kernels.
    pub fills: HashMap<u32, (u64, Arc<Pipeline>)>,
    /// Writes a scalar.
    write: Option<Arc<Pipeline>>,
    /// Copies bytes.
    pub copy: Option<Arc<Pipeline>>,
}

impl Utilities {
    /// A prepared pipeline, of a kernel or a utility.
    pub fn prepared<'a>(&'a self, kernels: &'a Kernels, id: PipelineId) -> &'a Pipeline {
        let utility = match id {
            PipelineId::Kernel(index) => return &kernels.pipelines[index],
            PipelineId::Fill(pattern) => return &self.fills[&pattern].1,
            PipelineId::Copy => &self.copy,
            PipelineId::Write => &self.write,
        };
        utility.as_ref().expect("invariant: prepared before it is used")
    }

    /// Its number.
    pub fn number(&self, id: PipelineId) -> u64 {
        match id {
            PipelineId::Kernel(index) => index as u64,
            PipelineId::Fill(pattern) => self.fills[&pattern].0,
            PipelineId::Copy => COPY_NUMBER,
            PipelineId::Write => WRITE_NUMBER,
        }
    }
}

impl GpuBackend {
    /// A utility pipeline of the runtime.
    pub(super) fn utility(
        &mut self,
        name: (&'static str, u32),
        kernel: &GpuKernel,
        constants: &[(&str, f64)],
    ) -> Arc<Pipeline> {
        let start = Instant::now();
        let make = || Pipeline::utility(&self.gpu, kernel, constants);
        let (pipeline, is_new) = self.kernels.utility(name, make);
        self.pipelines_created += u64::from(is_new);
        self.kernels_ms += start.elapsed().as_secs_f64() * 1e3;
        pipeline
    }

    /// Creates the pipeline that writes a scalar.
    pub(super) fn prepare_write(&mut self) {
        if self.utilities.write.is_some() {
            return;
        }
        let kernel = GpuKernel {
            name: "write".into(),
            wgsl: WRITE_WGSL.into(),
            workgroup_size: [1, 1, 1],
            bindings: vec![Binding::of(Access::ReadWrite)],
            scalars: vec![4; WRITE_WORDS],
            ..GpuKernel::default()
        };
        self.utilities.write = Some(self.numbers_utility("write", kernel));
    }

    /// A utility pipeline with parameters as immediates, or in a buffer on devices without them.
    pub(super) fn numbers_utility(&mut self, name: &'static str, mut kernel: GpuKernel) -> Arc<Pipeline> {
        if self.gpu.description.has(GpuFeature::Immediates) {
            kernel.features = vec![GpuFeature::Immediates];
        } else {
            let binding = format!("@group(0) @binding({}) var<uniform>", kernel.bindings.len());
            kernel.wgsl = kernel.wgsl.replace("var<immediate>", &binding);
        }
        self.utility((name, 0), &kernel, &[])
    }

    /// Creates the pipeline that fills with `pattern`.
    pub(super) fn prepare_fill(&mut self, pattern: u32) {
        if self.utilities.fills.contains_key(&pattern) {
            return;
        }
        let kernel = GpuKernel {
            name: "fill".into(),
            wgsl: FILL_WGSL.into(),
            workgroup_size: [FILL_WORKGROUP as u32, 1, 1],
            bindings: vec![Binding::of(Access::Write)],
            ..GpuKernel::default()
        };
        let pipeline = self.utility(("fill", pattern), &kernel, &[("pattern", f64::from(pattern))]);
        let number = (self.kernels.pipelines.len() + self.utilities.fills.len()) as u64;
        self.utilities.fills.insert(pattern, (number, pipeline));
    }
}
