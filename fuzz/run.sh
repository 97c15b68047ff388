#!/usr/bin/env bash
# Fuzzes one target from the seeds:   fuzz/run.sh <target> [seconds]
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
  -dict="$dictionary" -max_total_time="$seconds" -max_len=1024 -timeout=20 -rss_limit_mb=2048 \
  -print_final_stats=1 2>&1 | tee "logs/$target.log"
