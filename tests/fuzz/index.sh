#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of indexes over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/index_fuzz" "$(dirname "$0")"/corpus/index/*
