#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of unwind tables over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/rows_fuzz" "$(dirname "$0")"/corpus/rows/*
