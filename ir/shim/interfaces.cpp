// Queries of op interfaces. Every function is documented where Rust declares it.
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/SubsetOpInterface.h"

using namespace mlir;

extern "C" {

bool monopour_shim_dps_inits(MlirOperation op, void (*each)(size_t, void *), void *user) {
  auto dps = dyn_cast<DestinationStyleOpInterface>(unwrap(op));
  if (!dps) return false;
  for (OpOperand &init : dps.getDpsInitsMutable()) each(init.getOperandNumber(), user);
  return true;
}

bool monopour_shim_memory_effects(MlirOperation op, void (*each)(int, MlirValue, void *), void *user) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(unwrap(op));
  if (!effects) return false;
  SmallVector<MemoryEffects::EffectInstance> all;
  effects.getEffects(all);
  for (const MemoryEffects::EffectInstance &effect : all) {
    int kind = isa<MemoryEffects::Read>(effect.getEffect())       ? 0
               : isa<MemoryEffects::Write>(effect.getEffect())    ? 1
               : isa<MemoryEffects::Allocate>(effect.getEffect()) ? 2
                                                                  : 3;
    each(kind, wrap(effect.getValue()), user);
  }
  return true;
}

MlirAttribute monopour_shim_attributes(MlirOperation op) { return wrap(unwrap(op)->getAttrDictionary()); }

bool monopour_shim_has_parallel_loops_only(MlirOperation op) {
  auto structured = dyn_cast<linalg::LinalgOp>(unwrap(op));
  return structured && structured.getNumParallelLoops() == structured.getNumLoops();
}

bool monopour_shim_is_pure(MlirOperation op) { return isPure(unwrap(op)); }

bool monopour_shim_is_memory_effect_free(MlirOperation op) { return isMemoryEffectFree(unwrap(op)); }

bool monopour_shim_has_recursive_effects(MlirOperation op) {
  return unwrap(op)->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
}

bool monopour_shim_is_region_branch(MlirOperation op) { return isa<RegionBranchOpInterface>(unwrap(op)); }

bool monopour_shim_is_repetitive_region(MlirOperation op, unsigned index) {
  auto branch = dyn_cast<RegionBranchOpInterface>(unwrap(op));
  return branch && branch.isRepetitiveRegion(index);
}

bool monopour_shim_is_elementwise(MlirOperation op) { return OpTrait::hasElementwiseMappableTraits(unwrap(op)); }

bool monopour_shim_is_loop_like(MlirOperation op) { return isa<LoopLikeOpInterface>(unwrap(op)); }

bool monopour_shim_is_allocation_scope(MlirOperation op) {
  return unwrap(op)->hasTrait<OpTrait::AutomaticAllocationScope>();
}

bool monopour_shim_has_parallel_region(MlirOperation op) { return unwrap(op)->hasTrait<OpTrait::HasParallelRegion>(); }

uint64_t monopour_shim_type_bits(MlirOperation op, MlirType type) {
  Type of = unwrap(type), element = of;
  // The data layout ends the process on a type that it does not know.
  if (auto vector = dyn_cast<VectorType>(of)) {
    if (vector.isScalable()) return 0;
    element = vector.getElementType();
  }
  if (auto complex = dyn_cast<ComplexType>(element)) element = complex.getElementType();
  if (!element.isIntOrIndexOrFloat()) return 0;
  return DataLayout::closest(unwrap(op)).getTypeSizeInBits(of).getFixedValue();
}

bool monopour_shim_is_subset_insertion(MlirOperation op) { return isa<SubsetInsertionOpInterface>(unwrap(op)); }

bool monopour_shim_is_subset_extraction(MlirOperation op) { return isa<SubsetExtractionOpInterface>(unwrap(op)); }
}
