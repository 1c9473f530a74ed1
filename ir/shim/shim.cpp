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

namespace {

template <typename Visit> void eachBlob(MLIRContext *cx, Visit visit) {
  for (Dialect *dialect : cx->getLoadedDialects()) {
    auto *holder = dialect->getRegisteredInterface<ResourceBlobManagerDialectInterface>();
    if (!holder) continue;
    DialectResourceBlobManager &blobs = holder->getBlobManager();
    llvm::SmallVector<std::string> keys;
    blobs.getBlobMap([&](const llvm::StringMap<DialectResourceBlobManager::BlobEntry> &map) {
      for (const auto &entry : map) keys.push_back(entry.getKey().str());
    });
    for (const std::string &key : keys) {
      DialectResourceBlobManager::BlobEntry *entry = blobs.lookup(key);
      if (const AsmResourceBlob *blob = entry->getBlob()) visit(entry, *blob);
    }
  }
}

// Bytecode that is written of it needs an alignment.
AsmResourceBlob noBlob() { return AsmResourceBlob(ArrayRef<char>(), /*dataAlignment=*/1, /*deleter=*/{}, /*dataIsMutable=*/false); }

} // namespace

extern "C" {

// Parses text or bytecode with a file name for locations; nothing is verified. Null on failure.
MlirOperation monopour_shim_parse_module(MlirContext cx, MlirStringRef source, MlirStringRef file) {
  llvm::SourceMgr manager;
  // A copy: the parser needs a NUL after the text, and bytecode resources need alignment.
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(unwrap(source), unwrap(file));
  manager.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  ParserConfig config(unwrap(cx), /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(manager, config);
  return wrap(module ? module.release().getOperation() : nullptr);
}

// As above, for bytecode that is read where it lies, at a multiple of its alignment. Resources that lie in it are
// copied, or, from `least` bytes on, taken out of the context; `visit` gets the key, offset and length of these.
// Nothing refers to `source` afterwards.
MlirOperation monopour_shim_parse_in_place(MlirContext cx, MlirStringRef source, MlirStringRef file, size_t least,
                                           void (*visit)(MlirStringRef, size_t, size_t, void *), void *user) {
  // Only a shared manager lets resources alias its buffer.
  auto manager = std::make_shared<llvm::SourceMgr>();
  auto buffer = llvm::MemoryBuffer::getMemBuffer(unwrap(source), unwrap(file), /*RequiresNullTerminator=*/false);
  manager->AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  ParserConfig config(unwrap(cx), /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(manager, config);
  // After a failure too.
  eachBlob(unwrap(cx), [&](DialectResourceBlobManager::BlobEntry *entry, const AsmResourceBlob &blob) {
    uintptr_t data = (uintptr_t)blob.getData().data(), begin = (uintptr_t)source.data;
    size_t length = blob.getData().size();
    if (data < begin || data + length > begin + source.length || length == 0) return;
    if (length < least)
      return entry->setBlob(HeapAsmResourceBlob::allocateAndCopyWithAlign(blob.getData(), blob.getDataAlignment(), false));
    visit(wrap(entry->getKey()), data - begin, length, user);
    entry->setBlob(noBlob());
  });
  return wrap(module ? module.release().getOperation() : nullptr);
}

// Empties the blobs that `take` (key, bytes) returns true for.
void monopour_shim_take_blobs(MlirContext cx, bool (*take)(MlirStringRef, MlirStringRef, void *), void *user) {
  eachBlob(unwrap(cx), [&](DialectResourceBlobManager::BlobEntry *entry, const AsmResourceBlob &blob) {
    StringRef bytes(blob.getData().data(), blob.getData().size());
    if (take(wrap(entry->getKey()), wrap(bytes), user)) entry->setBlob(noBlob());
  });
}

// Gives values to the resources of this key that have a blob without any.
void monopour_shim_fill_blob(MlirContext cx, MlirStringRef key, MlirStringRef bytes, size_t alignment) {
  eachBlob(unwrap(cx), [&](DialectResourceBlobManager::BlobEntry *entry, const AsmResourceBlob &blob) {
    if (entry->getKey() != unwrap(key) || !blob.getData().empty()) return;
    ArrayRef<char> data(bytes.data, bytes.length);
    entry->setBlob(HeapAsmResourceBlob::allocateAndCopyWithAlign(data, alignment, false));
  });
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

// The same integers, extended by their sign to another integer type; null for attributes other than dense elements.
MlirAttribute monopour_shim_elements_extended(MlirAttribute attr, MlirType element) {
  auto type = cast<IntegerType>(unwrap(element));
  auto dense = dyn_cast<DenseIntElementsAttr>(unwrap(attr));
  if (!dense || dense.getElementType().getIntOrFloatBitWidth() > type.getWidth()) return wrap(Attribute());
  return wrap(Attribute(dense.mapValues(type, [&](const APInt &value) { return value.sext(type.getWidth()); })));
}

// Pointer to and length of a dense_resource blob; null without one.
const uint8_t *monopour_shim_resource_data(MlirAttribute attr, size_t *length) {
  auto resource = dyn_cast<DenseResourceElementsAttr>(unwrap(attr));
  if (!resource) return nullptr;
  AsmResourceBlob *blob = resource.getRawHandle().getBlob();
  if (!blob) return nullptr;
  ArrayRef<char> data = blob->getData();
  // What `monopour_shim_parse_in_place` took out.
  if (data.empty() && resource.getNumElements() != 0) return nullptr;
  *length = data.size();
  return reinterpret_cast<const uint8_t *>(data.data());
}

// The texts of ops in `module`, one after another; its values are numbered once.
void monopour_shim_print_ops(MlirOperation module, const MlirOperation *ops, intptr_t count, MlirStringCallback append,
                             void *user) {
  AsmState state(unwrap(module));
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const MlirOperation &op : llvm::ArrayRef(ops, count)) {
    unwrap(op)->print(os, state);
    os << '\n';
  }
  append({text.data(), text.size()}, user);
}

}
