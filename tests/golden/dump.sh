# SPDX-License-Identifier: MIT
"$BUILD/tests/golden/make_trace" plain plain.xht
"$BUILD/tests/golden/make_trace" forks forks.xht
"$XHEAP" dump plain.xht
"$XHEAP" dump plain.xht --format csv
"$XHEAP" dump plain.xht --events --format json -range 2.5 6us
"$XHEAP" dump forks.xht --stacks --format csv
"$XHEAP" dump forks.xht --images
"$XHEAP" dump forks.xht --processes --format json
"$BUILD/tests/golden/make_trace" resident resident.xht
"$XHEAP" dump resident.xht -memory -format csv
"$XHEAP" dump resident.xht -memory -format json
"$XHEAP" dump resident.xht -mappings
"$XHEAP" info resident.xht -format json
"$XHEAP" info resident.xht -width 120
"$XHEAP" info resident.xht -width 80
