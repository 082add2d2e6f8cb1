package eks

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"k8s.io/client-go/rest"
)

// API is what is asked of EKS: *eks.Client has it. It needs eks:DescribeCluster.
type API interface {
	DescribeCluster(context.Context, *awseks.DescribeClusterInput, ...func(*awseks.Options)) (*awseks.DescribeClusterOutput, error)
}

// Cluster is where the API server of a cluster is, and how it is configured.
type Cluster struct {
	Name, Endpoint, Version string
	// CA are the certificates that its server certificate is signed with, as PEM.
	CA []byte
	// Public and Private tell from where the endpoint can be reached; AuthMode is API,
	// API_AND_CONFIG_MAP or CONFIG_MAP.
	Public, Private bool
	AuthMode        string
	// AutoMode: EKS launches nodes by itself.
	AutoMode bool
	// ServiceCIDR are the addresses of Services, of the family that IPv6 tells.
	ServiceCIDR string
	IPv6        bool
}

// DNS is the address of the cluster's DNS: EKS gives it the tenth of ServiceCIDR. It is ""
// where that is not known.
func (c *Cluster) DNS() string {
	net, err := netip.ParsePrefix(c.ServiceCIDR)
	if err != nil {
		return ""
	}
	a := net.Masked().Addr()
	for range 10 {
		a = a.Next()
	}
	return a.String()
}

// Describe finds a cluster. One that has no API server yet, or none any more, is an error.
func Describe(ctx context.Context, api API, name string) (*Cluster, error) {
	out, err := api.DescribeCluster(ctx, &awseks.DescribeClusterInput{Name: aws.String(name)})
	if err != nil {
		return nil, fmt.Errorf("describe cluster %s: %w", name, err)
	}
	c, err := clusterOf(out.Cluster)
	if err != nil {
		return nil, fmt.Errorf("describe cluster %s: %w", name, err)
	}
	return c, nil
}

func clusterOf(in *types.Cluster) (*Cluster, error) {
	if in == nil {
		return nil, errors.New("an answer without a cluster")
	}
	switch in.Status {
	case types.ClusterStatusCreating, types.ClusterStatusPending, types.ClusterStatusFailed, types.ClusterStatusDeleting:
		return nil, fmt.Errorf("its status is %s: it cannot be used", in.Status)
	}
	c := &Cluster{Name: aws.ToString(in.Name), Endpoint: aws.ToString(in.Endpoint), Version: aws.ToString(in.Version)}
	if !strings.HasPrefix(c.Endpoint, "https://") {
		return nil, fmt.Errorf("its endpoint is %q, want an https address", c.Endpoint)
	}
	if in.CertificateAuthority == nil {
		return nil, errors.New("an answer without a certificate authority")
	}
	var err error
	if c.CA, err = base64.StdEncoding.DecodeString(aws.ToString(in.CertificateAuthority.Data)); err != nil {
		return nil, fmt.Errorf("decode its certificate authority: %w", err)
	}
	if block, _ := pem.Decode(c.CA); block == nil {
		return nil, errors.New("its certificate authority is no PEM")
	}
	if v := in.ResourcesVpcConfig; v != nil {
		c.Public, c.Private = v.EndpointPublicAccess, v.EndpointPrivateAccess
	}
	if n := in.KubernetesNetworkConfig; n != nil {
		c.ServiceCIDR = aws.ToString(n.ServiceIpv4Cidr)
		if c.IPv6 = n.IpFamily == types.IpFamilyIpv6; c.IPv6 {
			c.ServiceCIDR = aws.ToString(n.ServiceIpv6Cidr)
		}
	}
	if m := in.ComputeConfig; m != nil {
		c.AutoMode = aws.ToBool(m.Enabled)
	}
	if a := in.AccessConfig; a != nil {
		c.AuthMode = string(a.AuthenticationMode)
	}
	return c, nil
}

// Access is the way to a cluster as an IAM identity.
type Access struct {
	Config *rest.Config
	tokens *Tokens
}

// requestTimeout bounds one request to the API server.
const requestTimeout = 60 * time.Second

// NewAccess is the access to a cluster with tokens of its own. Make one for each client.
func NewAccess(c *Cluster, tokens *Tokens) *Access {
	return &Access{
		tokens: tokens,
		Config: &rest.Config{
			Host:            c.Endpoint,
			TLSClientConfig: rest.TLSClientConfig{CAData: c.CA},
			Timeout:         requestTimeout,
			// Within a VPC the bytes are cheaper than the time to compress them.
			DisableCompression: true,
			WrapTransport: func(next http.RoundTripper) http.RoundTripper {
				return &bearer{tokens: tokens, next: next}
			},
		},
	}
}

// Renew renews the token that a request was refused with. It is live.Options.Renew.
func (a *Access) Renew(ctx context.Context, refused *http.Request) (bool, error) {
	token := strings.TrimPrefix(refused.Header.Get("Authorization"), "Bearer ")
	_, err := a.tokens.Renew(ctx, token)
	return err == nil, err
}
