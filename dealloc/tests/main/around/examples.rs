//! The examples of the documents on deallocation: freed as the files say, with at most as many allocations and copies as
//! the documents have, and executed both ways of each condition.

use std::path::Path;

use monopour_dealloc::lower::{LowerOptions, lower_deallocations};
use monopour_dealloc::{expand_realloc, run_ownership, simplify::simplify};
use monopour_ir::{Context, DYNAMIC, Diagnostics, Module, Op, Type, WalkOrder, run_passes};
use monopour_testkit::evaluate::lifetimes::{Program, Watch, same_values};
use monopour_testkit::host_tensor::{Data, Dtype, HostTensor};

use crate::support::{EXTENSIONS, UPSTREAM};

/// The whole pipeline of deallocation. `only-lower`: lowering of `bufferization.dealloc` alone; `in-registers`: that with
/// extensions, after upstream's form.
pub fn deallocate(options: &str, module: Op) -> Result<(), Diagnostics> {
    let has = |name: &str| options.split_whitespace().any(|o| o == name);
    let extensions = has("extensions");
    if !has("only-lower") {
        expand_realloc(module, false)?;
        run_passes(module, "builtin.module(canonicalize)")?;
        run_ownership(module, if extensions { &EXTENSIONS } else { &UPSTREAM })?;
        run_passes(module, "builtin.module(canonicalize)")?;
        simplify(module)?;
    }
    lower_deallocations(module, &LowerOptions { extensions: extensions || has("in-registers") })?;
    run_passes(module, "builtin.module(cse,canonicalize)")
}

/// Arguments of the function: sizes are 2, and each condition is taken both ways.
fn inputs(function: Op) -> Vec<Vec<HostTensor>> {
    let (types, _) = function.function_type().expect("a function has a type");
    let conditions = types.iter().filter(|ty| ty.integer_width() == Some(1)).count();
    (0..1_i64 << conditions)
        .flat_map(|choice| [(choice, 2), (choice, 3)])
        .map(|(choice, trips)| {
            let mut bits = choice;
            let each = types.iter().enumerate().map(|(position, ty)| input(*ty, position, &mut bits, trips));
            each.collect()
        })
        .collect()
}

fn input(ty: Type, position: usize, bits: &mut i64, index: i64) -> HostTensor {
    let number = |dtype, value| HostTensor { dtype, shape: vec![], data: Data::Int(vec![value]) };
    if ty.is_index() {
        return number(Dtype::Index, index);
    }
    if ty.integer_width() == Some(1) {
        let bit = *bits & 1;
        *bits >>= 1;
        return number(Dtype::Int(1), bit);
    }
    // Dynamic dimensions have the passed sizes.
    let size = |d: i64| usize::try_from(if d == DYNAMIC { index } else { d }).expect("a size");
    let shape: Vec<usize> = ty.shape().unwrap_or_default().into_iter().map(size).collect();
    HostTensor::random(Dtype::F32, &shape, position as u64)
}

fn number_of(module: &Module, names: &[&str]) -> usize {
    module.op().nested(WalkOrder::Pre).iter().filter(|op| names.contains(&op.name())).count()
}

/// The three numbers of the line `// at most: A allocations, B copies, C clones`.
fn limits(text: &str) -> Vec<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("// at most: ")).expect("a line of limits");
    line.split(' ').filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn documents_are_kept_to() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/main/around/examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        // The expected output follows the input.
        let input = text.split("// -----").next().unwrap_or_default();
        check(&path.display().to_string(), input);
        count += 1;
    }
    assert!(count > 10, "{count} examples");
}

fn check(name: &str, text: &str) {
    let (_, options) = text.lines().next().and_then(|l| l.split_once("deallocate")).expect("a test of deallocation");
    let parse = || Module::parse(Context::new(), text.as_bytes(), name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let (before, after) = (parse(), parse());
    deallocate(options, after.op()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let made = [&["memref.alloc"][..], &["memref.copy", "linalg.copy"], &["bufferization.clone"]];
    for (names, limit) in made.iter().zip(limits(text)) {
        let found = number_of(&after, names);
        assert!(found <= limit, "{name}: {found} of {names:?}, {limit} at most\n{}", after.op());
    }
    let function = before.symbol("f").expect("a function f");
    let programs = [&before, &after].map(|m| Program::new(m).unwrap_or_else(|e| panic!("{name}: {e}")));
    // A program with explicit frees must satisfy the owner checks before, too.
    let first = if options.contains("only-lower") { Watch::Owners } else { Watch::Accesses };
    for inputs in inputs(function) {
        let [expected, found] = [(0, first), (1, Watch::Owners)].map(|(side, watch)| {
            let run = programs[side].run("f", &inputs, watch);
            run.unwrap_or_else(|e| panic!("{name}, side {side}: {e}\n{}", [&before, &after][side].op()))
        });
        same_values(&expected, &found).unwrap_or_else(|e| panic!("{name}: {e}\n{}", after.op()));
    }
}
