package kube

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

// remembered is a snapshot with all that a ledger remembers, twice where a pod was made
// anew under its name.
func remembered() *snapshot.Snapshot {
	until := time.Date(2026, 3, 4, 12, 3, 0, 123456789, time.UTC)
	s := &snapshot.Snapshot{
		Cluster: "c", Region: "us-east-1", Now: now, Settings: snapshot.DefaultSettings(),
		Nominations: []snapshot.Nomination{
			{Namespace: "a", Pod: "db-0", UID: "1", Node: "n1", Until: until}, {Namespace: "a", Pod: "db-0", UID: "2", Node: "n1", Until: until},
			{Namespace: "a", Pod: "db-0", UID: "2", Node: "n2", Until: until}, {Namespace: "b", Pod: "web", Node: "n2"},
		},
		Shortages: []snapshot.Shortage{
			{InstanceType: "m5.large", Zone: "z-a", CapacityType: "spot", Until: until, Code: "InsufficientInstanceCapacity"},
			{CapacityType: "spot", Until: until, Code: "MaxSpotInstanceCountExceeded"},
			{CapacityType: "reserved", ReservationID: "cr-1", Until: until, Code: "ReservationCapacityExceeded"},
		},
		Setbacks: []snapshot.Setback{
			{InstanceType: "m5.large", Zone: "z-a", CapacityType: "spot", Interrupted: []time.Time{until.Add(-time.Hour), until.Add(-time.Minute)}, Failures: 2, Failed: until},
			{CapacityType: "spot", Failures: 1, Failed: until},
		},
		Rests: []snapshot.Rest{{Node: "n1", Why: "it got pods", Until: until}, {Node: "n2", Why: "taken back", TakenBack: true}},
		Learned: []snapshot.LearnedSize{
			{InstanceType: "m5.large", ImageID: "ami-1", Shape: "x", Capacity: snapshot.Resources{CPU: 2000}, Allocatable: snapshot.Resources{CPU: 1930, Extended: map[string]int64{"a/b": 1}}},
			{InstanceType: "m5.large", ImageID: "ami-1", Shape: "y", Allocatable: snapshot.Resources{CPU: 1930}},
		},
	}
	s.Normalize()
	return s
}

func TestRememberedIsSaved(t *testing.T) {
	s := remembered()
	roundTrip(t, s)
	var b strings.Builder
	if err := Save(&b, s); err != nil {
		t.Fatal(err)
	}
	got, _, err := Read([]Source{from("saved.json", b.String())}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got); diff != "" {
		t.Errorf("saved and read (-saved +read):\n%s", diff)
	}
	indented := strings.ReplaceAll(b.String(), `{"instanceType"`, "{\n \"instanceType\"")
	if again, _, err := Read([]Source{from("saved.yaml", "# by hand\n"+indented)}, Options{}); err != nil || cmp.Diff(s, again) != "" {
		t.Errorf("as YAML: %v\n%s", err, cmp.Diff(s, again))
	}
	for text, want := range map[string]string{
		strings.Replace(b.String(), `"until":"2026-03-04T12:03:00.123456789Z"`, `"until":"soon"`, 1): "until",
		strings.Replace(b.String(), `"shape":"x"`, `"shapes":"x"`, 1):                                `unknown field`,
	} {
		if _, _, err := Read([]Source{from("saved.json", text)}, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// TestRemember: what is remembered is there before anything is removed, on both sides of
// a what-if, and is no reading of nodes.
func TestRemember(t *testing.T) {
	asked := 0
	o := Options{Now: now, Remember: func(s *snapshot.Snapshot, saved bool) {
		asked++
		if saved || !s.Now.Equal(now) {
			t.Errorf("saved %v at %s", saved, s.Now)
		}
		s.NodeClaims = append(s.NodeClaims, snapshot.NodeClaim{Name: "coming"})
		s.Shortages = []snapshot.Shortage{{InstanceType: "b"}, {InstanceType: "a"}}
	}}
	sources := []Source{from("ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")}
	s, _, err := Read(sources, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.NodeClaims) != 1 || len(s.Incomplete) > 0 || s.Shortages[0].InstanceType != "a" {
		t.Errorf("%+v", s)
	}
	before, after, err := ReadWhatIf(sources, Overlay{Remove: []snapshot.Ref{{Kind: "Node", Name: "coming"}}}, o)
	if err != nil {
		t.Fatal(err)
	}
	if !before.Snapshot.NodeClaims[0].Deleting.IsZero() || after.Snapshot.NodeClaims[0].Deleting.IsZero() {
		t.Errorf("before %+v, after %+v", before.Snapshot.NodeClaims, after.Snapshot.NodeClaims)
	}
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
	var b strings.Builder
	if err := Save(&b, s); err != nil {
		t.Fatal(err)
	}
	told := false
	again, _, err := Read([]Source{from("saved.json", b.String())}, Options{Remember: func(_ *snapshot.Snapshot, saved bool) { told = saved }})
	if err != nil || !told {
		t.Errorf("%v: a saved snapshot was not told of", err)
	}
	if diff := cmp.Diff(s, again); diff != "" { // a claim without any node is no new doubt
		t.Error(diff)
	}
}
