# Kerf. `make help` lists what there is; `make demo` and `make test` need nothing but Go.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

GO        ?= go
BUILD     := build
ARCH      ?= arm64
FUNCTIONS := $(notdir $(patsubst %/,%,$(wildcard functions/*/)))
# The oldest Go that the main module builds with: the go line of go.mod.
GO_MIN    := $(shell awk '$$1 == "go" { print $$2; exit }' go.mod)

# Tools are built once into a cache outside the tree, each at one version.
TOOLS               ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kerf-tools
STATICCHECK_VERSION := v0.8.2
GOLANGCI_VERSION    := v2.15.0
STATICCHECK         := $(TOOLS)/staticcheck-$(STATICCHECK_VERSION)
GOLANGCI            := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
CDK_CLI             := aws-cdk@2.1148.1
MINISTACK_VERSION   := 1.5.33
CFNLINT_VERSION     := 1.58.0
CFNLINT             := $(TOOLS)/cfn-lint-$(CFNLINT_VERSION)
MINISTACK           := $(TOOLS)/ministack-$(MINISTACK_VERSION)

# Modules of their own (each has a go.mod), because their dependencies are heavy.
NESTED := $(sort $(patsubst %/,%,$(dir $(wildcard infra/go.mod internal/*/go.mod scripts/*/go.mod))))

# The CDK in Go talks to a Node.js process; its remarks about Node.js versions are not ours.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION ?= $(shell node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')

# How many clusters the judge draws, and the seed of the first one.
SEEDS   ?= 200
FROM    ?= 0

CLUSTER ?=
CONTEXT ?=
CDK_CONTEXT = -c cluster='$(CLUSTER)' -c architecture='$(ARCH)' $(CONTEXT)

##@ Try it

.PHONY: help
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z][a-z0-9-]*:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo

.PHONY: demo
demo: $(BUILD)/host/plan ## plan the cluster in events/worlds/demo, then run a simulated day: text here, pages in build/demo
	@GO_PLAN=$(BUILD)/host/plan scripts/demo/run.sh $(BUILD)/demo
	@GO='$(GO)' scripts/demo/day.sh $(BUILD)/demo

.PHONY: plan
plan: $(if $(findstring --context,$(ARGS))$(findstring --kubeconfig,$(ARGS)),,check-f) $(BUILD)/host/plan ## plan your own objects: make plan F=file-or-folder [ARGS="--explain pod/ns/name -o json"], or your cluster: ARGS="--context NAME"
	@$(BUILD)/host/plan $(if $(F),-f '$(F)') $(ARGS)

# The demo's clock goes with the demo's cluster.
.PHONY: what-if
what-if: $(BUILD)/host/plan ## what would differ: make what-if F=file-or-folder [FILE=change.yaml] [REMOVE=node/name] [ARGS=...]; F: the demo cluster
	@if [ -z '$(FILE)$(REMOVE)' ]; then echo "say what would change: make what-if FILE=change.yaml, or REMOVE=node/NAME (README, 'What if')" >&2; exit 2; fi
	@$(BUILD)/host/plan $(if $(F),-f '$(F)',-f events/worlds/demo --cluster harbourlane-prod --now 2026-11-30T09:30:00Z) --diff \
	  $(if $(FILE),--what-if '$(FILE)') $(if $(REMOVE),--remove '$(REMOVE)') $(ARGS)

.PHONY: validate
validate: $(BUILD)/host/plan ## are Karpenter manifests right, offline, of any generation: make validate FILE=file-or-folder [OLD=what-stands-there] [ARGS="--convert" writes today's]
	@if [ -z '$(FILE)' ]; then echo "say what to check: make validate FILE=FILE|DIR|-   (docs/validate.md)" >&2; exit 2; fi
	@$(BUILD)/host/plan --validate -f '$(FILE)' $(if $(OLD),--old '$(OLD)') $(ARGS)

##@ Check it

.PHONY: test
test: check-go ## vet and every test of the main module; needs only Go
	$(GO) vet ./...
	$(GO) test -timeout 30m ./...

.PHONY: test-all
test-all: test test-nested ## the above, and the tests of the nested modules (infra needs Node.js)

.PHONY: test-nested
test-nested: check-go ## the tests of the nested modules alone
	@for m in $(NESTED); do \
	  if find "$$m" -name '*_test.go' | grep -q .; then \
	    if [ "$$m" = infra ]; then $(MAKE) check-node; fi; \
	    if [ "$$m" = internal/realtest ]; then $(MAKE) kube-binaries; fi; \
	    echo "== $$m"; (cd "$$m" && $(GO) vet ./... && $(GO) test ./...); \
	  fi; \
	done

.PHONY: judge
judge: check-go ## kube-scheduler judges the plans of SEEDS=200 drawn clusters; compiles Kubernetes the first time (minutes)
	cd internal/judge && $(GO) test -timeout 30m -v -run 'TestPlansHold|TestRulesBind|TestMutants' . -args -seeds $(SEEDS) -from $(FROM)

.PHONY: judge-free
judge-free: check-go ## the same scheduler with nobody to hold pods to the plan: how many are stranded, what it costs (long)
	cd internal/judge && $(GO) test -timeout 3h -v -run TestSteering . -args -report

# A control plane of Kubernetes, built once into the cache outside the tree. The build shares its compiled
# packages with the judge's tests: same versions, same flags.
KUBE_VERSION := v1.36.3
KUBE_DIR     := $(TOOLS)/kubernetes-$(KUBE_VERSION)
KUBE_PARTS   := $(addprefix $(KUBE_DIR)/,etcd kube-apiserver kube-scheduler kube-controller-manager)
KUBE_FLAG    := -X k8s.io/component-base/version.git
KUBE_LDFLAGS := -s -w $(KUBE_FLAG)Version=$(KUBE_VERSION) $(KUBE_FLAG)Major=1 $(KUBE_FLAG)Minor=36 $(KUBE_FLAG)TreeState=clean

.PHONY: kube-binaries
kube-binaries: $(KUBE_PARTS) ## etcd, kube-apiserver, scheduler and controller-manager for the tests against real ones (ten minutes, once)

$(KUBE_DIR)/etcd: PACKAGE = go.etcd.io/etcd/server/v3
$(KUBE_DIR)/kube-%: PACKAGE = k8s.io/kubernetes/cmd/$(@F)
$(KUBE_PARTS):
	@mkdir -p $(KUBE_DIR); echo "building $(@F) $(KUBE_VERSION)"
	cd internal/realtest && $(GO) build -ldflags "$(KUBE_LDFLAGS)" -o $@.new $(PACKAGE) && mv $@.new $@

.PHONY: test-real
test-real: check-go kube-binaries ## reading and writing a real API server with scheduler and controllers: make test-real [NODES=20 PODS=200]
	cd internal/realtest && KERF_KUBERNETES=$(KUBE_DIR) $(GO) test -count=1 -timeout 20m . -args -nodes $(or $(NODES),20) -pods $(or $(PODS),200)

.PHONY: sim
sim: check-go ## SEEDS=200 drawn worlds in which the handlers run under faults, FROM=0; SEED=n is one of them with all that happens in it
	$(GO) test -count=1 -timeout 24h ./internal/sim -run $(if $(SEED),TestSeeds,'TestSeeds|TestKept') -args $(if $(SEED),-seed $(SEED),-seeds $(SEEDS) -from $(FROM))

.PHONY: e2e
e2e: check-go kube-binaries $(MINISTACK)/bin/ministack ## the built functions on a real control plane and AWS over HTTP (minutes; logs of a failure in build/e2e/logs): make e2e [ARGS="-run TestName"]
	@$(MAKE) build BUILD=$(BUILD)/e2e ARCH=$$($(GO) env GOHOSTARCH)
	cd internal/realtest && $(GO) vet -tags e2e ./e2e && \
	  KERF_KUBERNETES=$(KUBE_DIR) KERF_EMULATOR=$(MINISTACK)/bin/ministack KERF_E2E_BUILD=$(CURDIR)/$(BUILD)/e2e KERF_E2E_LOGS=$(CURDIR)/$(BUILD)/e2e/logs \
	  $(GO) test -tags e2e -count=1 -timeout 60m -v ./e2e $(ARGS)

# The template is what make synth writes for a cluster prod (make test-infra keeps it so); with TEMPLATE it is
# one of yours, with the assets that the CDK put beside it.
.PHONY: local
local: check-go kube-binaries $(MINISTACK)/bin/ministack ## the whole stack on this machine, told as a story (twenty minutes); KEEP=1 leaves it up to play with: make local [KEEP=1 PORT=4566 TEMPLATE=file]
	@$(MAKE) build BUILD=$(BUILD)/local ARCH=$$($(GO) env GOHOSTARCH)
	@cd internal/realtest && $(GO) vet -tags local,keep ./local && \
	  KERF_KUBERNETES=$(KUBE_DIR) KERF_EMULATOR=$(MINISTACK)/bin/ministack KERF_LOCAL_BUILD=$(CURDIR)/$(BUILD)/local KERF_LOCAL_DIR=$(CURDIR)/$(BUILD)/local/state \
	  KERF_LOCAL_TEMPLATE=$(abspath $(or $(TEMPLATE),infra/autoscaler/testdata/template.json)) KERF_LOCAL_PORT=$(or $(PORT),4566) \
	  $(GO) test -tags $(if $(KEEP),'local keep' -timeout 0 -run TestKeep,local -timeout 40m) -count=1 -v ./local

.PHONY: test-infra
test-infra: check-go check-node ## the assertions on the stack's template
	cd infra && $(GO) vet ./... && $(GO) test ./...

.PHONY: lint-stack
lint-stack: $(CFNLINT)/bin/cfn-lint ## cfn-lint on the stack's template, by AWS's own schemas (installed once; needs Python)
	@# W3005: the CDK writes dependencies down that are there anyway.
	$(CFNLINT)/bin/cfn-lint -r us-east-1 eu-west-1 -i W3005 -t $(or $(TEMPLATE),infra/autoscaler/testdata/template.json)

.PHONY: test-ledger
test-ledger: check-go $(MINISTACK)/bin/ministack ## the ledger on DynamoDB's API, over HTTP against an emulator (installed once; needs Python)
	$(GO) vet -tags wire ./internal/ledger
	KERF_EMULATOR=$(MINISTACK)/bin/ministack $(GO) test -count=1 -tags wire -run TestWire ./internal/ledger

.PHONY: test-queue
test-queue: check-go $(MINISTACK)/bin/ministack ## the queues on SQS's API, over HTTP against the same emulator
	$(GO) vet -tags wire ./internal/queue
	KERF_EMULATOR=$(MINISTACK)/bin/ministack $(GO) test -count=1 -tags wire -run TestWireWholeWay ./internal/queue

.PHONY: test-doctor
test-doctor: check-go $(MINISTACK)/bin/ministack ## the doctor on the stack's template, deployed by the same emulator
	$(GO) vet -tags wire ./internal/app/examine
	KERF_EMULATOR=$(MINISTACK)/bin/ministack $(GO) test -count=1 -tags wire -run TestWire ./internal/app/examine

.PHONY: golden
golden: check-go ## rewrite the transcripts and golden files of the tests (read the diff!)
	@grep -lE 'datadriven|"rewrite"' $$(git ls-files '*_test.go') | xargs -n1 dirname | sort -u | \
	  while read -r dir; do (cd "$$dir" && $(GO) test . -rewrite); done

.PHONY: lint
lint: check-go $(STATICCHECK) ## gofmt, go vet, staticcheck and the project's own rules
	@bad=$$(gofmt -l functions infra internal scripts); if [ -n "$$bad" ]; then echo "not formatted (make fmt):"; echo "$$bad"; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(GO) run ./scripts/lint

.PHONY: lint-extra
lint-extra: lint $(GOLANGCI) ## lint, and golangci-lint (takes minutes to build once)
	$(GOLANGCI) run ./...

.PHONY: fmt
fmt: ## format the Go code
	gofmt -w functions infra internal scripts

.PHONY: generate
generate: check-go ## rewrite the pages of docs/ that come from tables in the code; with REGION=name the embedded table of that region from AWS (credentials needed), with FACTS=file DATE=yyyy-mm-dd that of us-east-1
	@if [ -n '$(REGION)' ]; then $(GO) run ./scripts/catalog -live -region '$(REGION)' -table 'internal/catalog/$(REGION).table'; fi
	@if [ -n '$(FACTS)' ]; then $(GO) run ./scripts/catalog -facts '$(FACTS)' -date '$(DATE)' -table internal/catalog/us-east-1.table; fi
	$(GO) run ./scripts/docs

.PHONY: crds
crds: check-go ## take Karpenter's CRDs from its module into what bootstrap carries: make crds [CHECK=1 compares]
	$(GO) run ./scripts/crds $(if $(CHECK),-check)

.PHONY: verify
verify: generate fmt lint ## generate, fmt, lint; fails when that changes a file
	@git diff --exit-code --stat || { echo "verify: the files above changed: commit them" >&2; exit 1; }

##@ Measure it

.PHONY: bench
bench: check-go ## our packer beside Karpenter's scheduler on all workloads (long)
	cd scripts/bench && $(GO) run . $(ARGS)

.PHONY: bench-smoke
bench-smoke: check-go ## the same on a few workloads, under two minutes once compiled
	cd scripts/bench && $(GO) run . -smoke $(ARGS)

##@ Build and deploy

.PHONY: build
build: check-go ## every function to build/<name>/bootstrap (linux, ARCH=arm64|amd64), the same bytes every time
	@for fn in $(FUNCTIONS); do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -buildvcs=false -tags lambda.norpc \
	    -ldflags "-s -w -buildid=" -o $(BUILD)/$$fn/bootstrap ./functions/$$fn; \
	  printf '%s  %s\n' "$$(sha256sum $(BUILD)/$$fn/bootstrap | cut -c1-16)" "$(BUILD)/$$fn/bootstrap ($(ARCH), $$(du -h $(BUILD)/$$fn/bootstrap | cut -f1))"; \
	done

.PHONY: synth
synth: build check-node check-cluster ## the CloudFormation template: make synth CLUSTER=name [CONTEXT='-c key=value'], into build/cdk.out
	@cd infra && $(GO) run . -o ../$(BUILD)/cdk.out $(CDK_CONTEXT)
	@ls $(BUILD)/cdk.out/*.template.json

.PHONY: diff
ifneq ($(FILE)$(REMOVE),)
diff: what-if
else
diff: build check-node check-cluster ## what a deploy would change (AWS credentials needed); with FILE= or REMOVE= as what-if
	npx --yes $(CDK_CLI) diff $(CDK_CONTEXT)
endif

.PHONY: deploy
deploy: build check-node check-cluster ## deploy to an EKS cluster: make deploy CLUSTER=name [CONTEXT='-c key=value'] (AWS credentials and CLI needed)
	@scripts/cdk/check.sh '$(CLUSTER)' "$(CONTEXT)"
	npx --yes $(CDK_CLI) deploy $(CDK_CONTEXT)

.PHONY: destroy
destroy: check-node check-cluster ## remove the stack; nodes, NodePools and the table stay (AWS credentials needed; see uninstall)
	npx --yes $(CDK_CLI) destroy $(CDK_CONTEXT)

.PHONY: uninstall
uninstall: check-cluster ## take Kerf out whole: shows what it would do; make uninstall CLUSTER=name YES=1 [NODES=remove CRDS=remove TABLE=remove]
	@YES='$(YES)' NODES='$(NODES)' CRDS='$(CRDS)' TABLE='$(TABLE)' scripts/uninstall/uninstall.sh '$(CLUSTER)'

.PHONY: doctor
doctor: $(if $(findstring --context,$(ARGS)),,check-cluster) $(BUILD)/host/plan ## why pods get no nodes: make doctor CLUSTER=name [ARGS="--context NAME -o json"]; reads only
	@$(BUILD)/host/plan --doctor $(if $(CLUSTER),--cluster '$(CLUSTER)') $(ARGS)

.PHONY: logs
logs: check-cluster ## what a deployed function said lately: make logs CLUSTER=name [FN=sweep SINCE=15m] (AWS CLI needed)
	@scripts/cdk/logs.sh '$(CLUSTER)' '$(or $(FN),sweep)' '$(or $(SINCE),15m)'

.PHONY: invoke
invoke: ## call a deployed function: make invoke CLUSTER=name [FN=plan] EVENT=events/plan/text.json (AWS CLI needed)
	@scripts/cdk/invoke.sh '$(CLUSTER)' '$(or $(FN),plan)' '$(EVENT)'

##@ Housekeeping

.PHONY: clean
clean: ## remove build output (the tool cache stays)
	rm -rf $(BUILD) cdk.out infra/cdk.out

# Not files of make's: Go itself knows what is up to date.
.PHONY: $(BUILD)/host/plan
$(BUILD)/host/plan: check-go
	@$(GO) build -trimpath -o $@ ./functions/plan

.PHONY: check-go check-node check-cluster check-f
check-f:
	@if [ -z '$(F)' ]; then echo "say what to read: make plan F=FILE|DIR|-   (README, 'Your own cluster')" >&2; exit 2; fi

check-go:
	@command -v $(GO) >/dev/null || { echo "Go is missing: install Go $(GO_MIN) or newer (https://go.dev/dl)" >&2; exit 1; }
	@have=$$($(GO) env GOVERSION | sed 's/^go//; s/[^0-9.].*//'); \
	if [ "$$(printf '%s\n%s\n' '$(GO_MIN)' "$$have" | sort -V | head -n1)" != '$(GO_MIN)' ]; then \
	  echo "Go $$have is too old: $(GO_MIN) or newer is needed (https://go.dev/dl)" >&2; exit 1; fi

check-node:
	@command -v node >/dev/null || { echo "Node.js is missing: the CDK needs it (version 20 or newer). demo, test and build do not." >&2; exit 1; }

check-cluster:
	@if [ -z '$(CLUSTER)' ]; then echo "say which EKS cluster: make $(firstword $(MAKECMDGOALS)) CLUSTER=name" >&2; exit 2; fi

$(STATICCHECK):
	@mkdir -p $(TOOLS)
	@echo "building staticcheck $(STATICCHECK_VERSION) into $(TOOLS)"
	GOBIN=$(TOOLS)/tmp GOFLAGS= CGO_ENABLED=0 $(GO) install -trimpath honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
	@mv $(TOOLS)/tmp/staticcheck $@

# A virtual environment does not move, so one that was cut off is made anew: its program
# comes last.
$(MINISTACK)/bin/ministack:
	@command -v python3 >/dev/null || { echo "python3 is missing: the emulator needs 3.10 or newer, with its venv module" >&2; exit 1; }
	@mkdir -p $(TOOLS)
	@echo "installing ministack $(MINISTACK_VERSION) into $(MINISTACK)"
	@rm -rf $(MINISTACK)
	@python3 -m venv $(MINISTACK)
	@$(MINISTACK)/bin/pip install -q --disable-pip-version-check ministack==$(MINISTACK_VERSION) || { rm -rf $(MINISTACK); exit 1; }
	@test -x $@

$(CFNLINT)/bin/cfn-lint:
	@command -v python3 >/dev/null || { echo "python3 is missing: cfn-lint needs 3.10 or newer, with its venv module" >&2; exit 1; }
	@mkdir -p $(TOOLS)
	@echo "installing cfn-lint $(CFNLINT_VERSION) into $(CFNLINT)"
	@rm -rf $(CFNLINT)
	@python3 -m venv $(CFNLINT)
	@$(CFNLINT)/bin/pip install -q --disable-pip-version-check cfn-lint==$(CFNLINT_VERSION) || { rm -rf $(CFNLINT); exit 1; }
	@test -x $@

$(GOLANGCI):
	@mkdir -p $(TOOLS)
	@echo "building golangci-lint $(GOLANGCI_VERSION) into $(TOOLS): minutes"
	GOBIN=$(TOOLS)/tmp GOFLAGS= CGO_ENABLED=0 $(GO) install -trimpath github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(TOOLS)/tmp/golangci-lint $@
