//! The child: parses a case, bufferizes it under options derived from the text, verifies, frees the buffers.
//!
//! Answers in lines (`link`): `phase NAME` before each step, then `invalid`, `refused`, `bufferized` or `broken`, with a number or a message.

use crate::link::{self, hash, say};
use monopour_bufferize::{AnalysisHeuristic, FunctionBoundaryTypeConversion, Options, run_one_shot};
use monopour_ir::{Context, Diagnostics, Module, WalkOrder};
use monopour_testkit::random::Rng;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// Serves until the input ends.
pub fn serve() -> ExitCode {
    link::serve(|text| Context::scope(|cx| run(cx, text)))
}

fn run(cx: Context, text: &[u8]) -> String {
    say("phase parse");
    cx.allow_unregistered_dialects(true);
    let module = match Module::parse(cx, text, "fuzz.mlir") {
        Ok(module) => module,
        // One signature: messages of the parser contain names.
        Err(_) => return "invalid 0".to_owned(),
    };
    let mut rng = Rng::new(hash(&text));
    let options = options(&mut rng);
    say("phase bufferize");
    if let Err(errors) = run_one_shot(module.op(), &options) {
        return refused("one-shot-bufferize", &errors);
    }
    say("phase verify");
    if let Err(errors) = module.op().verify_with_diagnostics() {
        return format!("broken invalid result: {} {options:?}", first_line(&errors));
    }
    if options.bufferize_function_boundaries && !options.test_analysis_only && rng.below(2) == 0 {
        say("phase dealloc");
        let freeing = monopour_dealloc::Options { extensions: options.extensions, ..Default::default() };
        if let Err(errors) = monopour_dealloc::run_ownership(module.op(), &freeing) {
            return refused("ownership-based-buffer-deallocation", &errors);
        }
        if let Err(errors) = module.op().verify_with_diagnostics() {
            return format!("broken invalid result of deallocation: {}", first_line(&errors));
        }
    }
    let names: BTreeSet<String> =
        module.op().nested(WalkOrder::Pre).into_iter().map(|op| op.name().to_owned()).collect();
    format!("bufferized {}", hash(&names))
}

fn first_line(errors: &Diagnostics) -> String {
    errors.0.first().map(|d| d.message.replace('\n', " ")).unwrap_or_default()
}

/// A refusal without an error is a defect.
fn refused(pass: &str, errors: &Diagnostics) -> String {
    if !errors.has_errors() {
        return format!("broken {pass} failed without an error");
    }
    let kinds: BTreeSet<(&str, String)> = errors.0.iter().map(|d| (d.code, words(&d.message))).collect();
    format!("refused {}", hash(&kinds))
}

/// The first words of a message: names come later.
fn words(message: &str) -> String {
    message.split_whitespace().take(4).collect::<Vec<_>>().join(" ")
}

/// Options derived from the text, so that a file of the corpus always runs under the same.
fn options(rng: &mut Rng) -> Options {
    if rng.below(4) == 0 {
        return Options::pipeline();
    }
    let mut flag = |percent: u64| rng.below(100) < percent;
    let bufferize_function_boundaries = flag(70);
    let test_analysis_only = flag(15);
    Options {
        allow_return_allocs_from_loops: flag(60),
        allow_unknown_ops: flag(50),
        bufferize_function_boundaries,
        check_parallel_regions: flag(80),
        copy_before_write: !test_analysis_only && flag(15),
        test_analysis_only,
        dump_alias_sets: flag(20),
        print_conflicts: test_analysis_only && flag(30),
        use_encoding_for_memory_space: flag(20),
        extensions: flag(50),
        dialect_filter: if flag(15) { vec!["tensor".to_owned(), "bufferization".to_owned()] } else { vec![] },
        analysis_fuzzer_seed: rng.below(1_000),
        analysis_heuristic: *rng.pick(&[
            AnalysisHeuristic::BottomUp,
            AnalysisHeuristic::TopDown,
            AnalysisHeuristic::BottomUpFromTerminators,
            AnalysisHeuristic::Fuzzer,
        ]),
        function_boundary_type_conversion: *rng.pick(&[
            FunctionBoundaryTypeConversion::Infer,
            FunctionBoundaryTypeConversion::Identity,
            FunctionBoundaryTypeConversion::FullyDynamic,
        ]),
        ..Options::default()
    }
}
