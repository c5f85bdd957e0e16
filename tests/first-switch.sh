#!/usr/bin/env bash
# The README's first command, measured: demo ready, then a blade switched from the shell. Loopback only.
set -euo pipefail
cd "$(dirname "$0")/.."
volund=${CARGO_TARGET_DIR:-target}/debug/volund
state=$(mktemp -d); : >"$state/out"
"$volund" demo --state "$state" --listen 127.0.0.1:0 >"$state/out" 2>&1 & demo=$!
trap 'kill $demo 2>/dev/null; wait $demo 2>/dev/null || true; rm -rf "$state"' EXIT
until grep -q 'Ctrl-C ends' "$state/out"; do
  kill -0 $demo 2>/dev/null && [ $SECONDS -lt 30 ] || { cat "$state/out"; exit 1; }
  sleep 0.05
done
echo "FIGURE demo $(grep -o 'ready in [0-9]* ms' "$state/out") (goal 2000 ms)"
set -a; . "$state/demo.env"; set +a
from=$(date +%s%N)
"$volund" switch bld-003 inspect --yes --wait >"$state/switch" || { cat "$state/switch" "$state/out"; exit 1; }
echo "FIGURE a blade from off to inspected $((($(date +%s%N) - from) / 1000000)) ms"
