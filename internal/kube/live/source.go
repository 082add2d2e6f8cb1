package live

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/kube"
)

// Source is the cluster as a source of kube.Read and kube.ReadWhatIf: everything a
// snapshot is made of, listed completely.
//
// The lists are read a few at a time; each is of one state of the cluster, and that of
// pods is begun when the others are whole. A list that fails, or a kind that is not
// served, is left out and named in the snapshot's Incomplete; so is a list that is empty
// though it cannot be (no pods, but NodeClaims). Source returns an error, and so no
// snapshot, when the API server does not accept who we are (ErrUnauthorized), when pods or
// nodes cannot be read, and when ctx ends.
func (c *Client) Source(ctx context.Context) kube.Source {
	return kube.Source{Name: "the cluster at " + c.host, Feed: func(f *kube.Feed) error { return c.feed(ctx, f) }}
}

// outcome is what became of one list.
type outcome struct {
	list *kube.FeedList
	err  error
	// labelled counts nodes that say that they are of a NodePool.
	labelled int
}

func (c *Client) feed(ctx context.Context, f *kube.Feed) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	got := make([]outcome, len(kinds))
	last := len(kinds) - 1 // pods
	read := func(i int) {
		got[i] = c.list(ctx, &kinds[i], f)
		if err := got[i].err; errors.Is(err, ErrUnauthorized) || err != nil && kinds[i].need == vital {
			cancel() // what the others still read is of no use
		}
	}
	parallel(last, c.opts.Parallel, read)
	if ctx.Err() == nil {
		read(last)
	}
	if err := fatal(ctx, got); err != nil {
		return err
	}
	for i := range kinds {
		if err := take(f, &kinds[i], &got[i]); err != nil {
			return err
		}
	}
	for _, why := range implausible(got) {
		f.Incomplete(why)
	}
	return nil
}

// parallel runs f for 0 to n-1, a few at a time.
func parallel(n, most int, f func(i int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, most)
	for i := range n {
		group.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; group.Done() }()
			f(i)
		}()
	}
	group.Wait()
}

// fatal is the error that says most about why there is no snapshot, nil if there is one.
func fatal(ctx context.Context, got []outcome) error {
	var vitals, rest error
	for i := range got {
		err := got[i].err
		switch {
		case err == nil:
		case errors.Is(err, ErrUnauthorized):
			return err
		case kinds[i].need == vital && vitals == nil && !errors.Is(err, context.Canceled):
			vitals = err
		case rest == nil:
			rest = err
		}
	}
	if vitals != nil {
		return vitals
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), rest)
	}
	return nil
}

// take puts one list into the reading, or says why it is not there.
func take(f *kube.Feed, k *kind, o *outcome) error {
	switch {
	case o.err == nil:
		return f.Add(o.list)
	case errors.Is(o.err, ErrMissingKind) && k.need == optional:
		return nil
	}
	f.Incomplete(o.err.Error())
	return nil
}

// list reads one kind.
func (c *Client) list(ctx context.Context, k *kind, f *kube.Feed) outcome {
	var out outcome
	begin := func() { out = outcome{list: f.List("live " + k.resource)} }
	out.err = c.pages(ctx, k.request("list"), begin, func(a answer) (*metav1.ListMeta, int, error) {
		before := out.list.Len()
		meta, err := k.page(a, &out)
		return meta, out.list.Len() - before, err
	})
	return out
}

// page reads a page into the list.
func (k *kind) page(a answer, out *outcome) (*metav1.ListMeta, error) {
	if k.decode == nil {
		return custom(k.name, a, out.list.JSON)
	}
	return k.decode(k.name, a, func(o metav1.Object) error {
		if k.name == "Node" && o.GetLabels()[nodePoolLabel] != "" {
			out.labelled++
		}
		return out.list.Object(o)
	})
}

// nodePoolLabel is on every Node and NodeClaim of a NodePool.
const nodePoolLabel = "karpenter.sh/nodepool"

// implausible names lists that are empty though they cannot be. An empty answer with
// status 200 is how a broken proxy or a broken store looks.
func implausible(got []outcome) []string {
	n := map[string]int{}
	labelled := 0
	for i := range kinds {
		if got[i].err != nil {
			n[kinds[i].name] = -1
			continue
		}
		n[kinds[i].name] = got[i].list.Len()
		labelled += got[i].labelled
	}
	var out []string
	empty := func(kind, because string) {
		if n[kind] == 0 {
			out = append(out, fmt.Sprintf("list %s: the API server gave none, %s", kindNamed(kind).resource, because))
		}
	}
	empty("Namespace", "though every cluster has some")
	if claims := n["NodeClaim"]; claims > 0 {
		because := "though there are " + count(claims, "NodeClaim")
		if claims == 1 {
			because = "though there is 1 NodeClaim"
		}
		for _, kind := range []string{"Node", "Pod", "NodePool", "EC2NodeClass"} {
			empty(kind, because)
		}
	}
	if labelled > 0 {
		empty("NodeClaim", fmt.Sprintf("though %s the label %s", carry(labelled), nodePoolLabel))
	}
	return out
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func carry(n int) string {
	if n == 1 {
		return "1 Node carries"
	}
	return count(n, "Node") + " carry"
}
