//! Independent parts of a module on several threads, each with its own context.
//!
//! Before / after:
//!
//! ```text
//! module { @main, @k0, .., @k99 }        module { @k0, .., @k7 }    module { @k8, .., @k15 }    ..    as bytecode
//! ```
//!
//! An MLIR context stays single-threaded, so that equal input gives equal output: the result of a part depends on the part alone,
//! not on the number of threads.

use crate::{Context, Diagnostics, InsertionPoint, Module, Op, Rewriter};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Least number of parts for which threads pay off: with fewer, their contexts (5 ms each) cost more than they save.
pub const MANY: usize = 16;
/// The main thread's stack size on Linux: passes recurse as deep as IR is nested, and other threads have 2 MiB.
const STACK_BYTES: usize = 8 << 20;

/// Copies of `ops` in a module of their own, as bytecode.
pub fn part_of(module: &Module, ops: &[Op]) -> Vec<u8> {
    module_of(module, ops).op().to_bytecode()
}

/// Copies of `ops` in a module of their own.
pub fn module_of<'c>(module: &Module<'c>, ops: &[Op<'c>]) -> Module<'c> {
    let part = Module::empty(module.context());
    {
        let mut rw = Rewriter::new(module.context());
        rw.set_point(InsertionPoint::End(part.body()));
        for op in ops {
            let copy = rw.clone_op(*op, |v| v);
            rw.insert(copy);
        }
    }
    part
}

/// Runs `work` on each of `parts`, modules as bytecode, with its position, on all cores. The calling thread runs `here`, and
/// then `take` on each result, in order, as soon as it is ready.
///
/// # Errors
/// Those of the first part that fails; no part after it is taken.
pub fn map_parts<H, T: Send>(
    parts: &[Vec<u8>],
    work: impl Fn(usize, &Module) -> Result<T, Diagnostics> + Sync,
    here: impl FnOnce() -> H,
    mut take: impl FnMut(T) -> Result<(), Diagnostics>,
) -> (H, Result<(), Diagnostics>) {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, |n| n.get()).min(parts.len());
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let (next, work) = (&next, &work);
        for sender in vec![sender; threads] {
            let run = move || Context::scope(|cx| work_on(cx, next, parts, work, &sender));
            let started = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
            started.expect("the system has room for a thread");
        }
        let beside = here();
        let mut waiting = BTreeMap::new();
        let mut taken = 0;
        // Ends when all workers have finished; a worker's panic resumes when the scope ends.
        for (index, result) in receiver {
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(&taken) {
                if let Err(error) = result.and_then(&mut take) {
                    next.store(parts.len(), Ordering::Relaxed);
                    return (beside, Err(error));
                }
                taken += 1;
            }
        }
        (beside, Ok(()))
    })
}

fn work_on<'c, T>(
    cx: Context<'c>,
    next: &AtomicUsize,
    parts: &[Vec<u8>],
    work: &impl Fn(usize, &Module<'c>) -> Result<T, Diagnostics>,
    results: &mpsc::Sender<(usize, Result<T, Diagnostics>)>,
) {
    cx.allow_unregistered_dialects(true);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < parts.len());
    for index in std::iter::from_fn(take) {
        let result = Module::from_bytecode(cx, &parts[index]).and_then(|module| work(index, &module));
        if results.send((index, result)).is_err() {
            // Another part failed.
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_in_order_and_the_first_error_counts() {
        Context::scope(|cx| {
            let text: String = (0..9).map(|i| format!("func.func private @f{i}()\n")).collect();
            let module = Module::parse(cx, text.as_bytes(), "test").expect("it is valid");
            let parts: Vec<Vec<u8>> = module.functions().into_iter().map(|f| part_of(&module, &[f])).collect();
            let name = |part: &Module| part.functions()[0].symbol_name().expect("a function has a name");
            let mut names = vec![];
            let keep = |name| {
                names.push(name);
                Ok(())
            };
            let (here, result) = map_parts(&parts, |i, part| Ok((i, name(part))), || 7, keep);
            result.expect("nothing fails");
            assert_eq!((here, names), (7, (0..9).map(|i| (i, format!("f{i}"))).collect()));

            let fail = |i: usize, part: &Module| match i {
                4 | 7 => Err(crate::Diagnostic::global("T0001", name(part)).into()),
                _ => Ok(()),
            };
            let mut taken = 0;
            let count = |()| {
                taken += 1;
                Ok(())
            };
            let error = map_parts(&parts, fail, || (), count).1.expect_err("two fail");
            assert_eq!((error.0[0].message.as_str(), taken), ("f4", 4));
        });
    }
}
