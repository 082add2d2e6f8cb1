package fleet

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/template"
)

// Instance is an instance as EC2 has it.
type Instance = launch.Described

// idsPerCall is how many instances one call names (Karpenter: same).
const idsPerCall = 500

// Describe finds instances by id. missing are ids that EC2 does not know, which a young
// instance may be among: EC2 hears of what it made with a delay (BC-27). One unknown id
// says nothing about the others. Results are by id.
func (f *Fleet) Describe(ctx context.Context, ids []string) (found []Instance, missing []string, err error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for chunk := range slices.Chunk(ids, idsPerCall) {
		some, unknown, err := f.describeSome(ctx, chunk)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, some...)
		missing = append(missing, unknown...)
	}
	sortInstances(found)
	return found, missing, nil
}

func (f *Fleet) describeSome(ctx context.Context, ids []string) ([]Instance, []string, error) {
	var found []Instance
	missing, err := isolate(ids, func(some []string) error {
		got, err := f.describe(ctx, &ec2.DescribeInstancesInput{InstanceIds: some})
		found = append(found, got...)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	// An answer may leave an id out without an error.
	have := map[string]bool{}
	for i := range found {
		have[found[i].ID] = true
	}
	for _, id := range ids {
		if !have[id] && !slices.Contains(missing, id) {
			missing = append(missing, id)
		}
	}
	slices.Sort(missing)
	return found, missing, nil
}

var instanceID = regexp.MustCompile(`i-[0-9a-zA-Z]+`)

// isolate calls with ids; when EC2 does not know some of them, it takes those out that the
// message names and calls again, and halves the rest when the message names none. It
// returns the unknown ones.
func isolate(ids []string, call func(ids []string) error) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err := call(ids)
	e := awserr.From(err)
	if e == nil {
		return nil, nil
	}
	if e.Kind != awserr.NotFound && e.Code != "InvalidInstanceID.Malformed" {
		return nil, err
	}
	named := map[string]bool{}
	for _, id := range instanceID.FindAllString(e.Message, -1) {
		named[id] = slices.Contains(ids, id)
	}
	var unknown, rest []string
	for _, id := range ids {
		if named[id] || strings.Contains(e.Message, "'"+id+"'") {
			unknown = append(unknown, id)
		} else {
			rest = append(rest, id)
		}
	}
	switch {
	case len(unknown) > 0:
		more, err := isolate(rest, call)
		return append(unknown, more...), err
	case len(ids) == 1:
		return ids, nil
	}
	a, err := isolate(ids[:len(ids)/2], call)
	if err != nil {
		return nil, err
	}
	b, err := isolate(ids[len(ids)/2:], call)
	return append(a, b...), err
}

// ByAttempt finds the instances of attempts by their tag, in every state, so that sorted
// ids pair with claims as they did in the answer. An empty list proves nothing at first:
// EC2 shows what it made with a delay. Results are by attempt, each by id.
func (f *Fleet) ByAttempt(ctx context.Context, attempts ...string) (map[string][]Instance, error) {
	out := map[string][]Instance{}
	for chunk := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(attempts))), 200) {
		found, err := f.describe(ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("tag:" + nodeclass.TagAttempt), Values: chunk}}})
		if err != nil {
			return nil, err
		}
		sortInstances(found)
		for _, i := range found {
			a := i.Tags[nodeclass.TagAttempt]
			out[a] = append(out[a], i)
		}
	}
	return out, nil
}

// List finds all instances of a cluster that Kerf or Karpenter made and that are not
// terminated, by id. It is complete or an error.
func (f *Fleet) List(ctx context.Context, cluster string) ([]Instance, error) {
	filter := func(name string, values ...string) types.Filter {
		return types.Filter{Name: aws.String(name), Values: values}
	}
	found, err := f.describe(ctx, &ec2.DescribeInstancesInput{
		MaxResults: aws.Int32(1000),
		Filters: []types.Filter{
			filter("tag-key", nodeclass.TagNodePool), filter("tag-key", nodeclass.TagNodeClass), filter("tag:"+nodeclass.TagClusterName, cluster),
			filter("instance-state-name", "pending", "running", "stopping", "stopped", "shutting-down"),
		},
	})
	sortInstances(found)
	return found, err
}

func sortInstances(list []Instance) {
	slices.SortFunc(list, func(a, b Instance) int { return strings.Compare(a.ID, b.ID) })
}

func (f *Fleet) describe(ctx context.Context, in *ec2.DescribeInstancesInput) ([]Instance, error) {
	var out []Instance
	for {
		page, err := f.Client.DescribeInstances(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("describe instances: %w", awserr.Explain(ctx, f.Decoder, awserr.From(err)))
		}
		for _, r := range page.Reservations {
			for i := range r.Instances {
				out = append(out, read(&r.Instances[i]))
			}
		}
		if aws.ToString(page.NextToken) == "" {
			return out, nil
		}
		in.NextToken = page.NextToken
	}
}

func read(i *types.Instance) Instance {
	out := Instance{
		ID: aws.ToString(i.InstanceId), Type: string(i.InstanceType), ImageID: aws.ToString(i.ImageId), Subnet: aws.ToString(i.SubnetId),
		PrivateDNS: aws.ToString(i.PrivateDnsName), Launched: aws.ToTime(i.LaunchTime), CapacityType: catalog.OnDemand, Tags: map[string]string{},
	}
	if i.State != nil {
		out.State = string(i.State.Name)
	}
	if i.StateReason != nil {
		out.StateReason = aws.ToString(i.StateReason.Code)
	}
	if p := i.Placement; p != nil {
		out.Zone, out.ZoneID = aws.ToString(p.AvailabilityZone), aws.ToString(p.AvailabilityZoneId)
		out.Tenancy, out.PlacementGroup, out.Partition = string(p.Tenancy), aws.ToString(p.GroupId), aws.ToInt32(p.PartitionNumber)
	}
	if i.IamInstanceProfile != nil {
		out.Profile = aws.ToString(i.IamInstanceProfile.Arn)
	}
	for _, g := range i.SecurityGroups {
		out.SecurityGroups = append(out.SecurityGroups, aws.ToString(g.GroupId))
	}
	slices.Sort(out.SecurityGroups)
	for _, t := range i.Tags {
		out.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	switch {
	case i.InstanceLifecycle == types.InstanceLifecycleTypeSpot:
		out.CapacityType = catalog.Spot
	case aws.ToString(i.CapacityReservationId) != "" && targeted(i.CapacityReservationSpecification):
		out.CapacityType, out.ReservationID = catalog.Reserved, aws.ToString(i.CapacityReservationId)
	}
	return out
}

// targeted reports whether an instance was launched into a reservation on purpose.
func targeted(s *types.CapacityReservationSpecificationResponse) bool {
	return s != nil && (s.CapacityReservationTarget != nil || s.CapacityReservationPreference == types.CapacityReservationPreferenceCapacityReservationsOnly)
}

// Terminate ends instances. ending are those that EC2 took the order for, missing those it
// does not know (any more, or not yet). An error may come with both.
func (f *Fleet) Terminate(ctx context.Context, ids []string) (ending, missing []string, err error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for chunk := range slices.Chunk(ids, idsPerCall) {
		unknown, err := isolate(chunk, func(some []string) error {
			_, err := f.Client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: some})
			if err != nil {
				return fmt.Errorf("terminate instances: %w", awserr.Explain(ctx, f.Decoder, awserr.From(err)))
			}
			ending = append(ending, some...)
			return nil
		})
		missing = append(missing, unknown...)
		if err != nil {
			return ending, missing, err
		}
	}
	slices.Sort(ending)
	slices.Sort(missing)
	return ending, missing, nil
}

// TagRegistered tags an instance with its node and claim, where it has no such tag yet:
// the user's Name wins. These are the only tags that policies allow after launch.
func (f *Fleet) TagRegistered(ctx context.Context, i *Instance, cluster, claim, node string) error {
	tags := map[string]string{nodeclass.TagName: node, nodeclass.TagNodeClaim: claim, nodeclass.TagClusterName: cluster}
	maps.DeleteFunc(tags, func(k, _ string) bool { _, ok := i.Tags[k]; return ok })
	if len(tags) == 0 {
		return nil
	}
	if _, err := f.Client.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{i.ID}, Tags: template.Tags(tags)}); err != nil {
		return fmt.Errorf("tag instance %s: %w", i.ID, awserr.Explain(ctx, f.Decoder, awserr.From(err)))
	}
	return nil
}
