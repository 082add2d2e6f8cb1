package checkup

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/doctor"
)

// FindNetwork fills Subnets, of the region, and Groups, of the cluster's VPC.
func (c *Checkup) FindNetwork(ctx context.Context, f *doctor.Facts) {
	c.look(ctx, f, doctor.LookSubnets, func(ctx context.Context) error {
		in := &ec2.DescribeSubnetsInput{}
		for {
			page, err := c.EC2.DescribeSubnets(ctx, in)
			if err != nil {
				return err
			}
			for _, s := range page.Subnets {
				f.Subnets = append(f.Subnets, doctor.Subnet{
					ID: aws.ToString(s.SubnetId), Zone: aws.ToString(s.AvailabilityZone), VPC: aws.ToString(s.VpcId),
					Free: int64(aws.ToInt32(s.AvailableIpAddressCount)), Tags: tags(s.Tags),
				})
			}
			if in.NextToken = page.NextToken; aws.ToString(in.NextToken) == "" {
				break
			}
		}
		slices.SortFunc(f.Subnets, func(a, b doctor.Subnet) int { return strings.Compare(a.ID, b.ID) })
		return nil
	})
	c.look(ctx, f, doctor.LookGroups, func(ctx context.Context) error {
		if f.EKS == nil || f.EKS.VPC == "" {
			return errors.New("the cluster's VPC is not known")
		}
		in := &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{f.EKS.VPC}}}}
		for {
			page, err := c.EC2.DescribeSecurityGroups(ctx, in)
			if err != nil {
				return err
			}
			for _, g := range page.SecurityGroups {
				f.Groups = append(f.Groups, doctor.Group{ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName), Tags: tags(g.Tags)})
			}
			if in.NextToken = page.NextToken; aws.ToString(in.NextToken) == "" {
				break
			}
		}
		slices.SortFunc(f.Groups, func(a, b doctor.Group) int { return strings.Compare(a.ID, b.ID) })
		return nil
	})
}

func tags(list []types.Tag) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := make(map[string]string, len(list))
	for _, t := range list {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

// family is a family of instance types that has quotas of its own.
type family struct {
	name           string
	onDemand, spot string // codes
	letters        []string
}

// families are those that pools mostly launch.
var families = []family{
	{"standard (A, C, D, H, I, M, R, T, Z)", "L-1216C47A", "L-34B43A08", []string{"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"}},
	{"G and VT", "L-DB2E81BA", "L-3819A6DF", []string{"g", "gr", "vt"}},
	{"P", "L-417A185B", "L-7212CCBC", []string{"p"}},
}

// Letters is the family of a type, or of a family with its generation: "m7g.large" is an m.
func Letters(instanceType string) string {
	return instanceType[:strings.IndexFunc(instanceType+"0", func(r rune) bool { return r < 'a' || r > 'z' })]
}

// FindQuotas fills Quotas, with what is in use. wanted tells of letters of a family and a
// kind (on-demand, spot) whether a pool may launch such.
func (c *Checkup) FindQuotas(ctx context.Context, f *doctor.Facts, wanted func(letters []string, kind string) bool) {
	c.look(ctx, f, doctor.LookQuotas, func(ctx context.Context) error {
		used := map[string]int{} // by kind and letters
		in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(1000), Filters: []types.Filter{{Name: aws.String("instance-state-name"), Values: []string{"pending", "running"}}}}
		for {
			page, err := c.EC2.DescribeInstances(ctx, in)
			if err != nil {
				return err
			}
			for _, r := range page.Reservations {
				for _, i := range r.Instances {
					kind := "on-demand"
					if i.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
						kind = "spot"
					}
					if o := i.CpuOptions; o != nil {
						used[kind+"/"+Letters(string(i.InstanceType))] += int(aws.ToInt32(o.CoreCount) * aws.ToInt32(o.ThreadsPerCore))
					}
				}
			}
			if in.NextToken = page.NextToken; aws.ToString(in.NextToken) == "" {
				break
			}
		}
		for _, fam := range families {
			for _, q := range []doctor.Quota{{Code: fam.onDemand, Kind: "on-demand"}, {Code: fam.spot, Kind: "spot"}} {
				q.Name, q.Wanted = q.Kind+" "+fam.name, wanted(fam.letters, q.Kind)
				if !q.Wanted {
					continue
				}
				out, err := c.Quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: &q.Code})
				if err != nil {
					return err
				}
				if out.Quota == nil {
					return errors.New("an answer without a quota")
				}
				q.Limit = int(aws.ToFloat64(out.Quota.Value))
				for _, l := range fam.letters {
					q.Used += used[q.Kind+"/"+l]
				}
				f.Quotas = append(f.Quotas, q)
			}
		}
		return nil
	})
}

// mostConsoles is how many instances that did not join are looked at closely.
const mostConsoles = 3

// FindTrouble looks closely at instances that are suspect: status checks, and the lines of
// their consoles that say something.
func (c *Checkup) FindTrouble(ctx context.Context, f *doctor.Facts, suspect func(*doctor.Instance) bool) {
	var some []*doctor.Instance
	for i := range f.Instances {
		if suspect(&f.Instances[i]) && len(some) < mostConsoles {
			some = append(some, &f.Instances[i])
		}
	}
	if len(some) == 0 {
		return
	}
	var ids []string
	for _, i := range some {
		ids = append(ids, i.ID)
	}
	c.look(ctx, f, doctor.LookStatus, func(ctx context.Context) error {
		out, err := c.EC2.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{InstanceIds: ids})
		if err != nil {
			return err
		}
		for _, s := range out.InstanceStatuses {
			for _, i := range some {
				if i.ID != aws.ToString(s.InstanceId) {
					continue
				}
				for _, x := range []*types.InstanceStatusSummary{s.SystemStatus, s.InstanceStatus} {
					if x != nil && (i.Status == "" || i.Status == string(types.SummaryStatusOk)) {
						i.Status = string(x.Status)
					}
				}
			}
		}
		return nil
	})
	c.look(ctx, f, doctor.LookRoutes, func(ctx context.Context) error { return c.routes(ctx, f, some, ids) })
	for _, i := range some {
		c.look(ctx, f, doctor.LookConsole, func(ctx context.Context) error {
			in := &ec2.GetConsoleOutputInput{InstanceId: &i.ID, Latest: aws.Bool(true)}
			out, err := c.EC2.GetConsoleOutput(ctx, in)
			if e := awserr.From(err); e != nil && e.Kind == awserr.Invalid { // only instances of the Nitro system have the latest
				in.Latest = nil
				out, err = c.EC2.GetConsoleOutput(ctx, in)
			}
			if err != nil {
				return err
			}
			text, err := base64.StdEncoding.DecodeString(aws.ToString(out.Output))
			if err != nil {
				return err
			}
			i.Console = doctor.Telling(string(text))
			return nil
		})
	}
}

// routes says where the subnets of instances lead, and whether they have public addresses.
func (c *Checkup) routes(ctx context.Context, f *doctor.Facts, some []*doctor.Instance, ids []string) error {
	if f.EKS == nil || f.EKS.VPC == "" {
		return errors.New("the cluster's VPC is not known")
	}
	found, err := c.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: ids})
	if err != nil {
		return err
	}
	public := map[string]bool{}
	for _, r := range found.Reservations {
		for _, i := range r.Instances {
			public[aws.ToString(i.InstanceId)] = aws.ToString(i.PublicIpAddress) != ""
		}
	}
	of, main := map[string]string{}, ""
	in := &ec2.DescribeRouteTablesInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{f.EKS.VPC}}}}
	for {
		page, err := c.EC2.DescribeRouteTables(ctx, in)
		if err != nil {
			return err
		}
		for _, t := range page.RouteTables {
			to := leads(t.Routes)
			for _, a := range t.Associations {
				if aws.ToBool(a.Main) {
					main = to
				} else if s := aws.ToString(a.SubnetId); s != "" {
					of[s] = to
				}
			}
		}
		if in.NextToken = page.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	for _, i := range some {
		var ok bool
		if i.Route, ok = of[i.Subnet]; !ok {
			i.Route = main // subnets of no table of their own have the VPC's
		}
		i.Public = public[i.ID]
	}
	return nil
}

// leads is where the default route of a table leads.
func leads(routes []types.Route) string {
	for _, r := range routes {
		if aws.ToString(r.DestinationCidrBlock) != "0.0.0.0/0" || r.State == types.RouteStateBlackhole {
			continue
		}
		switch {
		case aws.ToString(r.NatGatewayId) != "":
			return "nat"
		case strings.HasPrefix(aws.ToString(r.GatewayId), "igw-"):
			return "internet"
		}
		return "other" // a transit gateway, a firewall, an appliance
	}
	return "none"
}
