package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// rememberTime is how long what the functions remember is waited for.
const rememberTime = 10 * time.Second

// memory is what the functions remember, as a plan program reads it. It is read when a
// snapshot asks for it, once; nothing is ever written.
type memory struct {
	// name is that of the table, or of the file, for messages.
	name string
	open func(ctx context.Context) (ledger.Table, error)
	now  func() time.Time
	// over: it counts for a saved snapshot too, in place of what that remembers.
	over bool
	// must: a plan without it is an error; else it is a warning of the plan.
	must bool

	read bool
	meta lifecycle.Meta
	data lifecycle.Remembered
	// What consolidation has done lately, for its cool-downs.
	commands []lifecycle.Command
	moves    []lifecycle.WorkloadMove
	err      error
}

// load reads what is remembered, once.
func (m *memory) load() error {
	if m.read {
		return m.err
	}
	m.read = true
	ctx, done := context.WithTimeout(context.Background(), rememberTime)
	defer done()
	m.err = m.fetch(ctx)
	return m.err
}

func (m *memory) fetch(ctx context.Context) error {
	table, err := m.open(ctx)
	if err != nil {
		return err
	}
	l := ledger.New(ledger.Config{Table: table, Owner: "plan", Now: m.now, Wait: backOff, Tries: 4})
	var ok bool
	if m.meta, ok, err = l.Stored(ctx); err != nil {
		return err
	}
	if !ok {
		return errors.New("it holds no ledger: the row META is missing")
	}
	if m.data, err = l.Remember(ctx); err != nil {
		return err
	}
	if m.commands, err = l.Commands(ctx); err != nil {
		return err
	}
	m.moves, err = l.MovesSince(ctx, m.now().Add(-lifecycle.RestUnchanged))
	return err
}

// into puts what is remembered into a snapshot, or says there why it could not be read. It
// is kube.Options.Remember.
func (m *memory) into(s *snapshot.Snapshot, saved bool) {
	if saved && !m.over {
		return // it remembers for itself
	}
	err := m.load()
	if err == nil && s.Cluster != "" && m.meta.Cluster != "" && s.Cluster != m.meta.Cluster {
		err = fmt.Errorf("it is that of cluster %q and not of %q", m.meta.Cluster, s.Cluster)
		m.err = err
	}
	if err != nil {
		detail := fmt.Sprintf("ledger %s: %v", m.name, err)
		s.Incomplete = append(s.Incomplete, "what the functions remember could not be read")
		s.Remarks = append(s.Remarks, snapshot.Remark{Code: string(plan.LedgerNotRead), Detail: detail})
		return
	}
	if s.Cluster == "" {
		s.Cluster = m.meta.Cluster
	}
	if m.meta.Mode == lifecycle.Recovery {
		detail := fmt.Sprintf("ledger %s is in recovery since %s: %s", m.name, m.meta.Since.UTC().Format(time.RFC3339), m.meta.Why)
		s.Remarks = append(s.Remarks, snapshot.Remark{Code: string(plan.LedgerInRecovery), Detail: detail})
	}
	m.data.Into(s)
	s.Rests = lifecycle.Rests(s, m.commands, m.moves, m.data.Records)
}

// failed is why there is no plan, nil where there may be one.
func (m *memory) failed() error {
	if m == nil || !m.must || m.err == nil {
		return nil
	}
	return fmt.Errorf("--ledger %s: %w", m.name, m.err)
}

// tableNamed is a table of DynamoDB in a region; "" is that of the environment's
// configuration of AWS.
func tableNamed(table, region string) func(ctx context.Context) (ledger.Table, error) {
	return func(ctx context.Context) (ledger.Table, error) {
		var with []func(*awsconfig.LoadOptions) error
		if region != "" {
			with = append(with, awsconfig.WithRegion(region))
		}
		conf, err := awsconfig.LoadDefaultConfig(ctx, with...)
		if err != nil {
			return nil, fmt.Errorf("read the configuration of AWS: %w", err)
		}
		if conf.Region == "" {
			return nil, errors.New("no region: give it with --region, or set AWS_REGION")
		}
		return ledger.NewDynamoDB(dynamodb.NewFromConfig(conf, ledger.Options), table), nil
	}
}

// tableFile is a table that was written to a file.
func tableFile(path string) func(context.Context) (ledger.Table, error) {
	return func(context.Context) (ledger.Table, error) {
		f, err := os.Open(path)
		if err != nil {
			var pe *fs.PathError
			if errors.As(err, &pe) {
				err = pe.Err // the name is said already
			}
			return nil, err
		}
		defer f.Close()
		return ledger.Import(f)
	}
}

// tableName is how DynamoDB lets tables be named.
var tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

// memory reads --ledger: a file if there is one of that name, or the name could be no
// table's; else a table.
func (o *options) memory(region string) *memory {
	m := &memory{name: o.ledger, over: true, must: true, now: time.Now}
	_, err := os.Stat(o.ledger)
	if err == nil || !tableName.MatchString(o.ledger) || strings.HasSuffix(o.ledger, ".json") {
		m.open = tableFile(o.ledger)
		// The time of the plan says what counts, not that at which the file is read.
		m.now = func() time.Time { return time.Unix(0, 0) }
		return m
	}
	m.open = tableNamed(o.ledger, region)
	return m
}
