package worldtest

import (
	"slices"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/plan"
)

// handMade is a plan that puts pods where the words say: "web-1=n1" on a node,
// "web-2=z-a" on a new m5.2xlarge in that zone, "web-3=z-a/2" on another one there,
// "web-4=z-b/1/spot" as another capacity type than on-demand.
func handMade(t *testing.T, w *World, places string) *judge {
	t.Helper()
	s, report, err := w.Snapshot()
	if err != nil || len(report.Left) > 0 {
		t.Fatal(err, report)
	}
	p := &plan.Plan{}
	byName := map[string]int{}
	for _, place := range strings.Fields(places) {
		pod, where, _ := strings.Cut(place, "=")
		if !strings.Contains(pod, "/") {
			pod = "default/" + pod
		}
		if !strings.HasPrefix(where, "z-") {
			p.Placements = append(p.Placements, plan.Placement{Pod: pod, Node: where})
			continue
		}
		i, ok := byName[where]
		if !ok {
			parts := append(strings.Split(where, "/"), "", "")
			capacity := "on-demand"
			if parts[2] != "" {
				capacity = parts[2]
			}
			i = len(p.Launches)
			byName[where] = i
			sups := Supplies(s, w.Catalog)["general"]
			k := slices.IndexFunc(sups, func(o *Supply) bool { return o.Type == "m5.2xlarge" && o.Zone == parts[0] && o.Capacity == capacity })
			o := plan.Offer{InstanceType: sups[k].Type, Zone: sups[k].Zone, CapacityType: sups[k].Capacity, Price: sups[k].Price}
			p.Launches = append(p.Launches, plan.Launch{
				Name: "new-" + where, NodePool: "general", Labels: sups[k].Labels, Chosen: o, Options: []plan.Offer{o},
			})
		}
		p.Launches[i].Pods = append(p.Launches[i].Pods, pod)
	}
	return newJudge(s, w.Catalog, p)
}

// What kube-scheduler accepts and what it does not, case by case. Every rule has a case
// on each side.
func TestBoard(t *testing.T) {
	const (
		full = " type=m5.large cpu=1930m pods=29 pool=general"
		abc  = "node a" + full + " zone=z-a\nnode b" + full + " zone=z-b\nnode c" + full + " zone=z-c\n"
		web  = "pod web count=3 labels=app=web,rev=2 "
	)
	for _, c := range []struct{ name, world, places, want string }{
		{"spread: one zone each", web + "spread=zone:1:hard:app=web", "web-1=z-a web-2=z-b web-3=z-c", ""},
		{"spread: a zone where a node could be launched counts", web + "spread=zone:1:hard:app=web", "web-1=z-a web-2=z-a/2", "z-a has 1 of them, the least is 0 (z-b)"},
		{"spread: skew 2", web + "spread=zone:2:hard:app=web", "web-1=z-a web-2=z-a/2", ""},
		{"spread: skew 2 is exceeded", web + "spread=zone:2:hard:app=web", "web-1=z-a web-2=z-a web-3=z-a", "z-a has 2 of them"},
		{"spread: pods of another app do not count", web + "spread=zone:1:hard:app=web\npod db count=2 labels=app=db", "web-1=z-a db-1=z-a db-2=z-a web-2=z-b", ""},
		{"spread: no selector selects nothing", web + "spread=zone:1:hard:-", "web-1=z-a web-2=z-a web-3=z-a", ""},
		{"spread: an empty selector counts nothing", web + "spread=zone:1:hard:*", "web-1=z-a web-2=z-a web-3=z-a", ""},
		{"spread: expressions", web + "spread=zone:1:hard:app=web|db&rev!=1", "web-1=z-a web-2=z-a", "z-a has 1"},
		{"spread: a pod that its constraint does not select", web + "spread=zone:1:hard:app=db", "web-1=z-a web-2=z-a web-3=z-a", ""},
		{"spread: soft is no rule", web + "spread=zone:1:soft:app=web", "web-1=a web-2=a", ""},
		{"spread: other namespaces do not count", web + "spread=zone:1:hard:app=web\npod o ns=x node=a labels=app=web", "web-1=a web-2=b web-3=c", ""},
		{"spread: running pods count", web + "spread=zone:1:hard:app=web\npod o node=a labels=app=web", "web-1=a", "z-a has 1"},
		{"spread: terminating pods do not", web + "spread=zone:1:hard:app=web\npod o node=a labels=app=web deleting", "web-1=a", ""},
		{"spread: finished pods do not", web + "spread=zone:1:hard:app=web\npod o node=a labels=app=web phase=Failed", "web-1=a", ""},
		{"spread: minDomains not reached", web + "affinity=zone=z-a|z-b spread=zone:1:hard:app=web,minDomains=3", "web-1=z-a web-2=z-b web-3=z-a", "has 1 of them, the least is 0 ()"},
		{"spread: minDomains reached", web + "affinity=zone=z-a|z-b spread=zone:1:hard:app=web,minDomains=2", "web-1=z-a web-2=z-b web-3=z-a", ""},
		{"spread: affinity honoured", web + "affinity=zone=z-a|z-b spread=zone:1:hard:app=web", "web-1=z-a web-2=z-b web-3=z-a", ""},
		{"spread: affinity ignored", web + "affinity=zone=z-a|z-b spread=zone:1:hard:app=web,affinityPolicy=ignore", "web-1=z-a web-2=z-b web-3=z-a", "the least is 0 (z-c)"},
		{"spread: node selector honoured", web + "selector=zone=z-a spread=zone:1:hard:app=web", "web-1=z-a web-2=z-a web-3=z-a", ""},
		{"spread: taints ignored", "node t" + full + " zone=z-q taints=x:NoSchedule\n" + web + "affinity=zone!=z-c spread=zone:1:hard:app=web", "web-1=z-a web-2=z-b web-3=z-a", "the least is 0 (z-q)"},
		{"spread: taints honoured", "node t" + full + " zone=z-q taints=x:NoSchedule\n" + web + "affinity=zone!=z-c spread=zone:1:hard:app=web,taintsPolicy=honor", "web-1=z-a web-2=z-b web-3=z-a", ""},
		{"spread: cordon is a taint", "node t" + full + " zone=z-q cordoned\n" + web + "affinity=zone!=z-c spread=zone:1:hard:app=web,taintsPolicy=honor", "web-1=z-a web-2=z-b web-3=z-a", ""},
		{"spread: matchLabelKeys", web + "spread=zone:1:hard:app=web,keys=rev\npod o node=a labels=app=web,rev=1", "web-1=a web-2=b web-3=c", ""},
		{"spread: matchLabelKeys of the same", web + "spread=zone:1:hard:app=web,keys=rev\npod o node=a labels=app=web,rev=2", "web-1=a", "z-a has 1"},
		{"spread: matchLabelKeys that the pod lacks", web + "spread=zone:1:hard:app=web,keys=no\npod o node=a labels=app=web", "web-1=a", "z-a has 1"},
		{"spread: hostname", web + "spread=hostname:1:hard:app=web", "web-1=z-a/1 web-2=z-a/2 web-3=z-a/3", ""},
		{"spread: hostname, one more node is always possible", web + "spread=hostname:1:hard:app=web", "web-1=z-a web-2=z-a", "new-z-a has 1 of them, the least is 0"},
		{"spread: capacity type", web + "spread=captype:1:hard:app=web", "web-1=z-a/1/spot web-2=z-a/2/on-demand", ""},
		{"spread: one capacity type only", web + "spread=captype:1:hard:app=web", "web-1=z-a/1/spot web-2=z-a/1/spot", "spot has 1"},
		{"spread: nodes without the key", "node n" + full + " nolabels=zone\n" + web + "spread=zone:1:hard:app=web", "web-1=n", "no label topology.kubernetes.io/zone"},
		{"spread: a node without one of two keys is no domain", "node n" + full + " zone=z-q nolabels=captype\n" + web + "spread=zone:1:hard:app=web spread=captype:9:hard:app=web", "web-1=z-a web-2=z-b web-3=z-c", ""},
		{"spread: both keys", web + "spread=zone:1:hard:app=web spread=hostname:1:hard:app=web", "web-1=z-a/1 web-2=z-b/1 web-3=z-c/1", ""},
		{"spread: an order must be found", "pod web count=5 labels=app=web spread=zone:1:hard:app=web", "web-1=z-a web-2=z-a web-3=z-b web-4=z-c web-5=z-b", ""},

		{"spread: those that mind come first", "pod web count=2 labels=tier=x spread=hostname:1:hard:tier=x\npod db count=3 labels=tier=x\npod dx labels=tier=x spread=zone:9:hard:tier=x",
			"web-1=z-a db-1=z-a db-2=z-a dx=z-a web-2=z-b db-3=z-b", ""},
		{"spread: those that do not mind come last", "pod lead labels=app=lead\npod db labels=tier=x near=zone:app=lead\npod web count=7 labels=tier=x spread=zone:1:hard:tier=x",
			"lead=z-a db=z-a web-1=z-a web-2=z-a web-3=z-a web-4=z-b web-5=z-b web-6=z-c web-7=z-c", ""},

		{"spread: those that do not mind come first where that helps", "pod o node=a labels=tier=x\npod db count=2 labels=tier=x\npod end count=2 labels=tier=x\npod web count=5 labels=tier=x spread=zone:1:hard:tier=x",
			"web-1=z-c web-2=z-c web-3=z-c web-4=z-a web-5=z-a end-1=z-a end-2=z-a db-1=z-b db-2=z-b", ""},

		{"affinity: first of its kind", web + "near=zone:app=web", "web-1=z-a web-2=z-a/2", ""},
		{"affinity: parted", web + "near=zone:app=web", "web-1=z-a web-2=z-b", "affinity: no pod that it wants"},
		{"affinity: to a pod that runs", web + "near=zone:app=db\npod db node=b labels=app=db", "web-1=z-b web-2=b", ""},
		{"affinity: not where it runs", web + "near=zone:app=db\npod db node=b labels=app=db", "web-1=z-a", "affinity: no pod that it wants in topology.kubernetes.io/zone z-a"},
		{"affinity: to nobody", web + "near=zone:app=db", "web-1=z-a", "affinity: no pod"},
		{"affinity: a pod that was placed first", web + "near=zone:app=db\npod db labels=app=db", "web-1=z-a db=z-a", ""},
		{"affinity: of the kind, but one runs elsewhere", web + "near=zone:app=web\npod o node=b labels=app=web", "web-1=z-a", "affinity: no pod"},
		{"affinity: pods that are going still count", web + "near=zone:app=db\npod db node=b labels=app=db deleting", "web-1=z-b", ""},
		{"affinity: hostname", web + "near=hostname:app=web", "web-1=z-a web-2=z-a", ""},
		{"affinity: hostname parted", web + "near=hostname:app=web", "web-1=z-a/1 web-2=z-a/2", "affinity"},
		{"affinity: all terms select one pod", web + "near=zone:app=db near=zone:tier=x\npod db node=b labels=app=db,tier=x", "web-1=z-b", ""},
		{"affinity: two pods do not make one", web + "near=zone:app=db near=zone:tier=x\npod d node=b labels=app=db\npod e node=b labels=tier=x", "web-1=z-b", "affinity"},
		{"affinity: preferred is no rule", web + "prefer-near=10:zone:app=db\npod db node=b labels=app=db", "web-1=a", ""},

		{"anti: apart", web + "away=zone:app=web", "web-1=z-a web-2=z-b web-3=z-c", ""},
		{"anti: together", web + "away=zone:app=web", "web-1=z-a web-2=z-a/2", "anti-affinity over topology.kubernetes.io/zone"},
		{"anti: on one node", web + "away=hostname:app=web", "web-1=z-a web-2=z-a", "anti-affinity over kubernetes.io/hostname"},
		{"anti: on two nodes", web + "away=hostname:app=web", "web-1=z-a/1 web-2=z-a/2", ""},
		{"anti: of a pod that runs", web + "\npod db node=a labels=app=db away=zone:app=web", "web-1=z-a", "of pod default/db, which is there"},
		{"anti: of a pod that runs elsewhere", web + "\npod db node=a labels=app=db away=zone:app=web", "web-1=z-b", ""},
		{"anti: of a pod that is going", web + "\npod db node=a labels=app=db away=zone:app=web deleting", "web-1=z-a", "of pod default/db"},
		{"anti: of a pod that has finished", web + "\npod db node=a labels=app=db away=zone:app=web phase=Succeeded", "web-1=z-a", ""},
		{"anti: of a pending pod", web + "\npod db labels=app=db away=zone:app=web", "web-1=z-a db=z-a", "anti-affinity"},
		{"anti: preferred is no rule", web + "\npod db node=a labels=app=db prefer-away=9:zone:app=web", "web-1=a", ""},
		{"anti: the own namespace", web + "away=zone:app=db\nnamespace shop labels=team=x\npod db ns=shop node=a labels=app=db", "web-1=a", ""},
		{"anti: a named namespace", web + "away=zone:app=db,ns=shop\nnamespace shop labels=team=x\npod db ns=shop node=a labels=app=db", "web-1=a", "anti-affinity"},
		{"anti: a named namespace and not the own", web + "away=zone:app=db,ns=shop\nnamespace shop\npod db node=a labels=app=db", "web-1=a", ""},
		{"anti: a selected namespace", web + "away=zone:app=db,nsselector=team=x\nnamespace shop labels=team=x\npod db ns=shop node=a labels=app=db", "web-1=a", "anti-affinity"},
		{"anti: a namespace by its name", web + "away=zone:app=db,nsselector=kubernetes.io/metadata.name=shop\nnamespace shop\npod db ns=shop node=a labels=app=db", "web-1=a", "anti-affinity"},
		{"anti: another namespace", web + "away=zone:app=db,nsselector=team=y\nnamespace shop labels=team=x\npod db ns=shop node=a labels=app=db", "web-1=a", ""},
		{"anti: all namespaces", web + "away=zone:app=db,nsselector=*\nnamespace shop\npod db ns=shop node=a labels=app=db", "web-1=a", "anti-affinity"},
		{"anti: matchLabelKeys", web + "away=zone:app=web,keys=rev\npod o node=a labels=app=web,rev=1", "web-1=a", ""},
		{"anti: mismatchLabelKeys of the same", web + "away=zone:app=web,mismatch=rev", "web-1=a web-2=a", ""},
		{"anti: mismatchLabelKeys", web + "away=zone:app=web,mismatch=rev\npod o node=a labels=app=web,rev=1", "web-1=a", "anti-affinity"},
		{"anti: no selector", web + "away=zone:-", "web-1=a web-2=a", ""},

		{"going: its pods do not count", abc + "node g" + full + " zone=z-a deleting\npod o node=g labels=app=web spread=zone:1:hard:app=web\n" + web + "spread=zone:1:hard:app=web", "o=z-a web-1=z-b web-2=z-c", ""},
		{"going: its pods count where they go", abc + "node g" + full + " zone=z-a deleting\npod o node=g labels=app=web spread=zone:1:hard:app=web\n" + web + "spread=zone:1:hard:app=web", "o=z-b web-1=z-b web-2=z-c", "z-b has 1"},
		{"going: a pod that may not be moved counts", abc + "node g" + full + " zone=z-a deleting\npod o node=g labels=app=web\npdb no selector=app=web max=0\n" + web + "spread=zone:1:hard:app=web", "web-1=z-a", "z-a has 1"},

		{"volume: in its zone", "pv v zone=z-b\npvc d volume=v\npod web volume=d", "web=z-b", ""},
		{"volume: in another zone", "pv v zone=z-b\npvc d volume=v\npod web volume=d", "web=z-a", "cannot be reached"},
		{"volume: one of two terms", "pv v terms=zone=z-q;zone=z-b\npvc d volume=v\npod web volume=d", "web=z-b", ""},
		{"volume: old label", "pv v labels=failure-domain.beta.kubernetes.io/zone=z-b\npvc d volume=v\npod web volume=d", "web=z-a", "is in z-b"},
		{"volume: old label with several zones", "pv v labels=topology.kubernetes.io/zone=z-b__z-a\npvc d volume=v\npod web volume=d", "web=z-a", ""},
		{"volume: to be made elsewhere", "storageclass s zones=z-b\npvc d class=s\npod web volume=d", "web=z-a", "makes no volume there"},
		{"volume: ephemeral", "storageclass s zones=z-b\npod web ephemeral=s", "web=z-a", "makes no volume there"},
		{"volume: attach limit", abc + "csinode a limits=ebs.csi.aws.com:1\npv v zone=z-a\npvc d volume=v\npv w zone=z-a\npvc e volume=w\npod web volume=d\npod db volume=e", "web=a db=a", "2 volumes of ebs.csi.aws.com, the node can attach 1"},
		{"volume: shared is attached once", abc + "csinode a limits=ebs.csi.aws.com:1\npv v zone=z-a\npvc d volume=v\npod web count=2 volume=d", "web-1=a web-2=a", ""},
		{"volume: attached already", abc + "csinode a limits=ebs.csi.aws.com:1\npv v zone=z-a\npv w zone=z-a\nattachment x node=a volume=w\npvc d volume=v\npod web volume=d", "web=a", "can attach 1"},
		{"volume: of one pod", abc + "pv v zone=z-a\npvc d volume=v modes=ReadWriteOncePod\npod web count=2 volume=d", "web-1=a", ""},
		{"volume: of one pod, used by two", abc + "pv v zone=z-a\npvc d volume=v modes=ReadWriteOncePod\npod web count=2 volume=d", "web-1=a web-2=z-a", "ReadWriteOncePod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWorld()
			world := c.world
			if !strings.Contains(world, "node a ") {
				world = abc + world
			}
			if err := w.Exec("pool general\n" + world); err != nil {
				t.Fatal(err)
			}
			j := handMade(t, w, c.places)
			j.skip = map[kindOfRule]bool{aboutPreferences: true}
			j.bad = nil
			j.topology()
			got := strings.Join(j.bad, "\n")
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A launch may become any of its options: one in another zone must be as good.
func TestBoardAsksForEveryOption(t *testing.T) {
	w := NewWorld()
	if err := w.Exec("pool general\npod web count=2 labels=app=web spread=zone:1:hard:app=web"); err != nil {
		t.Fatal(err)
	}
	j := handMade(t, w, "web-1=z-a web-2=z-b")
	j.skip = nil
	if j.topology(); len(j.bad) > 0 {
		t.Error(j.bad)
	}
	l := &j.p.Launches[0]
	l.Options = append(l.Options, j.p.Launches[1].Chosen)
	if j.topology(); !strings.Contains(strings.Join(j.bad, "\n"), "if new-z-a is m5.2xlarge z-b on-demand") {
		t.Error(j.bad)
	}
}
