#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of regions over its corpus, cut and damaged.
exec timeout $((100 * ${SLOWNESS:-1})) "$BUILD/tests/fuzz/region_fuzz" "$(dirname "$0")"/corpus/region/*
