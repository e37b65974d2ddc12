#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of unwind tables over its corpus, cut and damaged.
exec timeout $((60 * ${SLOWNESS:-1})) "$BUILD/tests/fuzz/rows_fuzz" "$(dirname "$0")"/corpus/rows/*
