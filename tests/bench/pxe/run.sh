#!/usr/bin/env bash
# Benchmarks of the boot services against the programs they stand for.
#
#   tests/bench/pxe/run.sh [--gate] [dhcp|tftp|http|memory|storm]...    (all without a name)
#
# Everything runs in two network namespaces of its own that are joined by a veth pair, with addresses of 198.18.0.0/15
# (RFC 2544); they and all that was started go when it ends. Ours and the peers take turns, REPS times (5), each from a
# fresh start; medians are compared. Each row is printed as `BENCH name | ours | peer | ratio | goal`, and once more when
# it missed its goal. --gate: end with 1 when a row missed it twice. Needs root, Debian and tests/bench/packages.txt.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
# Turns of each row; VERBOSE=1 prints every figure, ROWS=REGEX picks rows by name (row_tftp_4_loss).
REPS=${REPS:-5}
gate=0 topics=()
for word in "$@"; do
  case $word in
    --gate) gate=1 ;;
    dhcp | tftp | http | memory | storm) topics+=("$word") ;;
    *) echo "unknown: $word" >&2; exit 2 ;;
  esac
done
[ ${#topics[@]} -gt 0 ] || topics=(dhcp tftp http memory storm)
[ "$(id -u)" -eq 0 ] || { echo "needs root: it makes network namespaces" >&2; exit 2; }

# shellcheck source=lib.sh
. "$here/lib.sh"
. "$here/peers.sh"
packages
build
work=$(mktemp -d)
trap clean EXIT
trap 'exit 130' INT TERM
net_up 1500
files
echo "# $(date -u +%FT%RZ), $(nproc) cores, Linux $(uname -r), load $(load), $REPS turns"
failed=0
for topic in "${topics[@]}"; do
  # shellcheck disable=SC1090
  . "$here/rows/$topic.sh"
  for row in $(declare -F | awk '{print $3}' | grep "^row_${topic}_" | grep -E "${ROWS:-.}"); do run_row "$row"; done
done
echo "# load $(load), rows that missed their goal twice: $failed"
[ $gate = 0 ] || [ "$failed" = 0 ]
