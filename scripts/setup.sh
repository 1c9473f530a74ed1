#!/usr/bin/env bash
# Sees to it that this machine has what the build and the tests need. Quick when all of it is there.
#   scripts/setup.sh          LLVM and MLIR 22, the software Vulkan driver, spirv-tools
#   scripts/setup.sh --bench  also what the Python side of the benches needs
#   scripts/setup.sh --embedding  also valgrind, and what the Python wheel needs
#   scripts/setup.sh --copies  also Python
#   scripts/setup.sh --aarch64  also what builds and runs the runtime for aarch64
set -euo pipefail

# Each with its reason; everything else comes as a dependency of these.
packages=(
  libmlir-22-dev      # MLIR, static libraries and headers
  mlir-22-tools       # mlir-opt, the oracle of the file tests
  llvm-22-dev         # LLVM, static libraries and llvm-config
  llvm-22-tools       # FileCheck
  libclang-22-dev     # bindgen reads MLIR's C headers with it
  libpolly-22-dev     # llvm-config names its library
  libzstd-dev zlib1g-dev libxml2-dev libffi-dev # what LLVM's static libraries link
  g++ make pkg-config # the C++ shim
  spirv-tools         # spirv-val checks the kernels
  mesa-vulkan-drivers libvulkan1 # lavapipe, the GPU of machines without one
)
[[ "${1:-}" == --bench ]] && packages+=(python3-venv)
[[ "${1:-}" == --embedding ]] && packages+=(python3-venv valgrind)
[[ "${1:-}" == --copies ]] && packages+=(python3)
[[ "${1:-}" == --aarch64 ]] && packages+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static)

# A set variable wins over the default in .cargo/config.toml, for LLVM that lies elsewhere.
own_prefix="${MLIR_SYS_220_PREFIX:-}"
if [[ -n "$own_prefix" && "$own_prefix" != /usr/lib/llvm-22 ]]; then
  if [[ ! -x "$own_prefix/bin/llvm-config" || ! -x "$own_prefix/bin/mlir-opt" ]]; then
    echo "MLIR_SYS_220_PREFIX is $own_prefix, which has no bin/llvm-config or no bin/mlir-opt" >&2
    exit 1
  fi
  packages=($(printf '%s\n' "${packages[@]}" | grep -v -- '-22-'))
fi

if ! command -v cargo >/dev/null; then
  echo "Rust is missing: see https://rustup.rs" >&2
  exit 1
fi
if [[ "${1:-}" == --aarch64 ]] && command -v rustup >/dev/null; then
  rustup -q target add aarch64-unknown-linux-gnu
fi
if ! command -v dpkg-query >/dev/null; then
  [[ -n "$own_prefix" || -x /usr/lib/llvm-22/bin/llvm-config ]] && exit 0
  echo "This is not a Debian system: install LLVM and MLIR 22 with their static libraries, clang's libclang," >&2
  echo "spirv-tools and a Vulkan driver, and set MLIR_SYS_220_PREFIX, TABLEGEN_220_PREFIX and LIBCLANG_PATH." >&2
  exit 1
fi

# dpkg-query fails when it has never heard of one of them, as on a fresh machine.
installed=" $({ dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true; } | sed -n 's/^installed //p' | tr '\n' ' ')"
missing=()
for package in "${packages[@]}"; do
  [[ "$installed" == *" $package "* ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ "$(id -u)" -ne 0 ]]; then
  echo "Packages are missing. Install them with" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
echo "installing ${missing[*]}"
apt-get update -q </dev/null
apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null
