# SPDX-License-Identifier: MIT
"""Files as xheap push writes them into a directory, of hosts that there are not."""
import gzip
import math
import pathlib

MINUTE = 60 * 10 ** 9
EPOCH = 1_800_000_000 * 10 ** 9
FIGURES = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")


def varint(number):
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def text(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field, values):
    return text(field, b"".join(map(varint, values))) if values else b""


class Stacks:
    """The stacks of a program, each a tuple of frames "image!function" from inside out: all that a profile has but the numbers, made once."""

    def __init__(self, stacks):
        self.strings, self.out, functions, places, images, self.keys = {"": 0}, [], {}, {}, {}, []
        for name in (*FIGURES, "count", "bytes", "space"):
            self.string(name)
        for stack in stacks:
            self.keys.append([])
            for frame in stack:
                image, _, function = frame.rpartition("!")
                if image and image not in images:
                    images[image] = len(images) + 1
                    self.out.append(text(3, number(1, images[image]) + number(5, self.string("/usr/lib/" + image))))
                if function not in functions:
                    functions[function] = len(functions) + 1
                    self.out.append(text(5, number(1, functions[function]) + number(2, self.string(function))))
                if frame not in places:
                    places[frame] = len(places) + 1
                    self.out.append(text(4, number(1, places[frame]) + number(2, images.get(image, 0)) + text(4, number(1, functions[function]))))
                self.keys[-1].append(places[frame])
        self.keys = [packed(1, key) for key in self.keys]
        self.body = b"".join(self.out)
        self.tables = len(self.strings)

    def string(self, name):
        return self.strings.setdefault(name, len(self.strings))

    def profile(self, labels, values, start=EPOCH, duration=0, period=1):
        """A profile; values: four numbers for each stack, or None."""
        strings, extra = list(self.strings), [f"{key}={value}" for key, value in labels.items()]
        base = len(strings)
        head = b"".join(text(1, number(1, self.strings[name]) + number(2, self.strings["bytes" if "space" in name else "count"])) for name in FIGURES)
        head += number(9, start) + number(10, duration) + number(12, period) + varint(13 << 3) + varint(0)
        head += b"".join(number(13, base + i) for i in range(len(extra)))
        samples = b"".join(text(2, key + packed(2, value)) for key, value in zip(self.keys, values) if value and any(value))
        return head + b"".join(text(6, name.encode()) for name in strings + extra) + self.body + samples


def write(path, stacks, values, service="web", version="1", host="h1", session="s", start=EPOCH, index=0, since=None, until=None, period=1, labels=None, level=1):
    """Write push number `index` of a session that pushes each minute, as xheap does."""
    since = start + index * MINUTE if since is None else since
    until = since + MINUTE if until is None else until
    known = {"service.name": service, "service.version": version, "host.name": host, "service.instance.id": f"{host}/{session}",
             "xheap.session.start": start, "xheap.push.time": until, "xheap.push.number": index} | (labels or {})
    path = pathlib.Path(path)
    path = path / f"{service}.{host}.{session}.{until // 10 ** 9}.{index}.pb.gz".replace("/", "_") if path.is_dir() else path
    path.write_bytes(gzip.compress(stacks.profile(known, values, since, until - since, period), level, mtime=0))
    return path


def poisson(random, mean):
    """How often something happens that is expected so often."""
    if mean > 50:
        return max(0, round(random.gauss(mean, math.sqrt(mean))))
    count, product, limit = 0, random.random(), math.exp(-mean)
    while product > limit:
        count += 1
        product *= random.random()
    return count


def sampled(random, size, count, period):
    """What a sample says of `count` blocks of this size: estimated blocks and bytes."""
    chance = 1 - math.exp(-size / period)
    chosen = poisson(random, count * chance)
    return round(chosen / chance), round(chosen * size / chance)
