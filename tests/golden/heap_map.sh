# SPDX-License-Identifier: MIT
"$BUILD/tests/golden/make_trace" random r1.xht 1 2000
"$XHEAP" heap r1.xht -map -at 30us
"$XHEAP" heap r1.xht -map -at 30us -size 500 max -top 2
"$XHEAP" heap "$SOURCE/tests/golden/traces/c.xht" -map -noIndex | tail -n +2
"$XHEAP" heap "$SOURCE/tests/golden/traces/c.xht" -map -noIndex -format csv
"$XHEAP" heap r1.xht -map -at 30us -size 500 max -top 2 -format json
"$XHEAP" heap r1.xht -map -at 1.3us | sed -n '/^Pages/,$p'
"$XHEAP" heap r1.xht -map -at 1.3us -top 2 -format json | sed -n '/keepers/,/run_count/p'
