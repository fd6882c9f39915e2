# Two commands do everything on a machine with Python 3.11+ and Java 17+: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

# Further versions of Delta whose conflicts are measured, each with a matching Spark.
VERSIONS := 4.0.1-4.0.1 4.1.0-4.0.1 4.3.1-4.0.1
CASES := not slow

# Arguments of `make chaos`: `make chaos ROUNDS=100`, `make chaos CHAOS='--only kill --seconds 3600'`.
ROUNDS := 10
CHAOS = --rounds $(ROUNDS)

.PHONY: demo says test size test-databricks-connect test-sql-endpoint coverage fuzz test-slow test-stores test-unity test-integrations test-in-an-hour test-versions check unit bench chaos probe-clients install java python clean lock dist docs sbom facts

# In the environment of `make test` if it is there, else in a smaller one.
DEMO := $(if $(wildcard .venv/installed),.venv,.venv-demo)

demo: says java $(DEMO)/installed
	rm -rf demo-lake
	@$(DEMO)/bin/tablectl demo demo-lake

.venv-demo/installed: locks/spark.lock pyproject.toml | python
	@$(PYTHON) -m venv --clear $(@D)
	@$(PYTHON) tools/say_progress.py "installing tablectl with Spark into $(@D)" $(@D)/bin/python -m pip install \
	  --disable-pip-version-check --progress-bar off --require-hashes -r locks/spark.lock
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation packages/tablectl-guard .
	@touch $@

# Before anything that takes long.
says:
	@echo "make demo: installs tablectl with Spark into $(DEMO) (once, about 950 MB), then builds a small lake in demo-lake, plans, applies"
	@echo "and plans again: about two minutes on two cores. It writes nowhere else."

test: java install check unit

check: install
	$(BIN)/ruff format --check tablectl tablectl_guard packages hatch_build.py tests benchmarks tools chaos
	$(BIN)/ruff check tablectl tablectl_guard packages hatch_build.py tests benchmarks tools chaos
	$(BIN)/mypy
	$(BIN)/lint-imports

# Run the tests without Spark in parallel with those on Spark, which mostly wait for the JVM.
unit: install
	@$(BIN)/python -m pytest -p no:cacheprovider -m "not spark and not slow" > .unit.log 2>&1 & others=$$!; \
	$(BIN)/python -m pytest -m "spark and not slow"; spark=$$?; \
	wait $$others; others=$$?; cat .unit.log; exit $$((spark | others))

# Branch coverage of the tests without Spark. FOLDERS=tests/planning measures one folder.
FOLDERS := tests

coverage: install
	$(BIN)/python -m coverage run -m pytest -p no:cacheprovider -m "not spark and not slow" $(FOLDERS)
	$(BIN)/python -m coverage report

# The slow cells of the matrices on Spark. Run them after changes of the log reader or the conflict rules.
test-slow: java install
	$(BIN)/python -m pytest -m slow

# The interleavings of the conflict rules on other versions of Delta. CASES=spark runs all of them.
test-versions: java install $(VERSIONS:%=.venv-versions/%/installed)
	@for each in $(VERSIONS); do echo; echo "Delta-Spark $$each"; \
	  .venv-versions/$$each/bin/python -m pytest tests/conflicts/test_against_spark.py -m "$(CASES)" || exit 1; done

# Only Delta and Spark; other packages come from .venv, with lower precedence.
.venv-versions/%/installed: | .venv/installed
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check \
	  delta-spark==$(firstword $(subst -, ,$*)) pyspark==$(lastword $(subst -, ,$*))
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > "$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shared.pth"
	touch $@

# Object stores end to end: S3 (moto, Spark with S3A), Azure (azurite, from npm) and GCS (fake-gcs-server, a Go module).
# The last two need these programs; without them their tests are skipped and say so.
test-stores: java install
	$(BIN)/python -m pytest tests/stores -m "slow or not slow"

# The real server of Unity Catalog and its Spark connector, built with Maven from a checkout of github.com/unitycatalog/unitycatalog at the
# tag of a release: `make test-unity UNITY_SOURCE=../unitycatalog`. Skipped without one (tools/unity_server.py).
UNITY_SOURCE :=

test-unity: java install
	UNITY_SOURCE="$(UNITY_SOURCE)" $(BIN)/python -m pytest tests/unity -s -m "slow or not slow"

# Applies through SQL endpoints: Spark's own Thrift server, and a stand-in of a Databricks warehouse (docs/sql-endpoints.md).
test-sql-endpoint: java install
	$(BIN)/python -m pytest tests/engine/test_thrift_server.py tests/engine/test_databricks_warehouse.py tests/scenarios/test_sql_endpoint.py -m "slow or not slow"

# The recipes of docs/integrations.md, as printed, each in an environment of its own.
INTEGRATIONS := airflow dagster dbt delta-rs

test-integrations: java install $(INTEGRATIONS:%=.venv-integrations/%/installed)
	$(BIN)/python -m pytest tests/integrations -m "slow or not slow"

# Only the packages of the integration; tablectl, Spark and Delta come from .venv, with lower precedence. A writer without Spark takes nothing from
# there. A lock is complete, so nothing is resolved: pip refuses a name that is locked with an extra and required without it (fastapi, for Airflow).
.venv-integrations/%/installed: locks/integrations/%.lock | .venv/installed
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	test $* = delta-rs || $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > "$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shared.pth"
	touch $@

# The page docs/in-an-hour.md is this script, from an environment with nothing to 0 failures. Needs PostgreSQL.
test-in-an-hour: java dist
	$(BIN)/python -m pytest tests/docs/test_in_an_hour.py -m "slow or not slow"

# Fuzz every reader of untrusted input, SECONDS for each subject: `make fuzz SUBJECTS=logs SECONDS=600`.
SECONDS := 60
SUBJECTS :=

fuzz: install
	$(BIN)/python -m tests.fuzz $(SUBJECTS) --seconds $(SECONDS)

# How large the product is, by package and by feature, compared with an earlier commit: prints the tables.
size: install
	@$(BIN)/python -m tools.size

# Each benchmark prints its measurements and those of the alternatives.
bench: install
	@for each in benchmarks/[!_]*.py; do echo; echo "$$each"; $(BIN)/python "$$each" || exit 1; done

# Maintainers: try the newest releases of clients from PyPI on real tables, and update delta/clients.json.
probe-clients: java install
	$(BIN)/python -m tools.probe_clients $(CLIENTS)

# Maintainers: which facts about other products were not read for ninety days. FOLDER with checkouts of delta and delta-rs
# reads the client data from their sources again; CELLS='0.18.2 1.4.2' tries twenty cells on these versions of deltalake.
facts: install
	@$(if $(FOLDER),$(BIN)/python -m tools.client_features $(FOLDER))
	@$(if $(CELLS),$(BIN)/python -m tools.client_cells $(CELLS))
	@$(BIN)/python -m tools.facts

# The engine on databricks-connect, which exists for Python 3.12 only, against an open-source Spark Connect server.
PYTHON312 := python3.12

test-databricks-connect: java install
	$(BIN)/python -m tools.databricks_connect --python $(PYTHON312)

# Applies under faults (kills, pauses, lost connections), then applies that race (docs/benchmarks.md).
chaos: java install
	@$(BIN)/python -m chaos $(CHAOS); faults=$$?; $(BIN)/python -m chaos races $(CHAOS); races=$$?; \
	$(BIN)/python -m chaos summary; exit $$((faults | races))

install: .venv/installed

# A lock with hashes: installs exactly the tested versions.
.venv/installed: requirements.lock pyproject.toml | python
	$(PYTHON) -m venv --clear .venv
	@$(PYTHON) tools/say_progress.py "installing everything into .venv" $(BIN)/python -m pip install \
	  --disable-pip-version-check --progress-bar off --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  -e packages/tablectl-guard -e .
	touch $@

python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "tablectl needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + "; name another with `make PYTHON=…`.")'

java: | python
	@$(PYTHON) tablectl/engine/find_java.py

# The site, into build/site: `python -m http.server -d build/site` shows it. Strict: a link that leads nowhere ends the build.
PAGES := README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md LICENSE changelog.d/README.md tests/README.md docs

docs: .venv-docs/installed
	rm -rf build/pages build/site
	mkdir -p build/pages
	tar -cf - $(PAGES) | tar -xf - -C build/pages
	.venv-docs/bin/zensical build --strict --clean

.venv-docs/installed: locks/docs.lock | python
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

# Both distributions, as wheels and sources. The same commit gives the same bytes. Prints what `install: hashes:` takes.
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
dist: install
	rm -rf dist
	cd packages/tablectl-guard && $(abspath $(BIN))/python -m hatchling build -d $(CURDIR)/dist
	$(BIN)/python -m hatchling build -d dist
	@cd dist && sha256sum *

# The software bill of materials of this version, from the locks, as CycloneDX: build/sbom.cdx.json.
sbom: install
	@$(BIN)/python -m tools.sbom build/sbom.cdx.json

# Maintainers: rewrite the lock from pyproject.toml (needs uv).
lock:
	uv pip compile --quiet --universal --python-version 3.11 --extra spark --extra dev --generate-hashes \
	  --no-emit-package tablectl-guard \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate pyproject.toml -o requirements.lock
	for extra in base spark aws; do \
	  echo 'hatchling' | uv pip compile --quiet --universal --python-version 3.11 --constraint requirements.lock \
	    $$([ $$extra = base ] || echo --extra $$extra) --generate-hashes --no-emit-index-url --no-emit-find-links \
	    --no-emit-package tablectl-guard --no-header --no-annotate pyproject.toml - -o locks/$$extra.lock; done
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate locks/docs.in -o locks/docs.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate locks/publish.in -o locks/publish.lock
	uv pip compile --quiet --universal --python-version 3.11 --constraint requirements.lock --constraint locks/publish.lock --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate locks/audit.in -o locks/audit.lock
	for each in $(INTEGRATIONS); do \
	  uv pip compile --quiet --universal --python-version 3.11 --no-strip-extras --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --no-header --no-annotate locks/integrations/$$each.in -o locks/integrations/$$each.lock; done

clean:
	rm -rf .venv .venv-demo .venv-versions .venv-databricks .venv-integrations .venv-docs build .unity .unit.log .coverage demo-lake .mypy_cache .ruff_cache .pytest_cache .hypothesis
