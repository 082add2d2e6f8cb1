package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"kerf.sh/kerf/internal/realtest/fakeaws"
)

// owner are the credentials of the account itself, which may do everything.
var owner = aws.Credentials{AccessKeyID: fakeaws.Account, SecretAccessKey: "test"}

// config leads the SDK to the emulator, as the account's owner.
func (e *emulator) config() aws.Config {
	return aws.Config{Region: fakeaws.Region, BaseEndpoint: &e.url, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return owner, nil })}
}

// do makes a signed request of a service for which no SDK is here, and returns the answer.
func (e *emulator) do(ctx context.Context, service, method, path string, header map[string]string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, e.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	if err := v4.NewSigner().SignHTTP(ctx, owner, r, hash, service, fakeaws.Region, time.Now()); err != nil {
		return nil, err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	out, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %.500s", method, path, a.Status, out)
	}
	return out, err
}

// put makes a bucket ("/name"), or an object in one.
func (e *emulator) put(ctx context.Context, path string, body []byte) error {
	_, err := e.do(ctx, "s3", http.MethodPut, path, nil, body)
	return err
}

// logsOf are the lines of a log group, oldest first.
func (e *emulator) logsOf(ctx context.Context, group string) ([]string, error) {
	var out []string
	for token := ""; ; {
		in := map[string]any{"logGroupName": group}
		if token != "" {
			in["nextToken"] = token
		}
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		answer, err := e.do(ctx, "logs", http.MethodPost, "/", map[string]string{"X-Amz-Target": "Logs_20140328.FilterLogEvents", "Content-Type": "application/x-amz-json-1.1"}, raw)
		if err != nil {
			return nil, err
		}
		var page struct {
			Events    []struct{ Message string }
			NextToken string
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return nil, err
		}
		for _, one := range page.Events {
			out = append(out, one.Message)
		}
		if token = page.NextToken; token == "" {
			return out, nil
		}
	}
}
