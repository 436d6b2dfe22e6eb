# Every target brings what it needs: a virtual environment in .venv and, in it, the packages.
# `make PYTHON=python3.12 test` chooses the Python that .venv is made with; test-wheel makes an
# environment of its own and throws it away.

PYTHON ?= python3
VENV := .venv
# The release that the present tree is compared with, and its environment.
RELEASE := a21a76c
OLD := .venv-0.2.0
BIN := $(VENV)/bin
PYRIGHT := $(BIN)/pyright --pythonpath $(BIN)/python
# What is imported is compiled then: all at once, most of it never used, takes half of the set-up.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable

# One BLAS thread: our matrices are small, and the tests already use every core.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

# Bytecode is kept whatever the shell says: without it every worker rewrites the tests' asserts anew
# (two thirds of collecting), and every program that a test starts compiles the package.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
# Two pips at once in one environment would trip over each other.
.NOTPARALLEL:
.PHONY: help audit test coverage test-slow test-wheel compare mutate lint style bench docs notebooks clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

audit: $(VENV)/.installed-base ## what a real rounding mechanism tells about one person
	$(BIN)/cvxleak audit examples/rounded_count.toml

test: style ## lint, and every test but the slow ones, doctests included, on all cores
	@# Pyright uses one core: it runs beside the tests, and has its say after them.
	$(PYRIGHT) >$(VENV)/pyright.log 2>&1 & pyright=$$!; trap "kill $$pyright" INT TERM; \
	  $(BIN)/python -m pytest -n auto -m "not slow" $(ARGS); tests=$$?; \
	  wait $$pyright; types=$$?; cat $(VENV)/pyright.log; [ "$$tests $$types" = "0 0" ]

coverage: $(VENV)/.installed-test ## the lines that no test runs, at 1.8 times the processor time of test
	$(BIN)/python -m pytest -n auto -m "not slow" --cov=cvxleak --cov-report=term-missing:skip-covered $(ARGS)

test-slow: $(VENV)/.installed-test ## the slow tests (ARGS="tests/docs" for those of the pages)
	$(BIN)/python -m pytest -n auto -m slow -o faulthandler_timeout=3600 $(ARGS)

test-wheel: ## build a release, install its wheel afresh, test that (PYTHON=python3.12)
	.ci/test-wheel $(PYTHON) -n auto -m "not slow"

compare: $(VENV)/.installed-test $(OLD)/.installed ## the bank of truths on this tree and on release 0.2.0 (ARGS="capacity --cases")
	$(BIN)/python tests/truths/compare.py --old $(OLD)/bin/python $(ARGS)

mutate: $(VENV)/.installed-test ## change the checker in one place at a time: a test has to fail (ARGS="--only user_rows")
	$(BIN)/python -m tests.mutation $(ARGS)

lint: style ## style, which room may import which, and types
	$(PYRIGHT)

style: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

bench: $(VENV)/.installed-bench ## measure against other programs, as ratios
	$(BIN)/python -m benchmarks

docs: $(VENV)/.installed-docs ## build the documentation into docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

PAGES := docs/design.md $(addprefix docs/tutorials/,audit.md certificates.md guess.md own_*.md relaxations.md table.md)
notebooks: $(VENV)/.installed-notebooks ## the tutorials as notebooks, run, into docs/_build/notebooks
	$(BIN)/python docs/notebooks.py docs/_build/notebooks $(PAGES)

clean: ## remove everything that these targets make, .venv too
	rm -rf $(VENV) $(OLD) dist docs/_build .coverage .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find cvxleak tests docs examples benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and \
	  "cvxleak needs Python 3.11 or newer, and $(PYTHON) is %d.%d." % v[:2])' || \
	  { echo "Name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The version is read when the package is installed, so a new version is a new installation.
$(VENV)/.installed-base: $(VENV)/.made pyproject.toml cvxleak/_version.py
	$(PIP_INSTALL) .
	@touch $@

$(VENV)/.installed-%: $(VENV)/.made pyproject.toml cvxleak/_version.py
	$(PIP_INSTALL) '.[$*]'
	@touch $@

# Both environments have the same versions of everything else: otherwise those would be compared.
$(OLD)/.installed: $(VENV)/.installed-test
	rm -rf $(OLD)
	$(PYTHON) -m venv $(OLD)
	mkdir $(OLD)/source
	git archive --output $(OLD)/source.tar $(RELEASE) && tar -x -f $(OLD)/source.tar -C $(OLD)/source
	$(BIN)/python -m pip freeze --exclude-editable >$(OLD)/constraints.txt
	$(OLD)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(OLD) $(OLD)/source
	$(OLD)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(OLD)/constraints.txt $(OLD)/cvxleak-*.whl
	@touch $@
