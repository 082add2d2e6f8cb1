package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"kerf.sh/kerf/internal/realtest/fakeaws"
)

// emulatorVariable names the program that serves DynamoDB, and the bus, on the port
// GATEWAY_PORT of BIND_HOST. A python3 that knows its modules is beside it.
const emulatorVariable = "KERF_EMULATOR"

// emulator serves DynamoDB, and EventBridge with a queue behind it.
type emulator struct {
	cmd *exec.Cmd
	url string
}

func startEmulator(dir string) (*emulator, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "bus.py")
	if err := os.WriteFile(program, busProgram, 0o600); err != nil {
		return nil, err
	}
	e := &emulator{cmd: exec.Command(filepath.Join(filepath.Dir(os.Getenv(emulatorVariable)), "python3"), program), url: "http://" + address}
	e.cmd.Env = append(os.Environ(), "GATEWAY_PORT="+port, "BIND_HOST=127.0.0.1", "SERVICES=dynamodb,events,sqs", "LOG_LEVEL=WARNING", "TMPDIR="+dir, "STATE_DIR="+dir)
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	e.cmd.Stdout, e.cmd.Stderr = log, log
	if err := e.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	for range 600 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return e, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "log"))
	e.stop()
	return nil, fmt.Errorf("the emulator does not listen on %s after a minute:\n%s", address, text)
}

func (e *emulator) stop() {
	syscall.Kill(-e.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	e.cmd.Wait()                                      //nolint:errcheck // it was killed
}

// config leads the SDK to it, for the test itself.
func (e *emulator) config() aws.Config {
	return aws.Config{Region: fakeaws.Region, BaseEndpoint: &e.url, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
	})}
}

// createTable makes the ledger's table as the stack does.
func createTable(ctx context.Context, api *dynamodb.Client, name string) error {
	_, err := api.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}, {AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
	})
	if err != nil {
		return fmt.Errorf("create table %s: %w", name, err)
	}
	return nil
}
