package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// header tells what an object is.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// identity is what tells one object from another.
type identity struct {
	header
	Metadata struct {
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
		Namespace    string `json:"namespace"`
	} `json:"metadata"`
}

// object hands one object to the sink.
func (s *stream) object(raw []byte, at place) error {
	id, err := identify(raw)
	if err != nil {
		return s.sink.problem(at.problem("", err.field, err.message))
	}
	return s.sink.object(raw, id, at)
}

func identify(raw []byte) (identity, *fieldError) {
	var id identity
	if t := bytes.TrimSpace(raw); len(t) > 0 && t[0] != '{' && json.Valid(raw) {
		return id, malformed("", "no object but "+describe(raw))
	}
	return id, decodeLenient(raw, &id, "")
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
	id  identity
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
	id, err := identify(raw)
	if err != nil {
		return l.s.sink.problem(at.problem("", err.field, err.message))
	}
	if id.Kind != "" || l.head.Kind == "List" {
		return l.s.sink.object(raw, id, at)
	}
	if l.head.Kind != "" {
		return l.addOf(raw, id, at)
	}
	if l.size += len(raw); l.size > maxDocument {
		return at.problem("", "kind", fmt.Sprintf("more than %d MiB of items without a kind", maxDocument>>20))
	}
	l.waiting = append(l.waiting, waitingItem{bytes.Clone(raw), id, at})
	return nil
}

// addOf hands on an item without a kind of its own: it has that of its list.
func (l *list) addOf(raw []byte, id identity, at place) error {
	if l.head.Kind != "List" {
		id.header = header{l.head.APIVersion, strings.TrimSuffix(l.head.Kind, "List")}
	}
	return l.s.sink.object(raw, id, at)
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
	for _, w := range l.waiting {
		if err := l.addOf(w.raw, w.id, w.at); err != nil {
			return err
		}
	}
	l.waiting = nil
	return nil
}
