//go:build local

package local

import (
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// remove takes the stack away: what nodes need stays.
func (s *story) remove() {
	s.chapter("The stack is deleted")
	out, err := s.Outputs(s.ctx)
	s.must(err)
	nodes, began := len(s.living()), time.Now()
	s.must(s.Remove(s.ctx))
	c := s.emulator.config()
	for _, f := range functions {
		if _, err := lambda.NewFromConfig(c).GetFunctionConfiguration(s.ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(s.function(f))}); err == nil {
			s.t.Errorf("function %s is still there", f)
		}
	}
	if _, err := dynamodb.NewFromConfig(c).DescribeTable(s.ctx, &dynamodb.DescribeTableInput{TableName: aws.String(out["TableName"])}); err != nil {
		s.t.Errorf("the table is gone: %v", err)
	}
	var pools struct {
		Items []struct{ Metadata metav1.ObjectMeta }
	}
	s.must(s.object(s.ctx, "/apis/karpenter.sh/v1/nodepools", &pools))
	roles, err := s.Cluster.Clientset.RbacV1().ClusterRoles().List(s.ctx, metav1.ListOptions{})
	s.must(err)
	for _, r := range roles.Items {
		if strings.HasPrefix(r.Name, "kerf-") {
			s.t.Errorf("ClusterRole %s is still there", r.Name)
		}
	}
	_, err = s.running(s.ctx, "shop", fewPods)
	if len(pools.Items) != 1 || len(s.living()) != nodes {
		err = errors.Join(err, errors.New("a NodePool or a node is gone"))
	}
	if err != nil {
		s.t.Error(err)
	}
	s.say("Stack %s is gone after %.1f s, with its functions and their roles in the cluster. Its table stays, and so do the NodePool, %d nodes and %d pods.", s.StackName(), time.Since(began).Seconds(), nodes, fewPods)
}
