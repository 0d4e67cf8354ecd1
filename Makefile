SHELL := /bin/bash
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
OUT := _output
LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GO_BUILD := CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)"
ARCHES := amd64 arm64 arm ppc64le s390x
export GOARM := 7
export SIGN_KEY
# Conformance tests that run at the same time.
PROCESSES ?= 8
PREFIX ?= /usr/local
# The tests in files that are built with the tag.
LONG = ^($(shell grep -ho '^func Test[A-Za-z]*' $$(grep -l '^//go:build e2e && long' test/e2e/*_test.go) | cut -c6- | paste -sd'|'))$$

.PHONY: help build up down test unit e2e long conformance check fix docs flags bench bench-cluster bench-offline bench-scale arches dist install uninstall clean

help: ## this list
	@sed -n 's/^\([-a-z0-9]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15

build: ## the program, into _output/
	$(GO_BUILD) -o $(OUT)/kube-bootstrap ./cmd/kube-bootstrap

up: ## a cluster of two test hosts on this machine; installs what is missing
	@scripts/install-tools.sh
	@scripts/start-docker.sh
	@echo "building the program" >&2
	@scripts/logged.sh $(OUT)/build.log $(MAKE) build
	$(OUT)/kube-bootstrap cluster up

down: build ## remove the cluster that up made
	$(OUT)/kube-bootstrap cluster clean --yes

test: check unit e2e ## everything: check, tests, a real cluster on test hosts

unit: ## tests that need only this machine and its Docker, with the race detector
	scripts/install-tools.sh test
	scripts/start-docker.sh
	CGO_ENABLED=1 go test -race -timeout 30m ./...

e2e: build ## a real cluster on test hosts
	scripts/install-tools.sh test
	scripts/start-docker.sh
	go test -tags e2e -v -timeout 75m -count 1 ./test/e2e

long: build ## what takes too long for test: the contract of each step, faults, kills, restarts, renewals, snapshots, several clusters, a checkout
	scripts/install-tools.sh test
	scripts/start-docker.sh
	go test -tags 'e2e long' -run '$(LONG)' -v -timeout 5h -count 1 ./test/e2e

conformance: build ## Kubernetes' conformance tests, all of them, on a cluster of two nodes; results in _output/conformance/
	scripts/install-tools.sh
	scripts/start-docker.sh
	$(OUT)/kube-bootstrap cluster up --name conformance --no-dedicated
	$(OUT)/kube-bootstrap cluster e2e --name conformance --processes $(PROCESSES) --report-dir $(OUT)/conformance/parallel
	$(OUT)/kube-bootstrap cluster e2e-serial --name conformance --report-dir $(OUT)/conformance/serial
	$(OUT)/kube-bootstrap cluster clean --yes --name conformance

check: ## what must hold of the source: form, lint, architecture, docs
	@test -z "$$(gofmt -l cmd pkg test)" || { gofmt -l cmd pkg test; echo "not formatted: run make fix"; exit 1; }
	go vet -tags 'e2e long bench arches hosttest' ./...
	$(LINT) run
	go test -run 'TestDocsAreUpToDate|TestTheTree|TestThePicture|TestExitCodes|TestTheTable' ./cmd/kube-bootstrap ./test/architecture ./test/problems

fix: docs ## put right what check finds, where a program can
	gofmt -w cmd pkg test
	$(LINT) run --fix

install: build ## the program, man pages and completions, below $(DESTDIR)$(PREFIX)
	install -D -m 755 $(OUT)/kube-bootstrap $(DESTDIR)$(PREFIX)/bin/kube-bootstrap
	$(OUT)/kube-bootstrap genman $(DESTDIR)$(PREFIX)/share

uninstall: ## what install has written
	rm -f $(DESTDIR)$(PREFIX)/bin/kube-bootstrap $(DESTDIR)$(PREFIX)/share/man/man1/kube-bootstrap.1 $(DESTDIR)$(PREFIX)/share/man/man1/kube-bootstrap-*.1
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/kube-bootstrap $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_kube-bootstrap
	rm -f $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/kube-bootstrap.fish

docs: | $(OUT) ## the pages of docs/ that are made from the program
	go run ./test/problems pkg cmd > $(OUT)/problems.json && mv $(OUT)/problems.json cmd/kube-bootstrap/manual/problems.json
	go run ./cmd/kube-bootstrap gendocs docs

flags: ## the lists of the components' flags in pkg/catalog/flags, from the programs that builds have left on this machine
	go run ./test/flags $${XDG_CACHE_HOME:-$$HOME/.cache}/kube-bootstrap/parts pkg/catalog/flags

bench: build ## medians of five fresh runs on test hosts, beside kubeadm's
	scripts/install-tools.sh
	scripts/start-docker.sh
	go test -tags 'e2e bench' -run 'TestBench$$' -v -count 1 -timeout 30m ./test/e2e

bench-cluster: build ## how long clusters of 1, 2 and 4 workers take to make and to come back
	scripts/install-tools.sh
	scripts/start-docker.sh
	go test -tags 'e2e bench' -run 'TestBenchCluster$$' -v -count 1 -timeout 40m ./test/e2e

bench-offline: build ## a bundle beside docker save, gzip and docker load: sizes, times, memory
	scripts/install-tools.sh
	scripts/start-docker.sh
	go test -tags 'e2e bench' -run 'TestBenchOffline$$' -v -count 1 -timeout 30m ./test/e2e

bench-scale: build ## a cluster beside 500 and 1,000 hosts that do not exist: times, memory, requests
	scripts/install-tools.sh
	scripts/start-docker.sh
	go test -tags 'e2e bench' -run 'TestBenchScale$$' -v -count 1 -timeout 60m ./test/e2e

arches: build ## a bundle of four architectures, and every program in it run; takes an hour where nothing is cached
	scripts/install-tools.sh test
	scripts/start-docker.sh
	go test -tags 'e2e arches' -run TestArches -v -count 1 -timeout 5h ./test/e2e

dist: ## programs, packages (tar.gz, deb, rpm, apk), SBOMs and an OCI image for all architectures, checksums, signed with SIGN_KEY, into _output/dist/; each program is run
	scripts/install-tools.sh test
	scripts/start-docker.sh
	rm -rf $(OUT)/dist
	for arch in $(ARCHES); do GOARCH=$$arch $(GO_BUILD) -o $(OUT)/dist/kube-bootstrap-linux-$$arch ./cmd/kube-bootstrap || exit 1; done
	scripts/make-packages.sh $(OUT)/dist $(VERSION) $(ARCHES)
	scripts/check-dist.sh $(OUT)/dist

$(OUT):
	mkdir -p $(OUT)

clean: ## what was built here
	rm -rf $(OUT)
