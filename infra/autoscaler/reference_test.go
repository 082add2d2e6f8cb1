package autoscaler

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReference: docs/stack.md is what is deployed today.
func TestReference(t *testing.T) {
	got, file := reference(t, demo(t)), filepath.Join("..", "..", "docs", "stack.md")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("docs/stack.md is stale (go test ./autoscaler -rewrite):\n%s", d)
	}
}

// reference is the page: context keys from the code, permissions and alarms from the
// template, because that is what AWS gets to see.
func reference(t *testing.T, tm template) string {
	var b strings.Builder
	b.WriteString(`# The stack

<!-- Generated from infra/autoscaler and its template by go test ./autoscaler -rewrite. Do not edit. -->

One stack per cluster, ` + "`kerf-<cluster>`" + `. ` + "`make synth CLUSTER=name`" + ` writes its template without asking AWS for anything.

## Context

` + "`-c key=value`" + `, or under ` + "`context`" + ` in cdk.json. The settings of [config.md](config.md) are keys of the context as well, but for
those that the stack sets itself. An unknown key is an error.

| key | default | meaning |
|---|---|---|
`)
	for _, k := range contextKeys {
		def := k.def
		if !slices.Contains([]string{"required", "none", "a new table"}, def) {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.key, def, k.meaning)
	}
	b.WriteString(`
## How the functions get into the cluster

| ` + "`access`" + ` | what the stack does | what you do |
|---|---|---|
| ` + "`entries`" + ` | makes an access entry for each function's role, sets the cluster up (custom resource), then starts the schedules and triggers | nothing; the cluster's authentication mode has to be API or API_AND_CONFIG_MAP |
| ` + "`configMap`" + ` | makes functions and roles; nothing starts | put the lines of output AwsAuthRoles under mapRoles in ConfigMap kube-system/aws-auth; deploy again with ` + "`existing`" + ` |
| ` + "`existing`" + ` | sets the cluster up and starts, without access entries | see to it that the roles are in their groups (` + "`kerf:<function>`" + `; bootstrap in system:masters, or with the policy AmazonEKSClusterAdminPolicy) |

Where the cluster cannot be set up, the event of resource ` + "`Cluster`" + ` in the stack says why and what to do about it. A cluster that does
not let bootstrap in is asked again for two minutes. ` + "`make invoke FN=bootstrap EVENT=events/bootstrap/again.json`" + ` sets it up again at any time.

Functions in a VPC (` + "`vpcId`, `subnetIds`, `clusterSecurityGroupId`" + `) reach AWS through NAT, or through endpoints that ` + "`endpoints=true`" + `
makes. IAM and the price list have no endpoints: there an EC2NodeClass names ` + "`spec.instanceProfile`" + ` and not ` + "`spec.role`" + `, and an eighth
function, a half of catalog outside the VPC, reads types and prices into the ledger. It may do that and write the ledger, no more.

## What each function may do in AWS

Each function has a role of its own. Names are those of Karpenter's controller policy where it has the same statement. A
cluster's name is ` + "`prod`" + ` here. What a function may do in the cluster is said by the ClusterRole ` + "`kerf-<function>`" + `, which bootstrap makes and the
function's access entry leads to; ` + "`kubectl describe clusterrole kerf-sweep`" + ` shows it. Bootstrap itself is an administrator of the
cluster. The plan function may list what plans depend on and get what the doctor looks at; neither here nor there can it change anything.

`)
	place := strings.NewReplacer("aws-us-gov", "<partition>", "ap-southeast-4", "<region>", "123456789012", "<account>")
	for _, f := range functions {
		fmt.Fprintf(&b, "### %s\n\n| statement | actions | resources | condition |\n|---|---|---|---|\n", strings.ToLower(f))
		for _, s := range statements(tm.role(t, f)) {
			sid, _ := s["Sid"].(string)
			if sid == "" {
				sid = "its own log group"
			} else {
				sid = "`" + sid + "`"
			}
			resources, ok := s["Resource"].([]any)
			if !ok {
				resources = []any{s["Resource"]}
			}
			var names []string
			for _, r := range resources {
				if id := target(r); id != "" {
					names = append(names, tm.name(id))
					continue
				}
				names = append(names, "`"+place.Replace(list(r)[0])+"`")
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", sid, strings.Join(list(s["Action"]), ", "), strings.Join(names, ", "), place.Replace(tm.conditions(s["Condition"])))
		}
		b.WriteString("\n")
	}
	b.WriteString("Statements without a condition whose resources are not named one by one, and why:\n\n| statement | why |\n|---|---|\n")
	for _, sid := range slices.Sorted(maps.Keys(unscoped)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", sid, unscoped[sid])
	}
	b.WriteString("\nWhat cdk-nag's AwsSolutions rules find, and why it stays:\n\n| finding | why |\n|---|---|\n")
	for _, f := range slices.Sorted(maps.Keys(accepted)) {
		rule, what, _ := strings.Cut(f, " ")
		fmt.Fprintf(&b, "| AwsSolutions-%s `%s` | %s |\n", rule, strings.TrimSuffix(strings.TrimPrefix(what, "/"), "/Resource"), accepted[f])
	}
	b.WriteString("\n## Alarms\n\n| alarm | what it says |\n|---|---|\n")
	for _, a := range tm.all("AWS::CloudWatch::Alarm") {
		name := strings.TrimRight(strings.TrimPrefix(a.id, "KerfAlarms"), "0123456789ABCDEF")
		fmt.Fprintf(&b, "| %s | %s |\n", name, strings.TrimPrefix(a.Properties["AlarmDescription"].(string), "Kerf for prod: "))
	}
	b.WriteString(`
## When the stack goes

The table stays, and is protected from deletion: nodes outlive the stack, and the ledger knows whose they are. Queues and logs
go with the stack, and so do the roles of the functions in the cluster. Karpenter's definitions stay, with all NodePools and
NodeClaims, and so do the access entries of node roles. A table that was restored from a backup takes the place of the stack's own with ` + "`tableName`" + `; the functions
see that it is another one, and find out what there is before they act again.
`)
	return b.String()
}

// name is a resource of the stack for people.
func (tm template) name(id string) string {
	if id == "AWS::StackId" {
		return "this stack"
	}
	return tm.Resources[id].Type + " " + strings.TrimRight(strings.TrimPrefix(id, "Kerf"), "0123456789ABCDEF")
}

// conditions are those of a statement in one cell of a table.
func (tm template) conditions(v any) string {
	m, _ := v.(map[string]any)
	var out []string
	for _, op := range slices.Sorted(maps.Keys(m)) {
		keys := m[op].(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			values, ok := keys[k].([]any)
			if !ok {
				values = []any{keys[k]}
			}
			var names []string
			for _, x := range values {
				id := target(x)
				if _, made := tm.Resources[id]; made {
					names = append(names, tm.name(id))
				} else {
					names = append(names, "`"+list(x)[0]+"`")
				}
			}
			out = append(out, fmt.Sprintf("%s `%s`: %s", op, k, strings.Join(names, ", ")))
		}
	}
	return strings.Join(out, "; ")
}
