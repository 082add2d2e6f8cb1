package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// step is a step of the way, with what has to be looked at for it.
type step struct {
	name, title string
	looks       []Look
	check       func(*walk)
	// after are looks of steps before, without which nothing can be said about this one.
	after []Look
}

// steps are the way from a pending pod to a ready node, and after it what keeps it safe.
var steps = []step{
	{"cluster", "EKS has the cluster, in a version that works", []Look{LookCluster}, (*walk).cluster, nil},
	{"api", "its API server answers", []Look{LookAPI}, (*walk).api, nil},
	{"definitions", "Karpenter's definitions are served", []Look{LookDefinitions}, (*walk).definitions, nil},
	{"karpenter", "Karpenter does not run beside Kerf", []Look{LookKarpenter}, (*walk).karpenter, nil},
	{"stack", "the functions are deployed, started and let in",
		[]Look{LookStack, LookFunctions, LookTriggers, LookSchedules, LookConcurrency, LookEntries, LookAwsAuth}, (*walk).stack, nil},
	{"sweep", "sweeps come to their end", []Look{LookAlarms, LookLedger, LookQueues}, (*walk).sweep, []Look{LookStack}},
	{"pools", "there are NodePools, with classes", []Look{LookObjects}, (*walk).pools, nil},
	{"classes", "classes find subnets, security groups and images", []Look{LookSubnets, LookGroups, LookImages}, (*walk).classes, []Look{LookObjects}},
	{"roles", "nodes get a role that may be handed on", []Look{LookProfiles, LookRoles, LookPassRole, LookNodeMay}, (*walk).roles, []Look{LookObjects}},
	{"access", "the cluster lets nodes with that role in", []Look{LookEntries, LookAwsAuth}, (*walk).access, []Look{LookObjects, LookRoles}},
	{"addresses", "subnets have free addresses", []Look{LookSubnets}, (*walk).addresses, []Look{LookObjects}},
	{"quotas", "the account may have more vCPUs", []Look{LookQuotas}, (*walk).quotas, []Look{LookObjects}},
	{"plan", "the plan has a place for every pending pod", []Look{LookObjects}, (*walk).plan, nil},
	{"launch", "EC2 gives what is asked for", []Look{LookLedger}, (*walk).launch, []Look{LookStack}},
	{"join", "instances join the cluster", []Look{LookInstances, LookStatus, LookRoutes, LookConsole}, (*walk).join, []Look{LookObjects}},
	{"ready", "nodes get ready", []Look{LookObjects}, (*walk).ready, nil},
	{"interruption", "notices of interruption come through", []Look{LookRules, LookQueues}, (*walk).interruption, []Look{LookStack}},
}

// walk is one walk along the steps.
type walk struct {
	f     *Facts
	found []Finding
	told  map[Look]bool
}

// Examine walks the way over facts.
func Examine(f *Facts) *Report {
	w := &walk{f: f, told: map[Look]bool{}}
	r := &Report{Cluster: f.Cluster, Region: f.Region, Now: f.Now.UTC().Format(time.RFC3339), Complete: true}
	for _, s := range steps {
		w.found = nil
		s.check(w)
		status := Fine
		for _, l := range s.looks {
			if u, ok := f.Unseen[l]; ok {
				r.Complete, status = false, Unknown
				w.unseen(l, u)
			}
		}
		for _, l := range s.after {
			if _, ok := f.Unseen[l]; ok || l == LookStack && (f.Stack == nil || len(f.Stack.Functions) == 0) {
				status = worse(status, Unknown)
			}
		}
		for i := range w.found {
			status = worse(status, w.found[i].Status)
		}
		slices.SortStableFunc(w.found, func(a, b Finding) int { return rank(b.Status) - rank(a.Status) })
		if status == Unknown {
			r.Complete = false
		}
		if status == Broken && r.Broken == "" {
			r.Broken = s.name
		}
		r.Steps = append(r.Steps, Step{Name: s.name, Title: s.title, Status: status, Findings: w.found})
	}
	return r
}

func rank(s Status) int { return slices.Index(order, s) }

// unseen tells once of a look that brought nothing.
func (w *walk) unseen(l Look, u Unseen) {
	if w.told[l] {
		return
	}
	w.told[l] = true
	detail := u.Why
	if u.Permission != "" {
		detail = "permission " + u.Permission + " is missing"
		if u.Why != "" {
			detail += " (" + u.Why + ")"
		}
	}
	w.add(Finding{Code: NotSeen, Status: Unknown, Object: whats[l], Detail: detail})
}

// seen reports whether looks brought something.
func (w *walk) seen(looks ...Look) bool {
	for _, l := range looks {
		if _, ok := w.f.Unseen[l]; ok {
			return false
		}
	}
	return true
}

func (w *walk) add(f Finding) { w.found = append(w.found, f) }

func (w *walk) say(status Status, code Code, object, detail string, fix ...string) {
	w.add(Finding{Code: code, Status: status, Object: object, Detail: detail, Fix: fix})
}

// aws is a command of the AWS CLI in the cluster's region.
func (w *walk) aws(format string, args ...any) string {
	c := "aws " + fmt.Sprintf(format, args...)
	if w.f.Region != "" {
		c += " --region " + w.f.Region
	}
	return c
}

// make is a target of the Makefile for the cluster.
func (w *walk) make(target string, more ...string) string {
	return strings.Join(append([]string{"make " + target + " CLUSTER=" + w.f.Cluster}, more...), " ")
}

// context is a make deploy with keys of the CDK's context.
func (w *walk) context(pairs ...string) string {
	var out []string
	for _, p := range pairs {
		out = append(out, "-c "+p)
	}
	return w.make("deploy", "CONTEXT='"+strings.Join(out, " ")+"'")
}

// ago is how long ago something was, for people.
func (w *walk) ago(t time.Time) string { return w.long(t) + " ago" }

// long is for how long something has been so.
func (w *walk) long(t time.Time) string {
	d := w.f.Now.Sub(t)
	switch {
	case d < 2*time.Minute:
		return count(int(d.Seconds()), "second")
	case d < 2*time.Hour:
		return count(int(d.Minutes()), "minute")
	case d < 48*time.Hour:
		return count(int(d.Hours()), "hour")
	}
	return count(int(d.Hours()/24), "day")
}

// count is a number of things, with its plural.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	switch {
	case strings.HasSuffix(what, "ss"):
		what += "e"
	case strings.HasSuffix(what, "y") && !strings.HasSuffix(what, "ay"):
		what = what[:len(what)-1] + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// some names the first few of a list, and how many more there are.
func some(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
