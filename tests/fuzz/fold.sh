#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of folding over its corpus, cut and damaged.
exec timeout $((100 * ${SLOWNESS:-1})) "$BUILD/tests/fuzz/fold_fuzz" "$(dirname "$0")"/corpus/fold/*
