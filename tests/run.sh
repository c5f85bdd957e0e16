#!/usr/bin/env bash
# The README's second command: installs what the tests need, builds the agent, runs every test.
set -euo pipefail
cd "$(dirname "$0")/.."
tests/packages.sh
tests/build-agent.sh >/dev/null
if cargo nextest --version >/dev/null 2>&1; then
  profile=default; [ "${CI:-}" = true ] && profile=ci
  exec cargo nextest run --workspace --locked --profile "$profile" "$@"
fi
# Without nextest cargo's own runner does; machines in QEMU then take turns by this.
exec cargo test --workspace --locked "$@" -- --test-threads 2
