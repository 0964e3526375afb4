# Bare `make` lists the commands. Environments are made when they are missing or older than their lock file.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help environments lecture book pdf epub test tests notebooks kernels run lab seeds paper bench floor lint faults mutants clean address assignments grade

# e.g. make run LECTURES="signal_noise/decomposition benign_overfitting/relu_heatmap"; empty means all
LECTURES ?=
SEEDS ?= 1 2 3
# lectures, or submissions, that run at a time; empty means one a core, at most four. Tests: processes; empty means two
JOBS ?=
# for `make paper`: cpu or cuda
DEVICE ?= cpu
# for `make mutants`: a file of the library, or empty for those that everything rests on
FILE ?= $(shell find lib/flbook/claims lib/flbook/dynamics lib/flbook/training -name '*.py' -not -name '__init__.py' | sort)
# for `make floor`: the oldest PyTorch to try, if the machine can install it
TORCH ?= $(patsubst torch==%,%,$(filter torch==%,$(shell cat requirements.lock)))
# python3 if it will do, else the newest that does: 3.11 at least, and able to make an environment
PYTHON ?= $(firstword $(foreach p,python3 $(shell compgen -c python3. | grep -xE 'python3\.[0-9]+' | sort -ruV),\
	$(shell $(p) -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))

DEV := .venv/.up-to-date
BOOK := .venv-book/.up-to-date
FLOOR := .venv-floor/.up-to-date
MUTANTS := .venv-mutants/.up-to-date
PAGES = $(if $(LECTURES),$(LECTURES:%=book/%.ipynb),$(shell find book -name '*.ipynb' -not -path '*/.*' -not -path 'book/assignments/*' | sort))
# What takes long is printed, and every test's time lies in _build/junit (`make book` empties _build, so it comes first).
REPORT = --durations=40 --junitxml=_build/junit/$@.xml
TESTS = -m pytest -p no:nbval -n $(or $(JOBS),2) $(REPORT)
NBVAL = -m pytest --nbval-lax --nbval-current-env --nbval-cell-timeout 120 -n $(or $(JOBS),2) --dist loadfile --no-loadscope-reorder $(REPORT)
# What others build on: all but the lectures, the making of the book, the course and the commands.
CORE = $(shell find lib/flbook -name '*.py' -not -name '__main__.py' -not -path '*/lectures/*' -not -path '*/book/*' -not -path '*/course/*')
# The tests that LECTURES names: in a lecture's own folder, and its cases of the tests that go through all of them.
ONE = tests/book tests/lectures/test_contract.py tests/lectures/test_presets.py tests/lectures/test_refusals.py tests/test_layers.py \
	$(wildcard $(LECTURES:%=tests/lectures/%))

# A module is compiled once, not by every process that imports it.
unexport PYTHONDONTWRITEBYTECODE

# Runs start from an empty cache, so that no number is yesterday's.
EMPTY_CACHE = export FLBOOK_CACHE=$$(mktemp -d); trap 'rm -rf "$$FLBOOK_CACHE"' EXIT

help:  ## list these commands
	@echo 'The commands of this book:'
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 18

book: $(BOOK)  ## render the pages into _build/html (a minute; executes nothing)
	@for page in ledger differences theorems dependencies; do .venv-book/bin/python -m flbook.book.$$page book/$$page.md; done
	@echo 'Rendering the pages (less than a minute) ...'
	@rm -rf _build && mkdir _build  # a second run would not repeat the warnings of the first
	@.venv-book/bin/jupyter-book build . -W --keep-going --quiet > _build/log || { cat _build/log; exit 1; }
	@date > _build/html/.built
	@echo "The book is at $(CURDIR)/_build/html/index.html"

pdf: book $(DEV)  ## print the book and each chapter into _build/pdf (minutes; needs Chromium)
	@echo 'Printing the book and its chapters (minutes) ...'
	@.venv/bin/python -m flbook.book.pdf _build/html _build/pdf

epub: book $(DEV)  ## bind the book as an EPUB 3 for tablets (needs Chromium)
	@.venv/bin/python -m flbook.book.epub _build/html _build/feature-learning.epub

environments: $(DEV) $(BOOK)

# A title reaches its page as it was typed, dollar signs and quotation marks too.
lecture: export HEADING := $(value TITLE)
lecture: $(DEV)  ## write a new lecture from a template; without TITLE: list what is still to write [NAME=chapter/name TITLE="..."]
	@.venv/bin/python -m flbook.book.template "$$NAME" $${HEADING:+"$$HEADING"}

test: $(DEV)  ## test the library, then execute every lecture and check its claims (minutes)
	@status=0; for part in tests notebooks; do $(MAKE) --no-print-directory $$part || status=1; done; exit $$status

tests: $(DEV)
	@echo 'Testing $(or $(LECTURES),the library) and the stored pages (minutes) ...'
	@OMP_NUM_THREADS=1 FLBOOK_LECTURES="$(LECTURES)" .venv/bin/python $(TESTS) $(if $(LECTURES),$(ONE),tests)

notebooks: $(DEV)
	@echo 'Executing the lectures and checking their claims (up to a minute each) ...'
	@[ -z "$(strip $(PAGES))" ] || .venv/bin/python $(NBVAL) $(PAGES)

# Sums in another order, other vector units: what hangs on the last digit of a sum shows here.
kernels: $(DEV)  ## test once more, with other processor kernels and two threads, what computes (minutes)
	@echo 'Testing what computes with other kernels (minutes) ...'
	@ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2 OMP_NUM_THREADS=2 OMP_WAIT_POLICY=PASSIVE \
		.venv/bin/python $(TESTS) -m numeric tests

run: $(DEV)  ## execute lectures in place and store their outputs [LECTURES="chapter/name ..." JOBS=n]
	@$(EMPTY_CACHE); .venv/bin/python -m flbook.book.executor run $(JOBS:%=--jobs %) $(LECTURES)

lab: $(DEV)  ## open the lectures in JupyterLab
	@.venv/bin/jupyter lab book

seeds: $(DEV)  ## run lectures with fresh seeds and print the claims that fall [SEEDS="1 2 3"]
	@$(EMPTY_CACHE); .venv/bin/python -m flbook.book.executor seeds $(JOBS:%=--jobs %) "$(SEEDS)" $(LECTURES)

paper: $(DEV)  ## run experiments at the papers' own scale and store the results; resumes after a kill [DEVICE=cuda LECTURES=...]
	@set -e; for name in $$(.venv/bin/python -m flbook list --scale paper $(LECTURES) | sed -n 's/^\([a-z][^ ]*\).*/\1/p'); do \
		.venv/bin/python -m flbook run $$name --scale paper --device $(DEVICE) --store; \
	done

assignments: $(DEV)  ## make student notebooks, public tests and autograders out of the masters [MASTERS=folder SEED=n]
	@.venv/bin/python -m flbook.course.handouts $(if $(MASTERS),--masters "$(MASTERS)") $(if $(SEED),--seed "$(SEED)")

grade: $(DEV)  ## grade a folder of submissions: NAME=... SUBMISSIONS=folder [MASTERS=folder SEED=n JOBS=n SECONDS=n FRESH=yes SANDBOX=no]
	@.venv/bin/python -m flbook.course.grading "$(NAME)" "$(SUBMISSIONS)" \
		$(if $(MASTERS),--masters "$(MASTERS)") $(if $(SEED),--seed "$(SEED)") $(JOBS:%=--jobs "%") \
		$(if $(SECONDS),--seconds "$(SECONDS)") $(if $(FRESH),--fresh) $(if $(filter no,$(SANDBOX)),--without-sandbox)

bench: $(DEV)  ## measure speed against plain PyTorch
	@set -e; for file in $(filter-out bench/record.py,$(wildcard bench/*.py)); do echo "== $$file"; .venv/bin/python $$file; done

floor: $(FLOOR)  ## import everything and run a lecture on the oldest packages allowed [TORCH=2.6.0]
	@.venv-floor/bin/python -c "import importlib, pkgutil, flbook; \
	names = [m.name for m in pkgutil.walk_packages(flbook.__path__, 'flbook.') if not m.name.endswith('__main__')]; \
	[importlib.import_module(name) for name in names]; print(len(names), 'modules import')"
	@.venv-floor/bin/python $(NBVAL) $(or $(LECTURES:%=book/%.ipynb),book/signal_noise/decomposition.ipynb)

lint: $(DEV)  ## check style, types and docstrings of the core, and that nothing lies about unused
	@.venv/bin/ruff check .
	@.venv/bin/basedpyright --level error
	@.venv/bin/numpydoc lint --config . $(CORE)
	@pages=$$(mktemp -d); trap 'rm -rf "$$pages"' EXIT; \
	.venv/bin/jupyter nbconvert --log-level ERROR --to script --output-dir "$$pages" $(PAGES); \
	sed -i 's/^\( *\)%pip.*/\1pass/; s/^get_ipython.*//' "$$pages"/*.py; \
	! .venv/bin/vulture lib bench book/conftest.py book/_ext "$$pages" | grep -v "^$$pages"  # a page may define to show

faults: $(DEV)  ## kill runs, `make run` and gradings at fifty random moments, and look what the same command gives then (minutes)
	@FLBOOK_KILLS=50 .venv/bin/python -m pytest -p no:nbval -q -o timeout=3000 --durations=0 -k kill \
		tests/runs/test_kills.py tests/book/test_executor.py tests/course/test_grading.py

mutants: $(DEV) $(MUTANTS)  ## put small faults into files, one at a time, and print those that no test notices [FILE=... NUMBER=40]
	@status=0; for file in $(FILE); do \
		.venv-mutants/bin/python tests/support/mutants.py $$file --number $(or $(NUMBER),40) || status=1; done; exit $$status

clean:  ## delete what was built, but not the environments
	@rm -rf _build build book/ledger.md book/differences.md book/theorems.md book/dependencies.md .ruff_cache .pytest_cache
	@find . \( -name __pycache__ -o -name .ipynb_checkpoints \) -not -path './.venv*' -prune -exec rm -rf {} +

address:  ## change the repository's address everywhere: make address URL=https://...
	@echo "$(URL)" | grep -Eq '^https://[^/ ]+/[^/ ]+/[^/ ]+$$' && [ "$(URL)" = "$(URL:.git=)" ] || \
		{ echo "URL must look like https://github.com/owner/name; it was '$(URL)'"; exit 1; }
	@old=$$(sed -n 's/^Repository = "\(.*\)"/\1/p' pyproject.toml); \
		git grep -lF "$$old" | xargs sed -i "s|$$old|$(URL)|g"
	@echo "The address is now $(URL)"

# $(call environment,packages to install,how long it takes)
define environment
	@[ -n "$(PYTHON)" ] || { echo 'This needs Python 3.11 or newer (with venv); none was found.'; exit 1; }
	@echo 'Making the environment $(@D) ($(2)) ...'
	@[ -x $(@D)/bin/pip ] || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install -qq $(1)
	@$(@D)/bin/python -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@
endef

$(DEV): requirements.lock pyproject.toml
	$(call environment,-r requirements.lock,with PyTorch; some minutes)

$(BOOK): requirements-book.lock pyproject.toml
	$(call environment,-r requirements-book.lock,about a minute)

$(MUTANTS): pyproject.toml
	$(call environment,cosmic-ray==8.7.0 'setuptools>=77',a minute)

# The oldest numpy allowed, and Colab's old IPython and ipywidgets; the rest as the resolver likes.
OLD = torch==$(TORCH) numpy==2.0.2 ipython==7.34.0 ipywidgets==7.7.1
$(FLOOR): requirements.lock pyproject.toml
	$(call environment,$(OLD) $(shell grep -E '^(pytest|pytest-xdist|pytest-timeout|nbval|nbclient|beartype|setuptools|jaxtyping|pooch)==' requirements.lock) \
		scipy xarray matplotlib tqdm scikit-learn safetensors 'ipykernel<7' 'submitit' 'dask[distributed]',with PyTorch; some minutes)
