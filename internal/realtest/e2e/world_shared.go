package e2e

import (
	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/ec2fake"
)

// World is the rig's EC2, with the types of the embedded table, and AWS's public parameters,
// for others that stand on them. Subnets and groups have the tag karpenter.sh/discovery=real.
func World() (*ec2fake.EC2, *ec2fake.SSM) { return newEC2(catalog.Default()) }
