#!/bin/sh
# Installs ptc @VERSION@: a static binary for Linux.
#
#   sh install.sh [--to DIR]       DIR: ~/.local/bin
#
# PTC_BASE_URL names another place for the archives: an address, or a folder of this machine.
set -eu

version=@VERSION@
base=${PTC_BASE_URL:-@DOWNLOADS@}
to=${HOME:-}/.local/bin

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --to) [ $# -gt 1 ] || fail "--to needs a folder"; to=$2; shift 2 ;;
    --to=*) to=${1#--to=}; shift ;;
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail "unknown argument $1 (usage: install.sh [--to DIR])" ;;
  esac
done

[ "$(uname -s)" = Linux ] || fail "there are binaries for Linux only; elsewhere build ptc with Rust: cargo install --locked --path mcp"
case $(uname -m) in
  x86_64 | amd64) target=x86_64-unknown-linux-musl ;;
  aarch64 | arm64) target=aarch64-unknown-linux-musl ;;
  *) fail "there is no binary for $(uname -m)" ;;
esac
name=ptc-$version-$target

# Writes the file $1 of the release to $2.
get() {
  case $base in
    file://*) cp "${base#file://}/$1" "$2" ;;
    *://*)
      if command -v curl >/dev/null; then curl --fail --silent --show-error --location --output "$2" "$base/$1"
      elif command -v wget >/dev/null; then wget -q -O "$2" "$base/$1"
      else fail "curl or wget is needed"; fi ;;
    *) cp "$base/$1" "$2" ;;
  esac || fail "cannot get $base/$1"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
get "$name.tar.gz" "$work/$name.tar.gz"
get SHA256SUMS "$work/SHA256SUMS"

if command -v sha256sum >/dev/null; then found=$(sha256sum "$work/$name.tar.gz")
elif command -v shasum >/dev/null; then found=$(shasum -a 256 "$work/$name.tar.gz")
else fail "sha256sum or shasum is needed"; fi
found=${found%% *}
expected=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$name\.tar\.gz\$/\1/p" "$work/SHA256SUMS")
[ -n "$expected" ] || fail "SHA256SUMS does not name $name.tar.gz"
[ "$found" = "$expected" ] || fail "$name.tar.gz has the checksum $found, expected $expected; nothing was installed"

tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$to"
# A running ptc keeps its old file.
cp "$work/$name/ptc" "$to/.ptc.$$"
chmod 755 "$to/.ptc.$$"
mv -f "$to/.ptc.$$" "$to/ptc"
running=$("$to/ptc" --version) || fail "$to/ptc does not run on this machine"
echo "installed $running as $to/ptc"
case ":${PATH:-}:" in
  *":$to:"*) ;;
  *) echo "add $to to PATH: export PATH=\"$to:\$PATH\"" ;;
esac
