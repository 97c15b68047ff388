#!/usr/bin/env bash
# Fuzzes one target from the seeds:   fuzz/run.sh <target> [seconds]
# An input that takes two seconds of processor time, 64 MB at once or 1 GB in all counts as a finding, like a
# panic.
# Needs the nightly tool chain and `cargo install cargo-fuzz --locked`. The log is logs/<target>.log.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$1" seconds="${2:-1260}"

./seeds.py expand
case "$target" in
  json_decode) dictionary=json.dict ;;
  regex_translate) dictionary=regex.dict ;;
  *) dictionary=ptc.dict ;;
esac
mkdir -p logs
cargo +nightly fuzz run --fuzz-dir . "$target" -- \
  -dict="$dictionary" -max_total_time="$seconds" -max_len=1024 -timeout=20 -rss_limit_mb=1024 -malloc_limit_mb=64 \
  -print_final_stats=1 2>&1 | tee "logs/$target.log"
