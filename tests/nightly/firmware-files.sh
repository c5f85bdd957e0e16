#!/usr/bin/env bash
# Fetches what the rows of firmware.sh boot and no package of the ordinary tests has, into target/firmware-files:
#   loaders/       iPXE of Debian 13, the first package with a loader for ARM; pxelinux with the module it needs
#   vmlinuz-arm64  a kernel for ARM
#   shimx64.efi.signed, grubnetx64.efi.signed
# Packages are unpacked, not installed: other releases, other architectures, and no boot loader of this machine is touched.
# What is there already is kept. Needs the Debian mirror and Debian's archive keys.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/target/firmware-files
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
[ -e "$out/complete" ] && exit 0
rm -rf "$out"
mkdir -p "$out/apt/lists/partial" "$out/apt/cache/archives/partial" "$out/debs" "$out/tree" "$out/loaders"
# A list, a state and a cache of its own: the system's apt knows nothing of it.
touch "$out/apt/status"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
cat > "$out/apt/sources.list" <<LIST
deb [arch=amd64 signed-by=$keys] $mirror trixie main
deb [arch=amd64,arm64 signed-by=$keys] $mirror bookworm main
LIST
apt=(-qq -o Dir::Etc::sourcelist="$out/apt/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$out/apt/lists"
  -o Dir::Cache="$out/apt/cache" -o Dir::State::status="$out/apt/status" -o APT::Sandbox::User=root
  -o APT::Architectures::=amd64 -o APT::Architectures::=arm64)
apt-get "${apt[@]}" update
kernel=$(apt-cache "${apt[@]}" depends linux-image-arm64:arm64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -1)
# The distribution's signed pair has to be of one release, so these are asked of Debian 12 by name.
cd "$out/debs"
apt-get "${apt[@]}" download ipxe "$kernel" shim-signed/bookworm grub-efi-amd64-signed/bookworm \
  pxelinux/bookworm syslinux-common/bookworm
for deb in *.deb; do
  case $deb in
    # Of a kernel's 400 MB of modules nothing is needed.
    linux-image-*) dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$out/tree" ./boot ;;
    *) dpkg-deb -x "$deb" "$out/tree" ;;
  esac
done
cd "$out"
cp tree/usr/lib/ipxe/*.{efi,kpxe} loaders/
cp tree/boot/vmlinuz-*-arm64 vmlinuz-arm64
cp tree/usr/lib/shim/shimx64.efi.signed tree/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed .
cp tree/usr/lib/PXELINUX/pxelinux.0 tree/usr/lib/syslinux/modules/bios/ldlinux.c32 loaders/
rm -rf apt debs tree
touch complete
