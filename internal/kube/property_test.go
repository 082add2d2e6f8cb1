package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/snapshot"
)

// sampleDocuments are the documents of the transcripts that read well, without
// those whose object another document has too.
func sampleDocuments(t *testing.T) []string {
	t.Helper()
	seen := map[objectKey]bool{}
	var out []string
	for _, name := range []string{"pod", "node", "nodepool", "nodeclass", "storage", "cluster", "admission", "workloads"} {
		datadriven.RunTest(t, filepath.Join("testdata", "transcripts", name+".txt"), func(t *testing.T, d *datadriven.TestData) string {
			for _, doc := range regexp.MustCompile(`(?m)^---$`).Split(d.Input, -1) {
				r := newReader(Options{Now: now})
				if err := readSource(from("x", doc), r); err != nil || len(r.problems) > 0 || len(r.seen) != 1 {
					continue
				}
				for key := range r.seen {
					if !seen[key] {
						seen[key] = true
						out = append(out, doc)
					}
				}
			}
			return d.Expected
		})
	}
	return out
}

// saved is the snapshot of sources as bytes.
func savedBytes(t interface {
	Helper()
	Fatal(...any)
}, sources []Source) string {
	t.Helper()
	s, report, err := Read(sources, Options{Now: now, Workloads: true})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Save(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, l := range report.Left {
		fmt.Fprintf(&b, "%s: %s: %s\n", l.Object, l.Field, l.Message)
	}
	for _, w := range report.Warnings {
		fmt.Fprintln(&b, w)
	}
	return b.String()
}

// TestOrderDoesNotMatter: documents in any order, in any number of files, as
// YAML, JSON or a List, give the same bytes.
func TestOrderDoesNotMatter(t *testing.T) {
	docs := sampleDocuments(t)
	if len(docs) < 60 {
		t.Fatalf("only %d documents", len(docs))
	}
	want := savedBytes(t, []Source{from("all", strings.Join(docs, "\n---\n"))})
	inJSON := map[string]string{}
	for _, doc := range docs {
		raw, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		inJSON[doc] = string(raw)
	}
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.Permutation(docs).Draw(t, "order")
		files := make([]string, rapid.IntRange(1, 4).Draw(t, "files"))
		list := make([]bool, len(files))
		for i := range files {
			if list[i] = rapid.Bool().Draw(t, "list"); list[i] {
				files[i] = "apiVersion: v1\nkind: List\nitems:\n"
			}
		}
		for i, doc := range order {
			at := i % len(files)
			if list[at] {
				files[at] += "- " + inJSON[doc] + "\n"
				continue
			}
			files[at] += "---\n" + doc + "\n"
		}
		var sources []Source
		for i, text := range files {
			sources = append(sources, from(fmt.Sprint(i), text))
		}
		got := savedBytes(t, sources)
		if got != want {
			t.Fatalf("another order, another snapshot:\n%s", firstDifference(want, got))
		}
	})
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return "want " + x[i] + "\ngot  " + y[i]
		}
	}
	return fmt.Sprintf("%d lines and %d lines", len(x), len(y))
}

// TestWaysOfWriting: a large List split by lines, a document that is parsed as a
// whole, and JSON give the same snapshot.
func TestWaysOfWriting(t *testing.T) {
	const n = 400 // above splitAt
	block := string(podList(n))
	if len(block) < splitAt {
		t.Fatalf("the List has only %d bytes and would not be split", len(block))
	}
	raw, err := yaml.YAMLToJSON([]byte(block))
	if err != nil {
		t.Fatal(err)
	}
	items, _, _ := strings.Cut(strings.TrimPrefix(block, "apiVersion: v1\nitems:\n"), "kind: List\n")
	docs := regexp.MustCompile(`(?m)^(- |  )`).ReplaceAllString(strings.ReplaceAll(items, "\n- ", "\n---\n  "), "")
	indented := regexp.MustCompile(`(?m)^([- ] )`).ReplaceAllString(block, "    $1")
	typed := strings.NewReplacer("- apiVersion: v1\n  kind: Pod\n", "-\n", "kind: List\n", "kind: PodList\n").Replace(block)
	want := savedBytes(t, []Source{from("all", docs)})
	for name, text := range map[string]string{
		"split by lines":     block,
		"items indented":     indented,
		"JSON List":          string(raw),
		"comments and CRLF":  strings.ReplaceAll(strings.Replace(block, "items:\n", "# pods\nitems: # all\n\n# first\n", 1), "\n", "\r\n"),
		"nothing after":      strings.Replace(block, "apiVersion: v1\n", "apiVersion: v1\nkind: List\n", 1)[:strings.Index(block, "kind: List\nmetadata")+len("kind: List\n")],
		"List among others":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n" + block + "---\n# end\n",
		"PodList, kind last": typed,
	} {
		t.Run(name, func(t *testing.T) {
			if got := savedBytes(t, []Source{from("x", text)}); got != want {
				t.Error(firstDifference(want, got))
			}
		})
	}
}

// TestItemsKnowTheirPlace: a problem in a split List names item and line.
func TestItemsKnowTheirPlace(t *testing.T) {
	text := string(podList(400)) + "---\nhello\n"
	at := strings.Index(text, "\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    annotations:\n      checksum")
	if at < 0 {
		at = strings.LastIndex(text, "\n- ")
	}
	line := strings.Count(text[:at+1], "\n") + 1
	item := strings.Count(text[:at], "\n- ") + 1
	broken := text[:at+1] + strings.Replace(text[at+1:], "containers:", "containers: 5\n    other:", 1)
	_, _, err := Read([]Source{from("big.yaml", broken)}, Options{})
	want := fmt.Sprintf("big.yaml: document 1, item %d (line %d): ", item, line)
	if !strings.Contains(message(err), want) || !strings.Contains(message(err), "spec.containers: must be a list, not the number 5") {
		t.Errorf("error %q, want it to begin with %q", message(err), want)
	}
	if want := fmt.Sprintf("big.yaml: document 2 (line %d): no object but", strings.Count(broken, "\n")); !strings.Contains(message(err), want) {
		t.Errorf("error %q, want %q in it", message(err), want)
	}
}

// TestSnapshotIsStrict: all of a snapshot survives, field by field.
func TestSnapshotIsStrict(t *testing.T) {
	docs := sampleDocuments(t)
	s, _, err := Read([]Source{from("all", strings.Join(docs, "\n---\n"))}, Options{
		Cluster: "c", Region: "eu-west-1", Now: now, Seed: 1<<64 - 1, Workloads: true,
		Settings: snapshot.Settings{ReservedENIs: 1, VMMemoryOverhead: 2, MinValuesBestEffort: true, CostPerNode: 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range []int{len(s.Pods), len(s.Nodes), len(s.NodePools), len(s.NodeClaims), len(s.NodeClasses), len(s.DaemonSets),
		len(s.Workloads), len(s.Namespaces), len(s.LimitRanges), len(s.RuntimeClasses), len(s.Priorities), len(s.Claims),
		len(s.Volumes), len(s.StorageClasses), len(s.CSINodes), len(s.Attachments), len(s.Budgets)} {
		if count == 0 {
			t.Fatal("a list without objects: the samples do not cover every kind")
		}
	}
	roundTrip(t, s)
	path := filepath.Join(t.TempDir(), "saved.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Save(f, s); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	sources, err := Files([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Read(sources, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if again.Seed != s.Seed || again.Settings != s.Settings || !again.Now.Equal(s.Now) || again.Cluster != s.Cluster || again.Region != s.Region {
		t.Errorf("read %+v %+v, saved %+v %+v", again.Settings, again.Seed, s.Settings, s.Seed)
	}
	// What the caller says wins over what was saved.
	other, _, err := Read(sources, Options{Cluster: "d", Region: "us-east-1", Now: now.AddDate(0, 0, 1), Seed: 7, Settings: snapshot.Settings{Work: 9}})
	if err != nil {
		t.Fatal(err)
	}
	if other.Cluster != "d" || other.Region != "us-east-1" || other.Now.Day() != 5 || other.Seed != 7 || other.Settings.Work != 9 {
		t.Errorf("options did not win: %+v", other)
	}
}
