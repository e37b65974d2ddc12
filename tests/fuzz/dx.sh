#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of queries over its corpus, cut and damaged, and over queries made from a grammar.
exec "$BUILD/tests/fuzz/dx_fuzz" "$(dirname "$0")"/corpus/dx/*
