#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of tables of mounts over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/mounts_fuzz" "$(dirname "$0")"/corpus/mounts/*
