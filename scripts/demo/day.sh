#!/usr/bin/env bash
# The demo of a day: lets Kerf's handlers run a simulated cluster for a day, twice, and writes
# the page of it. It is a test of internal/sim, because the simulated clock is Go's own for
# tests; what the day has to keep to is checked on the way.
# usage: day.sh OUTDIR, with GO naming the Go command.
set -euo pipefail

go=${GO:-go}
out=${1:?where the page goes}
mkdir -p "$out"
out=$(cd "$out" && pwd)

printf '\nA simulated day, with consolidation and without. It takes a minute or so.\n\n'
if ! "$go" test -vet=off -count=1 -timeout 30m -run '^TestDay$' ./internal/sim -args -day "$out/day.html" >"$out/day.log" 2>&1; then
  cat "$out/day.log" >&2
  exit 1
fi
rm -f "$out/day.log"
cat "$out/day.txt"
printf '\nWith curves, and each move with its reason:  %s\n' "$out/day.html"
