#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of perf maps and jitdumps over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/jit_fuzz" "$(dirname "$0")"/corpus/jit/*
