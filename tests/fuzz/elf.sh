#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of executables over its corpus, cut and damaged, for a second or two.
exec "$BUILD/tests/fuzz/elf_fuzz" "$(dirname "$0")"/corpus/elf/*
