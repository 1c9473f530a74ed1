//! The passes around deallocation: exact output of file tests, and steps that grow with the program.

mod examples;
mod random;

use std::path::Path;

use monopour_dealloc::around::{
    CopyRemovalOptions, OutParamOptions, PromoteOptions, drop_equivalent_results, hoist_buffers,
    hoist_buffers_out_of_loops, promote_buffers_to_stack, remove_copies, results_to_out_params, shorten_lifetimes,
};
use monopour_ir::{Diagnostics, Module, Op};
use monopour_testkit::runner;

/// Runs a pass by its name, with options as the command line has them.
pub fn apply(pass: &str, options: &str, op: Op) -> Result<(), Diagnostics> {
    let has = |name: &str| options.split_whitespace().any(|o| o == name);
    let number = |name: &str, initial: u64| {
        let given = options.split_whitespace().find_map(|o| o.strip_prefix(name)?.strip_prefix('='));
        given.map_or(initial, |text| text.parse().expect("a number"))
    };
    let extensions = has("extensions");
    match pass {
        "buffer-hoisting" => drop(hoist_buffers(op, extensions)),
        "buffer-loop-hoisting" => drop(hoist_buffers_out_of_loops(op)),
        "optimize-allocation-liveness" => drop(shorten_lifetimes(op)),
        "promote-buffers-to-stack" => {
            let max_size_bytes = number("max-alloc-size-in-bytes", 1024);
            let max_rank = number("max-rank-of-allocated-memref", 1);
            promote_buffers_to_stack(op, &PromoteOptions { max_size_bytes, max_rank, extensions })?;
        }
        "drop-equivalent-buffer-results" => drop(drop_equivalent_results(op, extensions)?),
        "buffer-results-to-out-params" => {
            let options = OutParamOptions {
                add_result_attr: has("add-result-attr"),
                hoist_dynamic_allocs: has("hoist-dynamic-allocs"),
                hoist_static_allocs: has("hoist-static-allocs"),
                modify_public_functions: has("modify-public-functions"),
                extensions,
            };
            results_to_out_params(op, &options)?;
        }
        "copy-removal" => {
            let options = CopyRemovalOptions { arguments_may_alias: has("arguments-may-alias"), extensions };
            remove_copies(op, &options)?;
        }
        "deallocate" => examples::deallocate(options, op)?,
        other => panic!("{other} is not a pass"),
    }
    Ok(())
}

fn run(pass: &str, options: &str, module: &Module) -> String {
    if let Err(diagnostics) = apply(pass, options, module.op()) {
        return diagnostics.to_string();
    }
    module.op().verify_with_diagnostics().map_or_else(|e| e.to_string(), |()| module.op().to_string())
}

#[test]
fn file_tests() {
    runner::run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/main/around"), run).assert_passed();
}
