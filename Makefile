# Every target sets up what it needs in a local virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard cpp/*/*.[chi][pn][pc] cpp/*/*/*.hpp)
SOURCES := pyproject.toml CMakeLists.txt $(NATIVE) cpp/isa/rules  # the folder: a rule may go, too

# Real data sets, where they are laid beside the project; tests and examples skip without them.
ifneq ($(wildcard ../shared/data),)
export PAIRSTEP_DATA ?= $(abspath ../shared/data)
endif

.PHONY: test test-fast test-gpu test-python test-oldest lint format reproduce docs test-sanitize \
  test-threads bench bench-baseline clean

test: $(VENV)/.installed lint
	$(BIN)/python -m pytest

test-fast: $(VENV)/.installed
	$(BIN)/python -m pytest -m "not slow"

# On a machine with an NVIDIA GPU; PYTHON may be one that has CuPy already.
test-gpu: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[cuda]"
	$(BIN)/python -m pytest -m gpu tests/gpu

lint: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/client.py
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.installed
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(NATIVE)

reproduce: $(VENV)/.installed
	$(BIN)/pairstep reproduce --out results

# The site, in docs/_build/html: without network once all is installed, and without a warning.
docs: $(VENV)/.installed
	$(BIN)/pairstep reproduce --quick --out docs/_build/paper
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# Our own times beside those of benchmarks/regressions/baseline.json, which must be of this machine:
# without a change, `make bench-baseline` makes it so. It names what is a quarter slower.
BENCH = $(BIN)/python -m pytest -p no:cacheprovider benchmarks/regressions --benchmark-warmup=on
BASELINE := benchmarks/regressions/baseline.json

bench: $(VENV)/.installed
	$(BENCH) --benchmark-compare=$(BASELINE) --benchmark-compare-fail=median:25% \
	  --benchmark-columns=min,median,iqr,rounds

bench-baseline: $(VENV)/.installed
	$(BENCH) --benchmark-json=$(BASELINE)

# With another interpreter or compiler, as in `make test-python PYTHON=python3.14 CXX=clang++`. Not all
# that the other tests compare with is to be had there.
test-python: $(VENV)-python/.installed
	$(VENV)-python/bin/python tests/smoke.py
	$(VENV)-python/bin/python -m pytest -m "not slow" -p no:cacheprovider $(PORTABLE)

PORTABLE := tests/rules tests/svm/test_engine.py tests/svm/test_machine.py tests/svm/test_tiles.py \
  $(addprefix tests/test_,batch.py block.py constraints.py few_columns.py minimize.py oracle.py path.py \
    races.py small.py smooth.py threads.py)

# With the oldest versions that pyproject.toml allows. What they warn of is theirs, and so are the tests
# of scikit-learn's own suite that another version of it changed, and the defaults on the page that has
# them. Times, memory and forks are left out.
test-oldest: $(VENV)-oldest/.installed
	$(VENV)-oldest/bin/python -m pytest -m "not slow and not unsanitized" -W default -p no:cacheprovider \
	  --ignore tests/svm/test_scikit_learn_own.py --ignore docs/migration/scikit-learn.md

# The native core under sanitizers, each in an environment of its own. It runs several times slower
# there, in far more memory, and the sanitizer's own locks do not survive a fork among threads: tests
# of such things are marked and left out. What a sanitizer says goes past pytest, which would keep it.
test-sanitize: $(VENV)-sanitize/.installed
	LD_PRELOAD="$(call runtime,libasan.so) $(call runtime,libstdc++.so.6)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	$(VENV)-sanitize/bin/python -m pytest -m "not slow and not unsanitized" -p no:cacheprovider --capture=sys

test-threads: $(VENV)-threads/.installed
	LD_PRELOAD="$(call runtime,libtsan.so)" \
	TSAN_OPTIONS=suppressions=tests/tsan.supp \
	$(VENV)-threads/bin/python -m pytest -p no:cacheprovider --capture=sys tests/test_races.py

# A sanitizer's runtime must be there before Python starts.
runtime = $(shell $(CXX) -print-file-name=$(1))

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable ".[test,onnx,lint,plots,cli,dask,peers,docs]"
	touch $@

$(VENV)-python/.installed: $(SOURCES)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade pip
	$(@D)/bin/python -m pip install --quiet pytest hypothesis pandas sybil --editable ".[sklearn]" \
	  -C build-dir=build/python
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
	$(@D)/bin/python -m pip install --quiet --upgrade pip
	$(@D)/bin/python -m pip install --quiet --editable ".[test,plots,cli]" \
	  -C build-dir=build/$(SANITIZE) -C cmake.build-type=RelWithDebInfo \
	  -C cmake.define.PAIRSTEP_SANITIZE=$(SANITIZE)
	touch $@

clean:
	rm -rf build $(VENV) $(VENV)-python $(VENV)-oldest $(VENV)-sanitize $(VENV)-threads
