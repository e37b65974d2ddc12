#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of command lines over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/words_fuzz" "$(dirname "$0")"/corpus/words/*
