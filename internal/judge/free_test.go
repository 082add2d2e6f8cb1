package judge

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"text/tabwriter"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/internal/worldtest"
)

// market is the embedded table of types, each on demand in the zones of package
// workload.
func market(t *testing.T) *catalog.Catalog {
	t.Helper()
	table, ok := catalog.Embedded(workload.Region)
	if !ok {
		t.Fatalf("there is no table of %s", workload.Region)
	}
	out := *table
	out.Types, out.Zones = nil, nil
	for _, z := range workload.Zones() {
		out.Zones = append(out.Zones, z.Zone)
	}
	for _, typ := range table.Types {
		var price int64
		for _, o := range typ.Offerings {
			if o.CapacityType == catalog.OnDemand && (price == 0 || o.Price < price) {
				price = o.Price
			}
		}
		if price == 0 {
			continue
		}
		typ.Offerings = nil
		for _, z := range workload.Zones() {
			typ.Offerings = append(typ.Offerings, catalog.Offering{Zone: z.Zone, ZoneID: z.ZoneID, CapacityType: catalog.OnDemand, Price: price, Available: true})
		}
		out.Types = append(out.Types, typ)
	}
	return &out
}

var (
	report = flag.Bool("report", false, "all ways to steer, on workloads of a thousand pods, in up to three orders")
	one    = flag.String("way", "", "the way to steer that is reported, all when empty")
	only   = flag.String("kind", "", "the kind of workload that is reported, all when empty")
)

// slack is a planner that believes pods to need some percent more than they do.
func slack(percent int64) planner {
	return func(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
		more := *s
		more.Pods = slices.Clone(s.Pods)
		for i := range more.Pods {
			if p := &more.Pods[i]; p.NodeName == "" {
				p.Spec.Requests.CPU += p.Spec.Requests.CPU * percent / 100
				p.Spec.Requests.Memory += p.Spec.Requests.Memory * percent / 100
			}
		}
		return kerf(&more, c)
	}
}

// way is a way to deal with a scheduler that goes its own.
type way struct {
	name    string
	planner planner
	how     Steering
	// orders in which nodes join, in a report.
	orders int
}

func ways() []way {
	return []way{
		{"not steered", kerf, Unsteered, 3},
		{"not steered, 5 % slack", slack(5), Unsteered, 1},
		{"not steered, 15 % slack", slack(15), Unsteered, 1},
		{"nominated early", kerf, Early, 1},
		{"nominated", kerf, Nominated, 3},
		{"nominated, cordoned", kerf, Cordoned, 3},
		{"opened", kerf, Opening, 3},
	}
}

// sums adds up outcomes.
type sums struct {
	runs, planned, stranded, elsewhere, left, rounds int
	price, first, bound                              int64
}

func (s *sums) add(o Outcome) {
	s.runs++
	s.planned += o.Planned
	s.stranded += o.Stranded
	s.elsewhere += o.Elsewhere
	s.left += o.Left
	s.rounds = max(s.rounds, o.Rounds)
	s.price += o.Price
	s.first += o.FirstPrice
	s.bound += o.Bound
}

func ratio(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }

func (s *sums) strandedShare() float64 { return ratio(int64(s.stranded), int64(s.planned)) }

func (s *sums) String() string {
	return fmt.Sprintf("%5.2f %%\t%5.2f %%\t%d\t%d\t%.3f\t%.3f\t%.3f\t", 100*s.strandedShare(), 100*ratio(int64(s.elsewhere), int64(s.planned)), s.rounds, s.left, ratio(s.first, s.bound), ratio(s.price, s.first), ratio(s.price, s.bound))
}

const columns = "stranded\telsewhere\tplans\tleft\tfirst/bound\tsettled/first\tsettled/bound\t  "

// Pods that nobody holds to the plan find their nodes all the same when they are
// steered: at most one in a hundred is left after the nodes have joined, and what all
// nodes cost in the end is near the lower bound. Without steering it is not so, which
// shows that the test can fail.
func TestSteering(t *testing.T) {
	kinds, pods, all := []string{workload.MixedWeb, workload.MemCPU, workload.Diverse, workload.Zonal, workload.Hostname}, 200, ways()
	if *report {
		pods = 1000
	} else {
		all = []way{all[0], all[len(all)-1]}
	}
	if *only != "" {
		kinds = []string{*only}
	}
	if *one != "" {
		all = slices.DeleteFunc(all, func(w way) bool { return w.name != *one })
	}
	c := market(t)
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, columns+"way\t  workload")
	for _, kind := range kinds {
		w := workload.Named(kind, pods)
		s := workload.Snapshot(w, false, 0)
		bound := kerf(s, c).Summary.LaunchLowerBound
		for _, way := range all {
			var sum sums
			orders := uint64(1)
			if *report {
				orders = uint64(way.orders)
			}
			for order := range orders {
				cl, err := FromSnapshot(s, c)
				if err != nil {
					t.Fatal(err)
				}
				var o Outcome
				synctest.Test(t, func(*testing.T) { o, err = cl.Settle(way.planner, way.how, order) })
				if err != nil {
					t.Fatalf("%s, %s, order %d: %v", w.Name, way.name, order, err)
				}
				o.Bound = bound
				sum.add(o)
			}
			t.Logf("%s, %s: %d of %d stranded, settled price %.3f of the bound", w.Name, way.name, sum.stranded, sum.planned, ratio(sum.price, sum.bound))
			fmt.Fprintf(tab, "%s  %s\t  %s\n", &sum, way.name, w.Name)
			switch {
			case way.how == Opening && (sum.strandedShare() > 0.01 || ratio(sum.price, sum.first) > 1.05 || sum.left > 0):
				t.Errorf("%s, %s: %.1f %% of pods are stranded, the settled price is %.3f of the plan's, %d pods are left",
					w.Name, way.name, 100*sum.strandedShare(), ratio(sum.price, sum.first), sum.left)
			case way.how == Opening && !w.Constrained() && ratio(sum.price, sum.bound) > 1.05:
				t.Errorf("%s, %s: the settled price is %.3f of the bound", w.Name, way.name, ratio(sum.price, sum.bound))
			case way.name == "not steered" && !w.Constrained() && kind != workload.Uniform && sum.strandedShare() <= 0.01:
				t.Errorf("%s: without steering %.1f %% of pods are stranded: then what is steering for?", w.Name, 100*sum.strandedShare())
			}
		}
	}
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
}

// The same on drawn clusters, which have nodes already and pods with every kind of rule.
func TestSteeringInDrawnClusters(t *testing.T) {
	all, n := ways(), 40
	if *report {
		n = 200
	} else {
		all = all[len(all)-1:]
	}
	if *one != "" {
		all = slices.DeleteFunc(all, func(w way) bool { return w.name != *one })
	}
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, columns+"way\t")
	for _, way := range all {
		outcomes, errs := make([]Outcome, n), make([]error, n)
		each(n, func(i int) {
			seed := *from + uint64(i)
			w := worldtest.Draw(seed)
			s, _, err := w.Snapshot()
			if err == nil {
				var cl *Cluster
				if cl, err = Read(w.Manifests(), s, w.Catalog); err == nil {
					synctest.Test(t, func(*testing.T) { outcomes[i], err = cl.Settle(way.planner, way.how, seed) })
				}
			}
			errs[i] = err
		})
		var sum sums
		for i, o := range outcomes {
			if errs[i] != nil {
				t.Errorf("%s, seed %d: %v", way.name, *from+uint64(i), errs[i])
				continue
			}
			if way.how == Opening && o.Stranded > 0 {
				t.Logf("%s, seed %d: %d of %d pods stranded", way.name, *from+uint64(i), o.Stranded, o.Planned)
			}
			sum.add(o)
		}
		fmt.Fprintf(tab, "%s  %s\t\n", &sum, way.name)
		if way.how == Opening && (sum.strandedShare() > 0.01 || ratio(sum.price, sum.first) > 1.05) {
			t.Errorf("%s: %.1f %% of pods are stranded, the settled price is %.3f of the plan's", way.name, 100*sum.strandedShare(), ratio(sum.price, sum.first))
		}
	}
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d clusters\n%s", n, table.String())
}
