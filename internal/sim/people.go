package sim

import (
	"slices"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/snapshot"
)

// people are those who do things by hand, and what happens by itself every minute.
type people struct {
	w    *World
	dice dice
}

// minute lets the minute's misfortunes happen.
func (p *people) minute() {
	w, f, d := p.w, &p.w.Profile.Faults, p.dice
	if !w.faults {
		return
	}
	if d.in(f.Short) {
		p.shortage()
	}
	if d.in(f.Webhook) {
		w.cluster.webhook = w.now().Add(d.between(20*time.Second, 5*time.Minute))
		w.tracef("the webhook is down until %s", w.cluster.webhook.Sub(epoch))
	}
	for _, i := range w.aws.ec2.Instances() {
		if i.Spot && i.ShuttingFrom.IsZero() && d.in(f.Spot) {
			w.bus.take(i)
		}
	}
	w.bus.minute()
	if d.in(f.People) {
		p.act()
	}
}

// shortage takes machines of some offers away for a while.
func (p *people) shortage() {
	w, d := p.w, p.dice
	o := ec2fake.Offer{Type: pick(d, w.aws.table.Types).Name, Zone: "*", CapacityType: pick(d, []string{"*", "spot", "on-demand"})}
	if d.IntN(3) == 0 {
		o.Type, o.Zone = "*", pick(d, w.aws.table.Zones)
	}
	w.aws.ec2.Short = append(w.aws.ec2.Short, o)
	w.tracef("EC2 runs out of %v", o)
	w.after(d.between(30*time.Second, 8*time.Minute), func() {
		w.aws.ec2.Short = slices.DeleteFunc(slices.Clone(w.aws.ec2.Short), func(x ec2fake.Offer) bool { return x == o })
	})
}

// act lets somebody do something by hand.
func (p *people) act() {
	w, c, d := p.w, p.w.cluster, p.dice
	switch d.IntN(8) {
	case 0, 1, 2:
		if list := c.claims.all(); len(list) > 0 {
			it := pick(d, list)
			w.tracef("somebody deletes nodeclaim %s", it.key)
			c.claims.delete(it)
		}
	case 3, 4:
		if list := c.nodes.all(); len(list) > 0 {
			it := pick(d, list)
			w.tracef("somebody deletes node %s", it.key)
			c.nodes.delete(it)
		}
	case 5:
		if list := c.pods.all(); len(list) > 0 {
			it := pick(d, list)
			w.tracef("somebody deletes pod %s", it.key)
			c.deletePod(it)
		}
	case 6:
		// All but the one for everything may go, or come back.
		var list []*item[snapshot.NodePool]
		for _, it := range c.pools.all() {
			if it.key != "general" && it.deleting.IsZero() {
				list = append(list, it)
			}
		}
		if len(list) > 0 {
			it := pick(d, list)
			w.tracef("somebody deletes nodepool %s", it.key)
			c.pools.delete(it)
		}
	case 7:
		if list := w.aws.ec2.Instances(); len(list) > 0 {
			i := pick(d, list)
			if i.ShuttingFrom.IsZero() {
				w.tracef("somebody terminates instance %s", i.ID)
				w.aws.ec2.Interrupt(i.ID)
				w.checks.taken(i.ID)
				c.watchMachines()
			}
		}
	}
}
