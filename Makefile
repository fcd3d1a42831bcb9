# Common tasks. `make check` is what a change must pass before review, `make ci` what it must pass to land.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := check

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := bin/golangci-lint-$(GOLANGCI_LINT_VERSION)

# What checks the files in deploy/. Of Kubernetes only the description of its API is taken.
HELM_VERSION := v3.22.0
COMPOSE_GO_VERSION := v2.16.2
KUBERNETES_VERSION := v1.34.2
DEPLOY_TOOLS := bin/helm-$(HELM_VERSION) bin/compose-go-$(COMPOSE_GO_VERSION) bin/kubernetes-$(KUBERNETES_VERSION)

FUZZTIME ?= 30s
BENCHTIME ?= 1s
BENCHES ?= .

# packages_with,PATTERN: the packages that have a test file with a line that matches.
packages_with = $(sort $(addprefix ./,$(dir $(shell grep -rlE --include='*_test.go' '$(1)' cmd internal))))

.PHONY: build check tidy fmt vet lint test race fuzz bench demo demo-offline clients clients-codex image-test dashboard ci clean
.PHONY: deploy-tools deploy-test

build: ## the static binary, as the image has it
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/compactproxy ./cmd/compactproxy

check: tidy fmt vet lint race

tidy: ## fails if go.mod and go.sum are not what the imports ask for
	go mod tidy -diff

fmt: $(GOLANGCI_LINT) ## fails with a diff; `$(GOLANGCI_LINT) fmt` puts it right
	$(GOLANGCI_LINT) fmt --diff

vet:
	go vet ./...

lint: $(GOLANGCI_LINT)
	$(GOLANGCI_LINT) run ./...

# -count=1: the cache of results does not know that some tests build and run the program.
test:
	go test -count=1 -timeout 30m ./...

# Without the tests that only run programs and read what they print.
race:
	go test -race -count=1 -timeout 40m $$(go list ./... | grep -v -e /test/observability -e /test/deploy)

fuzz: ## every fuzz target for FUZZTIME
	@for package in $(call packages_with,^func Fuzz); do \
		targets=$$(go test -list '^Fuzz' $$package | grep '^Fuzz'); \
		for target in $$targets; do \
			echo "fuzz $$package $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

bench: ## ratios to a baseline measured in the same run, since absolute times say little
	go test -run '^$$' -bench '$(BENCHES)' -benchtime $(BENCHTIME) $(call packages_with,^func Benchmark)

demo:
	go run ./cmd/compactproxy demo

demo-offline: build ## the demo where there is no network but loopback; needs root
	unshare --net sh -c 'ip link set lo up && exec bin/compactproxy demo'

clients: ## real clients from npm through the proxy
	cd test/clients && ../../.ci/retry npm ci --ignore-scripts
	COMPACTPROXY_REQUIRE_CLIENTS=1 go test -count=1 -v -skip Codex ./test/clients

clients-codex: ## the same with codex, whose package is large
	cd test/clients/codex && ../../../.ci/retry npm ci --ignore-scripts
	COMPACTPROXY_REQUIRE_CLIENTS=1 go test -count=1 -v -run Codex ./test/clients

image-test: ## builds the Dockerfile without a Docker engine and a registry, and runs the image; needs root
	test/image/run.sh

dashboard: ## writes the Grafana dashboard; its test fails when that was forgotten
	mkdir -p bin
	go run ./deploy/grafana/generate > bin/dashboard.json
	mv bin/dashboard.json deploy/grafana/dashboards/compactproxy.json

deploy-tools: $(DEPLOY_TOOLS)

deploy-test: deploy-tools ## the files in deploy/, without a cluster or an engine; needs systemd-analyze
	TEST_REQUIRE_DEPLOY=1 go test -count=1 ./test/deploy

# Variables of the tests are not named COMPACTPROXY_*: the program would warn of one that it does not know.
# Fuzzing by count: by time, a busy machine makes Go before 1.27 fail with "context deadline exceeded" (go.dev/issue/75804).
ci: export TEST_REQUIRE_REDIS = 1
ci: export TEST_REQUIRE_PROMETHEUS = 1
ci: export TEST_REQUIRE_DEPLOY = 1
ci: deploy-tools check test demo-offline image-test clients clients-codex
	$(MAKE) fuzz FUZZTIME=5000x
	$(MAKE) bench BENCHTIME=1x

clean:
	rm -rf bin

$(GOLANGCI_LINT):
	GOBIN=$(CURDIR)/bin .ci/retry go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv bin/golangci-lint $@

# Without cgo: it compiles less.
bin/helm-$(HELM_VERSION):
	CGO_ENABLED=0 GOBIN=$(CURDIR)/bin .ci/retry go install -ldflags=-s helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	mv bin/helm $@

bin/compose-go-$(COMPOSE_GO_VERSION):
	CGO_ENABLED=0 GOBIN=$(CURDIR)/bin .ci/retry \
		go install -ldflags=-s github.com/compose-spec/compose-go/v2/cmd@$(COMPOSE_GO_VERSION)
	mv bin/cmd $@

bin/kubernetes-$(KUBERNETES_VERSION):
	module=$$(.ci/retry go mod download -json k8s.io/kubernetes@$(KUBERNETES_VERSION) | sed -n 's/^\t"Dir": "\(.*\)",$$/\1/p'); \
	rm -rf $@.new && mkdir -p $@.new && cd "$$module/api/openapi-spec/v3" && \
	cp {api__v1,apis__{apps__v1,autoscaling__v2,networking.k8s.io__v1,policy__v1}}_openapi.json $(CURDIR)/$@.new && \
	cd $(CURDIR) && mv $@.new $@
