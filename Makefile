# make run | demo | dashboard | test | check | verify | fuzz | bench | clean
# Everything is written below this folder, but for pip's cache.

PYTHON ?= python3
# two processes: the tests start servers of their own
JOBS ?= 2
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --use-pep517

# a virtual environment knows its own path: one that was moved, or lost its Python, is made anew
ifneq ($(shell [ -x .venv/bin/python ] && cat .venv/.made-in 2>/dev/null),$(CURDIR))
.PHONY: .venv/.made-in
endif

NEEDED := flightsvc needs Python 3.11 or newer (make PYTHON=/path/to/python3)
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
stop = { echo "$(1)" >&2; exit 1; }

.PHONY: run demo dashboard test check verify fuzz bench clean clean-build

run: .venv/.run
	@exec env _FLIGHTSVC_HINTS=1 $(BIN)/gunicorn -c gunicorn.conf.py wsgi:app

demo: .venv/.run
	@exec $(BIN)/flightsvc demo

# the service under a steady load, and a Graphite of its own; wants Debian's nodejs, npm, libcairo2
dashboard: .venv/.run
	@exec $(BIN)/python -m dashboards $(ARGS)

test: .venv/.test
	@exec $(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(ARGS)

# the proof in its long form: PROOF_ROUNDS seeds for each random search; PROOF_SEED repeats some
verify: .venv/.test
	@exec env PROOF_ROUNDS=$${PROOF_ROUNDS:-5000} \
	  $(BIN)/python -m pytest -n $(JOBS) --dist load --timeout 7200 tests/proof $(ARGS)

# whatever the OpenAPI document allows, and more, for FUZZ_SECONDS; FUZZ_SEED repeats a search
fuzz: .venv/.test
	@exec env FUZZ_SECONDS=$${FUZZ_SECONDS:-1800} $(BIN)/python -m pytest tests/fuzz $(ARGS)

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# wants Debian's nginx and varnish
bench: .venv/.bench
	@exec $(BIN)/python -m benchmarks.report

clean: clean-build
	rm -rf .venv .run .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# what a build left behind would bring deleted files back into the next one
clean-build:
	@rm -rf build dist flightsvc.egg-info

.venv/.made-in:
	@$(PYTHON) -c '' 2>/dev/null || $(call stop,no $(PYTHON) here: $(NEEDED))
	@$(PYTHON) -c '$(NEW_ENOUGH)' || $(call stop,$$($(PYTHON) -V) is too old: $(NEEDED))
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  $(call stop,$(PYTHON) lacks its venv module (Debian: apt-get install python3-venv))
	@if [ -e $@ ] || ! $(BIN)/python -c 'import pip; $(NEW_ENOUGH)' 2>/dev/null; then \
	  echo "Making .venv with $$($(PYTHON) -V)"; $(PYTHON) -m venv --clear .venv; fi
	@pwd > $@

.venv/.run: .venv/.made-in setup.cfg setup.py | clean-build
	@echo "Installing flightsvc into .venv"
	@$(PIP) -e .
	@touch $@

.venv/.test: .venv/.run
	@echo "Installing what the tests need"
	@$(PIP) -e '.[test]'
	@touch $@

.venv/.bench: .venv/.run
	@echo "Installing what the measurements need"
	@$(PIP) -e '.[bench]'
	@touch $@

.venv/.dev: .venv/.run
	@echo "Installing what the checks need"
	@$(PIP) -e '.[test,dev]'
	@touch $@
