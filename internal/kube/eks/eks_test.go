package eks

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/kube/live"
)

const secret = "secret"

var keys = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: secret, SessionToken: "session"}, nil
})

// clock is a time that a test moves.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func newClock() *clock { return &clock{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)} }

// signedURL takes a token apart.
func signedURL(t *testing.T, token string) *url.URL {
	t.Helper()
	raw, ok := strings.CutPrefix(token, "k8s-aws-v1.")
	if !ok || strings.HasSuffix(raw, "=") {
		t.Fatalf("token %q", token)
	}
	b, err := base64.RawURLEncoding.DecodeString(raw)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestToken: what EKS wants of a token, and a signature computed by hand.
func TestToken(t *testing.T) {
	token, err := NewTokens("prod", "eu-west-1", keys, newClock().now).Token(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	u := signedURL(t, token)
	got := map[string]string{"host": u.Host, "path": u.Path, "scheme": u.Scheme}
	for k, v := range u.Query() {
		got[k] = v[0]
	}
	signature := got["X-Amz-Signature"]
	delete(got, "X-Amz-Signature")
	want := map[string]string{
		"host": "sts.eu-west-1.amazonaws.com", "path": "/", "scheme": "https",
		"Action": "GetCallerIdentity", "Version": "2011-06-15", "X-Amz-Expires": "60", "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
		"X-Amz-Credential": "AKID/20261130/eu-west-1/sts/aws4_request", "X-Amz-Date": "20261130T120000Z",
		"X-Amz-SignedHeaders": "host;x-k8s-aws-id", "X-Amz-Security-Token": "session",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if want := byHand(u, "prod"); signature != want {
		t.Errorf("signature %s, want %s", signature, want)
	}
	if byHand(u, "other") == signature {
		t.Error("the token is not bound to its cluster")
	}
}

// byHand signs as the documentation of Signature Version 4 says.
func byHand(u *url.URL, cluster string) string {
	q := u.Query()
	q.Del("X-Amz-Signature")
	canonical := strings.Join([]string{"GET", "/", strings.ReplaceAll(q.Encode(), "+", "%20"),
		"host:" + u.Host, "x-k8s-aws-id:" + cluster, "", "host;x-k8s-aws-id", emptyBody}, "\n")
	sum := sha256.Sum256([]byte(canonical))
	text := strings.Join([]string{"AWS4-HMAC-SHA256", q.Get("X-Amz-Date"), "20261130/eu-west-1/sts/aws4_request", hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range []string{"20261130", "eu-west-1", "sts", "aws4_request", text} {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(part))
		key = m.Sum(nil)
	}
	return hex.EncodeToString(key)
}

// TestAge: BC-37, a token is used for less than 14 minutes.
func TestAge(t *testing.T) {
	c := newClock()
	tokens := NewTokens("prod", "eu-west-1", keys, c.now)
	at := func(after time.Duration) string {
		c.t = newClock().t.Add(after)
		token, err := tokens.Token(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return signedURL(t, token).Query().Get("X-Amz-Date")
	}
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{
		{0, "20261130T120000Z"},
		{13*time.Minute + 59*time.Second, "20261130T120000Z"},
		{14 * time.Minute, "20261130T121400Z"},
		{15*time.Minute + 30*time.Second, "20261130T121400Z"},
		{10 * time.Minute, "20261130T121000Z"}, // the clock was set back
	} {
		if got := at(tt.after); got != tt.want {
			t.Errorf("after %v: a token of %s, want %s", tt.after, got, tt.want)
		}
	}
}

// server refuses the tokens that it is told to, and counts.
type server struct {
	refuse func(token string) bool
	asked  int
	tokens []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.asked++
	token := strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
	s.tokens = append(s.tokens, token)
	w.Header().Set("Content-Type", "application/json")
	if s.refuse(token) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
		return
	}
	fmt.Fprint(w, `{"kind":"NodeClaim","apiVersion":"karpenter.sh/v1","metadata":{"name":"a","uid":"u"}}`)
}

func client(t *testing.T, s *server, c *clock) *live.Client {
	t.Helper()
	h := httptest.NewTLSServer(s)
	t.Cleanup(h.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	a := NewAccess(&Cluster{Name: "prod", Endpoint: h.URL, CA: ca}, NewTokens("prod", "eu-west-1", keys, c.now))
	out, err := live.New(a.Config, live.Options{Renew: a.Renew, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRefused: BC-37, one forced refresh after a 401, and no more.
func TestRefused(t *testing.T) {
	c := newClock()
	var old string
	s := &server{}
	s.refuse = func(token string) bool {
		if old == "" {
			old = token
			c.t = c.t.Add(time.Second) // or the new one would be the same
		}
		return token == old
	}
	cl := client(t, s, c)
	if _, err := cl.NodeClaim(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	if s.asked != 2 || s.tokens[0] == s.tokens[1] {
		t.Errorf("%d requests", s.asked)
	}
	if _, err := cl.NodeClaim(context.Background(), "a"); err != nil || s.asked != 3 {
		t.Errorf("the new token is not kept: %d requests, %v", s.asked, err)
	}

	never := &server{refuse: func(string) bool { return true }}
	_, err := client(t, never, c).NodeClaim(context.Background(), "a")
	if !errors.Is(err, live.ErrUnauthorized) || never.asked != 2 {
		t.Errorf("%d requests, %v", never.asked, err)
	}
}

// TestRefusedAtTheSameTime: of many requests that were refused with one token, one renews it.
func TestRefusedAtTheSameTime(t *testing.T) {
	minted := 0
	provider := aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) { minted++; return keys(ctx) })
	c := newClock()
	tokens := NewTokens("prod", "eu-west-1", provider, c.now)
	first, err := tokens.Token(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c.t = c.t.Add(time.Second)
	for range 5 {
		if second, err := tokens.Renew(context.Background(), first); err != nil || second == first {
			t.Errorf("renewed to the same, %v", err)
		}
	}
	if minted != 2 {
		t.Errorf("minted %d times, want 2", minted)
	}
}

// TestNoCredentials: the reason is told, nothing is asked.
func TestNoCredentials(t *testing.T) {
	broken := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("no role") })
	if _, err := NewTokens("prod", "eu-west-1", broken, newClock().now).Token(context.Background()); err == nil || err.Error() != "sign a token for cluster prod: no role" {
		t.Errorf("got %v", err)
	}
}

func TestSTSHost(t *testing.T) {
	for region, want := range map[string]string{
		"us-east-1": "sts.us-east-1.amazonaws.com", "cn-north-1": "sts.cn-north-1.amazonaws.com.cn", "us-gov-west-1": "sts.us-gov-west-1.amazonaws.com",
		"us-iso-east-1": "sts.us-iso-east-1.c2s.ic.gov", "us-isob-east-1": "sts.us-isob-east-1.sc2s.sgov.gov", "eusc-de-east-1": "sts.eusc-de-east-1.amazonaws.eu",
	} {
		if got := stsHost(region); got != want {
			t.Errorf("%s: %s, want %s", region, got, want)
		}
	}
}

// described answers DescribeCluster.
type described struct {
	cluster *types.Cluster
	err     error
	name    string
}

func (d *described) DescribeCluster(_ context.Context, in *awseks.DescribeClusterInput, _ ...func(*awseks.Options)) (*awseks.DescribeClusterOutput, error) {
	d.name = aws.ToString(in.Name)
	return &awseks.DescribeClusterOutput{Cluster: d.cluster}, d.err
}

var _ API = (*awseks.Client)(nil)

// TestDNS: the tenth address of the range, of either family.
func TestDNS(t *testing.T) {
	for cidr, want := range map[string]string{"172.20.0.0/16": "172.20.0.10", "10.100.0.7/16": "10.100.0.10", "fd30:1:2::/108": "fd30:1:2::a", "": "", "x": ""} {
		if got := (&Cluster{ServiceCIDR: cidr}).DNS(); got != want {
			t.Errorf("%q: %q, want %q", cidr, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
	good := func(change func(*types.Cluster)) *types.Cluster {
		c := &types.Cluster{Name: aws.String("prod"), Endpoint: aws.String("https://a.eks.amazonaws.com"), Version: aws.String("1.36"), Status: types.ClusterStatusActive,
			CertificateAuthority: &types.Certificate{Data: aws.String(base64.StdEncoding.EncodeToString([]byte(ca)))},
			ResourcesVpcConfig:   &types.VpcConfigResponse{EndpointPrivateAccess: true}, AccessConfig: &types.AccessConfigResponse{AuthenticationMode: types.AuthenticationModeApi},
			KubernetesNetworkConfig: &types.KubernetesNetworkConfigResponse{IpFamily: types.IpFamilyIpv4, ServiceIpv4Cidr: aws.String("172.20.0.0/16")}}
		change(c)
		return c
	}
	d := &described{cluster: good(func(*types.Cluster) {})}
	got, err := Describe(context.Background(), d, "prod")
	if err != nil || d.name != "prod" {
		t.Fatal(d.name, err)
	}
	want := &Cluster{Name: "prod", Endpoint: "https://a.eks.amazonaws.com", Version: "1.36", CA: []byte(ca), Private: true, AuthMode: "API", ServiceCIDR: "172.20.0.0/16"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := Describe(context.Background(), &described{cluster: good(func(c *types.Cluster) { c.Status = types.ClusterStatusUpdating })}, "prod"); err != nil {
		t.Errorf("an update is no reason: %v", err)
	}
	for name, tt := range map[string]struct {
		d    *described
		want string
	}{
		"creating":  {&described{cluster: good(func(c *types.Cluster) { c.Status = types.ClusterStatusCreating })}, "its status is CREATING"},
		"no CA":     {&described{cluster: good(func(c *types.Cluster) { c.CertificateAuthority = nil })}, "without a certificate authority"},
		"broken CA": {&described{cluster: good(func(c *types.Cluster) { c.CertificateAuthority.Data = aws.String("!") })}, "decode its certificate authority"},
		"no PEM":    {&described{cluster: good(func(c *types.Cluster) { c.CertificateAuthority.Data = aws.String("eA==") })}, "is no PEM"},
		"no host":   {&described{cluster: good(func(c *types.Cluster) { c.Endpoint = nil })}, `its endpoint is ""`},
		"nothing":   {&described{}, "without a cluster"},
		"refused":   {&described{err: errors.New("AccessDenied")}, "describe cluster prod: AccessDenied"},
	} {
		if c, err := Describe(context.Background(), tt.d, "prod"); err == nil || !strings.Contains(err.Error(), tt.want) || c != nil {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
