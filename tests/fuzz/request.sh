#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of requests of xheap view over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/request_fuzz" "$(dirname "$0")"/corpus/request/*
