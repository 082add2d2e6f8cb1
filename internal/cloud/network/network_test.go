package network_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/network"
	"kerf.sh/kerf/internal/cloud/nodeclass"
)

var ctx = context.Background()

func world() *ec2fake.EC2 {
	e := ec2fake.New(func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) })
	e.PageSize = 1
	e.AddSubnet("subnet-1", "a", "1", 5, "discovery", "prod", "tier", "private")
	e.AddSubnet("subnet-2", "a", "1", 200, "discovery", "prod")
	e.AddSubnet("subnet-3", "b", "2", 200, "discovery", "other")
	e.AddGroup("sg-1", "nodes-blue", "discovery", "prod")
	e.AddGroup("sg-2", "nodes-red")
	e.AddGroup("sg-3", "web")
	e.Placements = []types.PlacementGroup{
		{GroupId: aws.String("pg-1"), GroupName: aws.String("tight"), Strategy: types.PlacementStrategyPartition, PartitionCount: aws.Int32(3), State: types.PlacementGroupStateAvailable},
		{GroupId: aws.String("pg-2"), GroupName: aws.String("going"), Strategy: types.PlacementStrategyCluster, State: types.PlacementGroupStateDeleting},
	}
	return e
}

func TestSubnets(t *testing.T) {
	for name, tt := range map[string]struct {
		terms []nodeclass.SelectorTerm
		want  []string
	}{
		"tags":                      {[]nodeclass.SelectorTerm{{Tags: map[string]string{"discovery": "prod"}}}, []string{"subnet-2", "subnet-1"}},
		"all tags of a term":        {[]nodeclass.SelectorTerm{{Tags: map[string]string{"discovery": "prod", "tier": "private"}}}, []string{"subnet-1"}},
		"any term, each once":       {[]nodeclass.SelectorTerm{{ID: "subnet-3"}, {Tags: map[string]string{"discovery": "*"}}}, []string{"subnet-2", "subnet-3", "subnet-1"}},
		"wildcards":                 {[]nodeclass.SelectorTerm{{Tags: map[string]string{"discovery": "o*r"}}}, []string{"subnet-3"}},
		"an id that does not exist": {[]nodeclass.SelectorTerm{{ID: "subnet-9"}, {ID: "subnet-1"}}, []string{"subnet-1"}},
		"nothing":                   {[]nodeclass.SelectorTerm{{Tags: map[string]string{"discovery": "x"}}}, nil},
	} {
		found, err := network.Subnets(ctx, world(), tt.terms)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, s := range found {
			got = append(got, s.ID)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	found, _ := network.Subnets(ctx, world(), []nodeclass.SelectorTerm{{ID: "subnet-1"}})
	if d := cmp.Diff([]nodeclass.Subnet{{ID: "subnet-1", Zone: "a", ZoneID: "1", VPC: "vpc-1", FreeIPs: 5}}, found); d != "" {
		t.Errorf("subnet (-want +got):\n%s", d)
	}
}

func TestSecurityGroups(t *testing.T) {
	for name, tt := range map[string]struct {
		terms []nodeclass.SelectorTerm
		want  []nodeclass.SecurityGroup
	}{
		"name with a wildcard": {[]nodeclass.SelectorTerm{{Name: "nodes-*"}}, []nodeclass.SecurityGroup{{ID: "sg-1", Name: "nodes-blue"}, {ID: "sg-2", Name: "nodes-red"}}},
		"id, name and tags":    {[]nodeclass.SelectorTerm{{ID: "sg-3"}, {Name: "nodes-red"}, {Tags: map[string]string{"discovery": "prod"}}}, []nodeclass.SecurityGroup{{ID: "sg-1", Name: "nodes-blue"}, {ID: "sg-2", Name: "nodes-red"}, {ID: "sg-3", Name: "web"}}},
		"nothing":              {[]nodeclass.SelectorTerm{{Name: "x"}}, nil},
	} {
		got, err := network.SecurityGroups(ctx, world(), tt.terms)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestPlacementGroup(t *testing.T) {
	if g, err := network.PlacementGroup(ctx, world(), nil); g != nil || err != nil {
		t.Errorf("without a selector: %v, %v", g, err)
	}
	want := &nodeclass.PlacementGroup{ID: "pg-1", Name: "tight", Strategy: "partition", Partitions: 3}
	for _, sel := range []nodeclass.PlacementSelector{{Name: "tight"}, {ID: "pg-1"}} {
		got, err := network.PlacementGroup(ctx, world(), &sel)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%+v: %v\n%s", sel, err, d)
		}
	}
	for _, name := range []string{"missing", "going"} {
		var no *nodeclass.Refusal
		if _, err := network.PlacementGroup(ctx, world(), &nodeclass.PlacementSelector{Name: name}); !errors.As(err, &no) || no.Reason != nodeclass.PlacementGroupNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoAnswer: an error is no empty answer.
func TestNoAnswer(t *testing.T) {
	e := world()
	e.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.N < 2 {
			return ec2fake.Fault{}
		}
		return ec2fake.Fault{Before: ec2fake.Error("RequestLimitExceeded", "x")}
	}
	term := []nodeclass.SelectorTerm{{Tags: map[string]string{"discovery": "*"}}}
	if got, err := network.Subnets(ctx, e, term); got != nil || !awserr.Is(err, awserr.Throttled) {
		t.Errorf("second page throttled: %v, %v", got, err)
	}
	if got, err := network.SecurityGroups(ctx, e, term); got != nil || !awserr.Is(err, awserr.Throttled) {
		t.Errorf("groups: %v, %v", got, err)
	}
	var no *nodeclass.Refusal
	if _, err := network.PlacementGroup(ctx, e, &nodeclass.PlacementSelector{Name: "tight"}); err == nil || errors.As(err, &no) {
		t.Errorf("placement group: %v; a throttle is no refusal", err)
	}
}
