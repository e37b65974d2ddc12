# SPDX-License-Identifier: MIT
export LC_ALL=C
"$BUILD/tests/golden/make_trace" plain plain.xht
"$BUILD/tests/golden/make_trace" losses losses.xht
"$XHEAP" report plain.xht
"$XHEAP" report losses.xht
