package live

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PatchStatus brings the status of a custom resource ("NodeClaim", "NodePool",
// "EC2NodeClass") to what s says, if the object has this UID ("" = any). Nothing is
// written where it says that already. It reports whether something was.
func (c *Client) PatchStatus(ctx context.Context, kind, name, uid string, s Status) (changed bool, err error) {
	q, err := object(kind, "", name)
	if err != nil {
		return false, fmt.Errorf("patch status: %w", err)
	}
	err = c.retry(func() error {
		changed = false
		there, err := c.custom(ctx, kind, name)
		if err != nil {
			return err
		}
		if uid != "" && string(there.Metadata.UID) != uid {
			return another(q, uid, string(there.Metadata.UID))
		}
		diff, err := statusPatch(&s, there.Status)
		if err != nil {
			return fmt.Errorf("patch status of %s %s: %w", q.resource, name, err)
		}
		if len(diff) == 0 {
			return nil
		}
		changed = true
		sub := q
		sub.sub = "status"
		return c.patch(ctx, sub, mergePatch, map[string]any{
			"metadata": map[string]any{"uid": there.Metadata.UID, "resourceVersion": there.Metadata.ResourceVersion},
			"status":   diff,
		})
	})
	return changed && err == nil, err
}

// over is the merge patch that makes of a status what s says; empty when it says it.
func statusPatch(s *Status, raw json.RawMessage) (map[string]any, error) {
	have := map[string]any{}
	var typed struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &have); err != nil {
			return nil, fmt.Errorf("decode what is there: %w", err)
		}
		if err := json.Unmarshal(raw, &typed); err != nil {
			return nil, fmt.Errorf("decode the conditions that are there: %w", err)
		}
	}
	diff := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		want, err := plain(s.Fields[name])
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		if reflect.DeepEqual(want, have[name]) {
			continue
		}
		// A merge patch merges maps: what is not wanted any more is taken out by name.
		if old, ok := have[name].(map[string]any); ok {
			if m, ok := want.(map[string]any); ok {
				for k := range old {
					if _, stays := m[k]; !stays {
						m[k] = nil
					}
				}
			}
		}
		diff[name] = want
	}
	if conditions := conditionsWith(s, typed.Conditions); !slices.Equal(conditions, typed.Conditions) {
		diff["conditions"] = conditions
	}
	return diff, nil
}

// plain is v as JSON knows it.
func plain(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	err = json.Unmarshal(raw, &out)
	return out, err
}

// conditions are what is there, with those of s in place or behind.
func conditionsWith(s *Status, have []metav1.Condition) []metav1.Condition {
	out := slices.DeleteFunc(slices.Clone(have), func(c metav1.Condition) bool { return slices.Contains(s.Gone, c.Type) })
	for _, c := range s.Conditions {
		want := metav1.Condition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			ObservedGeneration: c.ObservedGeneration, LastTransitionTime: metav1.NewTime(c.Since.UTC().Truncate(time.Second)),
		}
		if want.Reason == "" {
			want.Reason = c.Type
		}
		i := slices.IndexFunc(out, func(o metav1.Condition) bool { return o.Type == c.Type })
		if i < 0 {
			out = append(out, want)
			continue
		}
		if out[i].Status == want.Status {
			want.LastTransitionTime = out[i].LastTransitionTime
		}
		out[i] = want
	}
	return out
}
