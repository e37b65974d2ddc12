#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of traces over its corpus, cut and damaged.
exec timeout $((100 * ${SLOWNESS:-1})) "$BUILD/tests/fuzz/trace_fuzz" "$(dirname "$0")"/corpus/trace/*
