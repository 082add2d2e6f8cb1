package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/doctor"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// maxAnswer is what Lambda lets a synchronous invocation return.
const maxAnswer = 6 << 20

// Request is the payload of the plan function.
type Request struct {
	Mode    string `json:"mode"`    // plan (default), explain, diff, doctor
	Explain string `json:"explain"` // pod/NS/NAME, node/NAME, nodepool/NAME
	Format  string `json:"format"`  // json (default), text, html

	// Objects are the cluster: each entry is a manifest as text (YAML or JSON, many
	// documents allowed) or an object in JSON. Without any it is the function's own cluster.
	Objects []json.RawMessage `json:"objects"`
	// Workloads plans pods for workloads that have none among the objects.
	Workloads bool `json:"workloads"`
	// Catalog is a catalogue file to use instead of the embedded table.
	Catalog  json.RawMessage            `json:"catalog"`
	Settings map[string]json.RawMessage `json:"settings"`
	Cluster  string                     `json:"cluster"`
	Region   string                     `json:"region"`
	Now      time.Time                  `json:"now"` // default: the function's clock
	Seed     uint64                     `json:"seed"`

	// WhatIf are manifests whose objects are added, or take the place of those of the
	// same kind and name; Remove names objects to be taken away after that. The plan is
	// then the one for the changed cluster, with what differs under "diff".
	WhatIf []json.RawMessage `json:"whatIf"`
	Remove []string          `json:"remove"`

	Consolidate bool `json:"consolidate"`
}

// Input says how objects become a snapshot. What is zero is taken from a saved
// snapshot among the objects, else from where the program runs (clock, region).
type Input struct {
	Cluster, Region string
	Now             time.Time
	Seed            uint64
	// Settings changes the settings that the objects come with (those of a saved
	// snapshot, else the defaults).
	Settings  func(snapshot.Settings) snapshot.Settings
	Workloads bool
	// WhatIf are manifests to be laid over the objects, Remove objects to be taken away.
	WhatIf []string
	Remove []snapshot.Ref
	// Save: the snapshot will be saved, so it keeps what only matters then.
	Save bool
	// Remember adds what the functions remember; nil = nothing (kube.Options).
	Remember func(s *snapshot.Snapshot, saved bool)
}

// Settings are settings that were checked.
type Settings struct {
	Cluster string // "" when not set
	Apply   func(snapshot.Settings) snapshot.Settings
}

// Reading is what came of reading objects.
type Reading struct {
	Snapshot *snapshot.Snapshot
	// Left are the objects that were left out: object and reason.
	Left     []plan.Warning
	Warnings []plan.Warning
	// Before is the reading without what the input lays over it or removes, Changes is
	// what that changed; nil when it does neither.
	Before  *Reading
	Changes []plan.Change
}

// Plan answers the plan function.
type Plan struct {
	// Read turns manifests into a snapshot. An error means that the input must be
	// corrected.
	Read func(manifests []string, in Input) (*Reading, error)
	// Settings checks settings and puts them over those of the function's
	// environment.
	Settings func(map[string]string) (Settings, error)
	// Solve makes the plan; explain names one object or is empty.
	Solve func(s *snapshot.Snapshot, c *catalog.Catalog, explain string) *plan.Plan
	// Moves adds to a plan which nodes could go.
	Moves func(s *snapshot.Snapshot, c *catalog.Catalog, p *plan.Plan)
	// Live reads the function's own cluster, and what can be launched for it (nil = as for
	// objects); nil = it has none.
	Live func(ctx context.Context, in Input) (*Reading, *catalog.Catalog, error)
	// Doctor looks at the function's own cluster; nil = it has none.
	Doctor func(ctx context.Context) (*doctor.Report, error)
}

// Refusal is a request that gets no plan: its code and what to do.
type Refusal struct {
	Code    plan.Code `json:"code"`
	Message string    `json:"message"`
}

func (r *Refusal) Error() string { return r.Message }

func refuse(code plan.Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Handle answers one invocation: the plan as JSON, {"text": ...}, {"html": ...},
// or {"error": {"code", "message"}} when there is no plan. The error is nil: what
// a person must correct is not a failure of the function, and a retry would not
// help.
func (h *Plan) Handle(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	out, err := h.answer(ctx, payload)
	if err == nil && len(out) > maxAnswer {
		err = refuse(plan.AnswerTooLarge,
			"the answer has %d bytes and Lambda returns %d at most: ask with \"explain\" for one object, or use the command line", len(out), maxAnswer)
	}
	if err != nil {
		var r *Refusal
		if !errors.As(err, &r) {
			r = &Refusal{Code: plan.InvalidInput, Message: err.Error()}
		}
		return marshal(map[string]*Refusal{"error": r}), nil
	}
	return out, nil
}

func (h *Plan) answer(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	req, err := decode(payload)
	if err != nil {
		return nil, err
	}
	if err := req.check(h.Live != nil); err != nil {
		return nil, err
	}
	if req.Mode == "doctor" {
		return h.doctor(ctx, req.Format)
	}
	p, err := h.plan(ctx, req)
	if err != nil {
		return nil, err
	}
	return h.render(p, req.Format, req.Mode == "diff")
}

// decode reads a payload strictly: a field that is not known is a request that
// would be half answered.
func decode(payload json.RawMessage) (*Request, error) {
	var req Request
	if len(bytes.TrimSpace(payload)) == 0 {
		return &req, nil
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		return nil, refuse(plan.InvalidRequest, "read the payload: %s", decodeMessage(err))
	}
	if dec.More() {
		return nil, refuse(plan.InvalidRequest, "read the payload: there is more after the JSON object")
	}
	return &req, nil
}

// decodeMessage says what is wrong with a payload in the words of JSON.
func decodeMessage(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	want := map[reflect.Kind]string{
		reflect.String: "a string", reflect.Bool: "true or false", reflect.Slice: "a list",
		reflect.Map: "an object", reflect.Struct: "an object",
	}[wrong.Type.Kind()]
	if want == "" {
		want = "a whole number"
	}
	if wrong.Field == "" {
		return fmt.Sprintf("want %s, not a JSON %s", want, wrong.Value)
	}
	return fmt.Sprintf("%s: want %s, not a JSON %s", wrong.Field, want, wrong.Value)
}

// check refuses what has no answer; live: there is a cluster to read.
func (r *Request) check(live bool) error {
	switch r.Mode {
	case "", "plan", "explain", "diff":
	case "doctor":
		return r.checkDoctor()
	default:
		return refuse(plan.InvalidRequest, "mode %q is not known; want plan, explain, doctor or diff", r.Mode)
	}
	switch r.Format {
	case "", "json", "text", "html":
	default:
		return refuse(plan.InvalidRequest, "format %q is not known; want json, text or html", r.Format)
	}
	if r.Mode == "diff" && len(r.WhatIf)+len(r.Remove) == 0 {
		return refuse(plan.InvalidRequest, "mode diff needs something to compare with: \"whatIf\" (manifests) or \"remove\" (objects)")
	}
	if r.Mode == "diff" && r.Explain != "" {
		return refuse(plan.InvalidRequest, "mode diff compares whole plans; mode explain with \"whatIf\" or \"remove\" explains one object on both sides")
	}
	if r.Mode == "explain" && r.Explain == "" {
		return refuse(plan.InvalidRequest, "mode explain needs \"explain\": pod/NS/NAME, node/NAME or nodepool/NAME")
	}
	if r.Explain != "" {
		if err := CheckObject(r.Explain); err != nil {
			return refuse(plan.InvalidRequest, "explain %q: %s", r.Explain, err)
		}
	}
	if len(r.Objects) == 0 && !live {
		return refuse(plan.NotSupported, "this function has no cluster to read: give the cluster's objects as manifests in \"objects\"")
	}
	if len(r.Objects) == 0 && (r.Cluster != "" || r.Region != "") {
		return refuse(plan.InvalidRequest, "\"cluster\" and \"region\" are for \"objects\": without any it is the function's own cluster")
	}
	return nil
}

func (h *Plan) plan(ctx context.Context, req *Request) (*plan.Plan, error) {
	set, err := settingValues(req.Settings)
	if err != nil {
		return nil, err
	}
	settings, err := h.Settings(set)
	if err != nil {
		return nil, err
	}
	in := Input{Cluster: req.Cluster, Region: req.Region, Now: req.Now, Seed: req.Seed, Settings: settings.Apply, Workloads: req.Workloads}
	if in.Cluster == "" {
		in.Cluster = settings.Cluster
	}
	var table *catalog.Catalog
	if len(req.Catalog) > 0 && string(req.Catalog) != "null" {
		if table, err = catalog.Parse(req.Catalog); err != nil {
			return nil, refuse(plan.InvalidInput, "read the catalog of the payload: %s", err)
		}
	}
	in.WhatIf = manifests(req.WhatIf)
	if in.Remove, err = Refs("remove", req.Remove); err != nil {
		return nil, err
	}
	var reading *Reading
	if len(req.Objects) > 0 {
		reading, err = h.Read(manifests(req.Objects), in)
	} else {
		var market *catalog.Catalog
		reading, market, err = h.Live(ctx, in)
		if table == nil {
			table = market
		}
	}
	if err != nil {
		return nil, err
	}
	solve := h.Solve
	if req.Consolidate {
		solve = WithMoves(h.Solve, h.Moves)
	}
	return Make(reading, table, req.Explain, solve)
}

// manifests takes texts as they are, and objects as JSON.
func manifests(in []json.RawMessage) []string {
	var out []string
	for _, o := range in {
		s := ""
		if json.Unmarshal(o, &s) != nil {
			s = string(o)
		}
		out = append(out, s)
	}
	return out
}

// settingValues takes strings, numbers and booleans as they are written, and
// FEATURE_GATES as a map too.
func settingValues(in map[string]json.RawMessage) (map[string]string, error) {
	out := make(map[string]string, len(in))
	for k, raw := range in {
		var s string
		var gates map[string]bool
		switch {
		case json.Unmarshal(raw, &s) == nil:
			out[k] = s
		case json.Unmarshal(raw, &gates) == nil:
			out[k] = joinGates(gates)
		case bytes.ContainsAny(raw, "[{"):
			return nil, refuse(plan.InvalidRequest, "settings: %s: want one value", k)
		default:
			out[k] = string(raw)
		}
	}
	return out, nil
}

// render writes a plan, or what differs from the one on what is, in a format.
func (h *Plan) render(p *plan.Plan, format string, diff bool) (json.RawMessage, error) {
	r := Rendering{Format: format, Diff: diff}
	out, err := r.Write(p)
	if err != nil {
		return nil, err
	}
	switch format {
	case "text", "html":
		return marshal(map[string]string{format: string(out)}), nil
	}
	return bytes.TrimSpace(out), nil
}

// marshal writes what always can be written: strings in maps and structs.
func marshal(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage(`{"error":{"code":"InvalidRequest","message":"the answer cannot be written"}}`)
	}
	return bytes.TrimSpace(buf.Bytes())
}
