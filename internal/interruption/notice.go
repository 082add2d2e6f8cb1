package interruption

import (
	"encoding/json"
	"errors"
	"fmt"

	"regexp"
	"slices"
	"strings"
	"time"
)

// Kind is what an event is about.
type Kind string

// The kinds of events.
const (
	SpotInterrupted        Kind = "SpotInterrupted"
	RebalanceRecommended   Kind = "RebalanceRecommended"
	InstanceStopped        Kind = "InstanceStopped"
	InstanceTerminated     Kind = "InstanceTerminated"
	ScheduledChange        Kind = "ScheduledChange"
	ReservationInterrupted Kind = "ReservationInterrupted"
)

// Warning is how long before the end EC2 warns of an interruption.
const Warning = 2 * time.Minute

// MaxBody is the largest event that EventBridge brings.
const MaxBody = 256 << 10

// Notice says that instances will go, or may.
type Notice struct {
	Kind Kind
	// Instances are ids, each once, in the order of the event.
	Instances []string
	At        time.Time
	// Deadline is when EC2 takes them; zero = it does not say.
	Deadline time.Time
	// Optional notices are acted on where people asked for it.
	Optional bool
}

// ErrMalformed marks an event that cannot be read, now or later.
var ErrMalformed = errors.New("the event cannot be read")

// ErrIgnored marks an event that is of no concern: nothing is to be done.
var ErrIgnored = errors.New("the event is of no concern")

// envelope is what EventBridge sends.
type envelope struct {
	Version    string          `json:"version"`
	Source     string          `json:"source"`
	DetailType string          `json:"detail-type"`
	Time       time.Time       `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// detail are the fields of all kinds that matter.
type detail struct {
	InstanceID       string `json:"instance-id"`
	State            string `json:"state"`
	Service          string `json:"service"`
	Category         string `json:"eventTypeCategory"`
	StatusCode       string `json:"statusCode"`
	StartTime        string `json:"startTime"`
	AffectedEntities []struct {
		EntityValue string `json:"entityValue"`
	} `json:"affectedEntities"`
}

var instanceID = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// Parse reads an event as it came from a queue: as EventBridge sends it, or wrapped once by
// SNS. now stands for a time that the event does not give. The error is ErrMalformed or
// ErrIgnored, with the reason.
func Parse(body string, now time.Time) (*Notice, error) {
	if len(body) > MaxBody {
		return nil, fmt.Errorf("%w: %d bytes, EventBridge sends %d at most", ErrMalformed, len(body), MaxBody)
	}
	e, err := open(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if e.Source == "" || e.DetailType == "" {
		return nil, fmt.Errorf("%w: source %q and detail-type %q; want both", ErrMalformed, e.Source, e.DetailType)
	}
	var d detail
	if len(e.Detail) > 0 {
		if err := json.Unmarshal(e.Detail, &d); err != nil {
			return nil, fmt.Errorf("%w: detail: %w", ErrMalformed, err)
		}
	}
	n := &Notice{At: e.Time}
	if n.At.IsZero() {
		n.At = now
	}
	if err := n.read(e, &d); err != nil {
		return nil, err
	}
	return n, nil
}

// open reads an envelope, out of SNS's where it is in one.
func open(body string) (*envelope, error) {
	var outer struct {
		envelope
		Type    string `json:"Type"`
		Message string `json:"Message"`
	}
	if err := object(body, &outer); err != nil {
		return nil, err
	}
	if outer.Type != "Notification" || outer.Source != "" {
		return &outer.envelope, nil
	}
	var inner envelope
	if err := object(outer.Message, &inner); err != nil {
		return nil, fmt.Errorf("message of the SNS notification: %w", err)
	}
	return &inner, nil
}

// object reads one JSON object and nothing else.
func object(text string, into any) error {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return errors.New("no JSON object")
	}
	return json.Unmarshal([]byte(text), into)
}

func (n *Notice) read(e *envelope, d *detail) error {
	switch e.Source + "/" + e.DetailType {
	case "aws.ec2/EC2 Spot Instance Interruption Warning":
		n.Kind, n.Deadline = SpotInterrupted, n.At.Add(Warning)
	case "aws.ec2/EC2 Instance Rebalance Recommendation":
		n.Kind, n.Optional = RebalanceRecommended, true
	case "aws.ec2/EC2 Capacity Reservation Instance Interruption Warning":
		n.Kind, n.Deadline = ReservationInterrupted, n.At.Add(Warning)
	case "aws.ec2/EC2 Instance State-change Notification":
		switch strings.ToLower(d.State) {
		case "stopping", "stopped":
			n.Kind, n.Deadline = InstanceStopped, n.At
		case "shutting-down", "terminated":
			n.Kind, n.Deadline = InstanceTerminated, n.At
		default:
			return fmt.Errorf("%w: the instance is %q", ErrIgnored, d.State)
		}
	case "aws.health/AWS Health Event":
		return n.health(d)
	default:
		return fmt.Errorf("%w: %q of %q", ErrIgnored, e.DetailType, e.Source)
	}
	if !instanceID.MatchString(d.InstanceID) {
		return fmt.Errorf("%w: instance-id %q of %q", ErrMalformed, d.InstanceID, e.DetailType)
	}
	n.Instances = []string{d.InstanceID}
	return nil
}

// health reads a scheduled change: every instance that it affects.
func (n *Notice) health(d *detail) error {
	if d.Service != "EC2" || d.Category != "scheduledChange" {
		return fmt.Errorf("%w: service %q, category %q", ErrIgnored, d.Service, d.Category)
	}
	if d.StatusCode == "closed" {
		return fmt.Errorf("%w: the change is over", ErrIgnored)
	}
	n.Kind = ScheduledChange
	if start, err := parseTime(d.StartTime); err == nil {
		n.Deadline = start.UTC()
	}
	for _, e := range d.AffectedEntities {
		if instanceID.MatchString(e.EntityValue) && !slices.Contains(n.Instances, e.EntityValue) {
			n.Instances = append(n.Instances, e.EntityValue)
		}
	}
	if len(n.Instances) == 0 {
		return fmt.Errorf("%w: a scheduled change that affects no instance", ErrIgnored)
	}
	return nil
}

// parseTime reads a time as AWS Health writes it.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC1123, text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	return t, err
}
