//! Generates the transform scripts that tile a module; they print, and apply like a user's own.

use crate::kernel::Kernel;
use crate::kernel_cpu::Inner;
use monopour_contract::attributes::{DISPATCH, KERNEL, ROLE, VECTORIZE};
use monopour_ir::Context;
use monopour_ir::ops;
use std::fmt::Write;

/// Name of the entry sequence.
pub(crate) const SEQUENCE: &str = "__transform_main";

const FOLD_SLICES: &str = "tensor.fold_tensor_subset_ops_into_vector_transfers";
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
    /// The schedule inside a tile.
    pub inner: Inner,
    /// Per loop of the root: the extent inside a tile; `None` where the last tile is partial.
    pub task: Vec<Option<i64>>,
    /// Extent of the contraction's reduction.
    pub reduction: i64,
}

/// A script that tiles each dispatch into one `scf.forall` with `monopour.kernel`, and its tiles into loops.
pub(crate) fn tiling(cx: Context, plans: &[Plan]) -> String {
    script(cx, plans, |dispatch| dispatch.tile())
}

/// A script that vectorises the ops marked [`VECTORIZE`], and keeps accumulators in registers.
pub(crate) fn vectorizing(cx: Context, plans: &[Plan]) -> String {
    script(cx, plans, |dispatch| dispatch.vectorize())
}

fn script<'c>(cx: Context<'c>, plans: &[Plan], write: impl Fn(&mut Dispatch<'c, '_>)) -> String {
    let mut out = String::from("module attributes {transform.with_named_sequence} {\n");
    for plan in plans {
        let n = plan.number;
        let _ = writeln!(out, "  transform.named_sequence @dispatch_{n}(%module: {OP} {{transform.readonly}}) {{");
        write(&mut Dispatch { out: &mut out, cx, plan, next: 0 });
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
    fn tile(&mut self) {
        let forall = self.tile_to_grid();
        let task = self.plan.task.clone();
        match self.plan.inner {
            Inner::Plain => {}
            Inner::Contraction { rows, columns, block: None } => self.register_tiles_fused(&forall, [rows, columns]),
            Inner::Contraction { rows, columns, block: Some(block) } => {
                if !self.root_is_contraction() {
                    self.vector_loops(&forall, "root", &task[..2], &[1, columns]);
                }
                if self.plan.fused.contains(&"init") {
                    self.vector_loops(&forall, "init", &task[..2], &[1, columns]);
                }
                self.register_tiles_blocked(&forall, [rows, columns], block);
            }
        }
    }

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

    fn find_ops(&mut self, names: &[&str], scope: &str) -> String {
        let handle = self.fresh("ops");
        let quoted: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
        self.line(&format!(
            "{handle} = transform.structured.match ops{{[{}]}} in {scope} : ({OP}) -> {OP}",
            quoted.join(", ")
        ));
        handle
    }

    /// Tiles to a forall and fuses the producers; returns its handle.
    fn tile_to_grid(&mut self) -> String {
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
        forall
    }

    /// Loops whose body is one vector: `sizes` for the last dimensions, 1 for the others, remainders peeled.
    fn vector_loops(&mut self, forall: &str, role: &str, extents: &[Option<i64>], sizes: &[i64]) {
        let op = self.find(role, forall);
        let mut all = vec![1; extents.len() - sizes.len()];
        all.extend(sizes);
        let loops = self.tile_using_for(&op, &all, None);
        for i in (0..all.len()).rev() {
            self.peel_if_ragged(&loops[i], extents[i], all[i]);
        }
    }

    /// Loops over register tiles, columns outermost, the fill and the epilogue fused into them.
    fn register_tiles_fused(&mut self, forall: &str, tile: [i64; 2]) {
        let root = self.find("root", forall);
        let (tiled, rows, columns) = (self.fresh("tiled"), self.fresh("for"), self.fresh("for"));
        let contraction = self.root_is_contraction();
        let sizes = if contraction { list(&[tile[0], tile[1], 0]) } else { list(&tile) };
        let order = if contraction { "[1, 0, 2]" } else { "[1, 0]" };
        self.line(&format!(
            "{tiled}, {columns}, {rows} = transform.structured.fuse {root} tile_sizes {sizes} interchange {order} : ({OP}) -> ({OP}, {OP}, {OP})"
        ));
        self.peel_if_ragged(&rows, self.plan.task[0], tile[0]);
        self.peel_if_ragged(&columns, self.plan.task[1], tile[1]);
    }

    /// Loops over blocks of the reduction, and register tiles in them; the result tile is read and written once per block.
    fn register_tiles_blocked(&mut self, forall: &str, tile: [i64; 2], block: i64) {
        let role = if self.root_is_contraction() { "root" } else { "producer" };
        let op = self.find(role, forall);
        let outer = self.tile_using_for(&op, &[0, 0, block], None);
        let op = self.find(role, forall);
        let inner = self.tile_using_for(&op, &[tile[0], tile[1], 0], Some("[1, 0, 2]"));
        self.peel_if_ragged(&inner[1], self.plan.task[0], tile[0]);
        self.peel_if_ragged(&inner[0], self.plan.task[1], tile[1]);
        self.peel_if_ragged(&outer[0], Some(self.plan.reduction), block);
    }

    fn root_is_contraction(&self) -> bool {
        !self.plan.fused.contains(&"producer")
    }

    /// Tiles products by one step of the reduction; then vectorises all marked ops and hoists accumulators.
    fn vectorize(&mut self) {
        let products = self.find_marked(" ops{[\"linalg.matmul\"]}");
        self.tile_using_for(&products, &[0, 0, 1], None);
        let ops = self.find_marked("");
        let forall = self.fresh("forall");
        self.line(&format!(
            "{forall} = transform.get_parent_op {ops} {{op_name = \"scf.forall\", deduplicate}} : ({OP}) -> {OP}"
        ));
        self.simplify(&forall);
        let ops = self.find_marked("");
        self.line(&format!("transform.structured.vectorize {ops} : {OP}"));
        self.apply_patterns(
            &forall,
            &["vector.reduction_to_contract", "vector.transfer_permutation_patterns", "vector.sink_ops", FOLD_SLICES],
        );
        // Slices must be folded and deduplicated before hoisting, which compares them.
        self.apply_patterns(&forall, &[FOLD_SLICES, "canonicalization"]);
        // The whole function: constants inside the tile are equal to ones outside it.
        let func = self.fresh("func");
        self.line(&format!(
            "{func} = transform.get_parent_op {forall} {{op_name = \"func.func\", deduplicate}} : ({OP}) -> {OP}"
        ));
        self.line(&format!("transform.apply_cse to {func} : {OP}"));
        let loops = self.find_ops(&[ops::scf::FOR], &forall);
        self.line(&format!("transform.apply_licm to {loops} : {OP}"));
        self.line(&format!("transform.loop.hoist_loop_invariant_subsets {loops} : {OP}"));
        self.simplify(&forall);
    }

    fn apply_patterns(&mut self, scope: &str, patterns: &[&str]) {
        self.line(&format!("transform.apply_patterns to {scope} {{"));
        for pattern in patterns {
            self.line(&format!("  transform.apply_patterns.{pattern}"));
        }
        self.line(&format!("}} : {OP}"));
    }

    fn find_marked(&mut self, ops: &str) -> String {
        let (handle, n) = (self.fresh("marked"), self.plan.number);
        self.line(&format!(
            "{handle} = transform.structured.match{ops} attributes {{{DISPATCH} = {n} : i64, {VECTORIZE}}} in %module : ({OP}) -> {OP}"
        ));
        handle
    }

    /// Canonicalises and deduplicates what is inside `scope`; the op itself stays.
    fn simplify(&mut self, scope: &str) {
        self.line(&format!(
            "transform.apply_patterns to {scope} {{ transform.apply_patterns.canonicalization }} : {OP}"
        ));
        self.line(&format!("transform.apply_cse to {scope} : {OP}"));
    }

    /// One loop per size that is not 0, outermost first.
    fn tile_using_for(&mut self, op: &str, sizes: &[i64], interchange: Option<&str>) -> Vec<String> {
        let tiled = self.fresh("tiled");
        let count = sizes.iter().filter(|s| **s > 0).count();
        let loops: Vec<String> = (0..count).map(|_| self.fresh("for")).collect();
        let order = interchange.map(|i| format!(" interchange = {i}")).unwrap_or_default();
        let types = vec![OP; count + 1].join(", ");
        self.line(&format!(
            "{tiled}, {} = transform.structured.tile_using_for {op} tile_sizes {}{order} : ({OP}) -> ({types})",
            loops.join(", "),
            list(sizes)
        ));
        loops
    }

    /// Peels the last, partial iteration, so that the others have static shapes.
    fn peel_if_ragged(&mut self, handle: &str, extent: Option<i64>, size: i64) {
        // Peeling a loop without a partial iteration is an error.
        if size == 1 || extent.is_some_and(|e| e % size == 0) {
            return;
        }
        let (typed, main, rest) = (self.fresh("cast"), self.fresh("main"), self.fresh("rest"));
        self.line(&format!("{typed} = transform.cast {handle} : {OP} to !transform.op<\"scf.for\">"));
        self.line(&format!(
            "{main}, {rest} = transform.loop.peel {typed} : (!transform.op<\"scf.for\">) -> ({OP}, {OP})"
        ));
    }
}

fn list(sizes: &[i64]) -> String {
    format!("[{}]", sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
}
