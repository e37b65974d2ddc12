# SPDX-License-Identifier: MIT
"""Python that needs about 300 MiB: an index of many small objects, beside a block that is large."""
index = {f"key number {number}": [number, str(number)] for number in range(1_000_000)}
block = bytearray(60 << 20)
print(len(index), len(block))
