# Every target sets up what it needs: python3 with venv is all that is assumed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed

.PHONY: demo test test-all check bench clean

demo: $(READY)  ## the loss benchmark in its small form, and the theory, checked
	$(BIN)/python benchmarks/losses.py --quick
	$(BIN)/kontrast verify

test: $(READY)  ## every test but the long ones
	$(BIN)/python -m pytest -q

test-all: $(READY)  ## the long ones too
	$(BIN)/python -m pytest -q -m ''

check: $(READY)  ## the daily loop: format, lint, types, tests
	$(BIN)/ruff format .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q

bench: $(READY)  ## time and memory of losses and measures against their peers and limits
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/geometry.py
	$(BIN)/python benchmarks/augment.py
	$(BIN)/python benchmarks/encoders.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache

# Installed anew only when what it is made from changes.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $(READY)
