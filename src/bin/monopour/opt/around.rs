//! The passes around deallocation, by upstream's names.

use monopour_dealloc::around::{
    CopyRemovalOptions, OutParamOptions, PromoteOptions, drop_equivalent_results, hoist_buffers,
    hoist_buffers_out_of_loops, promote_buffers_to_stack, remove_copies, results_to_out_params, shorten_lifetimes,
};
use monopour_ir::opt::{OptionKind, OptionSpec, OverridePass, StatisticSpec};

use super::flag;

pub(super) const BUFFER_HOISTING: OverridePass = OverridePass {
    argument: "buffer-hoisting",
    help: "Makes buffers in common dominators, out of nested regions",
    options: &[flag("extensions", false, "what goes beyond upstream: what is freed in a branch stays in it")],
    statistics: &[StatisticSpec { name: "num-hoisted", help: "number of allocations moved" }],
    run: |op, given, counts| {
        counts[0] = u64::from(hoist_buffers(op, given.flag("extensions")));
        Ok(())
    },
};

pub(super) const BUFFER_LOOP_HOISTING: OverridePass = OverridePass {
    argument: "buffer-loop-hoisting",
    help: "Makes buffers in front of loops, and frees them behind",
    options: &[],
    statistics: &[StatisticSpec { name: "num-hoisted", help: "number of allocations moved" }],
    run: |op, _, counts| {
        counts[0] = u64::from(hoist_buffers_out_of_loops(op));
        Ok(())
    },
};

pub(super) const PROMOTE_BUFFERS_TO_STACK: OverridePass = OverridePass {
    argument: "promote-buffers-to-stack",
    help: "Puts small buffers on the stack",
    options: &[
        OptionSpec {
            name: "max-alloc-size-in-bytes",
            help: "larger buffers stay on the heap",
            kind: OptionKind::Number(1024),
        },
        OptionSpec {
            name: "max-rank-of-allocated-memref",
            help: "largest rank of buffers whose sizes are ranks",
            kind: OptionKind::Number(1),
        },
        flag("extensions", false, "what goes beyond upstream: dynamic sizes with a bound, buffers that are freed"),
    ],
    statistics: &[StatisticSpec { name: "num-promoted", help: "number of allocations that went to the stack" }],
    run: |op, given, counts| {
        let options = PromoteOptions {
            max_size_bytes: given.number("max-alloc-size-in-bytes"),
            max_rank: given.number("max-rank-of-allocated-memref"),
            extensions: given.flag("extensions"),
        };
        counts[0] = u64::from(promote_buffers_to_stack(op, &options)?);
        Ok(())
    },
};

pub(super) const OPTIMIZE_ALLOCATION_LIVENESS: OverridePass = OverridePass {
    argument: "optimize-allocation-liveness",
    help: "Frees buffers right after their last uses",
    options: &[],
    statistics: &[StatisticSpec { name: "num-moved", help: "number of deallocations moved" }],
    run: |op, _, counts| {
        counts[0] = u64::from(shorten_lifetimes(op));
        Ok(())
    },
};

pub(super) const DROP_EQUIVALENT_BUFFER_RESULTS: OverridePass = OverridePass {
    argument: "drop-equivalent-buffer-results",
    help: "Drops results of functions that are arguments of theirs",
    options: &[flag("extensions", false, "what goes beyond upstream: views of arguments, results of calls")],
    statistics: &[StatisticSpec { name: "num-dropped", help: "number of results dropped" }],
    run: |op, given, counts| {
        counts[0] = u64::from(drop_equivalent_results(op, given.flag("extensions"))?);
        Ok(())
    },
};

pub(super) const BUFFER_RESULTS_TO_OUT_PARAMS: OverridePass = OverridePass {
    argument: "buffer-results-to-out-params",
    help: "Passes buffers that functions return as arguments",
    options: &[
        flag("add-result-attr", false, "new arguments get the attribute bufferize.result"),
        flag("hoist-dynamic-allocs", false, "allocations of dynamic size become arguments"),
        flag("hoist-static-allocs", false, "allocations of static size become arguments"),
        flag("modify-public-functions", false, "public functions change, too"),
        flag("extensions", false, "what goes beyond upstream: sizes that follow from arguments"),
    ],
    statistics: &[
        StatisticSpec { name: "num-params", help: "number of results that became arguments" },
        StatisticSpec { name: "num-copies", help: "number of copies into such arguments" },
    ],
    run: |op, given, counts| {
        let options = OutParamOptions {
            add_result_attr: given.flag("add-result-attr"),
            hoist_dynamic_allocs: given.flag("hoist-dynamic-allocs"),
            hoist_static_allocs: given.flag("hoist-static-allocs"),
            modify_public_functions: given.flag("modify-public-functions"),
            extensions: given.flag("extensions"),
        };
        let stats = results_to_out_params(op, &options)?;
        (counts[0], counts[1]) = (u64::from(stats.params), u64::from(stats.copies));
        Ok(())
    },
};

/// From upstream's older bufferization; upstream dropped it.
pub(super) const COPY_REMOVAL: OverridePass = OverridePass {
    argument: "copy-removal",
    help: "Lets two buffers be one where one is copied into the other",
    options: &[
        flag("arguments-may-alias", false, "two arguments of a function may be the same memory"),
        flag(
            "extensions",
            false,
            "what goes beyond the document: buffers that nothing frees, targets that are made later",
        ),
    ],
    statistics: &[
        StatisticSpec { name: "num-sources-reused", help: "number of copies whose target became the source" },
        StatisticSpec { name: "num-targets-reused", help: "number of copies whose source became the target" },
    ],
    run: |op, given, counts| {
        let options = CopyRemovalOptions {
            arguments_may_alias: given.flag("arguments-may-alias"),
            extensions: given.flag("extensions"),
        };
        let stats = remove_copies(op, &options)?;
        (counts[0], counts[1]) = (u64::from(stats.sources_reused), u64::from(stats.targets_reused));
        Ok(())
    },
};
