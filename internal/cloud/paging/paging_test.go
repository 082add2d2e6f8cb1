package paging

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/smithy-go"
)

// TestAll: a list is whole or an error, whatever becomes of its pages.
func TestAll(t *testing.T) {
	gone := &smithy.GenericAPIError{Code: "ExpiredNextTokenException", Message: "too old"}
	for name, tt := range map[string]struct {
		// fails gives the error of the nth request.
		fails func(n int) error
		round bool
		want  string
		asked int
	}{
		"whole":                {fails: func(int) error { return nil }, want: "[0 1 2] <nil>", asked: 3},
		"a page fails":         {fails: func(n int) error { return map[int]error{1: errors.New("no answer")}[n] }, want: "[0] no answer", asked: 2},
		"a token that expires": {fails: func(n int) error { return map[int]error{2: gone}[n] }, want: "[0 1 2] <nil>", asked: 6},
		"tokens that always expire": {fails: func(n int) error {
			if n%2 == 1 {
				return gone
			}
			return nil
		}, want: "[0] begun 3 times and never finished: api error ExpiredNextTokenException: too old", asked: 6},
		"a server that goes round": {fails: func(int) error { return nil }, round: true, want: "[0 1] AWS gives the same page again and again", asked: 2},
	} {
		var got []int
		asked := 0
		err := All(func() { got = nil }, func(token *string) (*string, error) {
			err := tt.fails(asked)
			asked++
			if err != nil {
				return nil, err
			}
			n := 0
			if token != nil {
				fmt.Sscan(*token, &n) //nolint:errcheck // it is a number of ours
			}
			got = append(got, n)
			next := fmt.Sprint(min(n+1, 2))
			switch {
			case tt.round:
				next = fmt.Sprint(min(n+1, 1))
			case n == 2:
				return nil, nil
			}
			return &next, nil
		})
		if s := fmt.Sprint(slices.Clone(got), " ", err); s != tt.want || asked != tt.asked {
			t.Errorf("%s: %s after %d requests, want %s after %d", name, s, asked, tt.want, tt.asked)
		}
	}
}
