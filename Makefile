# Two commands on a fresh machine: `make demo` and `make test`. Each sets up .venv for itself, once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check lint format pages docs wheel clean

demo: $(VENV)/.ready
	@$(BIN)/costa demo
	@echo "(The command is $(BIN)/costa; . $(BIN)/activate makes it plain costa.)"

test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -m "not gpu" -n auto --dist worksteal

# Format, types and tests: what a change has to pass.
check: lint test

lint: $(VENV)/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# All tables, figures and pages, from the store in results/; nothing is trained.
pages: $(VENV)/.ready-dev
	$(BIN)/python -m reproduction pages

# The site, into site/. The variable silences the theme's notice about its successor.
docs: $(VENV)/.ready-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html in a browser."

# The wheel, in an environment of its own and outside the tree, must run the demo.
wheel:
	room=$$(mktemp -d) && trap "rm -rf $$room" EXIT && set -e && \
	$(PYTHON) -m venv $$room/venv && \
	$$room/venv/bin/python $(PIP) torch==2.13.0 && \
	$$room/venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir $$room . && \
	$$room/venv/bin/python $(PIP) $$room/costa_gcl-*.whl && \
	test -f $$room/venv/lib/python3*/site-packages/costa/py.typed && \
	cd $$room && venv/bin/costa demo && venv/bin/costa train digits --method costa-mv --epochs 2

# torch comes first and by its exact version: that is the one name an index with CPU builds can be asked for.
$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "Setting up $(VENV): once, a few minutes, about 1.5 GB …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) torch==2.13.0
	@$(BIN)/python $(PIP) --editable .
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@echo "Adding what the tests and checks need …"
	@$(BIN)/python $(PIP) --editable ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
