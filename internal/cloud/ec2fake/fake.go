package ec2fake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
)

// Type is an instance type that the fake offers.
type Type struct {
	Name string
	Arch string // amd64, arm64
	VCPU int64
	// OnDemand and Spot are micro-dollars per hour; Spot 0 = not offered as spot.
	OnDemand, Spot int64
}

// Offer names a type in a zone as a capacity type. "*" in a field means any.
type Offer struct{ Type, Zone, CapacityType string }

func (o Offer) covers(typ, zone, ct string) bool {
	return (o.Type == "*" || o.Type == typ) && (o.Zone == "*" || o.Zone == zone) && (o.CapacityType == "*" || o.CapacityType == ct)
}

// Instance is an instance that the fake made.
type Instance struct {
	ID           string
	Type         string
	Zone         string
	ZoneID       string
	Subnet       string
	ImageID      string
	Spot         bool
	Price        int64
	Reservation  string // the capacity reservation it is in
	Targeted     bool   // launched into it on purpose
	Template     string
	Attempt      string // token of the fleet that made it
	Tags         map[string]string
	Launched     time.Time
	VisibleFrom  time.Time // before it, describing does not know the instance
	RunningFrom  time.Time
	ShuttingFrom time.Time // zero: not ordered to end
	Profile      string
	Groups       []string
	PrivateDNS   string
	UserData     string // base64, as the template has it
}

// endsAfter is how long an instance is shutting down.
const endsAfter = 30 * time.Second

// State is the state of an instance at a time.
func (i *Instance) State(now time.Time) types.InstanceStateName {
	switch {
	case !i.ShuttingFrom.IsZero() && !now.Before(i.ShuttingFrom.Add(endsAfter)):
		return types.InstanceStateNameTerminated
	case !i.ShuttingFrom.IsZero():
		return types.InstanceStateNameShuttingDown
	case now.Before(i.RunningFrom):
		return types.InstanceStateNamePending
	}
	return types.InstanceStateNameRunning
}

// Call is what a hook sees of a call.
type Call struct {
	N  int    // number of the call, from 1
	Op string // CreateFleet
	In any    // the SDK's input
}

// Fault is what a hook makes of a call. Before is returned instead of acting, After
// instead of the answer, once the fake has acted: a lost response.
type Fault struct{ Before, After error }

// EC2 is the fake. Its exported fields may be changed between calls.
type EC2 struct {
	Now  func() time.Time
	Seed string
	// Hook, when set, is asked before every call.
	Hook func(Call) Fault
	// Statuses are the instances that are not well, by what is asked for; nil = all are.
	Statuses func(filter string, values []string) []types.InstanceStatus
	// Denied are IAM actions that are refused ("ec2:CreateFleet").
	Denied map[string]bool

	Types map[string]Type
	// TypeInfos are descriptions of types by name, in place of what Types makes of them.
	TypeInfos    map[string]types.InstanceTypeInfo
	Subnets      []types.Subnet
	Groups       []types.SecurityGroup
	Images       []types.Image
	Placements   []types.PlacementGroup
	Reservations []types.CapacityReservation
	Reserved     []types.ReservedInstances
	Profiles     map[string]bool // instance profiles that launches may name; nil = any

	// Short are offers without machines; Left limits how many are left of an offer.
	Short []Offer
	Left  map[Offer]int
	// SpotLimit is how many spot instances the account may have, VCPULimit how many
	// on-demand vCPUs; 0 = no limit.
	SpotLimit  int
	VCPULimit  int64
	NoSpotRole bool // the service-linked role is missing
	// VisibleAfter is how long describing does not know a new instance, RunningAfter how
	// long it is pending.
	VisibleAfter, RunningAfter time.Duration
	// PageSize is how many things one page has; 0 = 1000.
	PageSize int

	mu        sync.Mutex
	calls     []Call
	instances []*Instance
	templates map[string]*storedTemplate
	fleets    map[string]*storedFleet
	counter   int
}

// New returns an empty EC2.
func New(now func() time.Time) *EC2 {
	return &EC2{Now: now, Types: map[string]Type{}, Left: map[Offer]int{}, Denied: map[string]bool{},
		templates: map[string]*storedTemplate{}, fleets: map[string]*storedFleet{}}
}

// AddSubnet adds a subnet with free addresses.
func (f *EC2) AddSubnet(id, zone, zoneID string, free int32, tags ...string) {
	f.Subnets = append(f.Subnets, types.Subnet{
		SubnetId: aws.String(id), AvailabilityZone: aws.String(zone), AvailabilityZoneId: aws.String(zoneID),
		AvailableIpAddressCount: aws.Int32(free), VpcId: aws.String("vpc-1"), Tags: tagList(tags), State: types.SubnetStateAvailable,
	})
}

// AddGroup adds a security group.
func (f *EC2) AddGroup(id, name string, tags ...string) {
	f.Groups = append(f.Groups, types.SecurityGroup{GroupId: aws.String(id), GroupName: aws.String(name), VpcId: aws.String("vpc-1"), Tags: tagList(tags)})
}

// AddImage adds an image; arch is x86_64 or arm64.
func (f *EC2) AddImage(id, name, arch string, created time.Time, tags ...string) {
	f.Images = append(f.Images, types.Image{
		ImageId: aws.String(id), Name: aws.String(name), Architecture: types.ArchitectureValues(arch), State: types.ImageStateAvailable,
		CreationDate: aws.String(created.UTC().Format("2006-01-02T15:04:05.000Z")), OwnerId: aws.String("self"), Tags: tagList(tags),
	})
}

// AddType adds instance types.
func (f *EC2) AddType(list ...Type) {
	for _, t := range list {
		f.Types[t.Name] = t
	}
}

// Instances are all instances ever made, in the order of their making.
func (f *EC2) Instances() []*Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.instances)
}

// Lock runs f while no call does: to change what calls look at.
func (f *EC2) Lock(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// Machines are copies of all instances ever made, as they are now: for whoever plays what
// runs on them.
func (f *EC2) Machines() []Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Instance, len(f.instances))
	for k, i := range f.instances {
		out[k] = *i
		out[k].Tags = maps.Clone(i.Tags)
	}
	return out
}

// Calls are the calls so far; ops filters by name.
func (f *EC2) Calls(ops ...string) []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Call
	for _, c := range f.calls {
		if len(ops) == 0 || slices.Contains(ops, c.Op) {
			out = append(out, c)
		}
	}
	return out
}

// Error is an error as EC2 answers it.
func Error(code, format string, args ...any) error {
	fault := smithy.FaultClient
	if code == "InternalError" || code == "Unavailable" || code == "ServiceUnavailable" {
		fault = smithy.FaultServer
	}
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...), Fault: fault}
}

// do runs one call under the lock, with its faults.
func do[O any](f *EC2, op string, in any, act func() (*O, error)) (*O, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	call := Call{N: len(f.calls) + 1, Op: op, In: in}
	f.calls = append(f.calls, call)
	var fault Fault
	if f.Hook != nil {
		fault = f.Hook(call)
	}
	if fault.Before != nil {
		return nil, fault.Before
	}
	if f.Denied["ec2:"+op] {
		return nil, f.denied("ec2:" + op)
	}
	out, err := act()
	if fault.After != nil {
		return nil, fault.After
	}
	return out, err
}

func (f *EC2) denied(action string) error {
	return Error("UnauthorizedOperation", "You are not authorized to perform this operation. User: arn:aws:sts::111122223333:assumed-role/kerf/sweep is not authorized to perform: %s on resource: arn:aws:ec2:us-east-1:111122223333:* because no identity-based policy allows the %s action. Encoded authorization failure message: c2VjcmV0", action, action)
}

// id makes an id that no order follows from.
func (f *EC2) id(prefix string) string {
	f.counter++
	sum := sha256.Sum256([]byte(f.Seed + "/" + prefix + "/" + strconv.Itoa(f.counter)))
	return prefix + "-" + hex.EncodeToString(sum[:])[:17]
}

func tagList(pairs []string) []types.Tag {
	var out []types.Tag
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, types.Tag{Key: aws.String(pairs[i]), Value: aws.String(pairs[i+1])})
	}
	return out
}

func tagMap(tags []types.Tag) map[string]string {
	out := map[string]string{}
	for _, t := range tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

// page cuts a list; the token is the index to go on from.
func page[T any](f *EC2, list []T, token *string, size *int32) ([]T, *string, error) {
	start := 0
	if token != nil {
		n, err := strconv.Atoi(*token)
		if err != nil || n < 0 || n > len(list) {
			return nil, nil, Error("InvalidNextToken", "The token '%s' is invalid", *token)
		}
		start = n
	}
	limit := 1000
	if f.PageSize > 0 {
		limit = f.PageSize
	}
	if size != nil && int(*size) < limit {
		limit = int(*size)
	}
	end := min(start+limit, len(list))
	if end == len(list) {
		return list[start:end], nil, nil
	}
	return list[start:end], aws.String(strconv.Itoa(end)), nil
}

// match tells whether a thing passes filters: value gives the values of a filter's name,
// tags are its tags. An unknown filter is an error, as EC2 has it.
func match(filters []types.Filter, tags map[string]string, value func(name string) ([]string, bool)) (bool, error) {
	for _, filter := range filters {
		name := aws.ToString(filter.Name)
		if len(filter.Values) > 200 {
			return false, Error("FilterLimitExceeded", "The maximum number of filter values is 200; %s has %d", name, len(filter.Values))
		}
		var have []string
		key, isTag := strings.CutPrefix(name, "tag:")
		switch {
		case isTag:
			if v, ok := tags[key]; ok {
				have = []string{v}
			}
		case name == "tag-key":
			for k := range tags {
				have = append(have, k)
			}
		default:
			var ok bool
			if have, ok = value(name); !ok {
				return false, Error("InvalidParameterValue", "The filter '%s' is invalid", name)
			}
		}
		if !slices.ContainsFunc(filter.Values, func(pattern string) bool {
			return slices.ContainsFunc(have, func(v string) bool { return Wildcard(pattern, v) })
		}) {
			return false, nil
		}
	}
	return true, nil
}

// Wildcard matches a value with EC2's * and ?.
func Wildcard(pattern, value string) bool {
	if pattern == "" {
		return value == ""
	}
	switch pattern[0] {
	case '*':
		for i := 0; i <= len(value); i++ {
			if Wildcard(pattern[1:], value[i:]) {
				return true
			}
		}
		return false
	case '?':
		return value != "" && Wildcard(pattern[1:], value[1:])
	}
	return value != "" && value[0] == pattern[0] && Wildcard(pattern[1:], value[1:])
}
