#!/usr/bin/env bash
# The demo: plans the cluster in events/worlds/demo and writes the page beside it.
# usage: run.sh OUTDIR, with GO_PLAN naming the built plan program. The clock is fixed, so
# that everyone sees the same plan.
set -euo pipefail

plan=${GO_PLAN:?the built plan program}
out=${1:?where the page goes}
world=(-f events/worlds/demo --cluster harbourlane-prod --region us-east-1 --now 2026-11-30T09:30:00Z)

mkdir -p "$out"
"$plan" "${world[@]}" -o html >"$out/plan.html.part"
mv "$out/plan.html.part" "$out/plan.html"
"$plan" "${world[@]}" -o json >"$out/plan.json"
"$plan" "${world[@]}" -o text

printf '\nThe same as a page:  %s\n' "$PWD/$out/plan.html"
printf 'The same as JSON:    %s\n' "$PWD/$out/plan.json"
printf 'Ask about one pod:   %s\n' "make plan F=events/worlds/demo ARGS='--explain pod/data-lab/genome-index-0'"
