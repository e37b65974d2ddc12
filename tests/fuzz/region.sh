#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of regions over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/region_fuzz" "$(dirname "$0")"/corpus/region/*
