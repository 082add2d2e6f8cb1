package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Minor versions of Kubernetes 1: the oldest that serves all that is needed, and the newest
// that was tested.
const (
	oldest = 29
	newest = 36
)

func (w *walk) cluster() {
	if !w.seen(LookCluster) {
		return
	}
	e, name := w.f.EKS, "cluster/"+w.f.Cluster
	if e == nil {
		w.say(Broken, ClusterMissing, name, "EKS knows no cluster of that name in "+w.f.Region, w.aws("eks list-clusters"))
		return
	}
	switch e.Status {
	case "ACTIVE", "UPDATING":
	case "CREATING", "PENDING":
		w.say(Broken, ClusterNotUsable, name, "its status is "+e.Status, w.aws("eks wait cluster-active --name %s", w.f.Cluster))
	default:
		w.say(Broken, ClusterNotUsable, name, "its status is "+e.Status, w.aws("eks describe-cluster --name %s --query cluster.health", w.f.Cluster))
	}
	_, minor, _ := strings.Cut(e.Version, ".")
	switch n, err := strconv.Atoi(minor); {
	case err != nil || n < oldest:
		w.say(Broken, VersionTooOld, name, fmt.Sprintf("it has Kubernetes %s; 1.%d or newer is needed", e.Version, oldest),
			w.aws("eks update-cluster-version --name %s --kubernetes-version 1.%d", w.f.Cluster, n+1))
	case n > newest:
		w.say(Doubtful, VersionNew, name, fmt.Sprintf("it has Kubernetes %s; Kerf was tested up to 1.%d", e.Version, newest))
	}
	if e.AutoMode {
		w.say(Note, AutoModeOn, name, "EKS Auto Mode is on: its NodePools are its own, and the definitions of karpenter.sh too")
	}
}

// where says from where the API server can be reached.
func (e *EKS) where() string {
	switch {
	case e == nil:
		return "its endpoint is not known"
	case !e.Public:
		return "its endpoint is private: only from " + e.VPC + ", and networks joined to it"
	case !e.world():
		return "its public endpoint is open to " + strings.Join(e.PublicCIDRs, ", ") + " only"
	}
	return "its endpoint is open to the world"
}

// world reports whether the API server can be reached from everywhere.
func (e *EKS) world() bool {
	return e.Public && (len(e.PublicCIDRs) == 0 || slices.Contains(e.PublicCIDRs, "0.0.0.0/0"))
}

func (w *walk) api() {
	a := w.f.API
	if a == nil {
		return
	}
	server := "cluster/" + w.f.Cluster
	if w.f.EKS != nil && w.f.EKS.Endpoint != "" {
		server = w.f.EKS.Endpoint
	}
	switch a.Problem {
	case Unreachable:
		status := Unknown // the functions may be where it can be reached
		if w.f.Inside || w.f.EKS != nil && w.f.EKS.world() {
			status = Broken
		}
		w.say(status, APIUnreachable, server, a.Detail+"; "+w.f.EKS.where(),
			w.make("invoke", "EVENT=events/plan/doctor.json")+"   (asks the plan function, which runs where the others do)")
	case Unauthorized:
		w.say(Unknown, APINotLetIn, server, "it does not know "+w.who()+": "+a.Detail, w.letIn(w.role(), "plan"))
	case Forbidden:
		w.say(Unknown, APIForbidden, server, w.who()+" may not look: "+a.Detail, w.letIn(w.role(), "plan"))
	}
}

func (w *walk) who() string {
	if w.f.Who == "" {
		return "the identity that looks"
	}
	return w.f.Who
}

// role is the role behind the session that looks: entries are for roles.
func (w *walk) role() string {
	parts := strings.SplitN(w.f.Who, ":", 6)
	if len(parts) != 6 || parts[2] != "sts" {
		return w.f.Who
	}
	session := strings.Split(parts[5], "/")
	if len(session) < 2 || session[0] != "assumed-role" {
		return w.f.Who
	}
	return "arn:" + parts[1] + ":iam::" + parts[4] + ":role/" + session[1]
}

// letIn lets a role of a function into the cluster.
func (w *walk) letIn(role, function string) string {
	if w.f.EKS != nil && w.f.EKS.AuthMode == "CONFIG_MAP" {
		return "kubectl -n kube-system edit configmap aws-auth   (under mapRoles:)\n" +
			"- rolearn: " + role + "\n  username: kerf:" + function + "\n  groups: [\"kerf:" + function + "\"]"
	}
	return w.aws("eks create-access-entry --cluster-name %s --principal-arn %s --kubernetes-groups kerf:%s", w.f.Cluster, role, function)
}

func (w *walk) definitions() {
	if !w.seen(LookDefinitions) {
		return
	}
	again := w.make("invoke", "FN=bootstrap", "EVENT=events/bootstrap/again.json")
	for i := range w.f.Definitions {
		d := &w.f.Definitions[i]
		object := "customresourcedefinition/" + d.Name
		switch {
		case len(d.Served) == 0:
			w.say(Broken, DefinitionMissing, object, "it is not there", again)
		case !slices.Contains(d.Served, "v1"):
			w.say(Broken, DefinitionOld, object, "it serves "+strings.Join(d.Served, ", ")+" and not v1", again)
		case !d.Established:
			w.say(Broken, DefinitionMissing, object, "it is there, and the API server does not serve it", "kubectl describe crd "+d.Name)
		}
	}
}

func (w *walk) karpenter() {
	if !w.seen(LookKarpenter) || w.f.Karpenter == "" {
		return
	}
	namespace, _, _ := strings.Cut(w.f.Karpenter, "/")
	w.say(Broken, KarpenterRuns, "lease/karpenter-leader-election", w.f.Karpenter+" renewed it within a minute: Kerf changes nothing until it stops",
		"kubectl -n "+namespace+" scale deployment karpenter --replicas=0")
}

func (w *walk) sweep() {
	if w.f.Stack != nil && w.seen(LookAlarms) {
		w.alarms(w.f.Stack.Alarms)
	}
	if l := w.f.Ledger; w.seen(LookLedger) && l != nil {
		w.ledger(l)
	}
	if !w.seen(LookQueues) || w.f.Stack == nil {
		return
	}
	if q := w.f.Stack.queue("DeadWork"); q != nil && q.Waiting > 0 {
		w.say(Doubtful, StepsDied, "queue/DeadWork", count(q.Waiting, "step")+" of nodes failed for good; housekeeping goes on with the nodes",
			w.aws("sqs receive-message --queue-url %s --visibility-timeout 0", q.URL), w.aws("sqs start-message-move-task --source-arn %s", q.ARN))
	}
}

// alarms names those that ring.
func (w *walk) alarms(list []Alarm) {
	for _, a := range list {
		if a.State != "ALARM" {
			continue
		}
		detail := "it has rung for " + w.long(a.Since)
		if a.Text != "" {
			detail += ": " + a.Text
		}
		if a.Name == "NoTick" {
			w.say(Broken, NoSweep, "alarm/"+a.Name, detail, w.logs("sweep"), w.make("invoke", "FN=sweep", "EVENT=events/sweep/dry-run.json"))
		} else {
			w.say(Doubtful, AlarmRings, "alarm/"+a.Name, detail)
		}
	}
}

func (w *walk) ledger(l *Ledger) {
	table := "table/" + l.Table
	switch {
	case l.Missing:
		w.say(Broken, LedgerMissing, table, "it holds no ledger: no sweep has run yet", w.logs("sweep"))
		return
	case l.Cluster != "" && l.Cluster != w.f.Cluster:
		w.say(Broken, LedgerOfOther, table, "it is that of cluster "+l.Cluster, w.context("tableName=TABLE"))
		return
	}
	if l.Recovery != "" {
		w.say(Broken, LedgerInRecovery, table, "nothing is launched: "+l.Recovery, w.logs("sweep"))
	}
}

// logs shows what a function said lately.
func (w *walk) logs(function string) string {
	if fn := w.f.Stack.function(function); fn != nil && fn.Logs != "" {
		return w.aws("logs tail %s --since 15m", fn.Logs)
	}
	return w.make("logs", "FN="+function)
}

func (s *Stack) function(name string) *Function {
	if s == nil {
		return nil
	}
	if i := slices.IndexFunc(s.Functions, func(f Function) bool { return f.Name == name }); i >= 0 {
		return &s.Functions[i]
	}
	return nil
}

func (s *Stack) queue(name string) *Queue {
	if i := slices.IndexFunc(s.Queues, func(q Queue) bool { return q.Name == name }); i >= 0 {
		return &s.Queues[i]
	}
	return nil
}
