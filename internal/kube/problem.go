package kube

import (
	"fmt"
	"strings"
)

// Problem says what is wrong where. As an error it means that the input cannot
// be read; in Report.Left, that one object was left out.
type Problem struct {
	File string
	// Document counts the documents of a file that hold something, from 1; 0 = the
	// file as a whole. Item counts the items of a List, from 1; 0 = no List.
	Document, Item int
	// Line is where the document or item begins, from 1; 0 = not known.
	Line int
	// Object is "Pod team-a/web", "NodePool general"; "" when it is not known.
	Object string
	// Field is the path of the field: spec.containers[0].image.
	Field   string
	Message string
}

// LeftOut is an object that was left out, and why.
type LeftOut = Problem

// Place is the part of the message that says where.
func (p *Problem) Place() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Document > 0 {
		fmt.Fprintf(&b, ": document %d", p.Document)
	}
	if p.Item > 0 {
		fmt.Fprintf(&b, ", item %d", p.Item)
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, " (line %d)", p.Line)
	}
	return b.String()
}

func (p *Problem) Error() string {
	parts := []string{p.Place()}
	for _, s := range []string{p.Object, p.Field, p.Message} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// place is where an object was found.
type place struct {
	file     *string
	document int32
	item     int32
	line     int32
}

func (p place) problem(object, field, message string) *Problem {
	return &Problem{
		File: *p.file, Document: int(p.document), Item: int(p.item), Line: int(p.line),
		Object: object, Field: field, Message: message,
	}
}
