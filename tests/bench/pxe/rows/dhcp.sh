# DHCP against Kea (memfile), ISC dhcpd and dnsmasq: complete exchanges through a relay, every machine new to the
# server. Ours syncs its lease log before each ACK; dhcpd syncs too; Kea's memfile and dnsmasq never do.

DURABLE="ours synced before the ACK, Kea never syncs"
SECONDS_EACH=${SECONDS_EACH:-2}

# late: ACKs of the server that just ended that left before their record was on the disk, in per cent: ours waits for
# the disk no longer than 1.5 ms.
late() {
  local counted
  counted=$(tail -1 "$work/ours.out")
  calc "100 * $(field late_acks <<<"$counted") / ($(field acks <<<"$counted") + 0.001)"
}

# Each measurement takes machines nobody had before.
fresh_macs() { first_mac=$((${first_mac:-0} + 70000)); }

# own RATE [MORE]: one run of our generator against `server`; its line is left in `line`.
own() {
  local rate=$1
  shift
  fresh_macs
  line=$(in_client timeout 60 "$bin/dhcp_load" --rate "$rate" --seconds "$SECONDS_EACH" --first-mac "$first_mac" \
    --pid "$server" "$@")
  [ -z "${VERBOSE:-}" ] || echo "# $name at $rate/s: $line" >&2
}

# perf RATE: one run of perfdhcp; loss in per cent in `loss`. It divides by its waiting time too, so we count ourselves.
perf() {
  in_client timeout 60 perfdhcp -4 -l eth0 -r "$1" -R 50000 -p "$SECONDS_EACH" -W 1000000 -t 1000 -b "mac=$(perf_mac)" \
    198.18.0.1 >"$work/perf" 2>&1 || true
  loss=$(awk '/^\*\*\*/{part=$3} /^sent packets/{if (part ~ /DISCOVER/) sent=$3} /^received packets/{got=$3}
    END{printf("%.2f", sent > 0 ? 100 * (1 - got / sent) : 100)}' "$work/perf")
  [ -z "${VERBOSE:-}" ] || echo "# $name at $1/s under perfdhcp: loss $loss %" >&2
}
perf_mac() { fresh_macs; printf '02:0c:%02x:%02x:00:00' $((first_mac >> 16 & 255)) $((first_mac >> 8 & 255)); }

# climb KEY TOOL RATES...: the highest rate with less than 0.5 % lost, tried in order until one loses more.
climb() {
  local key=$1 tool=$2 rate best=0
  shift 2
  for rate in "$@"; do
    "$tool" "$rate"
    [ "$tool" = perf ] || loss=$(field loss <<<"$line")
    holds "$loss < 0.5" || break
    best=$rate
  done
  note "$key" "$best"
}

# lossfree TOOL: every server from a fresh start in each turn.
lossfree() {
  local turn name rates
  for turn in $(seq "$REPS"); do
    for name in ours kea isc dnsmasq; do
      case $name in
        ours) rates="2500 5000 10000 15000 20000 30000" ;;
        kea) rates="1250 2500 5000 7500" ;;
        isc) rates="25 100 500 1000" ;;
        dnsmasq) rates="50 200 500" ;;
      esac
      start_"$name"
      # shellcheck disable=SC2086
      climb "rate-$name" "$1" $rates
      stop "$server"
      [ $name != ours ] || note late "$(late)"
    done
  done
}
lossfree_row() {
  local ours kea ratio
  ours=$(median rate-ours) kea=$(median rate-kea)
  ratio=$(calc "$ours / ($kea > 0 ? $kea : 1)")
  bench "dhcp loss-free exchanges/s, $1 ($DURABLE)" "$ours ($(median late) % of its ACKs late for the disk)" \
    "$kea (Kea), $(median rate-isc) (ISC), $(median rate-dnsmasq) (dnsmasq)" "$ratio" ">= 2 x Kea" "$ratio >= 2"
}
row_dhcp_1_perfdhcp() { lossfree perf; lossfree_row perfdhcp; }
row_dhcp_2_own() { lossfree own; lossfree_row "own generator"; }

# At half of what Kea does without loss: CPU for an exchange, and how long an exchange takes.
row_dhcp_3_cost() {
  local turn name key
  for turn in $(seq "$REPS"); do
    for name in ours kea; do
      start_"$name"
      own 2500
      for key in cpu_us p50 p99 do99 ra99; do note "$key-$name" "$(field $key <<<"$line")"; done
      stop "$server"
      [ $name != ours ] || note late "$(late)"
    done
  done
  local ours kea ratio
  ours=$(median cpu_us-ours) kea=$(median cpu_us-kea)
  ratio=$(calc "$ours / ($kea > 0 ? $kea : 1)")
  bench "dhcp CPU of an exchange at 2,500/s, us" "$ours" "$kea (Kea)" "$ratio" "<= 0.4" "$ratio <= 0.4"
  ours=$(median p99-ours) kea=$(median p99-kea)
  bench "dhcp p99 of an exchange at 2,500/s, ms ($DURABLE)" "$ours (DISCOVER $(median do99-ours), REQUEST $(median ra99-ours), $(median late) % late for the disk)" \
    "$kea (Kea)" "$(calc "$ours / ($kea > 0 ? $kea : 1)")" "< 2" "$ours < 2"
}

# The server gets a tenth of a core, so that it is the slower side; then four times what it can do.
row_dhcp_4_overload() {
  local turn name=ours rate hogs hog peak
  for turn in $(seq "$REPS"); do
    start_ours
    taskset -apc 0 "$server" >/dev/null
    hogs=()
    for hog in 1 2 3 4 5 6 7 8 9; do
      taskset -c 0 sh -c 'while :; do :; done' &
      hogs+=($!)
      pids+=($!)
    done
    peak=0
    for rate in 2000 3000 4000 6000 8000 12000; do
      own "$rate"
      if holds "$(field done_s <<<"$line") > $peak"; then peak=$(field done_s <<<"$line"); fi
    done
    note peak "$peak"
    own "$((${peak%.*} * 4))"
    note over "$(field done_s <<<"$line")"
    note lost "$(field requests_lost <<<"$line")"
    for hog in "${hogs[@]}"; do end "$hog"; done
    stop "$server"
  done
  local ratio
  ratio=$(calc "$(median over) / $(median peak)")
  bench "dhcp exchanges/s at 4 x overload, server slowed" "$(median over), $(median lost) REQUESTs lost" "$(median peak) (own peak)" \
    "$ratio" ">= 0.9, none lost" "$ratio >= 0.9 && $(median lost) == 0"
}

# A rack that powers on at one moment: 3,000 DISCOVERs in 15 ms, nothing sent again.
row_dhcp_5_burst() {
  local turn name
  for turn in $(seq "$REPS"); do
    for name in ours kea isc dnsmasq; do
      start_"$name"
      fresh_macs
      line=$(in_client timeout 60 "$bin/dhcp_load" --rate 200000 --seconds 0.015 --discover-only 1 --first-mac "$first_mac")
      [ -z "${VERBOSE:-}" ] || echo "# $name burst: $line" >&2
      note "burst-$name" "$(field offers <<<"$line")"
      stop "$server"
    done
  done
  bench "dhcp burst of 3,000 DISCOVERs, answered" "$(median burst-ours)" \
    "$(median burst-kea) (Kea), $(median burst-isc) (ISC), $(median burst-dnsmasq) (dnsmasq)" \
    "$(calc "$(median burst-ours) / ($(median burst-kea) > 0 ? $(median burst-kea) : 1)")" "3,000" "$(median burst-ours) == 3000"
}
