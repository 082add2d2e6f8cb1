package kube

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// yaml reads the rest of the source as YAML documents; indent stands before it.
func (s *stream) yaml(indent []byte) error {
	d := &yamlDocument{s: s, start: s.line + 1}
	for {
		line, err := s.readLine()
		if err != nil && err != io.EOF {
			return s.readError(err)
		}
		end := err == io.EOF
		if len(indent) > 0 {
			line, indent = append(indent, line...), nil
		}
		if rest, ok := separator(line); ok {
			if err := d.finish(); err != nil {
				return err
			}
			d = &yamlDocument{s: s, start: s.line}
			line = rest
			if len(bytes.TrimSpace(rest)) == 0 {
				d.start++
			}
		}
		if err := d.add(line); err != nil {
			return err
		}
		if end {
			return d.finish()
		}
	}
}

// readLine returns the next line with its end. It is valid until the next call.
func (s *stream) readLine() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(long) > maxDocument {
				return nil, s.here(s.line+1).problem("", "", fmt.Sprintf("a line of more than %d MiB", maxDocument>>20))
			}
			line, err = s.r.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	if err == nil {
		s.line++
	}
	return line, err
}

// separator reports whether a line begins a new document, and what follows the
// mark on the same line.
func separator(line []byte) (rest []byte, ok bool) {
	if len(line) < 3 {
		return nil, false
	}
	mark := string(line[:3])
	if mark != "---" && mark != "..." {
		return nil, false
	}
	if len(line) == 3 {
		return nil, true
	}
	switch line[3] {
	case ' ', '\t', '\r', '\n':
		return line[3:], true
	}
	return nil, false
}

// yamlDocument gathers the lines of one document.
type yamlDocument struct {
	s     *stream
	start int // line of the first line in buf
	buf   []byte
	some  bool // a line that is neither blank nor a comment was seen
	items bool // an "items:" line was seen, and not yet whether it can be split
	list  *yamlList
}

func blank(line []byte) bool {
	t := bytes.TrimSpace(line)
	return len(t) == 0 || t[0] == '#'
}

func (d *yamlDocument) add(line []byte) error {
	if !d.some {
		// Directives and comments before the content decide nothing.
		if blank(line) || line[0] == '%' {
			if len(d.buf) == 0 {
				d.start = d.s.line + 1
			}
			return nil
		}
		d.some = true
		d.s.document++
		if len(line) > 0 && line[len(line)-1] == '\n' {
			d.start = d.s.line
		}
	}
	if d.list != nil {
		return d.list.add(line)
	}
	d.buf = append(d.buf, line...)
	if isItems(line) {
		d.items = true
	} else if d.items && len(d.buf) >= splitAt && !blank(line) {
		d.items = false
		if d.list = splitList(d); d.list != nil {
			buf := d.buf
			d.buf = nil
			at := d.start
			for len(buf) > 0 {
				n := bytes.IndexByte(buf, '\n') + 1
				if n == 0 {
					n = len(buf)
				}
				if err := d.list.addAt(buf[:n], at); err != nil {
					return err
				}
				buf = buf[n:]
				at++
			}
			return nil
		}
	}
	if len(d.buf) > maxDocument {
		return d.s.here(d.start).problem("", "", fmt.Sprintf(
			"the document is larger than %d MiB; separate its objects with --- or save them as a List in block style", maxDocument>>20))
	}
	return nil
}

func (d *yamlDocument) finish() error {
	if !d.some {
		return nil
	}
	if d.list != nil {
		return d.list.finish()
	}
	at := d.s.here(d.start)
	raw, err := yamlToJSON(d.buf, d.start, &d.s.plain)
	if err != nil {
		return d.s.sink.problem(at.problem("", "", err.Error()))
	}
	if raw == nil {
		return nil
	}
	return d.s.parsed(raw, at)
}

// yamlToJSON converts one YAML document; nil when it is null. The result is valid
// until the next call with the same plain. Line numbers in errors are those of
// the file.
func yamlToJSON(doc []byte, start int, plain *plainYAML) (raw []byte, err error) {
	if t := bytes.TrimSpace(doc); len(t) > 0 && t[0] == '{' && json.Valid(t) {
		return t, nil
	}
	if raw, ok := plain.convert(doc); ok {
		return raw, nil
	}
	if err := refuseBomb(doc); err != nil {
		return nil, err
	}
	// The parser reports what it cannot read by panicking inside; it recovers its
	// own panics only.
	defer func() {
		if r := recover(); r != nil {
			raw, err = nil, fmt.Errorf("no valid YAML: %v", r)
		}
	}()
	raw, err = yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, errors.New(yamlMessage(err, doc, start))
	}
	if string(raw) == "null" {
		return nil, nil
	}
	return raw, nil
}

var templated = regexp.MustCompile(`\{\{-? ?[.a-z]`)

var lineNumber = regexp.MustCompile(`\bline (\d+)`)

func yamlMessage(err error, doc []byte, start int) string {
	msg := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	msg = strings.TrimPrefix(msg, "yaml: ")
	msg = strings.ReplaceAll(msg, "unmarshal errors:\n  ", "")
	msg = strings.ReplaceAll(msg, "\n  ", "; ")
	msg = lineNumber.ReplaceAllStringFunc(msg, func(m string) string {
		n, err := strconv.Atoi(m[len("line "):])
		if err != nil {
			return m
		}
		return fmt.Sprintf("line %d", n+start-1)
	})
	msg = "no valid YAML: " + shorten(msg)
	if strings.Contains(msg, `key "apiVersion" already set`) {
		msg, _, _ = strings.Cut(msg, "; ") // every other key follows
		msg += " (two objects in one document? put a line --- between them)"
	}
	if templated.Match(doc) {
		msg += " (it looks like a template: render it first, as helm template does)"
	}
	return msg
}

// maxExpansion is the most that the aliases of a document may add to it.
const maxExpansion = 16 << 20

// refuseBomb refuses documents whose aliases would expand beyond reason. Without
// anchors there is nothing to expand, and nothing is parsed twice.
func refuseBomb(doc []byte) error {
	if !bytes.ContainsRune(doc, '&') || !bytes.ContainsRune(doc, '*') {
		return nil
	}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(doc, &root); err != nil {
		return nil // the real parser will say so better
	}
	e := expansion{size: map[*yamlv3.Node]int{}}
	if n := e.of(&root); n > len(doc)+maxExpansion {
		return fmt.Errorf("its aliases expand it beyond %d MiB: write the values out", maxExpansion>>20)
	}
	return nil
}

// expansion computes what nodes hold when every alias is written out.
type expansion struct {
	size map[*yamlv3.Node]int
}

func (e *expansion) of(n *yamlv3.Node) int {
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	if v, ok := e.size[n]; ok {
		return v
	}
	e.size[n] = maxDocument + maxExpansion + 1 // a node within itself never ends
	sum := len(n.Value) + 1
	for _, c := range n.Content {
		sum = min(sum+e.of(c), maxDocument+maxExpansion+1)
	}
	e.size[n] = sum
	return sum
}
