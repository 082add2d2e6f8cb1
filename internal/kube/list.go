package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// header is what every object begins with.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// list hands the items of a List to the sink. Items of a typed list (PodList from
// the raw API) carry no kind of their own; when the list's kind comes after its
// items they wait for it.
type list struct {
	s       *stream
	at      place
	head    header
	count   int32
	waiting []waitingItem
	size    int
}

type waitingItem struct {
	raw []byte
	at  place
}

func (s *stream) newList(at place) *list { return &list{s: s, at: at} }

// next counts an item and returns its place.
func (l *list) next(line int) place {
	l.count++
	at := l.at
	at.item = l.count
	at.line = int32(line)
	return at
}

func (l *list) add(raw []byte, at place) error {
	var own header
	if json.Unmarshal(raw, &own) == nil && own.Kind != "" || l.head.Kind == "List" {
		return l.s.sink.object(raw, at)
	}
	if kind, ok := strings.CutSuffix(l.head.Kind, "List"); ok {
		return l.s.sink.object(withKind(raw, l.head.APIVersion, kind), at)
	}
	if l.size += len(raw); l.size > maxDocument {
		return at.problem("", "kind", fmt.Sprintf("more than %d MiB of items without a kind", maxDocument>>20))
	}
	l.waiting = append(l.waiting, waitingItem{bytes.Clone(raw), at})
	return nil
}

// end takes the list without its items.
func (l *list) end(raw []byte) error {
	if raw != nil {
		if err := json.Unmarshal(raw, &l.head); err != nil {
			return l.s.sink.problem(l.at.problem("", "", "apiVersion and kind must be strings"))
		}
	}
	if l.head.Kind == "" {
		return l.s.sink.problem(l.at.problem("", "kind", "missing: a List needs kind: List and apiVersion: v1"))
	}
	if !strings.HasSuffix(l.head.Kind, "List") {
		return l.s.sink.problem(l.at.problem("", "items", fmt.Sprintf("a %s has no items", l.head.Kind)))
	}
	waiting := l.waiting
	l.waiting, l.size = nil, 0
	for _, w := range waiting {
		if l.head.Kind == "List" {
			if err := l.s.sink.object(w.raw, w.at); err != nil { // names the missing kind
				return err
			}
			continue
		}
		if err := l.add(w.raw, w.at); err != nil {
			return err
		}
	}
	return nil
}

// withKind puts apiVersion and kind into an object that has none.
func withKind(raw []byte, apiVersion, kind string) []byte {
	t := bytes.TrimSpace(raw)
	if len(t) < 2 || t[0] != '{' {
		return raw
	}
	head, err := json.Marshal(header{apiVersion, kind})
	if err != nil {
		return raw
	}
	out := make([]byte, 0, len(t)+len(head))
	out = append(out, head[:len(head)-1]...)
	if rest := bytes.TrimSpace(t[1:]); len(rest) > 0 && rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, t[1:]...)
}
