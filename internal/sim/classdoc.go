package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/snapshot"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// readClass converts an EC2NodeClass from its documents, as a reading of the cluster does.
func readClass(c *class) snapshot.NodeClass {
	doc := map[string]any{
		"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
		"metadata": map[string]any{"name": c.Name, "uid": c.UID, "generation": c.Generation, "annotations": c.Annotations},
		"spec":     json.RawMessage(c.Spec),
	}
	if len(c.status) > 0 {
		doc["status"] = c.status
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("write class %s: %v", c.Name, err))
	}
	s, _, err := kube.Read([]kube.Source{{Name: "class", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }}}, kube.Options{Now: epoch, Region: region})
	if err != nil || len(s.NodeClasses) != 1 {
		panic(fmt.Sprintf("read class %s: %v", c.Name, err))
	}
	out := s.NodeClasses[0]
	out.Deleting = c.Deleting
	return out
}

// conditionsWith are the conditions of an object after a patch of its status, and whether
// that changed them.
func conditionsWith(have, set []snapshot.Condition, gone []string) (out []snapshot.Condition, changed bool) {
	for _, c := range have {
		drop := false
		for _, g := range gone {
			drop = drop || g == c.Type
		}
		if drop {
			changed = true
			continue
		}
		out = append(out, c)
	}
next:
	for _, c := range set {
		if c.Reason == "" {
			c.Reason = c.Type
		}
		c.Since = c.Since.UTC().Truncate(time.Second)
		for i, o := range out {
			if o.Type != c.Type {
				continue
			}
			if o.Status == c.Status {
				c.Since = o.Since
			}
			if o != c {
				out[i], changed = c, true
			}
			continue next
		}
		out, changed = append(out, c), true
	}
	return out, changed
}

// conditionDocs are conditions as a status holds them.
func conditionDocs(cs []snapshot.Condition) []any {
	out := make([]any, len(cs))
	for i, c := range cs {
		one := map[string]any{"type": c.Type, "status": c.Status, "reason": c.Reason, "message": c.Message, "lastTransitionTime": c.Since.UTC().Format(time.RFC3339)}
		if c.ObservedGeneration != 0 {
			one["observedGeneration"] = c.ObservedGeneration
		}
		out[i] = one
	}
	return out
}

// plain is a value as JSON knows it.
func plain(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}
