package fakeaws

import (
	"context"
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/cloud/ec2fake"
)

var keys = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKIDSWEEP", SecretAccessKey: "secret"}, nil
})

// filler fills values with something that is not zero and nowhere the same.
type filler struct{ n int }

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case v.Type() == timeType:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 1, 0, 0, f.n, 0, time.UTC)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Type().Field(i).IsExported() && name != "ResultMetadata" {
				f.fill(v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprintf("<v&%d>", f.n))
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.Int32 || v.Kind() == reflect.Int64:
		v.SetInt(int64(f.n))
	case v.Kind() == reflect.Float32 || v.Kind() == reflect.Float64:
		v.SetFloat(float64(f.n) + 0.5)
	default:
		panic("fill " + v.Type().String())
	}
}

// exact compares what is exported.
var exact = cmp.Options{
	cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && (f.Name() == "ResultMetadata" || strings.ToLower(f.Name()[:1]) == f.Name()[:1])
	}, cmp.Ignore()),
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	cmp.Comparer(func(middleware.Metadata, middleware.Metadata) bool { return true }),
}

// roundTrip sends a filled request through the SDK, and a filled answer back.
func roundTrip[I, O, P any](t *testing.T, q *query, name string, call func(context.Context, *I, ...func(*P)) (*O, error)) {
	t.Helper()
	in, out, f := new(I), new(O), &filler{}
	f.fill(reflect.ValueOf(in).Elem())
	f.fill(reflect.ValueOf(out).Elem())
	if r, ok := any(in).(*ec2.RunInstancesInput); ok {
		r.UserData = aws.String("dGV4dA==")
	}
	var seen *I
	q.actions[name] = serves(func(_ context.Context, in *I, _ ...func(*P)) (*O, error) { seen = in; return out, nil })
	got, err := call(context.Background(), in)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if d := cmp.Diff(in, seen, exact); d != "" {
		t.Errorf("%s: request, sent (-) and read (+):\n%s", name, d)
	}
	if d := cmp.Diff(out, got, exact); d != "" {
		t.Errorf("%s: answer, written (-) and read (+):\n%s", name, d)
	}
}

func serve(t *testing.T, d dialect) (*query, *string) {
	q := &query{dialect: d, actions: map[string]operation{}}
	s := httptest.NewServer(q)
	t.Cleanup(s.Close)
	return q, &s.URL
}

func TestEC2OnTheWire(t *testing.T) {
	q, url := serve(t, ec2Query)
	c := ec2.New(ec2.Options{Region: Region, BaseEndpoint: url, Credentials: keys})
	roundTrip(t, q, "CreateFleet", c.CreateFleet)
	roundTrip(t, q, "DescribeInstances", c.DescribeInstances)
	roundTrip(t, q, "DescribeInstanceStatus", c.DescribeInstanceStatus)
	roundTrip(t, q, "TerminateInstances", c.TerminateInstances)
	roundTrip(t, q, "CreateTags", c.CreateTags)
	roundTrip(t, q, "RunInstances", c.RunInstances)
	roundTrip(t, q, "CreateLaunchTemplate", c.CreateLaunchTemplate)
	roundTrip(t, q, "DescribeLaunchTemplates", c.DescribeLaunchTemplates)
	roundTrip(t, q, "DeleteLaunchTemplate", c.DeleteLaunchTemplate)
	roundTrip(t, q, "DescribeSubnets", c.DescribeSubnets)
	roundTrip(t, q, "DescribeSecurityGroups", c.DescribeSecurityGroups)
	roundTrip(t, q, "DescribePlacementGroups", c.DescribePlacementGroups)
	roundTrip(t, q, "DescribeImages", c.DescribeImages)
	roundTrip(t, q, "DescribeCapacityReservations", c.DescribeCapacityReservations)
	roundTrip(t, q, "DescribeSpotPriceHistory", c.DescribeSpotPriceHistory)
	roundTrip(t, q, "DescribeInstanceTypes", c.DescribeInstanceTypes)
	roundTrip(t, q, "DescribeInstanceTypeOfferings", c.DescribeInstanceTypeOfferings)
	roundTrip(t, q, "DescribeAvailabilityZones", c.DescribeAvailabilityZones)
	roundTrip(t, q, "DescribeReservedInstances", c.DescribeReservedInstances)
	if served := len(ec2Actions(ec2fake.New(time.Now))); served != len(q.actions) {
		t.Errorf("%d operations are served, %d are tested", served, len(q.actions))
	}
}

func TestIAMOnTheWire(t *testing.T) {
	q, url := serve(t, awsQuery)
	c := iam.New(iam.Options{Region: Region, BaseEndpoint: url, Credentials: keys})
	roundTrip(t, q, "GetInstanceProfile", c.GetInstanceProfile)
	roundTrip(t, q, "CreateInstanceProfile", c.CreateInstanceProfile)
	roundTrip(t, q, "TagInstanceProfile", c.TagInstanceProfile)
	roundTrip(t, q, "AddRoleToInstanceProfile", c.AddRoleToInstanceProfile)
	roundTrip(t, q, "RemoveRoleFromInstanceProfile", c.RemoveRoleFromInstanceProfile)
	roundTrip(t, q, "DeleteInstanceProfile", c.DeleteInstanceProfile)
	roundTrip(t, q, "ListInstanceProfiles", c.ListInstanceProfiles)
	if served := len(iamActions(&ec2fake.IAM{})); served != len(q.actions) {
		t.Errorf("%d operations are served, %d are tested", served, len(q.actions))
	}
}

// TestErrorsOnTheWire: the SDK reads the code and the text of an error.
func TestErrorsOnTheWire(t *testing.T) {
	f := ec2fake.New(time.Now)
	f.Denied["ec2:CreateTags"] = true
	a := &AWS{EC2: f, IAM: &ec2fake.IAM{Now: time.Now}, SSM: &ec2fake.SSM{}, Queues: &Queues{}}
	a.Allowed = func(caller, service, action string) bool {
		return caller == "AKIDSWEEP" && action != "TerminateInstances"
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	defer a.Stop()
	c := ec2.New(ec2.Options{Region: Region, BaseEndpoint: aws.String(a.Endpoint("EC2")), Credentials: keys})
	ctx := context.Background()
	for want, do := range map[string]func() error{
		"InvalidInstanceID.NotFound": func() error {
			_, err := c.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{"i-1"}})
			return err
		},
		"UnauthorizedOperation": func() error {
			_, err := c.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{"i-1"}})
			return err
		},
		"InvalidAction": func() error {
			_, err := c.StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: []string{"i-1"}})
			return err
		},
		"InvalidParameterValue": func() error {
			_, err := c.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("no-such"), Values: []string{"x"}}}})
			_ = err
			_, err = c.CreateFleet(ctx, &ec2.CreateFleetInput{Type: types.FleetTypeMaintain, TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1)},
				LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{}}})
			return err
		},
		"NoSuchEntity": func() error {
			_, err := iam.New(iam.Options{Region: Region, BaseEndpoint: aws.String(a.Endpoint("IAM")), Credentials: keys}).GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("x")})
			return err
		},
	} {
		var api smithy.APIError
		if err := do(); !asAPI(err, &api) || api.ErrorCode() != want || api.ErrorMessage() == "" {
			t.Errorf("got %v, want code %s", err, want)
		}
	}
	calls := a.Calls()
	if len(calls) != 6 || calls[0].Caller != "AKIDSWEEP" {
		t.Errorf("calls: %v", calls)
	}
}

// TestUnknownParameter: what the SDK's type does not have is refused.
func TestUnknownParameter(t *testing.T) {
	for form, want := range map[string]string{
		"InstanceId.1=i-1":                   "",
		"InstanceId.2=i-1":                   "parameter InstanceId.1: it is missing",
		"InstanceIds=i-1":                    "parameter InstanceIds: a value where a list",
		"Filter.1.Name=a&Filter.1.Value.1=b": "",
		"Filter.1.Nam=a":                     "the parameter Filter.1.Nam is not recognized",
		"MaxResults=many":                    `parameter MaxResults: "many" is no int32`,
		"MaxResults.1=1":                     "parameter MaxResults: a structure where a value",
		"Bogus=1":                            "the parameter Bogus is not recognized",
	} {
		err := ec2Query.decode(parse(t, form), new(ec2.DescribeInstancesInput))
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.HasPrefix(got, want) {
			t.Errorf("%s: %v, want %q", form, err, want)
		}
	}
	if err := awsQuery.decode(parse(t, "Tags.1.Key=a"), new(iam.CreateInstanceProfileInput)); err == nil {
		t.Error("a list of EC2's form in IAM's is read")
	}
}
