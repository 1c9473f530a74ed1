// Upstream's BufferizableOpInterface and its type interfaces, for operations and types that exist in C++ only.
// Every function is documented where Rust declares it (src/bufferizable.rs).
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/CastInterfaces.h"

using namespace mlir;
using namespace mlir::bufferization;

// Mirrors the #[repr(C)] type of bufferizable.rs.
struct InterfaceOptions {
  bool allowUnknownOps, functionBoundaries, identityLayouts, mustInferMemorySpace, encodingIsMemorySpace;
  unsigned alignment;
};

namespace {

BufferizationOptions makeOptions(const InterfaceOptions &given) {
  BufferizationOptions options;
  options.allowUnknownOps = given.allowUnknownOps;
  options.bufferizeFunctionBoundaries = given.functionBoundaries;
  options.bufferAlignment = given.alignment;
  if (given.identityLayouts)
    options.unknownTypeConverterFn = [](TensorType type, Attribute space, const BufferizationOptions &) {
      return getMemRefTypeWithStaticIdentityLayout(type, space);
    };
  if (given.mustInferMemorySpace)
    options.defaultMemorySpaceFn = [](TensorType) -> std::optional<Attribute> { return std::nullopt; };
  if (given.encodingIsMemorySpace)
    options.defaultMemorySpaceFn = [](TensorType type) -> std::optional<Attribute> {
      auto ranked = dyn_cast<RankedTensorType>(type);
      return ranked ? ranked.getEncoding() : Attribute();
    };
  return options;
}

// Reports changes of the IR to Rust.
struct Journal : public RewriterBase::Listener {
  void (*each)(int, MlirOperation, void *);
  void *user;
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint previous) override {
    each(previous.isSet() ? 2 : 0, wrap(op), user);
  }
  void notifyOperationModified(Operation *op) override { each(1, wrap(op), user); }
  void notifyOperationErased(Operation *op) override { each(3, wrap(op), user); }
};

} // namespace

extern "C" {

bool monopour_shim_is_tensor(MlirType type) { return isa<TensorType>(unwrap(type)) || isa<TensorLikeType>(unwrap(type)); }

MlirType monopour_shim_buffer_like_type(MlirType type, const InterfaceOptions *given) {
  auto tensor = dyn_cast<TensorLikeType>(unwrap(type));
  if (!tensor) return wrap(Type());
  BufferizationOptions options = makeOptions(*given);
  auto error = [&] { return emitError(UnknownLoc::get(unwrap(type).getContext())); };
  FailureOr<BufferLikeType> buffer = tensor.getBufferType(options, error);
  return wrap(failed(buffer) ? Type() : Type(*buffer));
}

bool monopour_shim_is_bufferizable(MlirOperation op) { return isa<BufferizableOpInterface>(unwrap(op)); }

// Bits: 1 reads, 2 writes, 4 must be in place, 8 elementwise.
unsigned monopour_shim_use_of(MlirOperation raw, unsigned index, const InterfaceOptions *given) {
  Operation *op = unwrap(raw);
  auto iface = cast<BufferizableOpInterface>(op);
  BufferizationOptions options = makeOptions(*given);
  AnalysisState state(options);
  OpOperand &operand = op->getOpOperand(index);
  SmallVector<OpOperand *> tensors;
  for (OpOperand &each : op->getOpOperands())
    if (isa<TensorLikeType>(each.get().getType())) tensors.push_back(&each);
  return (iface.bufferizesToMemoryRead(operand, state) ? 1 : 0) | (iface.bufferizesToMemoryWrite(operand, state) ? 2 : 0) |
         (iface.mustBufferizeInPlace(operand, state) ? 4 : 0) | (iface.bufferizesToElementwiseAccess(state, tensors) ? 8 : 0);
}

void monopour_shim_aliasing_values(MlirOperation raw, unsigned index, const InterfaceOptions *given,
                                   void (*each)(MlirValue, bool, bool, bool, void *), void *user) {
  Operation *op = unwrap(raw);
  BufferizationOptions options = makeOptions(*given);
  AnalysisState state(options);
  OpOperand &operand = op->getOpOperand(index);
  for (const AliasingValue &alias : cast<BufferizableOpInterface>(op).getAliasingValues(operand, state)) {
    bool retypes = alias.value.getType() != operand.get().getType() && !isa<CastOpInterface>(op);
    each(wrap(alias.value), alias.relation == BufferRelation::Equivalent, alias.isDefinite, retypes, user);
  }
}

// Bits: 1 writable, 2 a definition, 4 allocates.
unsigned monopour_shim_result_of(MlirOperation raw, unsigned index, const InterfaceOptions *given) {
  OpResult result = unwrap(raw)->getResult(index);
  auto iface = cast<BufferizableOpInterface>(unwrap(raw));
  BufferizationOptions options = makeOptions(*given);
  AnalysisState state(options);
  return (iface.isWritable(result, state) ? 1 : 0) | (iface.resultBufferizesToMemoryWrite(result, state) ? 2 : 0) |
         (iface.bufferizesToAllocation(result) ? 4 : 0);
}

// Bits: 1 repetitive, 2 parallel, 4 every tensor argument of the entry block is writable.
unsigned monopour_shim_region_of(MlirOperation raw, unsigned index, const InterfaceOptions *given) {
  Operation *op = unwrap(raw);
  auto iface = cast<BufferizableOpInterface>(op);
  BufferizationOptions options = makeOptions(*given);
  AnalysisState state(options);
  bool writable = true;
  Region &region = op->getRegion(index);
  if (!region.empty())
    for (BlockArgument argument : region.getArguments())
      if (isa<TensorLikeType>(argument.getType())) writable &= iface.isWritable(argument, state);
  return (iface.isRepetitiveRegion(index) ? 1 : 0) | (iface.isParallelRegion(index) ? 2 : 0) | (writable ? 4 : 0);
}

MlirType monopour_shim_buffer_type_of(MlirValue value, const InterfaceOptions *given) {
  BufferizationOptions options = makeOptions(*given);
  BufferizationState state;
  FailureOr<BufferLikeType> type = getBufferType(unwrap(value), options, state);
  return wrap(failed(type) ? Type() : Type(*type));
}

bool monopour_shim_bufferize(MlirOperation raw, const InterfaceOptions *given, void (*each)(int, MlirOperation, void *), void *user) {
  Operation *op = unwrap(raw);
  BufferizationOptions options = makeOptions(*given);
  BufferizationState state;
  Journal journal;
  journal.each = each;
  journal.user = user;
  IRRewriter rewriter(op->getContext(), &journal);
  rewriter.setInsertionPoint(op);
  return succeeded(cast<BufferizableOpInterface>(op).bufferize(rewriter, options, state));
}
}
