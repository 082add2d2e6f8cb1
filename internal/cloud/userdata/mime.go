package userdata

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/cloud/nodeclass"
)

const (
	typeScript     = `text/x-shellscript; charset="us-ascii"`
	typeNodeConfig = "application/node.eks.aws"
)

// part is one document of a multi-part.
type part struct {
	contentType string
	header      map[string]string // besides Content-Type
	body        string
}

// userParts are the parts that spec.userData brings: those of a MIME multi-part as they
// are, any other text as one part of the type that typeOf says.
func (in *Input) userParts(typeOf func(text string) string) ([]part, error) {
	text := strings.TrimSpace(in.User)
	if text == "" {
		return nil, nil
	}
	if !isMIME(text) {
		return []part{{contentType: typeOf(in.User), body: in.User}}, nil
	}
	parts, err := readMIME(text)
	if err != nil {
		return nil, nodeclass.Refuse(nodeclass.InvalidNodeClass, "spec.userData: begins as a MIME document and is none: %v", err)
	}
	return parts, nil
}

// isMIME reports whether text begins with a MIME header.
func isMIME(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	name, _, ok := strings.Cut(first, ":")
	return ok && (strings.EqualFold(name, "MIME-Version") || strings.EqualFold(name, "Content-Type"))
}

func readMIME(text string) ([]part, error) {
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("read Content-Type: %w", err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		body, err := io.ReadAll(m.Body)
		if err != nil {
			return nil, fmt.Errorf("read body: %w", err)
		}
		return []part{{contentType: m.Header.Get("Content-Type"), body: string(body)}}, nil
	}
	if params["boundary"] == "" {
		return nil, errors.New("Content-Type has no boundary")
	}
	var out []part
	r := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read part %d: %w", len(out)+1, err)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			return nil, fmt.Errorf("read part %d: %w", len(out)+1, err)
		}
		one := part{contentType: p.Header.Get("Content-Type"), header: map[string]string{}, body: string(body)}
		for name := range p.Header {
			if name != "Content-Type" {
				one.header[name] = p.Header.Get(name)
			}
		}
		out = append(out, one)
	}
}

// writeMIME writes a multi-part. The boundary is "//", as it is in all examples of user
// data, unless a part holds it.
func writeMIME(parts []part) string {
	boundary := "//"
	for slices.ContainsFunc(parts, func(p part) bool { return strings.Contains(p.body, "--"+boundary) }) {
		boundary += "kerf"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=%q\n", boundary)
	for _, p := range parts {
		fmt.Fprintf(&b, "\n--%s\n", boundary)
		if p.contentType != "" {
			fmt.Fprintf(&b, "Content-Type: %s\n", p.contentType)
		}
		for _, name := range slices.Sorted(maps.Keys(p.header)) {
			fmt.Fprintf(&b, "%s: %s\n", name, p.header[name])
		}
		b.WriteString("\n" + p.body)
		if !strings.HasSuffix(p.body, "\n") {
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "--%s--\n", boundary)
	return b.String()
}
