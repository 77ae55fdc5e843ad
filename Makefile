# One target for each habit; `make help` lists them. The data sets of the paper are read from the folder DATA, or from
# that of the variable SVML_DATA; `svml data fetch all --dir DIR` fills one.
DATA ?= $(SVML_DATA)
from = $(if $(DATA),--data $(DATA))

.PHONY: help demo check test bench doc site wheel study study-quick

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

demo: ## data with a known answer, a fit, a comparison, pictures
	cargo run --release -- demo

check: ## format, lints and the fast tests: for every change, while it is made
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace --lib --bins
	cargo test -p svml --test documents --test layering
	cargo test -p svml --doc

test: ## all that must pass before a change lands
	.ci/run

bench: ## times of one evaluation and of whole fits, for docs/benchmarks.md
	cargo bench -p svml

doc: ## the pages of the library
	cargo doc --workspace --no-deps

site: ## the site of the pages in docs/, into target/site; the notebook is run and links are checked
	docs/build

wheel: ## the Python package, into target/wheels
	maturin build --release --manifest-path python/Cargo.toml

study: ## the paper's tables and figures, beside the paper's numbers: docs/study.md
	python3 study/sklearn_times.py $(from)
	cargo run --release -p study -- paper $(from) --results study/results/paper.jsonl study/results/sklearn.jsonl

study-quick: ## a look: ten splits of the small data sets, into target/study
	cargo run --release -p study -- paper --quick $(from)
