//! Operations of single dialects: upstream's refusals with its messages, and the extensions.

use crate::support::{boundaries, bufferize, upstream};
use monopour_bufferize::Options;

fn extensions() -> Options {
    Options { extensions: true, ..boundaries() }
}

/// The messages of all errors.
fn errors(text: &str, options: &Options) -> Vec<String> {
    match bufferize(text, options) {
        Ok((module, _)) => panic!("errors were expected:\n{}", module.op()),
        Err(found) => found.0.into_iter().map(|d| d.message).collect(),
    }
}

const SELECT: &str = "func.func @f(%c: tensor<?xi1>, %a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
    %r = arith.select %c, %a, %b : tensor<?xi1>, tensor<?xf32>
    return %r : tensor<?xf32>
}";

#[test]
fn refusals_are_in_upstreams_words() {
    let failed = "failed to bufferize op";
    assert_eq!(errors(SELECT, &boundaries()), ["only i1 condition values are supported", failed]);
    let spaces = "func.func @f(%c: i1) -> tensor<8xf32> {
        %a = bufferization.alloc_tensor() {memory_space = 3} : tensor<8xf32>
        %b = bufferization.alloc_tensor() {memory_space = 4} : tensor<8xf32>
        %r = arith.select %c, %a, %b : tensor<8xf32>
        return %r : tensor<8xf32>
    }";
    assert_eq!(errors(spaces, &boundaries()), ["inconsistent memory space on true/false operands", failed]);
    let sparse = "#v = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>
    func.func @f(%t: tensor<64xf32, #v>) -> tensor<64xf32, #v> {
        %r = sparse_tensor.convert %t : tensor<64xf32, #v> to tensor<64xf32, #v>
        return %r : tensor<64xf32, #v>
    }";
    assert_eq!(errors(sparse, &boundaries()), ["sparse_tensor ops must be bufferized with the sparsifier", failed]);
    let splat = "func.func @f(%x: f32) -> tensor<2xf32, 1> {
        %r = tensor.splat %x : tensor<2xf32, 1>
        return %r : tensor<2xf32, 1>
    }";
    let spaces = Options { use_encoding_for_memory_space: true, ..boundaries() };
    assert_eq!(errors(splat, &spaces), ["memory space not implemented yet", failed]);
    let (module, _) = bufferize(splat, &Options { extensions: true, ..spaces }).expect("bufferizes");
    assert!(module.op().to_string().contains("memref<2xf32, 1>"));
    let global = "ml_program.global public mutable @g : tensor<4xi64>";
    assert_eq!(errors(global, &boundaries()), ["global op must have a value", failed]);
    // Upstream makes an invalid global of it.
    let global = "ml_program.global public @g(dense<8> : memref<i64>) : tensor<i64>";
    let expected = "ml_program.global with an initial value of another type cannot be bufferized";
    assert_eq!(errors(global, &boundaries())[0], expected);
}

/// A tensor op may have sizes that contradict its type, a memref op may not.
#[test]
fn expanded_shapes_are_those_of_the_type() {
    let expand = |sizes: &str, ty: &str| {
        format!(
            "func.func @f(%t: tensor<24xf32>, %d: index) -> {ty} {{
                %r = tensor.expand_shape %t [[0, 1]] output_shape {sizes} : tensor<24xf32> into {ty}
                return %r : {ty}
            }}"
        )
    };
    let text = |dim: usize| format!("'memref.expand_shape' op invalid output shape provided at pos {dim}");
    for (sizes, dim) in [("[2147483648, 6]", 0), ("[4, 7]", 1), ("[%d, 6]", 0)] {
        let program = expand(sizes, "tensor<4x6xf32>");
        assert_eq!(errors(&program, &boundaries()), [text(dim)], "{sizes}");
        let found = errors(&program, &extensions());
        let expected =
            format!("tensor.expand_shape with another size of dimension {dim} than its type has cannot be bufferized");
        assert_eq!(found, [expected], "{sizes}");
    }
    let (module, _) = bufferize(&expand("[4, 6]", "tensor<4x6xf32>"), &boundaries()).expect("bufferizes");
    module.op().verify_with_diagnostics().expect("it is valid");
}

/// Each is a loop over the elements into a new buffer, and its operands keep their contents.
#[test]
fn with_extensions_elementwise_operations_are_loops() {
    let sum = "func.func @f(%a: tensor<4x?xf32>, %b: tensor<4x?xf32>) -> tensor<4x?xf32> {
        %s = arith.addf %a, %b : tensor<4x?xf32>
        %e = math.exp %s : tensor<4x?xf32>
        return %e : tensor<4x?xf32>
    }";
    let (module, stats) = bufferize(sum, &extensions()).expect("bufferizes");
    let printed = module.op().to_string();
    assert_eq!((stats.allocs, stats.copies), (2, 0), "{printed}");
    for part in ["iterator_types = [\"parallel\", \"parallel\"]", "arith.addf %in, %in_", "math.exp %in : f32"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let (module, stats) = bufferize(SELECT, &extensions()).expect("bufferizes");
    assert_eq!((stats.allocs, stats.copies), (1, 0));
    assert!(module.op().to_string().contains("arith.select %in, %in_"), "{}", module.op());
    let cast = "func.func @f(%a: tensor<4xi32>) -> tensor<4xindex> {
        %r = arith.index_cast %a : tensor<4xi32> to tensor<4xindex>
        return %r : tensor<4xindex>
    }";
    let (module, _) = bufferize(cast, &extensions()).expect("bufferizes");
    assert!(module.op().to_string().contains("arith.index_cast %in : i32 to index"), "{}", module.op());
}

/// A write that keeps some elements reads them. Upstream ignores the mask and the missing rows.
#[test]
fn partial_transfer_writes_keep_the_other_elements() {
    let text = "func.func @f(%v: vector<4xf32>, %m: vector<4xi1>, %a: tensor<4x8xf32> {bufferization.writable = false},
                             %b: tensor<4xf32> {bufferization.writable = false}) -> (tensor<4x8xf32>, tensor<4xf32>) {
        %c0 = arith.constant 0 : index
        %0 = vector.transfer_write %v, %a[%c0, %c0] : vector<4xf32>, tensor<4x8xf32>
        %1 = vector.transfer_write %v, %b[%c0], %m : vector<4xf32>, tensor<4xf32>
        return %0, %1 : tensor<4x8xf32>, tensor<4xf32>
    }";
    let (_, stats) = bufferize(text, &boundaries()).expect("bufferizes");
    assert_eq!((stats.allocs, stats.copies), (2, 2));
    let theirs = upstream(text, "bufferize-function-boundaries");
    assert_eq!((theirs.matches("memref.alloc").count(), theirs.matches("memref.copy").count()), (2, 0), "{theirs}");
}

/// A global that is written is no constant, nor is one in another memory space.
#[test]
fn constants_are_not_shared_with_what_is_written() {
    let text = "memref.global \"private\" @mutable : memref<2xf32> = dense<1.0> {alignment = 64 : i64}
    memref.global \"private\" constant @near : memref<2xf32, 3> = dense<1.0> {alignment = 64 : i64}
    func.func @f(%i: index) -> f32 {
        %c = arith.constant dense<1.0> : tensor<2xf32>
        %r = tensor.extract %c[%i] : tensor<2xf32>
        return %r : f32
    }";
    let (module, _) = bufferize(text, &boundaries()).expect("bufferizes");
    assert!(module.op().to_string().contains("memref.get_global @__constant_2xf32"), "{}", module.op());
}

#[test]
fn distinct_constants_have_as_many_names() {
    let lines: String = (0..2000)
        .map(|i| format!("%c{i} = arith.constant dense<{i}.0> : tensor<2xf32>\n%e{i} = tensor.extract %c{i}[%i] : tensor<2xf32>\n"))
        .collect();
    let text = format!("func.func @f(%i: index) -> f32 {{ {lines} return %e0 : f32 }}");
    let (module, _) = bufferize(&text, &boundaries()).expect("bufferizes");
    let printed = module.op().to_string();
    assert_eq!(printed.matches("memref.global").count(), 2000);
    assert!(printed.contains("@__constant_2xf32_1998 "), "names count up");
}
