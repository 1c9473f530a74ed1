// Values of enum attributes, which MLIR's C API lacks. Every function is documented where Rust declares it.
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace {

template <typename EnumAttr> int64_t valueOf(MlirAttribute attr) {
  auto typed = dyn_cast<EnumAttr>(unwrap(attr));
  return typed ? static_cast<int64_t>(typed.getValue()) : -1;
}

} // namespace

extern "C" {

int64_t monopour_shim_iterator_type(MlirAttribute attr) { return valueOf<linalg::IteratorTypeAttr>(attr); }

int64_t monopour_shim_gpu_dimension(MlirAttribute attr) { return valueOf<gpu::DimensionAttr>(attr); }

int64_t monopour_shim_gpu_address_space(MlirAttribute attr) { return valueOf<gpu::AddressSpaceAttr>(attr); }

int64_t monopour_shim_gpu_all_reduce(MlirAttribute attr) { return valueOf<gpu::AllReduceOperationAttr>(attr); }

int64_t monopour_shim_gpu_shuffle_mode(MlirAttribute attr) { return valueOf<gpu::ShuffleModeAttr>(attr); }

}
