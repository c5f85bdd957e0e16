#!/usr/bin/env bash
# Boots one machine in QEMU for each firmware and each way to boot it, by `volund serve`: firmware.sh [ROW...].
# One line a row: row | result | seconds from power-on to the last thing seen | what was seen. Fails if a row does.
# Needs root. A ROW is a part of a test's name; `firmware.sh list` prints them. Some 20 minutes on two idle cores.
set -euo pipefail
cd "$(dirname "$0")/../.."
binary() {
  cargo test --locked --test boot_in_qemu --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*boot_in_qemu[^"]*\)".*/\1/p' | tail -1
}
test=$(binary)
[ -n "$test" ] || { cargo test --locked --test boot_in_qemu --no-run; exit 1; }
rows=$("$test" --ignored --list | sed -n 's/: test$//p' | grep '::firmware_')
if [ "${1:-}" = list ]; then printf '%s\n' "$rows" | sed 's/.*::firmware_//'; exit 0; fi
if [ $# -gt 0 ]; then rows=$(printf '%s\n' "$rows" | grep -F -e "$(printf '%s\n' "$@")"); fi
tests/packages.sh
tests/packages.sh nightly
tests/nightly/firmware-files.sh
tests/build-agent.sh > /dev/null
logs=target/firmware-logs
mkdir -p "$logs"
failed=0
echo "row | result | seconds | what was seen"
for row in $rows; do
  log=$logs/${row##*::}.log
  # A row bounds its own waits; this bounds the row. What a row cannot have here, it must not leave out in silence.
  if CI=true timeout -k 20 600 "$test" --ignored --exact "$row" --nocapture > "$log" 2>&1; then
    sed -n 's/^ROW //p' "$log"
  else
    failed=1
    why=$(grep -A1 -m1 'panicked at' "$log" | tail -1 | cut -c1-200 || true)
    echo "${row##*::firmware_} | FAILED | - | ${why:-no end within its bound}; see $log"
  fi
done
exit $failed
