# HTTP of the boot port against nginx.

# One client, 1 GiB; GB/s (10^9), and CPU of the server for it.
row_http_1_large() {
  local turn name speed before after
  [ -e "$www/1g.bin" ] || head -c 1073741824 /dev/urandom >"$www/1g.bin"
  for turn in $(seq "$REPS"); do
    for name in ours nginx; do
      start_"$name"
      in_client curl -s -o /dev/null http://198.18.0.1:8067/1g.bin
      before=$(cpu_ticks "$server")
      speed=$(in_client curl -s -m 60 -o /dev/null -w '%{speed_download}' http://198.18.0.1:8067/1g.bin)
      after=$(cpu_ticks "$server")
      note "large-$name" "$(calc "$speed / 1e9")"
      note "cpu-$name" "$(((after - before) * 10))"
      stop "$server"
    done
  done
  local ours peer ratio
  ours=$(median large-ours) peer=$(median large-nginx)
  ratio=$(calc "$ours / $peer")
  bench "http 1 GiB, GB/s" "$ours" "$peer (nginx)" "$ratio" ">= 0.95" "$ratio >= 0.95"
  ours=$(median cpu-ours) peer=$(median cpu-nginx)
  ratio=$(calc "$ours / ($peer > 0 ? $peer : 1)")
  bench "http 1 GiB, CPU ms" "$ours" "$peer (nginx)" "$ratio" "<= 2.5" "$ratio <= 2.5"
}
# Of a process and its children.
cpu_ticks() {
  local pid sum=0
  for pid in "$1" $(pgrep -P "$1" || true); do
    sum=$((sum + $(sed 's/.*) //' "/proc/$pid/stat" | awk '{print $12 + $13}')))
  done
  echo "$sum"
}

row_http_2_small() {
  local turn name
  for turn in $(seq "$REPS"); do
    for name in ours nginx; do
      start_"$name"
      in_client wrk -t1 -c32 -d3s http://198.18.0.1:8067/boot.ipxe.txt >"$work/wrk"
      note "small-$name" "$(awk '/Requests\/sec/{print $2}' "$work/wrk")"
      stop "$server"
    done
  done
  local ours peer ratio
  ours=$(median small-ours) peer=$(median small-nginx)
  ratio=$(calc "$ours / $peer")
  bench "http 528 bytes, 32 connections, requests/s" "$ours" "$peer (nginx)" "$ratio" ">= 0.9" "$ratio >= 0.9"
}

# Four files of 1 GiB from a cold page cache, and small requests meanwhile: their median in ms.
row_http_3_cold() {
  local turn name number loads
  for number in 1 2 3 4; do
    [ -e "$www/c$number.bin" ] || head -c 1073741824 /dev/urandom >"$www/c$number.bin"
  done
  for turn in $(seq "$REPS"); do
    for name in ours nginx; do
      for number in 1 2 3 4; do dd of="$www/c$number.bin" oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null; done
      start_"$name"
      loads=()
      for number in 1 2 3 4; do
        in_client curl -s -m 60 -o /dev/null "http://198.18.0.1:8067/c$number.bin" &
        loads+=($!)
      done
      in_client wrk -t1 -c4 -d2s --latency http://198.18.0.1:8067/boot.ipxe.txt >"$work/wrk"
      wait "${loads[@]}"
      note "cold-$name" "$(awk '/ 50%/{v=$2; if (v ~ /us$/) print v/1000; else if (v ~ /ms$/) print v+0; else print v*1000}' "$work/wrk")"
      stop "$server"
    done
  done
  rm -f "$www"/c?.bin
  local ours peer
  ours=$(median cold-ours) peer=$(median cold-nginx)
  bench "http 528 bytes beside 4 x 1 GiB from a cold disk, p50 ms" "$ours" "$peer (nginx)" \
    "$(calc "$ours / ($peer > 0 ? $peer : 1)")" "<= nginx" "$ours <= $peer"
}
