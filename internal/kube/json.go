package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// json reads the rest of the source as JSON values: objects one after another,
// one a line or not, or an array of them. Lists are read item by item.
func (s *stream) json() error {
	j := &jsonReader{s: s}
	for {
		c, err := j.space()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return s.readError(err)
		}
		if c == '-' && j.skipMark() { // "---" between JSON documents
			continue
		}
		if c == '[' {
			if err := j.array(func(line int) error { return j.document(line) }); err != nil {
				return err
			}
			continue
		}
		s.r.UnreadByte()
		if err := j.document(s.line + 1); err != nil {
			return err
		}
	}
}

// parsed reads one document that is in memory as JSON.
func (s *stream) parsed(raw []byte, at place) error {
	if t := bytes.TrimSpace(raw); len(t) == 0 || t[0] != '{' {
		return s.sink.problem(at.problem("", "", "no object but "+describe(raw)))
	}
	var head header
	if json.Unmarshal(raw, &head) != nil || head.APIVersion != savedVersion && !isList(head.Kind) {
		return s.object(raw, at)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return s.sink.problem(at.problem("", "", err.Error()))
	}
	if head.APIVersion == savedVersion {
		return s.parsedSnapshot(fields, at)
	}
	var each []json.RawMessage
	if fields["items"] == nil {
		return s.object(raw, at)
	}
	if err := json.Unmarshal(fields["items"], &each); err != nil {
		return s.sink.problem(at.problem("", "items", "must be a list, not "+describe(fields["items"])))
	}
	items := s.newList(at)
	items.head = head
	for _, raw := range each {
		if err := items.add(raw, items.next(0)); err != nil {
			return err
		}
	}
	return items.end(nil)
}

func (s *stream) parsedSnapshot(fields map[string]json.RawMessage, at place) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !savedLists[name] {
			continue
		}
		var each []json.RawMessage
		if err := json.Unmarshal(fields[name], &each); err != nil {
			return s.sink.problem(at.problem("", name, "must be a list, not "+describe(fields[name])))
		}
		delete(fields, name)
		for i, raw := range each {
			at := at
			at.item, at.line = int32(i+1), 0
			if err := s.sink.saved(name, raw, at); err != nil {
				return err
			}
		}
	}
	head, err := json.Marshal(fields)
	if err != nil {
		return s.sink.problem(at.problem("", "", err.Error()))
	}
	return s.sink.saved("", head, at)
}

func isList(kind string) bool {
	return len(kind) >= 4 && kind[len(kind)-4:] == "List"
}

// jsonReader cuts a stream into JSON values without decoding them.
type jsonReader struct {
	s    *stream
	buf  []byte // the value being read
	head []byte // a document without its items
}

var errTruncated = errors.New("the JSON ends in the middle of a value")

// space skips white space and returns the next byte.
func (j *jsonReader) space() (byte, error) {
	for {
		c, err := j.s.r.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			j.s.line++
		case ' ', '\t', '\r':
		default:
			return c, nil
		}
	}
}

func (j *jsonReader) skipMark() bool {
	b, _ := j.s.r.Peek(2)
	if string(b) != "--" {
		return false
	}
	j.s.r.Discard(2)
	return true
}

func (j *jsonReader) fail(line int, format string, args ...any) error {
	return j.s.here(line).problem("", "", "no valid JSON: "+fmt.Sprintf(format, args...))
}

// array reads the elements of an array whose "[" was read.
func (j *jsonReader) array(element func(line int) error) error {
	first := true
	for {
		c, err := j.space()
		if err != nil {
			return j.fail(j.s.line+1, "%v", eof(err))
		}
		switch {
		case c == ']':
			return nil
		case c == ',' && !first:
			if _, err = j.space(); err != nil {
				return j.fail(j.s.line+1, "%v", eof(err))
			}
		case !first:
			return j.fail(j.s.line+1, "%q after an element of a list, want , or ]", c)
		}
		first = false
		j.s.r.UnreadByte()
		if err := element(j.s.line + 1); err != nil {
			return err
		}
	}
}

func eof(err error) error {
	if err == io.EOF {
		return errTruncated
	}
	return err
}

// value appends the next value, whatever it is, to dst. at is the document or
// item that it belongs to.
func (j *jsonReader) value(dst []byte, at place) ([]byte, error) {
	start := j.s.line + 1
	depth := 0
	inString, escaped, scalar := false, false, false
	for {
		c, err := j.s.r.ReadByte()
		if err != nil {
			if scalar && err == io.EOF {
				return dst, nil
			}
			return dst, j.fail(start, "%v", eof(err))
		}
		if scalar && (c == ',' || c == ']' || c == '}' || c <= ' ') {
			j.s.r.UnreadByte()
			return dst, nil
		}
		if c == '\n' {
			j.s.line++
		}
		if len(dst) >= maxDocument {
			return dst, at.problem("", "", fmt.Sprintf("the object is larger than %d MiB", maxDocument>>20))
		}
		dst = append(dst, c)
		if inString {
			switch {
			case escaped:
				escaped = false
			case c == '\\':
				escaped = true
			case c == '"':
				inString = false
				if depth == 0 {
					return dst, nil
				}
			}
			continue
		}
		switch c {
		case '"':
			inString = true
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return dst, nil
			}
			if depth < 0 {
				return dst, j.fail(start, "unexpected %q", c)
			}
		case ' ', '\t', '\r', '\n':
		default:
			scalar = depth == 0
		}
	}
}

// document reads one document and hands it on; a List item by item.
func (j *jsonReader) document(line int) error {
	j.s.document++
	at := j.s.here(line)
	c, err := j.space()
	if err != nil {
		return j.fail(line, "%v", eof(err))
	}
	if c != '{' {
		j.s.r.UnreadByte()
		if j.buf, err = j.value(j.buf[:0], at); err != nil {
			return err
		}
		if !json.Valid(j.buf) {
			return j.fail(line, "%q", shorten(string(j.buf)))
		}
		return j.s.sink.problem(at.problem("", "", "no object but "+describe(j.buf)))
	}
	j.head = append(j.head[:0], '{')
	var items *list
	var kinds header
	for first := true; ; first = false {
		c, err := j.space()
		if err != nil {
			return j.fail(line, "%v", eof(err))
		}
		if c == '}' {
			break
		}
		if !first {
			if c != ',' {
				return j.fail(j.s.line+1, "%q after a field, want , or }", c)
			}
			j.head = append(j.head, ',')
			if c, err = j.space(); err != nil {
				return j.fail(line, "%v", eof(err))
			}
		}
		if c != '"' {
			return j.fail(j.s.line+1, "%q where a field name in quotes should be", c)
		}
		j.s.r.UnreadByte()
		from := len(j.head)
		if j.head, err = j.value(j.head, at); err != nil {
			return err
		}
		key := string(j.head[from:])
		if c, err = j.space(); err != nil {
			return j.fail(line, "%v", eof(err))
		}
		if c != ':' {
			return j.fail(j.s.line+1, "%q after the field name %s, want :", c, shorten(key))
		}
		j.head = append(j.head, ':')
		if c, err = j.space(); err != nil {
			return j.fail(line, "%v", eof(err))
		}
		if c == '[' && items == nil && key == `"items"` && (kinds.Kind == "" || isList(kinds.Kind)) {
			items = j.s.newList(at)
			items.head = kinds
			j.head = append(j.head, "null"...)
			if err := j.array(func(line int) error { return j.item(items, line) }); err != nil {
				return err
			}
			continue
		}
		if name := strings.Trim(key, `"`); c == '[' && kinds.APIVersion == savedVersion && savedLists[name] {
			j.head = append(j.head, "null"...)
			if err := j.array(j.savedElement(name, at)); err != nil {
				return err
			}
			continue
		}
		j.s.r.UnreadByte()
		from = len(j.head)
		if j.head, err = j.value(j.head, at); err != nil {
			return err
		}
		switch key {
		case `"items"`:
			if isList(kinds.Kind) && c != 'n' {
				return j.s.sink.problem(at.problem(kinds.Kind, "items", "must be a list, not "+describe(j.head[from:])))
			}
		case `"kind"`:
			json.Unmarshal(j.head[from:], &kinds.Kind)
		case `"apiVersion"`:
			json.Unmarshal(j.head[from:], &kinds.APIVersion)
		}
	}
	j.head = append(j.head, '}')
	switch {
	case items != nil:
		return items.end(j.head)
	case kinds.APIVersion == savedVersion:
		return j.s.parsed(j.head, at)
	}
	return j.s.object(j.head, at)
}

func (j *jsonReader) savedElement(list string, at place) func(line int) error {
	at.item = 0
	return func(line int) (err error) {
		at.item++
		at.line = int32(line)
		if j.buf, err = j.value(j.buf[:0], at); err != nil {
			return err
		}
		return j.s.sink.saved(list, j.buf, at)
	}
}

func (j *jsonReader) item(items *list, line int) (err error) {
	at := items.next(line)
	if j.buf, err = j.value(j.buf[:0], at); err != nil {
		return err
	}
	return items.add(j.buf, at)
}

// describe says what a JSON value is, for messages.
func describe(raw []byte) string {
	t := bytes.TrimSpace(raw)
	if len(t) == 0 {
		return "nothing"
	}
	switch t[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "the string " + shorten(string(t))
	case 't', 'f':
		return "the boolean " + string(t)
	case 'n':
		return "null"
	}
	return "the number " + shorten(string(t))
}
