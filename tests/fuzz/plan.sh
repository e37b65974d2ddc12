#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of plans over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/plan_fuzz" "$(dirname "$0")"/corpus/plan/*
