//go:build e2e

package e2e

import "testing"

// TestStack: the template says how functions are deployed and what they may do.
func TestStack(t *testing.T) {
	s, err := readStack(templateFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		function, service, action string
		want                      bool
	}{
		{"sweep", "ec2", "CreateFleet", true}, {"sweep", "ec2", "DescribeImages", false}, {"catalog", "ec2", "DescribeImages", true}, {"catalog", "ec2", "CreateFleet", false},
		{"sweep", "lambda", "InvokeFunction", true}, {"lifecycle", "lambda", "InvokeFunction", false}, {"lifecycle", "sqs", "SendMessageBatch", true},
		{"lifecycle", "iam", "CreateInstanceProfile", false}, {"plan", "ec2", "CreateFleet", false},
		{"interruption", "sqs", "ChangeMessageVisibility", true}, {"interruption", "ec2", "TerminateInstances", false}, {"consolidation", "ec2", "CreateFleet", true},
	} {
		if got := s.may(tt.function, tt.service, tt.action); got != tt.want {
			t.Errorf("%s may %s:%s: %t", tt.function, tt.service, tt.action, got)
		}
	}
	for name, d := range s.functions {
		if d.timeout == 0 || d.memoryMB == 0 || (name != "catalog" && name != "consolidation") != (d.batch > 0 && d.concurrency > 0) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
