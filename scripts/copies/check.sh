#!/usr/bin/env bash
# What docs/copy-elimination.md and docs/lower-bounds.md promise, in full: copies and bytes at their bounds, decisions, memory
# plans, what explain says, times beside greedy's. An hour or two; `make test` runs samples of it.
#   scripts/copies/check.sh [NAME..]   all lines, or those of these names
# Ends with `N passed, M failed`, and what was skipped; exit status 1 if one failed.
set -uo pipefail
cd "$(dirname "$0")/../.."
export REQUIRE_GPU=1 MONOPOUR_TEST_FULL=1
target="${CARGO_TARGET_DIR:-target}"
monopour="$target/release/monopour"
wanted=("$@")
names=()
skipped=()
passed=0
failed=0

asked() { # NAME
  names+=("$1")
  [[ ${#wanted[@]} -eq 0 || " ${wanted[*]} " == *" $1 "* ]]
}

check() { # NAME COMMAND...
  asked "$1" || return 0
  local name="$1" start=$SECONDS
  shift
  echo "== $name: $*"
  if "$@" </dev/null; then
    passed=$((passed + 1))
    echo "-- $name: holds, $((SECONDS - start)) s"
  else
    failed=$((failed + 1))
    echo "FAILED: $name, $((SECONDS - start)) s"
  fi
}

skip() { # NAME WHY
  asked "$1" || return 0
  skipped+=("$1 ($2)")
  echo "-- $1: skipped, $2"
}

# Builds of release: bounds of time are asserted there, and all is sooner done.
whole() { cargo test --release --test main -- --nocapture "$@"; }
facts() { cargo test --release -p monopour-analysis -- --nocapture "$@"; }
functions() { cargo test --release -p monopour-bufferize --test main -- --nocapture "$@"; }
attention() { whole attention_of_512_plans && MONOPOUR_TEST_ONLY=attn_512 whole benchmark_programs; }

# Installed only by root of a Debian system: nothing else needs it.
browser() {
  command -v chromium chromium-browser google-chrome | head -n 1 | grep . && return
  [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null || return 1
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium; } \
    </dev/null >/dev/null 2>&1
  command -v chromium
}

cargo build -q --release || exit 1
cargo build -q --release -p monopour-analysis --example make_trace || exit 1

check programs whole copies::
check squares whole three_residual_layers three_products_of_a_donated_input eight_products_are_alive what_is_put_together \
  rows_are_added_to_the_next
check attention attention
check families whole minimal:: minimal_places:: minimal_results:: minimal_tiles:: minimal_orders::
check functions facts parts_that_are_known_apart
check exhaustive facts decisions_cost_least rules_are_near
check bounds facts bounds:: small_plans_are_the_best
check checker facts checker_
check faults functions the_checker_rejects_every_decision
check runs whole no_random_program_costs_more
check decision-time cargo bench -q -p monopour-bufferize --bench bufferize -- --full --only strategies
check run-time-cpu python3 scripts/copies/bench.py times "$monopour" cpu
check run-time-gpu python3 scripts/copies/bench.py times "$monopour" gpu
check plan python3 scripts/copies/plan.py traces "$monopour"
check plan-cut python3 scripts/copies/plan.py cut "$monopour" "$target/release/examples/make_trace"
check plan-many python3 scripts/copies/plan.py many "$monopour" "$target/release/examples/make_trace"
check plan-spread python3 scripts/copies/plan.py spread "$monopour"
check static-memory whole static_programs_take_what memory_by_use loops_and_branches_take
check pool whole static_programs_take_nothing_of_the_pool
check dynamic-memory whole the_second_run_of dynamic_transients_are_planned a_size_that_came_before loops_allocate_nothing
check explained whole explained::what_is_explained copies::what_is copies_of_inputs_into_parts
check page whole a_page_of_500_dispatches
if page_in="$(asked drawn && browser)"; then
  check drawn python3 scripts/copies/page.py "$monopour" "$page_in"
else
  skip drawn "no Chromium"
fi
check table python3 scripts/copies/bench.py table "$monopour"
check poisoned whole poisoned:: random::random_ --skip interpreted::
check poisoned-functions functions execute::

for name in "${wanted[@]}"; do
  [[ " ${names[*]} " == *" $name "* ]] || { echo "no line is called $name: ${names[*]}"; exit 2; }
done
note=""
[[ ${#skipped[@]} -eq 0 ]] || note="; skipped: $(IFS=,; echo "${skipped[*]}")"
echo "$passed passed, $failed failed$note"
[[ $failed -eq 0 ]]
