package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/kube/kubeconfig"
	"kerf.sh/kerf/internal/kube/live"
)

// sources is what is planned on: the files, or the cluster of a kubeconfig. That tells
// name and region of the cluster where nobody else does.
func (o *options) sources(in *handler.Input, stdin io.Reader, stderr io.Writer) ([]kube.Source, error) {
	if !o.live() {
		return kube.Files(o.files, stdin)
	}
	target, err := kubeconfig.Load(o.kubeconfig, o.context)
	if err != nil {
		return nil, err
	}
	client, err := live.New(target.Config, live.Options{Progress: progress(stderr)})
	if err != nil {
		return nil, err
	}
	if in.Cluster == "" {
		in.Cluster = target.Cluster
	}
	if in.Region == "" {
		in.Region = target.Region
	}
	return []kube.Source{client.Source(context.Background())}, nil
}

// waiting says on a terminal what is being waited for, until the function that it returns is
// called; nothing elsewhere.
func waiting(w io.Writer, what string) func() {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	fmt.Fprint(f, clearLine+what)
	return func() { fmt.Fprint(f, clearLine) }
}

// clearLine goes to the beginning of a terminal's line and empties it.
const clearLine = "\r\x1b[K"

// progress shows on a terminal how far a long reading is; nil elsewhere.
func progress(w io.Writer) func(live.Progress) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	var mu sync.Mutex
	return func(p live.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if p.Done {
			fmt.Fprint(f, clearLine)
			return
		}
		fmt.Fprintf(f, clearLine+"reading %s: %d of %d", p.Kind, p.Read, p.Read+p.Left)
	}
}
