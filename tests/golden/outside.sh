# SPDX-License-Identifier: MIT
# Times that lie outside of the trace: every format says so. A range that touches the trace is none of them.
"$BUILD/tests/golden/make_trace" plain outside.xht
ask() {
	printf '\n$ xheap'
	printf ' %s' "$@"
	echo
	"$XHEAP" "$@" 2>&1
}
ask heap outside.xht -range 10s 20s -totals | head -5
ask heap outside.xht -window AIFO 10s 20s -totals | head -5
ask heap outside.xht -at 10s -totals | head -5
ask heap outside.xht -range 2000/01/01:00:00:00 2000/01/01:00:00:01 -totals | head -5
ask report outside.xht -range 10s 20s | head -9
ask diff outside.xht@10s..20s outside.xht -totals | head -8
ask heap outside.xht -range 10s 20s -stacks -format csv | head -3
ask heap outside.xht -range 10s 20s -stacks -format folded
ask dump outside.xht -range 10s 20s
ask heap outside.xht -range 10s 20s -window AIFO 10s 20s -totals -format json | grep -A 3 outside\"
ask report outside.xht -range 10s 20s -format json | grep -A 2 outside\"
ask heap outside.xht -range 0 20s -totals | head -5
