# SPDX-License-Identifier: MIT
"""Damages what a walk over its own frames reads, word by word, and takes a block of memory meanwhile: 1,000,000 bytes and the number of the damage.

usage: python_damaged.py LIBRARY COUNT"""
import ctypes
import mmap
import random
import sys

# Offsets, by minor version: of the frame in the thread's state, or in what the state points to; in a frame: the caller's one, the code, the instruction, the mark; in a code object: file,
# name, lines, first line.
OFFSETS = {8: ((24,), (24, 32, 104, 0), (104, 112, 120, 40)), 9: ((24,), (24, 32, 104, 0), (104, 112, 120, 40)), 10: ((24,), (24, 32, 96, 0), (104, 112, 120, 40)),
           11: ((56, 8), (48, 32, 56, 68), (112, 128, 136, 72)), 12: ((56, 0), (8, 0, 56, 70), (112, 128, 136, 68)), 13: ((72,), (8, 0, 56, 70), (112, 128, 136, 68)),
           14: ((72,), (8, 0, 56, 74), (112, 128, 136, 68))}
THREAD_ID = {8: 176, 9: 176, 10: 176, 11: 152, 12: 136, 13: 152, 14: 152}
FIRST_SIZE, NO_ACCESS = 1000000, 0
STATE, FRAME, CODE = OFFSETS[sys.version_info[1]]

with_lock, without_lock = ctypes.PyDLL(sys.argv[1]).take_while, ctypes.CDLL(sys.argv[1]).take_while
for take in (with_lock, without_lock):
    take.argtypes, take.restype = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t], None
ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
state = ctypes.pythonapi.PyThreadState_Get()
map_memory = ctypes.CDLL(None).mmap
map_memory.argtypes, map_memory.restype = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long], ctypes.c_void_p
gone_address = map_memory(None, 1 << 20, NO_ACCESS, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
bytes_of = ctypes.create_string_buffer(random.Random(2).randbytes(4096) if hasattr(random, "randbytes") else bytes(range(256)) * 16)


def word(address):
    return ctypes.c_uint64.from_address(address).value


def innermost():
    """The address of the word that names the innermost frame: of the caller, while it makes a call of C."""
    return state + STATE[0] if len(STATE) == 1 else word(state + STATE[0]) + STATE[1]


def frames():
    found, frame = [], word(innermost())
    while frame and len(found) < 5:
        found.append(frame)
        frame = word(frame + FRAME[0])
    return found


def values(frame, dice):
    return [0, 1, 8, 4095, 4096, frame + 1, frame, gone_address, gone_address + (1 << 20) - 8, ctypes.addressof(bytes_of), ctypes.addressof(bytes_of) + 4092, 1 << 47, (1 << 47) - 8,
            1 << 63, (1 << 64) - 8, (1 << 64) - 1, 0xdeadbeefdeadbee8, dice.randrange(1 << 64), dice.randrange(1 << 46) & ~7]


def places(dice):
    """Words to damage, and the frame that they are of."""
    # Those of frames() and of this function are gone meanwhile.
    frame = dice.choice(frames()[2:])
    code = word(frame + FRAME[1]) & ~3
    place = dice.choice([innermost(), state + STATE[0], state + THREAD_ID[sys.version_info[1]]] + [frame + offset & ~7 for offset in FRAME] + [code + offset & ~7 for offset in CODE] + [code + 8])
    return place, frame


def main():
    dice = random.Random(1)
    for i in range(int(sys.argv[2])):
        # A code object of its own each time: names are read at first sight.
        names = {"take": dice.choice([with_lock, without_lock]), "places": places, "values": values, "dice": dice, "size": FIRST_SIZE + i}
        exec(compile("def step():\n    place, frame = places(dice)\n    value = dice.choice(values(frame, dice))\n    take(place, value, size)\nstep()", f"<damaged {i}>", "exec"), names)


main()
