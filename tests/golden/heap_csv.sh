# SPDX-License-Identifier: MIT
"$BUILD/tests/golden/make_trace" plain plain.xht
for what in -stacks -frames -image -totals; do
	"$XHEAP" heap plain.xht $what --format csv
done
