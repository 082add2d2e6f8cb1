package kube

import (
	"bytes"
	"fmt"
)

// yamlList splits a large block-style List by lines: header lines at the top
// level, then items, then header lines again. kubectl writes such documents.
type yamlList struct {
	d      *yamlDocument
	header []byte
	items  *list
	state  int // before, inside, after the items
	indent int // of the "-" of the items; -1 = not known yet
	item   []byte
	at     int // line where item begins
}

const (
	beforeItems = iota
	insideItems
	afterItems
)

// splitList returns a splitter when the document, so far, is a block mapping
// with a top-level "items:" list; nil otherwise.
func splitList(d *yamlDocument) *yamlList {
	if !bytes.HasPrefix(d.buf, []byte("items:")) && !bytes.Contains(d.buf, []byte("\nitems:")) {
		return nil
	}
	rest := d.buf
	for len(rest) > 0 {
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			return nil
		}
		line := rest[:n]
		rest = rest[n:]
		if blank(line) {
			continue
		}
		if isItems(line) {
			for len(rest) > 0 {
				n := bytes.IndexByte(rest, '\n') + 1
				if n == 0 {
					return nil
				}
				if !blank(rest[:n]) {
					if _, ok := dash(rest[:n]); !ok {
						return nil
					}
					return &yamlList{d: d, indent: -1, items: d.s.newList(d.s.here(d.start))}
				}
				rest = rest[n:]
			}
			return nil
		}
	}
	return nil
}

func isItems(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("items:"))
	return ok && blank(rest)
}

// dash returns the indentation of a line that begins a list entry.
func dash(line []byte) (int, bool) {
	n := indentation(line)
	rest := line[n:]
	if len(rest) == 0 || rest[0] != '-' {
		return 0, false
	}
	return n, len(rest) == 1 || rest[1] == ' ' || rest[1] == '\n' || rest[1] == '\r' || rest[1] == '\t'
}

func indentation(line []byte) int {
	n := 0
	for n < len(line) && line[n] == ' ' {
		n++
	}
	return n
}

func (l *yamlList) add(line []byte) error { return l.addAt(line, l.d.s.line) }

func (l *yamlList) addAt(line []byte, at int) error {
	if l.state == insideItems {
		n, isDash := dash(line)
		switch {
		case l.indent < 0 && isDash:
			l.indent = n
		case blank(line):
			if len(l.item) > 0 {
				l.item = append(l.item, line...)
			}
			return nil
		}
		switch {
		case isDash && n == l.indent:
			if err := l.flush(); err != nil {
				return err
			}
			l.at = at
			l.item = append(l.item, line...)
			l.item[n] = ' '
			return nil
		case indentation(line) > l.indent:
			if len(l.item)+len(line) > maxDocument {
				p := l.d.s.here(l.at)
				p.item = l.items.count + 1
				return p.problem("", "", fmt.Sprintf("the item is larger than %d MiB", maxDocument>>20))
			}
			l.item = append(l.item, line...)
			return nil
		}
		l.state = afterItems
		if err := l.flush(); err != nil {
			return err
		}
	}
	if l.state == beforeItems && isItems(line) {
		l.state = insideItems
		return nil
	}
	if len(l.header)+len(line) > maxDocument {
		return l.d.s.here(l.d.start).problem("", "", fmt.Sprintf("the List holds more than %d MiB beside its items", maxDocument>>20))
	}
	l.header = append(l.header, line...)
	return nil
}

func (l *yamlList) flush() error {
	doc := l.item
	if len(doc) == 0 {
		return nil // before the first
	}
	l.item = l.item[:0]
	at := l.items.next(l.at)
	raw, err := yamlToJSON(doc, l.at, &l.d.s.plain)
	if err != nil {
		return l.d.s.sink.problem(at.problem("", "", err.Error()))
	}
	if raw == nil {
		return l.d.s.sink.problem(at.problem("", "", "no object but null"))
	}
	return l.items.add(raw, at)
}

func (l *yamlList) finish() error {
	if err := l.flush(); err != nil {
		return err
	}
	at := l.d.s.here(l.d.start)
	raw, err := yamlToJSON(l.header, l.d.start, &l.d.s.plain)
	if err != nil {
		return l.d.s.sink.problem(at.problem("", "", err.Error()))
	}
	return l.items.end(raw)
}
