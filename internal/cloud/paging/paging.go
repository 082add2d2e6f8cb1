package paging

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
)

// restarts is how often a list is begun before it is given up.
const restarts = 3

// expired are the codes of a token that is not taken any more. Tokens live for minutes (the
// price list: ten), and throttled readers are slow.
var expired = map[string]bool{
	"ExpiredNextTokenException": true, "InvalidNextTokenException": true, "ExpiredNextToken": true,
	"InvalidNextToken": true, "InvalidPaginationToken": true, "InvalidPaginationTokenException": true,
}

// Expired tells the end of a token from other errors.
func Expired(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && expired[api.ErrorCode()]
}

// errRound: a token that came before.
var errRound = errors.New("AWS gives the same page again and again")

// All reads a list. begin is called before the first page, and again when the list has to be
// begun anew because its token has expired: what was read so far is then void. page asks for
// the page of a token, nil for the first one, and gives the token of the next. The list is
// whole when there is no error; errors are those of page.
func All(begin func(), page func(token *string) (next *string, err error)) error {
	for try := 1; ; try++ {
		begin()
		err := once(page)
		if err == nil || !Expired(err) {
			return err
		}
		if try == restarts {
			return fmt.Errorf("begun %d times and never finished: %w", restarts, err)
		}
	}
}

func once(page func(token *string) (*string, error)) error {
	seen := map[string]bool{}
	var token *string
	for {
		next, err := page(token)
		if err != nil {
			return err
		}
		if aws.ToString(next) == "" {
			return nil
		}
		if seen[*next] {
			return errRound
		}
		seen[*next], token = true, next
	}
}
