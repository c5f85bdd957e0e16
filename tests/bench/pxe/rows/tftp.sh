# TFTP against tftpd-hpa, atftpd and dnsmasq. Figures are MB/s (10^6) seen by one client program.

tftp_servers="ours hpa atftpd dnsmasq"

# tftp_turns KEY FILE BLKSIZE WINDOW SESSIONS SERVERS [MORE]: REPS turns of each server; a failed transfer counts as 0.
# With `lossy` set a relay stands between, with the turn's number as its seed.
tftp_turns() {
  local key=$1 file=$2 blksize=$3 window=$4 sessions=$5 servers=$6 turn name out
  shift 6
  for turn in $(seq "$REPS"); do
    [ -z "${lossy:-}" ] || start_relay "$turn"
    for name in $servers; do
      start_"$name"
      out=$(in_client timeout 90 "$bin/tftp_load" --server 198.18.0.1:69 --file "$file" --blksize "$blksize" \
        --windowsize "$window" --sessions "$sessions" --limit 40 "$@" 2>"$work/tftp.err") || out="mb_s=0 failed=$sessions"
      [ -z "${VERBOSE:-}" ] || echo "# $name $out" >&2
      [ "$(field failed <<<"$out")" = 0 ] || out="mb_s=0"
      note "$key-$name" "$(field mb_s <<<"$out")"
      stop "$server"
    done
    [ -z "${lossy:-}" ] || end "$relay"
  done
}
start_relay() {
  ip netns exec "$cl" "$bin/udp_relay" --listen 198.18.0.2:1069 --server 198.18.0.1:69 --permille 10 --seed "$1" &
  relay=$!
  pids+=("$relay")
}

# tftp_row TITLE KEY LEAST: the best peer is who counts.
tftp_row() {
  local ours peer ratio
  ours=$(median "$2-ours")
  peer=$(best "$2-hpa" "$2-atftpd" "$2-dnsmasq")
  ratio=$(calc "$(median "$peer") > 0 ? $ours / $(median "$peer") : 999")
  bench "tftp $1, MB/s" "$ours" "$(median "$peer") (${peer#"$2"-})" "$ratio" ">= $3" "$ratio >= $3"
}

row_tftp_1_lockstep_512() { tftp_turns a 10m.bin 512 1 1 "$tftp_servers"; tftp_row "512 x 1, 10 MiB" a 0.95; }
row_tftp_1_lockstep_1428() { tftp_turns b 10m.bin 1428 1 1 "$tftp_servers"; tftp_row "1428 x 1, 10 MiB" b 0.95; }
row_tftp_1_lockstep_8192() {
  net_up 9000
  tftp_turns c 10m.bin 8192 1 1 "$tftp_servers"
  net_up 1500
  tftp_row "8192 x 1, 10 MiB, MTU 9000" c 0.95
}
row_tftp_2_window_512() { tftp_turns d 100m.bin 512 16 1 "$tftp_servers"; tftp_row "512 x 16, 100 MiB" d 2; }
row_tftp_2_window_1428() { tftp_turns e 100m.bin 1428 16 1 "$tftp_servers"; tftp_row "1428 x 16, 100 MiB" e 2; }
row_tftp_3_parallel() { tftp_turns f 10m.bin 1428 1 8 "$tftp_servers"; tftp_row "1428 x 1, 8 at once" f 1.1; }
row_tftp_3_parallel_window() { tftp_turns g 10m.bin 1428 16 8 "$tftp_servers"; tftp_row "1428 x 16, 8 at once" g 2.5; }

# The same packets are lost whoever serves, counted from the first of a transfer.
tftp_lossy() {
  local lossy=1
  tftp_turns "$1" 1m.bin 1428 "$2" 1 "$tftp_servers" --server 198.18.0.2:1069
}
row_tftp_4_loss() { tftp_lossy h 1; tftp_row "1428 x 1, 1 MiB, 1 % loss" h 20; }
row_tftp_4_loss_window() { tftp_lossy i 16; tftp_row "1428 x 16, 1 MiB, 1 % loss" i 20; }

# Each from an address of its own; how many came through, how long it took, and what memory the server had at most.
row_tftp_5_thousand() {
  local out memory
  start_ours
  out=$(in_client timeout 170 "$bin/tftp_load" --server 198.18.0.1:69 --file 2m.bin --blksize 1428 --windowsize 4 \
    --sessions 1000 --each-own 1 --from 198.19.0.1 --limit 120 2>"$work/tftp.err") || true
  memory=$(peak_mb "$server")
  stop "$server"
  local ours="$((1000 - $(field failed <<<"$out"))) in $(field seconds <<<"$out") s, $memory MB"
  start_atftpd
  local peer
  peer=$(in_client timeout 170 "$bin/tftp_load" --server 198.18.0.1:69 --file 2m.bin --blksize 1428 --windowsize 4 \
    --sessions 1000 --each-own 1 --from 198.19.0.1 --limit 120 2>"$work/tftp.err") || true
  local there
  there="$((1000 - $(field failed <<<"$peer"))) in $(field seconds <<<"$peer") s, $(peak_mb "$server" 2>/dev/null || echo "?, ended by itself,") MB (atftpd)"
  stop "$server"
  bench "tftp 1,000 at once, 2 MiB each" "$ours" "$there" "-" "1000 done, < 64 MB" \
    "$(field failed <<<"$out") == 0 && $memory < 64"
}
