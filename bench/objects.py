# SPDX-License-Identifier: MIT
"""Workload: objects, dictionaries and strings that come and go, as a program in Python makes them."""
import sys


class Order:
    def __init__(self, number, customer):
        self.number = number
        self.customer = customer
        self.lines = [("article-%d" % (number % 97), number * 7 % 13), ("shipping", 1)]

    def total(self):
        return sum(amount for _, amount in self.lines)


def orders_make(count):
    return [Order(number, "customer %d" % (number * 31 % 1000)) for number in range(count)]


def orders_group(orders):
    groups = {}
    for order in orders:
        groups.setdefault(order.customer, []).append(order)
    return {name: sum(order.total() for order in group) for name, group in groups.items()}


def text_work(count):
    words = {}
    for number in range(count):
        line = "%d,%s,%s" % (number, hex(number * 2654435761), "x" * (number % 40))
        key = "-".join(part[:5] for part in line.split(","))
        words[key] = words.get(key, 0) + len(line)
    return sum(words.values())


def rounds_run(rounds):
    return sum(sum(orders_group(orders_make(20000)).values()) + text_work(20000) for _ in range(rounds))


rounds, thread_count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
if thread_count == 1:
    checksum = rounds_run(rounds)
else:
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(thread_count) as pool:
        checksum = sum(pool.map(rounds_run, [rounds // thread_count] * thread_count))
print(checksum)
