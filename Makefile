# Two commands on a fresh machine: `make demo` and `make test`. Each sets up .venv for itself, once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check format clean

demo: $(VENV)/.ready
	$(BIN)/costa demo

test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -m "not slow and not gpu"

# Format, types and tests: what a change has to pass.
check: $(VENV)/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) test

format: $(VENV)/.ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# torch comes first and pinned: a bare `torch` would choose the newest build with all of CUDA in it.
$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "Setting up $(VENV): once, a few minutes, about 1.5 GB …"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) --editable .
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@echo "Adding what the tests and checks need …"
	$(PIP) --editable ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
