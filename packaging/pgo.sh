#!/usr/bin/env bash
# Makes the profile by which `packaging/build.sh` optimises a target: runs an instrumented binary over typical work.
#
#   packaging/pgo.sh [TARGET]            x86_64-unknown-linux-musl without a name
#
# Needs what build.sh needs, `rustup component add llvm-tools`, and a machine that runs binaries of the target. The
# profile goes to DIST (target/packages) as TARGET.profdata.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${1:-x86_64-unknown-linux-musl}
out=${DIST:-target/packages}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
tools=$(rustc --print target-libdir)/../bin

# Counts go to files of $work. Atomic updates: several threads run the same functions.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/pgo DIST=$work PTC_RUSTFLAGS="-Cprofile-generate=$work/counts" \
  packaging/build.sh "$target" >/dev/null
tar --directory "$work" --extract --strip-components 1 --file "$work"/ptc-*-"$target".tar.gz
python3 packaging/typical_work.py "$work/ptc"
"$tools/llvm-profdata" merge --output "$out/$target.profdata" "$work/counts"
echo "$out/$target.profdata"
