package ec2fake

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// SSM is a parameter store. Fault, when set, is asked before every call.
type SSM struct {
	Parameters map[string]string
	Fault      func(name string) error

	mu    sync.Mutex
	asked []string
}

// GetParameter returns one parameter.
func (s *SSM) GetParameter(_ context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := aws.ToString(in.Name)
	s.asked = append(s.asked, name)
	if s.Fault != nil {
		if err := s.Fault(name); err != nil {
			return nil, err
		}
	}
	v, ok := s.Parameters[name]
	if !ok {
		return nil, Error("ParameterNotFound", "%s", name)
	}
	return &ssm.GetParameterOutput{Parameter: &types.Parameter{Name: in.Name, Value: aws.String(v)}}, nil
}

// Asked are the names that were asked for, in order.
func (s *SSM) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}
