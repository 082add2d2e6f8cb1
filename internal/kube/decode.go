package kube

import (
	"bytes"
	stdjson "encoding/json"
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
}

func (e *fieldError) Error() string {
	if e.field == "" {
		return e.message
	}
	return e.field + ": " + e.message
}

func fieldErrorf(field, format string, args ...any) *fieldError {
	return &fieldError{field, fmt.Sprintf(format, args...)}
}

// decodeLenient decodes as the API server does: names are case-sensitive, fields
// it does not know are skipped. prefix is put before the field in errors.
func decodeLenient(raw []byte, into any, prefix string) *fieldError {
	if err := hugeExponent(raw); err != nil {
		return err
	}
	err := json.UnmarshalCaseSensitivePreserveInts(raw, into)
	if err == nil {
		return nil
	}
	if found := diagnose(raw, reflect.TypeOf(into), prefix, false); found != nil {
		return found
	}
	return &fieldError{prefix, err.Error()}
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
	return &fieldError{prefix, err.Error()}
}

// hugeExponent refuses numbers like "1e-10000000": the quantity parser takes
// minutes for them, and no quantity is that small or that large.
func hugeExponent(raw []byte) *fieldError {
	for rest := raw; ; {
		i := bytes.IndexAny(rest, "eE")
		if i < 0 {
			return nil
		}
		// All of digits . + - before, and sign and four digits or more after.
		end := i + 1
		if end < len(rest) && (rest[end] == '-' || rest[end] == '+') {
			end++
		}
		digits := end
		for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		if end-digits >= 4 && i > 0 {
			start := i
			for start > 0 && (rest[start-1] >= '0' && rest[start-1] <= '9' || rest[start-1] == '.') {
				start--
			}
			signed := start
			if signed > 0 && (rest[signed-1] == '-' || rest[signed-1] == '+') {
				signed--
			}
			before := byte('"')
			if signed > 0 {
				before = rest[signed-1]
			}
			after := byte('"')
			if end < len(rest) {
				after = rest[end]
			}
			if start < i && strings.IndexByte("\":[, \t\n", before) >= 0 && strings.IndexByte("\",]} \t\r\n", after) >= 0 {
				return &fieldError{"", fmt.Sprintf("%s: an exponent of more than three digits", shorten(string(rest[signed:end])))}
			}
		}
		rest = rest[i+1:]
	}
}

// diagnose finds the first field of raw that does not fit type t, by name order
// of the fields. It is the slow path: it runs when decoding has failed.
func diagnose(raw []byte, t reflect.Type, prefix string, strict bool) *fieldError {
	d := stdjson.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return &fieldError{prefix, "no valid JSON: " + err.Error()}
	}
	return misfit(v, t, prefix, strict)
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
			return &fieldError{path, fmt.Sprintf("%s is %s", shorten(string(raw)), noSuch(t, err))}
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
					return &fieldError{join(path, name), "unknown field" + suggestion(name, fields)}
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
	switch v.(type) {
	case bool, stdjson.Number:
		if want == "a string" {
			msg += fmt.Sprintf(" (put it in quotes: \"%s\")", shorten(string(raw)))
		}
	}
	return &fieldError{path, msg}
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
