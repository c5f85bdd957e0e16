# 1,000 machines whose power comes back at one moment: DHCP, loader over TFTP, DHCP of iPXE, script over HTTP.

# With the engine and its book answering.
row_storm_1_volund() { storm "volund serve" stop_lab ordered_lab; }
# With an engine that only answers: what the boot services take alone.
row_storm_2_services() { storm "boot services alone" stop_ours start_ours; }
ordered_lab() { lab 1000; ordered 1000; }
stop_ours() { stop "$server"; }

storm() {
  local title=$1 stop=$2 turn line longest
  shift 2
  for turn in $(seq "${STORMS:-3}"); do
    "$@"
    line=$(in_client timeout 170 "$bin/boot_storm" --nodes 1000 --limit 120 2>"$work/storm.err") || true
    [ -z "${VERBOSE:-}" ] || { echo "# $title: $line"; cat "$work/storm.err"; } >&2
    "$stop"
    note booted "$(field booted <<<"$line")"
    longest=$(field script <<<"$line")
    note median "${longest%/*}"
    note longest "${longest#*/}"
    note repeats "$(field repeats <<<"$line")"
  done
  bench "storm of 1,000 machines, $title: longest wait for the script, s" \
    "$(median longest) (median machine $(median median), $(median booted) booted, $(median repeats) DHCP repeats)" "-" "-" \
    "< 10, 1,000 booted" "$(median longest) < 10 && $(median booted) == 1000"
}
