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

.PHONY: test test-fast lint format reproduce test-sanitize clean

test: $(VENV)/.installed lint
	$(BIN)/python -m pytest

test-fast: $(VENV)/.installed
	$(BIN)/python -m pytest -m "not slow"

lint: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(NATIVE)

reproduce: $(VENV)/.installed
	$(BIN)/pairstep reproduce --out results

# The native core under the address and undefined-behaviour sanitizers, in an environment of its own.
# It runs several times slower there, so tests that hold a solve to a time are left out, and so are
# those that do not touch the core.
test-sanitize: $(VENV)-sanitize/.installed
	LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libasan.so) $$($${CXX:-g++} -print-file-name=libstdc++.so.6)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	$(VENV)-sanitize/bin/python -m pytest -m "not slow" -p no:cacheprovider \
	  -k "not time_limit and not less_time and not equals_the_greedy_gear and not within_a_second and not promptly" \
	  tests/rules tests/test_[b-m]*.py tests/test_theory.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable ".[test,lint,plots,cli]"
	touch $@

$(VENV)-sanitize/.installed: $(SOURCES)
	$(PYTHON) -m venv $(VENV)-sanitize
	$(VENV)-sanitize/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-sanitize/bin/python -m pip install --quiet --editable ".[test,plots,cli]" \
	  -C cmake.define.PAIRSTEP_SANITIZE=ON -C cmake.build-type=RelWithDebInfo
	touch $@

clean:
	rm -rf build $(VENV) $(VENV)-sanitize
