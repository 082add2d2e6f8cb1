package kube

import (
	"bytes"
	"slices"

	"sigs.k8s.io/yaml"
)

// plainYAML converts the YAML that kubectl, helm and people mostly write, block
// style with simple scalars, some ten times faster than the full parser and
// without its memory. Whatever it is not sure of, it leaves to the full parser:
// both must agree on all it accepts (FuzzPlainYAML).
type plainYAML struct {
	in  []byte
	pos int // start of the next line
	out []byte

	// The current line: whether there is one, its indentation, its text without
	// indentation and trailing spaces.
	live   bool
	indent int
	text   []byte

	keys  [][]byte // of the mappings that are open, innermost last
	depth int
	// resolved caches what the full parser makes of a scalar.
	resolved map[string][]byte
}

const (
	maxPlainDepth    = 100
	maxPlainKeys     = 256
	maxPlainResolved = 4096
)

// convert returns the JSON of a document, valid until the next call; ok is false
// when the full parser must do it.
func (p *plainYAML) convert(doc []byte) (raw []byte, ok bool) {
	for _, c := range doc {
		if c < ' ' && c != '\n' || c >= 0x7f {
			return nil, false
		}
	}
	p.in, p.pos, p.out, p.keys, p.depth = doc, 0, p.out[:0], p.keys[:0], 0
	p.next()
	if !p.live || !p.node() || p.live {
		return nil, false
	}
	return p.out, true
}

// next goes to the next line that is neither blank nor a comment.
func (p *plainYAML) next() {
	for p.pos < len(p.in) {
		line := p.in[p.pos:]
		if n := bytes.IndexByte(line, '\n'); n >= 0 {
			line = line[:n]
		}
		p.pos += len(line) + 1
		p.indent = indentation(line)
		p.text = bytes.TrimRight(line[p.indent:], " ")
		if len(p.text) > 0 && p.text[0] != '#' {
			p.live = true
			return
		}
	}
	p.live = false
}

func isDash(text []byte) bool {
	return text[0] == '-' && (len(text) == 1 || text[1] == ' ')
}

// node reads the block that begins at the current line.
func (p *plainYAML) node() bool {
	if p.depth++; p.depth > maxPlainDepth {
		return false
	}
	defer func() { p.depth-- }()
	if isDash(p.text) {
		return p.sequence()
	}
	return p.mapping()
}

func (p *plainYAML) mapping() bool {
	indent, first := p.indent, len(p.keys)
	p.out = append(p.out, '{')
	for p.live && p.indent == indent && !isDash(p.text) {
		key, rest, ok := splitKey(p.text)
		if !ok || len(p.keys)-first >= maxPlainKeys {
			return false
		}
		for _, k := range p.keys[first:] {
			if bytes.Equal(k, key) {
				return false
			}
		}
		if len(p.keys) > first {
			p.out = append(p.out, ',')
		}
		p.keys = append(p.keys, key)
		p.appendString(key)
		p.out = append(p.out, ':')
		if !p.value(indent, rest) {
			return false
		}
	}
	if p.live && p.indent >= indent {
		return false
	}
	p.keys = p.keys[:first]
	p.out = append(p.out, '}')
	return true
}

// value reads what follows "key:", on this line or below.
func (p *plainYAML) value(indent int, rest []byte) bool {
	if len(rest) > 0 {
		return p.scalar(indent, rest)
	}
	p.next()
	if p.live && (p.indent > indent || p.indent == indent && isDash(p.text)) {
		return p.node()
	}
	p.out = append(p.out, "null"...)
	return true
}

func (p *plainYAML) sequence() bool {
	indent := p.indent
	p.out = append(p.out, '[')
	for first := true; p.live && p.indent == indent && isDash(p.text); first = false {
		if !first {
			p.out = append(p.out, ',')
		}
		rest := p.text[1:]
		spaces := indentation(rest)
		rest = rest[spaces:]
		if len(rest) == 0 {
			p.next()
			if p.live && p.indent > indent {
				if !p.node() {
					return false
				}
				continue
			}
			p.out = append(p.out, "null"...)
			continue
		}
		if isDash(rest) {
			return false
		}
		if _, _, ok := splitKey(rest); ok {
			p.indent, p.text = indent+1+spaces, rest
			if !p.node() {
				return false
			}
			continue
		}
		if !p.scalar(indent, rest) {
			return false
		}
	}
	if p.live && p.indent > indent {
		return false
	}
	p.out = append(p.out, ']')
	return true
}

// splitKey cuts "key: rest" with a plain key that is a string for certain.
func splitKey(text []byte) (key, rest []byte, ok bool) {
	for i, c := range text {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		case i > 0 && (c >= '0' && c <= '9' || c == '.' || c == '/' || c == '-'):
		case c == ':' && i > 0:
			if i+1 < len(text) && text[i+1] != ' ' {
				continue // f:metadata
			}
			if i > 512 || special(text[:i]) {
				return nil, nil, false
			}
			return text[:i], bytes.TrimLeft(text[i+1:], " "), true
		default:
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// special reports whether a word may be something else than a string.
func special(word []byte) bool {
	if len(word) > 5 {
		return false
	}
	switch string(bytes.ToLower(word)) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}

// scalar writes a value that begins on this line, and goes to the next line.
func (p *plainYAML) scalar(indent int, text []byte) bool {
	if text[0] == '|' {
		return p.literal(indent, text)
	}
	if !p.inline(text) {
		return false
	}
	p.next()
	return !p.live || p.indent <= indent // else it goes on there
}

func (p *plainYAML) inline(text []byte) bool {
	switch c := text[0]; {
	case c == '"':
		return p.double(text)
	case c == '\'':
		return p.single(text)
	case c == '{' || c == '[':
		if string(text) != "{}" && string(text) != "[]" {
			return false
		}
		p.out = append(p.out, text...)
		return true
	case bytes.Contains(text, []byte(": ")) || text[len(text)-1] == ':' || bytes.Contains(text, []byte(" #")):
		return false
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '/', c == '$':
		if special(text) {
			return p.resolve(text)
		}
	case c == '-' && len(text) > 2 && text[1] == '-' && (text[2] >= 'a' && text[2] <= 'z'):
	case c >= '0' && c <= '9' || c == '-' && len(text) > 1 && text[1] >= '0' && text[1] <= '9':
		if !suffixed(text) {
			return p.resolve(text)
		}
	default:
		return false
	}
	p.appendString(text)
	return true
}

// suffixed reports whether a text that begins with a digit is a quantity with a
// unit, which is a string and by far the most common such text.
func suffixed(text []byte) bool {
	digits := 0
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	switch string(text[digits:]) {
	case "m", "Ki", "Mi", "Gi", "Ti":
		return digits > 0
	}
	return false
}

// resolve asks the full parser what a scalar is; numbers of up to 15 digits are
// known.
func (p *plainYAML) resolve(text []byte) bool {
	if decimal(text) {
		p.out = append(p.out, text...)
		return true
	}
	raw, ok := p.resolved[string(text)]
	if !ok {
		var err error
		if raw, err = yaml.YAMLToJSON(text); err != nil || len(raw) == 0 || raw[0] == '{' || raw[0] == '[' {
			return false
		}
		if p.resolved == nil {
			p.resolved = map[string][]byte{}
		}
		if len(p.resolved) < maxPlainResolved {
			p.resolved[string(text)] = raw
		}
	}
	p.out = append(p.out, bytes.TrimSpace(raw)...)
	return true
}

func decimal(text []byte) bool {
	if len(text) > 15 || text[0] == '0' && len(text) > 1 {
		return false
	}
	return !slices.ContainsFunc(text, func(c byte) bool { return c < '0' || c > '9' })
}

// double writes a double-quoted text of one line with the escapes that JSON has.
func (p *plainYAML) double(text []byte) bool {
	if len(text) < 2 || text[len(text)-1] != '"' {
		return false
	}
	body := text[1 : len(text)-1]
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			return false
		case '\\':
			if i++; i == len(body) {
				return false
			}
			switch body[i] {
			case '"', '\\', 'n', 't', 'r', 'b', 'f':
			default:
				return false
			}
		}
	}
	p.out = append(p.out, text...)
	return true
}

func (p *plainYAML) single(text []byte) bool {
	if len(text) < 2 || text[len(text)-1] != '\'' {
		return false
	}
	body := text[1 : len(text)-1]
	p.out = append(p.out, '"')
	for i := 0; i < len(body); i++ {
		if body[i] == '\'' {
			if i++; i == len(body) || body[i] != '\'' {
				return false
			}
		}
		p.appendByte(body[i])
	}
	p.out = append(p.out, '"')
	return true
}

// literal reads a block scalar.
func (p *plainYAML) literal(indent int, header []byte) bool {
	strip := string(header) == "|-"
	if !strip && string(header) != "|" {
		return false
	}
	p.out = append(p.out, '"')
	content, blanks := -1, 0
	for {
		line := p.in[min(p.pos, len(p.in)):]
		end := bytes.IndexByte(line, '\n')
		if end < 0 {
			if len(line) > 0 {
				return false // without an end of line: rare, and different
			}
			break
		}
		line = line[:end]
		n := indentation(line)
		if n == len(line) {
			if content < 0 || n > content {
				return false
			}
			blanks++
			p.pos += end + 1
			continue
		}
		if content < 0 {
			if n <= indent {
				return false
			}
			content = n
		} else if n < content {
			break
		} else {
			blanks++ // the end of the line before
		}
		for range blanks {
			p.out = append(p.out, '\\', 'n')
		}
		blanks = 0
		for _, c := range line[content:] {
			p.appendByte(c)
		}
		p.pos += end + 1
	}
	if content < 0 {
		return false
	}
	if !strip {
		p.out = append(p.out, '\\', 'n')
	}
	p.out = append(p.out, '"')
	p.next()
	return !p.live || p.indent <= indent
}

func (p *plainYAML) appendString(s []byte) {
	p.out = append(p.out, '"')
	for _, c := range s {
		p.appendByte(c)
	}
	p.out = append(p.out, '"')
}

// appendByte writes a printable ASCII character of a JSON string.
func (p *plainYAML) appendByte(c byte) {
	if c == '"' || c == '\\' {
		p.out = append(p.out, '\\')
	}
	p.out = append(p.out, c)
}
