# Every target sets up what it needs: python3 with venv is all that is assumed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
# A process a core, of one thread each: small tensors gain nothing from more.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist worksteal

.PHONY: demo test test-all check bench docs clean

demo: $(READY)  ## train, evaluate and analyse on the bundled set, with labels and without
	$(BIN)/kontrast demo

test: $(READY)  ## every test but the long ones
	$(PYTEST)

test-all: $(READY)  ## the long ones too
	$(PYTEST) -m ''

check: $(READY)  ## the daily loop: format, lint, types, tests
	$(BIN)/ruff format .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST)

bench: $(READY)  ## time and memory of every hot path against its peers and limits
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/geometry.py
	$(BIN)/python benchmarks/augment.py
	$(BIN)/python benchmarks/encoders.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/evaluation.py

docs: $(READY)  ## the documentation as a site, in site/
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv site .pytest_cache .mypy_cache .ruff_cache

# Installed anew only when what it is made from changes.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $(READY)
