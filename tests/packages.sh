#!/usr/bin/env bash
# Installs what tests/packages.txt lists, if something of it is missing. `tests/packages.sh build` stops at what
# building and `volund demo` need; `tests/packages.sh nightly` takes tests/nightly/packages.txt as well. Needs root or
# sudo only when there is something to install.
set -euo pipefail
cd "$(dirname "$0")"
list=$(grep -v '^#' packages.txt)
# With the others beside them, for the names that must not be installed.
[ "${1:-all}" = nightly ] && list="$list $(grep -v '^#' nightly/packages.txt)"
[ "${1:-all}" = build ] && list=$(printf '%s\n' $list | grep -xE 'gcc|libc6-dev|ca-certificates')
missing=()
for package in $list; do
  case $package in *-) continue ;; esac
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
echo "installing: ${missing[*]}"
sudo=; [ "$(id -u)" -eq 0 ] || sudo=sudo
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $list >/dev/null
