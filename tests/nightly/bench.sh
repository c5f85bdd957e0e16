#!/usr/bin/env bash
# The benchmarks of the nightly run: every row, five turns each; ends with 1 when one misses its goal twice. Needs root.
set -euo pipefail
exec "$(dirname "$0")/../bench/pxe/run.sh" --gate "$@"
