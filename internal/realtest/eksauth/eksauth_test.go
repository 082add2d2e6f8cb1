package eksauth

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kerf.sh/kerf/internal/kube/eks"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func token(t *testing.T, cluster, region, key, secret string, at time.Time) string {
	t.Helper()
	provider := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: key, SecretAccessKey: secret, SessionToken: "session"}, nil
	})
	out, err := eks.NewTokens(cluster, region, provider, func() time.Time { return at }).Token(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func edited(t *testing.T, token, from, to string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, prefix))
	if err != nil || !strings.Contains(string(raw), from) {
		t.Fatal(err, string(raw))
	}
	return prefix + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), from, to, 1)))
}

func TestIdentify(t *testing.T) {
	h := &Webhook{Cluster: "prod", Region: "us-east-1", Now: func() time.Time { return now },
		Identities: []Identity{{"AKIA", "sa", "kerf-sweep", []string{"kerf:sweep"}}, {"AKIB", "sb", "kerf-plan", nil}}}
	good := token(t, "prod", "us-east-1", "AKIB", "sb", now.Add(-14*time.Minute))
	if who, err := h.Identify(context.Background(), good); err != nil || who.User != "kerf-plan" {
		t.Errorf("a good token: %+v, %v", who, err)
	}
	for _, tt := range []struct{ name, token, want string }{
		{"no token", "x", "does not begin"},
		{"another cluster", token(t, "other", "us-east-1", "AKIB", "sb", now), "its signature is not that of AKIB for cluster prod"},
		{"another region", token(t, "prod", "eu-west-1", "AKIB", "sb", now), "it is signed for"},
		{"another secret", token(t, "prod", "us-east-1", "AKIB", "x", now), "its signature"},
		{"another identity", edited(t, good, "AKIB", "AKIA"), "its signature"},
		{"nobody", token(t, "prod", "us-east-1", "AKIC", "x", now), "access key AKIC"},
		{"old", token(t, "prod", "us-east-1", "AKIB", "sb", now.Add(-16*time.Minute)), "it is 16m0s old"},
		{"future", token(t, "prod", "us-east-1", "AKIB", "sb", now.Add(6*time.Minute)), "it is -6m0s old"},
		{"long", edited(t, good, "X-Amz-Expires=60", "X-Amz-Expires=901"), "X-Amz-Expires"},
		{"another action", edited(t, good, "GetCallerIdentity", "AssumeRole"), "it asks for AssumeRole"},
		{"unbound", edited(t, good, "x-k8s-aws-id", "x-other"), "it is bound to no cluster"},
		{"more", edited(t, good, "Action=", "A=1&Action="), "parameter A does not belong there"},
	} {
		if _, err := h.Identify(context.Background(), tt.token); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
