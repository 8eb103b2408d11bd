# Every target sets up what it needs: python3 with venv is all that is assumed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed

.PHONY: demo test test-all check bench clean

demo: $(READY)  ## train, evaluate and analyse on the bundled set, with labels and without
	$(BIN)/kontrast demo

test: $(READY)  ## every test but the long ones
	$(BIN)/python -m pytest -q

test-all: $(READY)  ## the long ones too
	$(BIN)/python -m pytest -q -m ''

check: $(READY)  ## the daily loop: format, lint, types, tests
	$(BIN)/ruff format .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q

bench: $(READY)  ## time and memory of every hot path against its peers and limits
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/geometry.py
	$(BIN)/python benchmarks/augment.py
	$(BIN)/python benchmarks/encoders.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/evaluation.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache

# Installed anew only when what it is made from changes.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $(READY)
