package sim

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/idle"
)

// roles are the actions that the stack's functions may do, by function.
func roles(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "infra", "autoscaler", "testdata", "template.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tm struct {
		Resources map[string]struct {
			Type       string
			Properties struct {
				Policies []struct {
					PolicyDocument struct {
						Statement []struct{ Action json.RawMessage }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &tm); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for id, r := range tm.Resources {
		for _, f := range []string{"Sweep", "Lifecycle", "Catalog", "Interruption", "Consolidation"} {
			if r.Type != "AWS::IAM::Role" || !strings.HasPrefix(id, "Kerf"+f+"Role") {
				continue
			}
			for _, p := range r.Properties.Policies {
				for _, s := range p.PolicyDocument.Statement {
					var one string
					var some []string
					if json.Unmarshal(s.Action, &one) == nil {
						some = []string{one}
					} else if err := json.Unmarshal(s.Action, &some); err != nil {
						t.Fatal(err)
					}
					out[strings.ToLower(f)] = append(out[strings.ToLower(f)], some...)
				}
			}
		}
	}
	return out
}

// action is what IAM asks for a request.
func action(op string) []string {
	service, name, _ := strings.Cut(op, ".")
	switch service {
	case "kube":
		return nil // RBAC's to say
	case "table":
		if name == "TransactWriteItems" {
			return []string{"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}
		}
		return []string{"dynamodb:" + name}
	case "lambda":
		return []string{"lambda:InvokeFunction"}
	case "sqs":
		return []string{"sqs:" + strings.TrimSuffix(name, "Batch")}
	}
	return []string{service + ":" + name}
}

// elsewhere are actions that a role has and no world shows, with who needs it.
var elsewhere = map[string]string{
	"ec2:DeleteLaunchTemplate": "templates an hour after nobody named them, and those of a class that goes",
	"logs:CreateLogStream":     "Lambda", "logs:PutLogEvents": "Lambda",
	"sqs:ReceiveMessage": "Lambda, for the function", "sqs:DeleteMessage": "Lambda, for the function", "sqs:GetQueueAttributes": "Lambda, for the function",
	"eks:DescribeCluster":               "the way to the API server, which a world has without it",
	"sts:DecodeAuthorizationMessage":    "the words of a denial; nothing is denied in a world",
	"iam:PassRole":                      "EC2, when it hands the role on",
	"ec2:RunInstances":                  "EC2, for CreateFleet",
	"ec2:CreateTags":                    "EC2, for the tags of what CreateFleet makes; registered instances get theirs",
	"pricing:GetProducts":               "the price list, which a world has not",
	"ssm:GetParameter":                  "parameters of images, which a world answers without counting",
	"ec2:DescribeInstanceTypeOfferings": "the market, whose table a world has",
	"ec2:DescribeCapacityReservations":  "classes that select reservations",
	"ec2:DescribePlacementGroups":       "classes that select a placement group",
	"iam:AddRoleToInstanceProfile":      "classes that name a role: IAM of a world is not counted",
	"iam:CreateInstanceProfile":         "classes that name a role: IAM of a world is not counted",
	"iam:DeleteInstanceProfile":         "classes that go: IAM of a world is not counted",
	"iam:GetInstanceProfile":            "classes that name a role: IAM of a world is not counted",
	"iam:ListInstanceProfiles":          "classes that go: IAM of a world is not counted",
	"iam:RemoveRoleFromInstanceProfile": "classes that go: IAM of a world is not counted",
	"iam:TagInstanceProfile":            "classes that name a role: IAM of a world is not counted",
}

// TestPolicies: what functions ask for in worlds, their roles in the stack allow; and what a
// role allows, somebody asks for.
func TestPolicies(t *testing.T) {
	asked := map[string]map[string]bool{}
	for seed := uint64(1); seed <= 12; seed++ {
		m := &meter{on: true, hour: idle.Hour{Functions: map[string]idle.Function{}}}
		o := Options{Short: true, Before: func(w *World) {
			for _, f := range w.lambdas {
				m.watch(f)
			}
		}}
		if seed == 1 { // and one that settles, with an hour of nothing behind it
			o.Profile = calm(Load{After: 20 * time.Second, Kind: "plain", Pods: 12, CPU: 500, Mem: 1024})
			o.Profile.Trouble = 90 * time.Minute
		}
		inBubble(t, seed, o)
		for f, got := range m.hour.Functions {
			for op := range got.Calls {
				for _, a := range action(op) {
					if asked[f] == nil {
						asked[f] = map[string]bool{}
					}
					asked[f][a] = true
				}
			}
		}
	}
	anybody := map[string]bool{}
	may := roles(t)
	for _, f := range slices.Sorted(maps.Keys(asked)) {
		for _, a := range slices.Sorted(maps.Keys(asked[f])) {
			anybody[a] = true
			if !slices.Contains(may[f], a) {
				t.Errorf("%s asks for %s, and its role does not allow that", f, a)
			}
		}
	}
	used := map[string]bool{}
	for _, f := range slices.Sorted(maps.Keys(may)) {
		for _, a := range may[f] {
			switch {
			case asked[f][a]:
			case elsewhere[a] != "":
				used[a] = true
			case anybody[a]: // by another function, with the same code
			default:
				t.Errorf("%s may %s, and nobody asks for it", f, a)
			}
		}
	}
	for a := range elsewhere {
		if !used[a] {
			t.Errorf("%s is listed, and no role has it without its being asked for", a)
		}
	}
	for _, f := range []string{"sweep", "lifecycle", "catalog", "interruption"} {
		if len(asked[f]) < 5 {
			t.Errorf("%s asked for %v only", f, slices.Sorted(maps.Keys(asked[f])))
		}
	}
}
