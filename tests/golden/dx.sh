# SPDX-License-Identifier: MIT
# The two commands of the specification, as they are printed there; then methods, specifiers and formats over a trace whose events are known.
"$BUILD/tests/golden/make_trace" plain plain.xht
ask() {
	echo "> $*"
	"$XHEAP" dx plain.xht "$@" 2>&1
	status=$?
	[ $status = 0 ] || echo "status $status"
}
ask '0:0:000> dx -g @$cursession.TTD.Data.Heap()'
ask 'dx -r1 @$cursession.TTD.Data.Heap()[2].@"Parameters"'
ask '@$cursession.TTD.Data.Heap()[1]'
ask -extra '@$cursession.TTD.Data.Heap()[3]'
ask -g '@$cursession.TTD.Data.Heap().Where(h => h.Size > 100).OrderByDescending(h => h.Size).Select(h => new { Size = h.Size, At = h.TimeEnd }),d'
ask -r2 '@$cursession.TTD.Data.Heap().GroupBy(h => h.Action).Select(g => new { Action = g.First().Action, Count = g.Count(), Bytes = g.Sum(h => h.Size) }).OrderByDescending(p => p.Count),d'
ask '@$cursession.TTD.Data.Heap().Count(),d'
ask '@$cursession.TTD.Data.Heap().First(h => h.Action == "Free").Address'
ask -format csv '@$cursession.TTD.Data.Heap().Where(h => h.Action == "ReAlloc")'
ask -format json '@$cursession.TTD.Data.Heap().Take(2)'
ask -c 10 '@$cursession.TTD.Data.Heap(),1'
ask '@$cursession.TTD.Data.Heap()[99]'
