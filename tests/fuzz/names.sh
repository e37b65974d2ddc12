#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of names over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/names_fuzz" "$(dirname "$0")"/corpus/names/*
