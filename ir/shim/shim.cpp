// Functions that MLIR's C API lacks, each a thin wrapper. Every function is documented where Rust declares it.
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

extern "C" {

// Parses text or bytecode with a file name for locations, and verifies. Null on failure.
MlirOperation monopour_shim_parse_module(MlirContext cx, MlirStringRef source, MlirStringRef file, bool verify) {
  llvm::SourceMgr manager;
  // A copy: the parser needs a NUL after the text, and bytecode resources need alignment.
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(unwrap(source), unwrap(file));
  manager.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  ParserConfig config(unwrap(cx), verify);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(manager, config);
  return wrap(module ? module.release().getOperation() : nullptr);
}

// Key of a dense_resource; it lives as long as the context.
MlirStringRef monopour_shim_resource_name(MlirAttribute attr) {
  return wrap(cast<DenseResourceElementsAttr>(unwrap(attr)).getRawHandle().getKey());
}

// The same elements under another shaped type with as many elements of the same width; null for other attributes.
MlirAttribute monopour_shim_elements_with_type(MlirAttribute attr, MlirType type) {
  auto shaped = cast<ShapedType>(unwrap(type));
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(unwrap(attr)))
    return wrap(DenseResourceElementsAttr::get(shaped, resource.getRawHandle()));
  if (auto dense = dyn_cast<DenseElementsAttr>(unwrap(attr))) {
    if (dense.getElementType() != shaped.getElementType()) dense = dense.bitcast(shaped.getElementType());
    return wrap(dense.reshape(shaped));
  }
  return wrap(Attribute());
}

// Pointer to and length of a dense_resource blob; null without one.
const uint8_t *monopour_shim_resource_data(MlirAttribute attr, size_t *length) {
  auto resource = dyn_cast<DenseResourceElementsAttr>(unwrap(attr));
  if (!resource) return nullptr;
  AsmResourceBlob *blob = resource.getRawHandle().getBlob();
  if (!blob) return nullptr;
  ArrayRef<char> data = blob->getData();
  *length = data.size();
  return reinterpret_cast<const uint8_t *>(data.data());
}

}
