#!/usr/bin/env bash
# Fuzzes every target for 60 s (or fuzz.sh SECONDS) one after the other, and names at the end those that broke.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
broken=()
for folder in tests/fuzz/corpus/*/; do
  target=$(basename "$folder")
  echo "=== $target, $seconds s"
  tests/fuzz/run.sh "$target" "$seconds" || broken+=("$target")
done
if [ ${#broken[@]} -gt 0 ]; then
  echo "broken: ${broken[*]}; see tests/fuzz/artifacts and tests/fuzz/README.md" >&2
  exit 1
fi
echo "no target broke"
