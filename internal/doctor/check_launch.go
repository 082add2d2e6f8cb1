package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/plan"
)

// fewAddresses is how many free addresses are few: a node takes one, and its pods more.
const fewAddresses = 32

func (w *walk) addresses() {
	if !w.seen(LookSubnets) {
		return
	}
	told := map[string]bool{}
	for i := range w.f.Classes {
		c := &w.f.Classes[i]
		if c.Deleting {
			continue
		}
		found := w.selected(c)
		full := 0
		var ids []string
		for _, s := range found {
			ids = append(ids, s.ID)
			if s.Free == 0 {
				full++
			}
		}
		if len(found) > 0 && full == len(found) {
			w.say(Broken, SubnetsFull, "nodeclass/"+c.Name, "all of its subnets have no free address: "+some(ids, 6),
				w.aws("ec2 describe-network-interfaces --filters Name=subnet-id,Values=%s Name=status,Values=available --query 'NetworkInterfaces[].NetworkInterfaceId'", strings.Join(ids, ",")))
			continue
		}
		for _, s := range found {
			if told[s.ID] || s.Free >= fewAddresses {
				continue
			}
			told[s.ID] = true
			if s.Free == 0 {
				w.say(Doubtful, SubnetFull, "subnet/"+s.ID, "it has no free address in "+s.Zone)
			} else {
				w.say(Doubtful, SubnetLow, "subnet/"+s.ID, fmt.Sprintf("it has %s in %s", count(int(s.Free), "free address"), s.Zone))
			}
		}
	}
}

func (w *walk) quotas() {
	if !w.seen(LookQuotas) {
		return
	}
	left := func(q *Quota) int { return q.Limit - q.Used }
	var open []*Quota
	for i := range w.f.Quotas {
		if q := &w.f.Quotas[i]; q.Wanted && left(q) >= 2 {
			open = append(open, q)
		}
	}
	for i := range w.f.Quotas {
		q := &w.f.Quotas[i]
		if !q.Wanted {
			continue
		}
		detail := fmt.Sprintf("%s: %d of %d vCPUs are in use", q.Name, q.Used, q.Limit)
		ask := w.more("ec2", q.Code, max(64, 2*q.Limit))
		switch {
		case left(q) < 2 && len(open) == 0:
			w.say(Broken, QuotaUsedUp, "quota/"+q.Code, detail, ask)
		case left(q) < 2:
			w.say(Doubtful, QuotaUsedUp, "quota/"+q.Code, detail+"; others are launched", ask)
		case q.Used*10 >= q.Limit*9:
			w.say(Doubtful, QuotaLow, "quota/"+q.Code, detail, ask)
		}
	}
}

func (w *walk) plan() {
	p := w.f.Pending
	if p == nil {
		return
	}
	for _, r := range p.Reasons {
		detail := count(r.Pods, "pod") + ", " + r.Pod + " for one: " + r.Code
		if r.Detail != "" {
			detail += ": " + r.Detail
		}
		w.say(Broken, NoPlace, "pod/"+r.Pod, detail, "make plan ARGS='--context CONTEXT --explain pod/"+r.Pod+"'")
	}
	if len(p.Reasons) == 0 && p.Pods > 0 {
		detail := fmt.Sprintf("%s, the oldest for %s: %d on nodes that are there or coming, %d on %s to be launched",
			count(p.Pods, "pod"), (time.Duration(p.OldestSeconds) * time.Second).String(), p.Placed, p.Launched, count(p.Nodes, "node"))
		w.say(Note, Waiting, "", detail)
	}
	for _, i := range p.Incomplete {
		w.say(Doubtful, NotSeen, "plan", "it was made on less than everything: "+i)
	}
}

// lately is how long a launch that was refused says something about the next.
const lately = 20 * time.Minute

// capacity are codes that mean: not now, not there.
var capacity = []string{"InsufficientInstanceCapacity", "UnfulfillableCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity",
	"InsufficientCapacity", "ReservationCapacityExceeded", "Unsupported"}

func (w *walk) launch() {
	l := w.f.Ledger
	if l == nil || !w.seen(LookLedger) {
		return
	}
	told := map[string]bool{}
	for _, a := range l.Attempts {
		if w.f.Now.Sub(a.At) > lately {
			continue
		}
		for _, e := range a.Errors {
			if !told[e.Code] {
				told[e.Code] = true
				w.refused(a, e)
			}
		}
	}
	if len(l.ShortAll) > 0 {
		w.say(Doubtful, NoCapacity, "ec2", "everything as "+strings.Join(l.ShortAll, " and ")+" is left alone for a while: EC2 refused it lately")
	}
}

func (w *walk) refused(a Attempt, e CodeCount) {
	object := "nodepool/" + a.Pool
	detail := w.ago(a.At) + ": " + e.Code
	if e.Message != "" {
		detail += ": " + e.Message
	}
	status := Broken
	if a.Got > 0 {
		status = Doubtful
	}
	switch {
	case e.Code == "AuthFailure.ServiceLinkedRoleCreationNotPermitted":
		w.say(status, SpotRoleMissing, object, detail, "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com")
	case e.Code == "VcpuLimitExceeded" || e.Code == "MaxSpotInstanceCountExceeded":
		quota := "L-1216C47A"
		if e.Code == "MaxSpotInstanceCountExceeded" {
			quota = "L-34B43A08"
		}
		w.say(status, QuotaUsedUp, object, detail, w.more("ec2", quota, 256))
	case strings.HasPrefix(e.Code, "Unauthorized") || strings.HasPrefix(e.Code, "AccessDenied") || e.Code == "AuthFailure":
		w.say(status, LaunchDenied, object, detail, w.make("deploy")+"   (puts the functions' permissions back)")
	case slices.Contains(capacity, e.Code):
		w.say(Doubtful, NoCapacity, object, fmt.Sprintf("%s, for %s", detail, count(e.Count, "offer")), "kubectl edit nodepool "+a.Pool+"   (allow more types, zones, or both capacity types)")
	default:
		w.say(status, LaunchRefused, object, detail, w.logs("sweep"))
	}
}

// Times of the way from launch to ready.
const (
	joinsWithin = 4 * time.Minute
	readyWithin = 5 * time.Minute
)

func (in *Instance) runs() bool { return in.State == "running" || in.State == "pending" }

// NotJoined reports whether an instance should have a node by now and has none.
func (f *Facts) NotJoined(in *Instance) bool {
	return in.Node == "" && in.runs() && f.Now.Sub(in.Launched) >= joinsWithin
}

func (w *walk) join() {
	var young []string
	for i := range w.f.Instances {
		in := &w.f.Instances[i]
		if !w.f.NotJoined(in) {
			if in.Node == "" && in.runs() {
				young = append(young, in.ID)
			}
			continue
		}
		cause, fix := w.cause(in)
		w.say(Broken, NotJoined, "instance/"+in.ID, fmt.Sprintf("%s, %s, NodePool %s, has run for %s, and its node never joined.\nLikely cause: %s", in.Type, in.Subnet, in.Pool, w.long(in.Launched), cause), fix...)
	}
	if len(young) > 0 {
		w.say(Note, JoinTakes, "", some(young, 5)+": started less than 4 minutes ago")
	}
	if w.f.Ledger == nil || !w.seen(LookLedger) {
		return
	}
	for _, f := range w.f.Ledger.Failures {
		if w.f.Now.Sub(f.At) < time.Hour {
			w.say(Doubtful, NeverUseful, "nodeclaim/"+f.Claim, w.ago(f.At)+": "+f.Reason+": "+f.Message)
		}
	}
}

func (w *walk) ready() {
	if !w.seen(LookObjects) {
		return
	}
	for i := range w.f.Nodes {
		n := &w.f.Nodes[i]
		object := "node/" + n.Name
		if n.Deleting {
			continue
		}
		switch {
		case n.Ready != "True" && w.f.Now.Sub(n.Since) > readyWithin:
			detail := "not ready for " + w.long(n.Since)
			if n.Ready == "Unknown" {
				detail = "its kubelet has said nothing for " + w.long(n.Since)
			}
			why, fix := n.unready()
			w.say(Broken, NodeNotReady, object, detail+": "+n.Reason+": "+n.Message+why, append(fix, "kubectl describe node "+n.Name)...)
		case n.Ready == "True" && len(n.Startup) > 0 && w.f.Now.Sub(n.Created) > readyWithin:
			w.say(Broken, StartupTaintStays, object, "for "+w.long(n.Created)+" it has waited for somebody to take off "+strings.Join(n.Startup, ", "),
				"kubectl -n kube-system get pods -o wide --field-selector spec.nodeName="+n.Name)
		case n.Ready == "True" && n.Registered && !n.Initialized && w.f.Now.Sub(n.Created) > readyWithin:
			w.say(Doubtful, NodeNotInitialized, object, "ready, and not initialized after "+w.long(n.Created)+": a resource that it was launched for is not reported",
				"kubectl get node "+n.Name+" -o jsonpath='{.status.allocatable}'")
		}
	}
}

// unready says what the words of a condition mostly mean.
func (n *Node) unready() (why string, fix []string) {
	text := strings.ToLower(n.Message)
	switch {
	case strings.Contains(text, "cni") || strings.Contains(text, "network plugin"):
		return "\nLikely cause: the network plugin does not run there", []string{"kubectl -n kube-system get pods -l k8s-app=aws-node -o wide --field-selector spec.nodeName=" + n.Name}
	case strings.Contains(text, "disk"):
		return "\nLikely cause: its disk is full; give the class a larger volume", nil
	}
	return "", nil
}

// Harmless reports whether a verdict leaves a pod alone on purpose, so that nothing is to be
// mended.
func Harmless(c plan.Code) bool {
	switch c {
	case plan.ResourceClaims, plan.EvictionBlocked:
		return false
	}
	return plan.Info(c).Kind == plan.KindNotPlanned
}
