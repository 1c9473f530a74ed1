//! Host time per dispatch: chains of small products, recorded and submitted, beside a bare loop over the device API.
//!
//! `cargo bench -p monopour-runtime`. Both sides have one encoder, one pass, one pipeline and prepared bind groups, and both are
//! timed until the submission returns; the device works outside of the times. Printed are medians of chains, by dispatch.
//! From the third on, a chain repeats what the session has noted and kept of the one before, in both forms of the host function.
//! `-- native` runs that kind alone, for a profile; so do `bare` and `data`.
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

#[allow(dead_code, reason = "shared with the tests")]
#[path = "../tests/runtime/engine.rs"]
mod engine;
#[allow(dead_code, reason = "shared with the tests")]
#[path = "../tests/runtime/support.rs"]
mod support;
#[path = "../tests/runtime/trust.rs"]
mod trust;

use std::time::{Duration, Instant};

use engine::{Engine, engine};
use monopour_contract::RuntimeFunction as F;
use monopour_program::*;
use monopour_runtime::{BufferSlice, HostForm, Options, RecordInput, Session, wgpu};
use support::*;

/// Rows and columns of the factors.
const SIDE: u64 = 16;
const BYTES: u64 = 4 * SIDE * SIDE;
/// What is timed.
const KINDS: [&str; 3] = ["bare", "native", "data"];
/// Timed chains, and those before.
const CHAINS: usize = 301;
const WARM: usize = 20;

const PRODUCT: &str = "
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
@compute @workgroup_size(16, 16)
fn product(@builtin(local_invocation_id) id: vec3<u32>) {
    var sum = 0.0;
    for (var k = 0u; k < 16u; k++) { sum += a[16u * id.y + k] * b[16u * k + id.x]; }
    c[16u * id.y + id.x] = sum;
}
";

/// A chain of products as data and as C.
fn chain(dispatches: u64) -> Option<Program> {
    let mut code = Code::constants(&[0, BYTES, 1, 2 * BYTES]);
    let (x, w) = (code.call(0, F::Input, &[0]), code.call(0, F::Constant, &[0]));
    let (t, y) = (code.call(0, F::Arena, &[3]), code.call(0, F::Alloc, &[1]));
    let mut c =
        "void entry(i64 cx) { i64 x = input(0), w = constant(0), t = arena(2048), y = alloc(1024);\n".to_owned();
    let mut from = ((x, "x"), 0);
    for n in 0..dispatches {
        let to = if n + 1 == dispatches { ((y, "y"), 0) } else { ((t, "t"), n as u32 % 2) };
        for ((handle, name), half) in [from, ((w, "w"), 0), to] {
            code.call(0, F::Arg, &[handle, half, 1]);
            c += &format!("arg({name}, {}, 1024); ", 1024 * half);
        }
        code.call(0, F::Dispatch, &[0, 2, 2, 2]);
        c += "dispatch(0, 1, 1, 1);\n";
        from = to;
    }
    code.call(0, F::Result, &[0, y]);
    let mut kernel = gpu_kernel("product", PRODUCT, &[Access::ReadWrite, Access::Read, Access::ReadWrite]);
    if let Kernel::Gpu(kernel) = &mut kernel {
        kernel.bindings[0].is_written = false;
    }
    let mut variant = gpu_variant(compile_c(&format!("{c} result(0, y); }}"), &["-fPIC"])?, vec![kernel]);
    variant.host_data = code.0;
    let mut program = program(&[SIDE * SIDE], &[SIDE * SIDE], variant);
    let data: Vec<u8> = identity().iter().flat_map(|value| value.to_le_bytes()).collect();
    let shape = vec![SIDE * SIDE];
    program.constants.push(Constant { name: "w".into(), dtype: DType::F32, shape, data: data.into() });
    Some(program)
}

/// The second factor of every product.
fn identity() -> [f32; 256] {
    std::array::from_fn(|i| if i.is_multiple_of(17) { 1.0 } else { 0.0 })
}

/// The median of the times of a chain, per dispatch, in microseconds.
fn median(mut times: Vec<Duration>, dispatches: u64) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6 / dispatches as f64
}

/// One timed chain after another, between which the device becomes idle.
struct Timed<'a> {
    engine: &'a Engine,
    record: Box<dyn FnMut(&mut wgpu::CommandEncoder) + 'a>,
    times: Vec<Duration>,
}

impl Timed<'_> {
    fn once(&mut self) {
        let start = Instant::now();
        let mut encoder = self.engine.device.create_command_encoder(&Default::default());
        (self.record)(&mut encoder);
        self.engine.queue.submit([encoder.finish()]);
        self.times.push(start.elapsed());
        // Twice: what a chain leaves to free is not for the next one.
        for _ in 0..2 {
            self.engine.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
            self.engine.queue.submit([]);
        }
        self.engine.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    }
}

/// The same chain by hand.
fn bare<'a>(engine: &'a Engine, (x, y): (&wgpu::Buffer, &wgpu::Buffer), dispatches: u64) -> Timed<'a> {
    let source = wgpu::ShaderSource::Wgsl(PRODUCT.into());
    let module = engine.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
    let pipeline = engine.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let layout = pipeline.get_bind_group_layout(0);
    let (w, t) = (engine.buffer(&identity()), engine.buffer(&[0.0; 512]));
    let group = |from: (&wgpu::Buffer, u64), to: (&wgpu::Buffer, u64)| {
        let part = |(buffer, offset)| {
            wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer,
                offset,
                size: std::num::NonZeroU64::new(BYTES),
            })
        };
        let entries = [from, (&w, 0), to];
        let entries: Vec<_> = (0..)
            .zip(entries)
            .map(|(binding, range)| wgpu::BindGroupEntry { binding, resource: part(range) })
            .collect();
        engine.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries })
    };
    let (low, high) = ((&t, 0), (&t, BYTES));
    let (first, up, down) = (group((x, 0), low), group(low, high), group(high, low));
    let last = if dispatches.is_multiple_of(2) { group(low, (y, 0)) } else { group(high, (y, 0)) };
    let groups: Vec<_> = (0..dispatches)
        .map(|n| match n {
            0 => first.clone(),
            n if n + 1 == dispatches => last.clone(),
            n if n % 2 == 1 => up.clone(),
            _ => down.clone(),
        })
        .collect();
    let record = move |encoder: &mut wgpu::CommandEncoder| {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        for group in &groups {
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        }
    };
    Timed { engine, record: Box::new(record), times: Vec::new() }
}

fn ours<'a>(
    engine: &'a Engine,
    program: &Program,
    (x, y): (&wgpu::Buffer, &wgpu::Buffer),
    host: HostForm,
) -> Timed<'a> {
    let options = Options { host, ..Options::default() };
    let mut session = Session::load(&engine.device(), trust::trusted(program.clone()), &options).unwrap();
    assert_eq!(session.host_form(), host);
    let shape = vec![SIDE * SIDE];
    let inputs = [RecordInput::Buffer { dtype: DType::F32, shape, slice: BufferSlice::whole(x) }];
    let places = [Some(BufferSlice::whole(y))];
    let record = move |encoder: &mut wgpu::CommandEncoder| {
        session.record(encoder, &inputs, &places).unwrap();
    };
    Timed { engine, record: Box::new(record), times: Vec::new() }
}

fn main() {
    let Some(engine) = engine() else { return };
    println!("{}: us of host time per dispatch", engine.device.adapter_info().name);
    for dispatches in [100, 1000] {
        let Some(program) = chain(dispatches) else { return };
        let values: Vec<f32> = (0..256).map(|i| i as f32).collect();
        let x = engine.buffer(&values);
        let results = [0; 3].map(|_| engine.buffer(&[0.0; 256]));
        let [y0, y1, y2] = &results;
        let mut all = [
            bare(&engine, (&x, y0), dispatches),
            ours(&engine, &program, (&x, y1), HostForm::Native),
            ours(&engine, &program, (&x, y2), HostForm::Data),
        ];
        if let Some(at) = KINDS.iter().position(|kind| std::env::args().any(|arg| arg == *kind)) {
            (0..CHAINS).for_each(|_| all[at].once());
            println!("{dispatches:>5}: {} {:.2}", KINDS[at], median(all[at].times.clone(), dispatches));
            continue;
        }
        // In turn, so that what else the machine does hits all alike.
        (0..WARM).for_each(|_| all.iter_mut().for_each(Timed::once));
        all.iter_mut().for_each(|timed| timed.times.clear());
        (0..CHAINS).for_each(|_| all.iter_mut().for_each(Timed::once));
        let [bare, native, data] = all.map(|timed| median(timed.times, dispatches));
        assert!(results.iter().all(|y| engine.read(y) == values));
        let (n, d) = (native / bare, data / bare);
        println!("{dispatches:>5}: bare {bare:.2}, native {native:.2} ({n:.2}), data {data:.2} ({d:.2})");
    }
}
