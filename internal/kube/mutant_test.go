package kube

import (
	"strings"
	"testing"

	"kerf.sh/kerf/internal/snapshot"
)

// The mutants below are readers with one thing wrong. Each must be caught by what
// the properties compare, or the properties prove nothing.

func orderMatters(t *testing.T, read func(*testing.T, []Source) string) bool {
	t.Helper()
	docs := sampleDocuments(t)
	var backwards []string
	for _, d := range docs {
		backwards = append([]string{d}, backwards...)
	}
	return read(t, []Source{from("x", strings.Join(docs, "\n---\n"))}) != read(t, []Source{from("x", strings.Join(backwards, "\n---\n"))})
}

func saveOf(t *testing.T, s *snapshot.Snapshot) string {
	t.Helper()
	var b strings.Builder
	if err := Save(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMutantsOfOrder(t *testing.T) {
	gather := func(t *testing.T, sources []Source) *reader {
		t.Helper()
		r := newReader(Options{Now: now})
		for _, s := range sources {
			if err := readSource(s, r); err != nil || len(r.problems) > 0 {
				t.Fatal(err, r.problems)
			}
		}
		return r
	}
	if orderMatters(t, func(t *testing.T, sources []Source) string {
		r := gather(t, sources)
		r.finish()
		return saveOf(t, r.snap)
	}) {
		t.Error("the reader itself: order matters")
	}
	if !orderMatters(t, func(t *testing.T, sources []Source) string {
		r := gather(t, sources)
		r.surroundings()
		r.admit()
		return saveOf(t, r.snap) // not normalized
	}) {
		t.Error("a reader that does not sort is not caught")
	}
	if !orderMatters(t, func(t *testing.T, sources []Source) string {
		r := newReader(Options{Now: now})
		if err := readSource(sources[0], admitsAtOnce{r}); err != nil {
			t.Fatal(err)
		}
		r.finish()
		return saveOf(t, r.snap)
	}) {
		t.Error("a reader that admits each object on sight is not caught")
	}
}

// admitsAtOnce applies admission with what happens to be known.
type admitsAtOnce struct{ *reader }

func (r admitsAtOnce) object(raw []byte, id identity, at place) error {
	err := r.reader.object(raw, id, at)
	r.admit()
	return err
}

// TestMutantOfRoundTrip: a saved snapshot that lost a field is not equal.
func TestMutantOfRoundTrip(t *testing.T) {
	s, _, err := Read([]Source{from("x", strings.Join(sampleDocuments(t), "\n---\n"))}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	whole := saveOf(t, s)
	for i := range s.Pods {
		s.Pods[i].Spec.TerminationGrace = nil
	}
	if saveOf(t, s) == whole {
		t.Error("a lost field is not caught")
	}
}

// TestMutantOfPlainYAML: what FuzzPlainYAML compares tells a wrong reading.
func TestMutantOfPlainYAML(t *testing.T) {
	for doc, wrong := range map[string]string{
		"a: yes\n":     `{"a":"yes"}`,
		"a: 010\n":     `{"a":10}`,
		"a: |\n  x\n":  `{"a":"x"}`,
		"a: 500m\n":    `{"a":500}`,
		"a:\n- b\n":    `{"a":{"b":null}}`,
		"a: b\na: c\n": `{"a":"c"}`,
	} {
		if disagreement([]byte(doc), []byte(wrong)) == "" {
			t.Errorf("%q read as %s is not caught", doc, wrong)
		}
	}
}
