# Every command there is; `make help` lists them.

PYTHON ?= python3
RUN := .venv/bin
DEV := .venv-dev/bin
UV := $(shell command -v uv || echo $(DEV)/uv)
LOCK := pip compile pyproject.toml --quiet --no-header --generate-hashes --python-version 3.11 $(if $(UPGRADE),--upgrade)
WORKERS ?= 3
ROUNDS ?= 20
FACTOR ?= 50
LASTING ?= 300
RACES ?= 10000
SEED ?=
T ?= tests
DB ?=

# Each of these has a virtual environment of its own (tools/environment.py), so that they can run side by side.
ENVIRONMENT := $(PYTHON) tools/environment.py
TESTS := $(DEV)/python -m tools.run_tests --dist worksteal $(if $(DB),--database $(DB))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run demo install install-dev test test-fast test-times test-deps faults fuzz adversarial interop release-check bench check format pictures screenshots docs-reference lock build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: install ## start Gatehouse on http://localhost:8080 with SQLite under ./data
	@echo "gatehouse: starting"
	@exec $(RUN)/gatehouse serve --dev --data ./data

demo: install ## start it on http://localhost:8081 with an invented studio to look at, under ./demo-data
	@echo "gatehouse: starting"
	@exec $(RUN)/gatehouse serve --demo --port 8081

install: ## make .venv/bin/gatehouse with the locked dependencies
	@$(ENVIRONMENT) run

install-dev: ## make .venv-dev with the locked tools for tests and checks
	@$(ENVIRONMENT) dev

test: test-deps check ## get what the tests need, check, run every test (T=tests/wire/oauth some, DB=sqlite one database)
	@$(TESTS) -n $(WORKERS) $(T)

test-fast: install-dev ## before every commit, in under a minute: checks of changed files, unit tests, a smoke test on SQLite
	@$(DEV)/python -m tools.check_changed
	@$(DEV)/python -m tools.run_tests --budget 60 --database sqlite -n $(WORKERS) tests/unit tests/wire/test_smoke.py

test-times: test-deps ## run every test and print where the time goes: by folder, set-up against body, the 50 slowest
	@$(TESTS) --times -n $(WORKERS) $(T)

test-deps: install-dev ## install what the tests drive where it is missing: PostgreSQL, Chromium, OAuth clients
	@$(DEV)/python -m tools.test_deps

faults: test-deps ## the fault tests for long: LASTING=300 seconds and ROUNDS=20 each, RACES=10000; SEED= repeats a run
	FAULT_ROUNDS=$(ROUNDS) FAULT_SECONDS=$(LASTING) FAULT_RACES=$(RACES) FAULT_SEED=$(SEED) \
		$(DEV)/pytest tests/faults --timeout 7200

fuzz: test-deps ## input nobody thought of, for hours: 50 times what the tests try, new each time (FACTOR=50, SEED=…)
	FUZZ_FACTOR=$(FACTOR) FUZZ_SEED=$(or $(SEED),$(shell date +%s)) $(DEV)/pytest tests/fuzz

interop: test-deps ## every OAuth client and every game client with everything that make test takes a sample of
	INTEROP_WHOLE=1 $(DEV)/pytest tests/interop tests/game_clients -n $(WORKERS)

adversarial: test-deps ## the figures of the security checklist about time and volume, and their bounds (an hour, on a quiet machine)
	ADVERSARIAL_WHOLE=1 $(DEV)/pytest tests/adversarial/figures.py tests/adversarial/timing.py tests/adversarial/test_memory.py \
		tests/adversarial/test_oauth_edge.py

release-check: ## build, install, start and audit what would be released; dist/ gets it with its bill of materials
	@$(ENVIRONMENT) release
	@.venv-release/bin/python tools/release_check.py

bench: ## how fast and how heavy it is; kept in bench/results/ (PARTS="growth cores" measures only those)
	@$(ENVIRONMENT) bench
	@.venv-bench/bin/python -m bench.run $(PARTS)

check: install-dev ## formatter, linter, types, import rules
	$(DEV)/ruff format --check .
	$(DEV)/ruff check .
	$(DEV)/mypy
	$(DEV)/lint-imports

format: install-dev ## format the code and mend what the linter can mend
	$(DEV)/ruff format .
	$(DEV)/ruff check --fix .

pictures: test-deps ## take the pictures of the guides anew, by the tests that walk there, into docs/guides/pictures/
	$(DEV)/pytest tests/pages -m pictures -k "not postgres" --write-pictures -n $(WORKERS)

screenshots: install-dev ## photograph every page in every state and every screen of the console, into screenshots/
	$(DEV)/python -m tools.screenshots

docs-reference: install-dev ## write the pages of docs/reference that are made from the code
	@for generator in tools/checklist.py tools/rooms.py tools/*_reference.py; do echo $$generator; $(DEV)/python $$generator || exit 1; done

lock: ## write the lock files anew; UPGRADE=1 takes the newest of everything (needs uv)
	@command -v $(UV) >/dev/null || { echo "make lock needs uv (pip install uv)"; exit 1; }
	$(UV) $(LOCK) -o requirements.txt
	$(UV) $(LOCK) --group dev -o requirements-dev.txt
	$(UV) $(LOCK) --group dev --group bench -o requirements-bench.txt
	$(UV) $(LOCK) --group dev --group release -o requirements-release.txt
	for place in tests/interop/clients bench/django_oauth_toolkit; do \
		(cd $$place && $(abspath $(UV)) $(subst pyproject.toml,requirements.in,$(LOCK)) -o requirements.txt) || exit 1; done

build: install-dev ## source archive and wheel, in dist/
	$(DEV)/hatchling build -d dist

clean: ## remove everything made here except data/
	rm -rf .venv .venv-* .test-deps dist screenshots .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .schemathesis
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
