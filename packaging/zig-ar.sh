#!/usr/bin/env bash
# zig as the archiver of build scripts.
zig=(zig)
command -v zig >/dev/null || zig=(python3 -m ziglang)
exec "${zig[@]}" ar "$@"
