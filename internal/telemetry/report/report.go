package report

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Report is what one invocation has to say. The zero value is ready; it is for one
// goroutine.
type Report struct {
	values     map[Metric]float64
	properties []Property
}

// Property is something worth knowing that is no metric.
type Property struct {
	Key   string // lowerCamel: metrics and dimensions begin with capitals
	Value any    // what encoding/json can write
}

// Add adds to a metric. Adding 0 reports it as 0.
func (r *Report) Add(m Metric, n float64) {
	if r.values == nil {
		r.values = map[Metric]float64{}
	}
	r.values[m] += n
}

// Set sets a metric.
func (r *Report) Set(m Metric, v float64) {
	r.Add(m, 0)
	r.values[m] = v
}

// Value gives a metric; ok is false when nothing was reported of it.
func (r *Report) Value(m Metric) (v float64, ok bool) {
	v, ok = r.values[m]
	return v, ok
}

// Say sets a property; one that was said before is said anew.
func (r *Report) Say(key string, value any) {
	i := slices.IndexFunc(r.properties, func(p Property) bool { return p.Key == key })
	if i < 0 {
		r.properties = append(r.properties, Property{key, value})
		return
	}
	r.properties[i].Value = value
}

// Count adds to a property that is a number.
func (r *Report) Count(key string, n int) {
	i := slices.IndexFunc(r.properties, func(p Property) bool { return p.Key == key })
	if i >= 0 {
		if was, ok := r.properties[i].Value.(int); ok {
			n += was
		}
	}
	r.Say(key, n)
}

// Properties are what was said, in the order in which it was said first. The slice is the
// Report's own.
func (r *Report) Properties() []Property { return r.properties }

// DecisionID names what one invocation made of one plan. The same invocation gives the same
// id again, so that a decision that is written down twice is one; another invocation that
// comes to the same plan gives another. It begins with the plan's id, or with "none".
func DecisionID(planID, requestID string) string {
	if planID == "" {
		planID = "none"
	}
	sum := sha256.Sum256([]byte(requestID))
	return planID + "-" + hex.EncodeToString(sum[:4])
}
