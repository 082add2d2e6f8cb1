//go:build local

package local

import (
	"context"
	"os"
	"testing"
)

func TestStory(t *testing.T) {
	ctx := context.Background()
	s, err := Start(ctx, Options{Dir: os.Getenv("KERF_LOCAL_DIR"), Template: os.Getenv("KERF_LOCAL_TEMPLATE"), Build: os.Getenv("KERF_LOCAL_BUILD"), Emulator: os.Getenv("KERF_EMULATOR"), Out: os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	if err := s.Account(ctx); err != nil {
		t.Fatal(err)
	}
	s.say("account")
	if err := s.Deploy(ctx); err != nil {
		t.Fatal(err)
	}
	s.say("deployed")
}
