//! Generates the transform scripts that tile a module; they print, and apply like a user's own.

use crate::kernel::Kernel;
use monopour_contract::attributes::{DISPATCH, KERNEL, ROLE};
use monopour_ir::Context;
use std::fmt::Write;

/// Name of the entry sequence.
pub(crate) const SEQUENCE: &str = "__transform_main";

const OP: &str = "!transform.any_op";

/// One dispatch of a script.
#[derive(Clone)]
pub(crate) struct Plan {
    /// Its number.
    pub number: i64,
    /// Roles of the ops that are fused into the root's tiles, in this order.
    pub fused: Vec<&'static str>,
    /// Sizes and strategy.
    pub kernel: Kernel,
}

/// A script that tiles each dispatch into one `scf.forall` with `monopour.kernel`.
pub(crate) fn tiling(cx: Context, plans: &[Plan]) -> String {
    let mut out = String::from("module attributes {transform.with_named_sequence} {\n");
    for plan in plans {
        let n = plan.number;
        let _ = writeln!(out, "  transform.named_sequence @dispatch_{n}(%module: {OP} {{transform.readonly}}) {{");
        Dispatch { out: &mut out, cx, plan, next: 0 }.tile_to_grid();
        out.push_str("    transform.yield\n  }\n");
    }
    let _ = writeln!(out, "  transform.named_sequence @{SEQUENCE}(%module: {OP}) {{");
    for plan in plans {
        let n = plan.number;
        let _ = writeln!(out, "    transform.include @dispatch_{n} failures(propagate) (%module) : ({OP}) -> ()");
    }
    out.push_str("    transform.yield\n  }\n}\n");
    out
}

/// Writes the body of one sequence.
struct Dispatch<'c, 'a> {
    out: &'a mut String,
    cx: Context<'c>,
    plan: &'a Plan,
    next: usize,
}

impl Dispatch<'_, '_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "    {text}");
    }

    fn fresh(&mut self, stem: &str) -> String {
        self.next += 1;
        format!("%{stem}{}", self.next)
    }

    fn find(&mut self, role: &str, scope: &str) -> String {
        let (handle, n) = (self.fresh(role), self.plan.number);
        self.line(&format!(
            "{handle} = transform.structured.match attributes {{{DISPATCH} = {n} : i64, {ROLE} = \"{role}\"}} in {scope} : ({OP}) -> {OP}"
        ));
        handle
    }

    /// Tiles to a forall and fuses the producers.
    fn tile_to_grid(&mut self) {
        let root = self.find("root", "%module");
        let tile = list(&self.plan.kernel.tile);
        let mut forall = self.fresh("forall");
        let tiled = self.fresh("tiled");
        self.line(&format!(
            "{tiled}, {forall} = transform.structured.tile_using_forall {root} tile_sizes {tile} : ({OP}) -> ({OP}, {OP})"
        ));
        for role in &self.plan.fused {
            let producer = self.find(role, "%module");
            let (inside, outer) = (self.fresh("fused"), self.fresh("forall"));
            self.line(&format!(
                "{inside}, {outer} = transform.structured.fuse_into_containing_op {producer} into {forall} : ({OP}, {OP}) -> ({OP}, {OP})"
            ));
            forall = outer;
        }
        let kernel = self.plan.kernel.to_attr(self.cx);
        self.line(&format!("%kernel = transform.param.constant {kernel} -> !transform.any_param"));
        self.line(&format!("transform.annotate {forall} \"{KERNEL}\" = %kernel : {OP}, !transform.any_param"));
    }
}

fn list(sizes: &[i64]) -> String {
    format!("[{}]", sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
}
