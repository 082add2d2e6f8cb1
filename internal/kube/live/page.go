package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// decoder reads one page: it hands every object to each, and returns the metadata of the
// list.
type decoder func(name string, a answer, each func(metav1.Object) error) (*metav1.ListMeta, error)

// protoObject is a pointer to a type of the API with its generated protobuf code.
type protoObject[L any] interface {
	*L
	Unmarshal([]byte) error
}

// magic begins every answer in Kubernetes' protobuf.
var magic = []byte("k8s\x00")

// unwrap decodes an answer in protobuf into a list or an object of the kind name.
func unwrap[L any, P protoObject[L]](name string, a answer) (P, error) {
	if t, _, _ := mime.ParseMediaType(a.kind); t != protobuf {
		return nil, fmt.Errorf("an answer of type %q, want %s", a.kind, protobuf)
	}
	body, ok := bytes.CutPrefix(a.body, magic)
	if !ok {
		return nil, errors.New("an answer that does not begin as protobuf does")
	}
	var u runtime.Unknown
	if err := u.Unmarshal(body); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	if u.Kind != name {
		return nil, fmt.Errorf("the answer is a %q, want %s", u.Kind, name)
	}
	out := P(new(L))
	if err := out.Unmarshal(u.Raw); err != nil {
		return nil, fmt.Errorf("decode the %s: %w", name, err)
	}
	return out, nil
}

// typed decodes pages of a core kind.
func typed[L, T any, P interface {
	protoObject[L]
	metav1.ListMetaAccessor
}, O interface {
	*T
	metav1.Object
}](items func(P) []T) decoder {
	return func(name string, a answer, each func(metav1.Object) error) (*metav1.ListMeta, error) {
		l, err := unwrap[L, P](name+"List", a)
		if err != nil {
			return nil, err
		}
		for list, i := items(l), 0; i < len(list); i++ {
			o := O(&list[i])
			o.SetManagedFields(nil)
			if err := each(o); err != nil {
				return nil, err
			}
		}
		return metaOf(l.GetListMeta()), nil
	}
}

func metaOf(l metav1.ListInterface) *metav1.ListMeta {
	return &metav1.ListMeta{ResourceVersion: l.GetResourceVersion(), Continue: l.GetContinue(), RemainingItemCount: l.GetRemainingItemCount()}
}

// customList is a page of custom resources.
type customList struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ListMeta   `json:"metadata"`
	Items    []json.RawMessage `json:"items"`
}

// custom decodes a page of custom resources.
func custom(name string, a answer, each func([]byte) error) (*metav1.ListMeta, error) {
	var l customList
	if err := json.Unmarshal(a.body, &l); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	if l.Kind != name+"List" {
		return nil, fmt.Errorf("the answer is a %q, want %sList", l.Kind, name)
	}
	if l.Items == nil {
		return nil, fmt.Errorf("a %s without items: the answer is not whole", l.Kind)
	}
	for _, raw := range l.Items {
		if err := each(raw); err != nil {
			return nil, err
		}
	}
	return &l.Metadata, nil
}

// shorten keeps a message readable.
func shorten(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
