package eks

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// EntryAPI is what is asked of EKS about access entries: *eks.Client has it. It needs
// eks:CreateAccessEntry and eks:DescribeAccessEntry.
type EntryAPI interface {
	CreateAccessEntry(context.Context, *awseks.CreateAccessEntryInput, ...func(*awseks.Options)) (*awseks.CreateAccessEntryOutput, error)
	DescribeAccessEntry(context.Context, *awseks.DescribeAccessEntryInput, ...func(*awseks.Options)) (*awseks.DescribeAccessEntryOutput, error)
}

// nodeEntry is the type of entry that lets Linux nodes in.
const nodeEntry = "EC2_LINUX"

// LetNodesIn makes the access entry that lets nodes with a role join a cluster, unless the
// role has one: a principal has one entry, of one type. made tells whether it did; note is
// what a person should know of the one that is there.
func LetNodesIn(ctx context.Context, api EntryAPI, cluster, role string) (made bool, note string, err error) {
	_, err = api.CreateAccessEntry(ctx, &awseks.CreateAccessEntryInput{ClusterName: &cluster, PrincipalArn: &role, Type: aws.String(nodeEntry)})
	if err == nil {
		return true, "", nil
	}
	if _, there := errors.AsType[*types.ResourceInUseException](err); !there {
		return false, "", fmt.Errorf("make the access entry of node role %s: %w", role, err)
	}
	out, err := api.DescribeAccessEntry(ctx, &awseks.DescribeAccessEntryInput{ClusterName: &cluster, PrincipalArn: &role})
	if err != nil {
		return false, "", fmt.Errorf("look at the access entry of node role %s: %w", role, err)
	}
	if out.AccessEntry == nil {
		return false, "", fmt.Errorf("look at the access entry of node role %s: an answer without an entry", role)
	}
	switch kind := aws.ToString(out.AccessEntry.Type); kind {
	case nodeEntry, "EC2_WINDOWS", "EC2", "HYBRID_LINUX":
		if kind != nodeEntry {
			note = fmt.Sprintf("node role %s has an access entry of type %s: Linux nodes cannot join with it; give them another role", role, kind)
		}
	default:
		note = fmt.Sprintf("node role %s has an access entry of type %s: nodes cannot join with it; delete it, and deploy again", role, kind)
	}
	return false, note, nil
}
