package worldtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// World is a small cluster that lines describe. Each line becomes a real manifest,
// so that a transcript goes the way of a user's files: through package kube.
//
// A line is a kind, a name and options without blanks (key=value, or a bare flag):
//
//	catalog only=c5.large,m5.8xlarge        leave only these types; volumes=10: attachable
//	     zone-percent=z-a:90,z-b:120        prices of a zone are so many percent
//	type inf-x.xlarge cpu=4 mem=8192 spot=0.050 od=0.2 neuron=1 ...
//	settings reserved-enis=1 min-values=best-effort
//	class small maxpods=50 kube-reserved=cpu:1 root=30Gi
//	pool general weight=10 types=m5.large zones=z-a captype=spot limits=cpu:24
//	     taints=dedicated=build:NoSchedule require=instance-cpu>8&instance-cpu<24
//	pool fixed replicas=3                   a static pool
//	pod web count=3 cpu=1 mem=2Gi init=2/1Gi sidecar=500m/256Mi hostport=8080/TCP
//	     labels=app=web,rev=2 ns=shop owner=ReplicaSet/web-1
//	     selector=arch=arm64 affinity=zone=z-a|z-b&!gpu;zone=z-c prefer=10:zone=z-b
//	     tolerate=dedicated
//	     spread=zone:1:hard:app=web,minDomains=2,affinityPolicy=ignore,taintsPolicy=honor,keys=rev
//	     spread=hostname:1:soft:app=web     ScheduleAnyway
//	     near=zone:app=db,ns=shop|data      required pod affinity
//	     away=hostname:app=web,nsselector=team=x,keys=rev,mismatch=rev   anti-affinity
//	     prefer-near=50:zone:app=db prefer-away=100:hostname:app=web
//	     volume=CLAIM volumes=CLAIM:3 (CLAIM-1 to -3) ephemeral=STORAGECLASS
//	pod old node=n1 labels=app=web deleting  runs on n1, terminating; phase=Succeeded: finished
//	daemonset agent cpu=100m                the options of pod
//	node n1 type=m5.large zone=z-a pool=general taints=... notready cordoned deleting
//	     labels=rack=r1 nolabels=zone
//	claim c1 pool=general type=m5.large zone=z-a captype=spot
//	pdb web selector=app=web max=0          or min=100%
//	pv vol zone=z-a|z-b                     or terms=zone=z-a&rack=r1;zone=z-b (ORed),
//	     labels=failure-domain.beta.kubernetes.io/zone=z-a, driver=..., local, in-tree, deleting
//	pvc data class=gp3                      unbound; volume=vol: bound (binding: not complete);
//	     modes=ReadWriteOncePod phase=Lost deleting
//	storageclass gp3 zones=z-a|z-b          allowedTopologies; binding=Immediate default
//	     provisioner=...
//	csinode n1 limits=ebs.csi.aws.com:25    attach limits of a node
//	attachment a1 node=n1 volume=vol attacher=...
//	pvc data count=3 volume=vol-@ size=5Gi  as with pods: data-1 to data-3; "@" is the number
//	namespace shop labels=team=x
//	limitrange, runtimeclass
//	overlay, buffer, template, workload, nomination   optional features (addFeature)
//	shortage, learned                       what the ledger remembers (addMemory)
//
// Selectors of spread, near and away: "app=web&tier" and so on; "*" selects all, "-" is
// no selector. Their label keys are as written; those of nodes may be short: type, zone,
// zone-id, captype, arch, os, hostname, nodepool, and instance-* for
// karpenter.k8s.aws/instance-*.
type World struct {
	Catalog  *catalog.Catalog
	Settings []string // settings lines' options
	docs     []string // manifests, one document each
	// What follows is in no manifest: the ledger has it.
	nominations []snapshot.Nomination
	shortages   []snapshot.Shortage
	setbacks    []snapshot.Setback
	learned     []sizeLine
	classes     map[string]bool
	pools       map[string]bool
	used        bool // a pool refers to the default class
	drawn       []drawnLine
}

// NewWorld is the empty world of the fixture catalogue.
func NewWorld() *World {
	return &World{Catalog: Fixture(), classes: map[string]bool{}, pools: map[string]bool{}}
}

// Exec adds what the lines describe; "#" begins a comment.
func (w *World) Exec(lines string) error {
	for _, line := range joined(lines) {
		fields := strings.Fields(line)
		l := &opts{kind: fields[0], line: line}
		rest := fields[1:]
		if len(rest) > 0 && !strings.Contains(rest[0], "=") && l.kind != "settings" && l.kind != "catalog" {
			l.name, rest = rest[0], rest[1:]
		}
		for _, f := range rest {
			k, v, _ := strings.Cut(f, "=")
			l.pairs = append(l.pairs, [2]string{k, v})
		}
		if err := w.exec(l); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		if left := l.unused(); left != "" {
			return fmt.Errorf("%s: option %s is not known", line, left)
		}
	}
	return nil
}

// joined drops comments and appends lines that begin with a blank to the one before.
func joined(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if i := strings.Index(line, "#"); i == 0 || (i > 0 && line[i-1] == ' ') {
			line = line[:i]
		}
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, " ") && len(out) > 0:
			out[len(out)-1] += " " + strings.TrimSpace(line)
		default:
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func (w *World) exec(l *opts) error {
	switch l.kind {
	case "catalog":
		if only := l.list("only"); only != nil {
			w.Catalog.Types = slices.DeleteFunc(w.Catalog.Types, func(t catalog.InstanceType) bool {
				return !slices.Contains(only, t.Name)
			})
		}
		if l.has("volumes") {
			n, err := strconv.ParseInt(l.get("volumes"), 10, 64)
			if err != nil {
				return err
			}
			for i := range w.Catalog.Types {
				w.Catalog.Types[i].Volumes = n
			}
		}
		return w.zonePercent(l.list("zone-percent"))
	case "type":
		return w.addType(l)
	case "settings":
		for _, kv := range l.pairs {
			w.Settings = append(w.Settings, kv[0]+"="+kv[1])
		}
		l.useAll()
		return nil
	case "class":
		w.classes[l.name] = true
		return w.add(classManifest(l))
	case "pool":
		w.pools[l.name] = true
		return w.add(w.poolManifest(l))
	case "pod":
		return w.addPods(l)
	case "daemonset":
		return w.add(daemonManifest(l))
	case "node":
		return w.add(w.nodeManifest(l))
	case "claim":
		return w.add(w.claimManifest(l))
	}
	if ok, err := w.addFeature(l); ok || err != nil {
		return err
	}
	if ok, err := w.addMemory(l); ok || err != nil {
		return err
	}
	return l.each(func(l *opts) error {
		m, err := otherManifest(l)
		if err != nil {
			return err
		}
		return w.add(m)
	})
}

// obj is a manifest or a part of one.
type obj = map[string]any

func (w *World) add(m obj) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w.docs = append(w.docs, string(data))
	return nil
}

// AddYAML adds manifests as they are written.
func (w *World) AddYAML(text string) {
	w.docs = append(w.docs, text)
	w.classes["default"] = w.classes["default"] || strings.Contains(text, "kind: EC2NodeClass")
}

// Remove takes away the manifests of one object, "Kind/name".
func (w *World) Remove(ref string) error {
	kind, name, _ := strings.Cut(ref, "/")
	n := len(w.docs)
	w.docs = slices.DeleteFunc(w.docs, func(doc string) bool {
		var m struct {
			Kind     string
			Metadata struct{ Name string }
		}
		return json.Unmarshal([]byte(doc), &m) == nil && strings.EqualFold(m.Kind, kind) && m.Metadata.Name == name
	})
	if len(w.docs) == n {
		return fmt.Errorf("remove %s: no such object", ref)
	}
	return nil
}

// Manifests is the world as one YAML stream. A class named "default" is supplied
// unless a line has described it.
func (w *World) Manifests() string {
	docs := slices.Clone(w.docs)
	if w.used && !w.classes["default"] {
		data, err := json.Marshal(classManifest(&opts{kind: "class", name: "default"}))
		if err != nil {
			panic(err) // maps of strings always marshal
		}
		docs = append(docs, string(data))
	}
	return strings.Join(docs, "\n---\n")
}

// opts are the parts of a line.
type opts struct {
	kind, name, line string
	pairs            [][2]string
	seen             map[string]bool
}

func (l *opts) all(key string) []string {
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[key] = true
	var out []string
	for _, kv := range l.pairs {
		if kv[0] == key {
			out = append(out, kv[1])
		}
	}
	return out
}

func (l *opts) get(key string) string {
	if vs := l.all(key); len(vs) > 0 {
		return vs[len(vs)-1]
	}
	return ""
}

func (l *opts) has(key string) bool { return len(l.all(key)) > 0 }

func (l *opts) or(key, dflt string) string {
	if l.has(key) {
		return l.get(key)
	}
	return dflt
}

// list splits a value at commas; nil when the option is not given.
func (l *opts) list(key string) []string {
	if !l.has(key) {
		return nil
	}
	if l.get(key) == "" {
		return []string{}
	}
	return strings.Split(l.get(key), ",")
}

// pairsOf splits "a:1,b:2" (or with "=") into a map.
func (l *opts) pairsOf(key, sep string) obj {
	out := obj{}
	for _, item := range l.list(key) {
		k, v, _ := strings.Cut(item, sep)
		out[longKey(k)] = v
	}
	return out
}

func (l *opts) useAll() {
	for _, kv := range l.pairs {
		l.all(kv[0])
	}
}

func (l *opts) unused() string {
	for _, kv := range l.pairs {
		if !l.seen[kv[0]] {
			return kv[0]
		}
	}
	return ""
}

var shortKeys = map[string]string{
	"type": labelType, "zone": labelZone, "zone-id": labelZoneID, "captype": labelCapacity, "arch": labelArch,
	"os": labelOS, "hostname": labelHostname, "nodepool": labelPool, "region": labelRegion,
}

func longKey(k string) string {
	if s, ok := shortKeys[k]; ok {
		return s
	}
	if strings.HasPrefix(k, "instance-") {
		return "karpenter.k8s.aws/" + k
	}
	return k
}

// requirement reads one of: key=a|b, key!=a|b, key, !key, key>8, key>=8, key<8,
// key<=8, key:Op:a|b for anything odd; "#2" at the end is minValues.
func requirement(s string) obj { return requirementOn(s, longKey) }

func requirementOn(s string, longKey func(string) string) obj {
	out := obj{}
	if body, n, ok := strings.Cut(s, "#"); ok {
		s, out["minValues"] = body, json.Number(n)
	}
	set := func(key, op string, values ...string) obj {
		out["key"], out["operator"] = longKey(key), op
		if len(values) > 0 {
			out["values"] = values
		}
		return out
	}
	if parts := strings.SplitN(s, ":", 3); len(parts) > 1 {
		if len(parts) == 3 {
			return set(parts[0], parts[1], strings.Split(parts[2], "|")...)
		}
		return set(parts[0], parts[1])
	}
	for _, o := range []struct{ sign, op string }{{"!=", "NotIn"}, {">=", "Gte"}, {"<=", "Lte"}, {">", "Gt"}, {"<", "Lt"}, {"=", "In"}} {
		if k, v, ok := strings.Cut(s, o.sign); ok {
			return set(k, o.op, strings.Split(v, "|")...)
		}
	}
	if k, ok := strings.CutPrefix(s, "!"); ok {
		return set(k, "DoesNotExist")
	}
	return set(s, "Exists")
}

// requirementsOf reads requirements joined with "&".
func requirementsOf(values ...string) []obj {
	var out []obj
	for _, v := range values {
		for _, s := range strings.Split(v, "&") {
			if s != "" {
				out = append(out, requirement(s))
			}
		}
	}
	return out
}

// taintsOf reads "key=value:Effect" or "key:Effect", joined with commas.
func taintsOf(values []string) []obj {
	var out []obj
	for _, s := range values {
		key, effect, _ := strings.Cut(s, ":")
		t := obj{"effect": effect}
		if k, v, ok := strings.Cut(key, "="); ok {
			t["key"], t["value"] = k, v
		} else {
			t["key"] = key
		}
		out = append(out, t)
	}
	return out
}
