// Functions for rewriting that MLIR's C API lacks. Every function is documented where Rust declares it.
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

using namespace mlir;

namespace {

// Laid out as the struct of Rust's side.
struct Split {
  MlirBlock before;
  MlirBlock rest;
  MlirOperation around;
  bool isBeforeNew;
};

// Whether moving the ops before an op, and redirecting the branches to its block, is less work than moving the op and those after it.
// Counts no more than it must. Arguments stay in their block.
bool hasShortHead(Operation *op) {
  Block *block = op->getBlock();
  if (block->getNumArguments() != 0 || !block->getParent()) return false;
  auto use = block->use_begin();
  Operation *head = op->getPrevNode();
  for (Operation *tail = op; tail; tail = tail->getNextNode()) {
    if (head)
      head = head->getPrevNode();
    else if (use != block->use_end())
      ++use;
    else
      return true;
  }
  return false;
}

} // namespace

extern "C" {

MlirOperation monopour_shim_create(MlirStringRef name, MlirLocation location, intptr_t numOperands,
                                   const MlirValue *operands, intptr_t numResults, const MlirType *results,
                                   intptr_t numAttributes, const MlirStringRef *names,
                                   const MlirAttribute *attributes, intptr_t numSuccessors,
                                   const MlirBlock *successors, intptr_t numRegions, const MlirRegion *regions) {
  // Handles of the C API are one pointer, as are those of C++: no list is copied.
  static_assert(sizeof(MlirValue) == sizeof(Value) && sizeof(MlirType) == sizeof(Type));
  Location at = unwrap(location);
  OperationState state(at, OperationName(unwrap(name), at.getContext()));
  state.addOperands(ValueRange(ArrayRef<Value>(reinterpret_cast<const Value *>(operands), numOperands)));
  state.addTypes(ArrayRef<Type>(reinterpret_cast<const Type *>(results), numResults));
  for (intptr_t i = 0; i < numSuccessors; ++i) state.successors.push_back(unwrap(successors[i]));
  for (intptr_t i = 0; i < numRegions; ++i) state.addRegion(std::unique_ptr<Region>(unwrap(regions[i])));
  // Attributes that are properties are set one by one: a dictionary of them would be uniqued and kept for ever.
  ArrayRef<StringAttr> inherent;
  if (state.name.isRegistered() && state.name.getOpPropertyByteSize() != 0) inherent = state.name.getAttributeNames();
  auto find = [&](intptr_t i) { return llvm::find(inherent, unwrap(names[i])); };
  for (intptr_t i = 0; i < numAttributes; ++i)
    if (find(i) == inherent.end()) state.addAttribute(unwrap(names[i]), unwrap(attributes[i]));
  Operation *op = Operation::create(state);
  for (intptr_t i = 0; i < numAttributes; ++i)
    if (auto name = find(i); name != inherent.end()) op->setInherentAttr(*name, unwrap(attributes[i]));
  return wrap(op);
}

bool monopour_shim_has_attributes(MlirOperation op) { return !unwrap(op)->getRawDictionaryAttrs().empty(); }

MlirOperation monopour_shim_definition_named(MlirValue value, const void *name) {
  Operation *op = unwrap(value).getDefiningOp();
  return wrap(op && op->getName().getIdentifier().getAsOpaquePointer() == name ? op : nullptr);
}

MlirValue monopour_shim_take_out_cast(MlirOperation cast, MlirValue nothing, bool *is_marked) {
  Operation *op = unwrap(cast);
  Value source = op->getOperand(0);
  op->remove();
  op->setOperand(0, unwrap(nothing));
  *is_marked = !op->getDiscardableAttrs().empty();
  return wrap(source);
}

bool monopour_shim_split_block(MlirOperation op, Split *out) {
  Operation *at = unwrap(op);
  Block *block = at->getBlock();
  if (!block) return false;
  MlirOperation around = wrap(block->getParentOp());
  if (!hasShortHead(at)) {
    *out = {wrap(block), wrap(block->splitBlock(at)), around, false};
    return true;
  }
  auto *head = new Block();
  block->getParent()->getBlocks().insert(block->getIterator(), head);
  head->getOperations().splice(head->end(), block->getOperations(), block->begin(), at->getIterator());
  block->replaceAllUsesWith(head);
  *out = {wrap(head), wrap(block), around, true};
  return true;
}

bool monopour_shim_set_property(MlirOperation op, MlirStringRef name, MlirAttribute value) {
  Operation *at = unwrap(op);
  NamedAttrList all(dyn_cast_or_null<DictionaryAttr>(at->getPropertiesAsAttribute()));
  all.set(unwrap(name), unwrap(value));
  return succeeded(at->setPropertiesFromAttribute(all.getDictionary(at->getContext()),
                                                  [&] { return at->emitError(); }));
}

bool monopour_shim_verify_shallow(MlirOperation op) {
  return succeeded(mlir::verify(unwrap(op), /*verifyRecursively=*/false));
}

bool monopour_shim_successor_operands(MlirOperation op, unsigned successor, unsigned *first, unsigned *count,
                                      unsigned *produced) {
  auto branch = dyn_cast<BranchOpInterface>(unwrap(op));
  if (!branch) return false;
  SuccessorOperands operands = branch.getSuccessorOperands(successor);
  *produced = operands.getProducedOperandCount();
  *count = operands.getForwardedOperands().size();
  *first = *count ? operands.getForwardedOperands().getBeginOperandIndex() : 0;
  return true;
}

bool monopour_shim_set_successor_operands(MlirOperation op, unsigned successor, intptr_t count,
                                          const MlirValue *values) {
  auto branch = dyn_cast<BranchOpInterface>(unwrap(op));
  if (!branch) return false;
  SmallVector<Value> list;
  unwrapList(count, values, list);
  branch.getSuccessorOperands(successor).getMutableForwardedOperands().assign(list);
  return true;
}
}
