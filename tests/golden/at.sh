# SPDX-License-Identifier: MIT
trace=$SOURCE/tests/golden/traces/c.xht
cp "$trace" c.xht
"$XHEAP" heap c.xht -at 5.3ms -stacks -top 2
"$XHEAP" heap c.xht -at 5036A0:0 -totals -format json
"$XHEAP" report c.xht -at 5.3ms | head -12
"$XHEAP" dump c.xht -allocations -at 5.3ms -size 400 max
"$XHEAP" heap c.xht -totals -at FFFFFFFFFFFFFFFE:0 | tail -6
"$XHEAP" dump c.xht -range 4E535C:0 0x502000:0 | wc -l
# The model: blocks that dump has, born by then and not freed.
"$XHEAP" dump c.xht -allocations -format csv >all.csv
for at in 0 5050000 5100000 5200000 5300000 5430000; do
	awk -F, -v at=$at 'NR > 1 && $8 <= at && ($9 == "" || $9 > at) { count++; bytes += $7 } END { print "awk:", count + 0, bytes + 0 }' all.csv
	"$XHEAP" heap c.xht -at ${at}ns -totals -format json | awk -F'[:,]' '/"outstanding_(count|bytes)"/ { print $1, $2 }'
done
# At its allocation and at its free a block is live, and not before the one and behind the other.
awk -F, '$10 == "free" && ++n == 40 { print $1, $8, $9 }' all.csv | while read -r id birth end; do
	for at in $(printf '%X:0 %X:1 %X:1 %X:2' "$birth" "$birth" "$end" "$end"); do
		echo "$at: $("$XHEAP" dump c.xht -allocations -at "$at" -format csv | grep -c "^$id,")"
	done
done
