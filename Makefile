# Everything runs inside .venv, which every target builds by itself; a machine needs Python >= 3.10 and make.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo docs images test test-slow test-oldest mutants style quality clean

PYTHON ?= python3
RUN := .venv/bin/python
# Offline and one thread a process: the tests neither need the Hub nor gain from threads that fight over the cores.
TEST_ENV := OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | awk -F'\t' '{printf "make %-11s %s\n", $$1, $$2}'

.venv/.installed: setup.py constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "$(PYTHON) is older than Python 3.10; name a newer one: make PYTHON=python3.12 ..."; exit 1; }
	@echo "installing into .venv (the first time takes minutes, most of them torch)"
	@$(RUN) -m pip --version >/dev/null 2>&1 || { rm -f .venv/bin/python*; $(PYTHON) -m venv .venv; }
	$(RUN) -m pip install -q -c constraints.txt torch==2.13.0
	$(RUN) -m pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

images: .venv/.installed  ## the pictures of docs/images, made anew
	$(TEST_ENV) $(RUN) scripts/images.py

demo: .venv/.installed  ## what the default model finds in three texts
	$(RUN) scripts/demo.py

test: .venv/.installed  ## the fast tests
	$(TEST_ENV) $(RUN) -m pytest -q -n 2 --dist loadgroup -m "not slow"

test-slow: .venv/.installed  ## the tests marked slow
	$(TEST_ENV) $(RUN) -m pytest -q -n 2 --dist loadgroup -m slow

# The oldest transformers that setup.py claims. What it wants older than constraints.txt has it is left to pip.
OLDEST := $(shell sed -n 's/.*"transformers>=\([0-9.]*\),.*/\1/p' setup.py)

.venv-oldest/.installed: setup.py constraints.txt
	@echo "installing transformers $(OLDEST) into .venv-oldest"
	@.venv-oldest/bin/python -m pip --version >/dev/null 2>&1 || { rm -rf .venv-oldest; $(PYTHON) -m venv .venv-oldest; }
	grep -vE '^(transformers|huggingface_hub|tokenizers|hf-xet)==' constraints.txt > .venv-oldest/constraints.txt
	echo 'transformers==$(OLDEST)' >> .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install -q -c .venv-oldest/constraints.txt torch==2.13.0
	.venv-oldest/bin/python -m pip install -q -c .venv-oldest/constraints.txt -e '.[dev]'
	@touch $@

test-oldest: .venv-oldest/.installed  ## the fast tests on the oldest transformers that is supported
	$(TEST_ENV) .venv-oldest/bin/python -m pytest -q -n 2 --dist loadgroup -m "not slow"

mutants: .venv/.installed  ## whether the tests notice the mistakes of tests/mutants.yaml
	$(RUN) tests/run_mutants.py

style: .venv/.installed  ## format the code and fix what ruff can fix
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

docs: .venv/.installed  ## the documentation, into site/: strict, no network
	NO_MKDOCS_2_WARNING=1 $(TEST_ENV) $(RUN) -m mkdocs build --strict -q -d site

quality: .venv/.installed  ## check format, lint and types, change nothing
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) tests/typing/check.py

clean:  ## remove caches and build products, keep .venv
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +
