//! Bounds check of a distributed kernel: interprets its index arithmetic for every invocation of the workgroups at the ends
//! of the grid.
//!
//! An out-of-bounds load whose value is unused changes no result, and devices do not check: it shows here only. Shares no
//! code with the distribution. Loaded values are unknown; conditions on them take both branches, and indices that depend on
//! them are not checked.

use monopour_ir::ops;
use monopour_ir::typed::{arith::CmpIPredicate, gpu};
use monopour_ir::{Block, Module, Op, Value};
use std::collections::HashMap;

/// `kernel: access`: out-of-bounds accesses, once per op. `None` if no kernel has a static grid.
pub fn check(module: &Module, subgroup_size: i64) -> Option<Vec<String>> {
    let mut outside = None;
    for func in module.functions() {
        let (Some(size), Some(body)) = (func.attr("monopour.workgroup_size").and_then(|a| a.as_ints()), func.body())
        else {
            continue;
        };
        // On a folded grid workgroup ids are not those of the forall.
        let grid = grid_of(module, func).filter(|_| func.attr("monopour.linear_grid").is_none());
        let Some(grid) = grid else { continue };
        let mut machine = Machine { subgroup_size, size, grid, ..Machine::default() };
        for workgroup in corners(&machine.grid) {
            machine.block = workgroup;
            let [x, y, z] = [0, 1, 2].map(|axis| machine.size.get(axis).copied().unwrap_or(1));
            for number in 0..x * y * z {
                machine.thread = [number % x, number / x % y, number / x / y];
                machine.values.clear();
                machine.run(body);
            }
        }
        let name = func.symbol_name().unwrap_or_default();
        outside.get_or_insert_with(Vec::new).extend(machine.outside.into_iter().map(|at| format!("{name}: {at}")));
    }
    outside
}

/// Extents of the dispatch along x, y and z; x is the innermost dimension of the forall.
fn grid_of(module: &Module, func: Op) -> Option<[i64; 3]> {
    let is_call = |c: &Op| c.callee() == func.symbol_name().as_deref();
    let call = module.op().find_all(ops::func::CALL).into_iter().find(is_call)?;
    let extents = call.parent()?.attr("staticUpperBound")?.as_ints()?;
    let mut grid = [1; 3];
    for (axis, extent) in extents.iter().rev().enumerate() {
        *grid.get_mut(axis)? = *extent;
    }
    grid.iter().all(|e| *e > 0).then_some(grid)
}

fn corners(grid: &[i64; 3]) -> Vec<[i64; 3]> {
    let ends = |extent: i64| if extent > 1 { vec![0, extent - 1] } else { vec![0] };
    let mut out = vec![];
    for x in ends(grid[0]) {
        for y in ends(grid[1]) {
            out.extend(ends(grid[2]).into_iter().map(|z| [x, y, z]));
        }
    }
    out
}

/// Interprets one invocation at a time.
#[derive(Default)]
struct Machine<'c> {
    subgroup_size: i64,
    size: Vec<i64>,
    grid: [i64; 3],
    block: [i64; 3],
    thread: [i64; 3],
    /// Known numbers.
    values: HashMap<Value<'c>, i64>,
    outside: Vec<String>,
}

impl<'c> Machine<'c> {
    fn get(&self, value: Value<'c>) -> Option<i64> {
        self.values.get(&value).copied()
    }

    fn set(&mut self, value: Value<'c>, number: Option<i64>) {
        match number {
            Some(number) => self.values.insert(value, number),
            None => self.values.remove(&value),
        };
    }

    /// Runs a block and returns its terminator's operands.
    fn run(&mut self, block: Block<'c>) -> Vec<Option<i64>> {
        for op in block.ops() {
            if Some(op) == block.terminator() {
                return op.operands().into_iter().map(|v| self.get(v)).collect();
            }
            self.step(op);
        }
        vec![]
    }

    fn step(&mut self, op: Op<'c>) {
        match op.name() {
            ops::scf::IF => self.branch(op),
            ops::scf::FOR => self.repeat(op),
            ops::scf::WHILE => {
                // Both regions, with nothing known.
                let blocks: Vec<Block> = op.regions().into_iter().filter_map(|r| r.entry()).collect();
                for block in blocks {
                    block.args().into_iter().for_each(|arg| self.set(arg, None));
                    self.run(block);
                }
            }
            ops::memref::LOAD | ops::vector::LOAD => self.access(op, op.operand(0), op.operand(1), op.result(0)),
            ops::memref::STORE | ops::vector::STORE => self.access(op, op.operand(1), op.operand(2), op.operand(0)),
            _ => {
                let number = self.number(op);
                for (i, result) in op.results().into_iter().enumerate() {
                    self.set(result, number.filter(|_| i == 0));
                }
            }
        }
    }

    fn branch(&mut self, op: Op<'c>) {
        let taken: Vec<usize> = match self.get(op.operand(0)) {
            Some(condition) => vec![usize::from(condition == 0)],
            None => vec![0, 1],
        };
        let mut ends = vec![];
        for region in &taken {
            ends.push(op.region(*region).entry().map(|block| self.run(block)).unwrap_or_default());
        }
        for (i, result) in op.results().into_iter().enumerate() {
            let first = ends[0].get(i).copied().flatten();
            let agreed = ends.iter().all(|end| end.get(i).copied().flatten() == first);
            self.set(result, first.filter(|_| agreed));
        }
    }

    fn repeat(&mut self, op: Op<'c>) {
        let block = op.region(0).entry().expect("a loop has a body: verified");
        let args = block.args();
        let mut carried: Vec<Option<i64>> = op.operands()[3..].iter().map(|v| self.get(*v)).collect();
        let bounds = [0, 1, 2].map(|i| self.get(op.operand(i)));
        let [Some(mut at), Some(end), Some(step)] = bounds else {
            args.into_iter().for_each(|arg| self.set(arg, None));
            self.run(block);
            return op.results().into_iter().for_each(|r| self.set(r, None));
        };
        while at < end && step > 0 {
            self.set(args[0], Some(at));
            for (arg, value) in args[1..].iter().zip(&carried) {
                self.set(*arg, *value);
            }
            carried = self.run(block);
            at += step;
        }
        for (result, value) in op.results().into_iter().zip(carried) {
            self.set(result, value);
        }
    }

    fn access(&mut self, op: Op<'c>, buffer: Value<'c>, index: Value<'c>, data: Value<'c>) {
        let lanes: i64 = data.ty().shape().map_or(1, |s| s.iter().product());
        if let (Some(at), Some(&[elements])) = (self.get(index), buffer.ty().shape().as_deref()) {
            let text = || format!("{op} at {at}, of invocation {:?} of workgroup {:?}", self.thread, self.block);
            let known = |found: &String| found.starts_with(&op.to_string());
            if elements >= 0 && (at < 0 || at + lanes > elements) && !self.outside.iter().any(known) {
                let text = text();
                self.outside.push(text);
            }
        }
        op.results().into_iter().for_each(|r| self.set(r, None));
    }

    /// The result of an op on numbers, if known.
    fn number(&self, op: Op<'c>) -> Option<i64> {
        let result = op.results().into_iter().next()?;
        if let Some(constant) = result.constant_int() {
            return Some(constant);
        }
        let axis = || {
            let dimension = gpu::dimension(op);
            gpu::Dimension::ALL.iter().position(|known| dimension == Some(*known)).unwrap_or(0)
        };
        let linear = || {
            let [x, y] = [0, 1].map(|axis| self.size.get(axis).copied().unwrap_or(1));
            self.thread[0] + x * (self.thread[1] + y * self.thread[2])
        };
        let operand = |i: usize| self.get(*op.operands().get(i)?);
        let pair = || Some((operand(0)?, operand(1)?));
        match op.name() {
            ops::gpu::THREAD_ID => Some(self.thread[axis()]),
            ops::gpu::BLOCK_ID => Some(self.block[axis()]),
            ops::gpu::GRID_DIM => Some(self.grid[axis()]),
            ops::gpu::LANE_ID => Some(linear() % self.subgroup_size),
            ops::gpu::SUBGROUP_ID => Some(linear() / self.subgroup_size),
            ops::gpu::SUBGROUP_SIZE => Some(self.subgroup_size),
            ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI => operand(0),
            ops::arith::SELECT => operand(if operand(0)? != 0 { 1 } else { 2 }),
            ops::arith::CMPI => {
                let predicate = CmpIPredicate::of(op)?;
                pair().map(|(a, b)| i64::from(predicate.holds(a, b)))
            }
            name => pair().and_then(|(a, b)| arithmetic(name, a, b)),
        }
    }
}

fn arithmetic(name: &str, a: i64, b: i64) -> Option<i64> {
    match name {
        ops::arith::ADDI => a.checked_add(b),
        ops::arith::SUBI => a.checked_sub(b),
        ops::arith::MULI => a.checked_mul(b),
        ops::arith::DIVSI | ops::arith::DIVUI => a.checked_div(b),
        ops::arith::REMSI | ops::arith::REMUI => a.checked_rem(b),
        ops::arith::FLOORDIVSI => (b > 0).then(|| a.div_euclid(b)),
        ops::arith::CEILDIVSI => (b > 0).then(|| -(-a).div_euclid(b)),
        ops::arith::MINSI | ops::arith::MINUI => Some(a.min(b)),
        ops::arith::MAXSI | ops::arith::MAXUI => Some(a.max(b)),
        ops::arith::ANDI => Some(a & b),
        ops::arith::ORI => Some(a | b),
        ops::arith::XORI => Some(a ^ b),
        ops::arith::SHLI => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use monopour_ir::{Context, Module};

    /// Out-of-bounds accesses to `%a`, seven elements, in a kernel of two workgroups of four invocations.
    fn outside(body: &str) -> Vec<String> {
        let text = format!(
            "func.func @main(%a: memref<7xf32>) {{\n  scf.forall (%i) in (2) {{\n    func.call @k(%a) : (memref<7xf32>) -> ()\n  }}\n  return\n}}\n\
             func.func private @k(%a: memref<7xf32>) attributes {{monopour.workgroup_size = array<i32: 4, 1, 1>}} {{\n\
             %c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c4 = arith.constant 4 : index\n%c6 = arith.constant 6 : index\n\
             %b = gpu.block_id x\n%t = gpu.thread_id x\n%f = arith.muli %b, %c4 : index\n%i = arith.addi %f, %t : index\n{body}\nreturn\n}}"
        );
        let module =
            Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}\n{text}"));
        check(&module, 4).expect("the grid is known")
    }

    #[test]
    fn the_last_invocation_is_clamped_or_guarded() {
        let load = |i: &str| format!("%x = memref.load %a[{i}] : memref<7xf32>\n");
        let found = outside(&load("%i"));
        assert!(
            found.len() == 1 && found[0].contains("at 7, of invocation [3, 0, 0] of workgroup [1, 0, 0]"),
            "{found:?}"
        );
        assert!(outside(&format!("%m = arith.minsi %i, %c6 : index\n{}", load("%m"))).is_empty());
        let guarded =
            |bound: &str| format!("%g = arith.cmpi sle, %i, {bound} : index\nscf.if %g {{\n{}}}\n", load("%i"));
        assert!(outside(&guarded("%c6")).is_empty());
        assert_eq!(outside(&guarded("%i")).len(), 1);
        let looped = |end: &str| {
            format!("scf.for %k = %c0 to {end} step %c1 {{\n%j = arith.addi %k, %c1 : index\n{}}}\n", load("%j"))
        };
        assert_eq!(outside(&looped("%c6")), Vec::<String>::new());
        assert_eq!(outside(&format!("%c7 = arith.constant 7 : index\n{}", looped("%c7"))).len(), 1);
    }
}
