package autoscaler

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/config"
)

// builtCode makes a folder as `make build` leaves it.
func builtCode(t *testing.T, machine elf.Machine) string {
	t.Helper()
	dir := t.TempDir()
	buildInto(dir, machine)
	return dir
}

// buildInto makes programs of one processor that hold nothing but their header. The bytes
// are always the same, and so are the asset hashes in templates.
func buildInto(dir string, machine elf.Machine) {
	header := make([]byte, 64)
	copy(header, elf.ELFMAG)
	header[elf.EI_CLASS], header[elf.EI_DATA], header[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	binary.LittleEndian.PutUint16(header[16:], uint16(elf.ET_EXEC))
	binary.LittleEndian.PutUint16(header[18:], uint16(machine))
	binary.LittleEndian.PutUint32(header[20:], uint32(elf.EV_CURRENT))
	binary.LittleEndian.PutUint16(header[52:], 64)
	for _, fn := range (Props{}).functions() {
		if err := os.MkdirAll(filepath.Join(dir, fn), 0o755); err != nil {
			panic(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fn, "bootstrap"), header, 0o755); err != nil {
			panic(err)
		}
	}
}

func TestFromContext(t *testing.T) {
	tests := []struct {
		name    string
		context map[string]any
		want    Props
		wantErr []string // parts of the message, in order
	}{
		{"as -c gives it", map[string]any{"cluster": "prod", "architecture": "amd64", "logRetentionDays": "7", "planMemoryMiB": "512", "planTimeoutSeconds": "30"},
			Props{ClusterName: "prod", Architecture: AMD64, LogRetentionDays: 7, PlanMemoryMiB: 512, PlanTimeoutSeconds: 30, Settings: map[string]string{}}, nil},
		{"as cdk.json gives it", map[string]any{"cluster": "prod", "planMemoryMiB": float64(3008), "RESERVED_ENIS": float64(1), "MIN_VALUES_POLICY": "BestEffort"},
			Props{ClusterName: "prod", PlanMemoryMiB: 3008, Settings: map[string]string{"RESERVED_ENIS": "1", "MIN_VALUES_POLICY": "BestEffort"}}, nil},
		{"keys of the CDK", map[string]any{"cluster": "prod", "aws:cdk:bundling-stacks": []any{"**"}, "@aws-cdk/core:newStyleStackSynthesis": true, "aws-cdk:enableDiffNoFail": true},
			Props{ClusterName: "prod", Settings: map[string]string{}}, nil},
		{"a key that is not known", map[string]any{"cluster": "prod", "fooBarBaz": "prod"}, Props{},
			[]string{"context key fooBarBaz: not known; there are cluster, architecture, planOnly, access,", "planTimeoutSeconds", "RESERVED_ENIS"}},
		{"keys that are nearly right", map[string]any{"clusterName": "prod", "dashbord": true}, Props{},
			[]string{"context key clusterName: not known; did you mean cluster", "context key dashbord: not known; did you mean dashboard?"}},
		{"everything else", map[string]any{"cluster": "prod", "planOnly": "true", "sharedConcurrency": true, "nodeRoles": "a, path/b", "ssmParameters": "/x/y,z", "tableName": "t", "alarmTopicArn": "arn:x",
			"dashboard": "true", "consolidationSchedule": "off", "sweepMemoryMiB": "1", "lifecycleMemoryMiB": "2", "catalogMemoryMiB": "3", "access": "existing", "crds": "leave", "vpcId": "vpc-1", "subnetIds": "subnet-1,subnet-2", "clusterSecurityGroupId": "sg-1", "endpoints": true, "routeTableIds": "rtb-1", "interruptionMemoryMiB": "4", "consolidationMemoryMiB": "5", "LOG_LEVEL": "debug"},
			Props{ClusterName: "prod", PlanOnly: true, SharedConcurrency: true, NodeRoles: []string{"a", "path/b"}, SSMParameters: []string{"/x/y", "z"}, TableName: "t", AlarmTopicARN: "arn:x", Dashboard: true, ConsolidationSchedule: Off,
				SweepMemoryMiB: 1, LifecycleMemoryMiB: 2, CatalogMemoryMiB: 3, Access: AccessExisting, CRDs: "leave", VPCID: "vpc-1", SubnetIDs: []string{"subnet-1", "subnet-2"}, ClusterSecurityGroupID: "sg-1", Endpoints: true, RouteTableIDs: []string{"rtb-1"},
				InterruptionMemoryMiB: 4, ConsolidationMemoryMiB: 5, Settings: map[string]string{"LOG_LEVEL": "debug"}}, nil},
		{"lists", map[string]any{"nodeRoles": []any{"a", "b"}}, Props{NodeRoles: []string{"a", "b"}, Settings: map[string]string{}}, nil},
		{"a list of lists", map[string]any{"nodeRoles": []any{[]any{"a"}}}, Props{}, []string{"context key nodeRoles: want one value, not []interface"}},
		{"neither true nor false", map[string]any{"planOnly": "yes"}, Props{}, []string{`context key planOnly: want true or false, not "yes"`}},
		{"what the stack sets itself", map[string]any{"KERF_TABLE": "x"}, Props{}, []string{"context key KERF_TABLE: not known"}},
		{"the cluster by its setting's name", map[string]any{"CLUSTER_NAME": "prod"}, Props{}, []string{"context key CLUSTER_NAME: not known"}},
		{"several mistakes", map[string]any{"planMemoryMiB": "lots", "logRetentionDays": float64(1.5), "architecture": []any{"arm64"}}, Props{},
			[]string{"context key architecture: want one value, not []interface", `context key logRetentionDays: want a whole number, not "1.5"`, `context key planMemoryMiB: want a whole number, not "lots"`}},
		{"zero is not the default", map[string]any{"planMemoryMiB": "0"}, Props{}, []string{"context key planMemoryMiB: 0 is not possible"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := FromContext(tt.context)
			checkError(t, err, tt.wantErr)
			if err == nil {
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

func TestValidate(t *testing.T) {
	arm, amd := builtCode(t, elf.EM_AARCH64), builtCode(t, elf.EM_X86_64)
	tests := []struct {
		name    string
		props   Props
		wantErr []string
	}{
		{"defaults", Props{ClusterName: "prod", CodeDir: arm}, nil},
		{"all that can be set", Props{ClusterName: "9_x-Y", CodeDir: amd, Architecture: AMD64, LogRetentionDays: 3653, PlanMemoryMiB: 10240, PlanTimeoutSeconds: 900, Settings: map[string]string{"RESERVED_ENIS": "1"}}, nil},
		{"no cluster", Props{CodeDir: arm}, []string{"cluster: the name of the EKS cluster is missing"}},
		{"not a cluster's name", Props{ClusterName: "prod.eu", CodeDir: arm}, []string{`cluster: "prod.eu" is no name of an EKS cluster`}},
		{"a name too long", Props{ClusterName: strings.Repeat("a", 101), CodeDir: arm}, []string{"is no name of an EKS cluster"}},
		{"architecture", Props{ClusterName: "prod", CodeDir: arm, Architecture: "x86"}, []string{`architecture: "x86" is not known; want arm64 or amd64`}},
		{"several at once", Props{ClusterName: "prod", CodeDir: arm, LogRetentionDays: 31, PlanMemoryMiB: 64, PlanTimeoutSeconds: 901},
			[]string{"logRetentionDays: CloudWatch Logs does not know 31; want one of 1, 3,", "planMemoryMiB: 64 is out of range", "planTimeoutSeconds: 901 is out of range"}},
		{"what acts", Props{ClusterName: "prod", CodeDir: arm, SweepMemoryMiB: 127, LifecycleMemoryMiB: 10241, CatalogMemoryMiB: 1, InterruptionMemoryMiB: 2, ConsolidationMemoryMiB: 3, NodeRoles: []string{"ok", "any*", ""}, SSMParameters: []string{"/ok/x", "/golden/*"}, TableName: "a b", AlarmTopicARN: "pager"},
			[]string{"sweepMemoryMiB: 127 is out of range", "lifecycleMemoryMiB: 10241", "catalogMemoryMiB: 1 is", "interruptionMemoryMiB: 2 is", "consolidationMemoryMiB: 3 is", `nodeRoles: "any*" is neither the name of a role nor its ARN`, `nodeRoles: ""`, `ssmParameters: "/golden/*" is no name of a parameter`,
				`tableName: "a b" is no name`, `alarmTopicArn: "pager" is no ARN`}},
		{"roles by ARN", Props{ClusterName: "prod", CodeDir: arm, NodeRoles: []string{"arn:aws-cn:iam::123456789012:role/x/y"}, TableName: "kerf.prod-1_x", AlarmTopicARN: "arn:aws:sns:eu-west-1:123456789012:pager"}, nil},
		{"a way in, definitions", Props{ClusterName: "prod", CodeDir: arm, Access: "aws-auth", CRDs: "yes"}, []string{`access: "aws-auth" is not known; want entries, configMap or existing`, `crds: "yes" is not known; want apply, force, leave`}},
		{"a VPC", Props{ClusterName: "prod", CodeDir: arm, VPCID: "vpc-0123456789abcdef0", SubnetIDs: []string{"subnet-01234567", "subnet-0123456789abcdef1"}, ClusterSecurityGroupID: "sg-0123456789abcdef0", Endpoints: true, RouteTableIDs: []string{"rtb-0123456789abcdef0"}}, nil},
		{"schedules", Props{ClusterName: "prod", CodeDir: arm, ConsolidationSchedule: "cron(0 8-18 ? * MON-FRI *)"}, nil},
		{"no schedule", Props{ClusterName: "prod", CodeDir: arm, ConsolidationSchedule: "off"}, nil},
		{"a schedule", Props{ClusterName: "prod", CodeDir: arm, ConsolidationSchedule: "every minute"}, []string{`consolidationSchedule: "every minute" is no schedule; want off, like rate(5 minutes)`}},
		{"a rate", Props{ClusterName: "prod", CodeDir: arm, ConsolidationSchedule: "rate(1 minutes)"}, []string{`consolidationSchedule: "rate(1 minutes)"`}},
		{"half a VPC", Props{ClusterName: "prod", CodeDir: arm, SubnetIDs: []string{"subnet-01234567", "vpc-01234567"}, Endpoints: true},
			[]string{"vpcId: it is missing", `subnetIds: "vpc-01234567" is none; want subnet-`, "clusterSecurityGroupId: it is missing", "routeTableIds: they are missing"}},
		{"endpoints of no VPC", Props{ClusterName: "prod", CodeDir: arm, Endpoints: true}, []string{"endpoints: they belong to a VPC"}},
		{"route tables without endpoints", Props{ClusterName: "prod", CodeDir: arm, VPCID: "vpc-01234567", SubnetIDs: []string{"subnet-01234567"}, ClusterSecurityGroupID: "sg-01234567", RouteTableIDs: []string{"rtb-01234567"}}, []string{"routeTableIds: they are for endpoints=true"}},
		{"a user's ARN", Props{ClusterName: "prod", CodeDir: arm, NodeRoles: []string{"arn:aws:iam::123456789012:user/x"}}, []string{"nodeRoles: "}},
		{"a setting that the functions refuse", Props{ClusterName: "prod", CodeDir: arm, Settings: map[string]string{"RESERVED_ENIS": "many"}}, []string{"settings: ", "RESERVED_ENIS"}},
		{"a setting that does not exist", Props{ClusterName: "prod", CodeDir: arm, Settings: map[string]string{"RESERVED_ENI": "1"}}, []string{"settings: ", "RESERVED_ENI"}},
		{"not built", Props{ClusterName: "prod", CodeDir: t.TempDir()}, []string{"code of function plan: ", "build it with: make build ARCH=arm64", "code of function sweep: ", "code of function lifecycle: ", "code of function catalog: ", "code of function interruption: ", "code of function consolidation: ", "code of function bootstrap: "}},
		{"built for another processor", Props{ClusterName: "prod", CodeDir: amd}, []string{"was built for EM_X86_64 and the function runs on arm64; build it with: make build ARCH=arm64"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkError(t, tt.props.withDefaults().validate(), tt.wantErr)
		})
	}
}

// TestSettings: whatever the functions can be told, the stack can tell them.
func TestSettings(t *testing.T) {
	for _, s := range config.Table() {
		if s.Key == clusterVariable || s.Scope == config.Made {
			continue
		}
		p, err := FromContext(map[string]any{s.Key: s.Default})
		if err != nil || p.Settings[s.Key] != s.Default {
			t.Errorf("%s: got %v, %v", s.Key, p.Settings, err)
		}
		if err := p.checkSettings(); err != nil {
			t.Errorf("%s: its default is refused: %v", s.Key, err)
		}
	}
}

func TestStackName(t *testing.T) {
	seen := map[string]string{}
	for _, c := range []string{"prod", "a-b", "a_b", "a_-b", "a-_b"} {
		n := StackName(c)
		if other, taken := seen[n]; taken || strings.Contains(n, "_") || !strings.HasPrefix(n, "kerf-") {
			t.Errorf("%s: stack %s, taken by %q", c, n, other)
		}
		seen[n] = c
	}
	if got := StackName("prod"); got != "kerf-prod" {
		t.Error(got)
	}
}

func TestRetentionHasNames(t *testing.T) {
	for _, d := range RetentionDays {
		if retention(d) == "" {
			t.Errorf("%d days", d)
		}
	}
}

// checkError compares an error with the parts its message must have, in order; no
// parts, no error.
func checkError(t *testing.T, err error, parts []string) {
	t.Helper()
	if len(parts) == 0 {
		if err != nil {
			t.Errorf("unexpected: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("no error, want %q", parts)
	}
	rest := err.Error()
	for _, p := range parts {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Fatalf("%q is missing, or out of order, in: %v", p, err)
		}
		rest = after
	}
}
