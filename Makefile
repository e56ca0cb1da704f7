# `make help` lists the targets. Nothing but Go, git and make has to be there; what else a target needs
# (golangci-lint, pinned in tools/go.mod) it builds into bin/.

GO    ?= go
LINT  := bin/golangci-lint
CROSS := darwin/arm64,windows/amd64
CC    := $(firstword $(shell $(GO) env CC))
# SQLite itself is C made Go by a translator: no goroutine of its own, and several times slower when each of its accesses is watched.
# All that is Go by birth is watched. Of a package that makes instances of others' generic code (the driver, libc) this must not be
# said: the linker keeps one of them for all, and what is not watched there would be taken for races elsewhere.
UNWATCHED := -gcflags=modernc.org/sqlite/lib=-race=false
# Packages that start no goroutine (guard_test.go sees to it): there is no race to detect in their tests.
PURE := internal/schedule internal/filter internal/ical internal/job internal/engine
# Tests that look for no race, and the packages they are in: they are run without the race detector. (C79Lists is with it, too, on a
# shorter list.) unwatched_test.go sees to it that none is left out.
ALONE := Mutants|ExamOfRows|KnownJobsAreBounded|C79Lists
ALONE_IN := internal/store/sqlite internal/store/postgres internal/api
# Under another name than its own, for else `make -n race` would run the recipe.
AGAIN := $(MAKE)

.DEFAULT_GOAL := help
.PHONY: help build test quick format vet lint postgres race plain alone drill replay cross fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/takt
	$(GO) build -trimpath -o bin/takt ./cmd/takt

test: format cross lint race ## format, other systems, linters (vet among them), all tests (with -race where there are goroutines; the virtual clusters with and without it); not the drills

quick: ## all tests without -race
	$(GO) test ./...

format: ## find Go files that gofmt would change
	@files=$$(git ls-files -co --exclude-standard '*.go' | while read -r f; do [ ! -e "$$f" ] || echo "$$f"; done); \
	bad=$$(gofmt -l $$files) || exit 1; \
	if [ -n "$$bad" ]; then echo "gofmt -w these files:"; echo "$$bad"; exit 1; fi
	@echo "format: ok"

# All analysers of go vet are among those of govet in .golangci.yml, so `make test` does without.
vet: ## go vet, which make lint does, too
	$(GO) vet ./...

$(LINT): tools/go.mod tools/go.sum
	@echo "building golangci-lint once (a minute or two)"
	$(GO) build -modfile=tools/go.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: $(LINT) ## golangci-lint by .golangci.yml, every exception with a reason
	$(LINT) run --allow-parallel-runners ./...

postgres: ## install the binaries of PostgreSQL for the tests, where they are missing; no server of the system is started
	@set -- /usr/lib/postgresql/*/bin/initdb; \
	if command -v initdb >/dev/null || [ -x "$$1" ] || [ -n "$$TAKT_TEST_PG" ]; then exit 0; fi; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		mkdir -p /etc/postgresql-common/createcluster.d && \
		echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/takt.conf && \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends postgresql && exit 0; \
	fi; \
	echo "postgres: the tests need PostgreSQL 14 or later (initdb in PATH or /usr/lib/postgresql), and it cannot be installed here:"; \
	echo "postgres: install it, or name a server whose user may create databases in TAKT_TEST_PG"; exit 1

# Virtual clusters are played twice: whole without the race detector, which shuffles goroutines and takes five times as long; and some of
# them with it.
race: postgres ## all tests, with the race detector where there are goroutines; PostgreSQL included, vet not, which `make lint` does
	@if ! command -v $(CC) >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		apt-get update -q && apt-get install -qy gcc libc6-dev || true; \
	fi; \
	if command -v $(CC) >/dev/null; then race="-race $(UNWATCHED)"; else \
		echo "race: the race detector needs a C compiler ($(CC)), there is none: tests run WITHOUT it"; fi; \
	all=$$($(GO) list ./...) || exit 1; \
	watched=$$(echo "$$all" | grep -v $(PURE:%=-e '/%$$')); failed=0; \
	$(AGAIN) --no-print-directory -k -j 2 plain alone || failed=1; \
	echo "$(GO) test $$race -timeout 40m -vet=off # all others"; \
	TAKT_TEST_PG_REQUIRED=1 $(GO) test $$race -timeout 40m -vet=off $$watched || failed=1; \
	exit $$failed

# The two run side by side: a replay keeps one processor for minutes.
plain:
	$(GO) test -timeout 40m -vet=off $(PURE:%=./%) ./internal/drill

alone:
	TAKT_TEST_PG_REQUIRED=1 $(GO) test -timeout 40m -vet=off -run '^Test($(ALONE))$$' $(ALONE_IN:%=./%)

drill: postgres ## servers, databases and networks that fail, on real processes and PostgreSQL: a quarter of an hour
	TAKT_TEST_PG_REQUIRED=1 TAKT_DRILL=$${TAKT_DRILL:-20s} $(GO) test -v -count 1 -timeout 60m ./internal/drill/pg

replay: ## a seed of a virtual cluster five times, and one of three servers, without the race detector, which shuffles goroutines
	$(GO) test -count 1 -vet=off -run TestReplay ./internal/drill

cross: ## check the types of all packages and tests as darwin and windows have them
	$(GO) test -count 1 -vet=off -run 'TestSystems$$' -systems $(CROSS) .

fuzz: ## fuzz the parsers of cron expressions and filters for a minute each
	$(GO) test ./internal/schedule -run '^$$' -fuzz FuzzParse -fuzztime 1m
	$(GO) test ./internal/filter -run '^$$' -fuzz FuzzParse -fuzztime 1m

clean: ## remove what was built here
	rm -rf bin dist
