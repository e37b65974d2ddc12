#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of folding over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/fold_fuzz" "$(dirname "$0")"/corpus/fold/*
