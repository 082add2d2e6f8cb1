package live

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Options are how a Client asks.
type Options struct {
	// PageSize is the most objects in one answer of a list; 0 means 500.
	PageSize int64
	// Parallel is how many lists are read at a time; 0 means 4.
	Parallel int
	// Retries is how often the REST client repeats a request that the API server refuses
	// with a time to come back, or that found no server; 0 means 2, below 0 never.
	Retries int
	// Renew is asked after a 401 for another identity than the one that was refused, and
	// says whether there is one; the request is then repeated, once. nil: it is repeated
	// as it is, which is right where the transport has renewed its identity by itself.
	Renew func(ctx context.Context, refused *http.Request) (bool, error)
	// Progress is told after every page what was read so far; nil: nobody is.
	Progress func(Progress)
}

// Progress is how far a list has come.
type Progress struct {
	// Kind is what is listed. Read objects are there, Left are still to come as far as the
	// API server says. Done: the list is whole.
	Kind       string
	Read, Left int64
	Done       bool
}

// Client asks one API server. It may be used by several goroutines.
type Client struct {
	rest rest.Interface
	opts Options
	// host is the address, for messages.
	host string
}

// defaults of Options.
const (
	defaultPageSize = 500
	defaultParallel = 4
	defaultRetries  = 2
)

// New makes a client of a configuration (package kubeconfig or eks has one). Nothing is
// asked yet.
func New(config *rest.Config, o Options) (*Client, error) {
	if o.PageSize == 0 {
		o.PageSize = defaultPageSize
	}
	if o.Parallel <= 0 {
		o.Parallel = defaultParallel
	}
	if o.Retries == 0 {
		o.Retries = defaultRetries
	}
	c := rest.CopyConfig(config)
	// Fairness is the API server's business: it knows who else is asking.
	c.QPS = -1
	c.NegotiatedSerializer = codecs.WithoutConversion()
	if c.UserAgent == "" {
		c.UserAgent = "kerf"
	}
	h, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("prepare the connection to %s: %w", c.Host, err)
	}
	h.Transport = &again{next: h.Transport, renew: o.Renew}
	r, err := rest.UnversionedRESTClientForConfigAndClient(c, h)
	if err != nil {
		return nil, fmt.Errorf("prepare the connection to %s: %w", c.Host, err)
	}
	return &Client{rest: r, opts: o, host: c.Host}, nil
}

// codecs understand the one kind that the REST client decodes itself: Status.
var codecs = func() serializer.CodecFactory {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(s)
}()

// Media types.
const (
	protobuf  = "application/vnd.kubernetes.protobuf"
	plainJSON = "application/json"
	// metadataOnly asks for a list of the metadata alone.
	metadataOnly = protobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	// metadataOfOne asks for the metadata of one object.
	metadataOfOne = protobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// request is one request, in the terms of RBAC.
type request struct {
	verb                     string
	group, version, resource string
	namespace, name, sub     string
	params                   map[string]string
	accept                   string
	body                     []byte
	content                  string // media type of body
	once                     bool   // not repeated by the REST client
}

func (q *request) path() string {
	p := "/api/" + q.version
	if q.group != "" {
		p = "/apis/" + q.group + "/" + q.version
	}
	if q.namespace != "" {
		p += "/namespaces/" + q.namespace
	}
	p += "/" + q.resource
	if q.name != "" && q.verb != "create" || q.sub != "" {
		p += "/" + q.name
	}
	if q.sub != "" {
		p += "/" + q.sub
	}
	return p
}

var methods = map[string]string{
	"list": http.MethodGet, "get": http.MethodGet, "create": http.MethodPost,
	"patch": http.MethodPatch, "delete": http.MethodDelete,
}

// answer is the body of a successful answer and its media type.
type answer struct {
	body []byte
	kind string
}

// do makes a request. An answer that breaks off is an error.
func (c *Client) do(ctx context.Context, q *request) (answer, error) {
	r := c.rest.Verb(methods[q.verb]).AbsPath(q.path())
	for k, v := range q.params {
		r = r.Param(k, v)
	}
	if q.accept == "" {
		q.accept = plainJSON
	}
	r = r.SetHeader("Accept", q.accept)
	if q.body != nil {
		r = r.Body(q.body).SetHeader("Content-Type", q.content)
	}
	retries := c.opts.Retries
	if q.once || retries < 0 {
		retries = 0
	}
	res := r.MaxRetries(retries).Do(ctx)
	if err := res.Error(); err != nil {
		return answer{}, errorOf(q, err)
	}
	var a answer
	res.ContentType(&a.kind)
	var err error
	if a.body, err = res.Raw(); err != nil {
		return answer{}, errorOf(q, err)
	}
	return a, nil
}
