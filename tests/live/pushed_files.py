# SPDX-License-Identifier: MIT
"""What xheap push writes into a directory, or sends to ClickHouse, of hosts that there are not."""
import gzip
import hashlib
import math
import pathlib
import struct

MINUTE = 60 * 10 ** 9
EPOCH = 1_800_000_000 * 10 ** 9
# Makes 2,000 blocks of two kinds at each line of its input, and frees nine of ten of the second kind.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) void *kept(void) { return malloc(3000); }
__attribute__((noinline)) void *dropped(void) { return malloc(700); }
int main(void)
{
	static void *volatile all[1 << 16];
	int count = 0;
	char line[16];
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < 2000; i++) {
			all[count++] = kept();
			void *volatile block = dropped();
			if (i % 10)
				free(block);
		}
		puts("done");
		fflush(stdout);
	}
}
"""
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
        self.stacks = list(stacks)
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


def identity(frames):
    """A number for a stack or a function, the same on all hosts."""
    return int.from_bytes(hashlib.blake2b(";".join(frames).encode(), digest_size=8).digest(), "little")


def variance(size, count, period):
    """Of `size` bytes in `count` blocks, which are a sample."""
    if period <= 1 or not count:
        return 0.0
    chance = -math.expm1(-size / count / period)
    return size * (size / count) * (1 - chance) / chance


class Rows:
    """The pushes of a session to ClickHouse, each a row of RowBinary."""

    def __init__(self, stacks, service="web", version="1", host="h1", session="s", start=EPOCH, period=1):
        self.stacks, self.start, self.period = stacks, start, period
        self.head = b"".join(map(self.text, (host, session, service, version)))
        self.ids = [(identity(stack), identity(stack[:1])) for stack in stacks.stacks]
        self.session = identity((service, host, session, str(start)))
        self.labels = [("service.name", service), ("service.version", version), ("host.name", host)]
        self.known, self.named, self.whole = {}, set(), 0

    @staticmethod
    def text(text):
        return varint(len(text.encode())) + text.encode()

    @staticmethod
    def array(items, form):
        return varint(len(items)) + struct.pack(f"<{len(items)}{form}", *items)

    def texts(self, lists):
        return varint(len(lists)) + b"".join(varint(len(texts)) + b"".join(map(self.text, texts)) for texts in lists)

    def push(self, values, index=0, since=None, until=None, is_whole=None):
        """Push number `index`: the stacks that have changed. Without is_whole the first one is whole."""
        since = self.start + index * MINUTE if since is None else since
        until = since + MINUTE if until is None else until
        if index == 0 if is_whole is None else is_whole:
            self.whole, self.known = index, {}
        now = {i: (value[3], value[2], variance(value[3], value[2], self.period)) for i, value in enumerate(values) if value}
        rows = []
        for i, value in enumerate(values):
            before, after = self.known.get(i, (0, 0, 0.0)), now.get(i, (0, 0, 0.0))
            made = value[:2] if value else (0, 0)
            if before != after or any(made):
                rows.append((*self.ids[i], after[0] - before[0], after[1] - before[1], after[2] - before[2], (after[0] > 0) - (before[0] > 0), made[1], made[0]))
        unnamed = {row[0] for row in rows} - self.named
        new = [i for i in range(len(values)) if self.ids[i][0] in unnamed]
        self.named |= {self.ids[i][0] for i in new}
        self.known = {i: state for i, state in now.items() if any(state)}
        state = list(self.known.values())
        head = self.head + struct.pack("<QIIQQQQQQd", self.session, self.whole, index, self.start, since, until, 0 if self.period <= 1 else self.period,
                                       sum(one[0] for one in state), sum(one[1] for one in state), sum(one[2] for one in state))
        head += b"".join(varint(len(self.labels)) + b"".join(self.text(label[i]) for label in self.labels) for i in range(2))
        columns = list(zip(*rows)) or [[]] * 8
        body = b"".join(self.array(column, form) for column, form in zip(columns, "QQqqdbQQ"))
        names = [[frame.rpartition("!") for frame in self.stacks.stacks[i]] for i in new]
        return head + body + self.array([self.ids[i][0] for i in new], "Q") + self.texts([[name for _, _, name in one] for one in names]) + \
            self.texts([["/usr/lib/" + image if image else "" for image, _, _ in one] for one in names])


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
