# SPDX-License-Identifier: MIT
"$BUILD/tests/golden/make_trace" plain plain.xht
"$XHEAP" heap plain.xht
"$XHEAP" heap plain.xht -FRAMES st --image -stc -top=2
"$XHEAP" heap plain.xht -totals -range 2 5us
