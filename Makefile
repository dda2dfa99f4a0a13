# What one does with a checkout. Each target sets up first what it needs.

SHELL := /bin/bash
BASE ?= python3
PYTHON := .venv/bin/python
LOCAL := $(PYTHON) -m deploy.local

# Of another project, in the shell of whoever runs this: they would lead Python and Django astray.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV DJANGO_SETTINGS_MODULE

.PHONY: help setup checks demo up down status test test-stage test-long starts faults monitoring lint docs reference screenshots matrix schema bench image chart release delivery compat

help:
	@echo "make demo         everything in the foreground, Ctrl-C stops it; ONCE=1: a scripted tour, then stop"
	@echo "                  FLEET=\"l4-mps h200=2\": with more kinds of GPU node; docs/contribute/fleet.md"
	@echo "                  KUBERNETES=1.37: on another version of Kubernetes, 1.35 or 1.37"
	@echo "                  HISTORY=30d: with a simulated past of 30 days, so that costs have something to show"
	@echo "make up           the same in the background; also: make status, make down"
	@echo "make test         lint, types, import contracts and tests; make lint: all but the tests"
	@echo "make test-stage   tests of the simulated hardware and of the supervisor"
	@echo "make test-long    before a release: random tests in full size, generated clients of five languages, a hostile member for 10 minutes, 50 kills in 20 minutes"
	@echo "make starts       starts fresh clones as new users do, and prints a table; PAUSE=300: every process stopped so long"
	@echo "make faults       of make test: kills, outages, lost messages, a restored database or etcd and a full one, with 50 requests in flight"
	@echo "make monitoring   alert rules by promtool, and each query of the dashboards on a Prometheus that scrapes the portal; builds both once, in four minutes"
	@echo "make matrix       asks every address as every role, and writes docs/evidence/access.md"
	@echo "make schema       writes tests/api/schema.json, the REST schema without words, whose difference is what clients will notice"
	@echo "make docs         the docs as pages, in docs/build/html; the portal serves them at /docs"
	@echo "make reference    writes the pages of the docs that follow from the code: REST, commands, reasons, policies, settings, phases"
	@echo "make screenshots  takes the pictures of the docs again, with Chromium, of a demo with a simulated past"
	@echo "make image        the image of the portal, in build/image, with buildah; BASE=debian: on a base image made here"
	@echo "make chart        judges the Helm chart with lint, kubeconform and kube-score, and packs it into build/chart"
	@echo "make release      wheel, image, chart, SBOM and checksums of a commit, in build/release; twice: are they the same?"
	@echo "make delivery     installs chart and image by Helm on a control plane of its own, plays the tour, upgrades, uninstalls; WRITE=1"
	@echo "make compat       the tour and the tests that depend on the cluster, on one version of Kubernetes: VERSION=1.35; writes docs/operate/versions.md"
	@echo "make bench        the portal's speed beside a bare client's; COSTS=1: costs over a year of 10 million rows"

setup: .venv/ready

# Before the packages: what a start needs of this machine.
checks:
	@$(or $(wildcard $(PYTHON)),$(BASE)) -m deploy.local.checks

# With uv when there is one; else with the pip of a fresh environment. Both check the hashes of the lock.
.venv/ready: requirements.lock
	@$(BASE) -c 'import deploy.local'
	@if command -v uv > /dev/null; then \
		{ test -x $(PYTHON) || uv venv --quiet --python $(BASE) .venv; } \
		&& uv pip install --quiet --python $(PYTHON) --require-hashes -r requirements.lock \
		&& uv pip install --quiet --python $(PYTHON) --no-deps --editable .; \
	else \
		$(BASE) -m venv --clear .venv \
		&& $(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock \
		&& $(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --editable .; \
	fi
	@touch $@

# Kinds of node that are else off, by name: make demo FLEET="l4-mps h200=2". docs/contribute/fleet.md tells them.
export FLEET

# Days of a simulated past, 1d to 90d: make demo HISTORY=30d, make up HISTORY=30d.
export HISTORY

# The version of Kubernetes of the local control plane: make up KUBERNETES=1.37. docs/operate/versions.md
export KUBERNETES

demo: checks setup docs
	$(LOCAL) $(if $(ONCE),tour,run)

up: checks setup docs
	$(LOCAL) up

down status: setup
	$(LOCAL) $@

# Fails where a link within the docs leads nowhere; other sites are not asked.
docs: setup
	.venv/bin/sphinx-build --fail-on-warning --keep-going --nitpicky --quiet --doctree-dir docs/build/doctrees docs docs/build/html

lint: setup docs
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	$(PYTHON) -m tests.services $(PYTHON) manage.py check --fail-level WARNING
	$(PYTHON) -m tests.services $(PYTHON) manage.py makemigrations --check --dry-run

test: checks setup
	$(PYTHON) -m tests.minutes --part lint $(MAKE) lint
	$(PYTHON) -m tests.stack
	$(PYTHON) -m tests.minutes

test-stage: setup
	$(PYTHON) -m tests.stack tests/stage --part "hardware and supervisor"
	$(PYTHON) -m tests.minutes

test-long: setup
	$(PYTHON) -m tests.stack --long
	$(PYTHON) -m tests.minutes --long

starts: setup
	$(PYTHON) -m tests.starts $(if $(PAUSE),--pause $(PAUSE)) $(addprefix --python ,python3.12 python3.13)

reference: setup
	$(PYTHON) -m docs.generate --write

screenshots: setup
	WRITE_SCREENSHOTS=1 $(PYTHON) -m pytest tests/browser/test_screenshots.py -q

matrix: setup
	WRITE_MATRIX=1 $(PYTHON) -m pytest tests/api/test_matrix.py -q

schema: setup
	WRITE_SCHEMA=1 $(PYTHON) -m pytest tests/api/test_schema_as_before.py -q

compat: setup
	$(PYTHON) -m tests.compat $(or $(VERSION),$(error which version of Kubernetes? make compat VERSION=1.35))

faults: setup
	$(PYTHON) -m tests.stack tests/faults

monitoring: setup
	$(PYTHON) -m tests.stack tests/monitoring

bench: setup
	$(PYTHON) -m bench $(if $(COSTS),--only rollups --rows 10000000)

image:
	deploy/image.sh

chart: setup
	$(PYTHON) -m deploy.delivery.chart

release: setup
	deploy/release.sh

# From what make image and make chart have left in build; as root, with runc.
delivery: setup
	@command -v runc > /dev/null || { echo "make delivery needs runc, and root: apt-get install runc" >&2; exit 1; }
	$(PYTHON) -m deploy.delivery $(if $(WRITE),--write)
