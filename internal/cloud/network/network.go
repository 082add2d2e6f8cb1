package network

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/nodeclass"
)

// Client are the calls of EC2 that the network needs.
type Client interface {
	DescribeSubnets(ctx context.Context, in *ec2.DescribeSubnetsInput, opts ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	DescribeSecurityGroups(ctx context.Context, in *ec2.DescribeSecurityGroupsInput, opts ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error)
	DescribePlacementGroups(ctx context.Context, in *ec2.DescribePlacementGroupsInput, opts ...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error)
}

// TagFilters are filters for tags, sorted. The value "*" asks only for the key; other
// wildcards are EC2's own.
func TagFilters(tags map[string]string) []types.Filter {
	var out []types.Filter
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		if tags[k] == "*" {
			out = append(out, types.Filter{Name: aws.String("tag-key"), Values: []string{k}})
		} else {
			out = append(out, types.Filter{Name: aws.String("tag:" + k), Values: []string{tags[k]}})
		}
	}
	return out
}

// queries are the filter sets of terms: all ids in one, all names in one, each set of tags
// in one. A term with id and tags asks for the id (Karpenter: same).
func queries(terms []nodeclass.SelectorTerm, idFilter, nameFilter string) [][]types.Filter {
	var ids, names []string
	var out [][]types.Filter
	for _, t := range terms {
		switch {
		case t.ID != "":
			ids = append(ids, t.ID)
		case t.Name != "" && nameFilter != "":
			names = append(names, t.Name)
		case len(t.Tags) > 0:
			out = append(out, TagFilters(t.Tags))
		}
	}
	for _, some := range []struct {
		filter string
		values []string
	}{{idFilter, ids}, {nameFilter, names}} {
		if len(some.values) > 0 {
			out = append(out, []types.Filter{{Name: aws.String(some.filter), Values: some.values}})
		}
	}
	return out
}

// Subnets are the subnets that match any of the terms (a class has 1 to 30), most free
// addresses first. None found is no error.
func Subnets(ctx context.Context, c Client, terms []nodeclass.SelectorTerm) ([]nodeclass.Subnet, error) {
	found := map[string]nodeclass.Subnet{}
	for _, filters := range queries(terms, "subnet-id", "") {
		in := &ec2.DescribeSubnetsInput{Filters: filters}
		for {
			page, err := c.DescribeSubnets(ctx, in)
			if err != nil {
				return nil, fmt.Errorf("resolve spec.subnetSelectorTerms: %w", awserr.From(err))
			}
			for _, s := range page.Subnets {
				id := aws.ToString(s.SubnetId)
				found[id] = nodeclass.Subnet{
					ID: id, Zone: aws.ToString(s.AvailabilityZone), ZoneID: aws.ToString(s.AvailabilityZoneId),
					VPC: aws.ToString(s.VpcId), FreeIPs: int64(aws.ToInt32(s.AvailableIpAddressCount)),
				}
			}
			if in.NextToken = page.NextToken; aws.ToString(in.NextToken) == "" {
				break
			}
		}
	}
	out := slices.Collect(maps.Values(found))
	nodeclass.SortSubnets(out)
	return out, nil
}

// SecurityGroups are the groups that match any of the terms, by id; names may hold
// wildcards. None found is no error.
func SecurityGroups(ctx context.Context, c Client, terms []nodeclass.SelectorTerm) ([]nodeclass.SecurityGroup, error) {
	found := map[string]nodeclass.SecurityGroup{}
	for _, filters := range queries(terms, "group-id", "group-name") {
		in := &ec2.DescribeSecurityGroupsInput{Filters: filters}
		for {
			page, err := c.DescribeSecurityGroups(ctx, in)
			if err != nil {
				return nil, fmt.Errorf("resolve spec.securityGroupSelectorTerms: %w", awserr.From(err))
			}
			for _, g := range page.SecurityGroups {
				id := aws.ToString(g.GroupId)
				found[id] = nodeclass.SecurityGroup{ID: id, Name: aws.ToString(g.GroupName)}
			}
			if in.NextToken = page.NextToken; aws.ToString(in.NextToken) == "" {
				break
			}
		}
	}
	out := slices.Collect(maps.Values(found))
	slices.SortFunc(out, func(a, b nodeclass.SecurityGroup) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// PlacementGroup is the group that a selector names, nil without a selector. One that does
// not exist, or is not available, is a refusal.
func PlacementGroup(ctx context.Context, c Client, sel *nodeclass.PlacementSelector) (*nodeclass.PlacementGroup, error) {
	if sel == nil {
		return nil, nil
	}
	in := &ec2.DescribePlacementGroupsInput{}
	field, value := "spec.placementGroupSelector.name", sel.Name
	if sel.ID != "" {
		field, value = "spec.placementGroupSelector.id", sel.ID
		in.GroupIds = []string{sel.ID}
	} else {
		in.GroupNames = []string{sel.Name}
	}
	page, err := c.DescribePlacementGroups(ctx, in)
	if e := awserr.From(err); e != nil && e.Kind != awserr.NotFound {
		return nil, fmt.Errorf("resolve %s: %w", field, e)
	} else if e != nil || len(page.PlacementGroups) == 0 {
		return nil, nodeclass.Refuse(nodeclass.PlacementGroupNotFound, "%s: %q names no placement group of this account and region", field, value)
	}
	g := page.PlacementGroups[0]
	if g.State != "" && g.State != types.PlacementGroupStateAvailable {
		return nil, nodeclass.Refuse(nodeclass.PlacementGroupNotFound, "%s: placement group %q is %s; use one that is available", field, value, g.State)
	}
	return &nodeclass.PlacementGroup{
		ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName), Strategy: string(g.Strategy), Partitions: aws.ToInt32(g.PartitionCount),
	}, nil
}
