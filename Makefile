# One set of commands, the same for people and for CI. `make` lists them.
# Everything runs in .venv, which is made from requirements-dev.txt and constraints.txt
# with a Python found on this machine, or with the one given as PYTHON=…

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help course test exercises book pdf publish handout dist release grade bank bench lint clean environment

# nbgrader calls programs of the environment by name.
run := PATH="$(CURDIR)/.venv/bin:$$PATH"
python := $(run) python
# What the tests need besides; in CI all of it is installed while pip is at work.
programs := bubblewrap chromium-headless-shell firefox-esr webkit2gtk-driver xvfb \
	postgresql
environment := python=$$(sh tools/find_python.sh "$(PYTHON)") && \
	"$$python" -m tools.environment
need = test -n "$($(1))" || { echo "$(1) is missing, as in:  $(2)" >&2; exit 2; }

help: ## list these commands
	@echo "Usage: make COMMAND [PYTHON=/path/to/python3.12]"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14

course: ## everything: environment, exercises, site, a sample class graded
	@began=$$(date +%s) && \
	$(environment) $(if $(filter 1 true,$(CI)),$(programs),bubblewrap) && \
	$(python) -m tools.course $$began

test: ## style and all tests, as CI runs them
	@$(environment) $(programs)
	@$(MAKE) --no-print-directory --jobs 2 lint book
	$(run) OMP_NUM_THREADS=1 pytest -n 3

exercises: environment ## generate exercises/ and solutions/transformer/ from solutions/
	@$(python) -m autograder generate

book: environment ## build the site into _build/html
	@$(python) -m tools.site.book

pdf: ## the whole book as _build/transformers-by-hand.pdf
	@$(environment) chromium-headless-shell
	@$(python) -m tools.site.book
	@$(python) -m tools.site.pdf

publish: ## the site for a server: TO=folder URL=address RECORDED=… PYODIDE=folder
	@$(call need,TO,make publish TO=/var/www/course)
	@$(environment)
	@SITE_URL="$(URL)" RECORDED="$(RECORDED)" PYODIDE="$(PYODIDE)" $(python) -m tools.site.book
	@$(python) -m tools.site.publish "$(TO)"

handout: ## what students get: CHAPTER=04_attention, or the whole course
	@$(environment)
	@$(python) -m autograder handout $(CHAPTER)

dist: environment ## the wheel that students install, without answers, in _build/dist
	@$(python) -m tools.dist

release: environment ## nbgrader's source/ and release/ in autograder/
	@$(python) -m autograder release

grade: ## grade a class: SUBMISSIONS=folder OUT=folder
	@$(call need,SUBMISSIONS,make grade SUBMISSIONS=my_class OUT=grades)
	@$(call need,OUT,make grade SUBMISSIONS=my_class OUT=grades)
	@$(environment) bubblewrap
	@$(python) -m autograder grade --submissions "$(SUBMISSIONS)" --out "$(OUT)"

bank: environment ## list every exercise with its mistakes, and count them
	@$(python) -m tools.bank

bench: environment ## time models, checks and grading: BENCH=--quick; BENCH=site
	@$(python) -m tools.measure.bench $(BENCH)

lint: environment ## style, types, spelling and prose
	@$(run) ruff check --quiet
	@$(run) ruff format --check --quiet
	@$(run) mypy --no-error-summary
	@$(run) codespell
	@$(python) -m tools.prose

clean: ## remove what was built (keeps .venv, and every grade in autograder/)
	rm -rf _build .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name .venv -prune -o -name __pycache__ -prune -exec rm -rf {} +

environment: # make .venv, or bring it up to date
	@$(environment)
