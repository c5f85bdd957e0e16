#!/usr/bin/env bash
# Fuzzes one target: run.sh TARGET [SECONDS, 60 if not said]. Ends with an error when something breaks.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${1:?name a target: $(ls tests/fuzz/corpus | tr '\n' ' ')}
seconds=${2:-60}
if [ ! -d "tests/fuzz/corpus/$target" ]; then
  echo "there is no fuzz target $target; there are: $(ls tests/fuzz/corpus | tr '\n' ' ')" >&2
  exit 2
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
  echo "cargo-fuzz is missing; install it with: cargo install cargo-fuzz --locked" >&2
  exit 2
fi
# The versions everything else is tested with; cargo adds what only this crate needs.
cp Cargo.lock tests/fuzz/Cargo.lock
learnt=tests/fuzz/target/corpus/$target
mkdir -p "$learnt"
# A single input may take 10 s and 1 GiB: more is a find too.
exec cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none "$target" "$learnt" "tests/fuzz/corpus/$target" -- \
  -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=512 -print_final_stats=1
