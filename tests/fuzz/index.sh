#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of indexes over its corpus, cut and damaged.
exec timeout $((100 * ${SLOWNESS:-1})) "$BUILD/tests/fuzz/index_fuzz" "$(dirname "$0")"/corpus/index/*
