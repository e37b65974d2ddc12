# SPDX-License-Identifier: MIT
# The questions that people ask first, as they write them first.
ask() {
	echo "> $*"
	"$XHEAP" dx "$@" 2>&1
	status=$?
	[ $status = 0 ] || echo "status $status"
}
cp "$SOURCE/tests/golden/traces/libstdcxx.xht" server.xht
"$BUILD/tests/golden/make_trace" plain plain.xht
# What is done most.
ask plain.xht -g '@$cursession.TTD.Data.Heap().GroupBy(h => h.Action).Select(g => new { g.Key, Count = g.Count() }).OrderByDescending(x => x.Count),d'
ask plain.xht '@$cursession.TTD.Data.Heap().GroupBy(h => h.Action).Last().Key'
ask plain.xht '@$cursession.TTD.Data.Heap().GroupBy(h => h.Action).Select(g => g.Kay)'
# What is live at 4 us, and at half time.
ask plain.xht '@$cursession.TTD.Data.Live("4us").Count(),d'
ask plain.xht '@$cursession.TTD.Data.Live(50).Sum(b => b.Size),d'
ask plain.xht '@$cursession.TTD.Data.Live("9s").Count() == @$cursession.TTD.Data.Live(100).Count()'
ask plain.xht -g '@$cursession.TTD.Data.Growth(25, "50%").Select(s => new { s.Count, s.Bytes }),d'
ask plain.xht -r1 '@$cursession.TTD.SetPosition("2us")'
