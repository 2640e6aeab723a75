# Every command sets up what it needs on a machine that has only python3 and make. PYTHON says which python3; an environment
# that another version has made is then made again.
PYTHON ?= python3
ifneq ($(origin PYTHON),file)
again = $(shell [ ! -x $(1)/bin/python ] || [ "$$($(1)/bin/python -V)" = "$$($(PYTHON) -V)" ] || echo anew)
endif
BIN := .venv/bin
ORACLE := .venv-oracle/bin
EXAMPLES := .venv-examples/bin
PEERS := .venv-peers/bin
# On two cores two workers halve the time; the cost tests count instead of timing, so neighbours do not disturb them.
PYTEST := -m pytest -q -n 2 --dist worksteal

.PHONY: anew tour test matrix smoke soak oracle coverage saves compiled stubs docs libraries bench bench-peers bench-scale bench-calls bench-document bench-xla bench-gpu examples lint clean help

help:
	@echo "make tour    a dozen mutating programs, their gradients, and what PyTorch does with them"
	@echo "make test    all tests that need no PyTorch        make smoke   the quickest of them"
	@echo "make matrix  the tests on Python 3.10 to 3.13, with old and new NumPy and with NumPy alone"
	@echo "make soak    a million random programs and the stress cases, for a night; goes on where it was stopped"
	@echo "make oracle  all tests, with those that compare with PyTorch 2.13"
	@echo "make coverage  writes docs/coverage.md: how much of PyTorch's table of operations is here"
	@echo "make saves   asks PyTorch 2.13 what it keeps for backward, and writes src/mutagrad/explain/torch_saves.json"
	@echo "make compiled  writes the list in docs/compiled.md: what a compiled step refuses"
	@echo "make stubs   writes the .pyi files: what type checkers and editors know of the package"
	@echo "make libraries  the tests of libraries that are written for PyTorch; writes docs/libraries.md"
	@echo "make docs    builds the site: documents, API reference, notebooks"
	@echo "make bench   timings as ratios to PyTorch          make lint    ruff and mypy --strict"
	@echo "make bench-peers  JAX, MyGrad, autograd, tinygrad, Warp and Taichi on some of its programs"
	@echo "make bench-scale  one of 100,000 views, of a million writes, of ten million nodes: what it costs"
	@echo "make bench-document  writes docs/benchmarks.md: the same with compiled kernels and with NumPy alone"
	@echo "make bench-calls  single calls of the API as ratios to PyTorch, by family"
	@echo "make bench-xla  compiled steps against eager ones and hand-written JAX   make bench-gpu  the same on a GPU"
	@echo "make examples  train what is in examples/training, and save the plots"

.venv/ready: pyproject.toml $(call again,.venv)
	$(PYTHON) -m venv $(if $(filter anew,$^),--clear) .venv
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q -e '.[dev]'
	@touch $@

# torch==2.13.0 stays out of every default install; pip finds its CPU build where there is one.
.venv-oracle/ready: pyproject.toml $(call again,.venv-oracle)
	$(PYTHON) -m venv $(if $(filter anew,$^),--clear) .venv-oracle
	$(ORACLE)/python -m pip install -q --upgrade pip
	$(ORACLE)/python -m pip install -q torch==2.13.0
	$(ORACLE)/python -m pip install -q -e '.[dev]' expecttest
	@touch $@

tour: .venv/ready
	@$(BIN)/mutagrad tour

# Hundreds of processes are started: each would compile the sources where no bytecode may be kept. (Empty is as good as unset.)
test smoke: export PYTHONDONTWRITEBYTECODE =

# Compiled steps have processes of their own: tracing one looks at all objects of its process, and here these are many.
test: .venv/ready
	$(BIN)/python $(PYTEST) -m "not oracle" tests --ignore=tests/xla
	$(BIN)/python $(PYTEST) -m "not oracle" tests/xla
	$(BIN)/python -m pytest -q --doctest-modules src/mutagrad --ignore=src/mutagrad/__main__.py --ignore-glob='*/interop/torch_*.py'

matrix:
	$(PYTHON) tests/matrix.py $(ONLY)

smoke: .venv/ready
	$(BIN)/python -m pytest -q -m smoke $$(grep -rl --include="test_*.py" mark.smoke tests)

# SOAK takes options: make soak SOAK="--minutes 30 --workers 1"
soak: .venv/ready
	PYTHONPATH=tests $(BIN)/python -m fuzz.soak $(SOAK)

oracle: .venv-oracle/ready
	$(ORACLE)/python $(PYTEST) -m oracle tests

compiled: .venv/ready
	PYTHONPATH=tests:tests/xla $(BIN)/python -m refused

# The site, in build/site. Its pages open from there; searching them needs a server: python3 -m http.server -d build/site
docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Other libraries' own tests, with torch meaning mutagrad. ONLY takes names and options: make libraries ONLY="einops --torch"
libraries: .venv/ready
	PYTHONPATH=tests $(BIN)/python -m libraries $(ONLY)

bench-xla: .venv/ready
	$(BIN)/python benchmarks/xla.py

bench-gpu: .venv/ready
	$(BIN)/python benchmarks/gpu.py

coverage: .venv-oracle/ready
	PYTHONPATH=tests $(ORACLE)/python -m oracle.coverage

saves: .venv-oracle/ready
	PYTHONPATH=tests $(ORACLE)/python -m oracle.saved_table

stubs: .venv/ready
	PYTHONPATH=tests $(BIN)/python -m stubs

# The other libraries are measured too where `make bench-peers` has installed them.
bench: .venv-oracle/ready
	$(ORACLE)/python -m compileall -q src
	$(ORACLE)/python benchmarks/bench.py
	$(ORACLE)/python benchmarks/scale.py
	$(ORACLE)/python benchmarks/bench_peers.py --peers $(PEERS)/python

# Libraries to compare with, each if it can be installed. tinygrad needs a clang; ziglang has one.
.venv-peers/ready: Makefile $(call again,.venv-peers)
	$(PYTHON) -m venv $(if $(filter anew,$^),--clear) .venv-peers
	$(PEERS)/python -m pip install -q --upgrade pip
	@for package in jax mygrad autograd tinygrad ziglang warp-lang taichi; do \
		$(PEERS)/python -m pip install -q $$package || echo "$$package cannot be installed here: its column stays empty"; done
	@touch $@

# Figures are written as they come, for `make bench-document`. COMPARED takes options: make bench-peers COMPARED=--resume
bench-peers: .venv-oracle/ready .venv-peers/ready
	$(ORACLE)/python -m compileall -q src
	$(ORACLE)/python benchmarks/bench_peers.py --peers $(PEERS)/python --json .bench-peers.json $(COMPARED)

bench-scale: .venv-oracle/ready
	$(ORACLE)/python -m compileall -q src
	$(ORACLE)/python benchmarks/scale.py --json .bench-scale.json

# Writes docs/benchmarks.md and its picture, and prints the table of the README. If it is cut off, it goes on from there the next
# time. The figures of `make bench-peers` are taken as they are.
bench-document: .venv-oracle/ready
	$(ORACLE)/python -m compileall -q src
	MUTAGRAD_KERNELS=numba $(ORACLE)/python benchmarks/bench.py --resume --json .bench-fast.json
	MUTAGRAD_KERNELS=numpy $(ORACLE)/python benchmarks/bench.py --resume --json .bench-numpy.json
	$(ORACLE)/python benchmarks/scale.py --resume --json .bench-scale.json
	$(ORACLE)/python benchmarks/document.py .bench-fast.json .bench-numpy.json --peers .bench-peers.json --scale .bench-scale.json
	@rm -f .bench-fast.json .bench-numpy.json .bench-scale.json

# CALLS takes options: make bench-calls CALLS="--family sorting"
bench-calls: .venv-oracle/ready
	$(ORACLE)/python -m compileall -q src
	$(ORACLE)/python benchmarks/calls.py $(CALLS)

.venv-examples/ready: pyproject.toml $(call again,.venv-examples)
	$(PYTHON) -m venv $(if $(filter anew,$^),--clear) .venv-examples
	$(EXAMPLES)/python -m pip install -q --upgrade pip
	$(EXAMPLES)/python -m pip install -q -e '.[examples]'
	@touch $@

# Their matrices are so small that threads of the BLAS would mostly wait for each other.
examples: .venv-examples/ready
	@for script in $(filter-out %/common.py,$(wildcard examples/training/*.py)); do \
		echo "== $$script"; OPENBLAS_NUM_THREADS=1 $(EXAMPLES)/python $$script || exit 1; done

# Where there is a stub, mypy does not look at the source unless it is named.
STUBBED = $(wildcard $(patsubst %.pyi,%.py,$(wildcard src/mutagrad/*.pyi src/mutagrad/*/*.pyi)))
lint: .venv/ready
	$(BIN)/ruff check src tests benchmarks examples docs/site
	$(BIN)/mypy
	$(BIN)/mypy --cache-dir .mypy_cache/sources $(STUBBED)

clean:
	rm -rf .venv .venv-oracle .venv-examples .venv-peers .bench-* .venv-3.* .pytest_cache .mypy_cache .ruff_cache
