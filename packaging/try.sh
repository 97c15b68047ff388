#!/usr/bin/env bash
# Installs each package of target/packages in a fresh root without Rust, and prints a table of seconds and bytes.
#
#   packaging/try.sh            needs root, bwrap, debootstrap, busybox (static) and node of this machine; a network
#
# Each package gives `ptc demo`, a program over a real server, a Python script in its jail where python3 is, and is
# static by `ldd`. The roots: Debian with Python and Node, busybox alone, and the image itself. Archives of aarch64 run
# under qemu-aarch64-static if it is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dist=$(cd "${DIST:-target/packages}" && pwd)
version=$(python3 packaging/manifests.py --version)
work=${TRY_ROOT:-$(mktemp -d)}
rows=()

# Runs a command in the root $1, which sees the packages at /dist and nothing else of this machine.
inside() {
  local root=$1
  shift
  bwrap --bind "$root" / --ro-bind "$dist" /dist --proc /proc --dev /dev --tmpfs /tmp --unshare-pid --die-with-parent \
    --clearenv --setenv PATH /root/.local/bin:/usr/local/bin:/usr/bin:/bin:/ --setenv HOME /root \
    --setenv PIP_CERT /etc/ssl/certs/ca-certificates.crt --setenv NODE_EXTRA_CA_CERTS /etc/ssl/certs/ca-certificates.crt "$@"
}

# A fresh root of busybox.
busybox_root() {
  mkdir -p "$1"/{bin,root,tmp,proc,dev,dist,etc}
  cp "$(command -v busybox)" "$1/bin/busybox"
  local name
  for name in $("$1/bin/busybox" --list); do [ "$name" = busybox ] || ln -s busybox "$1/bin/$name"; done
}

# A fresh root of Debian with Python, and the node and npm of this machine.
debian_root() {
  [ -d "$work/debian.base/dist" ] || {
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates,libatomic1 bookworm \
      "$work/debian.base" >"$work/debootstrap.log"
    cp "$(readlink -f "$(command -v node)")" "$work/debian.base/usr/bin/node"
    mkdir -p "$work/debian.base/usr/lib/node_modules" "$work/debian.base/dist"
    cp -r "$(npm root -g)/npm" "$work/debian.base/usr/lib/node_modules/"
    ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$work/debian.base/usr/bin/npm"
    ln -sf ../lib/node_modules/npm/bin/npx-cli.js "$work/debian.base/usr/bin/npx"
    cp /etc/resolv.conf "$work/debian.base/etc/resolv.conf"
    cp /etc/ssl/certs/ca-certificates.crt "$work/debian.base/etc/ssl/certs/"
  }
  cp -a "$work/debian.base" "$1"
}

# Sets `took` to the seconds of a command.
timed() {
  local start=$EPOCHREALTIME
  "$@" >"$work/output" 2>&1 || { cat "$work/output"; echo "FAILED: $*"; exit 1; }
  took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
}

# Checks an installed ptc and adds its row: NAME PACKAGE SECONDS BINARY SERVERS PROGRAM PATTERN COMMAND …
# SECONDS is the time of the installation, SERVERS the configuration, PATTERN what the program's answer contains,
# COMMAND what runs ptc.
check() {
  local name=$1 package=$2 install=$3 binary=$4 servers=$5 program=$6 pattern=$7
  shift 7
  local found
  found=$(ldd "$binary" 2>&1 || true)
  grep -q 'statically linked\|not a dynamic executable' <<<"$found" || { echo "$name is not static: $found"; exit 1; }
  mkdir -p "$root/etc/ptc"
  printf '%s\n' "$servers" >"$root/etc/ptc/upstreams.json"
  local demo=-
  # The demo starts ptc itself, which qemu does not do without the kernel's help.
  if [ "$2" != /bin/qemu ] && [ "$3" != /bin/qemu ]; then
    timed "$@" demo
    grep -q 'less' "$work/output" || { cat "$work/output"; exit 1; }
    demo=$took
  fi
  timed "$@" eval --upstreams-config /etc/ptc/upstreams.json "$program"
  grep -q "$pattern" "$work/output" || { echo "$name answered:"; cat "$work/output"; exit 1; }
  rows+=("| $name | $(stat -c %s "$package") | $(stat -c %s "$binary") | $install | $demo | $took |")
  echo "$name: installed in $install s, demo $demo s, program $took s: $(head -c 60 "$work/output" | head -1)"
}

# A Python script in its jail.
script() {
  echo 'print(sum(range(10)))' >"$root/root/sum.py"
  timed "$@" exec --upstreams-config /etc/ptc/upstreams.json /root/sum.py
  grep -qx 45 "$work/output" || { cat "$work/output"; exit 1; }
}

# Roots without an interpreter: the same binary serves over HTTP in one process, and is called by another.
port=7399
itself='{"mcpServers": {"inner": {"type": "http", "url": "http://127.0.0.1:7399/mcp"}}}'
over_itself='(tool/call {:server "inner" :tool "lisp_eval" :args {:program "(+ 40 2)"}})'
served=
# Starts the command as that server.
serve() {
  [ -z "$served" ] || { kill "$served" && wait "$served" || true; } 2>/dev/null
  "$@" serve --http 127.0.0.1:$port >"$work/served" 2>&1 &
  served=$!
  until curl --silent --fail "http://127.0.0.1:$port/health" >/dev/null; do
    kill -0 "$served" || { cat "$work/served"; exit 1; }
    sleep 0.1
  done
}
trap '[ -z "$served" ] || kill "$served"' EXIT

machine=$(uname -m)
case $machine in x86_64) npm=linux-x64 oci=amd64 ;; aarch64) npm=linux-arm64 oci=arm64 ;; esac

root=$work/archive
busybox_root "$root"
timed inside "$root" env PTC_BASE_URL=file:///dist sh /dist/install.sh
serve inside "$root" ptc
check "archive, \`install.sh\` (busybox)" "$dist/ptc-$version-$machine-unknown-linux-musl.tar.gz" "$took" \
  "$root/root/.local/bin/ptc" "$itself" "$over_itself" 42 inside "$root" ptc
# A damaged archive is refused.
mkdir -p "$root/bad"
cp "$dist/SHA256SUMS" "$root/bad/"
echo damage >"$root/bad/ptc-$version-$machine-unknown-linux-musl.tar.gz"
if inside "$root" env PTC_BASE_URL=/bad sh /dist/install.sh --to /bad/bin 2>/dev/null; then
  echo "install.sh takes a damaged archive"
  exit 1
fi

root=$work/wheel
debian_root "$root"
inside "$root" python3 -m venv /venv
timed inside "$root" /venv/bin/pip install --no-index --find-links /dist ptc
wheel=$(echo "$dist"/*"$machine".whl)
install=$took
inside "$root" /venv/bin/pip install --quiet mcp-server-time
check "wheel, \`pip install\` (Debian)" "$wheel" "$install" "$root/venv/bin/ptc" \
  '{"mcpServers": {"time": {"command": "/venv/bin/mcp-server-time"}}}' \
  '(tool/call {:server "time" :tool "get_current_time" :args {:timezone "Europe/Paris"}})' Europe/Paris \
  inside "$root" /venv/bin/ptc
script inside "$root" /venv/bin/ptc

root=$work/npm
debian_root "$root"
mkdir "$root/app"
timed inside "$root" npm install --prefix /app --ignore-scripts --silent \
  "/dist/ptc-$npm-$version.tgz" "/dist/ptc-$version.tgz"
install=$took
inside "$root" npm install --prefix /app --silent @modelcontextprotocol/server-memory
check "npm packages, \`npm install\` (Debian)" "$dist/ptc-$npm-$version.tgz" "$install" \
  "$root/app/node_modules/ptc-$npm/bin/ptc" \
  '{"mcpServers": {"memory": {"command": "/app/node_modules/.bin/mcp-server-memory"}}}' \
  '(tool/call {:server "memory" :tool "read_graph"})' entities inside "$root" /app/node_modules/.bin/ptc
script inside "$root" /app/node_modules/.bin/ptc

root=$work/image
mkdir -p "$root"
timed python3 packaging/unpack.py "$dist/ptc-$version-oci.tar" "$oci" "$root"
mkdir -p "$root"/{root,proc,dev,dist,etc}
serve inside "$root" /ptc
check "image (from nothing)" "$dist/ptc-$version-oci.tar" "$took" "$root/ptc" \
  "$itself" "$over_itself" 42 inside "$root" /ptc

root=$work/bundle
busybox_root "$root"
timed python3 -m zipfile -e "$dist/ptc-$version-$npm.mcpb" "$root/bundle"
chmod 755 "$root/bundle/server/ptc"
serve inside "$root" /bundle/server/ptc
check "bundle \`.mcpb\` (busybox)" "$dist/ptc-$version-$npm.mcpb" "$took" "$root/bundle/server/ptc" \
  "$itself" "$over_itself" 42 inside "$root" /bundle/server/ptc

other=$dist/ptc-$version-aarch64-unknown-linux-musl.tar.gz
if [ "$machine" = x86_64 ] && [ -f "$other" ] && command -v qemu-aarch64-static >/dev/null; then
  root=$work/aarch64
  busybox_root "$root"
  cp "$(command -v qemu-aarch64-static)" "$root/bin/qemu"
  timed tar -xzf "$other" -C "$root/root" --strip-components=1
  serve inside "$root" /bin/qemu /root/ptc
  check "archive of aarch64 (qemu)" "$other" "$took" "$root/root/ptc" "$itself" "$over_itself" 42 \
    inside "$root" /bin/qemu /root/ptc
fi

echo
echo "| package | bytes | bytes of the binary | install, s | \`ptc demo\`, s | program over a server, s |"
echo "|---|---|---|---|---|---|"
printf '%s\n' "${rows[@]}"
