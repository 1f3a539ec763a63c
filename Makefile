# Everything runs from .venv, which is built from requirements.lock on first use.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
MAKEFLAGS += --no-print-directory
export PIP_DISABLE_PIP_VERSION_CHECK := 1

SOAK := tests/device tests/schema/test_attributes.py tests/schema/test_queries.py tests/partitions/test_trees.py tests/partitions/test_partition.py \
	tests/partitions/test_covers.py tests/partitions/test_summed_area.py tests/estimates/solvers/test_norm_sub.py tests/mechanisms/ahead/test_ahead.py tests/service/store \
	tests/service/system
.DEFAULT_GOAL := help
.PHONY: help demo test system lint format bench soak docs lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP)  ## collect salaries from synthetic people and answer range queries
	@$(BIN)/python -m ahead_ldp demo $(if $(KEEP),--keep)

test: lint system  ## lint, then the test suite
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadgroup

system: $(STAMP)  ## install what the tests need beside Python: Chromium, Java, Node (where this user may)
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

docs: $(STAMP)  ## write the generated parts of the documentation and check every link
	@$(BIN)/python -m tools.docs

lock:  ## resolve requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile --universal --python-version 3.11 --all-extras --generate-hashes --upgrade \
	  --no-emit-index-url --no-emit-find-links --no-header pyproject.toml -o requirements.lock

clean:  ## remove .venv and everything generated
	rm -rf .venv build dist htmlcov .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=...")'
	@echo "installing into .venv (only when pyproject.toml or requirements.lock changed)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
