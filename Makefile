# All targets work on a fresh machine with Python 3.11+ and make; everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One pytest process a core; threads of one would wait for those of another.
WORKERS ?= auto

.PHONY: help demo test test-slow test-browser lint types check bench clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

demo: $(VENV)/.demo  ## Train a small model on the stories that come with the package and write endings (2 minutes)
	$(BIN)/python examples/quickstart.py

test: $(VENV)/.test  ## Lint, check types and run the tests
	$(MAKE) lint types
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not browser"

test-slow: $(VENV)/.test  ## The tests that take minutes
	$(BIN)/python -m pytest -m slow

test-browser: $(VENV)/.test  ## The pages in a real headless Chromium (apt-get install chromium chromium-driver)
	$(BIN)/python -m pytest -m browser

lint: $(VENV)/.test  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test  ## mypy
	$(BIN)/mypy

bench: $(VENV)/.test  ## Measure training, writing and reading against a plain loop: one table, JSON and a picture
	$(BIN)/python benchmarks/run_all.py --output bench_results

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: setup.py constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/.test: setup.py constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[test]'
	touch $@ $(VENV)/.demo
