# The stack of a cluster, for the scripts beside it: as StackName in infra/autoscaler/stack.go.

# stack_of CLUSTER: the name of its stack.
stack_of() {
  local name=kerf-${1//_/-}
  case $1 in *_*) name+=-$(printf %s "$1" | sha256sum | cut -c1-6) ;; esac
  echo "$name"
}

# output_of STACK KEY: one of its outputs; empty when there is none.
output_of() {
  local value
  value=$(aws cloudformation describe-stacks --stack-name "$1" --output text --query "Stacks[0].Outputs[?OutputKey=='$2'].OutputValue")
  [ "$value" = None ] || echo "$value"
}
