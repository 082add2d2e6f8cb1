package page

import (
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
)

// view is what the template shows: everything is ready to print.
type view struct {
	What, Title, Region, Time, ID string
	Outcome                       string
	Incomplete                    []string
	Figures                       []figure
	Now, After                    money
	Launch                        *launchMoney
	Bounds                        []bound
	Catalogue                     string
	NewNodes                      int
	Launches                      []node
	Overview                      []string
	Changed, Quiet                []node
	QuietCount                    int
	Moves                         []move
	CannotRun                     []verdict
	CannotRunCount                int
	NotPlanned                    []verdict
	NotPlannedCount               int
	Remarks                       []verdict
	Memory                        []string
	Warnings                      []warning
	Explained                     *plan.Explanation
	Diff                          *comparison
	DiffOnly                      bool
	Tables                        []*sorted
	// Changes and ExplainedBefore are shown with Explained alone.
	Changes         []string
	ExplainedBefore *plan.Explanation
}

// figure is one of the large numbers on top.
type figure struct{ Label, Value, Note, Class string }

// money is one bar of the picture: shares are percent of its width.
type money struct {
	Value, Month  string
	Stays, Change float64
}

// launchMoney is the picture of what the launches cost against the bound.
type launchMoney struct {
	Chosen, Worst, Bound, Gap string
	ChosenAt, WorstAt         float64 // percent of the dearest
	BoundAt                   float64
	HasBound                  bool
}

type bound struct {
	Pools, Total string
	Rows         []boundRow
}

type boundRow struct{ Resource, Demand, Dual, Worth string }

type node struct {
	Count          int
	Title, Name    string
	Type, Zone     string
	Capacity       string
	Price, Each    string
	Pool           string
	State          string
	Bars           []bar
	Pods           []string
	OptionsSummary string
	Options        []option
	OptionsHidden  int
	Notes          []string
	Rules          []string // of its pods, which shaped it
}

// bar is how full a node is of one resource; shares are percent.
type bar struct {
	Resource, Short             string // Short leaves out the vendor's domain
	Figure, Percent             string
	Daemons, Used, Added, Spare float64
	Over                        bool
}

type option struct {
	Type, Zone, Capacity, Price, Reservation string
	Chosen                                   bool
}

type verdict struct {
	Objects     []string
	Code        plan.Code
	Detail      string
	Meaning, Do string
	Count       int
	Pools       []plan.PoolVerdict
}

type move struct {
	From, To string
	Pods     []string
}

type warning struct {
	Code    plan.Code
	Detail  string
	Objects string
}

func newView(p *plan.Plan) *view {
	m := p.Lookup()
	v := &view{
		What: "Plan for", Title: "cluster " + p.Cluster, Region: p.Region, ID: p.ID,
		Time:    p.Now.UTC().Format("2 January 2006, 15:04:05 UTC"),
		Outcome: plan.Outcome(p), Explained: p.Explained, NewNodes: len(p.Launches),
	}
	if p.Cluster == "" {
		v.Title = "a cluster without a name"
	}
	if p.Diff != nil {
		v.Diff = newComparison(p.Diff)
		v.Changes, v.ExplainedBefore = v.Diff.Changes, p.Diff.Explained
	}
	if !p.Complete {
		if v.Incomplete = p.Incomplete; len(v.Incomplete) == 0 {
			v.Incomplete = []string{"the reading of the cluster is not complete"}
		}
	}
	if c := p.Catalogue; c.Region != "" || c.Source != "" {
		v.Catalogue = fmt.Sprintf("Types and prices: %s, %s, %s", c.Region, c.Date, c.Source)
	}
	v.money(p)
	v.launches(p, m)
	v.nodes(p, m)
	for _, g := range p.Displacements(m) {
		v.Moves = append(v.Moves, move{g.From, g.To, chips(g.Pods)})
	}
	for _, g := range p.CannotRun(m) {
		v.CannotRun = append(v.CannotRun, verdictOf(&g))
		v.CannotRunCount += g.Count
	}
	for _, g := range p.NotPlanned(m) {
		v.NotPlanned = append(v.NotPlanned, verdictOf(&g))
		v.NotPlannedCount += g.Count
	}
	for _, r := range p.Remarks() {
		v.Remarks = append(v.Remarks, verdict{Objects: []string{r.Object}, Code: r.Code, Detail: r.Detail, Meaning: plan.Info(r.Code).Meaning, Pools: r.Pools})
	}
	v.Tables = slices.DeleteFunc([]*sorted{nodesTable(p), podsTable(p)}, func(t *sorted) bool { return t == nil })
	v.Memory = p.Memory.Lines(p.Launches)
	v.Warnings = warningsOf(p.Warnings)
	return v
}

func warningsOf(ws []plan.Warning) []warning {
	var out []warning
	for _, w := range plan.WarningGroups(ws) {
		out = append(out, warning{w.Code, w.Detail, few(w.Objects, 6)})
	}
	return out
}

func (v *view) money(p *plan.Plan) {
	s := &p.Summary
	note := plan.Count(len(p.Nodes), "node")
	if s.Launches > 0 {
		note += fmt.Sprintf(" + %d new", s.Launches)
	}
	v.Figures = []figure{
		{"now", plan.Dollars(s.PriceBefore), plan.PerMonth(s.PriceBefore) + " a month", ""},
		{"after this plan", plan.Dollars(s.PriceAfter), plan.PerMonth(s.PriceAfter) + " a month, " + note, "strong"},
	}
	if s.Launches > 0 {
		note := "at most " + plan.Dollars(s.LaunchPriceWorst) + " with the dearest options"
		if s.Committed > 0 {
			note = plan.Dollars(s.Committed) + " of it committed already (Savings Plans, reserved instances); " + note
		}
		v.Figures = append(v.Figures, figure{"new nodes", plan.Dollars(s.LaunchPrice), note, ""})
	}
	if s.Launches > 0 && s.LaunchLowerBound > 0 {
		class := ""
		if s.LaunchPrice <= s.LaunchLowerBound+s.LaunchLowerBound/20 {
			class = "good"
		}
		v.Figures = append(v.Figures, figure{"above the lower bound", plan.Gap(s.LaunchPrice, s.LaunchLowerBound), "no plan for these pods and pools costs less than " + plan.Dollars(s.LaunchLowerBound), class})
	}
	if s.Unschedulable > 0 {
		v.Figures = append(v.Figures, figure{"cannot run", plan.Count(s.Unschedulable, "pod"), "the reasons are below", "bad"})
	}
	top := max(s.PriceBefore, s.PriceAfter, 1)
	v.Now = money{plan.Dollars(s.PriceBefore), plan.PerMonth(s.PriceBefore), percent(s.PriceBefore, top), 0}
	v.After = money{plan.Dollars(s.PriceAfter), plan.PerMonth(s.PriceAfter), percent(s.PriceAfter-s.LaunchPrice, top), percent(s.LaunchPrice, top)}
	if s.Launches > 0 {
		most := max(s.LaunchPriceWorst, s.LaunchPrice, s.LaunchLowerBound, 1)
		v.Launch = &launchMoney{
			Chosen: plan.Dollars(s.LaunchPrice), Worst: plan.Dollars(s.LaunchPriceWorst), Bound: plan.Dollars(s.LaunchLowerBound),
			Gap: plan.Gap(s.LaunchPrice, s.LaunchLowerBound), HasBound: s.LaunchLowerBound > 0,
			ChosenAt: percent(s.LaunchPrice, most), WorstAt: percent(s.LaunchPriceWorst, most), BoundAt: percent(s.LaunchLowerBound, most),
		}
	}
	for i := range p.Bounds {
		v.Bounds = append(v.Bounds, boundOf(&p.Bounds[i]))
	}
}

func boundOf(b *plan.Bound) bound {
	out := bound{Total: plan.Dollars(b.Total), Pools: strings.Join(b.Pools, ", ")}
	var names []string
	for n := range b.Demand {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		unit := map[string]string{"cpu": "cores", "memory": "GiB", "ephemeral-storage": "GiB"}[n]
		out.Rows = append(out.Rows, boundRow{
			Resource: n,
			Demand:   strings.TrimSpace(fmt.Sprintf("%.2f %s", b.Demand[n], unit)),
			Dual:     fmt.Sprintf("$%.6f", b.Duals[n]/1e6),
			Worth:    fmt.Sprintf("$%.4f", b.Demand[n]*b.Duals[n]/1e6),
		})
	}
	return out
}

// percent is 100 a/b within 0 and 100, to a hundredth.
func percent(a, b int64) float64 {
	if b <= 0 || a <= 0 {
		return 0
	}
	return float64(int64(min(float64(a)/float64(b), 1)*10_000+0.5)) / 100
}

func (v *view) launches(p *plan.Plan, m plan.Lookup) {
	groups := p.LaunchGroups(m)
	if len(groups) > maxLaunchCards {
		v.Launches = launchSums(p, m)
		return
	}
	most := 0 // all
	if len(groups) > manyCards {
		most = fewOptions
	}
	for _, g := range groups {
		v.Launches = append(v.Launches, launchNode(g, most))
	}
}

// launchNode is the card of equal launches; options past the first most ones are
// only counted (0: all are shown).
func launchNode(g plan.LaunchGroup, most int) node {
	l := g.Launches[0]
	n := node{
		Count: len(g.Launches), Type: l.Chosen.InstanceType, Zone: l.Chosen.Zone, Capacity: l.Chosen.CapacityType,
		Price: plan.Dollars(l.Chosen.Price), Pool: l.NodePool, Bars: bars(l.Shares(true)), Pods: chips(g.Pods),
		OptionsSummary: plan.Options(l),
	}
	if n.Count > 1 {
		n.Each = "each"
	}
	var names []string
	for _, x := range g.Launches {
		names = append(names, x.Name)
	}
	n.Name = few(names, 4)
	options := l.Options
	if most > 0 && len(options) > most {
		n.OptionsHidden = len(options) - most
		options = options[:most]
	}
	for i := range options {
		o := &options[i]
		n.Options = append(n.Options, option{o.InstanceType, o.Zone, o.CapacityType, plan.Dollars(o.Price), o.ReservationID, *o == l.Chosen})
	}
	if l.Limited != "" {
		n.Notes = append(n.Notes, l.Limited)
	}
	n.Notes = append(n.Notes, l.Relaxed...)
	n.Rules = l.Notes
	return n
}

func (v *view) nodes(p *plan.Plan, m plan.Lookup) {
	pods := map[string][]string{}
	for _, pl := range p.Placements {
		pods[pl.Node] = append(pods[pl.Node], pl.Pod)
	}
	var changed, quiet []*plan.NodeUse
	for i := range p.Nodes {
		if u := &p.Nodes[i]; pods[u.Name] != nil {
			changed = append(changed, u)
		} else {
			quiet = append(quiet, u)
		}
	}
	v.QuietCount = len(quiet)
	groups := p.PlacementGroups(m)
	if len(groups) > maxChangedCards {
		v.Changed = nodeSums(changed, m, pods)
	} else {
		for _, g := range groups {
			v.Changed = append(v.Changed, changedNode(g))
		}
	}
	if len(quiet) > maxQuietCards {
		v.Quiet = nodeSums(quiet, m, nil)
		return
	}
	for _, u := range quiet {
		v.Quiet = append(v.Quiet, nodeOf(u))
	}
}

func changedNode(g plan.NodeGroup) node {
	n := nodeOf(g.Nodes[0])
	n.Count, n.Pods = len(g.Nodes), chips(g.Pods)
	if n.Count > 1 {
		var names []string
		for _, u := range g.Nodes {
			names = append(names, u.Name)
		}
		n.Name = few(names, 4)
	}
	return n
}

func nodeOf(u *plan.NodeUse) node {
	n := node{Count: 1, Name: u.Name, Type: u.InstanceType, Zone: u.Zone, Capacity: u.CapacityType, Pool: u.NodePool, Price: "price unknown"}
	if u.PriceKnown {
		n.Price = plan.Dollars(u.Price)
	}
	if u.InFlight {
		n.State = "on its way"
	}
	if !u.Allocatable.IsZero() {
		n.Bars = bars(u.Shares(true))
	}
	return n
}

func bars(shares []plan.Share) []bar {
	var out []bar
	for _, s := range shares {
		sum := s.Daemons + s.Used + s.Added
		b := bar{
			Resource: s.Resource, Short: s.Resource[strings.LastIndex(s.Resource, "/")+1:], Over: sum > s.Total, Percent: s.Percent(),
			Figure:  plan.Rounded(s.Resource, sum) + " of " + plan.Rounded(s.Resource, s.Total),
			Daemons: percent(s.Daemons, s.Total), Used: percent(s.Used, s.Total), Added: percent(s.Added, s.Total),
		}
		b.Used = min(b.Used, 100-b.Daemons)
		b.Added = min(b.Added, 100-b.Daemons-b.Used)
		b.Spare = 100 - b.Daemons - b.Used - b.Added
		out = append(out, b)
	}
	return out
}

// chips name groups of pods; what is too much for a card is counted.
func chips(groups []plan.PodGroup) []string {
	var out []string
	hidden := 0
	for i := range groups {
		if i >= maxPodChips {
			hidden += len(groups[i].Pods)
			continue
		}
		c := groups[i].Label()
		if ask := groups[i].Ask(); ask != "" {
			c += " (" + ask + ")"
		}
		out = append(out, c)
	}
	if hidden > 0 {
		out = append(out, "and "+plan.Count(hidden, "more pod"))
	}
	return out
}

func verdictOf(g *plan.VerdictGroup) verdict {
	info := plan.Info(plan.Telling(g.Verdict))
	detail, pools := g.Verdict.Tree()
	v := verdict{Code: g.Verdict.Code, Detail: detail, Meaning: plan.Info(g.Verdict.Code).Meaning, Count: g.Count, Pools: pools}
	if info.Do != "Nothing." {
		v.Do = info.Do
	}
	v.Objects = chips(g.Pods)
	return v
}

func few(names []string, n int) string {
	if len(names) <= n+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
