# All development commands; `make help` lists them.

PYTHON ?= python3
RUN := .venv/bin
DEV := .venv-dev/bin
UV := $(shell command -v uv || echo $(DEV)/uv)
LOCK := pip compile pyproject.toml --quiet --no-header --generate-hashes --python-version 3.11 $(if $(UPGRADE)$(UNBOUNDED),--upgrade) $(if $(UNBOUNDED),--overrides $(abspath .unbounded.txt))
WORKERS ?= 3
ROUNDS ?= 20
FACTOR ?= 50
LASTING ?= 300
RACES ?= 10000
SEED ?=
PEOPLE ?= 100000
T ?= tests
DB ?=
PYTHONS ?=

# A test run starts Gatehouse hundreds of times: without bytecode files each start compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

# Each of these has a virtual environment of its own (tools/environment.py), so that they can run side by side.
ENVIRONMENT := $(PYTHON) tools/environment.py
TESTS := $(DEV)/python -m tools.run_tests --dist worksteal $(if $(DB),--database $(DB))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run demo install install-dev test test-fast browser-all test-times test-deps test-pythons faults fuzz adversarial interop release-check bench check format pictures screenshots chart-test drill container-test docs docs-reference lock build clean

help: ## list all targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: install ## start Gatehouse on http://localhost:8080 with SQLite in ./data
	@echo "gatehouse: starting"
	@exec $(RUN)/gatehouse serve --dev --data ./data

demo: install ## start the demo on http://localhost:8081 with sample data in ./demo-data
	@echo "gatehouse: starting"
	@exec $(RUN)/gatehouse serve --demo --port 8081

install: ## install .venv/bin/gatehouse with locked dependencies
	@$(ENVIRONMENT) run

install-dev: ## install .venv-dev with locked test and lint tools
	@$(ENVIRONMENT) dev

test: test-deps check ## run all checks and tests (T=tests/wire/oauth selects tests, DB=sqlite one database, DB=both all on both)
	@$(TESTS) -n $(WORKERS) $(T)

test-fast: install-dev ## quick pre-commit run: check changed files, unit tests, smoke test on SQLite
	@$(DEV)/python -m tools.check_changed
	@$(DEV)/python -m tools.run_tests --budget 60 --database sqlite -n $(WORKERS) tests/unit tests/wire/test_smoke.py

browser-all: test-deps ## run the tasks of people in all languages, on phone and desktop, on both databases
	@$(TESTS) --everywhere --database both -n $(WORKERS) tests/pages/tasks

test-times: test-deps ## run all tests and print their CPU seconds: by folder, setup and body, 50 slowest
	@$(TESTS) --times -n $(WORKERS) $(T)

test-deps: install-dev ## install missing test dependencies: PostgreSQL, Chromium, OAuth clients
	@$(DEV)/python -m tools.test_deps

test-pythons: ## run the tests on Python 3.13 and 3.14 (PYTHONS=3.14, T=…); root on Debian with debootstrap
	@$(PYTHON) -m tools.test_pythons $(PYTHONS) --make "WORKERS=$(WORKERS)" "T=$(T)" "DB=$(DB)"

faults: test-deps ## long fault tests (LASTING=300 seconds and ROUNDS=20 each, RACES=10000; SEED= repeats a run)
	FAULT_ROUNDS=$(ROUNDS) FAULT_SECONDS=$(LASTING) FAULT_RACES=$(RACES) FAULT_SEED=$(SEED) \
		$(DEV)/pytest tests/faults --timeout 7200

fuzz: test-deps ## fuzz tests for hours, with new random input each time (FACTOR=50, SEED=…)
	FUZZ_FACTOR=$(FACTOR) FUZZ_SEED=$(or $(SEED),$(shell date +%s)) $(DEV)/pytest --timeout 0 \
		tests/fuzz tests/wire/permissions/test_question_properties.py $$(grep -rl "import given" tests/unit --include=*.py)

interop: test-deps ## all OAuth and game client tests in full (make test runs a sample)
	@$(DEV)/python -m tools.test_deps --interop
	INTEROP_WHOLE=1 $(DEV)/pytest tests/interop tests/game_clients -n $(WORKERS)

adversarial: test-deps ## security checks of timing and volume limits (one hour on an idle machine)
	ADVERSARIAL_WHOLE=1 $(DEV)/pytest tests/adversarial/figures.py tests/adversarial/timing.py tests/adversarial/test_memory.py \
		tests/adversarial/test_oauth_edge.py

release-check: ## build, install, start and audit a release; writes dist/ with an SBOM
	@$(ENVIRONMENT) release
	@.venv-release/bin/python tools/release_check.py

bench: install ## run benchmarks; results in bench/results/ (PARTS="growth cores" selects parts)
	@$(ENVIRONMENT) bench
	@.venv-bench/bin/python -m bench.run $(PARTS)

check: install-dev ## run all checks: format, lint, types, import rules
	$(DEV)/ruff format --check .
	$(DEV)/ruff check .
	$(DEV)/mypy
	$(DEV)/lint-imports
	@$(DEV)/python -m tools.tree_figures

format: install-dev ## format the code and auto-fix lint errors
	$(DEV)/ruff format .
	$(DEV)/ruff check --fix .

pictures: test-deps ## update the screenshots of the guides in docs/guides/pictures/
	$(DEV)/pytest tests/pages -m pictures -k "not postgres" --write-pictures -n $(WORKERS)

screenshots: install-dev ## take screenshots of all pages and console screens into screenshots/
	$(DEV)/python -m tools.screenshots

chart-test: install-dev ## lint workflows and the Helm chart, validate it against Kubernetes (builds Go programs once)
	@$(DEV)/python -m tools.chart_deps
	$(DEV)/pytest tests/docs/test_helm.py tests/docs/test_repository.py

drill: test-deps ## rehearse failover, restore and key rotation with 100,000 people (PEOPLE=…), and update the runbook
	$(DEV)/python -m tools.drill --people $(PEOPLE) --write

container-test: test-deps ## build the image and start one node, then deploy/nodes; root on Debian with podman, buildah, runc
	$(DEV)/python -m tools.container_test

docs: ## build the documentation site into site/ and check its links
	@$(ENVIRONMENT) docs
	@.venv-docs/bin/python -m tools.docs_site

docs-reference: install-dev ## generate the reference pages in docs/reference
	@for generator in tools/checklist.py tools/package_index.py tools/*_reference.py; do echo $$generator; $(DEV)/python $$generator || exit 1; done

lock: ## update the lock files; UPGRADE=1 upgrades all, UNBOUNDED=1 even beyond our bounds (needs uv)
	@command -v $(UV) >/dev/null || { echo "make lock needs uv (pip install uv)"; exit 1; }
	@$(if $(UNBOUNDED),$(PYTHON) tools/repository.py > .unbounded.txt)
	$(UV) $(LOCK) -o requirements.txt
	$(UV) $(LOCK) --group dev -o requirements-dev.txt
	$(UV) $(LOCK) --group dev --group bench -o requirements-bench.txt
	$(UV) $(LOCK) --group dev --group release -o requirements-release.txt
	$(UV) $(subst pyproject.toml,--group docs,$(LOCK)) -o requirements-docs.txt
	for place in tests/interop/clients tests/interop/clients/mcp tests/interop/clients/more tests/interop/clients/pages bench/django_oauth_toolkit; do \
		(cd $$place && $(abspath $(UV)) $(subst pyproject.toml,requirements.in,$(LOCK)) -o requirements.txt) || exit 1; done

build: install-dev ## build the source archive and wheel in dist/, and the packages of the clients in dist/clients/
	@rm -f dist/gatehouse-*  # pip and the image take every wheel there
	$(DEV)/hatchling build -d dist
	$(DEV)/python -m tools.client_packages dist/clients

clean: ## remove all generated files except data/
	rm -rf .venv .venv-* .test-deps dist screenshots .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .schemathesis
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
