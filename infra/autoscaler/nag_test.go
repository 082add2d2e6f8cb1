package autoscaler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// accepted are the findings of cdk-nag that stay, with the reason. Every other one fails the
// test, and so does one that is listed and not found.
var accepted = map[string]string{
	"IAM5 *":                             "calls that look at what there is are not scoped by AWS; they are bound to the region, or listed above",
	"IAM5 ec2 image/*":                   "images belong to other accounts, by ids that EC2NodeClasses select",
	"IAM5 ec2 snapshot/*":                "snapshots of such images",
	"IAM5 ec2 capacity-reservation/*":    "selected by EC2NodeClasses; they carry their owners' tags",
	"IAM5 ec2 placement-group/*":         "selected by EC2NodeClasses; they carry their owners' tags",
	"IAM5 ec2 security-group/*":          "selected by EC2NodeClasses; they carry their owners' tags",
	"IAM5 ec2 subnet/*":                  "selected by EC2NodeClasses; they carry their owners' tags",
	"IAM5 ec2 fleet/*":                   "made only with the tags of the cluster",
	"IAM5 ec2 instance/*":                "made only with the tags of the cluster, changed and ended only where it has them",
	"IAM5 ec2 launch-template/*":         "made only with the tags of the cluster, used and deleted only where it has them",
	"IAM5 ec2 network-interface/*":       "made only with the tags of the cluster",
	"IAM5 ec2 spot-instances-request/*":  "made only with the tags of the cluster",
	"IAM5 ec2 volume/*":                  "made only with the tags of the cluster",
	"IAM5 eks access-entry/prod/*":       "entries of this cluster, whose ids EKS gives; it reads",
	"IAM5 lambda event-source-mapping:*": "those of this stack's functions alone, by a condition; it reads",
	"IAM5 scheduler schedule/default/*":  "schedules have no tags, and their names are known only once they are made; it reads",
	"IAM5 servicequotas ec2/*":           "what EC2 allows the account; it reads",
	"IAM5 iam instance-profile/*":        "made only with the tags of the cluster, changed and deleted only where it has them",
	"IAM5 ssm parameter/aws/service/*":   "public parameters of AWS",
	"SQS3 /Ticks/Resource":               "a tick that failed is of no use a minute later: the next one is there; three minutes without a sweep raise an alarm",
}

// findings are what cdk-nag has against the stack: the rule, and the resource or, for
// wildcards, what may be matched.
func findings(t *testing.T, props Props) map[string]bool {
	t.Helper()
	app := awscdk.NewApp(&awscdk.AppProps{AnalyticsReporting: jsii.Bool(false)})
	stack, err := NewStack(app, props)
	if err != nil {
		t.Fatal(err)
	}
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(nil), nil)
	out := map[string]bool{}
	notes, all := assertions.Annotations_FromStack(stack), assertions.Match_AnyValue()
	for _, m := range append(*notes.FindError(jsii.String("*"), all), *notes.FindWarning(jsii.String("*"), all)...) {
		text := fmt.Sprint(m.Entry.Data)
		rule, _, _ := strings.Cut(text, ":")
		if what, ok := strings.CutPrefix(text, "AwsSolutions-IAM5[Resource::"); ok {
			what, _, _ = strings.Cut(what, "]")
			if parts := strings.SplitN(what, ":", 6); len(parts) == 6 && strings.HasPrefix(what, "arn:") {
				// arn:<AWS::Partition>:service:... has more colons in its placeholders.
				what = strings.NewReplacer("<AWS::Partition>", "", "<AWS::Region>", "", "<AWS::AccountId>", "").Replace(what)
				parts = strings.SplitN(what, ":", 6)
				what = parts[2] + " " + parts[5]
			}
			out["IAM5 "+what] = true
			continue
		}
		_, resource, _ := strings.Cut(*m.Id, "/Kerf")
		out[strings.TrimPrefix(rule, "AwsSolutions-")+" "+resource] = true
	}
	return out
}

// TestNag: cdk-nag's rules for solutions find what is accepted, and no more, however the
// stack is deployed.
func TestNag(t *testing.T) {
	private := demoProps()
	private.VPCID, private.SubnetIDs, private.ClusterSecurityGroupID = "vpc-01234567", []string{"subnet-01234567"}, "sg-01234567"
	private.Endpoints, private.RouteTableIDs = true, []string{"rtb-01234567"}
	for name, props := range map[string]Props{"public": demoProps(), "private": private} {
		got := findings(t, props)
		for _, f := range slices.Sorted(maps.Keys(got)) {
			if accepted[f] == "" {
				t.Errorf("%s: %s", name, f)
			}
		}
		for f := range accepted {
			if !got[f] {
				t.Errorf("%s: %s is accepted and not found", name, f)
			}
		}
	}
}
