#!/usr/bin/env bash
# Everything that CI checks besides the tests. Ends with `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.."
passed=0
failed=0

check() { # NAME COMMAND...
  local name="$1"
  shift
  echo "== $name: $*"
  if "$@" </dev/null; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
  fi
}

has_no_llvm() { # PACKAGE
  local tree
  tree="$(cargo tree -p "$1" -e normal,build)" || return 1
  ! grep -E 'melior|mlir-sys|llvm-sys' <<<"$tree"
}

check format cargo fmt --all --check
check clippy cargo clippy -q --workspace --all-targets -- -D warnings
check docs env RUSTDOCFLAGS="-D warnings" cargo doc -q --workspace --no-deps
check tidy cargo run -q -p monopour-xtask -- tidy
check "build without LLVM" cargo build --no-default-features
check "no LLVM under the runtime" has_no_llvm monopour-runtime
check "no LLVM under the C library" has_no_llvm monopour-capi
has_no_tracing() { # PACKAGE
  local tree
  tree="$(cargo tree -p "$1" -e normal,build)" || return 1
  ! grep -E 'tracing' <<<"$tree"
}
check "no tracing under the runtime without its feature" has_no_tracing monopour-runtime
# Where it has no loader of native code, and where it is built without one. Without a network the target may be missing;
# REQUIRE_TARGETS=1 makes that an error.
runtime_checks_for() { # TARGET
  if ! rustup target add "$1" >/dev/null 2>&1; then
    echo "skipped: rustup cannot add $1"
    [[ -z "${REQUIRE_TARGETS:-}" ]]
    return
  fi
  cargo check -q -p monopour-runtime --target "$1" && cargo check -q -p monopour-runtime --no-default-features --target "$1"
}
check "runtime with tracing" cargo clippy -q -p monopour-runtime --features tracing -- -D warnings
check "runtime without native code" cargo clippy -q -p monopour-runtime --no-default-features -- -D warnings
check "runtime for Windows" runtime_checks_for x86_64-pc-windows-gnu
check "runtime for macOS" runtime_checks_for aarch64-apple-darwin
check examples make -s examples

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
