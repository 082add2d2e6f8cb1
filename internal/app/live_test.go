package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kubeconfigFor writes a kubeconfig for a server and returns its path.
func kubeconfigFor(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: test, cluster: {server: %q}}]\nusers: [{name: u, user: {token: t}}]\n"+
		"contexts: [{name: x, context: {cluster: test, user: u}}]\ncurrent-context: x\n", url)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLiveRefused: a cluster that cannot be read is no plan, and says why.
func TestLiveRefused(t *testing.T) {
	for _, tt := range []struct {
		code         int
		reason, want string
	}{
		{http.StatusUnauthorized, "Unauthorized", "the API server does not accept our identity (401)"},
		{http.StatusForbidden, "Forbidden", `lacks verb "list" on resource "nodes" of API group ""`},
		{http.StatusInternalServerError, "InternalError", "list nodes: no (500)"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(tt.code)
			err := json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": tt.reason, "code": tt.code})
			if err != nil {
				t.Error(err)
			}
		}))
		var out, msg bytes.Buffer
		status := Main([]string{"--kubeconfig", kubeconfigFor(t, s.URL)}, nil, &out, &msg, nil)
		s.Close()
		if status != exitNoPlan || out.Len() > 0 || !strings.Contains(msg.String(), tt.want) {
			t.Errorf("%d: status %d, %q, want %q", tt.code, status, msg.String(), tt.want)
		}
	}
}
