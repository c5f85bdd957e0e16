# Shared by the benchmarks: packages, build, namespaces, medians, rows. Sourced by run.sh.

packages() {
  local missing=() package
  for package in $(grep -v '^#' "$root/tests/bench/packages.txt"); do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    echo "# installing: ${missing[*]}"
    apt-get update -qq
    # Their services must not start: policy-rc.d is what invoke-rc.d asks.
    local policy=/usr/sbin/policy-rc.d is_ours=0
    [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy; chmod +x $policy; is_ours=1; }
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    [ $is_ours = 0 ] || rm -f $policy
  fi
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/volund-bench
  mkdir -p "$cache"
  if [ ! -x "$cache/atftpd/usr/sbin/atftpd" ]; then
    (cd "$cache" && apt-get download -qq atftpd 2>/dev/null && dpkg-deb -x atftpd_*.deb atftpd)
  fi
}

# Release builds of volund and of the tools, in one folder apart from that of the tests.
build() {
  export CARGO_TARGET_DIR=${BENCH_TARGET_DIR:-${CARGO_TARGET_DIR:-$root/target}/bench}
  [ -n "${BENCH_WITHOUT_VOLUND:-}" ] || (cd "$root" && nice cargo build --quiet --release --locked -p volund)
  (cd "$here" && nice cargo build --quiet --release --locked)
  bin=$CARGO_TARGET_DIR/release
}

# net_up MTU: two namespaces, a veth pair, nodes' addresses behind the client's side (one neighbour, however many
# nodes: the system's neighbour table holds 1,024 by default).
net_up() {
  srv=vb-s$$ cl=vb-c$$
  net_down
  ip netns add $srv
  ip netns add $cl
  ip link add vbs$$ mtu "$1" type veth peer name vbc$$ mtu "$1"
  ip link set vbs$$ netns $srv name eth0
  ip link set vbc$$ netns $cl name eth0
  ip -n $srv addr add 198.18.0.1/16 dev eth0
  ip -n $cl addr add 198.18.0.2/16 dev eth0
  for ns in $srv $cl; do ip -n $ns link set lo up; ip -n $ns link set eth0 up; done
  ip -n $srv route add 198.19.0.0/16 via 198.18.0.2
  ip -n $cl route add local 198.19.0.0/16 dev lo
  # Interfaces come up a moment later.
  until in_client ping -c1 -W1 198.18.0.1 >/dev/null 2>&1; do :; done
}
net_down() {
  for ns in $srv $cl; do ip netns del $ns 2>/dev/null || true; done
}
in_server() { ip netns exec "$srv" "$@"; }
in_client() { ip netns exec "$cl" "$@"; }
load() { cut -d' ' -f1 /proc/loadavg; }

pids=()
clean() {
  local pid
  for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
  net_down
  rm -rf "$work"
}

# stop PID: ends a server we started, and waits until its ports are free.
stop() {
  end "$1"
  # Its children may still have one.
  wait_for ports_are_free
}
# end PID: ends a process we started.
end() {
  kill "$1" 2>/dev/null || true
  local tries=0
  while kill -0 "$1" 2>/dev/null && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -9 "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}
ports_are_free() { ! in_server ss -Hln '( sport = :67 or sport = :69 or sport = :8067 )' | grep -q .; }

# wait_for COMMAND...: until it succeeds, 15 s at most.
wait_for() {
  local tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 150 ] || { echo "never true: $*" >&2; return 1; }
    sleep 0.1
  done
}
udp_is_bound() { in_server ss -Hlun "sport = :$1" | grep -q .; }
tcp_is_bound() { in_server ss -Hltn "sport = :$1" | grep -q .; }
rss_mb() { awk '/VmRSS/{printf "%.1f", $2/1024}' "/proc/$1/status"; }
peak_mb() { awk '/VmHWM/{printf "%.1f", $2/1024}' "/proc/$1/status"; }

# field NAME <<<"a=1 b=2"
field() { tr ' ' '\n' | sed -n "s/^$1=//p" | head -1; }
# Keeps a figure: note NAME VALUE. Its median: median NAME.
note() { echo "$2" >>"$work/notes-$1"; }
median() {
  [ -s "$work/notes-$1" ] || { echo 0; return; }
  sort -g "$work/notes-$1" | awk '{v[NR]=$1} END{print NR%2 ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'
}
forget() { rm -f "$work"/notes-*; }
calc() { awk "BEGIN{printf(\"%.4g\", ($1))}"; }
holds() { awk "BEGIN{exit !($1)}"; }
# best NAME...: the name with the highest median.
best() {
  local name
  for name in "$@"; do echo "$(median "$name") $name"; done | sort -g | tail -1 | cut -d' ' -f2
}

# bench NAME OURS PEER RATIO GOAL CONDITION: prints the row; remembers whether the condition holds.
bench() {
  local mark=
  holds "$6" || { mark=" (missed)"; row_missed=1; }
  echo "BENCH $1 | $2 | $3 | $4 | $5$mark"
}

# run_row FUNCTION: a row that misses its goal is measured once more.
run_row() {
  forget
  row_missed=0
  "$1" || row_missed=1
  [ $row_missed = 1 ] || return 0
  echo "# $1 missed its goal (load $(load)): once more"
  forget
  row_missed=0
  "$1" || row_missed=1
  [ $row_missed = 0 ] || failed=$((failed + 1))
}

# Files that are served: NAME BYTES. Contents differ in each block.
files() {
  www=$work/www
  mkdir -p "$www"
  local name size
  while read -r name size; do head -c "$size" /dev/urandom >"$www/$name"; done <<'LIST'
boot.ipxe.txt 528
snponly.efi 280000
1m.bin 1048576
2m.bin 2097152
10m.bin 10485760
100m.bin 104857600
image-kernel 8400000
image-initrd0 20000000
LIST
}

# lab NODES: `volund serve` itself, in `server`, with so many declared nodes whose BMCs answer; the BMCs in `farm`.
lab() {
  local lab=$work/lab number
  rm -rf "$lab"
  mkdir -p "$lab/state" "$lab/loaders"
  cp "$www/snponly.efi" "$lab/loaders/"
  cp "$www/snponly.efi" "$lab/loaders/undionly.kpxe"
  (umask 077; echo secret >"$lab/pw"; "$bin/volund" token bench >"$lab/token" 2>"$lab/token.lines")
  cat >"$lab/volund.toml" <<TOML
schema = 1
[lab]
name = "bench"
state_dir = "$lab/state"
[operator]
listen = "127.0.0.1:8443"
$(grep -v '^add ' "$lab/token.lines")
[[network]]
name = "boot"
interface = "eth0"
subnet = "198.18.0.0/15"
server = "198.18.0.1"
[loaders]
dir = "$lab/loaders"
[enclosure.rack]
model = "Rack"
bays = 16
[profile.ram]
kind = "linux"
root = "ram"
kernel = "$www/image-kernel"
initrd = ["$www/image-initrd0"]
args = "quiet"
TOML
  for number in $(seq 0 $(($1 - 1))); do
    printf '[[node]]\nname = "bench-%04d"\nmacs = ["02:5a:10:%02x:%02x:%02x"]\naddress = "198.19.%d.%d"\n' \
      "$number" $((number >> 16)) $((number >> 8 & 255)) $((number & 255)) $(((number + 1) >> 8)) $(((number + 1) & 255))
    printf 'bmc = { kind = "ipmi", address = "127.9.%d.%d", user = "u", secret = "file:%s/pw" }\n' \
      $((number >> 8)) $((number & 255)) "$lab"
  done >>"$lab/volund.toml"
  chmod 600 "$lab/volund.toml"
  ip netns exec "$srv" "$bin/bmc_farm" --count "$1" >"$lab/farm" &
  farm=$!
  pids+=("$farm")
  wait_for grep -qs ready "$lab/farm"
  # As docs/volund.service starts it.
  MALLOC_ARENA_MAX=2 ip netns exec "$srv" "$bin/volund" serve --config "$lab" >"$lab/log" 2>&1 &
  started $!
  wait_for tcp_is_bound 8067
}
stop_lab() { stop "$server"; end "$farm"; }

# ordered NODES: switches all of them to a system in memory, and waits until their power is on and they are to boot.
ordered() {
  local tries=0 waiting=0
  asking switch "bench-[0000-$(printf '%04d' $(($1 - 1)))]" ram --yes >"$work/lab/switch" 2>&1
  until [ "$waiting" = "$1" ]; do
    tries=$((tries + 1))
    [ $tries -lt 120 ] || { echo "only $waiting nodes are to boot" >&2; return 1; }
    sleep 1
    waiting=$(asking nodes | grep -cE ' on .*(booting|waiting)' || true)
  done
}
asking() { VOLUND_TOKEN=$(cat "$work/lab/token") in_server "$bin/volund" "$@"; }
