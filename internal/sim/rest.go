package sim

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// stillness is what does not change any more in a world at rest.
type stillness struct {
	objects        map[string]int // changes by kind; classes and pools are told news
	ec2            int
	nodes, history [32]byte
}

// settled: with faults and load stopped, everything is as it should be.
func (c *checks) settled() {
	c.noLeaks()
	c.podsRun()
	c.claimsTell()
	c.counters()
	c.noneWaits()
	c.commandsRest()
	for _, id := range slices.Sorted(maps.Keys(c.attempts)) {
		if a := c.attempts[id]; a.State != lifecycle.Settled && c.restoredAt.IsZero() {
			c.w.broken("Settles", "attempt %s is %s", id, a.State)
		}
	}
	for _, it := range c.w.cluster.pools.all() {
		c.realLimits(it.key)
		if it.v.Replicas == nil {
			continue
		}
		n := 0
		for _, i := range c.w.aws.ec2.Instances() {
			if i.ShuttingFrom.IsZero() && i.Tags["karpenter.sh/nodepool"] == it.key {
				n++
			}
		}
		if n != int(*it.v.Replicas) {
			c.w.broken("Static", "nodepool %s has %d of %d nodes", it.key, n, *it.v.Replicas)
		}
	}
	c.rest = c.stillness()
}

// atRest reports whether nothing is going on, and all is as it should be.
func (c *checks) atRest() bool {
	if len(c.w.procs) > 0 || len(c.w.queues["work"].messages) > 0 || len(c.w.queues["notices"].messages) > 0 {
		return false
	}
	if !c.passesRest() {
		return false
	}
	for _, p := range c.w.cluster.pods.by {
		if p.v.NodeName != "" && p.v.Phase != "Running" || !p.deleting.IsZero() {
			return false
		}
	}
	for _, r := range c.records {
		if len(r.Nominated) > 0 || !r.NextAt.IsZero() {
			return false // that ends at the next round of housekeeping
		}
	}
	c.w.asking, c.w.asked = true, 0
	c.settled()
	c.w.asking = false
	return c.w.asked == 0
}

// noLeaks: every instance is a node in use, known, or it is gone.
func (c *checks) noLeaks() {
	holder := make(map[string]*lifecycle.Record, len(c.records))
	for _, r := range c.records {
		holder[r.Instance.ID] = &r
	}
	for _, i := range c.w.aws.ec2.Instances() {
		if i.State(c.w.now()) == types.InstanceStateNameTerminated || !i.ShuttingFrom.IsZero() {
			continue
		}
		age := c.w.now().Sub(i.Launched)
		of := holder[i.ID]
		switch {
		case of == nil:
			c.w.broken("NoLeak", "instance %s (attempt %s, for %s) runs %s after its launch and no record knows it", i.ID, i.Attempt, c.owner[i.ID], age)
		case of.Phase != lifecycle.Initialized:
			c.w.broken("Settles", "instance %s of %s is %s (%s: %s) %s after its launch", i.ID, of.Claim, of.Phase, of.Reason, of.Message, age)
		}
		if i.Tags["kerf.sh/attempt"] == "" {
			c.w.broken("NoLeak", "instance %s has no tag of its attempt", i.ID)
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(c.records)) {
		r := c.records[claim]
		if r.Phase != lifecycle.Initialized {
			c.w.broken("Settles", "record %s is %s (%s: %s)", claim, r.Phase, r.Reason, r.Message)
		} else if !c.alive(r.Instance.ID) {
			c.w.broken("Settles", "record %s is %s, its instance %s is gone", claim, r.Phase, r.Instance.ID)
		}
	}
}

// podsRun: a pod that fits somewhere runs.
func (c *checks) podsRun() {
	misfit := map[string]bool{}
	for i, l := range c.w.Profile.Loads {
		if l.Misfit {
			misfit[fmt.Sprintf("%s-%d", l.Kind, i)] = true
		}
	}
	waiting := 0
	for _, p := range c.w.cluster.pods.all() {
		if p.v.Phase == "Running" || isDaemon(&p.v) || misfit[p.v.Labels["app"]] {
			continue
		}
		if waiting++; waiting <= 3 {
			c.w.broken("PodsRun", "pod %s is %s on %q since %s (nominated to %q)", p.key, p.v.Phase, p.v.NodeName, c.w.now().Sub(p.created), p.v.NominatedNode)
			if n := c.w.cluster.nodes.by[p.v.NominatedNode]; n != nil {
				c.w.tracef("    %s: %+v", n.key, n.v)
			}
		}
	}
}

// claimsTell: NodeClaims tell the truth, and there is one for each node.
func (c *checks) claimsTell() {
	k := c.w.cluster
	for _, claim := range slices.Sorted(maps.Keys(c.records)) {
		if k.claims.by[claim] == nil {
			c.w.broken("ClaimsTell", "record %s has no NodeClaim", claim)
		}
	}
	for _, it := range k.claims.all() {
		v := &it.v
		id := v.ProviderID[strings.LastIndexByte(v.ProviderID, '/')+1:]
		nodes := k.nodesOf(id)
		good := id != "" && len(nodes) == 1 && nodes[0].v.Labels["karpenter.sh/initialized"] == "true"
		cond := snapshot.FindCondition(v.Conditions, "Ready")
		said := cond != nil && cond.Status == "True"
		if said != good {
			c.w.broken("ClaimsTell", "nodeclaim %s says Ready %v; %d nodes, initialized %v", it.key, said, len(nodes), good)
		}
		if _, ok := c.records[it.key]; !ok {
			c.w.broken("ClaimsTell", "nodeclaim %s has no record", it.key)
		}
		if !good {
			continue
		}
		for _, x := range []struct {
			what  string
			empty bool
		}{
			{"nodeName", v.NodeName == ""}, {"capacity", v.Capacity.IsZero()}, {"imageID", v.ImageID == ""},
			{"type", v.Labels["node.kubernetes.io/instance-type"] == ""}, {"zone", v.Labels[zoneKey] == ""},
			{"capacity type", v.Labels["karpenter.sh/capacity-type"] == ""}, {"nodepool", v.Labels["karpenter.sh/nodepool"] == ""},
			{"finalizer", !slices.Contains(it.finalizers, finalizer)},
		} {
			if x.empty {
				c.w.broken("ClaimsTell", "nodeclaim %s is Ready and has no %s", it.key, x.what)
			}
		}
		if !slices.Contains(nodes[0].finalizers, finalizer) {
			c.w.broken("ClaimsTell", "node %s is registered and has no finalizer", nodes[0].key)
		}
	}
	for _, n := range k.nodes.all() {
		if n.v.Labels["karpenter.sh/nodepool"] == "" {
			c.w.broken("ClaimsTell", "node %s is there and belongs to no pool", n.key)
		}
	}
}

// counters: the usage that limits are held against is that of the records.
func (c *checks) counters() {
	want := map[string]lifecycle.Usage{}
	for _, r := range c.records {
		want[r.NodePool] = want[r.NodePool].Add(r.Reserved)
	}
	for _, it := range c.w.table.live.Rows() {
		if it.Key().PK != "POOLS" {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(it)) {
			v := it[name]
			if resource, ok := strings.CutPrefix(name, "u:"); ok && v.Int() != want[it.Key().SK][resource] {
				c.w.broken("Counters", "nodepool %s uses %d of %s by its counter, %d by its records", it.Key().SK, v.Int(), resource, want[it.Key().SK][resource])
			}
		}
	}
}

func (c *checks) stillness() stillness {
	out := stillness{ec2: len(c.w.aws.ec2.Calls("CreateFleet", "TerminateInstances", "CreateTags"))}
	out.objects = maps.Clone(c.w.cluster.changes)
	delete(out.objects, "NodePool")
	delete(out.objects, "EC2NodeClass")
	if c.w.Profile.Consolidate {
		delete(out.objects, "NodeClaim") // they say when they are looked at again
	}
	out.nodes, out.history = c.rows("NODES"), c.rows("ATTEMPTS")
	return out
}

func (c *checks) rows(pk string) [32]byte {
	h := sha256.New()
	for _, it := range c.w.table.live.Rows() {
		if it.Key().PK == pk {
			raw, _ := json.Marshal(it["d"].Str())
			h.Write(raw)
		}
	}
	var out [32]byte
	copy(out[:], h.Sum(nil))
	return out
}

// quiet: a world at rest stays so.
func (c *checks) quiet() {
	now := c.stillness()
	switch was := c.rest; {
	case now.ec2 != was.ec2:
		c.w.broken("Quiet", "%d changes of EC2 in a world at rest", now.ec2-was.ec2)
	case now.nodes != was.nodes:
		c.w.broken("Quiet", "records change in a world at rest")
	case now.history != was.history:
		c.w.broken("Quiet", "attempts change in a world at rest")
	case !maps.Equal(now.objects, was.objects):
		c.w.broken("Quiet", "Kubernetes objects change in a world at rest: %v, it was %v", now.objects, was.objects)
	}
}
