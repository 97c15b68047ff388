#!/usr/bin/env bash
# zig as the C compiler of build scripts. They pass names of targets as Rust writes them; zig has its own.
arguments=()
for argument in "$@"; do
  case $argument in --target=*) ;; *) arguments+=("$argument") ;; esac
done
zig=(zig)
command -v zig >/dev/null || zig=(python3 -m ziglang)
exec "${zig[@]}" cc -target "$ZIG_TARGET" "${arguments[@]}"
