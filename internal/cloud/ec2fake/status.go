package ec2fake

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// DescribeInstanceStatus tells of instances as Statuses has it, by the name and the values
// of the one filter that it takes.
func (f *EC2) DescribeInstanceStatus(_ context.Context, in *ec2.DescribeInstanceStatusInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error) {
	return do(f, "DescribeInstanceStatus", in, func() (*ec2.DescribeInstanceStatusOutput, error) {
		if len(in.Filters) != 1 {
			return nil, Error("InvalidParameterValue", "%d filters are joined with \"and\": want one", len(in.Filters))
		}
		out := &ec2.DescribeInstanceStatusOutput{}
		if f.Statuses != nil {
			out.InstanceStatuses = f.Statuses(aws.ToString(in.Filters[0].Name), in.Filters[0].Values)
		}
		return out, nil
	})
}
