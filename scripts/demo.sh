#!/usr/bin/env bash
# Runs the example perceptron on the device that auto takes and on whatever Vulkan device there is, and checks what it cost.
#   scripts/demo.sh [--quiet]
set -euo pipefail
cd "$(dirname "$0")/.."
monopour="${CARGO_TARGET_DIR:-target}/release/monopour"

stat() { # FIELD < stats.json
  grep -o "\"$1\": *[0-9]*" | head -n 1 | grep -o '[0-9]*$'
}

for device in auto gpu cpu; do
  if [[ "${1:-}" != --quiet ]]; then
    echo "== monopour run examples/mlp.mlir --random 1 --device $device --repeat 10 --stats"
    "$monopour" run examples/mlp.mlir --random 1 --device "$device" --repeat 10 --stats
  fi
  json="$("$monopour" run examples/mlp.mlir --random 1 --device "$device" --repeat 10 --stats=json)"
  for field in copies copied_bytes transfers; do
    value="$(stat "$field" <<<"$json")"
    if [[ "$value" != 0 ]]; then
      echo "device $device: $field is '$value', expected 0" >&2
      exit 1
    fi
  done
  echo "device $device: $(stat dispatches <<<"$json") dispatches, 0 copies, 0 bytes copied, 0 transfers within a run"
done
