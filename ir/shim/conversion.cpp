// Fast paths of the conversion driver, one call each. Every function is documented where Rust declares it.
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

using namespace mlir;

namespace {

// Laid out as the struct of Rust's side.
struct OperandFacts {
  MlirValue value;
  MlirType type;
  MlirValue source;
  MlirType sourceType;
};

struct Surroundings {
  MlirOperation next;
  MlirBlock block;
};

// Handles of the C API are one pointer, as are those of C++: no list is copied.
static_assert(sizeof(MlirValue) == sizeof(Value) && sizeof(MlirType) == sizeof(Type));

ArrayRef<Value> valuesOf(const MlirValue *values, intptr_t count) {
  return ArrayRef<Value>(reinterpret_cast<const Value *>(values), count);
}

bool isNamed(Operation *op, const void *name) {
  return op->getName().getIdentifier().getAsOpaquePointer() == name;
}

// The forwarded operands of a successor; none if unknown, or if the branch produces some itself. The interface returns a mutable
// range, with a segment attribute that is looked up in the context for each: the ops of cf, which are most, have it at once.
std::optional<OperandRange> handedTo(Operation *branch, unsigned successor) {
  if (auto op = dyn_cast<cf::BranchOp>(branch)) return op.getDestOperands();
  if (auto op = dyn_cast<cf::CondBranchOp>(branch))
    return successor == cf::CondBranchOp::trueIndex ? op.getTrueDestOperands() : op.getFalseDestOperands();
  auto op = dyn_cast<BranchOpInterface>(branch);
  if (!op) return std::nullopt;
  SuccessorOperands operands = op.getSuccessorOperands(successor);
  if (operands.getProducedOperandCount() != 0) return std::nullopt;
  return operands.getForwardedOperands();
}

Operation *castBehind(Value value, const void *castName) {
  Operation *op = value.getDefiningOp();
  return op && isNamed(op, castName) ? op : nullptr;
}

bool isUsedByCast(Value value, const void *castName) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) { return isNamed(use.getOwner(), castName); });
}

// How a walk continues after an op. Laid out as the enum of Rust's side.
enum class Descent : int32_t { Over, Into, Unasked, Listed };

struct NameWalk {
  Descent (*each)(MlirOperation, const void *, void *);
  void (*list)(const MlirOperation *, intptr_t, void *);
  void *user;
  // Names of ops without a visit, two per slot by a few bits of the address: a name displaced by a third one is visited again.
  struct Name {
    const void *address = nullptr;
    bool isListed = false;
  };
  Name unasked[32][2];
  MlirOperation listed[64];
  intptr_t count = 0;
  // The address up to which lines were prefetched.
  uintptr_t fetched = 0;

  NameWalk(Descent (*each)(MlirOperation, const void *, void *),
           void (*list)(const MlirOperation *, intptr_t, void *), void *user)
      : each(each), list(list), user(user) {}

  void flush() {
    if (count) list(listed, count, user);
    count = 0;
  }
  // Ops built in sequence are adjacent: lines after the op are read some ops later, and the next op's address is known too late.
  // Each line is prefetched once. Bytes: how far ahead, and the distance from which on two ops are not adjacent.
  void fetchBehind(Operation *op) {
    constexpr uintptr_t distance = 2048, far = 16384;
    uintptr_t to = reinterpret_cast<uintptr_t>(op) + distance;
    // Most often an op is a little after the one before, or before its parent.
    if (to - fetched > far) {
      if (fetched - to < far) return;
      fetched = to - distance;
    }
    for (; fetched < to; fetched += 64) __builtin_prefetch(reinterpret_cast<const void *>(fetched));
  }
  // Whether to walk the op's regions.
  bool enters(Operation *op) {
    const void *name = op->getName().getIdentifier().getAsOpaquePointer();
    Name *known = unasked[(reinterpret_cast<uintptr_t>(name) >> 4) % std::size(unasked)];
    if (known->address != name) std::swap(known[0], known[1]);
    if (known->address != name) {
      flush();
      Descent next = each(wrap(op), name, user);
      if (next == Descent::Over) return false;
      if (next != Descent::Into) *known = {name, next == Descent::Listed};
    } else if (known->isListed) {
      listed[count++] = wrap(op);
      if (count == std::size(listed)) flush();
    }
    return op->getNumRegions() != 0;
  }
  void visit(Operation *op) {
    if (enters(op)) descend(op);
  }
  void descend(Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner : block) {
          fetchBehind(&inner);
          visit(&inner);
        }
  }
};

// The root is only compared: it may be erased.
bool isWithin(Operation *op, const void *around) {
  while (op && op != around) op = op->getParentOp();
  return op;
}

// Whether an op is or is nested in another, and has no block.
LLVM_ATTRIBUTE_ALWAYS_INLINE bool isEmptyWithin(Operation *op, const void *around) {
  if (!op->getBlock() || !isWithin(op, around)) return false;
  return op->getNumRegions() == 0 || llvm::all_of(op->getRegions(), [](Region &region) { return region.empty(); });
}

bool mayGo(Operation *op, const void *around) { return isEmptyWithin(op, around) && op->use_empty(); }

void insertBehindDefinition(Operation *op, Value value) {
  if (Operation *def = value.getDefiningOp())
    def->getBlock()->getOperations().insertAfter(def->getIterator(), op);
  else
    cast<BlockArgument>(value).getOwner()->push_front(op);
}

} // namespace

extern "C" {

intptr_t monopour_shim_read_operands(MlirOperation op, const void *castName, intptr_t capacity, OperandFacts *out) {
  Operation *at = unwrap(op);
  intptr_t count = at->getNumOperands();
  for (intptr_t i = 0, end = std::min(count, capacity); i < end; ++i) {
    Value value = at->getOperand(i), source = value;
    while (Operation *def = castName ? castBehind(source, castName) : nullptr) {
      if (def->getNumResults() != 1) break;
      source = def->getNumOperands() == 1 ? def->getOperand(0) : Value();
      if (!source) break;
    }
    out[i] = {wrap(value), wrap(value.getType()), wrap(source), wrap(source ? source.getType() : Type())};
  }
  return count;
}

intptr_t monopour_shim_operands(MlirOperation op, intptr_t capacity, MlirValue *out) {
  Operation *at = unwrap(op);
  intptr_t count = at->getNumOperands();
  for (intptr_t i = 0, end = std::min(count, capacity); i < end; ++i) out[i] = wrap(at->getOperand(i));
  return count;
}

bool monopour_shim_replace_and_erase(MlirOperation op, MlirOperation root, intptr_t count, const MlirValue *values,
                                     Surroundings *around) {
  Operation *at = unwrap(op);
  if (at->getNumResults() != count || !isEmptyWithin(at, root.ptr)) return false;
  for (intptr_t i = 0; i < count; ++i) {
    Value made = unwrap(values[i]);
    // A result of the op itself may be read at the end.
    if (made.getDefiningOp() == at || made.getType() != at->getResult(i).getType()) return false;
  }
  for (intptr_t i = 0; i < count; ++i) at->getResult(i).replaceAllUsesWith(unwrap(values[i]));
  *around = {wrap(at->getNextNode()), wrap(at->getBlock())};
  at->erase();
  return true;
}

MlirOperation monopour_shim_turn_into(MlirOperation op, MlirOperation root, MlirOperation like, intptr_t numLead,
                                      const MlirValue *lead, intptr_t numSuccessors, const MlirBlock *successors,
                                      Surroundings *around) {
  Operation *at = unwrap(op), *model = unwrap(like);
  // Without results it is not used.
  if (at->getNumResults() != 0 || !isEmptyWithin(at, root.ptr)) return wrap(static_cast<Operation *>(nullptr));
  ArrayRef<Block *> blocks(reinterpret_cast<Block *const *>(successors), numSuccessors);
  auto create = [&](ValueRange operands) {
    return Operation::create(at->getLoc(), model->getName(), TypeRange(), operands, model->getRawDictionaryAttrs(),
                             model->getPropertiesStorage(), BlockRange(blocks), 0);
  };
  Operation *made;
  if (numLead == 0) {
    made = create(at->getOperands());
  } else {
    SmallVector<Value, 8> operands(valuesOf(lead, numLead));
    operands.append(at->operand_begin(), at->operand_end());
    made = create(operands);
  }
  at->getBlock()->getOperations().insert(at->getIterator(), made);
  *around = {wrap(at->getNextNode()), wrap(at->getBlock())};
  at->erase();
  return wrap(made);
}

MlirOperation monopour_shim_create_like(MlirOperation like, MlirLocation location, intptr_t numOperands,
                                        const MlirValue *operands, intptr_t numResults, const MlirType *results,
                                        intptr_t numSuccessors, const MlirBlock *successors, int where,
                                        void *anchor) {
  Operation *model = unwrap(like);
  ArrayRef<Type> types(reinterpret_cast<const Type *>(results), numResults);
  ArrayRef<Block *> blocks(reinterpret_cast<Block *const *>(successors), numSuccessors);
  Operation *op =
      Operation::create(unwrap(location), model->getName(), TypeRange(types), ValueRange(valuesOf(operands, numOperands)),
                        model->getRawDictionaryAttrs(), model->getPropertiesStorage(), BlockRange(blocks), 0);
  switch (where) {
  case 1: {
    auto *at = static_cast<Operation *>(anchor);
    at->getBlock()->getOperations().insert(at->getIterator(), op);
    break;
  }
  case 2: {
    auto *at = static_cast<Operation *>(anchor);
    at->getBlock()->getOperations().insertAfter(at->getIterator(), op);
    break;
  }
  case 3: static_cast<Block *>(anchor)->push_front(op); break;
  case 4: static_cast<Block *>(anchor)->push_back(op); break;
  }
  return wrap(op);
}

int monopour_shim_replace_plainly(MlirOperation op, intptr_t count, const MlirValue *values, const void *castName) {
  Operation *at = unwrap(op);
  ArrayRef<Value> news = valuesOf(values, count);
  if (at->getNumResults() != count || (castName && isNamed(at, castName))) return 0;
  bool isSameType = true;
  for (auto [result, value] : llvm::zip_equal(at->getResults(), news)) {
    if (result.use_empty()) continue;
    if (result == value) return 0;
    if (castName && (castBehind(value, castName) || isUsedByCast(result, castName))) return 0;
    isSameType &= result.getType() == value.getType();
  }
  if (!isSameType) return count == 1 ? 2 : 0;
  for (auto [result, value] : llvm::zip_equal(at->getResults(), news)) result.replaceAllUsesWith(value);
  return 1;
}

intptr_t monopour_shim_erase_plainly(MlirOperation op, MlirOperation root, const void *castName, intptr_t capacity,
                                     MlirOperation *casts, Surroundings *around) {
  Operation *at = unwrap(op);
  if (!mayGo(at, root.ptr)) return -1;
  intptr_t count = 0;
  if (castName) {
    if (isNamed(at, castName) || at->getNumOperands() > capacity) return -1;
    for (Value operand : at->getOperands())
      if (Operation *def = castBehind(operand, castName)) casts[count++] = wrap(def);
  }
  *around = {wrap(at->getNextNode()), wrap(at->getBlock())};
  at->erase();
  return count;
}

MlirValue monopour_shim_place_cast(MlirOperation cast, MlirValue source, MlirType type,
                                   Surroundings *definition) {
  Operation *op = unwrap(cast);
  Value value = unwrap(source);
  Operation *def = value.getDefiningOp();
  Block *block = def ? nullptr : mlir::cast<BlockArgument>(value).getOwner();
  if (def && !def->getBlock()) return wrap(Value());
  op->setOperand(0, value);
  op->getResult(0).setType(unwrap(type));
  Operation *near = def ? def : block->getParentOp();
  op->setLoc(near ? near->getLoc() : UnknownLoc::get(op->getContext()));
  insertBehindDefinition(op, value);
  *definition = {wrap(def), wrap(block)};
  return wrap(Value(op->getResult(0)));
}

int monopour_shim_retire_idle_cast(MlirOperation cast, const void *castName, MlirValue nothing, MlirValue *source,
                                   MlirType *type, MlirOperation *before, bool *isMarked) {
  Operation *op = unwrap(cast);
  if (!op->getBlock() || !isNamed(op, castName)) return 0;
  if (op->getNumOperands() != 1 || op->getNumResults() != 1) return 2;
  Value value = op->getOperand(0);
  Value result = op->getResult(0);
  if (!result.use_empty()) return value.getType() == result.getType() ? 2 : 0;
  *source = wrap(value);
  *type = wrap(result.getType());
  *before = wrap(castBehind(value, castName));
  *isMarked = !op->getDiscardableAttrs().empty();
  op->remove();
  op->setOperand(0, unwrap(nothing));
  return 1;
}

int monopour_shim_retype_plainly(MlirValue value, MlirType type, const void *castName, MlirOperation cast) {
  Value at = unwrap(value);
  if (isUsedByCast(at, castName)) return 0;
  Type old = at.getType();
  at.setType(unwrap(type));
  if (at.use_empty()) return 1;
  Operation *op = unwrap(cast);
  op->getResult(0).setType(old);
  at.replaceAllUsesWith(op->getResult(0));
  op->setOperand(0, at);
  Operation *near = at.getDefiningOp();
  if (!near) near = mlir::cast<BlockArgument>(at).getOwner()->getParentOp();
  op->setLoc(near ? near->getLoc() : UnknownLoc::get(op->getContext()));
  insertBehindDefinition(op, at);
  return 2;
}

bool monopour_shim_branches_are_plain(MlirRegion region) {
  for (Block &block : *unwrap(region)) {
    if (block.empty() || block.back().getNumSuccessors() == 0) continue;
    Operation *branch = &block.back();
    for (unsigned i = 0, end = branch->getNumSuccessors(); i < end; ++i) {
      std::optional<OperandRange> operands = handedTo(branch, i);
      if (!operands || operands->size() != branch->getSuccessor(i)->getNumArguments()) return false;
    }
  }
  return true;
}

void monopour_shim_branch_mismatches(MlirRegion region,
                                     void (*each)(MlirOperation, intptr_t, MlirValue, MlirType, void *),
                                     void *user) {
  struct Mismatch {
    Operation *branch;
    unsigned index;
    Value value;
    Type type;
  };
  SmallVector<Mismatch, 64> all;
  for (Block &block : *unwrap(region)) {
    if (block.empty() || block.back().getNumSuccessors() == 0) continue;
    Operation *branch = &block.back();
    for (unsigned i = 0, end = branch->getNumSuccessors(); i < end; ++i) {
      std::optional<OperandRange> operands = handedTo(branch, i);
      if (!operands) continue;
      for (auto [position, value, arg] : llvm::enumerate(*operands, branch->getSuccessor(i)->getArguments())) {
        if (value.getType() != arg.getType())
          all.push_back({branch, unsigned(operands->getBeginOperandIndex() + position), value, arg.getType()});
      }
    }
  }
  for (const Mismatch &m : all) each(wrap(m.branch), m.index, wrap(m.value), wrap(m.type), user);
}

intptr_t monopour_shim_inline_regions(intptr_t numRegions, const MlirRegion *regions, MlirBlock before,
                                      intptr_t capacity, MlirBlock *moved, MlirOperation *around) {
  ArrayRef<MlirRegion> list(regions, numRegions);
  intptr_t count = 0;
  for (MlirRegion region : list)
    for (Block &block : *unwrap(region)) {
      if (count < capacity) moved[count] = wrap(&block);
      ++count;
    }
  if (count > capacity) return count;
  Block *at = unwrap(before);
  Region::BlockListType &to = at->getParent()->getBlocks();
  for (MlirRegion region : list) to.splice(at->getIterator(), unwrap(region)->getBlocks());
  *around = wrap(at->getParentOp());
  return count;
}

MlirValue monopour_shim_operand(MlirOperation op, size_t index) {
  Operation *at = unwrap(op);
  return wrap(index < at->getNumOperands() ? at->getOperand(index) : Value());
}

MlirValue monopour_shim_result(MlirOperation op, size_t index) {
  Operation *at = unwrap(op);
  return wrap(index < at->getNumResults() ? Value(at->getResult(index)) : Value());
}

MlirRegion monopour_shim_region(MlirOperation op, size_t index) {
  Operation *at = unwrap(op);
  return wrap(index < at->getNumRegions() ? &at->getRegion(index) : nullptr);
}

const void *monopour_shim_name_if_flat(MlirOperation op) {
  Operation *at = unwrap(op);
  return at->getNumRegions() == 0 ? at->getName().getIdentifier().getAsOpaquePointer() : nullptr;
}

intptr_t monopour_shim_arguments(MlirBlock block, intptr_t capacity, MlirValue *out) {
  Block::BlockArgListType arguments = unwrap(block)->getArguments();
  intptr_t count = arguments.size();
  for (intptr_t i = 0, end = std::min(count, capacity); i < end; ++i) out[i] = wrap(arguments[i]);
  return count;
}

MlirOperation monopour_shim_last_op(MlirBlock block) {
  Block *at = unwrap(block);
  return wrap(at->empty() ? nullptr : &at->back());
}

MlirBlock monopour_shim_last_block(MlirRegion region) {
  Region *at = unwrap(region);
  return wrap(at->empty() ? nullptr : &at->back());
}

void monopour_shim_walk_names(MlirOperation op, Descent (*each)(MlirOperation, const void *, void *),
                              void (*list)(const MlirOperation *, intptr_t, void *), void *user) {
  NameWalk walk(each, list, user);
  walk.visit(unwrap(op));
  walk.flush();
}
}
