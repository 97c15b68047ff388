#!/usr/bin/env bash
# Installs pinned MCP servers and clients that we did not write into target/third_party/, for the tests.
#
# Needs Node (18 or later), npm and Python 3.10 or later; reaches only the npm and PyPI registries. Safe to
# run again: a finished install is recognised by the checksum of its pins and takes no time.
# PTC_THIRD_PARTY_DIR overrides the directory.
set -euo pipefail

pins="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$pins/../.." && pwd)"
target="${PTC_THIRD_PARTY_DIR:-$root/target/third_party}"
stamp="$target/installed"

say() { echo "third_party: $*" >&2; }
die() { say "$*"; exit 1; }

wanted="$(cat "$pins/package-lock.json" "$pins/requirements.txt" "$pins/requirements-sqlite.txt" "$pins/requirements-langchain.txt" "$pins/agentdojo/requirements-agentdojo.txt" "$pins/install.sh" | cksum)"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
  exit 0
fi

for tool in node npm python3; do
  command -v "$tool" >/dev/null || die "$tool is needed to install the third-party servers"
done
mkdir -p "$target"
# A half-finished install must not pass for a whole one.
rm -f "$stamp"

# A registry may drop a connection: the installs can be repeated.
retry() {
  local try
  for try in 1 2 3; do
    "$@" && return 0
    say "attempt $try failed: $1 ${2:-}"
  done
  return 1
}

say "npm packages"
cp "$pins/package.json" "$pins/package-lock.json" "$target/"
retry npm ci --prefix "$target" --no-audit --no-fund --ignore-scripts --loglevel=error >&2 \
  || die "npm packages could not be installed"

# A virtual environment with these packages; more arguments are for pip.
environment() {
  local folder="$1" requirements="$2"
  shift 2
  rm -rf "$folder"
  python3 -m venv "$folder" || die "python3 -m venv failed (on Debian: apt-get install python3-venv)"
  retry "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@" -r "$requirements" >&2 \
    || die "the packages of $(basename "$requirements") could not be installed"
}

say "Python packages"
environment "$target/venv" "$pins/requirements.txt"
environment "$target/venv-sqlite" "$pins/requirements-sqlite.txt"
environment "$target/venv-langchain" "$pins/requirements-langchain.txt"
environment "$target/venv-agentdojo" "$pins/agentdojo/requirements-agentdojo.txt" --no-deps

echo "$wanted" >"$stamp"
say "installed in $target"
