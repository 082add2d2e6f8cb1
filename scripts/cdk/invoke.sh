#!/usr/bin/env bash
# Calls a deployed function and prints its answer.
# usage: invoke.sh CLUSTER FUNCTION EVENT-FILE
set -euo pipefail

cluster=$1 fn=$2 event=$3
usage='make invoke CLUSTER=name [FN=plan] EVENT=file.json'
if [ -z "$cluster" ] || [ -z "$event" ]; then echo "invoke: $usage" >&2; exit 2; fi
if [ ! -r "$event" ]; then echo "invoke: $event cannot be read; $usage" >&2; exit 2; fi
case $fn in
  plan | sweep | lifecycle | catalog | interruption | consolidation | bootstrap) ;;
  *) echo "invoke: there is no function $fn; there are plan, sweep, lifecycle, catalog, interruption, consolidation, bootstrap" >&2; exit 2 ;;
esac
command -v aws >/dev/null || { echo "invoke: the AWS CLI is missing" >&2; exit 1; }

source "$(dirname "$0")/stack.sh"

stack=$(stack_of "$cluster")
name=$(output_of "$stack" "${fn^}FunctionName")
if [ -z "$name" ]; then echo "invoke: stack $stack has no function $fn" >&2; exit 1; fi
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
# Version 2 of the CLI takes a payload as base64, if it is not told otherwise; version 1 takes it as it is.
raw=(--cli-binary-format raw-in-base64-out)
case $(aws --version 2>&1) in aws-cli/1.*) raw=() ;; esac
aws lambda invoke --function-name "$name" "${raw[@]}" --payload "file://$event" "$answer" >&2
# A text is printed as it reads, where jq is there to take it out of the JSON.
if command -v jq >/dev/null; then
  jq -r 'if type == "object" and (.text | type) == "string" then .text else . end' "$answer"
else
  cat "$answer"
  echo
fi
