# SPDX-License-Identifier: MIT
# Older traces have the same answers (tests/older/check says how that is compared).
exec "$(dirname "$0")/../older/check"
