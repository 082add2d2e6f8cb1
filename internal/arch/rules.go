package arch

import (
	"slices"
	"strings"
)

// Module is the path of the main module.
const Module = "kerf.sh/kerf"

// MaxLines is the length from which a file is too long.
const MaxLines = 450

// class is what a package is for; it decides what the package may import.
type class string

const (
	core      class = "core"
	adapter   class = "adapter"
	middle    class = "middle"
	wiring    class = "wiring"
	checking  class = "checking"
	functions class = "functions"
	outside   class = "" // scripts, infra: no rule but those of their targets
)

// packages classes the packages directly under internal. One that is not here is a
// violation of its own: whoever adds a package says what it is for.
var packages = map[string]class{
	"snapshot":     core,
	"requirements": core,
	"catalog":      core,
	"scheduling":   core,
	"packing":      core,
	"provision":    core,
	"disruption":   core,
	"lifecycle":    core,
	"interruption": core,
	"plan":         core,
	"doctor":       core,
	"idle":         core,

	"kube":      adapter,
	"cloud":     adapter,
	"ledger":    adapter,
	"queue":     adapter,
	"telemetry": adapter,
	"notice":    adapter,
	"config":    adapter,

	"execute": middle,
	"handler": middle,

	"app": wiring,

	"sim":       checking,
	"workload":  checking,
	"worldtest": checking,
	"oracle":    checking,
	"rapidtest": checking,
	"arch":      checking,
}

// pureParts are parts of adapters that know what is asked of the outside and what its
// answers mean, and ask nothing themselves: the same input gives the same bytes, and they
// build without the SDK.
var pureParts = []string{
	"internal/cloud/launch", "internal/cloud/nodeclass", "internal/cloud/userdata",
	"internal/kube/api", "internal/telemetry/report",
}

// words are the parts of adapters that say what is asked and what answers mean: what
// applies a plan may know them, because they bring no client along.
var words = append(slices.Clone(pureParts), "internal/cloud/awserr")

// fakes stand in for the outside in tests, below the adapter whose calls they answer.
var fakes = []string{"internal/cloud/ec2fake"}

// heavy are libraries that one package may use: what they are for is not worth their weight
// anywhere else.
var heavy = map[string]string{
	"k8s.io/apiextensions-apiserver": "internal/kube/schema",
	"k8s.io/apiserver":               "internal/kube/schema",
	"github.com/google/cel-go":       "internal/kube/schema",
}

// onlyFor are packages that one other may import: through them heavy libraries would come in.
var onlyFor = map[string]string{
	"internal/kube/schema":  "internal/app/validate",
	"internal/app/validate": "functions/plan",
}

// deciding are the core packages that adapters do not see: an adapter brings and
// takes data, it has no say in what is decided.
var deciding = []string{"scheduling", "packing", "provision", "disruption"}

// environment are the packages that may read environment variables.
var environment = []string{"config", "app"}

// banned are the standard packages that a core package may not import: they do I/O,
// or make the same input give another answer.
var banned = map[string]string{
	"net":          "the core does no I/O",
	"os":           "the core does no I/O",
	"log":          "the core does not log: it returns verdicts",
	"syscall":      "the core does no I/O",
	"plugin":       "the core does no I/O",
	"database/sql": "the core does no I/O",
	"math/rand":    "the core has no randomness: order comes from Snapshot.Seed",
	"crypto/rand":  "the core has no randomness: order comes from Snapshot.Seed",
	"context":      "the core is bounded by its input, not by a context",
	"unsafe":       "the core does not need it",
	"testing":      "that is for tests",
}

// clock are the names of package time that read or wait for the clock.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// ban says why a core package may not import a standard package, "" when it may.
// A package below a banned one (net/http, log/slog) is banned with it.
func ban(path string) string {
	for p := path; p != "."; {
		if why, ok := banned[p]; ok {
			return why
		}
		i := strings.LastIndexByte(p, '/')
		if i < 0 {
			return ""
		}
		p = p[:i]
	}
	return ""
}

// standard reports whether an import path is of the standard library: its first
// element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// internalName is the name of the package directly under internal that an import
// path belongs to ("cloud" for .../internal/cloud/fleet), "" for other paths.
func internalName(path string) string {
	rest, ok := strings.CutPrefix(path, Module+"/internal/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// importRule says why a package of class from, named name, may not import path; ""
// when it may. Test files are exempt from all but the last rule.
func importRule(from class, name, path string, test bool) string {
	if from != outside && from != functions {
		for _, top := range []string{"functions", "infra", "scripts"} {
			if path == Module+"/"+top || strings.HasPrefix(path, Module+"/"+top+"/") {
				return "nothing in internal imports " + top
			}
		}
	}
	if test {
		return ""
	}
	to := internalName(path)
	if packages[to] == checking && from != checking && from != outside {
		return "internal/" + to + " is for tests"
	}
	switch from {
	case core:
		return coreImport(path, to)
	case adapter:
		return adapterImport(name, to)
	case functions:
		if to != "" && to != "app" || to == "" && !standard(path) && !lambda(path) {
			return "a function imports internal/app and the Lambda library only"
		}
	case middle:
		if packages[to] == adapter && slices.Contains(words, strings.TrimPrefix(path, Module+"/")) {
			return ""
		}
		if packages[to] == adapter || packages[to] == wiring {
			return "what applies a plan declares an interface for what an adapter does; internal/app joins them"
		}
	}
	return ""
}

// partRule says why a file of a part of an adapter may not import path; "" when it may.
func partRule(from class, dir, path string, test bool) string {
	if slices.Contains(pureParts, dir) && !test && strings.HasPrefix(path, "github.com/aws/aws-sdk-go-v2") {
		return dir + " does no call: it is pure, and builds without the SDK"
	}
	for library, user := range heavy {
		if (path == library || strings.HasPrefix(path, library+"/")) && dir != user {
			return library + " is for " + user + " alone: it is heavy"
		}
	}
	if to, ok := strings.CutPrefix(path, Module+"/"); ok && onlyFor[to] != "" && onlyFor[to] != dir && !test {
		return to + " is for " + onlyFor[to] + " alone: it brings heavy libraries along"
	}
	for _, f := range fakes {
		if path == Module+"/"+f && dir != f && from != checking && !test {
			return f + " is for tests"
		}
	}
	return ""
}

func coreImport(path, to string) string {
	switch {
	case standard(path):
		return ban(path)
	case packages[to] == core:
		return ""
	default:
		return "the core imports the standard library and the core only"
	}
}

func adapterImport(name, to string) string {
	switch {
	case slices.Contains(deciding, to):
		return "an adapter does not see what decides"
	case packages[to] == adapter && to != name:
		return "adapters do not import each other"
	case packages[to] == middle || packages[to] == wiring:
		return "an adapter does not know who uses it"
	}
	return ""
}

func lambda(path string) bool {
	const library = "github.com/aws/aws-lambda-go"
	return path == library || strings.HasPrefix(path, library+"/")
}
