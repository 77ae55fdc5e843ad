# One target for each habit; `make help` lists them. The data sets of the paper are read from the folder DATA, or from
# that of the variable SVML_DATA; `svml data fetch all --dir DIR` fills one.
DATA ?= $(SVML_DATA)
from = $(if $(DATA),--data $(DATA))
oldest = $(shell sed -n 's/^rust-version = "\(.*\)"/\1.0/p' Cargo.toml)

.PHONY: help demo check test bench doc site wheel study study-quick msrv supply coverage mutants miri sanitizers fuzz build release-check

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

demo: ## data with a known answer, a fit, a comparison, pictures
	cargo run --release -- demo

check: ## format, lints and the fast tests: for every change, while it is made
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace --lib --bins --test documents --test layering
	cargo test --workspace --doc

test: ## all that must pass before a change lands
	.ci/run

bench: ## times of one evaluation and of whole fits, for docs/benchmarks.md
	cargo bench -p svml

doc: ## the pages of the library
	cargo doc --workspace --no-deps

site: ## the site of the pages in docs/, into target/site; the notebook is run and links are checked
	docs/build

wheel: ## the Python package, into target/wheels
	maturin build --profile dist --manifest-path python/Cargo.toml

study: ## the paper's tables and figures, beside the paper's numbers: docs/study.md
	python3 study/sklearn_times.py $(from)
	cargo run --release -p study -- paper $(from) --results study/results/paper.jsonl study/results/sklearn.jsonl

study-quick: ## a look: ten splits of the small data sets, into target/study
	cargo run --release -p study -- paper --quick $(from)

msrv: ## the oldest compiler that Cargo.toml names: does it build everything?
	rustup toolchain install $(oldest) --profile minimal
	cargo +$(oldest) check --workspace --locked --target-dir target/msrv

supply: ## licences, sources, duplicates and known defects of dependencies; a list of them in target/sbom; a record
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny@0.20.2
	@command -v cargo-cyclonedx >/dev/null || cargo install --locked cargo-cyclonedx@0.5.9
	python3 study/strength.py supply

build: ## the README's first command in a fresh clone: how long a new user waits; a record for docs/reliability.md
	python3 study/strength.py build

coverage: ## lines, regions and branches that the tests run, by part of the library; a record for docs/reliability.md
	python3 study/strength.py coverage

mutants: ## whether tests fail when an operator or a value is changed: a sample of mutants of the core; likewise a record
	python3 study/strength.py mutants

miri: ## the unsafe code in Miri, for each instruction set; likewise a record
	python3 study/strength.py miri

sanitizers: ## linear algebra, kernels and sums over threads with AddressSanitizer and ThreadSanitizer; likewise a record
	python3 study/strength.py sanitizers

MINUTES ?= 10
fuzz: ## any bytes to the readers, guided by coverage, MINUTES=10 for each; likewise a record
	@command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
	python3 study/strength.py fuzz --minutes $(MINUTES)

release-check: ## whether a release could be made now; RELEASING.md has the way
	release/check --final
