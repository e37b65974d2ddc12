#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of perf maps, jitdumps and lists for debuggers over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/jit_fuzz" "$(dirname "$0")"/corpus/jit/*
