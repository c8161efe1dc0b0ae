# Everything a reader or a contributor runs. `make` alone lists it.
#   PYTHON    the Python that makes the environment (3.11 or later); found by itself
#   PORT      where `make serve` listens on 127.0.0.1
#   JOBS      test files that run at a time
#   FAST      make test FAST=1 builds no book and leaves out the tests marked slow: for a change under way
#   PIP_ARGS  more words for pip, say a folder of wheels: make book PIP_ARGS="--find-links DIR"

# Idle OpenMP threads sleep instead of spinning: a tiny model on two busy cores then trains ten times as fast.
export OMP_WAIT_POLICY ?= PASSIVE

VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000
JOBS ?= 2
SITE := book/_build/html/index.html
TOO_OLD := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	$$p -c "$(TOO_OLD)" >/dev/null 2>&1 && echo $$p && break; done)

.PHONY: help book test serve pdf zip lab notebooks lint fork clean
.DELETE_ON_ERROR:

help:
	@echo "make book       install into $(VENV), execute every chapter, write $(SITE)"
	@echo "make serve      the same, then serve it on http://127.0.0.1:$(PORT)"
	@echo "make pdf        the book as one PDF, book/_build/fourierqk.pdf; needs Chromium"
	@echo "make zip        the book as one file that unpacks anywhere and reads from disk, book/_build/fourierqk.zip"
	@echo "make test       build the book, then run every test; with FAST=1, the fast ones alone"
	@echo "make lab        JupyterLab on the chapters"
	@echo "make notebooks  write each chapter's .ipynb from its .md"
	@echo "make lint       check the style with ruff, the types with mypy"
	@echo "make fork URL=https://github.com/me/mine   let every file name your repository instead of this one"
	@echo "make clean      remove what was built; the environment stays"

# --- the environment: a stamp remembers what was installed, so a second run installs nothing

$(BIN)/python:
	@$(PYTHON) -c "$(TOO_OLD)" >/dev/null 2>&1 || { \
		echo "No Python 3.11 or later with the venv module was found ('$(PYTHON)' is none)."; \
		echo "Install one, or name it: make book PYTHON=/path/to/python3.12"; exit 1; }
	@echo "Making a virtual environment in $(VENV) with $$($(PYTHON) --version)"
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the library, the book's tools and torch: some minutes the first time"
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e ".[book,test]"
	@touch $@

$(VENV)/installed-lab: $(VENV)/installed
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e ".[lab]"
	@touch $@

# --- the book: Sphinx rereads and executes what changed; library, records and claims count (fourierqk/site/sources.py)

book: $(VENV)/installed
	@$(BIN)/jupyter-book build book --path-output book --config _config.yml --toc _toc.yml -W -n --keep-going || { \
		rm -rf book/_build/.doctrees; \
		echo; echo "The book was not built: the warnings above say why."; exit 1; }
	@echo; echo "The book is ready. Open $(CURDIR)/$(SITE), or run: make serve"

serve: book
	@echo "Serving on http://127.0.0.1:$(PORT) (Ctrl-C stops it)"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory book/_build/html

pdf: book
	@$(BIN)/python tools/paper.py

zip: book
	@cd book/_build && rm -f fourierqk.zip && $(CURDIR)/$(BIN)/python -m zipfile -c fourierqk.zip html
	@echo "Packed. Unpack book/_build/fourierqk.zip anywhere, and open html/index.html"

test: $(if $(filter 1,$(FAST)),$(VENV)/installed,book)
	$(BIN)/python -m pytest $(if $(filter 1,$(FAST)),-m "not slow") -n $(JOBS) --dist loadfile --no-loadscope-reorder  # the long files come first

lab: $(VENV)/installed-lab
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) book

notebooks: $(VENV)/installed
	$(BIN)/python tools/notebooks.py

lint: $(VENV)/installed
	$(BIN)/ruff check
	$(BIN)/mypy

fork: $(VENV)/installed
	$(BIN)/python tools/fork.py $(URL)

clean:
	rm -rf book/_build dist build .pytest_cache .ruff_cache .mypy_cache
