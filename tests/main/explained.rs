//! `explain` says before a run what the run counts.

use crate::backend::to_runtime;
use crate::host::devices;
use monopour::explain::{self, Explanation, KnownInput};
use monopour::runtime::{HostTensor, Options, RunCounts, Session};
use monopour::{CompileOptions, compile};
use monopour_testkit::random::seeds;
use monopour_testkit::text::Input;
use monopour_testkit::{generate_graphs, generate_guards};
use std::sync::Arc;

/// The sizes and numbers of inputs.
fn known(inputs: &[HostTensor]) -> Vec<KnownInput> {
    let of = |input: &HostTensor| {
        let mut bits = [0; 8];
        let data = input.data();
        if data.len() <= 8 {
            bits[..data.len()].copy_from_slice(data);
        }
        KnownInput {
            shape: input.shape().iter().map(|size| Some(*size)).collect(),
            bits: (data.len() <= 8).then(|| u64::from_le_bytes(bits)),
        }
    };
    inputs.iter().map(of).collect()
}

/// Copies, their bytes, allocations and fresh bytes; `None` where a run decides.
fn counted(explained: &Explanation) -> [Option<u64>; 4] {
    let copies = explained.copies.iter().map(|copy| copy.times).sum();
    let bytes = explained.copies.iter().map(|copy| copy.total_bytes).sum();
    let allocations = explained.allocations.iter().map(|a| a.times).sum();
    [copies, bytes, allocations, explained.fresh_bytes]
}

/// One of the programs of a seed: graphs, with dynamic sizes and other types, and guards.
pub fn program(seed: u64) -> (String, Vec<Input>) {
    let ops = 3 + (seed % 11) as usize;
    match seed % 4 {
        0 => generate_graphs::graph(seed, ops),
        1 | 2 => generate_graphs::graph_with(seed, ops, generate_graphs::Features::EVERYTHING),
        _ => generate_guards::program(seed, ops),
    }
}

#[test]
fn what_is_explained_is_what_random_programs_count() {
    let (mut compared, mut decided_by_a_run, mut copies) = (0, 0, 0);
    for seed in seeds(30, 1000) {
        let (text, inputs) = program(seed);
        let values: Vec<_> = inputs.iter().zip(seed..).map(|(input, s)| to_runtime(&input.values(s))).collect();
        // Every third program may overwrite all that it can.
        let donate: Vec<String> =
            (0..inputs.len()).filter(|_| seed.is_multiple_of(3)).map(|i| format!("arg{i}")).collect();
        for (device, target) in devices() {
            let compiled = |donate: &[String]| {
                let options =
                    CompileOptions { targets: vec![target.clone()], donate: donate.to_vec(), ..Default::default() };
                compile(text.as_bytes(), "random.mlir", &options)
            };
            // A number cannot be donated.
            let Ok(compiled) = compiled(&donate).or_else(|_| compiled(&[])) else { continue };
            let program = Arc::new(compiled.program);
            let explained = explain::explain_for(&program, &known(&values)).remove(0);
            let mut session = Session::load(&device, program, &Options { threads: 2, ..Options::default() }).unwrap();
            // A program that guards ends such a run early.
            if (0..3).any(|_| session.run(&values).is_err()) {
                continue;
            }
            let stats = session.stats();
            let RunCounts { copies: made, copied_bytes, allocations, fresh_bytes, .. } = stats.counts;
            let made = [made, copied_bytes, allocations, fresh_bytes];
            for (said, counted) in counted(&explained).into_iter().zip(made) {
                assert!(
                    said.is_none_or(|said| said == counted),
                    "seed {seed} on {}: {:?} explained, {made:?} counted\n{text}\n{explained:#?}",
                    device.name(),
                    self::counted(&explained)
                );
                decided_by_a_run += usize::from(said.is_none());
            }
            assert_eq!(stats.bounds, explained.bounds);
            let least = explained.bounds;
            assert!(
                least.copies <= made[0] && least.copied_bytes <= made[1],
                "seed {seed}: {least:?}, {made:?}\n{text}"
            );
            assert!(least.any_order_bytes <= least.peak_bytes, "seed {seed}: {least:?}");
            let below = |step: &explain::Step| step.bound_bytes <= step.live_bytes;
            assert!(explained.memory_over_time.iter().all(below), "seed {seed}: {explained:#?}\n{text}");
            compared += made.len();
            copies += made[0];
        }
    }
    println!("{compared} numbers compared, {decided_by_a_run} decided by a run, {copies} copies");
    assert!(compared > 0 && decided_by_a_run * 10 <= compared, "{decided_by_a_run} of {compared} numbers are open");
}

/// Inputs that are copied into parts that lie apart cost a copy each; one that is copied over the other may save its bytes.
#[test]
fn copies_of_inputs_into_parts_are_bounded() {
    let program = |second: u64| {
        format!(
            "func.func @main(%x: tensor<12x8xf32>, %a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<12x8xf32> {{
  %one = tensor.insert_slice %a into %x[0, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<12x8xf32>
  %two = tensor.insert_slice %b into %one[{second}, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<12x8xf32>
  return %two : tensor<12x8xf32>
}}"
        )
    };
    for (_, target) in devices() {
        for (second, least) in [(8, (2, 256)), (4, (2, 256)), (2, (1, 128))] {
            let options =
                CompileOptions { targets: vec![target.clone()], donate: vec!["arg0".to_owned()], ..Default::default() };
            let compiled = compile(program(second).as_bytes(), "parts.mlir", &options).unwrap();
            let bounds = explain::explain(&compiled.program)[0].bounds;
            assert_eq!((bounds.copies, bounds.copied_bytes), least, "at {second}: {bounds:?}");
        }
    }
}

/// The parts of a run's memory are all that a session takes from the device.
#[test]
fn memory_by_use_is_all_of_it() {
    let mut compared = 0;
    for seed in seeds(12, 300) {
        let (text, inputs) = generate_graphs::graph(seed, 2 + (seed % 9) as usize);
        let values: Vec<_> = inputs.iter().zip(seed..).map(|(input, s)| to_runtime(&input.values(s))).collect();
        let donate: Vec<String> =
            (0..inputs.len()).filter(|_| seed.is_multiple_of(2)).map(|i| format!("arg{i}")).collect();
        for (device, target) in devices() {
            let options =
                CompileOptions { targets: vec![target.clone()], donate: donate.clone(), ..Default::default() };
            let Ok(compiled) = compile(text.as_bytes(), "random.mlir", &options) else { continue };
            let mut session =
                Session::load(&device, Arc::new(compiled.program), &Options { threads: 2, ..Options::default() })
                    .unwrap();
            let on_device = session.upload(&values).unwrap();
            let results = session.execute(&on_device).unwrap();
            let stats = session.stats();
            let m = stats.memory;
            // Loops and branches return what they took before the end: what is left is the rest.
            if m.pool == 0 && stats.counts.scalar_reads == 0 {
                let sum = m.inputs + m.constants + m.results + m.arena + m.staging;
                // A donated input that no op needs returns to the pool, and may become a result.
                let donates = !donate.is_empty() && sum > stats.peak_device_bytes;
                assert!(donates || sum == stats.peak_device_bytes, "seed {seed} on {}: {m:?}\n{text}", device.name());
                compared += 1;
            }
            drop(results);
        }
    }
    assert!(compared > 0, "no program was compared");
}

/// 500 dispatches in layers of two, as `--json` prints them and as a page.
#[test]
fn a_page_of_500_dispatches_is_small_and_whole() {
    let mut body = String::new();
    for i in 0..250 {
        let x = if i == 0 { "%x".to_owned() } else { format!("%t{}", i - 1) };
        body += &format!(
            "  %m{i} = linalg.matmul ins({x}, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%y : tensor<4x6xf32>) -> tensor<4x6xf32>\n  \
             %t{i} = linalg.matmul ins(%m{i}, %v : tensor<4x6xf32>, tensor<6x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>\n"
        );
    }
    let text = format!(
        "func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %v: tensor<6x8xf32>) -> tensor<4x8xf32> {{\n  \
         %c = arith.constant 0.0 : f32\n  %e = tensor.empty() : tensor<4x6xf32>\n  %f = tensor.empty() : tensor<4x8xf32>\n  \
         %y = linalg.fill ins(%c : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>\n  \
         %z = linalg.fill ins(%c : f32) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>\n{body}  return %t249 : tensor<4x8xf32>\n}}\n"
    );
    let (_, target) = devices().remove(0);
    let options = CompileOptions { targets: vec![target], ..Default::default() };
    let program = compile(text.as_bytes(), "a<b>.mlir", &options).unwrap_or_else(|e| panic!("{e}")).program;
    let explained = explain::explain(&program);
    let page = explain::page("a<b>.mlir", &explained).unwrap();
    assert_eq!(explained[0].memory_over_time.len(), 500);
    assert!(explained[0].layers.iter().any(|layer| layer.times * layer.steps > 450), "{:?}", explained[0].layers);
    assert!(page.len() <= 1 << 20, "{} bytes", page.len());
    // It requests nothing.
    for word in ["http:", "https:", "src=", "href=", "@import", "fetch(", "url("] {
        assert!(!page.contains(word), "{word}");
    }
    // Its numbers are those of `--json`.
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data, serde_json::json!({ "variants": explained }));
    // Without the script the tables have each step.
    assert_eq!(page.matches("<tr data-step=").count(), 500);
    let peak = explained[0].memory_over_time.iter().map(|step| step.live_bytes).max().unwrap();
    assert!(page.contains(&format!("{peak} B")) && page.contains("more times the 2 steps above"), "{peak}");
}
