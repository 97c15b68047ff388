#!/usr/bin/env bash
# Installs eighteen pinned MCP servers that we did not write into target/third_party_eighteen/, for the test of that
# name. Needs Node 20 or later, npm and Python 3.11 or later; reaches only the npm and PyPI registries; half a gigabyte.
set -euo pipefail
pins="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
target="$(cd "$pins/../../.." && pwd)/target/third_party_eighteen"
mkdir -p "$target"
rm -f "$target/installed"
cp "$pins/package.json" "$pins/package-lock.json" "$target/"
npm ci --prefix "$target" --no-audit --no-fund --ignore-scripts --loglevel=error
# One environment each: their libraries do not fit together.
for list in "$pins"/requirements-*.txt; do
  name="$(basename "$list" .txt)"
  name="${name#requirements-}"
  rm -rf "${target:?}/$name"
  python3 -m venv "$target/$name"
  "$target/$name/bin/python" -m pip install --quiet --disable-pip-version-check --no-input -r "$list"
done
touch "$target/installed"
