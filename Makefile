# Every command there is; `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
UV := $(shell command -v uv || echo $(BIN)/uv)
LOCK := pip compile pyproject.toml --quiet --no-header --generate-hashes --python-version 3.11 $(if $(UPGRADE),--upgrade)
WORKERS ?= 2
ROUNDS ?= 20
FACTOR ?= 50
LASTING ?= 300
RACES ?= 10000
SEED ?=

# Stamps: what is installed in the virtual environment, so that a second call is quick.
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development
BENCH := $(VENV)/.bench
RELEASE := $(VENV)/.release
SOURCES := $(shell find src clients/python clients/sample_game -not -path '*__pycache__*')

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run demo install install-dev test test-fast test-deps faults fuzz adversarial release-check bench check format pictures screenshots docs-reference lock build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: install ## start Gatehouse on http://localhost:8080 with SQLite under ./data
	$(BIN)/gatehouse serve --dev --data ./data

demo: install ## start it with an invented studio to look at, under ./demo-data
	$(BIN)/gatehouse serve --demo

# The development installation runs the source tree itself, so once it is there it serves `run` too.
install: $(or $(wildcard $(DEVELOPMENT)),$(RUNTIME)) ## make .venv/bin/gatehouse with the locked dependencies

install-dev: $(DEVELOPMENT) ## the same from the source tree, with the locked tools for tests and checks

test: test-deps check ## get what the tests need, check the house, run every test
	$(BIN)/pytest -n $(WORKERS)

test-fast: $(DEVELOPMENT) ## unit tests only: no database, no browser
	$(BIN)/pytest tests/unit

test-deps: $(BIN)/pip ## install what the tests drive where it is missing: PostgreSQL, Chromium, OAuth clients
	@$(BIN)/python -m tools.test_deps

faults: test-deps ## the fault tests for long: LASTING=300 seconds and ROUNDS=20 each, RACES=10000; SEED= repeats a run
	FAULT_ROUNDS=$(ROUNDS) FAULT_SECONDS=$(LASTING) FAULT_RACES=$(RACES) FAULT_SEED=$(SEED) \
		$(BIN)/pytest tests/faults --timeout 7200

fuzz: test-deps ## input nobody thought of, for hours: 50 times what the tests try, new each time (FACTOR=50, SEED=…)
	FUZZ_FACTOR=$(FACTOR) FUZZ_SEED=$(or $(SEED),$(shell date +%s)) $(BIN)/pytest tests/fuzz

adversarial: test-deps ## the figures of the security checklist about time and volume, and their bounds (an hour, on a quiet machine)
	$(BIN)/pytest tests/adversarial/figures.py tests/adversarial/timing.py

release-check: $(RELEASE) ## build, install, start and audit what would be released; dist/ gets it with its bill of materials
	@$(BIN)/python tools/release_check.py

bench: $(BENCH) ## how fast and how heavy it is; kept in bench/results/ (PARTS="growth cores" measures only those)
	@$(BIN)/python -m bench.run $(PARTS)

check: $(DEVELOPMENT) ## formatter, linter, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEVELOPMENT) ## format the code and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

pictures: test-deps ## take the pictures of the guides anew, by the tests that walk there, into docs/guides/pictures/
	$(BIN)/pytest tests/pages -m pictures -k "not postgres" --write-pictures -n $(WORKERS)

screenshots: $(DEVELOPMENT) ## photograph every page in every state and every screen of the console, into screenshots/
	$(BIN)/python -m tools.screenshots

docs-reference: $(DEVELOPMENT) ## write the pages of docs/reference that are made from the code
	@for generator in tools/checklist.py tools/rooms.py tools/*_reference.py; do echo $$generator; $(BIN)/python $$generator || exit 1; done

lock: ## write the lock files anew; UPGRADE=1 takes the newest of everything (needs uv)
	@command -v $(UV) >/dev/null || { echo "make lock needs uv (pip install uv)"; exit 1; }
	$(UV) $(LOCK) -o requirements.txt
	$(UV) $(LOCK) --group dev -o requirements-dev.txt
	$(UV) $(LOCK) --group dev --group bench -o requirements-bench.txt
	$(UV) $(LOCK) --group dev --group release -o requirements-release.txt
	for place in tests/interop/clients bench/django_oauth_toolkit; do \
		(cd $$place && $(abspath $(UV)) $(subst pyproject.toml,requirements.in,$(LOCK)) -o requirements.txt) || exit 1; done

build: $(DEVELOPMENT) ## source archive and wheel, in dist/
	$(BIN)/hatchling build -d dist

clean: ## remove everything made here except data/
	rm -rf $(VENV) .test-deps dist screenshots .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .schemathesis
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# pip is the last thing a new virtual environment gets: without it the environment is only half made.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Gatehouse needs Python 3.11 or newer; \"$(PYTHON)\" is not. Name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): requirements.txt pyproject.toml $(SOURCES) | $(BIN)/pip
	$(PIP) install --require-hashes -r requirements.txt
	$(PIP) install --no-deps --force-reinstall .
	@touch $@

$(DEVELOPMENT): requirements-dev.txt pyproject.toml | $(BIN)/pip
	$(PIP) install --require-hashes -r requirements-dev.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(BENCH): requirements-bench.txt | $(DEVELOPMENT)
	$(PIP) install --require-hashes -r requirements-bench.txt
	@touch $@

$(RELEASE): requirements-release.txt | $(DEVELOPMENT)
	$(PIP) install --require-hashes -r requirements-release.txt
	@touch $@
