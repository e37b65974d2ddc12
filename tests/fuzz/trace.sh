#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of traces over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/trace_fuzz" "$(dirname "$0")"/corpus/trace/*
