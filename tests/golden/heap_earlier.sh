# SPDX-License-Identifier: MIT
"$BUILD/tests/golden/make_trace" earlier earlier.xht
"$XHEAP" heap earlier.xht -stacks
"$XHEAP" heap earlier.xht -totals -image -by thread
"$XHEAP" heap earlier.xht -totals --format json
"$XHEAP" dump earlier.xht -events
"$XHEAP" dump earlier.xht -allocations
"$XHEAP" info earlier.xht | grep -v "^  size"
"$XHEAP" info earlier.xht --format json | grep -v size_bytes
