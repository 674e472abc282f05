# Every target does all of its own set-up: a virtual environment with pinned versions, and the GL libraries.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= out

PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations 40

.PHONY: demo test test-all check clean

demo: $(STAMP) ## train a small policy, evaluate it, record a video
	@rm -rf $(OUT)/seek && mkdir -p $(OUT)
	@$(BIN)/iap train seek --out $(OUT)/seek
	@$(BIN)/iap eval $(OUT)/seek --episodes 100
	@$(BIN)/iap watch $(OUT)/seek --out $(OUT)/seek.mp4

test: $(STAMP) ## run the tests that are not marked as slow
	@$(PYTEST) -m "not slow"

test-all: $(STAMP) ## run all tests
	@$(PYTEST)

check: $(STAMP) ## lint, types, import rules
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/basedpyright && PYTHONPATH=src $(BIN)/lint-imports

$(STAMP): pyproject.toml constraints.txt tools/install_gl.sh tools/install_export_tools.sh
	@sh tools/install_gl.sh
	@sh tools/install_export_tools.sh
	@echo "installing into $(VENV) (two to three minutes the first time)"
	@python3 -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "torch==2.13.0" --editable ".[all,dev]"
	@touch $@

clean: ## delete the environment and the outputs
	rm -rf $(VENV) $(OUT)
