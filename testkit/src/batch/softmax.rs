//! `linalg.softmax`, which no upstream pass lowers on memrefs, as functions of loops.
//!
//! Before: `linalg.softmax dimension(1) ins(%a : T) outs(%b : U)`.
//! After: `call @softmax0(%a, %b) : (T, U) -> ()`, and the function.
//! Requires: static shapes of `f32`. Ensures: the destination is overwritten first, so that a source in the same memory
//! shows; a softmax is computed in f64 and rounded once.

use monopour_ir::ops;
use monopour_ir::{Attr, InsertionPoint, Module, Op, OpSpec, Rewriter};
use std::fmt::Write;

const NAME: &str = ops::linalg::SOFTMAX;

/// The module with each softmax replaced by a call.
pub(super) fn outline<'c>(module: &Module<'c>) -> Result<Module<'c>, String> {
    let mut text: String = module.body().ops().iter().map(|op| format!("{op}\n")).collect();
    for (i, op) in module.op().find_all(NAME).into_iter().enumerate() {
        text.push_str(&function(op, &callee(i))?);
    }
    // Calls are printed as such only where their callees are known.
    let cx = module.context();
    let module = Module::parse(cx, text.as_bytes(), "outlined.mlir").map_err(|d| format!("{d}\n{text}"))?;
    for (i, op) in module.op().find_all(NAME).into_iter().enumerate() {
        let mut rewriter = Rewriter::new(cx);
        rewriter.set_point(InsertionPoint::Before(op));
        let call = OpSpec::new(ops::func::CALL, op.location()).operands(&op.operands());
        rewriter.create(call.attr("callee", Attr::symbol(cx, &callee(i)))).map_err(|d| d.to_string())?;
        rewriter.erase(op);
    }
    Ok(module)
}

fn callee(number: usize) -> String {
    format!("softmax{number}")
}

fn function(op: Op, callee: &str) -> Result<String, String> {
    let types: Vec<String> = op.operands().iter().map(|v| v.ty().to_string()).collect();
    let (Some(into), 2) = (shape(op, 1), types.len()) else {
        return Err(format!("{} on {}", op.name(), types.join(", ")));
    };
    let mut f = Function { text: String::new(), source: types[0].clone(), into: types[1].clone() };
    let _ = writeln!(f.text, "func.func private @{callee}(%source: {}, %into: {}) {{", f.source, f.into);
    let most = into.iter().max().copied().unwrap_or(1);
    (0..=most).for_each(|i| f.line(&format!("%c{i} = arith.constant {i} : index")));
    f.line("%zero = arith.constant 0.0 : f32");
    f.nest(&into, |f, at| f.store("%zero", &at.join(", ")));
    let dimension = op.attr("dimension").and_then(|a| a.as_int()).unwrap_or(0) as usize;
    f.softmax(&into, dimension);
    f.text.push_str("  return\n}\n");
    Ok(f.text)
}

fn shape(op: Op, operand: usize) -> Option<Vec<usize>> {
    let ty = op.operand(operand).ty();
    ty.element().float_width().filter(|w| *w == 32)?;
    ty.shape()?.into_iter().map(|d| usize::try_from(d).ok()).collect()
}

struct Function {
    text: String,
    source: String,
    into: String,
}

impl Function {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "  {text}");
    }

    fn store(&mut self, value: &str, at: &str) {
        let line = format!("memref.store {value}, %into[{at}] : {}", self.into);
        self.line(&line);
    }

    /// A loop per dimension; `body` gets the induction variables.
    fn nest(&mut self, shape: &[usize], body: impl FnOnce(&mut Self, &[String])) {
        let at: Vec<String> = (0..shape.len()).map(|d| format!("%i{d}")).collect();
        for (i, size) in at.iter().zip(shape) {
            self.line(&format!("scf.for {i} = %c0 to %c{size} step %c1 {{"));
        }
        body(self, &at);
        shape.iter().for_each(|_| self.line("}"));
    }

    fn softmax(&mut self, shape: &[usize], dimension: usize) {
        let outer: Vec<usize> =
            shape.iter().enumerate().map(|(d, size)| if d == dimension { 1 } else { *size }).collect();
        let size = shape[dimension];
        let source = self.source.clone();
        let load = |f: &mut Self, at: &str| {
            f.line(&format!("%v = memref.load %source[{at}] : {source}"));
            f.line("%w = arith.extf %v : f32 to f64");
        };
        self.nest(&outer, |f, at| {
            let mut at = at.to_vec();
            at[dimension] = "%k".to_owned();
            let at = at.join(", ");
            f.line("%least = arith.constant 0xFFF0000000000000 : f64\n  %none = arith.constant 0.0 : f64");
            let over = |f: &mut Self, result: &str, init: &str| {
                f.line(&format!("{result} = scf.for %k = %c0 to %c{size} step %c1 iter_args(%a = {init}) -> (f64) {{"));
            };
            over(f, "%top", "%least");
            load(f, &at);
            f.line("%m = arith.maxnumf %a, %w : f64\n  scf.yield %m : f64\n  }");
            over(f, "%sum", "%none");
            load(f, &at);
            f.line("%d = arith.subf %w, %top : f64\n  %e = math.exp %d : f64\n  %s = arith.addf %a, %e : f64");
            f.line("scf.yield %s : f64\n  }");
            f.line(&format!("scf.for %k = %c0 to %c{size} step %c1 {{"));
            load(f, &at);
            f.line("%d = arith.subf %w, %top : f64\n  %e = math.exp %d : f64\n  %q = arith.divf %e, %sum : f64");
            f.line("%r = arith.truncf %q : f64 to f32");
            f.store("%r", &at);
            f.line("}");
        });
    }
}
