package notice

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// What events on the bus are called.
const (
	Source     = "kerf.sh"
	DetailType = "Node Disruption"
)

const (
	// batch is how many events one call takes.
	batch = 10
	// mostNodes is how many nodes an event names: it may have 256 KB.
	mostNodes = 500
)

// Client is what is asked of EventBridge.
type Client interface {
	PutEvents(ctx context.Context, in *eventbridge.PutEventsInput, opts ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
}

// Bus sends notices to a bus, by name or ARN.
type Bus struct {
	Client Client
	Name   string
}

// detail is a notice as JSON.
type detail struct {
	Cluster   string      `json:"cluster"`
	Command   string      `json:"command"`
	Phase     string      `json:"phase"`
	Reason    string      `json:"reason"`
	NodePools []string    `json:"nodePools"`
	Nodes     []string    `json:"nodes"`
	NodeCount int         `json:"nodeCount"`
	Detail    string      `json:"detail,omitempty"`
	Why       string      `json:"why,omitempty"`
	Saving    json.Number `json:"savingPerHour"`
	Price     json.Number `json:"pricePerHour"`
}

// Notify sends notices, in their order. The error names those that the bus did not take;
// the others are on it.
func (b *Bus) Notify(ctx context.Context, notices []lifecycle.Notice) error {
	for len(notices) > 0 {
		some := notices[:min(batch, len(notices))]
		notices = notices[len(some):]
		in := &eventbridge.PutEventsInput{}
		for i := range some {
			e, err := b.entry(&some[i])
			if err != nil {
				return err
			}
			in.Entries = append(in.Entries, e)
		}
		out, err := b.Client.PutEvents(ctx, in)
		if err != nil {
			return fmt.Errorf("send notices to event bus %s: %w", b.Name, err)
		}
		for i, e := range out.Entries {
			if e.ErrorCode != nil && i < len(some) {
				return fmt.Errorf("send notice of %s to event bus %s: %s: %s", some[i].Command, b.Name, *e.ErrorCode, aws.ToString(e.ErrorMessage))
			}
		}
	}
	return nil
}

func (b *Bus) entry(n *lifecycle.Notice) (types.PutEventsRequestEntry, error) {
	d := detail{
		Cluster: n.Cluster, Command: n.Command, Phase: string(n.Phase), Reason: n.Reason, NodePools: orNone(n.Pools), Nodes: orNone(n.Nodes[:min(len(n.Nodes), mostNodes)]),
		NodeCount: len(n.Nodes), Detail: n.Detail, Why: n.Why, Saving: dollars(n.Saving), Price: dollars(n.Price),
	}
	text, err := json.Marshal(d)
	if err != nil {
		return types.PutEventsRequestEntry{}, fmt.Errorf("write notice of %s as JSON: %w", n.Command, err)
	}
	return types.PutEventsRequestEntry{
		EventBusName: aws.String(b.Name), Source: aws.String(Source), DetailType: aws.String(DetailType), Detail: aws.String(string(text)), Time: aws.Time(n.At),
	}, nil
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// dollars are exact: micro-dollars with a point.
func dollars(p snapshot.Price) json.Number {
	sign := ""
	if p < 0 {
		sign, p = "-", -p
	}
	return json.Number(fmt.Sprintf("%s%d.%06d", sign, p/1_000_000, p%1_000_000))
}
