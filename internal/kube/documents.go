package kube

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of what is read. An object cannot be larger than 3 MiB in the API
// server, so these are generous.
const (
	// maxDocument is the most a single document, or a single item of a List, may
	// hold. Lists are not limited: their items are read one by one.
	maxDocument = 16 << 20
	// maxSource bounds a source after decompression.
	maxSource = 4 << 30
	// splitAt is the size above which a YAML List is split by lines instead of
	// being parsed as a whole.
	splitAt = 1 << 20
)

// stream reads one source and hands its objects to a sink.
type stream struct {
	name     string
	r        *bufio.Reader
	sink     sink
	line     int // lines consumed so far
	document int32
	plain    plainYAML
}

// sink takes what a stream finds. Errors it returns stop the stream.
type sink interface {
	// object takes one object as JSON; the bytes are only valid during the call. id
	// is what raw says about its identity.
	object(raw []byte, id identity, at place) error
	// saved takes one element of a list of a saved snapshot, or, with list "", the
	// snapshot without its lists.
	saved(list string, raw []byte, at place) error
	// problem reports what cannot be read; nil means: go on.
	problem(*Problem) error
}

type limitedReader struct {
	r    io.Reader
	left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n, errTooLarge
	}
	return n, err
}

var errTooLarge = fmt.Errorf("larger than %d GiB: split it", maxSource>>30)

// readSource reads a source to its end.
func readSource(src Source, s sink) error {
	name := src.Name
	whole := func(format string, args ...any) *Problem {
		return &Problem{File: name, Message: fmt.Sprintf(format, args...)}
	}
	rc, err := src.Open()
	if err != nil {
		return s.problem(whole("%v", err))
	}
	defer rc.Close()
	r := bufio.NewReaderSize(rc, 64<<10)
	for depth := 0; ; depth++ {
		magic, _ := r.Peek(2)
		if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
			break
		}
		if depth == 2 {
			return s.problem(whole("compressed more than twice"))
		}
		zr, err := gzip.NewReader(r)
		if err != nil {
			return s.problem(whole("uncompress: %v", err))
		}
		r = bufio.NewReaderSize(&limitedReader{zr, maxSource}, 64<<10)
	}
	st := &stream{name: name, r: r, sink: s}
	found, err := st.run()
	if err != nil {
		var p *Problem
		if errors.As(err, &p) {
			return s.problem(p)
		}
		return err
	}
	if !found {
		return s.problem(whole("empty: no document in it"))
	}
	return nil
}

// run reads everything; found is false when there was no document.
func (s *stream) run() (found bool, err error) {
	if b, _ := s.r.Peek(3); bytes.Equal(b, []byte{0xef, 0xbb, 0xbf}) {
		s.r.Discard(3)
	} else if len(b) >= 2 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff) {
		return true, &Problem{File: s.name, Message: "UTF-16 text: save it as UTF-8"}
	}
	var indent []byte // of the first line that holds something
	for {
		c, err := s.r.ReadByte()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return true, s.readError(err)
		}
		switch c {
		case '\n':
			s.line++
			indent = indent[:0]
			continue
		case ' ', '\t', '\r':
			if len(indent) < maxDocument {
				indent = append(indent, c)
			}
			continue
		}
		s.r.UnreadByte()
		if c == '[' || c == '{' && !s.flowYAML() {
			err = s.json()
		} else {
			err = s.yaml(indent)
		}
		return s.document > 0 || err != nil, err
	}
}

// flowYAML tells a YAML mapping in flow style, whose first key is not in quotes, from
// a JSON object. The next byte is its brace.
func (s *stream) flowYAML() bool {
	b, _ := s.r.Peek(512) // short at the end of the input
	if b = bytes.TrimLeft(b[1:], " \t\r\n"); len(b) == 0 {
		return false
	}
	return b[0] == '_' || 'a' <= b[0] && b[0] <= 'z' || 'A' <= b[0] && b[0] <= 'Z'
}

func (s *stream) readError(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return &Problem{File: s.name, Document: int(s.document), Line: s.line + 1, Message: fmt.Sprintf("read: %v", err)}
}

func (s *stream) here(line int) place {
	return place{file: &s.name, document: s.document, line: int32(line)}
}

func shorten(s string) string {
	const most = 120
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
