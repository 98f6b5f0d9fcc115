# The commands of the project; each is one line of cargo with the right flags. `make help` lists them.

CARGO ?= cargo
PREFIX ?= /usr/local
FEATURES ?= blas flint mpi scalapack cuda
FUZZ_SECONDS ?= 300
EFFORT ?= 20
SUNZI = target/release/sunzi

.PHONY: help build demo test nvrtc bench fuzz soak install clean

help:
	@echo "make demo               build, then a tour in under a minute"
	@echo "make test               the whole suite (FEATURES='blas flint mpi scalapack cuda'; FEATURES= for the default build alone)"
	@echo "make nvrtc              only: the CUDA kernels compile (fetches NVIDIA's compiler where it is missing)"
	@echo "make bench              the table of docs/BENCHMARKS.md, beside the rivals (needs OpenBLAS, builds FLINT)"
	@echo "make fuzz               each fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make soak               all tests with EFFORT=$(EFFORT) times the seeds and cases, in release mode"
	@echo "make install PREFIX=$(PREFIX)"

build:
	$(CARGO) build --release

demo: build
	$(SUNZI) demo

test:
	@FEATURES="$(FEATURES)" .ci/suite

nvrtc:
	.ci/with-nvrtc $(CARGO) test --features cuda --test nvrtc -- --nocapture

bench:
	$(CARGO) build --release --features blas,flint
	.ci/bench-table $(SUNZI)
	$(CARGO) run --release --features blas,flint --example bench_plot -- target/bench docs/benchmarks.svg

fuzz:
	@command -v cargo-fuzz > /dev/null || { echo "cargo-fuzz is missing: cargo install cargo-fuzz" >&2; exit 1; }
	@set -e; for target in $$($(CARGO) fuzz list); do \
		echo "== $$target"; \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096; \
	done

soak:
	SUNZI_TEST_EFFORT=$(EFFORT) $(CARGO) test --release

install: build
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 $(SUNZI) "$(DESTDIR)$(PREFIX)/bin/sunzi"

clean:
	$(CARGO) clean
