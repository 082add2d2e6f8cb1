package kube

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/json"
)

// fieldError says what is wrong with one field.
type fieldError struct {
	field   string
	message string
	// refused: the object is well formed, but the API server would refuse it. It is
	// left out; the others are read.
	refused bool
}

// refusedf is an error about an object that the API server would refuse.
func refusedf(field, format string, args ...any) *fieldError {
	return &fieldError{field: field, message: fmt.Sprintf(format, args...), refused: true}
}

func malformed(field, message string) *fieldError {
	return &fieldError{field: field, message: message}
}

// decodeLenient decodes as the API server does: names are case-sensitive, fields
// it does not know are skipped. A field that stands twice is refused. prefix is put before the field in errors.
func decodeLenient(raw []byte, into any, prefix string) *fieldError {
	if err := hugeExponent(raw); err != nil {
		return err
	}
	twice, err := json.UnmarshalStrict(raw, into, json.DisallowDuplicateFields)
	if err == nil && len(twice) == 0 {
		return nil
	}
	if err == nil {
		return doubled(twice[0], prefix)
	}
	if found := diagnose(raw, reflect.TypeOf(into), prefix, false); found != nil {
		return found
	}
	return malformed(prefix, err.Error())
}

// decodeStrict decodes like decodeLenient and refuses unknown and repeated fields.
func decodeStrict(raw []byte, into any, prefix string) *fieldError {
	if err := hugeExponent(raw); err != nil {
		return err
	}
	strict, err := json.UnmarshalStrict(raw, into)
	if err == nil && len(strict) == 0 {
		return nil
	}
	if found := diagnose(raw, reflect.TypeOf(into), prefix, true); found != nil {
		return found
	}
	if err == nil {
		err = strict[0]
	}
	return malformed(prefix, err.Error())
}

// doubled is the error about a field that stands twice in one object: one of the two
// is a mistake, and nobody knows which.
func doubled(err error, prefix string) *fieldError {
	_, name, ok := strings.Cut(err.Error(), `duplicate field "`)
	if name = strings.TrimSuffix(name, `"`); !ok || name == "" {
		return malformed(prefix, err.Error())
	}
	if prefix != "" {
		name = prefix + "." + name
	}
	return malformed(name, "the same field twice in one object; keep one")
}

// hugeExponent refuses numbers like "1e-10000000": the quantity parser takes
// minutes for them, and no quantity is that small.
func hugeExponent(raw []byte) *fieldError {
	for _, mark := range []string{"e-", "E-"} {
		for at := 0; ; {
			i := bytes.Index(raw[at:], []byte(mark))
			if i < 0 {
				break
			}
			i += at
			at = i + len(mark)
			start, end := i, at
			for start > 0 && strings.IndexByte("0123456789.", raw[start-1]) >= 0 {
				start--
			}
			for end < len(raw) && raw[end] >= '0' && raw[end] <= '9' {
				end++
			}
			if start == i || end-at < 4 {
				continue
			}
			if start > 0 && strings.IndexByte("+-", raw[start-1]) >= 0 {
				start--
			}
			if start > 0 && strings.IndexByte("\":[, \t\n", raw[start-1]) >= 0 && end < len(raw) && strings.IndexByte("\",]} \t\r\n", raw[end]) >= 0 {
				return malformed("", fmt.Sprintf("%s: an exponent of more than three digits", shorten(string(raw[start:end]))))
			}
		}
	}
	return nil
}

// diagnose finds the first field of raw that does not fit type t, by name order
// of the fields. It is the slow path: it runs when decoding has failed.
func diagnose(raw []byte, t reflect.Type, prefix string, strict bool) *fieldError {
	d := stdjson.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return malformed(prefix, jsonMessage(raw))
	}
	return misfit(v, t, prefix, strict)
}

func jsonMessage(raw []byte) string {
	var v any
	err := stdjson.Unmarshal(raw, &v)
	if err == nil {
		return "no valid JSON"
	}
	var syntax *stdjson.SyntaxError
	if errors.As(err, &syntax) {
		from := max(0, int(syntax.Offset)-20)
		return fmt.Sprintf("no valid JSON: %v near %q", err, raw[from:min(len(raw), int(syntax.Offset)+5)])
	}
	return "no valid JSON: " + err.Error()
}

var unmarshaler = reflect.TypeFor[stdjson.Unmarshaler]()

func misfit(v any, t reflect.Type, path string, strict bool) *fieldError {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if v == nil {
		return nil
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		raw, err := stdjson.Marshal(v)
		if err != nil {
			return nil
		}
		if err := json.UnmarshalCaseSensitivePreserveInts(raw, reflect.New(t).Interface()); err != nil {
			return malformed(path, fmt.Sprintf("%s is %s", shorten(string(raw)), noSuch(t, err)))
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		m, ok := v.(map[string]any)
		if !ok {
			return wrongType(path, "an object", v)
		}
		fields := jsonFields(t)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			ft, ok := fields[name]
			if !ok {
				if strict {
					return malformed(join(path, name), "unknown field"+suggestion(name, fields))
				}
				continue
			}
			if e := misfit(m[name], ft, join(path, name), strict); e != nil {
				return e
			}
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			if _, ok := v.(string); !ok {
				return wrongType(path, "a string", v)
			}
			return nil
		}
		list, ok := v.([]any)
		if !ok {
			return wrongType(path, "a list", v)
		}
		for i, e := range list {
			if e := misfit(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i), strict); e != nil {
				return e
			}
		}
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			return wrongType(path, "an object", v)
		}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if e := misfit(m[name], t.Elem(), join(path, name), strict); e != nil {
				return e
			}
		}
	case reflect.String:
		if _, ok := v.(string); !ok {
			return wrongType(path, "a string", v)
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			return wrongType(path, "true or false", v)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, ok := v.(stdjson.Number)
		if !ok {
			return wrongType(path, "a whole number", v)
		}
		if i, err := n.Int64(); err != nil || reflect.New(t).Elem().OverflowInt(i) {
			return wrongType(path, fmt.Sprintf("a whole number of %d bits", t.Bits()), v)
		}
	}
	return nil
}

func noSuch(t reflect.Type, err error) string {
	switch t.Name() {
	case "Quantity":
		return "no quantity (write it like 500m, 2 or 1Gi)"
	case "Time", "MicroTime":
		return "no time (write it like 2026-03-04T12:00:00Z)"
	case "IntOrString":
		return "neither a whole number nor a string"
	case "Duration":
		return "no duration (write it like 90s, 15m or 720h)"
	}
	return "not readable: " + err.Error()
}

func wrongType(path, want string, v any) *fieldError {
	raw, err := stdjson.Marshal(v)
	if err != nil {
		raw = []byte("?")
	}
	msg := fmt.Sprintf("must be %s, not %s", want, describe(raw))
	if want == "a string" {
		switch v.(type) {
		case bool:
			msg += " (put it in quotes; YAML reads y, yes, on, n, no and off as booleans too)"
		case stdjson.Number:
			msg += fmt.Sprintf(" (put it in quotes: \"%s\")", shorten(string(raw)))
		}
	}
	return malformed(path, msg)
}

// join adds a field name to a path; names that are no identifiers are quoted.
func join(path, name string) string {
	for _, c := range name {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return fmt.Sprintf("%s[%q]", path, shorten(name))
		}
	}
	if path == "" {
		return shorten(name)
	}
	return path + "." + shorten(name)
}

// jsonFields lists the JSON names of a struct, embedded ones included.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		for ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		switch {
		case name == "-":
		case name == "" && (f.Anonymous || strings.Contains(opts, "inline")) && ft.Kind() == reflect.Struct:
			maps.Copy(out, jsonFields(ft))
		case name == "":
			out[f.Name] = f.Type
		default:
			out[name] = f.Type
		}
	}
	return out
}

// suggestion names the field that was probably meant.
func suggestion(name string, fields map[string]reflect.Type) string {
	best, bestAt := "", 3
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if strings.EqualFold(f, name) {
			best, bestAt = f, 0
			continue
		}
		if d := distance(name, f); d < bestAt && d < len(f)/2 {
			best, bestAt = f, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance is the edit distance of two names.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
