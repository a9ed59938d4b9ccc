# Targets prepare what they need. PYTHON=python3.13 picks one, PYTEST="-k name" narrows the tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
AZURITE := .cache/azurite
REFERENCE := .cache/reference
WIRE := .cache/wire
TPC := .cache/tpc
SCALE := 1
SPARK := spark
CLUSTER := cluster
STORES := emulator
SLOW := slow or corpus
SPARKS := 4.1.4 4.2.1 4.3.0
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
unexport PYTHONDONTWRITEBYTECODE # the tests start hundreds of processes, each of which would compile anew
say = @printf '\n==> %s\n'

.PHONY: help demo test test-spark test-stores test-slow test-cluster test-all test-package test-long soak mutants reference reference-full matrix check lint doctest docs outputs pictures board release bench bench-tpc bench-wire interop clean
.NOTPARALLEL:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile
demo: $(BIN)/.ready-demo ## run the examples with real data
	@! command -v java >/dev/null || ! command -v mvn >/dev/null || $(MAKE) --no-print-directory reference
	$(BIN)/python -m examples.demo
test: $(BIN)/.ready-dev ## the quick tests: without Spark, emulators, tables of other writers and slow tests
	$(say) "quick tests"
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-quick} $(BIN)/python -m pytest -n 2 --dist worksteal -m "not ($(SPARK) or $(STORES) or $(SLOW) or cluster)" $(PYTEST)
test-spark: $(BIN)/.ready-dev ## tests on Spark, and comparisons with Delta Spark (needs a JVM and Maven)
	$(say) "tests of Spark"
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "$(SPARK) and not cluster" $(PYTEST)
test-stores: $(BIN)/.ready-dev $(AZURITE)/.ready ## tests on servers that are compatible with S3 and Azure (needs npm)
	$(say) "tests of stores"
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "($(STORES)) and not ($(SPARK) or cluster)" $(PYTEST)
test-slow: $(BIN)/.ready-dev .cache/daft/.ready $(TPC)/.ready ## killed processes, long properties, tables of other writers, TPC-DS
	$(say) "slow tests"
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "($(SLOW)) and not ($(SPARK) or $(STORES) or cluster)" $(PYTEST)
test-cluster: $(BIN)/.ready-dev ## tests on a Spark cluster of a master and two workers, with all kills (needs a JVM)
	$(say) "tests on a cluster"
	$(BIN)/python -m pytest -m "$(CLUSTER)" tests/cluster tests/spark/test_workers.py $(PYTEST)
test-all: CLUSTER := cluster and not slow
test-all: test-spark test-stores test-slow test-cluster ## all tests that `make test` does not run, except most tests on a cluster
test-package: $(BIN)/.ready-dev ## the tests of one package: make test-package PACKAGE=data
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-quick} $(BIN)/python -m pytest -n 2 --dist worksteal tests/unit/$(PACKAGE) \
	$$(grep -l "deltalog\.$(PACKAGE)" tests/property/test_*.py) $(PYTEST)
test-long: $(BIN)/.ready-dev $(AZURITE)/.ready $(REFERENCE)/.ready .cache/daft/.ready $(TPC)/.ready ## the suite with all comparisons, statements and rules; takes an hour
	$(say) "running all tests" && DELTALOG_REFERENCE_FULL=1 DELTALOG_PARITY=all DELTALOG_RULES=all DELTALOG_HISTORIES=1000 HYPOTHESIS_PROFILE=long \
	$(BIN)/python -m pytest -n 2 --dist worksteal $(PYTEST)
soak: $(BIN)/.ready-dev $(AZURITE)/.ready ## 10,000 histories of failing stores, races of 32 processes and through a catalog
	$(say) "interleaving writers" && DELTALOG_HISTORIES=10000 $(BIN)/python -m pytest -q -n 2 tests/stateful/test_histories.py tests/stateful/test_simulation.py tests/stateful/test_catalog_transactions.py
	$(say) "racing through a catalog" && DELTALOG_CATALOG_RACE=16x50 $(BIN)/python -m pytest -q -n 2 tests/catalogs/test_unity_commits.py -k race
	$(say) "racing processes" && DELTALOG_RACE=32x100 $(BIN)/python -m pytest -q -s tests/stateful/test_races.py
mutants: $(BIN)/.ready-dev ## make small changes in the source, and report those that no test detects
	$(BIN)/python -m tests.mutation $(MUTANTS)
reference: $(REFERENCE)/.ready ## install Delta Spark for comparisons (needs a JVM and Maven)
	$(say) "Delta Spark is in $(REFERENCE)"
reference-full: $(BIN)/.ready-dev $(REFERENCE)/.ready ## all comparisons with Delta Spark, including slow ones
	DELTALOG_REFERENCE_FULL=1 $(BIN)/python -m pytest tests/reference $(PYTEST)
matrix: $(SPARKS:%=.cache/spark-%/.ready) ## the Spark tests on every PySpark, and on Spark Connect
	@for version in $(SPARKS); do for connect in "" 1; do \
	printf '\n==> PySpark %s%s\n' $$version "$${connect:+ through Connect}"; \
	DELTALOG_SPARK_CONNECT=$$connect .cache/spark-$$version/bin/python -m pytest -q -n 2 --dist worksteal tests/spark $(PYTEST) || exit 1; \
	done; done
check: lint doctest docs ## all checks except the tests
lint: $(BIN)/.ready-dev ## format, lint, types, import contracts, spelling
	$(say) "format, lint" && $(BIN)/ruff format --check . && $(BIN)/ruff check .
	$(say) "types" && $(BIN)/mypy
	$(say) "public types" && mkdir -p .cache && PATH="$(abspath $(BIN)):$$PATH" PYTHONPATH=src basedpyright --verifytypes deltalog --ignoreexternal > .cache/public-types || { cat .cache/public-types; exit 1; }
	$(say) "import contracts" && $(BIN)/lint-imports
	$(say) "spelling" && $(BIN)/codespell
doctest: $(BIN)/.ready-dev ## the examples in docstrings, README and docs
	$(say) "running the examples" && $(BIN)/python -m pytest -q --doctest-modules src docs/test_examples.py
docs: $(BIN)/.ready-docs ## build the documentation; a warning is an error
	$(say) "building docs/_build/html" && $(BIN)/sphinx-build -q -W --keep-going -n docs docs/_build/html
outputs: $(BIN)/.ready-dev ## write the generated parts of the pages, run their examples, and update their outputs
	$(BIN)/python -m docs.generated
	DOCS_OUTPUTS=write $(BIN)/python -m pytest -q docs/test_examples.py
pictures: $(BIN)/.ready-dev ## draw the pictures of the documentation
	$(BIN)/python -m docs.drawings && $(BIN)/python -m docs.plots
board: $(BIN)/.ready-dev ## score deltalog and its peers with the tables of DELTALOG_CORPUS; rewrites docs/conformance-board.md
	$(BIN)/python -m deltalog.testing.conformance $(DELTALOG_CORPUS) --peer deltalake --peer deltalake-pyarrow --peer polars --markdown docs/conformance-board.md
interop: $(BIN)/.ready-dev $(REFERENCE)/.ready $(TPC)/.ready ## test what other engines can read and write; rewrites engines.json
	$(BIN)/python -m tests.support.interop $(ENGINES)
release: $(BIN)/.ready-release ## build the files of a release, and check them; the workflow publishes them
	rm -rf dist
	$(say) "building" && SOURCE_DATE_EPOCH=$$(git log -1 --pretty=%ct) $(BIN)/python -m hatchling build
	$(say) "checking" && $(BIN)/python -m twine check --strict dist/* && $(BIN)/python .ci/check_dist.py dist
bench: $(BIN)/.ready-dev ## compare with deltalake; rewrites docs/benchmarks.md
	$(BIN)/python -m benchmarks $(BENCH)
bench-tpc: $(BIN)/.ready-dev $(TPC)/h-$(SCALE)/.ready $(TPC)/ds-$(SCALE)/.ready $(WIRE)/versitygw ## compare TPC-H and TPC-DS at scale 1 with other engines (needs Go); rewrites docs/benchmarks-tpc.md
	$(BIN)/python -m benchmarks.tpc $(SCALE)
bench-wire: $(BIN)/.ready-dev $(WIRE)/versitygw ## measure over a slow network (needs Go); rewrites docs/benchmarks-wire.md
	$(BIN)/python -m benchmarks --wire $(BENCH)
clean: ## remove the files that the targets created
	rm -rf $(VENV) .cache docs/_build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

$(BIN)/.ready-%: pyproject.toml constraints.txt
	$(say) "preparing $(VENV) for '$*' (a minute or two the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) pip && $(INSTALL) --build-constraint constraints.txt -e . --group $* && touch $@
$(AZURITE)/.ready: # without npm the tests that need Azure's emulator are skipped
	$(say) "preparing the Azure emulator" && mkdir -p $(AZURITE) && ! command -v npm >/dev/null || \
	{ npm install --silent --no-audit --no-fund --prefix $(AZURITE) azurite@3.37.0 && touch $@; }
$(WIRE)/versitygw:
	$(say) "preparing an S3 server (some minutes)"
	@GOBIN=$(CURDIR)/$(WIRE) go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
$(REFERENCE)/.ready: tests/reference/pom.xml constraints.txt
	$(say) "preparing Delta Spark in $(REFERENCE) (a minute or two)"
	@mkdir -p $(REFERENCE) && rm -rf $(REFERENCE)/jars $@
	@test -x $(REFERENCE)/venv/bin/python || $(PYTHON) -m venv $(REFERENCE)/venv
	@$(REFERENCE)/venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pyspark pyarrow
	@mvn --batch-mode --quiet -f tests/reference/pom.xml -Djars=$(CURDIR)/$(REFERENCE)/jars package && touch $@
.cache/daft/.ready: pyproject.toml constraints.txt # Daft needs an older pyarrow than the others
	$(say) "preparing Daft"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@sed 's/^pyarrow==.*/pyarrow==25.0.1/' constraints.txt > $(@D)/constraints.txt
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c $(@D)/constraints.txt pip
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c $(@D)/constraints.txt \
	--build-constraint constraints.txt -e . --group daft && touch $@
$(TPC)/.ready: pyproject.toml constraints.txt tests/support/tpc.py # the extensions need an older DuckDB than the tests
	$(say) "preparing TPC-H and TPC-DS"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@sed 's/^duckdb==.*/duckdb==1.5.5/' constraints.txt > $(@D)/constraints.txt
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c $(@D)/constraints.txt pip
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c $(@D)/constraints.txt --group tpc
	@for kind in h ds; do $(@D)/bin/python tests/support/tpc.py $$kind 0.01 $(@D)/$$kind-0.01 || exit 1; done; touch $@
$(TPC)/h-%/.ready: $(TPC)/.ready
	$(say) "making the tables of TPC-H at scale $*"
	@$(TPC)/bin/python tests/support/tpc.py h $* $(@D) && touch $@
$(TPC)/ds-%/.ready: $(TPC)/.ready
	$(say) "making the tables of TPC-DS at scale $*"
	@$(TPC)/bin/python tests/support/tpc.py ds $* $(@D) && touch $@
.cache/spark-%/.ready: pyproject.toml constraints.txt # constraints.txt pins one PySpark; this is about others
	$(say) "preparing PySpark $*"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@grep -v '^pyspark==' constraints.txt > $(@D)/constraints.txt
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c $(@D)/constraints.txt \
	--build-constraint constraints.txt -e . --group test 'pyspark[connect]==$*' && touch $@
