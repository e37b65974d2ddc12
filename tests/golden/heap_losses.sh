# SPDX-License-Identifier: MIT
"$BUILD/tests/golden/make_trace" losses losses.xht
"$XHEAP" heap losses.xht -image
"$XHEAP" heap losses.xht -totals --format json
