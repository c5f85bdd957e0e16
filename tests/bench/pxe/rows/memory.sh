# Resident memory of the whole of volund: page, API, engine, book, sampler and boot services.

# 1,000 nodes are switched to a system in memory; 200 of them boot at once, with kernel and initrd (28 MB each).
row_memory_1_boots() {
  local line idle most
  lab 1000
  ordered 1000
  # The most from here on: reading the configuration took more for a moment.
  echo 5 >"/proc/$server/clear_refs"
  idle=$(rss_mb "$server")
  line=$(in_client timeout 170 "$bin/boot_storm" --nodes 200 --images /i/ram/kernel,/i/ram/initrd0 2>"$work/storm.err") || true
  most=$(peak_mb "$server")
  [ -z "${VERBOSE:-}" ] || { echo "# $line"; cat "$work/storm.err"; } >&2
  stop_lab
  bench "memory of volund with 1,000 nodes, 200 booting, MiB at most" "$most ($(field booted <<<"$line") booted)" \
    "$idle (before)" "-" "< 48, 200 booted" "$most < 48 && $(field booted <<<"$line") == 200"
}
