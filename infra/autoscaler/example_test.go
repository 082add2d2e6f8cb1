package autoscaler_test

import (
	"log"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"kerf.sh/kerf/infra/autoscaler"
)

// In a stack of one's own: the construct, and people who may ask for plans and read
// dead letters.
func ExampleNew() {
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, jsii.String("platform"), nil)
	kerf, err := autoscaler.New(stack, "Kerf", autoscaler.Props{
		ClusterName: "prod",
		CodeDir:     "../kerf/build", // as make build leaves it
		NodeRoles:   []string{"KarpenterNodeRole-prod", "gpu-nodes"},
		// It has to be there: an ARN that is only known once it is made cannot be looked at.
		AlarmTopicARN: "arn:aws:sns:eu-west-1:123456789012:pager",
		Settings:      map[string]string{"KERF_CONSOLIDATION_DRY_RUN": "true"},
	})
	if err != nil {
		log.Fatal(err) // names every property that cannot be used
	}
	people := awsiam.Role_FromRoleName(stack, jsii.String("People"), jsii.String("platform-engineers"), nil)
	kerf.Plan.Lambda.GrantInvoke(people)
	kerf.DeadWork.GrantConsumeMessages(people)
	app.Synth(nil)
}
