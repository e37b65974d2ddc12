# SPDX-License-Identifier: MIT
# Threads that leave the interpreter's lock while they allocate.
import concurrent.futures
import zlib


def work(number):
    return sum(len(zlib.compress(bytes([number % 7]) * (1000 + i))) for i in range(60))


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(work, range(40))))
