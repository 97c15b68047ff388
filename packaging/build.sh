#!/usr/bin/env bash
# Builds the binaries of a release: static ones for Linux, each in an archive with its checksum.
#
#   packaging/build.sh [TARGET …]        both targets without a name
#
# Needs Rust with the targets (`rustup target add x86_64-unknown-linux-musl aarch64-unknown-linux-musl`) and a C compiler
# for both of them: zig, as a program or as `pip install ziglang`. Rust's own linker and musl do the rest.
# The archives go to DIST (target/packages), named ptc-VERSION-TARGET.tar.gz, next to SHA256SUMS.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(python3 packaging/manifests.py --version)
out=${DIST:-target/packages}
# Files of an archive carry the time of the commit, so that the same source gives the same archive.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
mkdir -p "$out"
out=$(cd "$out" && pwd)

# What only the binary is linked with: relative relocations take 1 byte instead of 24, functions with the same code are
# one, and copies of memory are fast.
link_flags() {
  local target=$1
  echo -Clink-arg=--pack-dyn-relocs=relr -Clink-arg=--icf=all
  [ "$target" = x86_64-unknown-linux-musl ] || return 0
  packaging/zig-cc.sh -O2 -ffreestanding -fno-builtin -fno-sanitize=all -c packaging/memory.c -o "$work/memory.o"
  rm -f "$work/libptcmemory.a"
  packaging/zig-ar.sh rcs "$work/libptcmemory.a" "$work/memory.o"
  echo -L "native=$work" -l static=ptcmemory
}

# The profile that packaging/pgo.sh made for a target, when there is one.
profile_flags() {
  local profile=$out/$1.profdata
  if [ -n "${PTC_RUSTFLAGS:-}" ]; then echo "$PTC_RUSTFLAGS"
  elif [ -f "$profile" ]; then echo "-Cprofile-use=$profile"
  fi
}

build() {
  local target=$1 upper=${1^^} link
  upper=${upper//-/_}
  export ZIG_TARGET=${target/-unknown-/-}
  link=$(link_flags "$target")
  # shellcheck disable=SC2086  # words without spaces
  env "CC_${target//-/_}=$PWD/packaging/zig-cc.sh" "AR_${target//-/_}=$PWD/packaging/zig-ar.sh" \
    "CARGO_TARGET_${upper}_LINKER=rust-lld" \
    "CARGO_TARGET_${upper}_RUSTFLAGS=--remap-path-prefix=$PWD=/ptc --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo $(profile_flags "$target")" \
    cargo rustc --locked --profile dist --package ptc-mcp --bin ptc --target "$target" -- $link
  archive "$target" "ptc-$version-$target"
}

archive() {
  local target=$1 name=$2 stage
  stage=$(mktemp -d)
  mkdir -p "$stage/$name"
  install -m 755 "${CARGO_TARGET_DIR:-target}/$target/dist/ptc" "$stage/$name/ptc"
  install -m 644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$stage/$name/"
  tar --directory "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    --create "$name" | gzip --no-name --best > "$out/$name.tar.gz"
  rm -r "$stage"
}

[ $# -gt 0 ] || set -- x86_64-unknown-linux-musl aarch64-unknown-linux-musl
for target in "$@"; do build "$target"; done
(cd "$out" && sha256sum ptc-"$version"-*.tar.gz > SHA256SUMS && cat SHA256SUMS)
