// Rewrites of linalg ops by upstream's transformations that no pass runs as they are needed here.

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

// Whether a reshape adds dimensions of one element, and nothing else.
static bool addsUnits(Value value) {
  auto expand = value.getDefiningOp<tensor::ExpandShapeOp>();
  if (!expand) return false;
  auto shape = expand.getResultType().getShape();
  return llvm::all_of(expand.getReassociationIndices(), [&](const ReassociationIndices &group) {
    return llvm::count_if(group, [&](int64_t dim) { return shape[dim] != 1; }) <= 1;
  });
}

extern "C" {

// Drops the loops of one iteration of each generic below `root` that reads a tensor to which a reshape added such dimensions, in
// order, so that the reshape moves behind its readers. Reductions become generics first.
void monopour_shim_drop_added_units(MlirOperation root) {
  IRRewriter rewriter(unwrap(root)->getContext());
  SmallVector<linalg::LinalgOp> ops;
  unwrap(root)->walk([&](linalg::LinalgOp op) {
    if (isa<linalg::GenericOp, linalg::ReduceOp>(op.getOperation())) ops.push_back(op);
  });
  for (linalg::LinalgOp op : ops) {
    rewriter.setInsertionPoint(op);
    auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
    if (!generic) {
      auto made = linalg::generalizeNamedOp(rewriter, op);
      if (failed(made)) continue;
      generic = *made;
    }
    if (llvm::none_of(generic.getInputs(), addsUnits)) continue;
    rewriter.setInsertionPoint(generic);
    auto dropped = linalg::dropUnitDims(rewriter, generic, linalg::ControlDropUnitDims());
    if (succeeded(dropped)) rewriter.replaceOp(generic, dropped->replacements);
  }
}
}
