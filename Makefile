# Two commands do everything on a machine with Python 3.11+ and Java 17+: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow check unit bench install java python clean lock

demo: java install
	rm -rf demo-lake
	$(BIN)/tablectl demo demo-lake

test: java install check unit

check: install
	$(BIN)/ruff format --check tablectl tests benchmarks
	$(BIN)/ruff check tablectl tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: install
	$(BIN)/python -m pytest -m "not slow"

# The rest of the matrices on Spark, for changes of the log reader and of the conflict rules.
test-slow: java install
	$(BIN)/python -m pytest -m slow

# Each prints what it measured, against what one would use instead.
bench: install
	@for each in benchmarks/[!_]*.py; do echo; echo "$$each"; $(BIN)/python "$$each" || exit 1; done

install: .venv/installed

# A lock with hashes: what is installed here is what was tested.
.venv/installed: requirements.lock pyproject.toml | python
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "tablectl needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + "; name another with `make PYTHON=…`.")'

java: | python
	@$(PYTHON) tablectl/engine/java.py

# Maintainers: rewrite the lock from pyproject.toml (needs uv).
lock:
	uv pip compile --quiet --universal --python-version 3.11 --extra spark --extra dev --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate pyproject.toml -o requirements.lock

clean:
	rm -rf .venv demo-lake .mypy_cache .ruff_cache .pytest_cache .hypothesis
