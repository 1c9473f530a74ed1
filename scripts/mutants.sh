#!/usr/bin/env bash
# Deliberate faults, one at a time, in a fixed sample of about 300: every 26th place that cargo-mutants finds in each crate.
# Prints what no test of the crate found; fails when less than 90 % was found.
#   CRATES="analysis program"   only these
#   SHARD=1/26                  another sample; 0/200 is a quick one
set -uo pipefail
cd "$(dirname "$0")/.."

version=27.1.0
tools=target/tools
crates="${CRATES:-program analysis runtime split dealloc bufferize}"
shard="${SHARD:-0/26}"
# Small and quick builds: a mutant is built and tested in a copy of the tree with a target of its own.
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0 CARGO_INCREMENTAL=1 CARGO_TERM_COLOR=never

if ! "$tools/bin/cargo-mutants" --version 2>/dev/null | grep -q "$version"; then
  cargo install --locked cargo-mutants --version "$version" --root "$tools" || exit 1
fi
# No debug information, but optimised where decisions are tried by the thousand.
optimised() { [[ $1 == analysis ]] && echo 1 || echo 0; }

found=0
missed=0
for crate in $crates; do
  out="target/mutants/$crate"
  mkdir -p "$out"
  # Status 2 and 3 say that some were missed or took too long: counted below.
  CARGO_PROFILE_TEST_OPT_LEVEL="$(optimised "$crate")" "$tools/bin/cargo-mutants" mutants \
    -p "monopour-$crate" --baseline skip --shard "$shard" --sharding round-robin --no-shuffle \
    --timeout 600 --build-timeout 600 -o "$out" || { status=$?; [[ $status -eq 2 || $status -eq 3 ]] || exit 1; }
  count() { cat "$out/mutants.out/$1.txt" 2>/dev/null | wc -l; }
  # A test that no longer ends has found the fault.
  found=$((found + $(count caught) + $(count timeout)))
  missed=$((missed + $(count missed)))
done

for crate in $crates; do
  sed 's/^/not found: /' "target/mutants/$crate/mutants.out/missed.txt"
done
echo "$found of $((found + missed)) found"
[[ $((found * 10)) -ge $(((found + missed) * 9)) ]]
