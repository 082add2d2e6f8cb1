package app

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"time"

	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/kube/eks"
	"kerf.sh/kerf/internal/kube/live"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// keepHome is for how long what EKS says of the cluster is not asked for again: its version
// changes with an upgrade, its address hardly ever.
const keepHome = 10 * time.Minute

// home is the cluster as EKS describes it, and the client of its API server.
type home struct {
	mu      sync.Mutex
	cluster *eks.Cluster
	at      time.Time
	client  *live.Client
}

// cluster is the cluster's API server. The client is that of the invocations before, as
// long as the cluster is where it was.
func (b *base) cluster(ctx context.Context) (*Cluster, *eks.Cluster, error) {
	return b.clusterKept(ctx, keepHome)
}

// clusterKept does not ask EKS anew about a cluster that was described so long ago, or less.
func (b *base) clusterKept(ctx context.Context, keep time.Duration) (*Cluster, *eks.Cluster, error) {
	h := &b.home
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cluster == nil || b.now().Sub(h.at) >= keep {
		c, err := eks.Describe(ctx, b.eks(), b.conf.Cluster)
		switch {
		case err == nil:
			if h.cluster == nil || h.cluster.Endpoint != c.Endpoint || !bytes.Equal(h.cluster.CA, c.CA) {
				h.client = nil
			}
			h.cluster, h.at = c, b.now()
		case h.cluster == nil:
			return nil, nil, err
		default: // what was known is most likely still so
			b.tel.Log.WarnContext(ctx, "the cluster was not described anew", "error", err.Error())
			h.at = b.now()
		}
	}
	if h.client == nil {
		access := eks.NewAccess(h.cluster, eks.NewTokens(b.conf.Cluster, b.region, b.aws.Credentials, b.now))
		access.Config.UserAgent = "kerf/" + b.name
		access.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return b.tel.Calls.Transport("kube", next) })
		client, err := live.New(access.Config, live.Options{Renew: access.Renew})
		if err != nil {
			return nil, nil, err
		}
		h.client = client
	}
	return NewCluster(h.client, b.conf.Cluster, b.region, b.conf.Settings), h.cluster, nil
}

// nodeFacts is what nodes have to know of their cluster.
func nodeFacts(c *eks.Cluster) userdata.Cluster {
	return userdata.Cluster{Name: c.Name, Endpoint: c.Endpoint, CA: base64.StdEncoding.EncodeToString(c.CA), DNS: c.DNS(), ServiceCIDR: c.ServiceCIDR, IPv6: c.IPv6}
}

// Cluster is a running cluster as handlers need it.
type Cluster struct {
	*live.Client
	name, region string
	settings     snapshot.Settings
}

var _ handler.Cluster = (*Cluster)(nil)

// NewCluster puts what kube makes of lists to a client.
func NewCluster(c *live.Client, name, region string, s snapshot.Settings) *Cluster {
	return &Cluster{c, name, region, s}
}

// Read implements handler.Cluster. An object that was left out is among the warnings, as
// IncompleteReading.
func (c *Cluster) Read(ctx context.Context, now time.Time) (*snapshot.Snapshot, []plan.Warning, error) {
	s, report, err := kube.Read([]kube.Source{c.Source(ctx)}, c.options(now))
	if err != nil {
		return nil, nil, err
	}
	r := reading(s, report, handler.Input{Settings: func(snapshot.Settings) snapshot.Settings { return c.settings }}, c.region)
	return r.Snapshot, append(r.Warnings, r.Left...), nil
}

// Some implements handler.Cluster. An object that was left out makes the snapshot
// incomplete.
func (c *Cluster) Some(ctx context.Context, kinds ...string) (*snapshot.Snapshot, error) {
	s, report, err := kube.Read([]kube.Source{c.Client.Some(ctx, kinds...)}, c.options(time.Now()))
	if err != nil {
		return nil, err
	}
	for i := range report.Left {
		s.Incomplete = append(s.Incomplete, report.Left[i].Error())
	}
	return s, nil
}

func (c *Cluster) options(now time.Time) kube.Options {
	return kube.Options{Cluster: c.name, Region: c.region, Now: now, Settings: c.settings}
}

// Node implements handler.Cluster.
func (c *Cluster) Node(ctx context.Context, name string) (snapshot.Node, error) {
	n, _, err := c.Client.Node(ctx, name)
	if err != nil {
		return n, fmt.Errorf("read node %s again: %w", name, err)
	}
	return n, nil
}
