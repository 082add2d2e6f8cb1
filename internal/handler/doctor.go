package handler

import (
	"context"
	"encoding/json"

	"kerf.sh/kerf/internal/plan"
)

// checkDoctor refuses what the doctor would not look at: it looks at the cluster itself.
func (r *Request) checkDoctor() error {
	switch {
	case r.Format == "html":
		return refuse(plan.NotSupported, "mode doctor writes json or text, and not html")
	case r.Format != "" && r.Format != "json" && r.Format != "text":
		return refuse(plan.InvalidRequest, "format %q is not known; want json or text", r.Format)
	case len(r.Objects)+len(r.WhatIf)+len(r.Remove) > 0 || r.Explain != "":
		return refuse(plan.InvalidRequest, "mode doctor looks at the cluster itself: it takes no objects, whatIf, remove or explain")
	}
	return nil
}

// doctor answers mode doctor: the report as JSON, or {"text": ...}.
func (h *Plan) doctor(ctx context.Context, format string) (json.RawMessage, error) {
	if h.Doctor == nil {
		return nil, refuse(plan.NotSupported, "mode doctor looks at a cluster, and this program was given none to look at")
	}
	r, err := h.Doctor(ctx)
	if err != nil {
		return nil, refuse(plan.InvalidRequest, "%s", err)
	}
	if format == "text" {
		return marshal(map[string]string{"text": r.Text()}), nil
	}
	return json.Marshal(r)
}
