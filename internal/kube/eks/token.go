package eks

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	// tokenPrefix begins every token of EKS.
	tokenPrefix = "k8s-aws-v1."
	// clusterHeader binds a token to one cluster.
	clusterHeader = "x-k8s-aws-id"
	// presigned is for how long STS takes the request from its signing, in seconds. EKS
	// wants it short and counts 15 minutes on its own.
	presigned = "60"
	// maxAge is how long a token is used: EKS takes it for 15 minutes, and clocks differ.
	maxAge = 14 * time.Minute
	// emptyBody is the SHA-256 of nothing.
	emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// Tokens mints the tokens of one cluster. It may be used by several goroutines.
type Tokens struct {
	cluster, region string
	credentials     aws.CredentialsProvider
	now             func() time.Time
	signer          *v4.Signer

	mu     sync.Mutex
	token  string
	signed time.Time
}

// NewTokens mints tokens with the credentials of an identity, for a cluster by its name,
// signed for STS in region. now is the clock.
func NewTokens(cluster, region string, credentials aws.CredentialsProvider, now func() time.Time) *Tokens {
	return &Tokens{cluster: cluster, region: region, credentials: credentials, now: now, signer: v4.NewSigner()}
}

// Token is a token that is younger than 14 minutes.
func (t *Tokens) Token(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// A clock that was set back makes age negative: that token is not trusted either.
	if age := t.now().Sub(t.signed); t.token != "" && age >= 0 && age < maxAge {
		return t.token, nil
	}
	return t.mint(ctx)
}

// Renew gives another token than the one that was refused: a new one, unless somebody has
// renewed it meanwhile. The credentials behind it are asked for anew as well.
func (t *Tokens) Renew(ctx context.Context, refused string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != refused && t.token != "" {
		return t.token, nil
	}
	if cache, ok := t.credentials.(interface{ Invalidate() }); ok {
		cache.Invalidate()
	}
	return t.mint(ctx)
}

func (t *Tokens) mint(ctx context.Context) (string, error) {
	now := t.now()
	token, err := sign(ctx, t.signer, t.credentials, t.cluster, t.region, now)
	if err != nil {
		return "", fmt.Errorf("sign a token for cluster %s: %w", t.cluster, err)
	}
	t.token, t.signed = token, now
	return token, nil
}

func sign(ctx context.Context, s *v4.Signer, provider aws.CredentialsProvider, cluster, region string, now time.Time) (string, error) {
	credentials, err := provider.Retrieve(ctx)
	if err != nil {
		return "", err
	}
	url := "https://" + stsHost(region) + "/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=" + presigned
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	q.Header.Set(clusterHeader, cluster)
	signed, _, err := s.PresignHTTP(ctx, credentials, q, emptyBody, "sts", region, now)
	if err != nil {
		return "", err
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(signed)), nil
}

// stsHost is the endpoint of STS in a region: its partition decides the domain.
func stsHost(region string) string {
	domain := "amazonaws.com"
	for _, p := range []struct{ region, domain string }{
		{"cn-", "amazonaws.com.cn"},
		{"us-iso-", "c2s.ic.gov"},
		{"us-isob-", "sc2s.sgov.gov"},
		{"us-isof-", "csp.hci.ic.gov"},
		{"eu-isoe-", "cloud.adc-e.uk"},
		{"eusc-", "amazonaws.eu"},
	} {
		if strings.HasPrefix(region, p.region) {
			domain = p.domain
		}
	}
	return "sts." + region + "." + domain
}

// bearer puts the token into requests.
type bearer struct {
	tokens *Tokens
	next   http.RoundTripper
}

func (b *bearer) RoundTrip(q *http.Request) (*http.Response, error) {
	token, err := b.tokens.Token(q.Context())
	if err != nil {
		return nil, err
	}
	q = q.Clone(q.Context())
	q.Header.Set("Authorization", "Bearer "+token)
	res, err := b.next.RoundTrip(q)
	if res != nil {
		res.Request = q // with the token, for Renew
	}
	return res, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (b *bearer) WrappedRoundTripper() http.RoundTripper { return b.next }
