# SPDX-License-Identifier: MIT
"$BUILD/tests/golden/make_trace" plain plain.xht
"$XHEAP" heap plain.xht -stacks sp -frames --image src -totals --format json
