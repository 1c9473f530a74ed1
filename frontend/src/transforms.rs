//! The text of the transform scripts that tile a module: generated, printable, applied like a user's own.

use crate::fuse::{DISPATCH, ROLE};
use crate::kernel::Kernel;
use monopour_ir::Context;
use std::fmt::Write;

/// Name of the sequence that is applied.
pub(crate) const SEQUENCE: &str = "__transform_main";

const OP: &str = "!transform.any_op";

/// One dispatch of a script.
pub(crate) struct Plan {
    /// Its number.
    pub number: i64,
    /// Roles of the ops that are fused into the root's tiles, in this order.
    pub fused: Vec<&'static str>,
    /// Sizes and strategy.
    pub kernel: Kernel,
}

/// A script that puts each dispatch into one `scf.forall` that carries `monopour.kernel`.
pub(crate) fn script(cx: Context, plans: &[Plan]) -> String {
    let mut out = String::from("module attributes {transform.with_named_sequence} {\n");
    for plan in plans {
        let n = plan.number;
        let _ = writeln!(out, "  transform.named_sequence @dispatch_{n}(%module: {OP} {{transform.readonly}}) {{");
        tile_dispatch(&mut out, cx, plan);
        out.push_str("    transform.yield\n  }\n");
    }
    let _ = writeln!(out, "  transform.named_sequence @{SEQUENCE}(%module: {OP}) {{");
    for plan in plans {
        let _ = writeln!(
            out,
            "    transform.include @dispatch_{} failures(propagate) (%module) : ({OP}) -> ()",
            plan.number
        );
    }
    out.push_str("    transform.yield\n  }\n}\n");
    out
}

fn tile_dispatch(out: &mut String, cx: Context, plan: &Plan) {
    let tile = list(&plan.kernel.tile);
    find(out, "root", plan.number, "root");
    let _ = writeln!(
        out,
        "    %tiled, %loop0 = transform.structured.tile_using_forall %root tile_sizes {tile} : ({OP}) -> ({OP}, {OP})"
    );
    for (i, role) in plan.fused.iter().enumerate() {
        find(out, role, plan.number, role);
        let _ = writeln!(
            out,
            "    %{role}_in, %loop{} = transform.structured.fuse_into_containing_op %{role} into %loop{i} : ({OP}, {OP}) -> ({OP}, {OP})",
            i + 1
        );
    }
    let last = plan.fused.len();
    let _ = writeln!(out, "    %kernel = transform.param.constant {} -> !transform.any_param", plan.kernel.to_attr(cx));
    let _ = writeln!(out, "    transform.annotate %loop{last} \"monopour.kernel\" = %kernel : {OP}, !transform.any_param");
}

fn find(out: &mut String, name: &str, number: i64, role: &str) {
    let _ = writeln!(
        out,
        "    %{name} = transform.structured.match attributes {{{DISPATCH} = {number} : i64, {ROLE} = \"{role}\"}} in %module : ({OP}) -> {OP}"
    );
}

fn list(sizes: &[i64]) -> String {
    format!("[{}]", sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
}
