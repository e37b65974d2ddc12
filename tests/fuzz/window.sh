#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of words of diff over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/window_fuzz" "$(dirname "$0")"/corpus/window/*
