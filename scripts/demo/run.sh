#!/usr/bin/env bash
# The demo: plans the cluster in events/worlds/demo and writes the page beside it.
# usage: run.sh OUTDIR, with GO_PLAN naming the built plan program. The clock is fixed, so
# that everyone sees the same plan.
set -euo pipefail

plan=${GO_PLAN:?the built plan program}
out=${1:?where the page goes}
world=(-f events/worlds/demo --cluster harbourlane-prod --region us-east-1 --now 2026-11-30T09:30:00Z)

mkdir -p "$out"
# write FORMAT FILE: remarks on what was read are shown once, with the text below.
write() {
  if ! "$plan" "${world[@]}" -o "$1" >"$2.part" 2>"$out/stderr"; then cat "$out/stderr" >&2; exit 1; fi
  mv "$2.part" "$2"
}
write html "$out/plan.html"
write json "$out/plan.json"
rm -f "$out/stderr"
"$plan" "${world[@]}" -o text

printf '\nThe same as a page:  %s\n' "$PWD/$out/plan.html"
printf 'The same as JSON:    %s\n' "$PWD/$out/plan.json"
printf 'Ask about one pod:   %s\n' "make plan F=events/worlds/demo ARGS='--explain pod/data-lab/replay-index-rebuild-8lq5z'"
printf 'What if:             %s\n' "make what-if FILE=events/what-if/ci-runners.yaml, or REMOVE=node/ip-10-40-83-19.ec2.internal"
