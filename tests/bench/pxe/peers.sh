# Starting and ending of ours and of the peers, each from nothing. `start_X` leaves its process in `server`.

started() { pids+=("$1"); server=$1; }

# Ours: the boot services with 10,000 nodes in their table, the lease log synced before each ACK.
start_ours() {
  rm -f "$work/leases.log" "$work/ours.out"
  ip netns exec "$srv" "$bin/boot_server" --server 198.18.0.1 --interface eth0 --files "$www" --lease-log "$work/leases.log" \
    >"$work/ours.out" 2>&1 &
  started $!
  wait_for grep -qs ready "$work/ours.out"
}

# memfile as it comes: what was acknowledged is written and never synced.
start_kea() {
  rm -rf "$work/kea"; mkdir -p "$work/kea"
  cat >"$work/kea/kea.json" <<JSON
{"Dhcp4":{"interfaces-config":{"interfaces":["eth0/198.18.0.1"],"dhcp-socket-type":"udp"},
 "control-socket":{"socket-type":"unix","socket-name":"$work/kea/ctl"},
 "lease-database":{"type":"memfile","persist":true,"name":"$work/kea/leases","lfc-interval":0},
 "multi-threading":{"enable-multi-threading":true,"thread-pool-size":2,"packet-queue-size":64},
 "valid-lifetime":600,"loggers":[{"name":"kea-dhcp4","severity":"ERROR","output_options":[{"output":"stderr"}]}],
 "subnet4":[{"subnet":"198.18.0.0/16","pools":[{"pool":"198.18.1.0 - 198.18.250.255"}],
  "next-server":"198.18.0.1","boot-file-name":"snponly.efi"}]}}
JSON
  KEA_PIDFILE_DIR=$work/kea KEA_LOCKFILE_DIR=$work/kea ip netns exec "$srv" kea-dhcp4 -c "$work/kea/kea.json" >"$work/kea/out" 2>&1 &
  started $!
  wait_for udp_is_bound 67
}

start_isc() {
  rm -rf "$work/isc"; mkdir -p "$work/isc"
  touch "$work/isc/leases"
  cat >"$work/isc/dhcpd.conf" <<'CONF'
authoritative;
subnet 198.18.0.0 netmask 255.255.0.0 {
  range 198.18.1.0 198.18.250.255;
  next-server 198.18.0.1; filename "snponly.efi";
  ping-check false; default-lease-time 600; max-lease-time 600;
}
CONF
  ip netns exec "$srv" dhcpd -4 -f -q -cf "$work/isc/dhcpd.conf" -lf "$work/isc/leases" -pf "$work/isc/pid" eth0 >"$work/isc/out" 2>&1 &
  started $!
  wait_for udp_is_bound 67
}

# start_dnsmasq [MORE OPTIONS]
start_dnsmasq() {
  rm -rf "$work/dnsmasq"; mkdir -p "$work/dnsmasq"
  ip netns exec "$srv" dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --interface=eth0 --bind-interfaces --user=root \
    --pid-file="$work/dnsmasq/pid" --no-ping --quiet-dhcp --dhcp-lease-max=200000 \
    --dhcp-range=198.18.1.0,198.18.250.255,255.255.0.0,10m --dhcp-boot=snponly.efi \
    --dhcp-leasefile="$work/dnsmasq/leases" --enable-tftp --tftp-root="$www" --tftp-max=2000 "$@" >"$work/dnsmasq/out" 2>&1 &
  started $!
  wait_for udp_is_bound 69
}

start_hpa() {
  ip netns exec "$srv" in.tftpd --foreground --address 198.18.0.1:69 --secure --user root "$www" >"$work/hpa.out" 2>&1 &
  started $!
  wait_for udp_is_bound 69
}

start_atftpd() {
  ip netns exec "$srv" "$cache/atftpd/usr/sbin/atftpd" --daemon --no-fork --user root --group root --bind-address 198.18.0.1 \
    --port 69 --no-multicast --maxthread 2000 --verbose=0 "$www" >"$work/atftpd.out" 2>&1 &
  started $!
  wait_for udp_is_bound 69
}

start_nginx() {
  mkdir -p "$work/nginx"
  cat >"$work/nginx/nginx.conf" <<CONF
worker_processes 2; daemon off; pid $work/nginx/pid; error_log $work/nginx/error.log;
events { worker_connections 4096; }
http { access_log off; sendfile on; tcp_nopush on; client_body_temp_path $work/nginx; proxy_temp_path $work/nginx;
  fastcgi_temp_path $work/nginx; uwsgi_temp_path $work/nginx; scgi_temp_path $work/nginx;
  server { listen 198.18.0.1:8067 backlog=4096; root $www; } }
CONF
  # Its workers have to read a folder of ours.
  chmod a+rx "$work"
  ip netns exec "$srv" nginx -p "$work/nginx" -c "$work/nginx/nginx.conf" >"$work/nginx/out" 2>&1 &
  started $!
  wait_for tcp_is_bound 8067
}
