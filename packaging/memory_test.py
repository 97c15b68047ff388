#!/usr/bin/env python3
"""Compares `memory.c` with the functions of this machine: every length to 300, overlapping in every way.

usage: memory_test.py LIBRARY, built with `cc -shared -fPIC -O2 -fno-builtin -Dmemcpy=new_memcpy …`
"""

import ctypes
import random
import sys

library = ctypes.CDLL(sys.argv[1])
new_memmove, new_memcpy, new_memcmp = library.new_memmove, library.new_memcpy, library.new_memcmp
for function in (new_memmove, new_memcpy):
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
new_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]

SIZE = 1024
chance = random.Random(1)
text = bytes(chance.randrange(256) for _ in range(SIZE))
buffer = ctypes.create_string_buffer(SIZE)
base = ctypes.addressof(buffer)
for length in range(301):
    # Distances around every border, in both directions.
    near = {0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, length // 2, length, length + 1}
    for distance in sorted(near | {-one for one in near}):
        source, target = 340, 340 + distance
        buffer.raw = text
        moved = new_memmove if abs(distance) < length else new_memcpy
        assert moved(base + target, base + source, length) == base + target
        expected = text[:target] + text[source : source + length] + text[target + length :]
        assert buffer.raw == expected, ("move", length, distance)


def sign(number):
    return (number > 0) - (number < 0)


other = ctypes.create_string_buffer(SIZE)
for length in range(301):
    buffer.raw = other.raw = text
    assert new_memcmp(base + 5, ctypes.addressof(other) + 5, length) == 0
    for at in {0, 1, 7, 8, 15, 16, 17, length // 2, length - 2, length - 1, length}:
        if 0 <= at <= length:
            changed = bytearray(text)
            changed[5 + at] ^= chance.randrange(1, 256)
            other.raw = bytes(changed)
            left, right = text[5 : 5 + length], bytes(changed[5 : 5 + length])
            found = sign(new_memcmp(base + 5, ctypes.addressof(other) + 5, length))
            assert found == (left > right) - (left < right), ("compare", length, at)
print("equal")
