# `make audit` and `make test` do everything from a fresh machine with Python 3.11+ and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= auto

.PHONY: help audit test test-all lint format bench docs clean

help:
	@echo "make audit     run two audits, from nothing to a verdict"
	@echo "make test      lint, types, import contracts, tests"
	@echo "make test-all  the same with the slow statistical suites"
	@echo "make lint      ruff, mypy, import-linter"
	@echo "make format    let ruff rewrite the code"
	@echo "make bench     the benchmarks"
	@echo "make docs      the documentation site, into site/"

$(VENV)/.base: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("lidp needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

# PyTorch first, and as this very version: a looser wish may fetch gigabytes of libraries for graphics cards.
$(VENV)/.torch: $(VENV)/.base
	$(PIP) torch==2.13.0
	@touch $@

$(VENV)/.dev: $(VENV)/.torch
	$(PIP) -e '.[dev,peers]'
	@touch $@

$(VENV)/.docs: $(VENV)/.base
	$(PIP) -e '.[docs]'
	@touch $@

# DP-SGD on built-in data, twice, both times claimed to be (2, 1e-5)-DP: with the noise that takes, and with that of a four times
# larger ε, which must be refuted.
AUDIT := $(BIN)/lidp audit-dpsgd --epsilon 2 --delta 1e-5 --trials 256 --workers 2

audit: $(VENV)/.base
	@rm -rf build/audit && mkdir -p build/audit
	@$(AUDIT) --store build/audit/honest.db --report build/audit/honest.html
	@echo
	@$(AUDIT) --fault little-noise --store build/audit/broken.db --report build/audit/broken.html; test $$? = 1
	@echo
	@echo "the reports: build/audit/honest.html and build/audit/broken.html"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The tests of clusters by themselves, one after the other: they start a cluster of their own, which is enough for a machine.
PYTEST := $(BIN)/python -m pytest
TOGETHER := $(PYTEST) -n $(WORKERS) --dist worksteal

test: lint
	$(TOGETHER) -m "not slow and not cluster"
	$(PYTEST) -m "not slow and cluster" tests/trials

test-all: lint
	$(TOGETHER) -m "not cluster"
	$(PYTEST) -m "cluster" tests/trials

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf build site dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
