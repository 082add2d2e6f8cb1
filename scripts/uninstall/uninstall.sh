#!/usr/bin/env bash
# Takes Kerf out of a cluster and of the account, with all that stays when the stack alone is
# deleted. What it would do is shown; it is done with YES=1.
# usage: uninstall.sh CLUSTER
#   NODES=keep    nodes go on, without anybody to look after them: their finalizers are cleared
#   NODES=remove  NodePools are deleted; Kerf drains the nodes and ends them, and is waited for
#   CRDS=keep     Karpenter's definitions stay, and with them NodePools and EC2NodeClasses
#   CRDS=remove   they go, with every object of theirs (not while EKS Auto Mode or Karpenter uses them)
#   TABLE=keep    the ledger stays; a stack that is deployed again takes it up (context key tableName)
#   TABLE=remove  it goes
#   WAIT=1800     for how long nodes may take to go, in seconds
#   KUBECTL       the program that asks the cluster, with its context (default kubectl)
set -euo pipefail

cluster=${1:-}
nodes=${NODES:-keep} crds=${CRDS:-keep} table=${TABLE:-keep} wait=${WAIT:-1800}
read -ra kubectl <<<"${KUBECTL:-kubectl}"
fail() { echo "uninstall: $1" >&2; exit "${2:-1}"; }

[ -n "$cluster" ] || fail "which cluster? make uninstall CLUSTER=name" 2
for choice in NODES=$nodes CRDS=$crds TABLE=$table; do
  case ${choice#*=} in keep | remove) ;; *) fail "$choice: want keep or remove" 2 ;; esac
done
[[ $wait =~ ^[0-9]+$ ]] || fail "WAIT=$wait: want seconds" 2
for program in aws "${kubectl[0]}"; do command -v "$program" >/dev/null || fail "$program is missing"; done
source "$(dirname "$0")/../cdk/stack.sh"
stack=$(stack_of "$cluster")

# step WORDS: what comes next.
step() { echo "uninstall: $*"; }
# act COMMAND: does it, or shows it.
act() {
  if [ "${YES:-}" = 1 ]; then "$@"; else echo "  would run: $*"; fi
}
# there KIND: whether the cluster knows a kind.
there() { "${kubectl[@]}" get crd "$1" -o name >/dev/null 2>&1; }
# names KIND [SELECTOR]: its objects, one a line.
names() { "${kubectl[@]}" get "$1" ${2:+-l "$2"} -o name; }

# 1. Is it the right cluster, and may one do that to it?
endpoint=$(aws eks describe-cluster --name "$cluster" --output text --query cluster.endpoint) || fail "EKS does not describe cluster $cluster in this region and account"
server=$("${kubectl[@]}" config view --minify -o 'jsonpath={.clusters[0].cluster.server}' 2>/dev/null || true)
lower() { tr '[:upper:]' '[:lower:]' <<<"$1"; }
[ "$(lower "$server")" = "$(lower "$endpoint")" ] || fail "${kubectl[*]} is at ${server:-nothing}, and cluster $cluster is at $endpoint: KUBECTL='kubectl --context NAME' says which"
renewed=$("${kubectl[@]}" get lease -A --field-selector metadata.name=karpenter-leader-election -o 'jsonpath={.items[*].spec.renewTime}')
lately=$(date -u -d '60 seconds ago' +%Y-%m-%dT%H:%M:%S 2>/dev/null || date -u -v-60S +%Y-%m-%dT%H:%M:%S)
karpenter=
for time in $renewed; do
  if [[ $time > $lately ]]; then
    if [ "$nodes" = remove ] || [ "$crds" = remove ]; then fail "Karpenter runs in this cluster: what is to go is its as well; only NODES=keep CRDS=keep is possible"; fi
    karpenter=1
  fi
done
if [ "$crds" = remove ] && there nodeclasses.eks.amazonaws.com; then fail "EKS Auto Mode uses the definitions of karpenter.sh: CRDS=keep"; fi
status=$(aws cloudformation describe-stacks --stack-name "$stack" --output text --query 'Stacks[0].StackStatus' 2>/dev/null || true)
name=
if [ -n "$status" ]; then name=$(output_of "$stack" TableName); fi

# 2. Nodes, as long as there is somebody to drain them.
if [ "$nodes" = remove ] && there nodepools.karpenter.sh; then
  [ -n "$status" ] || fail "stack $stack is not there, so nobody would drain the nodes: deploy it again, or NODES=keep and end the instances yourself"
  # Only pools whose class is Kerf's: those of EKS Auto Mode have classes of eks.amazonaws.com.
  pools=$("${kubectl[@]}" get nodepools.karpenter.sh -o 'jsonpath={range .items[?(@.spec.template.spec.nodeClassRef.group=="karpenter.k8s.aws")]}{.metadata.name}{"\n"}{end}')
  step "delete NodePools; Kerf drains their nodes, within PodDisruptionBudgets, and ends them"
  for pool in $pools; do act "${kubectl[@]}" delete nodepool.karpenter.sh "$pool" --wait=false; done
  if [ "${YES:-}" = 1 ]; then
    end=$(($(date +%s) + wait))
    while :; do
      left=$("${kubectl[@]}" get nodeclaims.karpenter.sh -o 'jsonpath={range .items[?(@.spec.nodeClassRef.group=="karpenter.k8s.aws")]}{.metadata.name}{"\n"}{end}')
      [ -n "$left" ] || break
      if [ "$(date +%s)" -ge "$end" ]; then
        fail "after $wait s there are still $(wc -w <<<"$left") NodeClaims: $(tr '\n' ' ' <<<"$left"); see what holds them (kubectl describe nodeclaim), and run this again"
      fi
      echo "  $(wc -w <<<"$left") nodes are left"
      sleep "${POLL:-10}"
    done
  fi
fi

# 3. The stack: functions, roles, queues, rules, and what the functions may do in the cluster.
if [ -n "$status" ]; then
  step "delete stack $stack"
  act aws cloudformation delete-stack --stack-name "$stack"
  act aws cloudformation wait stack-delete-complete --stack-name "$stack"
else
  step "stack $stack is not there"
fi

# 4. What only Kerf takes off. Without it kubectl delete would wait for ever.
clear_finalizer() { # KIND NAME FINALIZER
  local have
  have=$("${kubectl[@]}" get "$1" "$2" -o 'jsonpath={.metadata.finalizers[*]}')
  [[ " $have " == *" $3 "* ]] || return 0
  local i=0 f
  for f in $have; do
    if [ "$f" = "$3" ]; then
      # The test keeps another one from going that took its place meanwhile.
      act "${kubectl[@]}" patch "$1" "$2" --type=json \
        -p "[{\"op\":\"test\",\"path\":\"/metadata/finalizers/$i\",\"value\":\"$f\"},{\"op\":\"remove\",\"path\":\"/metadata/finalizers/$i\"}]"
      return 0
    fi
    i=$((i + 1))
  done
}
if [ -n "$karpenter" ]; then
  step "Karpenter runs and looks after nodes from now on: finalizers stay"
else
  shut=$("${kubectl[@]}" get nodes -o 'jsonpath={range .items[?(@.metadata.annotations.kerf\.sh/opening)]}{.metadata.name}{"\n"}{end}')
  if [ -n "$shut" ]; then
    step "open nodes that were kept shut until they had joined"
    for node in $shut; do act "${kubectl[@]}" uncordon "$node"; done
  fi
  step "clear finalizers of nodes, NodeClaims and EC2NodeClasses"
  for kind in nodeclaims.karpenter.sh nodes ec2nodeclasses.karpenter.k8s.aws; do
    finalizer=karpenter.sh/termination selector=
    case $kind in
      nodes) selector=karpenter.sh/nodepool ;;
      ec2*) finalizer=karpenter.k8s.aws/termination ;;
    esac
    if [ "$kind" != nodes ] && ! there "$kind"; then continue; fi
    objects=$(names "$kind" "$selector")
    for object in $objects; do
      if [ "$kind" != "${kind#nodeclaims}" ]; then
        group=$("${kubectl[@]}" get "$kind" "${object##*/}" -o 'jsonpath={.spec.nodeClassRef.group}')
        [ "$group" = karpenter.k8s.aws ] || continue
      fi
      clear_finalizer "$kind" "${object##*/}" "$finalizer"
    done
  done
fi

# 5. Launch templates and instance profiles, by the names and tags that Kerf gives.
step "delete launch templates and instance profiles of $cluster"
if [ -z "$karpenter" ]; then
  templates=$(aws ec2 describe-launch-templates --output text --query 'LaunchTemplates[].LaunchTemplateId' \
    --filters "Name=tag:kubernetes.io/cluster/$cluster,Values=owned" Name=tag-key,Values=karpenter.sh/nodepool)
  for id in $templates; do
    act aws ec2 delete-launch-template --launch-template-id "$id" --output text
  done
fi
region=${AWS_REGION:-${AWS_DEFAULT_REGION:-$(aws configure get region || true)}}
if [ "$nodes" = remove ] && [ -n "$region" ]; then # nodes that go on need theirs
  aws iam list-instance-profiles --path-prefix "/kerf/$region/$cluster/" --output text --query 'InstanceProfiles[].[InstanceProfileName,Roles[0].RoleName]' |
    while read -r profile role || [ -n "$profile" ]; do
      [ -n "$profile" ] || continue
      if [ "$role" != None ]; then act aws iam remove-role-from-instance-profile --instance-profile-name "$profile" --role-name "$role" </dev/null; fi
      act aws iam delete-instance-profile --instance-profile-name "$profile" </dev/null
    done
fi

# 6. The definitions, with all their objects.
if [ "$crds" = remove ]; then
  step "delete Karpenter's definitions, with every NodePool, NodeClaim and EC2NodeClass"
  for crd in nodeclaims.karpenter.sh nodepools.karpenter.sh nodeoverlays.karpenter.sh ec2nodeclasses.karpenter.k8s.aws capacitybuffers.autoscaling.x-k8s.io; do
    owner=$("${kubectl[@]}" get crd "$crd" --ignore-not-found -o 'jsonpath={.metadata.labels.app\.kubernetes\.io/managed-by}{.metadata.managedFields[*].manager}')
    case $owner in
      '') ;;
      *kerf*) act "${kubectl[@]}" delete crd "$crd" ;;
      *) echo "  $crd stays: Kerf did not make it ($owner)" ;;
    esac
  done
fi

# 7. The ledger.
if [ "$table" = remove ] && [ -n "$name" ]; then
  step "delete table $name"
  act aws dynamodb update-table --table-name "$name" --no-deletion-protection-enabled --output text --query TableDescription.TableStatus
  act aws dynamodb delete-table --table-name "$name" --output text --query TableDescription.TableStatus
elif [ -n "$name" ]; then
  step "table $name stays (TABLE=remove deletes it)"
fi

if [ "$nodes" = keep ]; then
  step "nodes go on; their role keeps its access entry. Ending them is up to you:
  aws ec2 describe-instances --filters Name=tag:eks:eks-cluster-name,Values=$cluster Name=tag-key,Values=karpenter.sh/nodepool --query 'Reservations[].Instances[].InstanceId'"
fi
if [ "${YES:-}" = 1 ]; then step "done"; else step "nothing was changed: YES=1 does it"; fi
