# Every target sets up what it needs: python3 with venv is all that is assumed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
LOWEST := .venv-lowest/.installed
# A process a core, of one thread each: small tensors gain nothing from more. With bytecode, whatever the user has set: without
# it each worker compiles all tests and each of some 200 processes all of kontrast, a tenth of the time.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist worksteal

# What an older CPU would compute with: other instructions round otherwise, and other lengths are summed at once.
OLDER_CPU := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_ENABLE_INSTRUCTIONS=SSE4_2 OPENBLAS_CORETYPE=Nehalem
NUMERICAL := $(addprefix tests/,losses geometry theory evaluate optim models methods compat) \
	$(addprefix docs/,losses geometry models experiments) $(addprefix src/kontrast/,losses geometry theory simplex.py)

.PHONY: demo test test-all test-older-cpu test-lowest check bench torture docs clean

demo: $(READY)  ## train, evaluate and analyse on the bundled set, with labels and without
	$(BIN)/kontrast demo

test: $(READY)  ## every test but the long ones
	$(PYTEST)

test-all: $(READY)  ## the long ones too
	$(PYTEST) -m ''

test-older-cpu: $(READY)  ## the numerical tests and examples with the instructions of an older CPU
	$(OLDER_CPU) $(PYTEST) $(NUMERICAL)

test-lowest: $(LOWEST)  ## losses and measures on the lowest versions that are promised
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -q -n auto --maxprocesses 8 --dist worksteal tests/losses tests/geometry

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

torture: $(READY)  ## kills, faults, bad input, numerics, determinism: about two hours; soak.py takes two more
	$(BIN)/python torture/kills.py
	$(BIN)/python torture/faults.py
	$(BIN)/python torture/inputs.py
	$(BIN)/python torture/numerics.py
	$(BIN)/python torture/determinism.py

docs: $(READY)  ## the documentation as a site, in site/
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv .venv-lowest site .pytest_cache .mypy_cache .ruff_cache

# Installed anew only when what it is made from changes.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $(READY)

$(LOWEST): requirements-lowest.txt pyproject.toml
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint requirements-lowest.txt --editable . pytest pytest-xdist hypothesis
	touch $(LOWEST)
