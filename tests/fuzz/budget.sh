#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzer of budgets over its corpus, cut and damaged.
exec "$BUILD/tests/fuzz/budget_fuzz" "$(dirname "$0")"/corpus/budget/*
