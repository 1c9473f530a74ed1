//! `monopour opt`: mlir-opt with monopour's passes in the place of upstream's.

mod around;

use monopour_bufferize::{AnalysisHeuristic, FunctionBoundaryTypeConversion, Strategy};
use monopour_ir::ops;
use monopour_ir::opt::{OptionKind, OptionSpec, OverridePass, PassOptions, StatisticSpec};
use monopour_ir::{Diagnostic, Diagnostics, Op};
use std::ffi::OsString;

/// Runs mlir-opt's command line and gives its exit status.
pub fn run(args: &[OsString]) -> i32 {
    monopour_ir::opt::run(args, PASSES)
}

/// The replaced passes.
const PASSES: &[OverridePass] = &[
    ONE_SHOT_BUFFERIZE,
    FINALIZING_BUFFERIZE,
    ELIMINATE_EMPTY_TENSORS,
    EMPTY_TENSOR_TO_ALLOC_TENSOR,
    EXPAND_REALLOC,
    OWNERSHIP_BASED_BUFFER_DEALLOCATION,
    BUFFER_DEALLOCATION_SIMPLIFICATION,
    LOWER_DEALLOCATIONS,
    CONVERT_BUFFERIZATION_TO_MEMREF,
    around::BUFFER_HOISTING,
    around::BUFFER_LOOP_HOISTING,
    around::PROMOTE_BUFFERS_TO_STACK,
    around::OPTIMIZE_ALLOCATION_LIVENESS,
    around::COPY_REMOVAL,
    around::BUFFER_RESULTS_TO_OUT_PARAMS,
    around::DROP_EQUIVALENT_BUFFER_RESULTS,
];

const ONE_SHOT_BUFFERIZE: OverridePass = OverridePass {
    argument: "one-shot-bufferize",
    help: "One-Shot Bufferize",
    options: BUFFERIZE_OPTIONS,
    statistics: &[
        StatisticSpec { name: "num-buffer-alloc", help: "number of buffer allocations" },
        StatisticSpec { name: "num-tensor-in-place", help: "number of in-place tensor operands" },
        StatisticSpec { name: "num-tensor-out-of-place", help: "number of out-of-place tensor operands" },
    ],
    run: one_shot_bufferize,
};

/// From upstream's older partial bufferization, one pass per dialect; upstream dropped it.
const FINALIZING_BUFFERIZE: OverridePass = OverridePass {
    argument: "finalizing-bufferize",
    help: "Finishes partial bufferization: folds to_tensor and to_buffer, and fails where a tensor is left",
    options: &[],
    statistics: &[StatisticSpec { name: "num-folded", help: "number of to_buffer operations folded" }],
    run: finalizing_bufferize,
};

const ELIMINATE_EMPTY_TENSORS: OverridePass = OverridePass {
    argument: "eliminate-empty-tensors",
    help: "Computes what is inserted into a tensor right in its place",
    options: &[flag(
        "extensions",
        false,
        "what goes beyond upstream: only what saves copies, through reshapes as well",
    )],
    statistics: &[
        StatisticSpec { name: "num-tensor-in-place", help: "number of in-place tensor operands" },
        StatisticSpec { name: "num-tensor-out-of-place", help: "number of out-of-place tensor operands" },
        StatisticSpec { name: "num-eliminated", help: "number of uses of tensor.empty that are gone" },
    ],
    run: eliminate_empty_tensors,
};

const EMPTY_TENSOR_TO_ALLOC_TENSOR: OverridePass = OverridePass {
    argument: "empty-tensor-to-alloc-tensor",
    help: "Replaces tensor.empty by bufferization.alloc_tensor",
    options: &[],
    statistics: &[StatisticSpec { name: "num-replaced", help: "number of tensor.empty operations replaced" }],
    run: empty_tensor_to_alloc_tensor,
};

const OWNERSHIP_BASED_BUFFER_DEALLOCATION: OverridePass = OverridePass {
    argument: "ownership-based-buffer-deallocation",
    help: "Frees every allocation exactly once on every path, unless it is returned",
    options: &[
        flag("private-function-dynamic-ownership", false, "private functions pass ownership at run time"),
        flag("extensions", false, "what goes beyond upstream: plain frees after the last use, in any control flow"),
        flag(
            "allow-unknown-effects",
            false,
            "with extensions: ops of unknown effects use their memrefs to the end of their scope",
        ),
    ],
    statistics: &[
        StatisticSpec { name: "num-dealloc", help: "number of deallocations" },
        StatisticSpec { name: "num-clone", help: "number of copies of memory that is returned without being owned" },
        StatisticSpec { name: "num-memref", help: "number of memrefs that got an owner, per block that sees them" },
    ],
    run: ownership_based_buffer_deallocation,
};

const EXPAND_REALLOC: OverridePass = OverridePass {
    argument: "expand-realloc",
    help: "Replaces memref.realloc by an allocation and a copy where memory has to grow",
    options: &[flag("emit-deallocs", true, "free what is replaced; deallocation that comes later does it itself")],
    statistics: &[StatisticSpec { name: "num-expanded", help: "number of memref.realloc operations replaced" }],
    run: expand_realloc,
};

const BUFFER_DEALLOCATION_SIMPLIFICATION: OverridePass = OverridePass {
    argument: "buffer-deallocation-simplification",
    help: "Splits and shortens bufferization.dealloc by what is known of where memrefs come from",
    options: &[],
    statistics: &[
        StatisticSpec { name: "num-dealloc", help: "number of bufferization.dealloc operations looked at" },
        StatisticSpec { name: "num-changed", help: "number of times that one was changed" },
    ],
    run: buffer_deallocation_simplification,
};

const LOWER_DEALLOCATIONS: OverridePass = OverridePass {
    argument: "bufferization-lower-deallocations",
    help: "Replaces bufferization.dealloc by comparisons of pointers and memref.dealloc",
    options: &[LOWER_EXTENSIONS],
    statistics: &[StatisticSpec { name: "num-lowered", help: "number of bufferization.dealloc operations replaced" }],
    run: lower_deallocations,
};

const CONVERT_BUFFERIZATION_TO_MEMREF: OverridePass = OverridePass {
    argument: "convert-bufferization-to-memref",
    help: "Replaces bufferization.clone and bufferization.dealloc by operations on memrefs",
    options: &[LOWER_EXTENSIONS],
    statistics: &[StatisticSpec { name: "num-converted", help: "number of bufferization operations replaced" }],
    run: convert_bufferization_to_memref,
};

const LOWER_EXTENSIONS: OptionSpec =
    flag("extensions", false, "what goes beyond upstream: pointers compared in registers, nothing on the heap");

const fn flag(name: &'static str, initial: bool, help: &'static str) -> OptionSpec {
    OptionSpec { name, help, kind: OptionKind::Flag(initial) }
}

const INFER: &str = "infer-layout-map";
const IDENTITY: &str = "identity-layout-map";
const FULLY_DYNAMIC: &str = "fully-dynamic-layout-map";
const GREEDY: &str = "greedy";
const MINIMAL: &str = "minimal";

const BUFFERIZE_OPTIONS: &[OptionSpec] = &[
    flag("allow-return-allocs-from-loops", false, "a loop may yield a buffer other than its iter_arg"),
    flag("allow-unknown-ops", false, "leave ops that cannot be bufferized on tensors"),
    OptionSpec {
        name: "analysis-fuzzer-seed",
        help: "test only: seed of the random order",
        kind: OptionKind::Number(0),
    },
    OptionSpec {
        name: "analysis-heuristic",
        help: "order of the analysis: bottom-up, top-down, bottom-up-from-terminators or fuzzer",
        kind: OptionKind::Text("bottom-up"),
    },
    flag("bufferize-function-boundaries", false, "signatures, returns and calls take part"),
    flag("check-parallel-regions", true, "a parallel iteration owns what it writes and reads"),
    flag("copy-before-write", false, "analyse nothing, copy before every write"),
    OptionSpec { name: "dialect-filter", help: "ops of these dialects only", kind: OptionKind::List },
    flag("dump-alias-sets", false, "test only: annotate alias sets"),
    OptionSpec { name: "no-analysis-func-filter", help: "functions that are not analysed", kind: OptionKind::List },
    OptionSpec {
        name: "function-boundary-type-conversion",
        help: "layouts in function signatures",
        kind: OptionKind::Choice(&[INFER, IDENTITY, FULLY_DYNAMIC]),
    },
    flag("must-infer-memory-space", false, "there is no default memory space"),
    flag("use-encoding-for-memory-space", false, "a tensor's encoding is its memory space"),
    flag("test-analysis-only", false, "test only: annotate the decisions, rewrite nothing"),
    flag("print-conflicts", false, "test only: annotate the conflicts; needs test-analysis-only"),
    OptionSpec {
        name: "unknown-type-conversion",
        help: "layouts of memrefs that cannot be inferred",
        kind: OptionKind::Choice(&[FULLY_DYNAMIC, IDENTITY, INFER]),
    },
    OptionSpec {
        name: "buffer-alignment",
        help: "alignment of new buffers in bytes, 0 for none",
        kind: OptionKind::Number(64),
    },
    flag("extensions", false, "what goes beyond upstream: more programs accepted, fewer copies"),
    OptionSpec {
        name: "strategy",
        help: "greedy decides as upstream; minimal, with the extensions, also finds parts of a buffer that do not overlap",
        kind: OptionKind::Choice(&[GREEDY, MINIMAL]),
    },
];

fn one_shot_bufferize(module: Op, given: &PassOptions, counts: &mut [u64]) -> Result<(), Diagnostics> {
    let mut stats = monopour_bufferize::Stats::default();
    let done = monopour_bufferize::run_one_shot_into(module, &bufferize_options(given)?, &mut stats);
    let made = [stats.allocs, stats.in_place, stats.out_of_place];
    counts.iter_mut().zip(made).for_each(|(count, made)| *count = u64::from(made));
    done
}

fn finalizing_bufferize(op: Op, _: &PassOptions, counts: &mut [u64]) -> Result<(), Diagnostics> {
    counts[0] = u64::from(monopour_bufferize::finalize(op)?.folded);
    Ok(())
}

fn eliminate_empty_tensors(op: Op, given: &PassOptions, counts: &mut [u64]) -> Result<(), Diagnostics> {
    let options = monopour_bufferize::Options {
        allow_return_allocs_from_loops: true,
        allow_unknown_ops: true,
        bufferize_function_boundaries: op.is(ops::builtin::MODULE),
        extensions: given.flag("extensions"),
        ..monopour_bufferize::Options::default()
    };
    let mut found = monopour_bufferize::Eliminated::default();
    let done = monopour_bufferize::eliminate_empty_tensors_into(op, &options, &mut found);
    let made = [found.in_place, found.out_of_place, found.uses];
    counts.iter_mut().zip(made).for_each(|(count, made)| *count = made as u64);
    done
}

fn empty_tensor_to_alloc_tensor(op: Op, _given: &PassOptions, counts: &mut [u64]) -> Result<(), Diagnostics> {
    let replaced = monopour_bufferize::empty_tensor_to_alloc_tensor(op)?;
    counts.iter_mut().for_each(|count| *count = replaced as u64);
    Ok(())
}

fn ownership_based_buffer_deallocation(op: Op, given: &PassOptions, counts: &mut [u64]) -> Result<(), Diagnostics> {
    let options = monopour_dealloc::Options {
        private_function_dynamic_ownership: given.flag("private-function-dynamic-ownership"),
        extensions: given.flag("extensions"),
        allow_unknown_effects: given.flag("allow-unknown-effects"),
    };
    let stats = monopour_dealloc::run_ownership(op, &options)?;
    let made = [stats.deallocs, stats.clones, stats.memrefs];
    counts.iter_mut().zip(made).for_each(|(count, made)| *count = u64::from(made));
    Ok(())
}

fn expand_realloc(op: Op, given: &PassOptions, counts: &mut [u64]) -> Result<(), Diagnostics> {
    counts[0] = u64::from(monopour_dealloc::expand_realloc(op, given.flag("emit-deallocs"))?);
    Ok(())
}

fn buffer_deallocation_simplification(op: Op, _: &PassOptions, counts: &mut [u64]) -> Result<(), Diagnostics> {
    let stats = monopour_dealloc::simplify::simplify(op)?;
    counts.iter_mut().zip([stats.deallocs, stats.changed]).for_each(|(count, made)| *count = u64::from(made));
    Ok(())
}

fn lower_options(given: &PassOptions) -> monopour_dealloc::lower::LowerOptions {
    monopour_dealloc::lower::LowerOptions { extensions: given.flag("extensions") }
}

fn lower_deallocations(op: Op, given: &PassOptions, counts: &mut [u64]) -> Result<(), Diagnostics> {
    counts[0] = u64::from(monopour_dealloc::lower::lower_deallocations(op, &lower_options(given))?);
    Ok(())
}

fn convert_bufferization_to_memref(op: Op, given: &PassOptions, counts: &mut [u64]) -> Result<(), Diagnostics> {
    counts[0] = u64::from(monopour_dealloc::convert_bufferization_to_memref(op, &lower_options(given))?);
    Ok(())
}

fn bufferize_options(given: &PassOptions) -> Result<monopour_bufferize::Options, Diagnostics> {
    let layouts = match given.text("function-boundary-type-conversion") {
        IDENTITY => FunctionBoundaryTypeConversion::Identity,
        FULLY_DYNAMIC => FunctionBoundaryTypeConversion::FullyDynamic,
        _ => FunctionBoundaryTypeConversion::Infer,
    };
    let heuristic = match given.text("analysis-heuristic") {
        "bottom-up" => AnalysisHeuristic::BottomUp,
        "top-down" => AnalysisHeuristic::TopDown,
        "bottom-up-from-terminators" => AnalysisHeuristic::BottomUpFromTerminators,
        "fuzzer" => AnalysisHeuristic::Fuzzer,
        other => return Err(bad_value("analysis-heuristic", other)),
    };
    let unknown = match given.text("unknown-type-conversion") {
        IDENTITY => monopour_bufferize::UnknownTypeConversion::Identity,
        FULLY_DYNAMIC => monopour_bufferize::UnknownTypeConversion::FullyDynamic,
        other => {
            let message = format!("Invalid option: '{other}' is not a valid value for 'unknown-type-conversion'");
            return Err(Diagnostic::global("I0015", message).into());
        }
    };
    Ok(monopour_bufferize::Options {
        allow_return_allocs_from_loops: given.flag("allow-return-allocs-from-loops"),
        allow_unknown_ops: given.flag("allow-unknown-ops"),
        analysis_fuzzer_seed: given.number("analysis-fuzzer-seed"),
        analysis_heuristic: heuristic,
        bufferize_function_boundaries: given.flag("bufferize-function-boundaries"),
        check_parallel_regions: given.flag("check-parallel-regions"),
        copy_before_write: given.flag("copy-before-write"),
        dialect_filter: given.list("dialect-filter"),
        dump_alias_sets: given.flag("dump-alias-sets"),
        print_conflicts: given.flag("print-conflicts"),
        test_analysis_only: given.flag("test-analysis-only"),
        no_analysis_func_filter: given.list("no-analysis-func-filter"),
        function_boundary_type_conversion: layouts,
        unknown_type_conversion: unknown,
        must_infer_memory_space: given.flag("must-infer-memory-space"),
        use_encoding_for_memory_space: given.flag("use-encoding-for-memory-space"),
        buffer_alignment_bytes: given.number("buffer-alignment"),
        extensions: given.flag("extensions"),
        strategy: if given.text("strategy") == MINIMAL { Strategy::Minimal } else { Strategy::Greedy },
        entry_abi: false,
    })
}

fn bad_value(option: &str, value: &str) -> Diagnostics {
    Diagnostic::global("I0015", format!("invalid value '{value}' of option '{option}'")).into()
}
