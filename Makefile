# One target for each habit. DATA is the folder of the paper's data sets, as `svml data fetch` fills it.
DATA ?= $(or $(SVML_DATA),../shared/data)

.PHONY: demo test bench doc wheel study study-quick

demo: ## data with a known answer, a fit, a comparison, pictures
	cargo run --release -- demo

test: ## all that must pass before a change lands
	.ci/run

bench: ## times of the core and of the rivals, here
	cargo bench -p svml

doc: ## the pages of the library
	cargo doc --workspace --no-deps

wheel: ## the Python package, into target/wheels
	maturin build --release --manifest-path python/Cargo.toml

study: ## the paper's tables and figures, beside the paper's numbers: docs/study.md
	python3 study/sklearn_times.py --data $(DATA)
	cargo run --release -p study -- paper --data $(DATA) --results study/results/paper.jsonl study/results/sklearn.jsonl

study-quick: ## a look: ten splits of the small data sets, into target/study
	cargo run --release -p study -- paper --quick --data $(DATA)
