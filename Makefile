# Everything runs from .venv, which is built from requirements.lock on first use. PYTHON=python3.13 has its own,
# .venv-3.13, where it is another version than python3; NEWEST=1 takes the newest dependencies in place of the lock.
PYTHON ?= python3
version = $(shell $(1) -c 'import sys; print("{}.{}".format(*sys.version_info))')
SAME := $(if $(filter file,$(origin PYTHON)),same,$(filter $(call version,$(PYTHON)),$(call version,python3)))
VENV := .venv$(if $(NEWEST),-newest)$(if $(SAME),,-$(call version,$(PYTHON)))
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One process more than cores, five at most: tests of servers, browsers and Spark wait much of their time.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(5, 1 + (os.cpu_count() or 1)))')
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup
MAKEFLAGS += --no-print-directory
export PIP_DISABLE_PIP_VERSION_CHECK := 1

SOAK := tests/device tests/schema/test_attributes.py tests/schema/test_queries.py tests/partitions/test_trees.py tests/partitions/test_partition.py \
	tests/partitions/test_covers.py tests/partitions/test_summed_area.py tests/estimates/solvers/test_norm_sub.py tests/mechanisms/ahead/test_ahead.py tests/service/store \
	tests/service/system
.DEFAULT_GOAL := help
.PHONY: help demo dashboard check fast test system lint format rings coverage mutants bench soak docs docs-serve release lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP)  ## collect salaries from synthetic people and answer range queries
	@$(BIN)/python -m ahead_ldp demo $(if $(KEEP),--keep)
	@echo "In this checkout: make demo KEEP=1 keeps the dashboard; . $(BIN)/activate brings the command ahead."

dashboard: $(STAMP)  ## a server with its dashboard on this machine, to plan and rehearse a campaign; what it keeps is in out/
	@mkdir -p out
	@$(BIN)/python -m ahead_ldp serve --sign-in --set store=out/dashboard.db --set keys=out/dashboard.keys --set log_level=warning

check: $(STAMP)  ## the inner loop: ruff, mypy and the fast tests of every package, side by side
	@$(MAKE) -j2 lint fast

fast: $(STAMP)  ## the fast tests alone: no Chromium, Java, Node or PostgreSQL
	@PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/python -m pytest -p xdist.plugin -n auto --maxprocesses 4 -q -m "not slow and not soak and not bench"

test: lint system  ## lint, then the test suite
	@$(PYTEST)

rings: system  ## run the suite and record in tests/slow.tsv which tests are slow (idle cores)
	@$(PYTEST) --record-slow

coverage: $(STAMP)  ## the branches that the fast tests reach, with a floor
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q -m "not slow and not soak and not bench"
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

mutants: $(STAMP)  ## small mistakes put into the code at random: which of them do the tests find?
	@$(BIN)/python -m tools.mutants

system: $(STAMP)  ## install what the tests need beside Python: Chromium, Java, nginx, Node (where this user may)
	@$(BIN)/python -m tools.system

lint: $(STAMP)  ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(STAMP)  ## apply ruff's fixes and formatting
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(STAMP)  ## measure speed and memory beside other packages
	@$(BIN)/python -m benchmarks

soak: $(STAMP)  ## the randomised tests with new and many more examples, and the long ones
	@HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -n auto --maxprocesses 4 -m "not bench" $(SOAK)
	@$(PYTEST) -m soak $(addprefix --deselect ,$(SOAK))
	@AHEAD_SLOW_PAGES=10 $(PYTEST) tests/service/browser tests/test_site_built.py

docs: $(STAMP)  ## write the generated parts of the documentation, check every link, build the site in build/site
	@$(BIN)/python -m tools.docs
	@$(BIN)/python -m tools.site

docs-serve: docs  ## show the site at http://127.0.0.1:8400
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8400

release: $(STAMP)  ## check a release, build it twice and compare; publishes nothing (RELEASING.md)
	@$(BIN)/python -m tools.release

lock:  ## resolve requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile --universal --python-version 3.11 --all-extras --generate-hashes --upgrade \
	  --no-emit-index-url --no-emit-find-links --no-header pyproject.toml -o requirements.lock

clean:  ## remove .venv and everything generated
	rm -rf .venv .venv-* build dist htmlcov .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=...")'
	@echo "installing into $(VENV): some minutes, the first time and when pyproject.toml or requirements.lock changed"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
ifdef NEWEST
	@$(BIN)/python -m pip install --quiet --upgrade --editable ".[fast,plot,interactive,pdf,frames,server,postgres,batch,spark,telemetry,docs,dev]"
else
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
endif
	@touch $@
