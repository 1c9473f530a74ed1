// Ops that are several steps in one become those steps.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %packs = transform.structured.match ops{["linalg.pack"]} in %root
      : (!transform.any_op) -> !transform.op<"linalg.pack">
    transform.structured.lower_pack %packs : (!transform.op<"linalg.pack">)
      -> (!transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">, !transform.op<"linalg.transpose">)
    %unpacks = transform.structured.match ops{["linalg.unpack"]} in %root
      : (!transform.any_op) -> !transform.op<"linalg.unpack">
    transform.structured.lower_unpack %unpacks : (!transform.op<"linalg.unpack">)
      -> (!transform.op<"tensor.empty">, !transform.op<"linalg.transpose">, !transform.op<"tensor.collapse_shape">,
          !transform.op<"tensor.extract_slice">)
    %softmaxes = transform.structured.match ops{["linalg.softmax"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.structured.decompose_interface %softmaxes : (!transform.any_op) -> !transform.any_op
    %functions = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %functions {
      transform.apply_patterns.tensor.decompose_concat
      // Uses of one reshaped tensor.empty would share a buffer.
      transform.apply_patterns.tensor.fold_tensor_empty
    } : !transform.any_op
    %makers = transform.structured.match ops{["tensor.pad", "tensor.generate", "tensor.from_elements"]} in %root
      : (!transform.any_op) -> !transform.any_op
    transform.structured.rewrite_in_destination_passing_style %makers : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
