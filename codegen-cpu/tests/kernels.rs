//! Kernels of each form against plain Rust.

use crate::harness::{Library, assert_close, can_run, compile, random, runs};
use monopour_codegen_cpu::object::{Listing, listing};
use monopour_ir::{Context, Module};
use monopour_program::CpuTarget;

/// Every CPU whose code this machine can run.
pub fn targets() -> Vec<CpuTarget> {
    let names = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "generic", "aarch64", "host"];
    names.iter().filter_map(|n| CpuTarget::parse(n)).filter(runs).collect()
}

fn matmul(a: &[f32], b: &[f32], m: usize, k: usize, n: usize) -> Vec<f32> {
    let mut c = vec![0.0f64; m * n];
    for i in 0..m {
        for p in 0..k {
            for j in 0..n {
                c[i * n + j] += f64::from(a[i * k + p]) * f64::from(b[p * n + j]);
            }
        }
    }
    c.into_iter().map(|x| x as f32).collect()
}

const VECTOR_MATMUL: &str = r#"
func.func private @main_dispatch_0(%A: memref<64x100xf32>, %B: memref<100x128xf32>, %C: memref<64x128xf32>, %i: index, %j: index) attributes {monopour.kernel = {class = "contraction"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  %p = ub.poison : f32
  %zero = arith.constant dense<0.0> : vector<8x32xf32>
  %i0 = arith.muli %i, %c32 : index
  %j0 = arith.muli %j, %c64 : index
  %s = memref.subview %C[%i0, %j0] [32, 64] [1, 1] : memref<64x128xf32> to memref<32x64xf32, strided<[128, 1], offset: ?>>
  scf.for %jj = %c0 to %c64 step %c32 {
    scf.for %ii = %c0 to %c32 step %c8 {
      %ia = arith.addi %i0, %ii : index
      %ja = arith.addi %j0, %jj : index
      %acc = scf.for %k = %c0 to %c100 step %c1 iter_args(%x = %zero) -> (vector<8x32xf32>) {
        %a = vector.transfer_read %A[%ia, %k], %p {in_bounds = [true, true]} : memref<64x100xf32>, vector<8x1xf32>
        %b = vector.transfer_read %B[%k, %ja], %p {in_bounds = [true, true]} : memref<100x128xf32>, vector<1x32xf32>
        %r = vector.contract {indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>], iterator_types = ["parallel","parallel","reduction"], kind = #vector.kind<add>} %a, %b, %x : vector<8x1xf32>, vector<1x32xf32> into vector<8x32xf32>
        scf.yield %r : vector<8x32xf32>
      }
      vector.transfer_write %acc, %s[%ii, %jj] {in_bounds = [true, true]} : vector<8x32xf32>, memref<32x64xf32, strided<[128, 1], offset: ?>>
    }
  }
  return
}
"#;

#[test]
fn vector_matmul_over_tiles() {
    if !can_run() {
        return;
    }
    let (mut a, mut b) = (random(64 * 100, 1), random(100 * 128, 2));
    let expected = matmul(&a, &b, 64, 100, 128);
    for target in targets() {
        let library = Library::load(&compile(VECTOR_MATMUL, &target).unwrap());
        let mut c = vec![f32::NAN; 64 * 128];
        for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            library.run("main_dispatch_0", &mut [&mut a, &mut b, &mut c], &[i, j]);
        }
        assert_close(&c, &expected, 1e-5);
    }
}

/// 7 x 13 x 10, one tile, edges by `vector.mask` on one operand and by out-of-bounds transfers on the others.
const MASKED_MATMUL: &str = r#"
func.func private @k(%A: memref<7x13xf32>, %B: memref<13x10xf32>, %C: memref<7x10xf32>) attributes {monopour.kernel = {class = "contraction"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c10 = arith.constant 10 : index
  %c13 = arith.constant 13 : index
  %f0 = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %mask = vector.create_mask %c7, %c10 : vector<8x16xi1>
  %mask3 = vector.create_mask %c7, %c10, %c1 : vector<8x16x1xi1>
  %maskb = vector.create_mask %c1, %c10 : vector<1x16xi1>
  %acc = scf.for %k = %c0 to %c13 step %c1 iter_args(%x = %zero) -> (vector<8x16xf32>) {
    %a = vector.transfer_read %A[%c0, %k], %f0 {in_bounds = [false, true]} : memref<7x13xf32>, vector<8x1xf32>
    %b = vector.mask %maskb { vector.transfer_read %B[%k, %c0], %f0 {in_bounds = [true, true]} : memref<13x10xf32>, vector<1x16xf32> } : vector<1x16xi1> -> vector<1x16xf32>
    %r = vector.mask %mask3 { vector.contract {indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>], iterator_types = ["parallel","parallel","reduction"], kind = #vector.kind<add>} %a, %b, %x : vector<8x1xf32>, vector<1x16xf32> into vector<8x16xf32> } : vector<8x16x1xi1> -> vector<8x16xf32>
    scf.yield %r : vector<8x16xf32>
  }
  vector.mask %mask { vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<8x16xf32>, memref<7x10xf32> } : vector<8x16xi1>
  return
}
"#;

#[test]
fn masked_matmul_leaves_the_rest_alone() {
    if !can_run() {
        return;
    }
    let (mut a, mut b) = (random(7 * 13, 3), random(13 * 10, 4));
    let mut expected = matmul(&a, &b, 7, 13, 10);
    // Canaries behind the result: a write past the mask would show.
    expected.extend([42.0; 64]);
    for target in targets() {
        let library = Library::load(&compile(MASKED_MATMUL, &target).unwrap());
        let mut c = vec![f32::NAN; 70];
        c.extend([42.0; 64]);
        library.run("k", &mut [&mut a, &mut b, &mut c], &[]);
        assert_close(&c, &expected, 1e-5);
    }
}

/// No strategy's form: linalg on slices, a local buffer, a strided copy out of it.
const FALLBACK: &str = r#"
func.func private @k(%A: memref<20x30xf32>, %B: memref<30x20xf32>, %i: index) attributes {monopour.kernel = {class = "generic"}} {
  %c5 = arith.constant 5 : index
  %i0 = arith.muli %i, %c5 : index
  %a = memref.subview %A[%i0, 0] [5, 30] [1, 1] : memref<20x30xf32> to memref<5x30xf32, strided<[30, 1], offset: ?>>
  %b = memref.subview %B[0, %i0] [30, 5] [1, 1] : memref<30x20xf32> to memref<30x5xf32, strided<[20, 1], offset: ?>>
  %t = memref.alloc() {alignment = 64 : i64} : memref<30x5xf32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]}
    ins(%a : memref<5x30xf32, strided<[30, 1], offset: ?>>) outs(%t : memref<30x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %n = linalg.index 1 : index
    %m = arith.index_cast %n : index to i32
    %f = arith.sitofp %m : i32 to f32
    %s = arith.addf %x, %f : f32
    linalg.yield %s : f32
  }
  memref.copy %t, %b : memref<30x5xf32> to memref<30x5xf32, strided<[20, 1], offset: ?>>
  memref.dealloc %t : memref<30x5xf32>
  return
}
"#;

#[test]
fn fallback_loops_with_a_local_buffer() {
    if !can_run() {
        return;
    }
    let mut a = random(600, 5);
    let expected: Vec<f32> = (0..600).map(|e| a[(e % 20) * 30 + e / 20] + (e / 20) as f32).collect();
    for target in targets() {
        let code = compile(FALLBACK, &target).unwrap();
        let library = Library::load(&code);
        let mut b = vec![0.0; 600];
        for i in 0..4 {
            library.run("k", &mut [&mut a, &mut b], &[i]);
        }
        assert_close(&b, &expected, 0.0);
    }
}

/// A named linalg op and a constant table.
const NAMED: &str = r#"
memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
func.func private @k(%A: memref<4x4xf32>, %C: memref<4x4xf32>) attributes {monopour.kernel = {class = "generic"}} {
  %t = memref.get_global @table : memref<4xf32>
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%C : memref<4x4xf32>)
  linalg.matmul ins(%A, %A : memref<4x4xf32>, memref<4x4xf32>) outs(%C : memref<4x4xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%t : memref<4xf32>) outs(%C : memref<4x4xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %o : f32
    %r = arith.maximumf %s, %z : f32
    linalg.yield %r : f32
  }
  return
}
"#;

#[test]
fn named_ops_and_a_constant() {
    if !can_run() {
        return;
    }
    let mut a = random(16, 6);
    let product = matmul(&a, &a, 4, 4, 4);
    let expected: Vec<f32> = product.iter().enumerate().map(|(i, p)| (p + (i % 4 + 1) as f32).max(0.0)).collect();
    for target in targets() {
        let library = Library::load(&compile(NAMED, &target).unwrap());
        let mut c = vec![f32::NAN; 16];
        library.run("k", &mut [&mut a, &mut c], &[]);
        assert_close(&c, &expected, 1e-6);
    }
}

/// Sums of three shapes, left as linalg: along rows, along columns, and a product with both operands transposed.
const SUMS: &str = r#"
func.func private @k(%A: memref<24x40xf32>, %rows: memref<24xf32>, %columns: memref<40xf32>, %P: memref<40x40xf32>) attributes {monopour.kernel = {class = "generic"}} {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%rows : memref<24xf32>)
  linalg.fill ins(%z : f32) outs(%columns : memref<40xf32>)
  linalg.fill ins(%z : f32) outs(%P : memref<40x40xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A : memref<24x40xf32>) outs(%rows : memref<24xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %o, %x : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]}
    ins(%A : memref<24x40xf32>) outs(%columns : memref<40xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %o, %x : f32
    linalg.yield %s : f32
  }
  linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
    ins(%A, %A : memref<24x40xf32>, memref<24x40xf32>) outs(%P : memref<40x40xf32>)
  return
}
"#;

#[test]
fn leftover_sums_in_any_order_of_loops() {
    if !can_run() {
        return;
    }
    let mut a = random(24 * 40, 7);
    let transposed: Vec<f32> = (0..24 * 40).map(|e| a[(e % 24) * 40 + e / 24]).collect();
    let product = matmul(&transposed, &a, 40, 24, 40);
    let row_sums = matmul(&a, &[1.0; 40], 24, 40, 1);
    let column_sums = matmul(&[1.0; 24], &a, 1, 24, 40);
    for target in targets() {
        let library = Library::load(&compile(SUMS, &target).unwrap());
        let (mut rows, mut columns, mut p) = (vec![f32::NAN; 24], vec![f32::NAN; 40], vec![f32::NAN; 1600]);
        library.run("k", &mut [&mut a, &mut rows, &mut columns, &mut p], &[]);
        assert_close(&rows, &row_sums, 1e-5);
        assert_close(&columns, &column_sums, 1e-5);
        assert_close(&p, &product, 1e-5);
    }
}

/// A row of bias added to a register tile of one row: the lowering must terminate with leading dimensions of 1.
const ROWS: &str = r#"
func.func private @k(%bias: memref<40xf32>, %C: memref<6x40xf32>) attributes {monopour.kernel = {class = "elementwise"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c40 = arith.constant 40 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : vector<1x8xf32>
  %p = ub.poison : f32
  scf.for %i = %c0 to %c6 step %c1 {
    scf.for %j = %c0 to %c40 step %c8 {
      %b = vector.transfer_read %bias[%j], %p {in_bounds = [true]} : memref<40xf32>, vector<8xf32>
      %w = vector.broadcast %b : vector<8xf32> to vector<1x8xf32>
      %x = vector.transfer_read %C[%i, %j], %p {in_bounds = [true, true]} : memref<6x40xf32>, vector<1x8xf32>
      %s = arith.addf %x, %w : vector<1x8xf32>
      %r = arith.maximumf %s, %zero : vector<1x8xf32>
      vector.transfer_write %r, %C[%i, %j] {in_bounds = [true, true]} : vector<1x8xf32>, memref<6x40xf32>
    }
  }
  return
}
"#;

#[test]
fn broadcast_over_vectors_of_one_row() {
    if !can_run() {
        return;
    }
    let mut bias = random(40, 8);
    let input = random(240, 9);
    let expected: Vec<f32> = input.iter().enumerate().map(|(i, x)| (x + bias[i % 40]).max(0.0)).collect();
    for target in targets() {
        let library = Library::load(&compile(ROWS, &target).unwrap());
        let mut c = input.clone();
        library.run("k", &mut [&mut bias, &mut c], &[]);
        assert_close(&c, &expected, 0.0);
    }
}

/// 8 x 31 accumulators carried around a loop: 31 lanes fit no register, and must neither be scalarized nor written past.
const ODD: &str = r#"
func.func private @k(%A: memref<8x50xf32>, %B: memref<50x31xf32>, %C: memref<8x31xf32>) attributes {monopour.kernel = {class = "contraction"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c50 = arith.constant 50 : index
  %p = ub.poison : f32
  %zero = arith.constant dense<0.0> : vector<8x31xf32>
  %acc = scf.for %k = %c0 to %c50 step %c1 iter_args(%x = %zero) -> (vector<8x31xf32>) {
    %a = vector.transfer_read %A[%c0, %k], %p {in_bounds = [true, true]} : memref<8x50xf32>, vector<8x1xf32>
    %b = vector.transfer_read %B[%k, %c0], %p {in_bounds = [true, true]} : memref<50x31xf32>, vector<1x31xf32>
    %r = vector.contract {indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>], iterator_types = ["parallel","parallel","reduction"], kind = #vector.kind<add>} %a, %b, %x : vector<8x1xf32>, vector<1x31xf32> into vector<8x31xf32>
    scf.yield %r : vector<8x31xf32>
  }
  vector.transfer_write %acc, %C[%c0, %c0] {in_bounds = [true, true]} : vector<8x31xf32>, memref<8x31xf32>
  return
}
"#;

#[test]
fn odd_numbers_of_lanes_stay_whole() {
    let v4 = CpuTarget::parse("x86-64-v4").unwrap();
    let module = format!("func.func @main(%cx: i64) {{ return }}\n{ODD}");
    let module = Module::parse(Context::new(), module.as_bytes(), "test.mlir").unwrap();
    let assembly = listing(&module, &v4, Listing::Assembly).unwrap();
    assert!(!assembly.contains("insertps"), "no lane is moved alone");
    if !can_run() {
        return;
    }
    let (mut a, mut b) = (random(400, 10), random(50 * 31, 11));
    let mut expected = matmul(&a, &b, 8, 50, 31);
    expected.extend([42.0; 16]);
    for target in targets() {
        let library = Library::load(&compile(ODD, &target).unwrap());
        let mut c = vec![f32::NAN; 248];
        c.extend([42.0; 16]);
        library.run("k", &mut [&mut a, &mut b, &mut c], &[]);
        assert_close(&c, &expected, 1e-5);
    }
}

/// More kernels than one object holds, each with its own factor, from a constant that two of them share.
#[test]
fn many_kernels_are_compiled_in_parts() {
    if !can_run() {
        return;
    }
    const KERNELS: usize = 40;
    let kernel = |i: usize| {
        let rows: String = (0..20)
            .map(|r| {
                format!(
                    "  %i{r} = arith.constant {r} : index\n  %x{r} = memref.load %x[%i{r}] : memref<20xf32>\n  \
                     %y{r} = arith.mulf %x{r}, %f : f32\n  memref.store %y{r}, %y[%i{r}] : memref<20xf32>\n"
                )
            })
            .collect();
        format!(
            "func.func private @k{i}(%x: memref<20xf32>, %y: memref<20xf32>, %id: index) attributes {{monopour.kernel = {{}}}} {{\n  \
             %g = memref.get_global @factor{} : memref<1xf32>\n  %at = arith.constant 0 : index\n  \
             %f = memref.load %g[%at] : memref<1xf32>\n{rows}  return\n}}\n",
            i / 2
        )
    };
    let globals: String = (0..KERNELS / 2)
        .map(|i| format!("memref.global \"private\" constant @factor{i} : memref<1xf32> = dense<{i}.5>\n"))
        .collect();
    let text = globals + &(0..KERNELS).map(kernel).collect::<String>();
    let target = CpuTarget::host();
    let code = compile(&text, &target).expect("compiles");
    assert!((3..KERNELS).contains(&code.objects.len()), "{} objects", code.objects.len());
    assert_eq!(compile(&text, &target).expect("compiles"), code, "the same bytes again, whichever core was faster");
    let library = Library::load(&code);
    for i in 0..KERNELS {
        let (mut x, mut y) = (random(20, i as u64), vec![0.0; 20]);
        library.run(&format!("k{i}"), &mut [&mut x, &mut y], &[0]);
        let expected: Vec<f32> = x.iter().map(|x| x * ((i / 2) as f32 + 0.5)).collect();
        assert_close(&y, &expected, 0.0);
    }
}

#[test]
fn an_error_in_a_part_is_the_error() {
    let kernel = |i: usize, op: &str| {
        let body: String = (0..300).map(|n| format!("  %c{n} = arith.constant {n} : index\n")).collect::<String>() + op;
        format!(
            "func.func private @k{i}(%x: memref<4xf32>, %id: index) attributes {{monopour.kernel = {{}}}} {{\n{body}  return\n}}\n"
        )
    };
    let text: String = (0..4).map(|i| kernel(i, if i == 3 { "  gpu.barrier\n" } else { "" })).collect();
    let errors = compile(&text, &CpuTarget::host()).expect_err("no CPU has a barrier");
    assert_eq!(errors.0[0].code, "C0001", "{errors}");
}
