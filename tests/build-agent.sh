#!/bin/sh
# Builds volund's agent as a static binary: target/agent/x86_64-unknown-linux-gnu/agent/agent
#
# It has a target folder of its own, because the flags differ from the workspace's and would throw its build away.
# Needs libc6-dev (for libc.a) and nothing else. Run again, it does nothing.
set -eu
cd "$(dirname "$0")/.."
RUSTFLAGS="-C target-feature=+crt-static" cargo build --profile agent -p agent \
    --target x86_64-unknown-linux-gnu --target-dir target/agent
echo target/agent/x86_64-unknown-linux-gnu/agent/agent
