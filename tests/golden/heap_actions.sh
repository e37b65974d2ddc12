# SPDX-License-Identifier: MIT
"$BUILD/tests/golden/make_trace" plain plain.xht
"$BUILD/tests/golden/make_trace" forks forks.xht
"$XHEAP" heap plain.xht -tree st -callers app+0x2000 -heaps -chains
"$XHEAP" heap plain.xht -frames -inclusive st -by size -size 1 1K -noDefaultCull
"$XHEAP" heap forks.xht -image -by process -frames -by process
"$XHEAP" heap plain.xht -chains -format csv
"$XHEAP" heap plain.xht -tree st -callers app+0x2000 -heaps -chains -window aifo 0 1s -closed -format json
"$XHEAP" heap -i plain.xht -a heap -symbols -quiet -tle -stacks -s st -window aifi 0 1s -lifetime 0 00:00:01 -totals
"$XHEAP" heap plain.xht -requireFrames nothing! app+0x4000 -totals 2>&1
"$XHEAP" dump plain.xht -allocations
