# Two commands: `make app` starts the app, `make test` runs every test. Both build .venv the first time.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
PORT ?= 8501
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
SAMPLES := sample_models/files/.made

.PHONY: app test check static bench fuzz samples screenshots docs clean
.DEFAULT_GOAL := app

app: $(VENV)/.app $(SAMPLES)
	$(PY) -m streamlit run app.py --server.address 127.0.0.1 --server.port $(PORT)

test: $(VENV)/.test $(SAMPLES)
	$(PY) scripts/browser.py
	$(PY) -m pytest

check: static test

static: $(VENV)/.test
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy --strict inspector

bench: $(VENV)/.test $(SAMPLES)
	for b in benchmarks/bench_*.py; do echo "== $$b"; $(PY) $$b || exit 1; done
	$(PY) -m benchmarks.keybench

fuzz: $(VENV)/.test $(SAMPLES)
	$(PY) scripts/fuzz.py --executions 1000000
	$(PY) scripts/fuzz_guided.py --seconds 300

samples: $(SAMPLES)

screenshots: $(VENV)/.test $(SAMPLES)
	$(PY) scripts/screenshots.py docs/images

docs: $(VENV)/.test
	$(PY) scripts/build_docs.py

clean:
	rm -rf $(VENV) sample_models/files build *.egg-info

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
