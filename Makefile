# All targets work on a fresh machine with Python 3.11+ and make; everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One pytest process a core; threads of one would wait for those of another.
WORKERS ?= auto
CASES ?= 10000
COUNT ?= 150
OLDEST := .venv-oldest
# What needs no more than the package itself.
CORE_TESTS := $(addprefix tests/,modeling systems data knowledge preparation test_equations.py test_invariants.py \
	test_learning.py test_remote_code.py training/test_checkpoints.py training/test_run.py)

.PHONY: help demo test test-slow test-browser coverage mutants test-oldest fuzz lint types bench clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

demo: $(VENV)/.demo  ## Endings for three stories from the model that comes with the package, with their evidence
	$(BIN)/storyend generate

test: $(VENV)/.test  ## Lint, check types and run the tests
	$(MAKE) lint types
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not browser"

test-slow: $(VENV)/.test  ## The tests that take minutes
	$(BIN)/python -m pytest -m slow

test-browser: $(VENV)/.test  ## The pages in a real headless Chromium (apt-get install chromium chromium-driver)
	$(BIN)/python -m pytest -m browser

coverage: $(VENV)/.test  ## How much of the code the tests run, file by file (a quarter of an hour)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(WORKERS) -m "not slow and not browser"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

mutants: $(VENV)/.test  ## Mistakes put into the model's file (COUNT=... of them): tests must notice 85 % (three quarters of an hour)
	$(BIN)/python -m pip install -q -c constraints.txt cosmic-ray==8.7.0
	cd tests && ../$(BIN)/python -m mutation.mutants --count $(COUNT)

test-oldest: $(OLDEST)/.done  ## The core tests with the oldest versions that setup.py allows
	$(OLDEST)/bin/python -m pytest -m "not slow and not browser" $(CORE_TESTS)

fuzz: $(VENV)/.test  ## Ten thousand spoilt files (CASES=...): none may crash, hang or fill the memory (two minutes)
	cd tests && ../$(BIN)/python -m hostile.fuzz --cases $(CASES)

lint: $(VENV)/.test  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test  ## mypy
	$(BIN)/mypy

bench: $(VENV)/.test  ## Measure training, writing and reading against a plain loop: one table, JSON and a picture
	$(BIN)/python benchmarks/run_all.py --output bench_results

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) $(OLDEST) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: setup.py constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

# Every file is checked against the lock before it is installed, those that build the package included. torch comes first
# and from a directory: of two files that the lock allows, pip would prefer the one with CUDA to a CPU build at hand. The
# last line finds all it needs and installs the package itself; only on other platforms it adds what torch wants there.
$(VENV)/.test: setup.py constraints.txt requirements-test.lock | $(BIN)/python
	$(BIN)/python -m pip download -q --no-deps -c constraints.txt -d $(VENV)/torch torch
	sed -n '/^torch==/,/[^\\]$$/p' requirements-test.lock > $(VENV)/torch/lock
	$(BIN)/python -m pip install -q --require-hashes --no-deps --no-index -f $(VENV)/torch -r $(VENV)/torch/lock
	rm -r $(VENV)/torch
	$(BIN)/python -m pip install -q --require-hashes --no-deps -r requirements-test.lock
	$(BIN)/python -m pip install -q --no-build-isolation -c constraints.txt -e '.[test]'
	touch $@ $(VENV)/.demo

$(OLDEST)/.done: setup.py .ci/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install -q -c .ci/oldest.txt -e '.[knowledge,plots]' hypothesis pytest pytest-timeout \
		tensorboard
	touch $@
