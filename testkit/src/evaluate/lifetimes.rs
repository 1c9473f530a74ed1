//! Runs programs on memrefs and checks the lifetime of each buffer.
//!
//! ```text
//! let program = Program::new(&module)?;                 // once
//! let run = program.run("main", &inputs, Watch::Owners)?;   // Err(EvalError::Lifetime { .. }) for a defect
//! assert_eq!(run.results, expected.results);
//! ```
//!
//! Checks, on the path that is executed: uses after a free, double frees, frees of memory that is not from the heap. With
//! [`Watch::Owners`] also leaks, and public functions that return or free memory of others. Private functions and their
//! callers have no contract.

use super::memory::{Defect, Origin, datum};
use super::{Datum, EvalError, Interpreter, Precision, Result, Weights, function, prepared};
use crate::host_tensor::HostTensor;
use monopour_ir::ops;
use monopour_ir::{Module, Op, WalkOrder};
use std::collections::BTreeMap;

/// Ops of linalg that are executed without generalisation.
const UNDERSTOOD: &[&str] = &[ops::linalg::GENERIC, ops::linalg::YIELD, ops::linalg::INDEX, ops::linalg::FILL];

/// Which defects are checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    /// Accesses and frees: for a program before deallocation. A public function returns copies of memory that is not its
    /// own, so that its caller can free them.
    Accesses,
    /// Ownership besides: each buffer is freed once or returned, and public functions return and free only their own.
    Owners,
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The function's results; a memref as its contents.
    pub results: Vec<HostTensor>,
    /// Final contents of the memref arguments.
    pub arguments: Vec<HostTensor>,
    /// Final contents of the globals that were used.
    pub globals: BTreeMap<String, HostTensor>,
    /// Its cost.
    pub cost: Cost,
}

/// The cost of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Buffers allocated on the heap.
    pub allocations: u64,
    /// Elements that `memref.copy` and `bufferization.clone` moved.
    pub copied_elements: u64,
    /// Executions of `bufferization.clone`.
    pub clones: u64,
    /// Peak heap bytes.
    pub peak_bytes: u64,
    /// Numbers, in the order of a walk over the module, of the `memref.dealloc` ops that freed a buffer.
    pub freeing: Vec<usize>,
}

/// A module prepared for many runs.
pub struct Program<'c> {
    module: Module<'c>,
    weights: Weights,
}

impl<'c> Program<'c> {
    /// Prepares a module.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub fn new(module: &Module<'c>) -> Result<Self> {
        // Upstream's pass also drops dead ops, such as a load of freed memory.
        let is_named = |op: &Op| op.dialect() == "linalg" && !UNDERSTOOD.contains(&op.name());
        let ops = module.op().nested(WalkOrder::Pre);
        let module = if ops.iter().any(is_named) { prepared(module)? } else { module.duplicate() };
        Ok(Self { module, weights: Weights::new() })
    }

    /// Runs a function.
    ///
    /// # Errors
    /// [`EvalError::Lifetime`] for the first defect; else see [`EvalError`].
    pub fn run(&self, entry: &str, inputs: &[HostTensor], watch: Watch) -> Result<Run> {
        let func = function(&self.module, entry)?;
        let mut interpreter = Interpreter::new(&self.module, &self.weights, Precision::OfType);
        interpreter.watches = watch == Watch::Owners;
        let arguments = interpreter.bind_inputs(func, inputs)?;
        let given: Vec<usize> = buffers(&arguments).collect();
        let returned = interpreter.call(func, arguments)?;
        if watch == Watch::Owners {
            interpreter.check_leaks(func, &returned)?;
        }
        let memory = &interpreter.memory;
        let deallocs = self.module.op().find_all(ops::memref::DEALLOC);
        let freeing = memory.freeing.iter().filter_map(|op| deallocs.iter().position(|d| d == op));
        let cost = Cost {
            allocations: memory.allocations,
            copied_elements: memory.copied_elements,
            clones: memory.clones,
            peak_bytes: memory.peak_bytes,
            freeing: freeing.collect(),
        };
        let contents = |buffer: &usize| memory.buffers[*buffer].contents.clone();
        Ok(Run {
            arguments: given.iter().map(contents).collect(),
            globals: memory.globals.iter().map(|(name, buffer)| (name.clone(), contents(buffer))).collect(),
            cost,
            results: interpreter.results(func, returned)?,
        })
    }
}

/// The buffers of the memrefs among values.
fn buffers(values: &[Datum]) -> impl Iterator<Item = usize> {
    values.iter().filter_map(|v| match v {
        Datum::MemRef(view) => Some(view.buffer),
        _ => None,
    })
}

impl<'c> Interpreter<'c, '_> {
    /// Checks the contract of a public function: arguments stay the caller's, results become the caller's.
    pub(super) fn check_boundary(&self, func: Op<'c>, arguments: &[Datum], results: &[Datum]) -> Result<()> {
        let memory = &self.memory;
        let error = |defect, buffer| Err(memory.defect(defect, buffer, func));
        let given: Vec<usize> = buffers(arguments).collect();
        if let Some(freed) = given.iter().find(|b| !memory.buffers[**b].is_alive) {
            return error(Defect::ArgumentFreed, *freed);
        }
        let returned: Vec<usize> = buffers(results).collect();
        for (position, buffer) in returned.iter().enumerate() {
            let it = &memory.buffers[*buffer];
            if !it.is_alive || it.origin != Origin::Heap || given.contains(buffer) {
                return error(Defect::ResultNotOwned, *buffer);
            }
            if returned[..position].contains(buffer) {
                return error(Defect::ResultShared, *buffer);
            }
        }
        Ok(())
    }

    /// Copies results of a public function that are not uniquely its own.
    pub(super) fn own_results(&mut self, func: Op<'c>, arguments: &[Datum], results: &mut [Datum]) -> Result<()> {
        let mut taken: Vec<usize> = buffers(arguments).collect();
        for result in results {
            let Datum::MemRef(view) = &*result else { continue };
            if self.memory.buffers[view.buffer].origin == Origin::Heap && !taken.contains(&view.buffer) {
                taken.push(view.buffer);
                continue;
            }
            let contents = self.memory.read(func, view)?;
            let sizes = view.sizes.clone();
            *result = datum(self.memory.adopt(contents, &sizes, Origin::Heap, "a result".to_owned()));
        }
        Ok(())
    }

    fn check_leaks(&self, func: Op<'c>, results: &[Datum]) -> Result<()> {
        let returned: Vec<usize> = buffers(results).collect();
        let leaks = |(i, b): (usize, &super::memory::Buffer)| {
            (b.is_alive && b.origin == Origin::Heap && !returned.contains(&i)).then_some(i)
        };
        match self.memory.buffers.iter().enumerate().find_map(leaks) {
            Some(leaked) => Err(self.memory.defect(Defect::Leak, leaked, func)),
            None => Ok(()),
        }
    }
}

/// Whether two runs computed the same values, bit for bit.
///
/// # Errors
/// The first difference.
pub fn same_values(a: &Run, b: &Run) -> std::result::Result<(), String> {
    let lists = [("result", &a.results, &b.results), ("argument", &a.arguments, &b.arguments)];
    for (what, left, right) in lists {
        if left.len() != right.len() {
            return Err(format!("{} {what}s, {} expected", right.len(), left.len()));
        }
        for (i, (x, y)) in left.iter().zip(right).enumerate() {
            if !same_tensor(x, y) {
                return Err(format!("{what} {i} is {:?}, {:?} expected", y.to_f64(), x.to_f64()));
            }
        }
    }
    // A global that is never used has no contents.
    let differs = |(name, x): (&String, &HostTensor)| b.globals.get(name).is_some_and(|y| !same_tensor(x, y));
    match a.globals.iter().find(|(name, x)| differs((name, x))) {
        Some((name, _)) => Err(format!("@{name} differs")),
        None => Ok(()),
    }
}

fn same_tensor(a: &HostTensor, b: &HostTensor) -> bool {
    a.dtype == b.dtype && a.shape == b.shape && a.to_bytes() == b.to_bytes()
}

impl EvalError {
    /// The lifetime defect, if it is one.
    pub fn defect(&self) -> Option<Defect> {
        match self {
            Self::Lifetime { defect, .. } => Some(*defect),
            _ => None,
        }
    }
}
