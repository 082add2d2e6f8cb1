package commitment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans/types"
	"github.com/aws/smithy-go"

	"kerf.sh/kerf/internal/catalog"
)

// account answers one instance, plan or rate a page.
type account struct {
	running  []ec2types.Instance
	reserved []ec2types.ReservedInstances
	plans    []types.SavingsPlan
	rates    map[string][]types.SavingsPlanRate
	// fail is asked before every call.
	fail func(op string) error
}

func (a *account) denied(op string) error {
	if a.fail == nil {
		return nil
	}
	return a.fail(op)
}

func page[T any](list []T, token *string) ([]T, *string) {
	at := 0
	if token != nil {
		fmt.Sscan(*token, &at) //nolint:errcheck // ours
	}
	if at >= len(list) {
		return nil, nil
	}
	if at+1 == len(list) {
		return list[at:], nil
	}
	return list[at : at+1], aws.String(fmt.Sprint(at + 1))
}

func (a *account) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	some, next := page(a.running, in.NextToken)
	return &ec2.DescribeInstancesOutput{Reservations: []ec2types.Reservation{{Instances: some}}, NextToken: next}, a.denied("DescribeInstances")
}

func (a *account) DescribeReservedInstances(context.Context, *ec2.DescribeReservedInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeReservedInstancesOutput, error) {
	return &ec2.DescribeReservedInstancesOutput{ReservedInstances: a.reserved}, a.denied("DescribeReservedInstances")
}

func (a *account) DescribeSavingsPlans(_ context.Context, in *savingsplans.DescribeSavingsPlansInput, _ ...func(*savingsplans.Options)) (*savingsplans.DescribeSavingsPlansOutput, error) {
	some, next := page(a.plans, in.NextToken)
	return &savingsplans.DescribeSavingsPlansOutput{SavingsPlans: some, NextToken: next}, a.denied("DescribeSavingsPlans")
}

func (a *account) DescribeSavingsPlanRates(_ context.Context, in *savingsplans.DescribeSavingsPlanRatesInput, _ ...func(*savingsplans.Options)) (*savingsplans.DescribeSavingsPlanRatesOutput, error) {
	some, next := page(a.rates[*in.SavingsPlanId], in.NextToken)
	return &savingsplans.DescribeSavingsPlanRatesOutput{SearchResults: some, NextToken: next}, a.denied("DescribeSavingsPlanRates")
}

func runs(names ...string) []ec2types.Instance {
	var out []ec2types.Instance
	for _, n := range names {
		out = append(out, ec2types.Instance{InstanceType: ec2types.InstanceType(n)})
	}
	return out
}

func reserved(id, typ string, count int32, rate float64) ec2types.ReservedInstances {
	return ec2types.ReservedInstances{
		ReservedInstancesId: aws.String(id), InstanceType: ec2types.InstanceType(typ), InstanceCount: aws.Int32(count), State: ec2types.ReservedInstanceStateActive,
		ProductDescription: "Linux/UNIX", Scope: ec2types.ScopeRegional, InstanceTenancy: ec2types.TenancyDefault,
		RecurringCharges: []ec2types.RecurringCharge{{Amount: aws.Float64(rate), Frequency: ec2types.RecurringChargeFrequencyHourly}},
	}
}

func plan(id string, kind types.SavingsPlanType, region, money string) types.SavingsPlan {
	return types.SavingsPlan{SavingsPlanId: aws.String(id), SavingsPlanType: kind, Region: aws.String(region), Commitment: aws.String(money), State: types.SavingsPlanStateActive}
}

func rate(typ, dollars string) types.SavingsPlanRate {
	return types.SavingsPlanRate{Rate: aws.String(dollars), Properties: []types.SavingsPlanRateProperty{
		{Name: types.SavingsPlanRatePropertyKeyRegion, Value: aws.String("eu-west-1")}, {Name: types.SavingsPlanRatePropertyKeyInstanceType, Value: aws.String(typ)}}}
}

func (a *account) read() string {
	who := Account{EC2: a, Plans: a, Region: "eu-west-1", Types: []catalog.InstanceType{
		{Name: "c5.large", VCPU: 2}, {Name: "g5.xlarge", VCPU: 4}, {Name: "m5.2xlarge", VCPU: 8}, {Name: "m5.large", VCPU: 2}, {Name: "m5.xlarge", VCPU: 4}}}
	found, problems := who.Read(context.Background())
	var out []string
	for _, c := range found {
		out = append(out, fmt.Sprintf("%s %s at %d, %d left", c.ID, c.Scope, c.Price, c.Remaining))
	}
	return strings.Join(slices.Concat(out, problems), "\n")
}

// TestUnused: what runs uses reserved instances first, of all sizes of a family but where AWS
// says otherwise, then Savings Plans, those of a family before those for everything.
func TestUnused(t *testing.T) {
	spot := runs("m5.large")
	spot[0].InstanceLifecycle = ec2types.InstanceLifecycleTypeSpot
	zonal := reserved("z-1", "m5.large", 3, 0.05)
	zonal.Scope, zonal.AvailabilityZone = ec2types.ScopeAvailabilityZone, aws.String("eu-west-1a")
	retired := reserved("old", "m5.large", 9, 0.05)
	retired.State = ec2types.ReservedInstanceStateRetired
	upfront := reserved("up", "m5.large", 1, 0)
	upfront.RecurringCharges, upfront.FixedPrice, upfront.Duration = nil, aws.Float32(525.6), aws.Int64(365*24*3600)
	family, all := types.SavingsPlanTypeEc2Instance, types.SavingsPlanTypeCompute
	for _, tt := range []struct {
		name string
		is   account
		want string
	}{
		{"nothing", account{}, ""},
		{"a reserved instance that nothing runs on", account{reserved: []ec2types.ReservedInstances{reserved("ri", "m5.large", 2, 0.06)}}, "ri m5 at 30000, 120000 left"},
		{"a larger one of the family uses it", account{reserved: []ec2types.ReservedInstances{reserved("ri", "m5.large", 3, 0.06)}, running: runs("m5.xlarge")}, "ri m5 at 30000, 60000 left"},
		{"spot does not", account{reserved: []ec2types.ReservedInstances{reserved("ri", "m5.large", 1, 0.06)}, running: spot}, "ri m5 at 30000, 60000 left"},
		{"sizes of g5 do not share", account{reserved: []ec2types.ReservedInstances{reserved("ri", "g5.xlarge", 2, 0.6)}, running: runs("g5.xlarge")}, "ri g5.xlarge at 600000, 600000 left"},
		{"paid upfront", account{reserved: []ec2types.ReservedInstances{upfront}}, "up m5 at 30000, 60000 left"},
		{"what has ended, what is of a zone", account{reserved: []ec2types.ReservedInstances{retired, zonal}}, "3 reserved instances of a single zone are not counted, only those of the region"},
		{"plans, that of the family first", account{
			plans:   []types.SavingsPlan{plan("sp-all", all, "", "0.5"), plan("sp-m5", family, "eu-west-1", "0.06"), plan("sp-us", family, "us-east-1", "9")},
			rates:   map[string][]types.SavingsPlanRate{"sp-all": {rate("c5.large", "0.07"), rate("m5.large", "0.08")}, "sp-m5": {rate("m5.large", "0.06")}},
			running: runs("m5.large", "m5.large"),
		}, "sp-all c5.large at 70000, 420000 left\nsp-all m5.large at 80000, 420000 left"},
		{"a plan that the last instance uses up in part", account{
			plans: []types.SavingsPlan{plan("sp", all, "", "0.1")}, rates: map[string][]types.SavingsPlanRate{"sp": {rate("m5.large", "0.08")}}, running: runs("m5.large", "m5.large"),
		}, ""},
		{"reserved instances before plans", account{
			reserved: []ec2types.ReservedInstances{reserved("ri", "m5.large", 1, 0.06)}, running: runs("m5.large", "m5.large"),
			plans: []types.SavingsPlan{plan("sp", all, "", "0.2")}, rates: map[string][]types.SavingsPlanRate{"sp": {rate("m5.large", "0.08")}},
		}, "sp m5.large at 80000, 120000 left"},
	} {
		if got := tt.is.read(); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// TestPartlyDenied: what may not be read is said with the permission that is missing, and the
// rest counts; where it is not known what runs, nothing does.
func TestPartlyDenied(t *testing.T) {
	whole := func() account {
		return account{
			reserved: []ec2types.ReservedInstances{reserved("ri", "m5.large", 1, 0.06)},
			plans:    []types.SavingsPlan{plan("sp", types.SavingsPlanTypeCompute, "", "0.2"), plan("sp2", types.SavingsPlanTypeCompute, "", "0.2")},
			rates:    map[string][]types.SavingsPlanRate{"sp": {rate("c5.large", "0.07")}, "sp2": {rate("c5.large", "0.07")}},
			running:  runs("c5.large", "g5.xlarge"),
		}
	}
	for op, want := range map[string]string{
		"DescribeInstances":         "commitments are not counted, as it is not known what uses them: list the instances that run: AccessDenied: permission x:DescribeInstances is missing",
		"DescribeReservedInstances": "sp c5.large at 70000, 130000 left\nsp2 c5.large at 70000, 200000 left\nreserved instances are not counted: describe reserved instances: AccessDenied: permission x:DescribeReservedInstances is missing",
		"DescribeSavingsPlans":      "ri m5 at 30000, 60000 left\nSavings Plans are not counted: describe Savings Plans: AccessDenied: permission x:DescribeSavingsPlans is missing",
		"DescribeSavingsPlanRates":  "ri m5 at 30000, 60000 left\nSavings Plans are not counted: describe the rates of Savings Plan sp: AccessDenied: permission x:DescribeSavingsPlanRates is missing",
	} {
		a := whole()
		a.fail = func(asked string) error {
			if asked != op {
				return nil
			}
			return &smithy.GenericAPIError{Code: "AccessDenied", Message: "User: u is not authorized to perform: x:" + op + " because no policy allows it"}
		}
		if got := a.read(); got != want {
			t.Errorf("without %s:\n%s\nwant\n%s", op, got, want)
		}
	}
	// The second page of what runs is missing once, the token having ended: it is read again.
	a := whole()
	n := 0
	a.fail = func(op string) error {
		if n++; op == "DescribeInstances" && n == 2 {
			return &smithy.GenericAPIError{Code: "InvalidPaginationToken"}
		}
		return nil
	}
	if got, want := a.read(), "ri m5 at 30000, 60000 left\nsp c5.large at 70000, 130000 left\nsp2 c5.large at 70000, 200000 left"; got != want {
		t.Errorf("a token that expires:\n%s\nwant\n%s", got, want)
	}
}
