#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of pushed profiles over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/fleet_fuzz" "$(dirname "$0")"/corpus/fleet/*
