# SPDX-License-Identifier: MIT
"$BUILD/tests/golden/make_trace" plain plain.xht
"$BUILD/tests/golden/make_trace" forks forks.xht
"$XHEAP" heap plain.xht -stacks st -format folded
"$XHEAP" heap plain.xht -format folded -reverse -defaultCull
"$XHEAP" heap plain.xht -stacks stc -format folded -by size -size 1 4K
"$XHEAP" heap forks.xht -stacks st -format folded -by process -cullFrames libc!
"$XHEAP" diff plain.xht forks.xht -stacks st -format folded
