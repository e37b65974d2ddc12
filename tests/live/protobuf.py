# SPDX-License-Identifier: MIT
"""Messages of protocol buffers, as far as tests read what xheap writes."""
import collections

from live import expect


def fields(data):
    """A message of protocol buffers: (field, number or bytes)."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        elif key & 7 == 1:
            yield key >> 3, int.from_bytes(data[at:at + 8], "little")
            at += 8
        else:
            expect(key & 7 == 2, f"type {key & 7} of a field")
            size = number()
            yield key >> 3, data[at:at + size]
            at += size
    expect(at == len(data), "a message is cut")


def many(data):
    """A message whose fields may be there several times."""
    message = collections.defaultdict(list)
    for field, value in fields(data):
        message[field].append(value)
    return message


def numbers(data):
    return [value for _, value in fields(b"".join(b"\x00" + digit for digit in digits(data)))]


def digits(data):
    begin = 0
    for i, byte in enumerate(data):
        if byte < 128:
            yield data[begin:i + 1]
            begin = i + 1
