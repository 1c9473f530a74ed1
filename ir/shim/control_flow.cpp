// Values forwarded between regions, blocks and calls. Every function is documented where Rust declares it.
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Bufferization/IR/BufferViewFlowOpInterface.h"
#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

using EachPair = void (*)(MlirValue, MlirValue, void *);

static RegionSuccessor parentOf(Operation *terminator) {
  Operation *parent = terminator->getParentOp();
  return RegionSuccessor(parent, parent->getResults());
}

extern "C" {

unsigned monopour_shim_traits(MlirOperation handle) {
  Operation *op = unwrap(handle);
  unsigned bits = 0;
  auto note = [&](unsigned bit, bool holds) { bits |= holds ? bit : 0; };
  note(1, isa<CallOpInterface>(op));
  note(2, isa<FunctionOpInterface>(op));
  note(4, isa<RegionBranchOpInterface>(op));
  note(8, isa<RegionBranchTerminatorOpInterface>(op));
  note(16, isa<BranchOpInterface>(op));
  note(32, isa<MemoryEffectOpInterface>(op));
  note(64, op->hasTrait<OpTrait::HasRecursiveMemoryEffects>());
  note(128, op->hasTrait<OpTrait::NoTerminator>());
  note(256, op->hasTrait<OpTrait::IsTerminator>());
  note(512, isa<bufferization::BufferViewFlowOpInterface>(op));
  note(1024, op->hasTrait<OpTrait::IsIsolatedFromAbove>());
  return bits;
}

bool monopour_shim_entry_operands(MlirOperation op, unsigned *first, unsigned *count) {
  auto branch = dyn_cast<RegionBranchOpInterface>(unwrap(op));
  if (!branch) return false;
  SmallVector<RegionSuccessor> successors;
  branch.getSuccessorRegions(RegionBranchPoint::parent(), successors);
  if (successors.empty()) return false;
  OperandRange operands = branch.getEntrySuccessorOperands(successors.front());
  *count = operands.size();
  *first = *count ? operands.getBeginOperandIndex() : 0;
  return true;
}

bool monopour_shim_forwarded_operands(MlirOperation op, unsigned *first, unsigned *count) {
  auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(unwrap(op));
  if (!terminator || !terminator->getParentOp()) return false;
  OperandRange operands = terminator.getSuccessorOperands(parentOf(terminator));
  *count = operands.size();
  *first = *count ? operands.getBeginOperandIndex() : 0;
  return true;
}

bool monopour_shim_set_forwarded_operands(MlirOperation op, intptr_t count, const MlirValue *values) {
  auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(unwrap(op));
  if (!terminator || !terminator->getParentOp()) return false;
  SmallVector<Value> list;
  unwrapList(count, values, list);
  terminator.getMutableSuccessorOperands(parentOf(terminator)).assign(list);
  return true;
}

bool monopour_shim_region_flows(MlirOperation op, EachPair each, void *user) {
  auto branch = dyn_cast<RegionBranchOpInterface>(unwrap(op));
  if (!branch) return false;
  auto hand = [&](ValueRange values, RegionSuccessor successor) {
    for (auto [value, input] : llvm::zip(values, successor.getSuccessorInputs())) each(wrap(value), wrap(input), user);
  };
  SmallVector<RegionSuccessor> successors;
  branch.getSuccessorRegions(RegionBranchPoint::parent(), successors);
  for (RegionSuccessor successor : successors) hand(branch.getEntrySuccessorOperands(successor), successor);
  for (Region &region : branch->getRegions())
    for (Block &block : region) {
      auto terminator = block.empty() ? nullptr : dyn_cast<RegionBranchTerminatorOpInterface>(block.back());
      if (!terminator) continue;
      successors.clear();
      branch.getSuccessorRegions(RegionBranchPoint(terminator), successors);
      for (RegionSuccessor successor : successors) hand(terminator.getSuccessorOperands(successor), successor);
    }
  return true;
}

MlirAttribute monopour_shim_callee(MlirOperation op) {
  auto call = dyn_cast<CallOpInterface>(unwrap(op));
  if (!call) return wrap(Attribute());
  auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
  return wrap(symbol ? Attribute(symbol) : Attribute());
}

MlirValue monopour_shim_view_source(MlirOperation op) {
  auto view = dyn_cast<ViewLikeOpInterface>(unwrap(op));
  return wrap(view ? view.getViewSource() : Value());
}

bool monopour_shim_view_flows(MlirOperation op, EachPair each, void *user) {
  auto flow = dyn_cast<bufferization::BufferViewFlowOpInterface>(unwrap(op));
  if (!flow) return false;
  flow.populateDependencies([&](ValueRange from, ValueRange to) {
    for (auto [source, view] : llvm::zip(from, to)) each(wrap(source), wrap(view), user);
  });
  return true;
}

bool monopour_shim_may_be_terminal_buffer(MlirOperation op, MlirValue value) {
  auto flow = dyn_cast<bufferization::BufferViewFlowOpInterface>(unwrap(op));
  return flow && flow.mayBeTerminalBuffer(unwrap(value));
}

bool monopour_shim_allocates_in_scope(MlirOperation op, MlirValue value) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(unwrap(op));
  if (!effects) return false;
  SmallVector<MemoryEffects::EffectInstance> all;
  effects.getEffectsOnValue(unwrap(value), all);
  return llvm::any_of(all, [](const MemoryEffects::EffectInstance &effect) {
    return isa<MemoryEffects::Allocate>(effect.getEffect()) &&
           isa<SideEffects::AutomaticAllocationScopeResource>(effect.getResource());
  });
}

bool monopour_shim_fold(MlirOperation op) {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Normal);
  return succeeded(applyPatternsGreedily(unwrap(op), FrozenRewritePatternSet(), config));
}
}
