# Two commands: `make app` starts the app, `make test` runs every test. Both build .venv the first time.
# `make quick` leaves out the slow tests, `make thorough` runs the property loops in full.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
PORT ?= 8501
SEED ?= $(shell date +%s)
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
SAMPLES := sample_models/files/.made

.PHONY: app test quick thorough check static bench fuzz samples screenshots docs site site-serve clean
.DEFAULT_GOAL := app

app: $(VENV)/.app $(SAMPLES)
	$(PY) -m streamlit run app.py --server.address 127.0.0.1 --server.port $(PORT)

# Each worker holds torch, about 1 GB: more than four help little.
# tests/conftest.py orders the groups by the time they take.
PYTEST := $(PY) -m pytest --numprocesses auto --maxprocesses 4 --dist loadgroup --no-loadscope-reorder --max-worker-restart 0
# Two hundred processes that tests start would compile the whole package anew.
unexport PYTHONDONTWRITEBYTECODE

test: $(VENV)/.test $(SAMPLES)
	$(PY) scripts/browser.py
	$(PYTEST)

quick: $(VENV)/.test $(SAMPLES)
	$(PYTEST) --quick

thorough: $(VENV)/.test $(SAMPLES)
	$(PY) scripts/browser.py
	$(PYTEST) --thorough --timeout 3600 --hypothesis-seed $(SEED)

check: static test

static: $(VENV)/.test
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy --strict inspector app.py ui.py pages

bench: $(VENV)/.test $(SAMPLES)
	for b in benchmarks/bench_*.py; do echo "== $$b"; $(PY) $$b || exit 1; done
	$(PY) -m benchmarks.keybench
	$(PY) -m benchmarks.strangers

fuzz: $(VENV)/.test $(SAMPLES)
	$(PY) scripts/fuzz.py --executions 1000000
	$(PY) scripts/fuzz_guided.py --seconds 300

samples: $(SAMPLES)

screenshots: $(VENV)/.test $(SAMPLES)
	$(PY) scripts/screenshots.py docs/images

docs: $(VENV)/.test
	$(PY) scripts/build_docs.py

# The page that needs no server: static files in site/dist. Needs npm, and nothing else that is here needs it.
site: $(VENV)/.app site/node_modules/.made
	$(PY) site/build.py

site-serve: site
	$(PY) site/serve.py

site/node_modules/.made: site/package-lock.json
	npm ci --prefix site --no-audit --no-fund
	@touch $@

clean:
	rm -rf $(VENV) sample_models/files build *.egg-info site/dist site/node_modules

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: none was found on the PATH."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.app: $(VENV)/.made requirements.txt pyproject.toml
	$(PIP) install --quiet -r requirements.txt
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.test: $(VENV)/.app requirements-test.txt
	$(PIP) install --quiet -r requirements-test.txt
	@touch $@

$(SAMPLES): $(VENV)/.app $(wildcard sample_models/*.py) $(wildcard sample_models/weights/*)
	$(PY) sample_models/build.py derive
	@touch $@
