//! Poisoned buffers show what reads them before their first write or behind their last use.

use crate::host::{devices, f32s, ramp};
use crate::stored::trusted;
use monopour::program::Program;
use monopour::program::host::{HostBlock, HostOp, RuntimeFunction};
use monopour::runtime::{Device, HostForm, HostTensor, Options, Session};
use monopour::{CompileOptions, TargetDescription, compile};
use std::sync::Arc;

const T: &str = "tensor<64x64xf32>";

/// Three products in a row, each smaller than the one before: the first two are transients.
fn products() -> String {
    let ty = |k: usize| format!("tensor<64x{}xf32>", 64 - 16 * k);
    let product = |k: usize| {
        let (from, to, w) = (ty(k), ty(k + 1), format!("tensor<{}x{}xf32>", 64 - 16 * k, 48 - 16 * k));
        format!(
            "%s{k} = tensor.extract_slice %w[0, 0] [{}, {}] [1, 1] : {T} to {w}\n%e{k} = tensor.empty() : {to}\n\
             %f{k} = linalg.fill ins(%z : f32) outs(%e{k} : {to}) -> {to}\n\
             %{} = linalg.matmul ins(%{k}, %s{k} : {from}, {w}) outs(%f{k} : {to}) -> {to}\n",
            64 - 16 * k,
            48 - 16 * k,
            k + 1
        )
    };
    let body: String = (0..3).map(product).collect();
    format!(
        "func.func @main(%0: {T}, %w: {T}) -> {} {{\n%z = arith.constant 0.0 : f32\n{body}return %3 : {}\n}}\n",
        ty(3),
        ty(3)
    )
}

fn compiled(text: &str, target: &TargetDescription, poison: bool) -> Program {
    let options = CompileOptions { targets: vec![target.clone()], poison, ..Default::default() };
    compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}")).program
}

fn run(device: &Device, program: Program, inputs: &[HostTensor]) -> HostTensor {
    let options = Options { host: HostForm::Data, ..Options::default() };
    let mut session = Session::load(device, Arc::new(program), &options).unwrap_or_else(|e| panic!("{e}"));
    let mut last = session.run(inputs).unwrap_or_else(|e| panic!("{e}"));
    last.remove(0)
}

/// Whether an op calls the function.
fn calls(op: &HostOp, wanted: RuntimeFunction) -> bool {
    matches!(op, HostOp::Call { function, .. } if *function == wanted)
}

/// Lets a fill come one dispatch earlier, before the arguments that this pushes; false if there is none.
fn fill_early(block: &mut HostBlock, fill: usize) -> bool {
    let is_dispatch = |at: &usize| calls(&block.ops[*at], RuntimeFunction::Dispatch);
    let Some(dispatch) = (0..fill).rev().find(is_dispatch) else { return false };
    let first = (0..dispatch).rev().find(is_dispatch).map_or(0, |at| at + 1);
    // Behind what gives its arguments.
    let HostOp::Call { arguments, .. } = &block.ops[fill] else { return false };
    let gives = |op: &HostOp| match op {
        HostOp::Call { result, .. } => result.is_some_and(|result| arguments.contains(&result)),
        HostOp::Scalar { result, .. } => arguments.contains(result),
        _ => false,
    };
    let given = block.ops.iter().rposition(gives).map_or(0, |at| at + 1);
    if given > dispatch {
        return false;
    }
    let op = block.ops.remove(fill);
    block.ops.insert(first.max(given), op);
    true
}

/// A fault of the plan: a place of the arena ends one dispatch too early, and nothing else takes it. All is right without
/// poison; with it the result is no number.
#[test]
fn a_buffer_that_ends_too_early_is_found() {
    let inputs = [f32s(&[64, 64], &ramp(64 * 64)), f32s(&[64, 64], &ramp(64 * 64))];
    for (device, target) in devices() {
        let right = run(&device, compiled(&products(), &target, false), &inputs);
        let poisoned = compiled(&products(), &target, true);
        assert_eq!(run(&device, poisoned.clone(), &inputs), right);
        let block = |program: &Program| program.variants[0].host_data.blocks[0].clone();
        let fills: Vec<usize> = (0..block(&poisoned).ops.len())
            .filter(|at| calls(&block(&poisoned).ops[*at], RuntimeFunction::Fill))
            .collect();
        assert!(fills.len() >= 4, "before and behind each of two transients: {fills:?}");
        let found = fills.iter().filter(|fill| {
            let mut program = poisoned.clone();
            fill_early(&mut program.variants[0].host_data.blocks[0], **fill)
                && run(&device, trusted(program), &inputs).to_f64().iter().any(|number| number.is_nan())
        });
        // The other fills are those before the first write.
        assert_eq!(found.count(), 2, "{target:?}, {fills:?}");
    }
}

/// The rows of a product whose factor was never written there are what the buffer held before; poisoned, they are no numbers.
#[test]
fn a_buffer_that_is_read_before_its_first_write_is_found() {
    const HALF: &str = "tensor<32x64xf32>";
    let text = format!(
        "func.func @main(%x: {HALF}, %w: {T}) -> {T} {{\n%z = arith.constant 0.0 : f32\n%e = tensor.empty() : {T}\n\
         %p = tensor.insert_slice %x into %e[0, 0] [32, 64] [1, 1] : {HALF} into {T}\n\
         %u = tensor.empty() : {T}\n%f = linalg.fill ins(%z : f32) outs(%u : {T}) -> {T}\n\
         %s = linalg.matmul ins(%p, %w : {T}, {T}) outs(%f : {T}) -> {T}\nreturn %s : {T}\n}}\n"
    );
    let inputs = [f32s(&[32, 64], &ramp(32 * 64)), f32s(&[64, 64], &ramp(64 * 64))];
    for (device, target) in devices() {
        let result = run(&device, compiled(&text, &target, true), &inputs).to_f64();
        let (written, open) = result.split_at(32 * 64);
        assert!(written.iter().all(|n| n.is_finite()) && open.iter().all(|n| n.is_nan()), "{target:?}");
    }
}

/// On a GPU this was a panic of the compiler: memory of a tile that nothing writes.
#[test]
fn undefined_contents_can_be_read() {
    let text = format!(
        "func.func @main(%x: {T}) -> {T} {{\n%u = tensor.empty() : {T}\n\
         %s = linalg.add ins(%x, %u : {T}, {T}) outs(%u : {T}) -> {T}\nreturn %s : {T}\n}}\n"
    );
    let input = [f32s(&[64, 64], &ramp(64 * 64))];
    for (device, target) in devices() {
        assert_eq!(run(&device, compiled(&text, &target, false), &input).shape(), [64, 64]);
    }
}
