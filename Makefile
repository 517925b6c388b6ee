# All targets work on a fresh machine with Python 3.11+ and make; everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One pytest process per core, with one thread each.
WORKERS ?= auto
CASES ?= 10000
COUNT ?= 150
OLDEST := .venv-oldest
# Tests that need no extras.
CORE_TESTS := $(addprefix tests/,modeling data knowledge test_systems.py training/test_checkpoints.py \
	training/test_run.py)

.PHONY: help demo docs test test-slow test-browser coverage mutants test-oldest fuzz lint types bench clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

demo: $(VENV)/.demo  ## Generate endings for three stories with the model that comes with the package
	$(BIN)/storyend generate

test: $(VENV)/.test  ## Lint, check types and run the tests
	$(MAKE) lint types
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not browser"

test-slow: $(VENV)/.test  ## Run the tests that take minutes
	$(BIN)/python -m pytest -m slow

test-browser: $(VENV)/.test  ## Run the tests of pages in a headless Chromium (apt-get install chromium chromium-driver)
	$(BIN)/python -m pytest -m browser

docs: $(VENV)/.docs  ## Build the documentation site into site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

coverage: $(VENV)/.test  ## Measure the coverage of the tests (a quarter of an hour)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(WORKERS) -m "not slow and not browser"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

mutants: $(VENV)/.test  ## Mutation testing of modeling/: tests must kill 85 % of COUNT mutants (three quarters of an hour)
	$(BIN)/python -m pip install -q -c constraints.txt cosmic-ray==8.7.0
	cd tests && ../$(BIN)/python -m mutation.mutants --count $(COUNT)

test-oldest: $(OLDEST)/.done  ## Run the core tests with the oldest versions that pyproject.toml allows
	$(OLDEST)/bin/python -m pytest -m "not slow and not browser" $(CORE_TESTS)

fuzz: $(VENV)/.test  ## Fuzzing: CASES corrupted files; none may crash, hang or exhaust memory (two minutes)
	cd tests && ../$(BIN)/python -m robustness.fuzz --cases $(CASES)

lint: $(VENV)/.test  ## Check rules and format with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test  ## Check types with mypy
	$(BIN)/mypy

bench: $(VENV)/.test  ## Measure the speed of training, generation and data loading: a table, JSON and a figure
	$(BIN)/python benchmarks/run_all.py --output bench_results

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) $(OLDEST) build dist site *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: setup.py pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

# Every file is checked against the lock before it is installed, build tools included. torch comes first, from a
# directory: of two files that the lock allows, pip would prefer the one with CUDA to a CPU build at hand. The last line
# installs the package itself and, on platforms with CUDA, what torch needs there.
$(VENV)/.test: setup.py pyproject.toml constraints.txt requirements-test.lock | $(BIN)/python
	$(BIN)/python -m pip download -q --no-deps -c constraints.txt -d $(VENV)/torch torch
	sed -n '/^torch==/,/[^\\]$$/p' requirements-test.lock > $(VENV)/torch/lock
	$(BIN)/python -m pip install -q --require-hashes --no-deps --no-index -f $(VENV)/torch -r $(VENV)/torch/lock
	rm -r $(VENV)/torch
	$(BIN)/python -m pip install -q --require-hashes --no-deps -r requirements-test.lock
	$(BIN)/python -m pip install -q --no-build-isolation -c constraints.txt -e '.[test]'
	touch $@ $(VENV)/.demo

# The site reads the code without running it: nothing of the package's own dependencies is needed.
$(VENV)/.docs: requirements-docs.lock | $(BIN)/python
	$(BIN)/python -m pip install -q --require-hashes --no-deps -r requirements-docs.lock
	touch $@

$(OLDEST)/.done: setup.py pyproject.toml .ci/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install -q -c .ci/oldest.txt -e '.[knowledge,plots]' hypothesis pytest pytest-timeout \
		tensorboard
	touch $@
