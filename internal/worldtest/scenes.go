package worldtest

import "fmt"

// ruleSpreadZone is also part of scenes about other rules.
const ruleSpreadZone Rule = "spread-zone"

// scenes are all that Draw knows.
var scenes = []scene{
	{ruleSpreadZone, 8, 1, 0, spreadZone, false},
	{"spread-hostname", 6, 1, 0, spreadHostname, true},
	{"spread-capacity-type", 6, 0, 0, spreadCapacityType, false},
	{"spread-label", 6, 0, 1, spreadLabel, false},
	{"spread-two-keys", 7, 0, 0, spreadTwice, true},
	{"spread-min-domains", 5, 0, 0, spreadMinDomains, false},
	{"spread-node-affinity-policy", 5, 1, 0, spreadAffinityPolicy, false},
	{"spread-node-taints-policy", 5, 1, 1, spreadTaintsPolicy, false},
	{"spread-match-label-keys", 4, 2, 0, spreadMatchLabelKeys, true},
	{"spread-soft", 5, 0, 0, spreadSoft, true},
	{"spread-terminating-pods", 1, 2, 0, spreadGone("deleting"), true},
	{"spread-finished-pods", 1, 2, 0, spreadGone("phase=Succeeded"), true},
	{"affinity-zone-self", 5, 2, 0, nearZoneSelf, true},
	{"affinity-hostname-self", 4, 2, 0, nearHostnameSelf, true},
	{"affinity-zone-running", 5, 1, 0, nearRunning, false},
	{"affinity-hostname-running", 2, 1, 0, nearRunningHostname, true},
	{"affinity-zone-pending", 6, 0, 0, nearPending, true},
	{"affinity-hostname-pending", 3, 1, 0, nearPendingHostname, false},
	{"anti-affinity-hostname-self", 6, 1, 0, awayHostnameSelf, false},
	{"anti-affinity-zone-self", 4, 0, 0, awayZoneSelf, false},
	{"anti-affinity-zone-running", 4, 2, 0, awayRunning, false},
	{"anti-affinity-pending", 6, 0, 0, awayPending, false},
	{"anti-affinity-symmetric-zone", 4, 2, 0, awaySymmetric, true},
	{"anti-affinity-symmetric-hostname", 3, 1, 0, awaySymmetricHostname, true},
	{"anti-affinity-namespaces", 3, 2, 0, awayNamespaces, false},
	{"affinity-namespace-selector", 3, 1, 0, nearNamespaceSelector, false},
	{"anti-affinity-namespace-selector", 3, 2, 0, awayNamespaceSelector, false},
	{"anti-affinity-match-label-keys", 3, 1, 0, awayMatchLabelKeys, true},
	{"anti-affinity-mismatch-label-keys", 5, 1, 0, awayMismatchLabelKeys, true},
	{"prefer-node-affinity", 4, 0, 0, preferNode, true},
	{"prefer-affinity", 3, 1, 0, preferNear, true},
	{"prefer-anti-affinity", 4, 0, 0, preferAway, true},
	{"prefer-no-schedule", 3, 0, 1, preferNoSchedule, false},
	{"node-going-spread", 2, 3, 0, goingSpread, true},

	{"volume-zone", 2, 0, 0, volumeZone, false},
	{"volume-terms", 2, 0, 0, volumeTerms, false},
	{"volume-several", 2, 0, 0, volumeSeveral, false},
	{"volume-class-topology", 3, 0, 0, volumeClass, false},
	{"volume-old-zone-label", 2, 0, 0, volumeOldLabel, false},
	{"volume-attach-limit", 4, 1, 0, volumeAttachLimit, true},
	{"volume-attachment", 2, 1, 0, volumeAttachment, true},
	{"volume-shared", 2, 1, 0, volumeShared, true},
	{"volume-read-write-once-pod", 2, 1, 0, volumeOncePod, false},
	{"volume-ephemeral", 3, 1, 0, volumeEphemeral, true},

	{"node-selector", 3, 0, 0, nodeSelector, false},
	{"node-affinity", 4, 0, 0, nodeAffinity, false},
	{"pool-taint", 4, 0, 1, poolTaint, false},
	{"node-taint", 3, 1, 0, nodeTaint, false},
	{"startup-taint", 2, 1, 0, startupTaint, false},
	{"requests", 4, 0, 0, requests, false},
	{"init-containers", 3, 0, 0, initContainer, false},
	{"sidecars", 4, 0, 0, sidecars, false},
	{"pod-overhead", 4, 0, 0, podOverhead, false},
	{"limit-range", 4, 0, 0, limitRange, false},
	{"host-port", 4, 0, 0, hostPort, false},
	{"daemonset", 4, 0, 0, daemonSet, false},
	{"daemonset-host-port", 3, 0, 0, daemonPort, false},
	{"extended-resource", 4, 0, 0, extended, false},
	{"ephemeral-storage", 4, 0, 0, ephemeralStorage, false},
	{"pod-slots", 9, 1, 1, podSlots, false},
	{"pool-requirement", 4, 0, 1, poolRequirement, false},
	{"pool-limit", 5, 0, 1, poolLimit, false},
	{"pool-weight", 3, 0, 1, poolWeight, false},
	{"pool-label", 3, 0, 1, poolLabel, false},
	{"pool-open-label", 4, 0, 1, poolOpenLabel, false},
	{"pool-static", 3, 1, 1, poolStatic, false},
	{"min-values", 2, 0, 1, minValues, false},
	{"bound-pods", 4, 1, 0, boundPods, false},
	{"claim-in-flight", 3, 1, 0, inFlight, false},
	{"node-cordoned", 3, 1, 0, cordoned, false},
	{"node-going", 3, 1, 0, going, false},
	{"node-unmanaged", 3, 1, 0, unmanaged, false},
	{"pod-nominated", 2, 2, 0, nominated, true},
	{"scheduling-gate", 2, 0, 0, gated, false},

	{"reserved-capacity", 3, 0, 1, reservedFirst, true},
	{"reserved-capacity-count", 3, 0, 1, reservedCount, true},
	{"node-overlay-price", 3, 0, 1, overlayPrice, false},
	{"node-overlay-capacity", 3, 0, 1, overlayCapacity, false},
	{"capacity-buffer", 4, 0, 0, capacityBuffer, false},
	{"pool-static-launches", 2, 0, 1, staticLaunches, false},
}

// Scenes about volumes.

// claim adds a bound claim and its volume, and returns the option that uses it.
func (g *gen) claim(options ...any) (claim, option string) {
	claim = g.new("data")
	g.line("pv pv-"+claim, options...)
	g.line("pvc "+claim, "volume=pv-"+claim)
	return claim, "volume=" + claim
}

func volumeZone(g *gen, rule Rule) {
	_, v := g.claim(by(rule, "zone=%s", g.zone()))
	g.workload(g.app(), 1, g.size(), v)
	_, v = g.claim(by(rule, "zone=%s", g.zone()))
	g.workload(g.app(), 1, g.size(), v)
}

// Two terms, one of which no pool can serve.
func volumeTerms(g *gen, rule Rule) {
	a, b := g.twoZones()
	_, v := g.claim(by(rule, "terms=zone=%s&captype=reserved;zone=%s&captype=on-demand", a, b))
	g.workload(g.app(), g.between(1, 2), g.size(), v)
}

// Each volume allows two zones, both together one.
func volumeSeveral(g *gen, rule Rule) {
	a, b := g.twoZones()
	c := thirdZone(a, b)
	_, v := g.claim("zone=" + a + "|" + c)
	_, u := g.claim("zone=" + b + "|" + c)
	g.workload(g.app(), g.between(1, 2), g.size(), v, by(rule, "%s", u))
}

func volumeClass(g *gen, rule Rule) {
	class := g.new("disk")
	g.line("storageclass "+class, by(rule, "zones=%s", g.zone()))
	for range g.between(1, 3) {
		claim := g.new("data")
		g.line("pvc "+claim, "class="+class)
		g.workload(g.app(), 1, g.size(), "volume="+claim)
	}
}

func volumeOldLabel(g *gen, rule Rule) {
	_, v := g.claim("in-tree", by(rule, "labels=%s=%s", g.one("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"), g.zone()))
	g.workload(g.app(), g.between(1, 2), g.size(), v)
}

// sort is the instance type of a node whose attach limit is given: mostly one of its own,
// since nodes of the same type are expected to have the same limit.
func (g *gen) sort() string {
	if g.chance(2) {
		return ""
	}
	return "type=" + g.new("s") + ".large"
}

// A node with room for all pods, and for the volumes of some.
func volumeAttachLimit(g *gen, rule Rule) {
	zone := g.zone()
	taint, tolerates := g.own()
	n := g.node(zone, g.sort(), room(1500), taint)
	g.line("csinode "+n, by(rule, "limits=%s:%d", ebsDriver, g.between(1, 3)))
	_, v := g.claim("zone=" + zone)
	g.runs(g.app(), n, v)
	for range g.between(3, 4) {
		_, v := g.claim("zone=" + zone)
		g.workload(g.app(), 1, g.small(), v, tolerates)
	}
}

// A volume that is still attached, of a pod that is no longer there.
func volumeAttachment(g *gen, rule Rule) {
	zone := g.zone()
	taint, tolerates := g.own()
	n := g.node(zone, g.sort(), room(900), taint)
	g.line("csinode "+n, "limits="+ebsDriver+":1")
	g.line("pv pv-left-"+n, "zone="+zone)
	g.line(by(rule, "attachment att-%s", n), "node="+n, "volume=pv-left-"+n)
	_, v := g.claim("zone=" + zone)
	g.workload(g.app(), 1, g.small(), v, tolerates)
}

// A claim that several pods use is attached once.
func volumeShared(g *gen, rule Rule) {
	zone := g.zone()
	taint, tolerates := g.own()
	n := g.node(zone, g.sort(), room(1300), taint)
	g.line("csinode "+n, "limits="+ebsDriver+":1")
	_, shared := g.claim("zone=" + zone)
	_, own := g.claim("zone=" + zone)
	g.runs(g.app(), n, shared)
	g.workload(g.app(), 1, "cpu=850m mem=128Mi", tolerates, by(rule, "%s", shared).or("%s", own))
}

// A claim that only one pod may use at a time.
func volumeOncePod(g *gen, rule Rule) {
	zone := g.zone()
	claim := g.new("data")
	g.line("pv pv-"+claim, "zone="+zone)
	g.line("pvc "+claim, "volume=pv-"+claim, by(rule, "modes=ReadWriteOncePod"))
	n := 2
	if g.chance(5) {
		n = 1
		g.runs(g.app(), g.node(zone, room(900)), "volume="+claim)
	}
	g.workload(g.app(), n, g.small(), "volume="+claim)
}

func volumeEphemeral(g *gen, rule Rule) {
	class := g.new("scratch")
	zone := g.zone()
	g.line("storageclass "+class, "zones="+zone)
	n := g.node(zone, g.sort(), room(1500))
	g.line("csinode "+n, "limits="+ebsDriver+":1")
	g.workload(g.app(), g.between(2, 3), g.small(), by(rule, "ephemeral=%s", class))
}

// Scenes about what pods need and nodes have.

func nodeSelector(g *gen, rule Rule) {
	g.workload(g.app(), g.between(1, 3), g.size(), by(rule, "selector=%s", g.one("zone="+g.zone(), "captype=on-demand")))
}

func nodeAffinity(g *gen, rule Rule) {
	a, b := g.twoZones()
	g.workload(g.app(), g.between(1, 4), g.size(), by(rule, "affinity=%s", g.one(
		fmt.Sprintf("zone=%s", a), fmt.Sprintf("zone!=%s&captype=on-demand", a), fmt.Sprintf("zone=%s&captype=on-demand;zone=%s&captype=on-demand", a, b))))
}

func poolTaint(g *gen, rule Rule) {
	g.pool(g.new("build"), "weight=50", by(rule, "taints=dedicated=build:%s", g.one("NoSchedule", "NoExecute")))
	g.workload(g.app(), g.between(1, 2), g.size())
	g.workload(g.app(), g.between(1, 2), g.size(), "tolerate=dedicated=build")
}

func nodeTaint(g *gen, rule Rule) {
	g.node(g.zone(), room(1700), by(rule, "taints=busy:NoSchedule"))
	g.workload(g.app(), 1, g.large())
}

// A node that is not initialised yet, with a taint that goes away by itself.
func startupTaint(g *gen, rule Rule) {
	n := g.node(g.zone(), "starting", "taints=agent:NoSchedule")
	g.line("claim c-"+n, "pool=general", nodeType, "cpu=1930m", "mem=6903Mi", "pods=29", "node="+n, by(rule, "startup-taints=agent:NoSchedule"))
	g.workload(g.app(), 1, g.large())
}

func requests(g *gen, rule Rule) {
	g.workload(g.app(), g.between(2, 4), "mem=128Mi", by(rule, "cpu=%dm", 100*g.between(10, 16)).or("cpu=50m"))
}

func initContainer(g *gen, rule Rule) {
	g.workload(g.app(), g.between(1, 3), "cpu=100m mem=128Mi", by(rule, "init=1500m/256Mi"))
}

func sidecars(g *gen, rule Rule) {
	g.workload(g.app(), g.between(2, 4), "cpu=200m mem=128Mi", by(rule, "sidecar=%dm/128Mi", 100*g.between(7, 12)))
}

func podOverhead(g *gen, rule Rule) {
	class := g.new("sandbox")
	g.line("runtimeclass "+class, by(rule, "overhead=cpu:%dm,memory:128Mi", 100*g.between(7, 12)))
	g.workload(g.app(), g.between(2, 4), "cpu=200m mem=128Mi", "runtimeclass="+class)
}

// Pods without requests, in a namespace that gives them some.
func limitRange(g *gen, rule Rule) {
	ns := g.new("ns")
	g.line("namespace " + ns)
	g.line("limitrange defaults-"+ns, "ns="+ns, by(rule, "default-request=cpu:%dm,memory:256Mi", 100*g.between(9, 14)))
	g.workload(g.app(), g.between(2, 4), "ns="+ns, bare{})
}

func hostPort(g *gen, rule Rule) {
	g.workload(g.app(), g.between(2, 4), g.small(), by(rule, "hostport=%s", g.one("8080", "8080/UDP", "9090/TCP")))
}

func daemonSet(g *gen, rule Rule) {
	g.line(by(rule, "daemonset %s", g.new("agent")), fmt.Sprintf("cpu=%dm", 100*g.between(5, 9)), "mem=128Mi", "tolerate=*")
	g.workload(g.app(), g.between(2, 4), "cpu=800m mem=256Mi")
}

func daemonPort(g *gen, rule Rule) {
	port := 7000 + g.r.IntN(100)
	g.line("daemonset "+g.new("proxy"), "cpu=50m", "tolerate=*", by(rule, "hostport=%d", port))
	g.workload(g.app(), g.between(1, 3), g.small(), fmt.Sprintf("hostport=%d", port))
}

func extended(g *gen, rule Rule) {
	name := g.new("inf") + ".xlarge"
	g.line("type "+name, "cpu=4 mem=8192 eni=4x15 spot=0.050 od=0.2", "ext=example.com/device:"+g.one("1", "2"))
	g.workload(g.app(), g.between(1, 4), g.small(), by(rule, "ext=example.com/device:1"))
}

func ephemeralStorage(g *gen, rule Rule) {
	g.workload(g.app(), g.between(2, 4), g.small(), by(rule, "eph=%dGi", g.between(7, 12)))
}

func podSlots(g *gen, rule Rule) {
	class := g.new("dense")
	team := g.new("team")
	g.line("class "+class, by(rule, "maxpods=%d", g.between(4, 6)))
	g.pool(g.new("dense"), "class="+class, "labels=team="+team)
	g.workload(g.app(), g.between(6, 9), "cpu=20m mem=32Mi", "selector=team="+team)
}

func poolRequirement(g *gen, rule Rule) {
	g.pool(g.new("narrow"), "weight=40", by(rule, "%s", g.one("zones="+g.zone(), "captype=on-demand", "require=instance-cpu>2")))
	g.workload(g.app(), g.between(1, 4), g.size())
}

func poolLimit(g *gen, rule Rule) {
	team := g.new("team")
	g.pool(g.new("small"), "labels=team="+team, by(rule, "limits=%s", g.one("nodes:1", "cpu:4", "nodes:0", "memory:9Gi")))
	g.workload(g.app(), g.between(3, 5), "cpu=1200m mem=512Mi", "selector=team="+team)
}

func poolWeight(g *gen, rule Rule) {
	g.pool(g.new("first"), by(rule, "weight=%d", g.between(1, 30)), "captype=on-demand")
	g.workload(g.app(), g.between(1, 3), g.size())
}

func poolLabel(g *gen, rule Rule) {
	team := g.new("team")
	g.pool(g.new("own"), by(rule, "labels=team=%s", team))
	g.workload(g.app(), g.between(1, 3), g.size(), "selector=team="+team)
}

// A label that the pool leaves open: pods choose its value.
func poolOpenLabel(g *gen, rule Rule) {
	key := g.new("lane")
	g.pool(g.new("open"), by(rule, "require=%s", g.one(key, key+"=x|y")))
	g.workload(g.app(), g.between(1, 2), g.small(), "selector="+key+"=x")
	g.workload(g.app(), g.between(1, 2), g.small(), "selector="+key+"=y")
}

// A pool with a fixed number of nodes launches none for pods.
func poolStatic(g *gen, rule Rule) {
	g.pool(g.new("fixed"), by(rule, "replicas=1").or("weight=60"))
	g.workload(g.app(), g.between(1, 3), g.size())
}

func minValues(g *gen, rule Rule) {
	team := g.new("team")
	g.pool(g.new("varied"), "labels=team="+team, "require=type", by(rule, "#2"))
	g.workload(g.app(), g.between(1, 2), g.size(), "selector=team="+team)
}

func boundPods(g *gen, rule Rule) {
	n := g.node(g.zone())
	g.line(by(rule, "pod on-%s", n), "node="+n, fmt.Sprintf("cpu=%dm", 100*g.between(12, 17)), "mem=128Mi")
	g.workload(g.app(), g.between(2, 4), "cpu=600m mem=256Mi")
}

func inFlight(g *gen, rule Rule) {
	g.nodes++
	g.line(by(rule, "claim %s", g.new("claim")), "pool=general", nodeType, "cpu=1930m", "mem=6903Mi", "pods=29", "zone="+g.zone(), "captype=spot")
	g.workload(g.app(), 1, g.large())
}

func cordoned(g *gen, rule Rule) {
	g.node(g.zone(), room(1700), by(rule, "cordoned"))
	g.workload(g.app(), 1, g.large())
}

// A node that is being deleted takes no pods, and gives its own away.
func going(g *gen, rule Rule) {
	n := g.node(g.zone(), room(1200), by(rule, "deleting"))
	g.runs(g.app(), n, "cpu=300m", "mem=256Mi")
	g.workload(g.app(), g.between(1, 3), g.small())
}

// A node that no pool owns takes pods like any other.
func unmanaged(g *gen, rule Rule) {
	g.nodes++
	n := fmt.Sprintf("n%d", g.nodes)
	g.line(by(rule, "node %s", n), "cpu=1900m", "mem=4096Mi", "pods=20", "zone="+g.zone())
	g.workload(g.app(), 1, g.large())
}

// The scheduler has promised a node to a pod.
func nominated(g *gen, rule Rule) {
	n := g.node(g.zone(), room(1000))
	m := g.node(g.zone(), room(1000))
	g.pods++
	g.line("pod "+g.new("high"), "cpu=800m", by(rule, "nominated=%s", g.one(n, m, m)))
	g.workload(g.app(), 1, "cpu=600m mem=128Mi")
}

func gated(g *gen, rule Rule) {
	g.workload(g.app(), g.between(1, 2), g.size(), by(rule, "gate=example.com/wait"))
}
