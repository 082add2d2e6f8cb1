package sim

import (
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/snapshot"
)

// machine is an instance with its kubelet.
type machine struct {
	i     *ec2fake.Instance
	node  string // "" = has not joined
	joins time.Time
	never bool
	dead  bool
	bare  bool
	small bool
	flaps bool
}

// startup is the startup taint of pools that have one.
var startup = snapshot.Taint{Key: "example.com/agent", Effect: "NoSchedule"}

// boot decides what becomes of a new instance.
func (c *cluster) boot(i *ec2fake.Instance) {
	w, f, d := c.w, &c.w.Profile.Faults, c.dice
	m := &machine{i: i}
	c.machines[i.ID] = m
	w.stats.Instances++
	wait := d.between(12*time.Second, 70*time.Second)
	if w.faults {
		m.never, m.small, m.flaps, m.bare = d.in(f.NeverJoins), d.in(f.Small), d.in(f.Flaps), d.in(f.Bare)
		if d.in(f.Slow) {
			wait = d.between(2*time.Minute, 22*time.Minute)
		}
	}
	m.never = m.never || slices.Contains(w.badImages, i.ImageID)
	m.joins = i.RunningFrom.Add(wait)
	w.tracef("instance %s: %s in %s, spot %v, attempt %s, joins in %s never=%v small=%v flaps=%v bare=%v", i.ID, i.Type, i.Zone, i.Spot, i.Attempt, m.joins.Sub(w.now()), m.never, m.small, m.flaps, m.bare)
	w.at(m.joins, func() { c.join(m) })
	w.bus.begins(i)
}

// join registers the Node of a machine, as its kubelet does with what the user data says.
func (c *cluster) join(m *machine) {
	if m.dead || m.never || m.node != "" {
		return
	}
	w := c.w
	truth, ok := w.aws.size(m.i.Type)
	if !ok {
		return
	}
	said := w.aws.userData(m.i.UserData)
	name := m.i.PrivateDNS
	n := snapshot.Node{
		Name: name, ProviderID: "aws:///" + m.i.Zone + "/" + m.i.ID,
		Capacity: truth.Capacity, Allocatable: truth.Allocatable,
		Labels: map[string]string{
			"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": truth.Type.Arch,
			"node.kubernetes.io/instance-type": m.i.Type, "topology.kubernetes.io/zone": m.i.Zone, "topology.kubernetes.io/region": region,
			"topology.k8s.aws/zone-id": m.i.ZoneID,
		},
		Taints: []snapshot.Taint{{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}, {Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: "NoSchedule"}},
	}
	if !m.bare {
		for k, v := range said.labels {
			n.Labels[k] = v
		}
		n.Taints = append(n.Taints, said.taints...)
	}
	if m.small {
		n.Capacity.Memory -= n.Capacity.Memory / 8
		n.Allocatable.Memory -= n.Allocatable.Memory / 6
	}
	n.Conditions = []snapshot.Condition{{Type: "Ready", Status: "False", Reason: "KubeletNotReady", Since: w.now().Truncate(time.Second)}}
	it, made := c.nodes.create(name, n, nil)
	if !made {
		return
	}
	m.node = name
	w.tracef("node %s joins", name)
	uid := it.uid
	with := func(d time.Duration, do func(*item[snapshot.Node])) {
		w.after(d, func() {
			if n := c.nodes.by[name]; n != nil && n.uid == uid && !m.dead {
				do(n)
			}
		})
	}
	with(c.dice.between(time.Second, 4*time.Second), func(n *item[snapshot.Node]) {
		c.dropTaint(n, "node.cloudprovider.kubernetes.io/uninitialized")
	})
	ready := c.dice.between(4*time.Second, 25*time.Second)
	with(ready, func(n *item[snapshot.Node]) { c.setReady(n, "True", "KubeletReady") })
	c.agent(ready+c.dice.between(2*time.Second, 45*time.Second), with)
	if m.flaps {
		c.flap(m, with)
	}
}

// agent takes the startup taint off a node that is ready, and again if it comes back.
func (c *cluster) agent(after time.Duration, with func(time.Duration, func(*item[snapshot.Node]))) {
	with(after, func(n *item[snapshot.Node]) {
		if ready(&n.v) {
			c.dropTaint(n, startup.Key)
		}
		if n.v.Labels["karpenter.sh/initialized"] == "" {
			c.agent(30*time.Second, with)
		}
	})
}

// flap lets a node be not ready now and then.
func (c *cluster) flap(m *machine, with func(time.Duration, func(*item[snapshot.Node]))) {
	at := 30 * time.Second
	for range 4 {
		at += c.dice.between(20*time.Second, 3*time.Minute)
		with(at, func(n *item[snapshot.Node]) {
			if c.w.faults {
				c.setReady(n, "False", "KubeletNotReady")
			}
		})
		at += c.dice.between(5*time.Second, 100*time.Second)
		with(at, func(n *item[snapshot.Node]) { c.setReady(n, "True", "KubeletReady") })
	}
}

func (c *cluster) dropTaint(n *item[snapshot.Node], key string) {
	taints := slices.DeleteFunc(slices.Clone(n.v.Taints), func(t snapshot.Taint) bool { return t.Key == key })
	if len(taints) != len(n.v.Taints) {
		n.v.Taints = taints
		c.nodes.touch(n)
	}
}

// watchMachines looks for instances that are new, or ending.
func (c *cluster) watchMachines() {
	list := c.w.aws.ec2.Instances()
	for _, i := range list[c.w.aws.seen:] {
		c.boot(i)
	}
	c.w.aws.seen = len(list)
	for _, i := range list {
		m := c.machines[i.ID]
		if m.dead || i.ShuttingFrom.IsZero() {
			continue
		}
		m.dead = true
		c.w.stats.Terminated++
		c.w.tracef("instance %s ends", i.ID)
		c.w.bus.ends(i)
		c.w.after(c.dice.between(35*time.Second, 50*time.Second), func() { c.lost(m) })
	}
}

// lost is what the cluster makes of a node whose kubelet is silent, and whose instance is
// gone: it is not ready, then its object is deleted.
func (c *cluster) lost(m *machine) {
	n := c.nodes.by[m.node]
	if n == nil || !strings.HasSuffix(n.v.ProviderID, "/"+m.i.ID) {
		return
	}
	c.setReady(n, "Unknown", "NodeStatusUnknown")
	if m.i.State(c.w.now()) == types.InstanceStateNameTerminated {
		c.w.tracef("the cloud controller deletes node %s", n.key)
		c.nodes.delete(n)
	}
	c.w.after(c.dice.between(5*time.Second, 40*time.Second), func() {
		c.collectPods()
		if c.nodes.by[m.node] != nil {
			c.lost(m)
		}
	})
}

// kubeletLives reports whether somebody answers on a node.
func (c *cluster) kubeletLives(node string) bool {
	n := c.nodes.by[node]
	if n == nil {
		return false
	}
	for _, m := range c.machines {
		if m.node == node {
			return !m.dead
		}
	}
	return true // it was there before the world began
}

// said is what user data tells a kubelet.
type said struct {
	labels map[string]string
	taints []snapshot.Taint
}

// userData reads the NodeConfig in user data; there is none for custom images.
func (a *aws) userData(encoded string) said {
	if s, ok := a.said[encoded]; ok {
		return s
	}
	out := said{labels: map[string]string{}}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil {
		out = readUserData(string(raw))
	}
	a.said[encoded] = out
	return out
}

func readUserData(text string) said {
	out := said{labels: map[string]string{}}
	at := strings.LastIndex(text, "apiVersion: node.eks.aws")
	if at < 0 {
		return out
	}
	text = text[at:]
	if end := strings.Index(text, "\n--"); end >= 0 {
		text = text[:end]
	}
	var doc struct {
		Spec struct {
			Kubelet struct {
				Config struct {
					RegisterWithTaints []snapshot.Taint `json:"registerWithTaints"`
				} `json:"config"`
				Flags []string `json:"flags"`
			} `json:"kubelet"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return out
	}
	out.taints = doc.Spec.Kubelet.Config.RegisterWithTaints
	for _, f := range doc.Spec.Kubelet.Flags {
		list, ok := strings.CutPrefix(f, "--node-labels=")
		if !ok {
			continue
		}
		for _, pair := range strings.Split(strings.Trim(list, `"`), ",") {
			if k, v, ok := strings.Cut(pair, "="); ok {
				out.labels[k] = v
			}
		}
	}
	return out
}

// size is what a type really has under the classes of the world, which all are AL2023 with
// the same disk.
func (a *aws) size(name string) (catalog.Resolved, bool) {
	r, ok := a.sizes[name]
	return r, ok
}
