package checkup

import (
	"slices"
	"testing"
)

// TestPolicies: what is taken out of the policies of queues and the trust of roles.
func TestPolicies(t *testing.T) {
	for policy, want := range map[string][]string{
		"": nil,
		`{"Statement":[{"Effect":"Allow","Action":"SQS:SendMessage","Condition":{"ArnEquals":{"aws:SourceArn":"a"}}}]}`:                                                                    {"a"},
		`{"Statement":[{"Effect":"Allow","Action":["sqs:ReceiveMessage"],"Condition":{"ArnEquals":{"aws:SourceArn":"a"}}}]}`:                                                               nil,
		`{"Statement":[{"Effect":"Deny","Action":"*","Condition":{"ArnLike":{"AWS:SourceArn":"a"}}},{"Effect":"Allow","Action":"*","Condition":{"ArnLike":{"aws:SourceArn":["c","b"]}}}]}`: {"b", "c"},
	} {
		if got, err := senders(policy); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v", policy, got, err)
		}
	}
	for trust, want := range map[string][]string{
		`%7B%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C%22Principal%22%3A%7B%22Service%22%3A%5B%22ec2.amazonaws.com%22%2C%22a%22%5D%7D%7D%5D%7D`: {"a", "ec2.amazonaws.com"},
		`{"Statement":[{"Effect":"Deny","Principal":{"Service":"ec2.amazonaws.com"}},{"Effect":"Allow","Principal":{"AWS":"x"}}]}`:                         nil,
	} {
		if got, err := services(trust); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v", trust, got, err)
		}
	}
	if _, err := senders("{"); err == nil {
		t.Error("half a policy was read")
	}
	if _, err := services("%"); err == nil {
		t.Error("half a trust policy was read")
	}
}

// TestLetters: the family of a type by which quotas are counted.
func TestLetters(t *testing.T) {
	for typ, want := range map[string]string{"m7g.large": "m", "im4gn.xlarge": "im", "g5.2xlarge": "g", "u-6tb1.metal": "u", "c7i": "c", "c": "c", "": ""} {
		if got := Letters(typ); got != want {
			t.Errorf("%s: %q", typ, got)
		}
	}
	seen := map[string]bool{}
	for _, f := range families {
		for _, l := range f.letters {
			if seen[l] {
				t.Errorf("%s counts twice", l)
			}
			seen[l] = true
		}
	}
}
