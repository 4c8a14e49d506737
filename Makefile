# Every target sets up what it needs: Python 3.10+ with venv, and make, are enough.
PYTHON ?= python3
BIN := .venv/bin
FRAMEWORKS ?= yes
# With `make soak`: slurm or grid_engine, how many sites, how many requests of each, and which ones.
SCHEDULER ?= slurm
SITES ?= 200
REQUESTS ?= 50
SEED ?= 1

# With `make gpu`: the Python that has PyTorch, stages instead of all, 1 without a GPU, a folder for
# what is left, how long each stage and all of them may take, in seconds, and how many pieces of each.
GPU_PYTHON ?= $(if $(REHEARSE),.frameworks/bin/python,python3)
STAGE ?=
REHEARSE ?=
OUT ?=
EACH ?=
WITHIN ?=
FIRST ?=
# With `make gpu-wheels`: the version of that Python, and a file of what is installed there.
PY ?= 3.12
HAS ?=

.PHONY: demo test check soak bench faults gpu gpu-wheels docs lock clean

demo: .venv/demo  ## Record a small real training of about a minute and print its report.
	$(BIN)/teho run --name demo --report none -- $(BIN)/python examples/train_digits.py --seconds 65
	$(BIN)/teho report demo

test: .venv/dev  ## Everything that CI runs: style, types, layers, tests.
	sh tests/debian-packages.sh
	FRAMEWORKS=$(FRAMEWORKS) sh tests/frameworks.sh $(PYTHON)
	$(BIN)/python -m compileall -q src tests # the tests start Teho a thousand times
# During the check, on the other core, pytest compiles the tests once, and not in each worker.
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -q --collect-only >/dev/null 2>&1 & \
	  $(MAKE) --no-print-directory check; found=$$?; wait; exit $$found
# Exit code 1: some tests failed. Then, and only then, they may run once more, alone.
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 4 --cache-clear --dist loadfile --no-loadscope-reorder || \
	  { [ $$? = 1 ] && $(BIN)/python tests/once_more.py; }

check: .venv/dev  ## Style, types, layers, and Python 3.8 where it is needed: seconds.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vermin -q --violations -t=3.8- src/teho/probe/inject src/teho/bench/programs src/teho/doctor/programs \
	  src/teho/software/what_is_installed.py src/teho/launch/check.py src/teho/launch/checking \
	  src/teho/process/__init__.py src/teho/process/json_lines.py
	$(BIN)/vermin -q --violations -t=3.6- src/teho/stage/side.py

soak: .venv/dev  ## Plans on random sites against a real SCHEDULER; SITES, REQUESTS, SEED: an hour.
	sh tests/debian-packages.sh soak
	FRAMEWORKS=$(FRAMEWORKS) sh tests/frameworks.sh $(PYTHON)
	FRAMEWORKS=$(FRAMEWORKS) sh tests/frameworks.sh $(PYTHON) soak
	TEHO_SOAK=1 $(BIN)/pytest -q -m "soak or hypothesis or drawn"
	$(BIN)/python tests/sites/$(if $(filter grid_engine,$(SCHEDULER)),grid_engine_)soak.py --sites $(SITES) --requests $(REQUESTS) --seed $(SEED)

bench: .venv/dev .venv/bench  ## Measure Teho beside its peers, into docs/benchmarks.md.
# Some peers are commands of this environment, such as reportseff.
	PATH="$$PATH:$(CURDIR)/$(BIN)" $(BIN)/python benchmarks/run.py --write docs/benchmarks.md

faults: .venv/dev  ## Plant faults and count who finds them, into docs/faults.md: 45 minutes.
	FRAMEWORKS=$(FRAMEWORKS) sh tests/frameworks.sh $(PYTHON)
	$(BIN)/python benchmarks/faults/run.py --write docs/faults.md

gpu:  ## Measure on a real GPU, without a network: STAGE=name, or REHEARSE=1 without a GPU.
	$(GPU_PYTHON) benchmarks/gpu/day.py $(STAGE) $(if $(REHEARSE),--rehearse) \
	  $(if $(OUT),--out $(OUT)) $(if $(EACH),--seconds $(EACH)) $(if $(WITHIN),--within $(WITHIN)) \
	  $(if $(FIRST),--first $(FIRST))

gpu-wheels: | .venv/bin/python  ## Gather what `make gpu` installs there (PY=3.12 HAS=file), and for a rehearsal.
	FRAMEWORKS=$(FRAMEWORKS) sh tests/frameworks.sh $(PYTHON)
	$(BIN)/python benchmarks/gpu/wheels.py --python $(PY) $(if $(HAS),--has $(HAS))
	if [ -x .frameworks/bin/python ]; then $(BIN)/python benchmarks/gpu/wheels.py --here .frameworks/bin/python; fi

docs: .venv/dev .venv/docs  ## The documentation as a site, in site/.
	$(BIN)/python docs/generate.py
	$(BIN)/mkdocs build --strict

lock: .venv/dev  ## Renew requirements/*.lock from pyproject.toml.
	$(BIN)/pip install uv
	$(BIN)/uv pip compile -q -U --universal --generate-hashes --no-header --python-version 3.10 \
	  pyproject.toml --group dev -o requirements/dev.lock
	for group in demo docs bench; do $(BIN)/uv pip compile -q -U --universal --generate-hashes \
	  --no-header --python-version 3.10 -c requirements/dev.lock \
	  pyproject.toml --group $$group -o requirements/$$group.lock; done

clean:  ## Remove what these targets made.
	rm -rf .venv .frameworks site

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Teho needs Python 3.10 or newer, this is " + sys.version.split()[0] + ". Next: make PYTHON=python3.12") if sys.version_info < (3, 10) else 0'
	$(PYTHON) -m venv .venv

.venv/%: requirements/%.lock pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $<
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@
