package eksauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// Identity is a role, by the access key of its session, and who it is in the cluster.
type Identity struct {
	Key, Secret string
	User        string
	Groups      []string
}

// Webhook decides on tokens.
type Webhook struct {
	Cluster, Region string
	Identities      []Identity
	Now             func() time.Time

	mu      sync.Mutex
	refused []error
	taken   map[string]int
	http    *http.Server
}

const (
	prefix    = "k8s-aws-v1."
	maxAge    = 15 * time.Minute
	emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// Start serves the webhook, and writes the configuration for kube-apiserver's
// --authentication-token-webhook-config-file to a file.
func (h *Webhook) Start(file string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start the token webhook: %w", err)
	}
	h.http = &http.Server{Handler: h}
	go h.http.Serve(l) //nolint:errcheck // it ends with Stop
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: iam, cluster: {server: "http://%s/authenticate"}}]
users: [{name: api-server}]
contexts: [{name: iam, context: {cluster: iam, user: api-server}}]
current-context: iam
`, l.Addr())
	return os.WriteFile(file, []byte(text), 0o600)
}

// Stop ends it.
func (h *Webhook) Stop() {
	if h.http != nil {
		h.http.Close()
	}
}

// Refused are the reasons for which tokens were refused.
func (h *Webhook) Refused() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]error(nil), h.refused...)
}

// Taken is how many tokens of a user were taken.
func (h *Webhook) Taken(user string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken[user]
}

func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review authenticationv1.TokenReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	who, err := h.Identify(r.Context(), review.Spec.Token)
	review.Spec = authenticationv1.TokenReviewSpec{}
	h.mu.Lock()
	if err != nil {
		h.refused = append(h.refused, err)
		review.Status.Error = err.Error()
	} else {
		if h.taken == nil {
			h.taken = map[string]int{}
		}
		h.taken[who.User]++
		review.Status.Authenticated = true
		review.Status.User = authenticationv1.UserInfo{Username: who.User, UID: who.Key, Groups: who.Groups}
	}
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(review)
}

// Identify says who made a token, or why it is not taken.
func (h *Webhook) Identify(ctx context.Context, token string) (*Identity, error) {
	raw, ok := strings.CutPrefix(token, prefix)
	if !ok {
		return nil, fmt.Errorf("it does not begin with %s", prefix)
	}
	text, err := base64.RawURLEncoding.DecodeString(raw)
	if err != nil {
		return nil, fmt.Errorf("decode it: %w", err)
	}
	u, err := url.Parse(string(text))
	if err != nil {
		return nil, err
	}
	if want := "sts." + h.Region + ".amazonaws.com"; u.Scheme != "https" || u.Host != want || u.Path != "/" {
		return nil, fmt.Errorf("it is signed for %s://%s%s, want https://%s/", u.Scheme, u.Host, u.Path, want)
	}
	q := u.Query()
	for key, values := range q {
		if len(values) != 1 {
			return nil, fmt.Errorf("parameter %s is given %d times", key, len(values))
		}
		switch key {
		case "Action", "Version", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-Security-Token", "X-Amz-SignedHeaders", "X-Amz-Signature":
		default:
			return nil, fmt.Errorf("parameter %s does not belong there", key)
		}
	}
	if q.Get("Action") != "GetCallerIdentity" {
		return nil, fmt.Errorf("it asks for %s", q.Get("Action"))
	}
	if !strings.Contains(";"+q.Get("X-Amz-SignedHeaders")+";", ";x-k8s-aws-id;") {
		return nil, errors.New("it is bound to no cluster: x-k8s-aws-id is not signed")
	}
	if n, err := strconv.Atoi(q.Get("X-Amz-Expires")); err != nil || n < 1 || n > 900 {
		return nil, fmt.Errorf("X-Amz-Expires is %q, want 1 to 900", q.Get("X-Amz-Expires"))
	}
	signed, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	if err != nil {
		return nil, err
	}
	if age := h.Now().Sub(signed); age > maxAge || age < -5*time.Minute {
		return nil, fmt.Errorf("it is %v old", age)
	}
	return h.verify(ctx, q, signed)
}

// verify signs the request again and compares.
func (h *Webhook) verify(ctx context.Context, q url.Values, signed time.Time) (*Identity, error) {
	key, _, _ := strings.Cut(q.Get("X-Amz-Credential"), "/")
	for i := range h.Identities {
		who := &h.Identities[i]
		if who.Key != key {
			continue
		}
		address := "https://sts." + h.Region + ".amazonaws.com/?Action=GetCallerIdentity&Version=" + q.Get("Version") + "&X-Amz-Expires=" + q.Get("X-Amz-Expires")
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("x-k8s-aws-id", h.Cluster)
		credentials := aws.Credentials{AccessKeyID: who.Key, SecretAccessKey: who.Secret, SessionToken: q.Get("X-Amz-Security-Token")}
		again, _, err := v4.NewSigner().PresignHTTP(ctx, credentials, r, emptyBody, "sts", h.Region, signed)
		if err != nil {
			return nil, err
		}
		u, err := url.Parse(again)
		if err != nil {
			return nil, err
		}
		if u.Query().Get("X-Amz-Signature") != q.Get("X-Amz-Signature") {
			return nil, fmt.Errorf("its signature is not that of %s for cluster %s", key, h.Cluster)
		}
		return who, nil
	}
	return nil, fmt.Errorf("access key %s is of no identity that has an access entry", key)
}
