#!/usr/bin/env bash
# The README's first command, measured: demo ready, first blade switched, click to IPMI on. Loopback only.
set -euo pipefail
cd "$(dirname "$0")/.."
state=$(mktemp -d); trap 'kill $demo 2>/dev/null; wait $demo 2>/dev/null; rm -rf "$state"' EXIT
target/debug/volund demo --state "$state" --listen 127.0.0.1:0 >"$state/out" 2>&1 & demo=$!
for _ in $(seq 200); do [ -s "$state/demo.env" ] && break; kill -0 $demo || { cat "$state/out"; exit 1; }; read -rt 0.05 <> <(:) || true; done
grep -o 'ready in [0-9]* ms' "$state/out" | sed 's/^/FIGURE demo /'
set -a; . "$state/demo.env"; set +a
from=$(date +%s%N)
target/debug/volund switch bld-003 inspect --yes --wait >"$state/switch.out" || { cat "$state/switch.out" "$state/out"; exit 1; }
echo "FIGURE first switch $((($(date +%s%N) - from) / 1000000)) ms"
