# Entry points for the common tasks. CMake does the work (see CMakePresets.json).
#
#   make DEPS=skip ...    does not check for missing Debian packages
#   make JOBS=1 ...       compiles with one job (default: one per core)
#   make test T=unit.step runs only the tests whose names match the regular expression
#   make asan L='unit|fast' runs only the tests with such a label
#   make tsan B=unit_world T='^unit[.]world_'
#                         builds only what the unit tests of a layer need
#   make swarm SEEDS=n    random runs: state machines, and the whole system (default: 10000)
#   make install PREFIX=/opt/anytime DESTDIR=/tmp/package
#                         where to install (default: /usr/local), and below which folder
#   make fuzz T=data_idx SECONDS=600
#                         searches for inputs that break a parser (default: 60 seconds each)
#   make book QUICK=1     repeats cheap runs of docs/book and checks their numbers

DEPS ?= install
JOBS ?= $(shell nproc)
T    ?= .
L    ?= .
SEEDS ?= 10000
SECONDS ?= 60
TIMES ?= 20
PREFIX ?= /usr/local

# Debian's Python packages need Debian's Python; another one may come first on PATH.
PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)

MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := all
.PHONY: all deps deps-clang deps-deb demo test test-torch2 test-readers test-loaded test-without \
	swarm fuzz bench book pictures lint asan tsan clang coverage install uninstall deb debug \
	format clean help

all: build/Makefile ## configure and build; the program is build/anytime
	@cmake --build --preset default -j $(JOBS)

deps: ## install missing Debian packages of tools/packages.txt
ifneq ($(DEPS),skip)
	@tools/deps.sh tools/packages.txt
endif

deps-clang deps-deb:
ifneq ($(DEPS),skip)
	@tools/deps.sh tools/packages-$(@:deps-%=%).txt
endif

demo: deps ## compare fmb and amb on ten unequal workers
	@$(MAKE) all
	@tools/demo.sh

test: deps ## build and run every test
	@$(MAKE) all
	@$(call ctest,default,build)

swarm: deps ## random runs of the state machines and of the whole system; SEEDS=n sets how many
	@$(MAKE) build/Makefile
	@cmake --build --preset default -j $(JOBS) --target test_step_swarm test_world_swarm
	@bash -c 'time SWARM_SEEDS=$(SEEDS) build/tests/test_step_swarm'
	@bash -c 'time SWARM_SEEDS=$(SEEDS) build/tests/test_world_swarm'

fuzz: deps deps-clang ## search for inputs that break a parser (needs clang); T=data_idx selects one
	@$(PYTHON) tools/fuzz.py -j $(JOBS) '$(T)' $(SECONDS)

bench: deps ## run benchmarks, also against PyTorch (installs python3-torch)
ifneq ($(DEPS),skip)
	@tools/deps.sh tools/packages-bench.txt
endif
	@$(MAKE) all
	@bench/run

book: ## docs/book: published experiments beside ours; runs what is missing. QUICK=1: only a check
	@$(MAKE) all
	@$(PYTHON) book $(if $(QUICK),--quick) --jobs $(JOBS)

pictures: ## docs/images: pictures of the documentation (needs chromium); T=report selects one
	@$(MAKE) all
	@$(PYTHON) tools/pictures.py $(filter-out .,$(T))

test-torch2: ## tests of PyTorch scripts with the newest PyTorch (2.5 GB, once; or TORCH2=FOLDER)
	@$(MAKE) all
	@tools/test_torch2.sh

test-readers: ## TensorBoard, onnxruntime, safetensors and Perfetto (from PyPI) read what we write
	@$(MAKE) all
	@tools/test_readers.sh '$(T)'

lint: deps ## check layers, banned calls, sizes, headers, links and format
	@$(PYTHON) tools/lint

asan: deps deps-clang ## unit and e2e tests with address and undefined-behavior sanitizers
tsan: deps ## unit and e2e tests with the thread sanitizer
clang: deps deps-clang ## build with clang, and unit tests
asan tsan clang:
	@$(MAKE) build-$@/Makefile
	@cmake --build --preset $@ -j $(JOBS) $(if $(B),--target $(B))
	@$(call ctest,$@,build-$@)

test-loaded: ## tests, 20 times or TIMES=n, while every core is busy; T=e2e.net selects some
	@$(MAKE) all
	@tools/test_loaded.sh '$(T)' '$(L)' $(TIMES)

test-without: deps ## builds without each optional library, with their unit tests
	@tools/test_without.sh $(JOBS)

coverage: ## unit and fast e2e tests; lines and branches by layer, and build-coverage/*.html
	@tools/coverage.sh '$(T)' $(JOBS)

install: ## install into PREFIX, below DESTDIR if given
	@$(MAKE) all
	@DESTDIR='$(abspath $(DESTDIR))' cmake --install build --strip --prefix '$(PREFIX)' \
	  >build/install.log || { cat build/install.log; exit 1; }
	@echo "installed into $(DESTDIR)$(PREFIX); 'make uninstall' with the same DESTDIR removes it"

uninstall: ## remove what the last `make install` of this folder installed
	@tools/uninstall.sh build/install_manifest.txt '$(abspath $(DESTDIR))'

deb: deps deps-deb build-deb/Makefile ## Debian packages, in build-deb/
	@cmake --build --preset deb -j $(JOBS)
	@cd build-deb && cpack --config CPackConfig.cmake
	@ls build-deb/*.deb

debug: build-debug/Makefile ## build without optimization into build-debug/
	@cmake --build --preset debug -j $(JOBS)

format: ## format every C file with clang-format
	@find src include tests bench examples -name '*.[ch]' -exec clang-format -i {} +

clean: ## remove all build folders; runs/ stays
	@rm -rf build build-asan build-tsan build-clang build-coverage build-debug build-deb \
	  build-fuzz build-readers build-without

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1 \2/p' Makefile | \
	  while read -r name what; do printf '  make %-11s %s\n' "$$name" "$$what"; done

# CMake reconfigures by itself when a CMakeLists.txt changes, but not when a preset does.
build/Makefile: CMakePresets.json
	@$(call configure,default)
build-%/Makefile: CMakePresets.json
	@$(call configure,$*)

# A test that cannot run here exits with 77 after a line `skipped: REASON`, which is repeated at the
# end.
define ctest
ctest --preset $(1) -R '$(T)' -L '$(L)' && \
sed -n 's/^skipped: /make $@: skipped: /p' $(2)/Testing/Temporary/LastTest.log && \
echo "make $@: no test failed"
endef

define configure
command -v cmake >/dev/null || { echo "cmake is missing: run 'make deps' first" >&2; exit 1; }; \
cmake --preset $(1) && touch $@
endef
