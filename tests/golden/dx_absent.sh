# SPDX-License-Identifier: MIT
# What an object lacks is absent, with one meaning everywhere; plans and the interpreter agree.
"$BUILD/tests/golden/make_trace" plain plain.xht
heap='@$cursession.TTD.Data.Heap()'
ask() {
	echo "> $*"
	"$XHEAP" dx plain.xht "$@" >planned 2>&1
	status=$?
	cat planned
	[ $status = 0 ] || echo "status $status"
	"$XHEAP" dx plain.xht -noPlan "$@" 2>&1 | cmp - planned
}
# Printed where a value is asked for; not where an object lacks the member; left empty in grids.
ask "$heap[5].Size"
ask "$heap.First(h => h.Action == \"Free\")"
ask "$heap.Select(h => h.Size),d,6"
ask -g "$heap.Select(h => new { h.Action, h.Size }),d,6"
ask "$heap.Take(6).Select(h => new { h.Action, h.Size }).Last()"
ask -format csv "$heap.Select(h => h.Size),d,6"
ask -format json "$heap.Select(h => h.Size).Skip(5).Take(1)"
# Sets and sums leave it out; it is a group of its own, the last one; it is sorted last both ways.
ask "$heap.Select(h => h.Size).Distinct().Count() == $heap.Where(h => h.Size != null).Select(h => h.Size).Distinct().Count()"
ask "$heap.Select(h => h.Size).Union($heap.Select(h => h.PreviousAddress)).Count(x => x == null)"
ask "new { Sum = $heap.Sum(h => h.Size), Min = $heap.Min(h => h.Size), Max = $heap.Max(h => h.Size) },d"
ask "$heap.Average(h => h.Size)"
ask -g "$heap.GroupBy(h => h.Size).Select(g => new { g.Key, N = g.Count() }),d"
ask -g "$heap.GroupBy(h => h.Size).Select(g => new { g.Key, N = g.Count() }).Where(x => x.Key != 100).OrderBy(x => x.N),d"
ask "$heap.GroupBy(h => h.Size),d"
ask "$heap.GroupBy(h => h.Size).Last().Key"
ask "$heap.OrderBy(h => h.Size).Select(h => h.Size),d"
ask "$heap.OrderByDescending(h => h.Size).Select(h => h.Size),d"
ask "$heap.OrderByDescending(h => h.Size).Take(3).Select(h => h.Size),d"
ask "$heap.OrderBy(h => h.Size).Take(3).Select(h => h.Size),d"
# null is equal to it, and nothing else is; it is neither less nor greater, and no condition.
ask "$heap.Count(h => h.Size == null) + $heap.Count(h => null != h.Size) == $heap.Count()"
ask "$heap.Count(h => h.Size == h.PreviousAddress),d"
ask "$heap.Count(h => h.Size < 100) + $heap.Count(h => h.Size >= 100) + $heap.Count(h => h.Size == null) == $heap.Count()"
ask "$heap.Count(h => !h.FreeEvent),d"
# What is made of it is absent.
ask "$heap[5].Size * 2"
ask "$heap[5].FreeStack.Contains(\"a\")"
ask "\"size \" + $heap[5].Size"
ask "$heap.Aggregate(new { Sum = 0, N = 0 }, (s, h) => new { Sum = s.Sum + h.Size, N = s.N + 1 }),d"
# A method without a result has none.
ask "$heap[5].TimeStart.SeekTo()"
