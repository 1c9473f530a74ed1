//! Outline, plan and schedule on small host functions.

mod transients;
mod twins;

use expect_test::{Expect, expect, expect_file};
use monopour_ir::{Context, Diagnostics, Module, Op, ops};
use monopour_program::Constant;
use monopour_split::{borders, constants, copies, host_data, outline, plan, schedule};

/// Two dispatches over a transient, a constant and a returned buffer.
const CHAIN: &str = r#"
memref.global "private" constant @w : memref<8xf32> = dense<1.0>
func.func @main(%x: memref<8xf32>) -> memref<8xf32> {
  %cst = arith.constant 2.0 : f32
  %w = memref.get_global @w : memref<8xf32>
  %t = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
  scf.forall (%i) in (2) {
    %o = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
    %a = memref.subview %x[%o] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: ?>>
    %b = memref.subview %t[%o] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: ?>>
    linalg.map { arith.addf } ins(%a, %a : memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, strided<[1], offset: ?>>) outs(%b : memref<4xf32, strided<[1], offset: ?>>)
  } {monopour.kernel = {class = "elementwise"}}
  %r = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
  scf.forall (%i) in (2) {
    linalg.fill ins(%cst : f32) outs(%r : memref<8xf32>)
    linalg.map { arith.addf } ins(%t, %w : memref<8xf32>, memref<8xf32>) outs(%r : memref<8xf32>)
  } {monopour.kernel = {class = "elementwise"}}
  memref.dealloc %t : memref<8xf32>
  return %r : memref<8xf32>
}
"#;

fn phases<'c>(text: &str) -> Result<(Module<'c>, plan::Report, schedule::Scheduled), Diagnostics> {
    let cx = Context::new();
    let module = Module::parse(cx, text.as_bytes(), "test.mlir")?;
    outline::run(&module)?;
    let host = module.symbol("main").expect("the input has @main");
    let report = plan::run(&module, host, u64::MAX, false)?;
    let scheduled = schedule::run(&module, host, constants::Known::default(), false)?;
    module.op().verify_with_diagnostics()?;
    Ok((module, report, scheduled))
}

fn check_code(text: &str, expected: Expect) {
    let errors = phases(text).expect_err("is refused");
    expected.assert_eq(&errors.0[0].to_string());
}

#[test]
fn the_host_function_becomes_runtime_calls() {
    let (module, report, scheduled) = phases(CHAIN).expect("schedules");
    assert_eq!(scheduled.kernels, ["main_dispatch_0", "main_dispatch_1"]);
    assert_eq!(scheduled.constants, ["w"]);
    assert!(scheduled.copies.is_empty());
    assert_eq!(report.arena_bytes, 256);
    let host = module.symbol("main").expect("kept");
    expect![[r#"
        func.func @main(%arg0: i64) {
          %c256_i64 = arith.constant 256 : i64
          %0 = call @monopour_rt_arena(%arg0, %c256_i64) : (i64, i64) -> i64
          %cst = arith.constant 2.000000e+00 : f32
          %c0 = arith.constant 0 : index
          %c0_i64 = arith.constant 0 : i64
          %c32_i64 = arith.constant 32 : i64
          %c0_i64_0 = arith.constant 0 : i64
          %1 = call @monopour_rt_input(%arg0, %c0_i64_0) : (i64, i64) -> i64
          call @monopour_rt_arg(%arg0, %1, %c0_i64, %c32_i64) : (i64, i64, i64, i64) -> ()
          %c0_i64_1 = arith.constant 0 : i64
          %c32_i64_2 = arith.constant 32 : i64
          call @monopour_rt_arg(%arg0, %0, %c0_i64_1, %c32_i64_2) : (i64, i64, i64, i64) -> ()
          %c0_i64_3 = arith.constant 0 : i64
          %c2_i64 = arith.constant 2 : i64
          %c1_i64 = arith.constant 1 : i64
          %c1_i64_4 = arith.constant 1 : i64
          call @monopour_rt_dispatch(%arg0, %c0_i64_3, %c2_i64, %c1_i64, %c1_i64_4) : (i64, i64, i64, i64, i64) -> ()
          %c32_i64_5 = arith.constant 32 : i64
          %2 = call @monopour_rt_alloc(%arg0, %c32_i64_5) : (i64, i64) -> i64
          %c0_i64_6 = arith.constant 0 : i64
          %c32_i64_7 = arith.constant 32 : i64
          call @monopour_rt_arg(%arg0, %2, %c0_i64_6, %c32_i64_7) : (i64, i64, i64, i64) -> ()
          %c0_i64_8 = arith.constant 0 : i64
          %c32_i64_9 = arith.constant 32 : i64
          call @monopour_rt_arg(%arg0, %0, %c0_i64_8, %c32_i64_9) : (i64, i64, i64, i64) -> ()
          %c0_i64_10 = arith.constant 0 : i64
          %c32_i64_11 = arith.constant 32 : i64
          %c0_i64_12 = arith.constant 0 : i64
          %3 = call @monopour_rt_constant(%arg0, %c0_i64_12) : (i64, i64) -> i64
          call @monopour_rt_arg(%arg0, %3, %c0_i64_10, %c32_i64_11) : (i64, i64, i64, i64) -> ()
          %c1_i64_13 = arith.constant 1 : i64
          %c2_i64_14 = arith.constant 2 : i64
          %c1_i64_15 = arith.constant 1 : i64
          %c1_i64_16 = arith.constant 1 : i64
          call @monopour_rt_dispatch(%arg0, %c1_i64_13, %c2_i64_14, %c1_i64_15, %c1_i64_16) : (i64, i64, i64, i64, i64) -> ()
          %c0_i64_17 = arith.constant 0 : i64
          call @monopour_rt_result(%arg0, %c0_i64_17, %2) : (i64, i64, i64) -> ()
          return
        }"#]].assert_eq(&host.to_string());
}

#[test]
fn a_kernel_takes_each_buffer_once_and_then_the_tile_id() {
    let cx = Context::new();
    let module = Module::parse(cx, CHAIN.as_bytes(), "test.mlir").expect("parses");
    assert_eq!(outline::run(&module).expect("outlines").kernels, 2);
    let kernel = module.symbol("main_dispatch_1").expect("made");
    expect![[r#"
        func.func private @main_dispatch_1(%arg0: memref<8xf32>, %arg1: memref<8xf32>, %arg2: memref<8xf32>, %arg3: index) attributes {monopour.grid_rank = 1 : i64, monopour.kernel = {class = "elementwise"}} {
          %cst = arith.constant 2.000000e+00 : f32
          linalg.fill ins(%cst : f32) outs(%arg0 : memref<8xf32>)
          linalg.map { arith.addf } ins(%arg1, %arg2 : memref<8xf32>, memref<8xf32>) outs(%arg0 : memref<8xf32>)
          return
        }"#]].assert_eq(&kernel.to_string());
}

#[test]
fn transients_whose_lives_do_not_meet_share_memory() {
    let text = r#"
func.func private @k(memref<1000xf32>, memref<1000xf32>, index)
func.func @main(%x: memref<1000xf32>) -> memref<1000xf32> {
  %a = memref.alloc() : memref<1000xf32>
  %b = memref.alloc() : memref<1000xf32>
  %c = memref.alloc() : memref<1000xf32>
  %r = memref.alloc() : memref<1000xf32>
  scf.forall (%i) in (1) { func.call @k(%x, %a, %i) : (memref<1000xf32>, memref<1000xf32>, index) -> () }
  scf.forall (%i) in (1) { func.call @k(%a, %b, %i) : (memref<1000xf32>, memref<1000xf32>, index) -> () }
  scf.forall (%i) in (1) { func.call @k(%b, %c, %i) : (memref<1000xf32>, memref<1000xf32>, index) -> () }
  scf.forall (%i) in (1) { func.call @k(%c, %r, %i) : (memref<1000xf32>, memref<1000xf32>, index) -> () }
  memref.dealloc %a : memref<1000xf32>
  memref.dealloc %b : memref<1000xf32>
  memref.dealloc %c : memref<1000xf32>
  return %r : memref<1000xf32>
}
"#;
    let (_, report, _) = phases(text).expect("schedules");
    assert_eq!(report.transients.len(), 3);
    // %a is dead when %c is born: two slots of 4,096 bytes (4,000 rounded up to 256) serve three buffers.
    assert_eq!(report.arena_bytes, 2 * 4096);
    assert_eq!(report.lower_bound_bytes, 2 * 4096);
    assert_eq!(report.transients[0].offset_bytes, report.transients[2].offset_bytes);
}

#[test]
fn constants_are_read_out_of_the_module() {
    let (module, _, scheduled) = phases(CHAIN).expect("schedules");
    let found = constants::collect(&module, &scheduled.constants, &|_| None).expect("has data");
    assert_eq!(found[0].name, "w");
    assert_eq!(found[0].data.bytes(), 1.0f32.to_le_bytes().repeat(8));
}

/// The symbols of two variants are numbered each: equal ones may name other elements.
#[test]
fn constants_of_other_variants_are_told_by_their_elements() {
    let (module, _, scheduled) = phases(CHAIN).expect("schedules");
    let mut known = constants::collect(&module, &scheduled.constants, &|_| None).expect("has data");
    let again = Module::parse(Context::new(), CHAIN.as_bytes(), "test.mlir").expect("parses");
    let index = |known: &[Constant]| {
        let module = again.duplicate();
        outline::run(&module).expect("outlines");
        let found = constants::Known::of(&module, known, &|_| None);
        let host = module.symbol("main").expect("the input has @main");
        plan::run(&module, host, u64::MAX, false).expect("plans");
        let scheduled = schedule::run(&module, host, found, false).expect("schedules");
        let calls = module.op().find_all(ops::func::CALL).into_iter();
        let call = calls.into_iter().find(|call| call.callee() == Some("monopour_rt_constant")).expect("one constant");
        (call.operand(1).constant_int(), scheduled.constants)
    };
    assert_eq!(index(&known), (Some(0), vec![]));
    let other = Constant { data: vec![0u8; 32].into(), ..known[0].clone() };
    known.insert(0, other.clone());
    assert_eq!(index(&known), (Some(1), vec![]));
    assert_eq!(index(&[other]), (Some(1), vec!["w".to_owned()]));
}

#[test]
fn a_captured_vector_is_refused() {
    check_code(
        "func.func @main(%n: vector<4xf32>, %x: memref<8xf32>) {\n  %c = arith.constant 0 : index\n  scf.forall (%i) in (2) {\n    vector.store %n, %x[%c] : memref<8xf32>, vector<4xf32>\n  } {monopour.kernel = {}}\n  return\n}\n",
        expect![[r#"
            error[S0001]: a dispatch captures a value of type vector<4xf32>
              --> test.mlir:4:5
              help: kernels take memrefs, integers of 1 to 64 bits, floats and index values: compute the value inside the dispatch"#]],
    );
}

#[test]
fn a_grid_of_four_dimensions_is_refused() {
    check_code(
        "func.func @main(%x: memref<8xf32>) {\n  scf.forall (%i, %j, %k, %l) in (2, 2, 2, 2) {\n  } {monopour.kernel = {}}\n  return\n}\n",
        expect![[r#"
            error[S0002]: the grid of a dispatch is not from 0, by step 1, in at most three dimensions
              --> test.mlir:2:3
              help: normalise the scf.forall: lower bounds 0, steps 1, at most three dimensions"#]],
    );
}

#[test]
fn an_op_that_the_host_cannot_run_is_refused() {
    check_code(
        "func.func @main(%x: memref<8xf32>) {\n  %z = arith.constant 0.0 : f32\n  linalg.fill ins(%z : f32) outs(%x : memref<8xf32>)\n  return\n}\n",
        expect![[r#"
            error[S0003]: 'linalg.fill' cannot run on the host
              --> test.mlir:3:3
              help: host code allocates, frees, copies, reads and writes elements, computes with scalars, loops, branches and dispatches kernels; anything else must be inside a dispatch"#]],
    );
}

#[test]
fn a_result_inside_of_its_buffer_is_refused() {
    check_code(
        "func.func @main(%x: memref<8xf32>) -> memref<4xf32, strided<[1], offset: 4>> {\n  %v = memref.subview %x[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>\n  return %v : memref<4xf32, strided<[1], offset: 4>>\n}\n",
        expect![[r#"
            error[S0004]: 'func.return' cannot work on a buffer of type memref<4xf32, strided<[1], offset: 4>> on the host
              --> test.mlir:3:3
              help: give results and constants a contiguous layout that begins their buffer"#]],
    );
}

/// A copy on the host moves one range of bytes; outlining makes a dispatch of any other.
#[test]
fn copies_on_the_host_are_of_contiguous_buffers() {
    let copy = |from: &str, to: &str| {
        let rows = "memref<8x4xf32, strided<[8, 1]>>";
        let ty = |name: &str| if name == "%v" { rows } else { "memref<8x4xf32>" };
        format!(
            "func.func @main(%x: memref<8x8xf32>, %y: memref<8x4xf32>, %z: memref<8x4xf32>) {{
               %v = memref.subview %x[0, 0] [8, 4] [1, 1] : memref<8x8xf32> to {rows}
               memref.copy {from}, {to} : {} to {}
               return
             }}",
            ty(from),
            ty(to)
        )
    };
    let scheduled = |text: &str| {
        let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("parses");
        let host = module.symbol("main").expect("the input has @main");
        plan::run(&module, host, u64::MAX, false)?;
        let scheduled = schedule::run(&module, host, constants::Known::default(), false)?;
        Ok::<_, Diagnostics>((scheduled.copies, callees(&module)))
    };
    let (copies, calls) = scheduled(&copy("%y", "%z")).expect("schedules");
    assert_eq!(copies, [8 * 4 * 4]);
    assert_eq!(calls.last().map(String::as_str), Some("monopour_rt_copy"));
    for (from, to) in [("%v", "%y"), ("%y", "%v")] {
        let errors = scheduled(&copy(from, to)).expect_err("is refused");
        let expected = "'memref.copy' cannot work on a buffer of type memref<8x4xf32, strided<[8, 1]>> on the host";
        assert_eq!((errors.0[0].code, errors.0[0].message.as_str()), ("S0004", expected));
    }
}

/// Loop-dependent slices, a captured scalar, a buffer of dynamic size, a load by the host.
const DYNAMIC: &str = r#"
func.func @main(%x: memref<?xf32>, %n: index, %f: f32) -> (memref<?xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = memref.dim %x, %c0 : memref<?xf32>
  %r = memref.alloc(%d) : memref<?xf32>
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%a = %f) -> (f32) {
    %v = memref.subview %r[%k] [4] [1] : memref<?xf32> to memref<4xf32, strided<[1], offset: ?>>
    scf.forall (%i) in (%d) {
      linalg.fill ins(%a : f32) outs(%v : memref<4xf32, strided<[1], offset: ?>>)
    } {monopour.kernel = {class = "generic"}}
    %e = memref.load %x[%k] : memref<?xf32>
    scf.yield %e : f32
  }
  return %r, %s : memref<?xf32>, f32
}
"#;

#[test]
fn views_and_scalars_go_into_the_kernel() {
    let cx = Context::new();
    let module = Module::parse(cx, DYNAMIC.as_bytes(), "test.mlir").expect("parses");
    assert_eq!(outline::run(&module).expect("outlines").kernels, 1);
    let kernel = module.symbol("main_dispatch_0").expect("made");
    expect![[r#"
        func.func private @main_dispatch_0(%arg0: memref<f32>, %arg1: index, %arg2: f32, %arg3: index, %arg4: index) attributes {monopour.grid_rank = 1 : i64, monopour.kernel = {class = "generic"}} {
          %reinterpret_cast = memref.reinterpret_cast %arg0 to offset: [0], sizes: [%arg1], strides: [1] : memref<f32> to memref<?xf32>
          %subview = memref.subview %reinterpret_cast[%arg3] [4] [1] : memref<?xf32> to memref<4xf32, strided<[1], offset: ?>>
          linalg.fill ins(%arg2 : f32) outs(%subview : memref<4xf32, strided<[1], offset: ?>>)
          return
        }"#]].assert_eq(&kernel.to_string());
}

#[test]
fn loops_scalars_and_dynamic_sizes_become_host_code() {
    let (module, _, _) = phases(DYNAMIC).expect("schedules");
    let host = module.symbol("main").expect("kept");
    expect_file!["snapshots/dynamic_host.mlir"].assert_eq(&host.to_string());
}

#[test]
fn a_constant_without_data_is_refused() {
    let text = CHAIN.replace("dense<1.0>", "dense_resource<w0>");
    let (module, _, scheduled) = phases(&text).expect("schedules");
    let errors = constants::collect(&module, &scheduled.constants, &|_| None).expect_err("is refused");
    assert_eq!(errors.0[0].code, "S0005");
    let given = constants::collect(&module, &scheduled.constants, &|name| (name == "w0").then(|| vec![0u8; 32].into()));
    assert_eq!(given.expect("given")[0].name, "w0");
}

/// Three dispatches of one shape: on an input and a transient, on two transients, and on a transient and the result.
const LAYERS: &str = r#"
memref.global "private" constant @w0 : memref<8xf32> = dense<1.0>
memref.global "private" constant @w1 : memref<8xf32> = dense<2.0>
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) -> memref<8xf32> {
  %w0 = memref.get_global @w0 : memref<8xf32>
  %w1 = memref.get_global @w1 : memref<8xf32>
  %s = memref.alloc() : memref<8xf32>
  %t = memref.alloc() : memref<8xf32>
  %r = memref.alloc() : memref<8xf32>
  scf.forall (%i) in (2) {
    linalg.map { arith.addf } ins(%x, %w0 : memref<8xf32>, memref<8xf32>) outs(%s : memref<8xf32>)
  } {monopour.kernel = {class = "elementwise"}}
  scf.forall (%i) in (2) {
    linalg.map { arith.addf } ins(%s, %w1 : memref<8xf32>, memref<8xf32>) outs(%t : memref<8xf32>)
  } {monopour.kernel = {class = "elementwise"}}
  scf.forall (%i) in (2) {
    linalg.map { arith.addf } ins(%t, %y : memref<8xf32>, memref<8xf32>) outs(%r : memref<8xf32>)
  } {monopour.kernel = {class = "elementwise"}}
  memref.dealloc %s : memref<8xf32>
  memref.dealloc %t : memref<8xf32>
  return %r : memref<8xf32>
}
"#;

/// Callees of the calls in `main`, in order.
fn callees(module: &Module) -> Vec<String> {
    let calls = module.symbol("main").expect("kept").find_all("func.call").into_iter();
    calls.filter_map(|c| Some(c.attr("callee")?.as_symbol()?.to_owned())).collect()
}

#[test]
fn dispatches_of_equal_structure_share_a_kernel() {
    let outlined = |text: &str| {
        let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("parses");
        let stats = outline::run(&module).expect("outlines");
        module.op().verify_with_diagnostics().expect("valid");
        (stats.dispatches, stats.kernels, callees(&module))
    };
    let k = |i: usize| format!("main_dispatch_{i}");
    assert_eq!(outlined(LAYERS), (3, 1, vec![k(0), k(0), k(0)]));
    // Another body, grid, attribute, or wiring of the same values: a kernel each.
    let other = |from: &str, to: &str| LAYERS.replacen(from, to, 1);
    assert_eq!(outlined(&other("arith.addf", "arith.mulf")), (3, 2, vec![k(0), k(1), k(1)]));
    assert_eq!(outlined(&other("in (2)", "in (4)")), (3, 2, vec![k(0), k(1), k(1)]));
    assert_eq!(outlined(&other("\"elementwise\"", "\"generic\"")), (3, 2, vec![k(0), k(1), k(1)]));
    assert_eq!(outlined(&other("ins(%x, %w0", "ins(%x, %x")), (3, 2, vec![k(0), k(1), k(1)]));
}

/// The first call passes an input where the second passes the arena: an input bound for writing there could not be bound for
/// reading beside it.
#[test]
fn what_is_read_from_the_arena_gets_a_kernel_of_its_own() {
    let text = r#"
func.func private @k(%a: memref<8xf32> {monopour.access = "read"}, %b: memref<8xf32> {monopour.access = "read"}, %c: memref<8xf32> {monopour.access = "write"}) { return }
func.func @main(%x: memref<8xf32>) -> memref<8xf32> {
  %s = memref.alloc() : memref<8xf32>
  %t = memref.alloc() : memref<8xf32>
  %r = memref.alloc() : memref<8xf32>
  scf.forall (%i) in (1) { func.call @k(%x, %x, %s) : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> () }
  scf.forall (%i) in (1) { func.call @k(%s, %x, %t) : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> () }
  scf.forall (%i) in (1) { func.call @k(%t, %x, %r) : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> () }
  memref.dealloc %s : memref<8xf32>
  memref.dealloc %t : memref<8xf32>
  return %r : memref<8xf32>
}
"#;
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("parses");
    plan::run(&module, module.symbol("main").expect("there"), u64::MAX, false).expect("plans");
    assert_eq!(callees(&module), ["k", "k_binding_1", "k_binding_1"]);
    let access = |name: &str| {
        let kernel = module.symbol(name).expect("made");
        let attrs = kernel.attr("arg_attrs").and_then(|a| a.as_array()).expect("kept").into_iter();
        attrs.filter_map(|a| Some(a.get("monopour.access")?.as_string()?.to_owned())).collect::<Vec<_>>()
    };
    // An argument in the arena that is only written needs no clone.
    assert_eq!(access("k"), ["read", "read", "write"]);
    assert_eq!(access("k_binding_1"), ["read_write", "read", "write"]);
}

/// One copy on its own, one within the arena (two commands on a GPU), one in a loop of static length and one in a loop of
/// dynamic length, one behind a condition; and a kernel that copies two elements of eight in each of two tiles.
const COPIES: &str = r#"
func.func @main(%x: memref<8xf32>, %n: index, %p: i1) -> memref<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %s = memref.alloc() : memref<8xf32>
  %t = memref.alloc() : memref<8xf32>
  %r = memref.alloc() : memref<8xf32>
  memref.copy %x, %s : memref<8xf32> to memref<8xf32>
  memref.copy %s, %t : memref<8xf32> to memref<8xf32>
  scf.for %i = %c0 to %c5 step %c2 {
    memref.copy %t, %r : memref<8xf32> to memref<8xf32>
  }
  scf.for %i = %c0 to %n step %c1 {
    memref.copy %t, %r : memref<8xf32> to memref<8xf32>
  }
  scf.if %p {
    memref.copy %t, %r : memref<8xf32> to memref<8xf32>
  }
  scf.forall (%i) in (2) {
    %o = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
    %a = memref.subview %t[%o] [2] [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: ?>>
    %b = memref.subview %r[%o] [2] [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: ?>>
    memref.copy %a, %b : memref<2xf32, strided<[1], offset: ?>> to memref<2xf32, strided<[1], offset: ?>>
  } {monopour.kernel = {class = "generic"}}
  memref.dealloc %s : memref<8xf32>
  memref.dealloc %t : memref<8xf32>
  return %r : memref<8xf32>
}
"#;

#[test]
fn copies_are_counted_as_often_as_a_run_comes_by() {
    let module = Module::parse(Context::new(), COPIES.as_bytes(), "test.mlir").expect("parses");
    outline::run(&module).expect("outlines");
    let kernels = copies::of_kernels(&module);
    let host = module.symbol("main").expect("the input has @main");
    plan::run(&module, host, u64::MAX, false).expect("plans");
    let sites = |is_gpu| -> Vec<(String, Option<u64>, Option<u64>)> {
        let sites = copies::of_host(&module, host, &kernels, is_gpu).into_iter();
        sites.map(|site| (site.location, site.bytes, site.times)).collect()
    };
    let at = |line: u32, column: u32| format!("test.mlir:{line}:{column}");
    // Buffers of the arena that are alive at once are apart: one copy, on a GPU by a kernel.
    let expected = vec![
        (at(10, 3), Some(32), Some(1)),
        (at(11, 3), Some(32), Some(1)),
        (at(13, 5), Some(32), Some(3)),
        (at(16, 5), Some(32), None),
        (at(19, 5), Some(32), None),
        (at(25, 5), Some(16), Some(1)),
    ];
    assert_eq!(sites(true), expected);
    assert_eq!(sites(false), expected);
}

/// A folded grid: as many rows as needed, of equal length, the last one partial.
#[test]
fn a_long_grid_is_folded_into_rows() {
    let grid = |tiles: u32, most: u32| {
        let text = format!(
            "func.func private @k(%x: memref<8xf32>, %i: index) attributes \
             {{monopour.kernel = {{}}, monopour.grid_rank = 1 : i64, monopour.linear_grid = {most} : i64}} {{ return }}\n\
             func.func @main(%x: memref<8xf32>) {{\n  scf.forall (%i) in ({tiles}) {{\n    \
             func.call @k(%x, %i) : (memref<8xf32>, index) -> ()\n  }}\n  return\n}}"
        );
        let (module, ..) = phases(&text).expect("schedules");
        let calls = module.symbol("main").expect("kept").find_all("func.call").into_iter();
        let is_dispatch =
            |call: &Op| call.attr("callee").is_some_and(|a| a.as_symbol() == Some("monopour_rt_dispatch"));
        let dispatch = calls.into_iter().find(is_dispatch).expect("dispatched");
        [2, 3, 4].map(|i| dispatch.operand(i).constant_int().expect("known"))
    };
    assert_eq!(grid(65_535, 1 << 20), [65_535, 1, 1]);
    assert_eq!(grid(65_536, 1 << 20), [32_768, 2, 1]);
    assert_eq!(grid(131_073, 1 << 20), [43_691, 3, 1]);
    assert_eq!(grid(131_073, 100), [100, 1, 1]);
}

#[test]
fn host_code_of_a_gpu_has_no_kernels() {
    let (module, ..) = phases(CHAIN).expect("schedules");
    let host = schedule::host_only(&module, "main");
    let mut names: Vec<_> = host.body().ops().into_iter().filter_map(|op| op.symbol_name()).collect();
    names.retain(|name| !name.starts_with("monopour_rt_"));
    assert_eq!(names, ["main"]);
    host.op().verify_with_diagnostics().expect("what the host calls is still declared");
    assert!(module.functions().len() > 1, "the module keeps its kernels");
}

/// A buffer whose border a dispatch fills, with what else the host does with it; `true` if the fill runs once per arena.
fn is_filled_once(uses: &str) -> bool {
    let module = with_border(uses);
    borders::run(module.symbol("main").expect("the input has @main"), false);
    module.op().find_all("scf.forall").iter().any(|op| op.attr("monopour.border").is_some())
}

fn with_border(uses: &str) -> Module<'static> {
    let text = format!(
        r#"
#slice = strided<[6, 1], offset: 7>
func.func private @take(memref<4x6xf32>)
func.func @main(%x: memref<2x4xf32>) {{
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<4x6xf32>
  %other = memref.alloc() : memref<4x6xf32>
  scf.forall (%i) in (1) {{
    linalg.fill ins(%zero : f32) outs(%a : memref<4x6xf32>)
  }} {{monopour.border = {{slices = [array<i64: 1, 1, 2, 4>], value = 0.0 : f32}}, monopour.kernel = {{class = "elementwise"}}}}
  %s = memref.subview %a[1, 1] [2, 4] [1, 1] : memref<4x6xf32> to memref<2x4xf32, #slice>
  scf.forall (%i) in (1) {{
    linalg.copy ins(%x : memref<2x4xf32>) outs(%s : memref<2x4xf32, #slice>)
  }} {{monopour.kernel = {{class = "elementwise"}}}}
  scf.forall (%i) in (1) {{
    linalg.copy ins(%a : memref<4x6xf32>) outs(%other : memref<4x6xf32>)
  }} {{monopour.kernel = {{class = "elementwise"}}}}
  {uses}
  memref.dealloc %a : memref<4x6xf32>
  memref.dealloc %other : memref<4x6xf32>
  return
}}
"#
    );
    Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}"))
}

#[test]
fn a_border_alone_is_filled() {
    let filled = |uses: &str| {
        let module = with_border(uses);
        borders::run(module.symbol("main").expect("the input has @main"), true);
        assert!(module.op().verify_with_diagnostics().is_ok());
        let shape = |fill: &Op| (fill.operand(1).ty().shape().expect("a memref"), fill.operand(1).ty().to_string());
        module.op().find_all("linalg.fill").iter().map(shape).collect::<Vec<_>>()
    };
    let parts = filled("");
    let shapes: Vec<&[i64]> = parts.iter().map(|(shape, _)| &shape[..]).collect();
    assert_eq!(shapes, [[1, 6], [1, 6], [2, 1], [2, 1]]);
    let offsets: Vec<bool> = parts
        .iter()
        .zip(["[6, 1]>", "offset: 18", "offset: 6", "offset: 11"])
        .map(|((_, ty), at)| ty.contains(at))
        .collect();
    assert_eq!(offsets, [true; 4], "{parts:?}");
    let changed = "scf.forall (%i) in (1) { linalg.fill ins(%zero : f32) outs(%a : memref<4x6xf32>) } {monopour.kernel = {class = \"elementwise\"}}";
    assert_eq!(filled(changed).len(), 2, "as it was");
}

#[test]
fn a_border_is_kept_where_only_its_slices_are_written() {
    let dispatch =
        |body: &str| format!("scf.forall (%i) in (1) {{ {body} }} {{monopour.kernel = {{class = \"elementwise\"}}}}");
    assert!(is_filled_once(""));
    let part = "%p = memref.subview %s[0, 0] [1, 4] [1, 1] : memref<2x4xf32, #slice> to memref<1x4xf32, #slice>";
    let written = |buffer: &str, ty: &str| dispatch(&format!("linalg.fill ins(%zero : f32) outs({buffer} : {ty})"));
    assert!(is_filled_once(&format!("{part} {}", written("%p", "memref<1x4xf32, #slice>"))), "a part of the slice");
    assert!(!is_filled_once(&written("%a", "memref<4x6xf32>")), "the whole buffer");
    let row =
        "%p = memref.subview %a[0, 1] [3, 4] [1, 1] : memref<4x6xf32> to memref<3x4xf32, strided<[6, 1], offset: 1>>";
    let row = format!("{row} {}", written("%p", "memref<3x4xf32, strided<[6, 1], offset: 1>>"));
    assert!(!is_filled_once(&row), "another slice");
    let cast = "%p = memref.reinterpret_cast %s to offset: [0], sizes: [4, 6], strides: [6, 1] : memref<2x4xf32, #slice> to memref<4x6xf32>";
    assert!(!is_filled_once(&format!("{cast} {}", written("%p", "memref<4x6xf32>"))), "beyond the slice");
    assert!(!is_filled_once("func.call @take(%a) : (memref<4x6xf32>) -> ()"), "an op that may write");
}

#[test]
fn the_host_function_is_data_too() {
    let (module, _, _) = phases(DYNAMIC).expect("schedules");
    let code = host_data::run(module.symbol("main").expect("kept")).expect("has a form as data");
    expect_file!["snapshots/dynamic_host.txt"].assert_eq(&code.to_string());
}

#[test]
fn a_host_op_without_a_form_as_data_is_refused() {
    let check = |body: &str, expected: &str| {
        let text = format!(
            "func.func private @monopour_rt_ok(i64) -> i64\nfunc.func @main(%cx: i64) {{\n{body}\nreturn\n}}\n"
        );
        let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}"));
        let errors = host_data::run(module.symbol("main").expect("parsed")).expect_err(body);
        assert_eq!(errors.0[0].code, "S0006");
        assert!(errors.to_string().contains(expected), "{errors}");
    };
    let call = "%a = func.call @monopour_rt_ok(%cx) : (i64) -> i64\n";
    check(&format!("{call}%w = arith.extsi %a : i64 to i128"), "it has a value of type i128");
    check(&format!("{call}%p = math.ipowi %a, %a : i64"), "the set of its ops is closed");
    check("%p = arith.addi %cx, %cx : i64", "it reads a value of type i64");
    let (open, close) = ("scf.if %c {\n".repeat(210), "}\n".repeat(210));
    check(&format!("%c = arith.constant true\n{open}{call}{close}"), "nested too deeply");
}
