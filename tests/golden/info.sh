# SPDX-License-Identifier: MIT
export TZ=UTC
"$BUILD/tests/golden/make_trace" plain plain.xht
"$BUILD/tests/golden/make_trace" forks forks.xht
"$XHEAP" info plain.xht | grep -v '^  size'
"$XHEAP" info --format json forks.xht | grep -v size_bytes
