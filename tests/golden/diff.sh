# SPDX-License-Identifier: MIT
"$BUILD/tests/golden/make_trace" plain plain.xht
"$BUILD/tests/golden/make_trace" losses losses.xht
for seed in 1 2 3 4; do
	"$BUILD/tests/golden/make_trace" random r$seed.xht $seed 2000
done
"$BUILD/tests/golden/make_trace" random longer.xht 5 3000
"$XHEAP" diff plain.xht plain.xht
"$XHEAP" diff plain.xht losses.xht -image st -tree st
"$XHEAP" diff r1.xht r2.xht -top 3 -frames sp -top 3
"$XHEAP" diff r1.xht@..30us r1.xht@30us.. -totals -frames st -top 3 -size 100 1K
"$XHEAP" diff r1.xht@=20us r1.xht@=40us -frames so -top 4
"$XHEAP" diff r1.xht@=4E20:1 r1.xht@=FFFFFFFFFFFFFFFE:0 -totals -format json
"$XHEAP" diff r1.xht r2.xht -- r3.xht longer.xht -frames stc -top 6 -normalise count
"$XHEAP" diff r1.xht r2.xht -- longer.xht -image st -format csv
"$XHEAP" diff r1.xht longer.xht -totals stc -fail-above 20% -format csv 2>&1; echo "status $?"
"$XHEAP" diff r1.xht longer.xht -image stc -fail-above 1K 2>&1; echo "status $?"
"$XHEAP" diff r1.xht longer.xht -totals st -fail-above 100% -fail-frames app+0x3006 2>&1; echo "status $?"
"$XHEAP" diff plain.xht losses.xht -callers app+0x2000 -format json
"$XHEAP" diff r1.xht -- r2.xht r3.xht -image -format json
# Freed blocks are never outstanding: other numbers changed.
"$XHEAP" diff r1.xht r2.xht -closed -image
