SHELL := /bin/bash
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
OUT := _output
LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GO_BUILD := CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)"
ARCHES := amd64 arm64 arm ppc64le s390x
MAC_ARCHES := amd64 arm64
export GOARM := 7
export SIGN_KEY
# Conformance tests that run at the same time.
PROCESSES ?= 8
PREFIX ?= /usr/local
# Of plain: -race finds data races, as unit does. It needs a C compiler and takes longer.
RACE ?=

.PHONY: help build up down quick test source plain unit e2e long conformance check fix docs flags
.PHONY: bench bench-cluster bench-offline bench-scale arches dist install uninstall clean

help: ## list the targets
	@sed -n 's/^\([-a-z0-9]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15

build: ## build the program into _output/
	$(GO_BUILD) -o $(OUT)/kube-bootstrap ./cmd/kube-bootstrap

up: ## create a cluster of two test hosts on this machine; installs missing tools
	@scripts/install-tools.sh
	@scripts/start-docker.sh
	@echo "building the program" >&2
	@scripts/logged.sh $(OUT)/build.log $(MAKE) build
	$(OUT)/kube-bootstrap cluster up

down: build ## remove the cluster that up created
	$(OUT)/kube-bootstrap cluster clean --yes

quick: source plain ## run source and plain, in minutes

test: source unit e2e ## run source, unit and e2e

plain: ## run the unit tests that need neither root nor Docker, with architecture and docs
	go test $(RACE) ./...

unit: ## run all unit tests with the race detector; those in *_root_test.go need root or Docker
	scripts/install-tools.sh test
	scripts/start-docker.sh
	CGO_ENABLED=1 go test -race -tags root -timeout 30m ./...

e2e: build ## run the tests that create clusters on test hosts
	scripts/install-tools.sh test
	scripts/start-docker.sh
	go test -tags e2e -v -timeout 75m -count 1 ./test/e2e

long: build ## run the tests that take too long for test: contract of each step, faults, kills, restarts, renewals, snapshots, several clusters, a checkout, machines with a kernel of their own
	scripts/install-tools.sh test
	scripts/start-docker.sh
	go test -tags e2e -v -timeout 5h -count 1 ./test/long

conformance: build ## run all conformance tests of Kubernetes on a cluster of two nodes; results in _output/conformance/
	scripts/install-tools.sh
	scripts/start-docker.sh
	$(OUT)/kube-bootstrap cluster up --name conformance --no-dedicated
	$(OUT)/kube-bootstrap cluster e2e --name conformance --processes $(PROCESSES) --report-dir $(OUT)/conformance/parallel
	$(OUT)/kube-bootstrap cluster e2e-serial --name conformance --report-dir $(OUT)/conformance/serial
	$(OUT)/kube-bootstrap cluster clean --yes --name conformance

check: source ## check the source: run source, and the tests of architecture and docs
	go test -run 'TestDocsAreUpToDate|TestTheTree|TestThePicture|TestExitCodes|TestTheTable' ./cmd/kube-bootstrap ./test/architecture ./test/problems

source: ## check format, lint and known vulnerabilities
	@test -z "$$(gofmt -l cmd pkg test)" || { gofmt -l cmd pkg test; echo "not formatted: run make fix"; exit 1; }
	$(LINT) run
	scripts/vulnerabilities.sh

fix: docs ## fix automatically what check reports
	gofmt -w cmd pkg test
	$(LINT) run --fix

install: build ## install the program, man pages and completions below $(DESTDIR)$(PREFIX)
	install -D -m 755 $(OUT)/kube-bootstrap $(DESTDIR)$(PREFIX)/bin/kube-bootstrap
	$(OUT)/kube-bootstrap genman $(DESTDIR)$(PREFIX)/share

uninstall: ## remove the files that install wrote
	rm -f $(DESTDIR)$(PREFIX)/bin/kube-bootstrap $(DESTDIR)$(PREFIX)/share/man/man1/kube-bootstrap.1 $(DESTDIR)$(PREFIX)/share/man/man1/kube-bootstrap-*.1
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/kube-bootstrap $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_kube-bootstrap
	rm -f $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/kube-bootstrap.fish

docs: | $(OUT) ## generate the pages of docs/ that come from the program
	go run ./test/problems pkg cmd > $(OUT)/problems.json && mv $(OUT)/problems.json cmd/kube-bootstrap/manual/problems.json
	go run ./cmd/kube-bootstrap gendocs docs

flags: ## generate the lists of the components' flags in pkg/catalog/flags from the programs that were built on this machine
	go run ./test/flags $${XDG_CACHE_HOME:-$$HOME/.cache}/kube-bootstrap/parts pkg/catalog/flags

bench: build ## measure five new clusters beside kubeadm's on the same hosts and, with EARLIER=FILE, beside those of an earlier program
	scripts/install-tools.sh
	scripts/start-docker.sh
	go test -tags e2e -run 'TestBench$$' -v -count 1 -timeout 45m ./test/bench

bench-cluster: build ## measure the creation and the return of clusters of 1, 2 and 4 workers
	scripts/install-tools.sh
	scripts/start-docker.sh
	go test -tags e2e -run 'TestBenchCluster$$' -v -count 1 -timeout 40m ./test/bench

bench-offline: build ## measure bundles beside docker save, gzip and docker load: sizes, times, memory
	scripts/install-tools.sh
	scripts/start-docker.sh
	go test -tags e2e -run 'TestBenchOffline$$' -v -count 1 -timeout 30m ./test/bench

bench-scale: build ## measure a cluster beside 500 and 1,000 simulated hosts: times, memory, requests
	scripts/install-tools.sh
	scripts/start-docker.sh
	go test -tags e2e -run 'TestBenchScale$$' -v -count 1 -timeout 60m ./test/bench

arches: build ## build a bundle of four architectures and run every program in it; takes an hour with empty caches
	scripts/install-tools.sh test
	scripts/start-docker.sh
	go test -tags e2e -v -count 1 -timeout 5h ./test/arches

dist: ## build programs, packages (tar.gz, deb, rpm, apk), SBOMs and an OCI image for all architectures into _output/dist/, and programs for macOS, with checksums signed with SIGN_KEY; runs each program
	scripts/install-tools.sh test
	scripts/start-docker.sh
	rm -rf $(OUT)/dist
	for arch in $(ARCHES); do GOARCH=$$arch $(GO_BUILD) -o $(OUT)/dist/kube-bootstrap-linux-$$arch ./cmd/kube-bootstrap || exit 1; done
	for arch in $(MAC_ARCHES); do GOOS=darwin GOARCH=$$arch $(GO_BUILD) -o $(OUT)/dist/kube-bootstrap-darwin-$$arch ./cmd/kube-bootstrap || exit 1; done
	scripts/make-packages.sh $(OUT)/dist $(VERSION) $(ARCHES)
	scripts/check-dist.sh $(OUT)/dist

$(OUT):
	mkdir -p $(OUT)

clean: ## remove _output/
	rm -rf $(OUT)
