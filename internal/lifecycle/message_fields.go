package lifecycle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// quote shows the beginning of a body.
func quote(body string) string {
	const most = 200
	if len(body) > most {
		return strconv.Quote(strings.ToValidUTF8(body[:most], "")) + "..."
	}
	return strconv.Quote(body)
}

// fields are those of a JSON object as they are written.
type fields map[string]json.RawMessage

// longestBody is more than any message of ours has.
const longestBody = 64 << 10

// readFields reads one JSON object. encoding/json alone would let a field be there twice, or
// in other capitals.
func readFields(body string) (fields, error) {
	if len(body) > longestBody {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(body), longestBody)
	}
	dec := json.NewDecoder(strings.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("want one JSON object")
	}
	out := fields{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("want one JSON object: %w", err)
		}
		name, _ := t.(string) // the decoder lets nothing else be a key
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("field %q is there twice", name)
		}
		out[name] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("want one JSON object: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind the JSON object")
	}
	return out, nil
}

// scheduled reports whether the object is the event of a schedule without input.
func (f fields) scheduled() bool {
	var source, kind string
	return f.text("source", &source) == nil && f.text("detail-type", &kind) == nil &&
		(source == "aws.scheduler" || source == "aws.events") && kind == "Scheduled Event"
}

// text reads a field that is a string; one that is not there stays as it is.
func (f fields) text(name string, to *string) error {
	raw, ok := f[name]
	if !ok {
		return nil
	}
	if !bytes.HasPrefix(raw, []byte(`"`)) {
		return fmt.Errorf("field %q: want a string, not %s", name, raw)
	}
	return json.Unmarshal(raw, to)
}

func (f fields) integer(name string, to *int64) error {
	raw, ok := f[name]
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return fmt.Errorf("field %q: want a whole number, not %s", name, raw)
	}
	*to = n
	return nil
}

// time reads a field that is a time; a placeholder that nothing was put in the place of
// counts as one that is not there.
func (f fields) time(name string, to *time.Time) error {
	var s string
	if err := f.text(name, &s); err != nil || s == "" || strings.HasPrefix(s, "<aws.scheduler.") {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("field %q: want a time like 2006-01-02T15:04:05Z, not %q", name, s)
	}
	*to = t.UTC()
	return nil
}

// done reports fields beyond the known ones, by name.
func (f fields) done(known ...string) error {
	var more []string
	for name := range f {
		if !slices.Contains(known, name) {
			more = append(more, strconv.Quote(name))
		}
	}
	if len(more) == 0 {
		return nil
	}
	slices.Sort(more)
	return fmt.Errorf("field %s is not known; there are %s", strings.Join(more, ", "), strings.Join(known, ", "))
}
