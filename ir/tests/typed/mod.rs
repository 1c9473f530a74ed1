//! Typed views and builders: what a view reads builds an equal op.

use monopour_ir::typed::arith::{CmpFPredicate, CmpIPredicate};
use monopour_ir::typed::linalg::{IteratorType, Operands, Structured};
use monopour_ir::typed::scf::{Bounds, ForAll, Parallel};
use monopour_ir::typed::vector::{Place, Transfer};
use monopour_ir::typed::{Index, Slice, affine, bufferization, cf, gpu, linalg, llvm, memref, scf, tensor, vector};
use monopour_ir::{Attr, Context, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Value};

/// Reads the only op of this name in a function, makes it again by `spec`, and expects the module's text unchanged.
fn check(name: &str, body: &str, spec: impl Fn(Op<'static>, &mut Rewriter<'static>) -> OpSpec<'static, 'static>) {
    let cx = Context::new();
    let text = format!("func.func @f({ARGUMENTS}) {{\n  {body}\n  return\n}}");
    let module = Module::parse(cx, text.as_bytes(), "typed.mlir").unwrap_or_else(|e| panic!("{name}: {e}"));
    let module: &'static Module = Box::leak(Box::new(module));
    let before = module.op().to_string();
    let [op] = module.op().find_all(name)[..] else { panic!("one {name} in:\n{before}") };
    let mut rw = Rewriter::new(cx);
    rw.set_point(InsertionPoint::Before(op));
    let spec = spec(op, &mut rw);
    let new = rw.create(spec).expect("the result types are given");
    rw.replace_op(op, &new.results());
    assert!(module.op().verify(), "{name}: {}", module.op());
    assert_eq!(module.op().to_string(), before, "{name}");
}

const ARGUMENTS: &str = "%i: index, %j: index, %k: index, %c: i1, %x: f32, %t: tensor<?x8xf32>, %u: tensor<?x?xf32>, \
    %m: memref<?x8xf32>, %v: vector<4xf32>";

/// The op's only region, in another one.
fn body<'c>(op: Op<'c>, rw: &mut Rewriter<'c>) -> Region<'c> {
    let region = Region::new();
    rw.take_region(region, op.region(0));
    region
}

fn numbers(list: &[Index]) -> Vec<Option<i64>> {
    list.iter().map(|index| index.constant()).collect()
}

#[test]
fn slices_are_read_and_built() {
    let slice_of = |op| Slice::of(op).expect("an op with offsets, sizes and strides");
    check(
        "tensor.extract_slice",
        "%s = tensor.extract_slice %t[%i, 2] [3, %j] [%k, 1] : tensor<?x8xf32> to tensor<3x?xf32>",
        |op, _| {
            let slice = slice_of(op);
            let (i, j, k) = (op.operand(1), op.operand(2), op.operand(3));
            assert_eq!(slice.offsets, [Index::Dynamic(i), Index::Static(2)]);
            assert_eq!(slice.sizes, [Index::Static(3), Index::Dynamic(j)]);
            assert_eq!(slice.strides, [Index::Dynamic(k), Index::Static(1)]);
            assert_eq!(slice.values().collect::<Vec<_>>(), [i, j, k]);
            tensor::extract_slice(op.location(), op.operand(0), &slice, op.result(0).ty())
        },
    );
    let insert = "%s = tensor.insert_slice %u into %t[0, %i] [%j, %k] [1, 1] : tensor<?x?xf32> into tensor<?x8xf32>";
    check("tensor.insert_slice", insert, |op, _| {
        assert_eq!(slice_of(op).sizes, [Index::Dynamic(op.operand(3)), Index::Dynamic(op.operand(4))]);
        tensor::insert_slice(op.location(), op.operand(0), op.operand(1), &slice_of(op))
    });
    let parallel = "%r = scf.forall (%p) in (4) shared_outs(%o = %t) -> (tensor<?x8xf32>) { scf.forall.in_parallel {\n\
        tensor.parallel_insert_slice %u into %o[%p, 0] [%j, %k] [1, 1] : tensor<?x?xf32> into tensor<?x8xf32> } }";
    check("tensor.parallel_insert_slice", parallel, |op, _| {
        tensor::parallel_insert_slice(op.location(), op.operand(0), op.operand(1), &slice_of(op))
    });
    let subview =
        "%s = memref.subview %m[%i, 0] [%j, 4] [1, 2] : memref<?x8xf32> to memref<?x4xf32, strided<[8, 2], offset: ?>>";
    check("memref.subview", subview, |op, _| {
        memref::subview(op.location(), op.operand(0), &slice_of(op), op.result(0).ty())
    });
    let cast = "%s = memref.reinterpret_cast %m to offset: [%i], sizes: [%j, 4], strides: [%k, 1] : memref<?x8xf32> to memref<?x4xf32, strided<[?, 1], offset: ?>>";
    check("memref.reinterpret_cast", cast, |op, _| {
        let ty = op.result(0).ty().as_memref().expect("ranked");
        let of = |i| [op.operand(i)];
        let slice = ty.to_slice(of(1), of(2), of(3)).expect("a value per dynamic number");
        assert_eq!(slice, slice_of(op));
        assert_eq!(ty.to_slice(of(1), [], of(3)), None);
        memref::reinterpret_cast(op.location(), op.operand(0), &slice, op.result(0).ty())
    });
}

#[test]
fn allocations_and_pads_are_built() {
    check("memref.alloc", "%a = memref.alloc(%i) {alignment = 64 : i64} : memref<?x8xf32>", |op, _| {
        memref::alloc(op.location(), &op.operands(), op.result(0).ty()).attrs_of(op)
    });
    check("memref.alloca", "%a = memref.alloca(%i) : memref<?x8xf32>", |op, _| {
        memref::alloca(op.location(), &op.operands(), op.result(0).ty())
    });
    let pad = "%p = tensor.pad %t low[%i, 0] high[1, %j] { ^bb0(%a: index, %b: index): tensor.yield %x : f32 } : tensor<?x8xf32> to tensor<?x?xf32>";
    check("tensor.pad", pad, |op, rw| {
        let view = tensor::Pad::of(op).expect("a pad");
        let (low, high) = (view.low().expect("verified"), view.high().expect("verified"));
        assert_eq!((numbers(&low), numbers(&high)), (vec![None, Some(0)], vec![Some(1), None]));
        assert_eq!(high[1].value(), Some(op.operand(2)));
        tensor::pad(op.location(), op.operand(0), (&low, &high), op.result(0).ty(), body(op, rw))
    });
    let copy = "%a = bufferization.alloc_tensor() copy(%t) : tensor<?x8xf32>";
    check("bufferization.alloc_tensor", copy, |op, _| {
        let view = bufferization::AllocTensor::of(op).expect("an alloc_tensor");
        assert_eq!((view.dynamic_sizes().len(), view.copy_position()), (0, Some(0)));
        bufferization::alloc_tensor(op.location(), &[], Some(op.operand(0)), op.result(0).ty())
    });
    let sized = "%a = bufferization.alloc_tensor(%i) : tensor<?x8xf32>";
    check("bufferization.alloc_tensor", sized, |op, _| {
        let view = bufferization::AllocTensor::of(op).expect("an alloc_tensor");
        assert_eq!((view.dynamic_sizes(), view.copy_position()), (op.operands(), None));
        bufferization::alloc_tensor(op.location(), &view.dynamic_sizes(), None, op.result(0).ty())
    });
    let dealloc = "%r = bufferization.dealloc (%m, %m : memref<?x8xf32>, memref<?x8xf32>) if (%c, %c) retain (%m : memref<?x8xf32>)";
    check("bufferization.dealloc", dealloc, |op, _| {
        let view = bufferization::Dealloc::of(op).expect("a dealloc");
        let parts = [view.memref_positions(), view.condition_positions(), view.retained_positions()];
        assert_eq!(parts, [0..2, 2..4, 4..5]);
        let [memrefs, conditions, retained] = parts.map(|part| op.operands()[part].to_vec());
        bufferization::dealloc(op.location(), &memrefs, &conditions, &retained)
    });
}

#[test]
fn loops_are_read_and_built() {
    let forall =
        "%r = scf.forall (%p, %q) = (%i, 0) to (8, %j) step (%k, 1) shared_outs(%o = %t) -> (tensor<?x8xf32>) { }";
    check("scf.forall", forall, |op, rw| {
        let view = ForAll::of(op).expect("a forall");
        let bounds = view.bounds().expect("verified");
        assert_eq!(numbers(&bounds.lower), [None, Some(0)]);
        assert_eq!(numbers(&bounds.upper), [Some(8), None]);
        assert_eq!(bounds.step, [Index::Dynamic(op.operand(2)), Index::Static(1)]);
        assert_eq!((view.output_positions(), view.outputs()), (3..4, vec![op.operand(3)]));
        scf::forall(op.location(), &bounds, &view.outputs(), body(op, rw))
    });
    check("scf.forall", "scf.forall (%p, %q) in (8, %j) { }", |op, rw| {
        let upper = ForAll::of(op).and_then(ForAll::upper_bounds).expect("verified");
        scf::forall(op.location(), &Bounds::upto(upper), &[], body(op, rw))
    });
    let parallel = "%r = scf.parallel (%p) = (%i) to (%j) step (%k) init (%x) -> f32 { scf.reduce(%x : f32) { ^bb0(%a: f32, %b: f32): scf.reduce.return %a : f32 } }";
    check("scf.parallel", parallel, |op, rw| {
        let view = Parallel::of(op).expect("a parallel loop");
        let parts = [view.lower_bounds(), view.upper_bounds(), view.steps(), view.init_vals()];
        assert_eq!(parts.clone().map(|part| part.len()), [1; 4]);
        assert_eq!(parts.concat(), op.operands());
        OpSpec::new("scf.parallel", op.location())
            .operand_segments(&[&parts[0], &parts[1], &parts[2], &parts[3]])
            .results(&[op.result(0).ty()])
            .region(body(op, rw))
    });
    let affine = "%r = affine.for %p = %i to %j iter_args(%a = %x) -> f32 { affine.yield %a : f32 }";
    in_module(&format!("func.func @f(%i: index, %j: index, %x: f32) {{ {affine}\n return }}"), "affine.for", |op| {
        assert_eq!(affine::For::of(op).expect("a loop").init_positions(), 2..3);
    });
}

#[test]
fn predicates_are_those_of_upstream() {
    const INTEGER: [&str; 10] = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];
    const FLOAT: [&str; 16] = [
        "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno",
        "true",
    ];
    // The keyword is the predicate's name.
    let is = |name: String, keyword: &str| name.to_lowercase().trim_start_matches("always") == keyword;
    assert_eq!((INTEGER.len(), FLOAT.len()), (CmpIPredicate::ALL.len(), CmpFPredicate::ALL.len()));
    for (keyword, predicate) in INTEGER.iter().zip(CmpIPredicate::ALL) {
        assert!(is(format!("{predicate:?}"), keyword), "{predicate:?} is {keyword}");
        check("arith.cmpi", &format!("%r = arith.cmpi {keyword}, %i, %j : index"), |op, _| {
            assert_eq!(CmpIPredicate::of(op), Some(*predicate));
            let spec = OpSpec::new("arith.cmpi", op.location()).operands(&op.operands()).results(&[op.result(0).ty()]);
            spec.attr("predicate", predicate.to_attr(op.context()))
        });
    }
    for (keyword, predicate) in FLOAT.iter().zip(CmpFPredicate::ALL) {
        assert!(is(format!("{predicate:?}"), keyword), "{predicate:?} is {keyword}");
        check("arith.cmpf", &format!("%r = arith.cmpf {keyword}, %x, %x : f32"), |op, _| {
            assert_eq!(CmpFPredicate::of(op), Some(*predicate));
            let spec = OpSpec::new("arith.cmpf", op.location()).operands(&op.operands()).results(&[op.result(0).ty()]);
            spec.attr("predicate", predicate.to_attr(op.context()))
        });
    }
}

/// Calls `f` with the only op of a name.
fn in_module(text: &str, name: &str, f: impl Fn(Op<'_>)) {
    let module = Module::parse(Context::new(), text.as_bytes(), "typed.mlir").unwrap_or_else(|e| panic!("{e}"));
    f(module.op().find_all(name)[0]);
}

const GENERIC: &str = "%r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>], \
    iterator_types = [\"parallel\", \"reduction\"]} ins(%t : tensor<?x8xf32>) outs(%e : tensor<?xf32>) { \
    ^bb0(%a: f32, %b: f32): linalg.yield %a : f32 } -> tensor<?xf32>";

#[test]
fn structured_ops_are_read_and_built() {
    check("linalg.generic", &format!("%e = tensor.empty(%i) : tensor<?xf32>\n  {GENERIC}"), |op, rw| {
        assert_eq!(Structured::of(op).expect("a structured op").num_inputs(), 1);
        let iterators = linalg::iterator_types(op).expect("it carries them");
        assert_eq!(iterators, [IteratorType::Parallel, IteratorType::Reduction]);
        let maps = op.attr("indexing_maps").and_then(|a| a.as_array()).expect("it carries them");
        let maps: Vec<_> = maps.iter().filter_map(Attr::as_affine_map).collect();
        let operands = op.operands();
        let (inputs, outputs) = operands.split_at(1);
        let iterators = linalg::iterator_types_attr(op.context(), &iterators);
        linalg::generic(op.location(), Operands { inputs, outputs }, &maps, iterators, body(op, rw))
    });
    check("linalg.fill", "%r = linalg.fill ins(%x : f32) outs(%t : tensor<?x8xf32>) -> tensor<?x8xf32>", |op, rw| {
        linalg::fill(op.location(), op.operand(0), op.operand(1), body(op, rw))
    });
    check("linalg.fill", "linalg.fill ins(%x : f32) outs(%m : memref<?x8xf32>)", |op, rw| {
        linalg::fill(op.location(), op.operand(0), op.operand(1), body(op, rw))
    });
    let matmul = "%r = linalg.matmul ins(%u, %t : tensor<?x?xf32>, tensor<?x8xf32>) outs(%t : tensor<?x8xf32>) -> tensor<?x8xf32>";
    check("linalg.matmul", matmul, |op, rw| {
        let maps = op.attr("indexing_maps").and_then(|a| a.as_array()).expect("it carries them");
        let maps: Vec<_> = maps.iter().filter_map(Attr::as_affine_map).collect();
        let operands = op.operands();
        let (inputs, outputs) = operands.split_at(2);
        linalg::matmul(op.location(), Operands { inputs, outputs }, &maps, body(op, rw))
    });
    let pack = |padding: &str| {
        format!(
            "func.func @f(%x: f32, %t: tensor<9xf32>, %d: tensor<3x4xf32>) {{ %r = linalg.pack %t {padding} inner_dims_pos = [0] inner_tiles = [4] into %d : tensor<9xf32> -> tensor<3x4xf32>\n return }}"
        )
    };
    in_module(&pack("padding_value(%x : f32)"), "linalg.pack", |op| {
        assert_eq!(linalg::Pack::of(op).expect("a pack").padding_position(), Some(2));
        assert_eq!(Structured::of(op), None);
    });
    in_module(&pack("").replace("9xf32", "12xf32"), "linalg.pack", |op| {
        assert_eq!(linalg::Pack::of(op).expect("a pack").padding_position(), None);
    });
}

#[test]
fn transfers_are_read_and_built() {
    let read = "%r = vector.transfer_read %t[%i, %j], %x {in_bounds = [true]} : tensor<?x8xf32>, vector<4xf32>";
    check("vector.transfer_read", read, |op, _| {
        let view = Transfer::of(op).expect("a transfer");
        assert_eq!((view.index_positions(), view.mask_position()), (1..3, None));
        assert_eq!(view.in_bounds(1), [true]);
        let permutation_map = view.permutation_map().expect("it has one");
        let place = Place { base: view.base(), indices: &view.indices(), permutation_map };
        vector::transfer_read(op.location(), &place, op.operand(3), op.result(0).ty())
    });
    let write = "%r = vector.transfer_write %v, %t[%i, %j] {in_bounds = [true]} : vector<4xf32>, tensor<?x8xf32>";
    check("vector.transfer_write", write, |op, _| {
        let view = Transfer::of(op).expect("a transfer");
        assert_eq!((view.base(), view.index_positions(), view.mask_position()), (op.operand(1), 2..4, None));
        let permutation_map = view.permutation_map().expect("it has one");
        let place = Place { base: view.base(), indices: &view.indices(), permutation_map };
        vector::transfer_write(op.location(), op.operand(0), &place)
    });
    let masked = "func.func @f(%t: tensor<8xf32>, %i: index, %x: f32, %k: vector<4xi1>) { %r = vector.transfer_read %t[%i], %x, %k : tensor<8xf32>, vector<4xf32>\n return }";
    in_module(masked, "vector.transfer_read", |op| {
        let view = Transfer::of(op).expect("a transfer");
        assert_eq!((view.mask_position(), view.in_bounds(1)), (Some(3), vec![false]));
    });
}

#[test]
fn branches_give_their_successors_operands() {
    let conditional = "func.func @f(%c: i1, %i: index) { cf.cond_br %c, ^bb1(%i, %i : index, index), ^bb2(%i : index)\n\
        ^bb1(%a: index, %b: index): return\n ^bb2(%d: index): return }";
    in_module(conditional, "cf.cond_br", |op| {
        let branch = cf::CondBranch::of(op).expect("a branch");
        assert_eq!((branch.successor_operands(0), branch.successor_operands(1)), (1..3, 3..4));
    });
    let switch = "func.func @f(%s: i32, %i: index) { cf.switch %s : i32, [ default: ^bb1(%i : index), 3: ^bb2(%i, %i : index, index), 5: ^bb1(%i : index) ]\n\
        ^bb1(%a: index): return\n ^bb2(%b: index, %d: index): return }";
    in_module(switch, "cf.switch", |op| {
        let switch = cf::Switch::of(op).expect("a switch");
        assert_eq!(switch.default_operands(), 1..2);
        assert_eq!([0, 1, 2].map(|case| switch.case_operands(case)), [Some(2..4), Some(4..5), None]);
    });
}

#[test]
fn calls_of_llvm_are_built() {
    let cx = Context::new();
    let text = "llvm.func @g(i64)\nllvm.func @f(%x: i64) {\n  llvm.call @g(%x) : (i64) -> ()\n  llvm.return\n}";
    let module = Module::parse(cx, text.as_bytes(), "typed.mlir").expect("parses");
    let before = module.op().to_string();
    let op = module.op().find_all("llvm.call")[0];
    let mut rw = Rewriter::new(cx);
    rw.set_point(InsertionPoint::Before(op));
    rw.create(llvm::call(op.location(), "g", &op.operands())).expect("no type is inferred");
    rw.erase(op);
    assert_eq!(module.op().to_string(), before);
}

#[test]
fn a_view_is_of_its_op_alone() {
    in_module(
        "func.func @f(%i: index, %m: memref<?xf32>) { %a = memref.alloc(%i) : memref<?xf32>\n return }",
        "memref.alloc",
        |op| {
            assert!(Slice::of(op).is_none() && Structured::of(op).is_none() && Transfer::of(op).is_none());
            assert!(ForAll::of(op).is_none() && bufferization::Dealloc::of(op).is_none());
            assert_eq!(op.operand_segments(), Some(vec![1, 0]));
            assert_eq!([op.operand_segment(0), op.operand_segment(1), op.operand_segment(7)], [0..1, 1..1, 1..1]);
        },
    );
    in_module("func.func @f() { %t = gpu.thread_id y\n return }", "gpu.thread_id", |op| {
        assert_eq!((gpu::dimension(op), op.operand_segments()), (Some(gpu::Dimension::Y), None));
        assert_eq!(gpu::dimension(op.parent().expect("in a function")), None);
    });
}

#[test]
fn more_operands_join_the_last_segment() {
    let cx = Context::new();
    let text = "func.func @f(%m: memref<4xf32>, %c: i1) {\n  %r = bufferization.dealloc (%m : memref<4xf32>) if (%c) retain (%m : memref<4xf32>)\n  return\n}";
    let module = Module::parse(cx, text.as_bytes(), "typed.mlir").expect("parses");
    let op = module.op().find_all("bufferization.dealloc")[0];
    let mut rw = Rewriter::new(cx);
    rw.set_point(InsertionPoint::Before(op));
    let operands: Vec<Value> = op.operands().into_iter().chain([op.operand(0)]).collect();
    let bit = op.result(0).ty();
    let new = rw.recreate_extended(op, &operands, &[bit, bit]).expect("the types are given");
    assert_eq!(new.operand_segments(), Some(vec![1, 1, 2]));
    rw.set_operands(new, &op.operands());
    rw.set_operand_segments(new, &[1, 1, 1]);
    assert_eq!(new.operand_segments(), op.operand_segments());
}
