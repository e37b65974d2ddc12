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
# How much memory is needed at most, when, and of what.
ask server.xht '@$cursession.TTD.Data.Peak(),d'
ask server.xht '@$cursession.TTD.Data.Live(@$cursession.TTD.Data.Peak().Position).Sum(b => b.Size),d'
ask server.xht -g '@$cursession.TTD.Data.Peak().ByStack.Select(s => new { s.Caller, s.Bytes }).Take(2),d'
cp "$SOURCE/tests/golden/traces/processes.xht" processes.xht
ask processes.xht -g '@$cursession.Processes.Select(p => new { p.Name, p.TTD.Data.Peak().Bytes, p.TTD.Data.Peak().Position }),d'
ask processes.xht '@$cursession.TTD.Data.Peak().Bytes,d'
# Images that an exec put into one pid, one after the other.
ask processes.xht '@$cursession.Processes.Select(p => p.Id),d'
ask processes.xht '@$cursession.Processes[5644].Name'
ask processes.xht '@$cursession.Processes.Where(p => p.Id == 5644).Select(p => p.Name)'
ask processes.xht -r0 '@$cursession.Processes[5640].Name'
# What is done most.
ask plain.xht -g '@$cursession.TTD.Data.Heap().GroupBy(h => h.Action).Select(g => new { g.Key, Count = g.Count() }).OrderByDescending(x => x.Count),d'
ask plain.xht '@$cursession.TTD.Data.Heap().GroupBy(h => h.Action).Last().Key'
ask plain.xht '@$cursession.TTD.Data.Heap().GroupBy(h => h.Action).Select(g => g.Kay)'
# Which function allocates most; what a stack has.
ask server.xht -g '@$cursession.TTD.Data.Heap().GroupBy(h => h.Caller).Select(g => new { g.Key, Bytes = g.Sum(h => h.Size) }).OrderByDescending(x => x.Bytes).Take(4),d'
ask server.xht -noPlan -g '@$cursession.TTD.Data.Heap().GroupBy(h => h.Caller.Function).Select(g => new { g.Key, Bytes = g.Sum(h => h.Size) }).OrderByDescending(x => x.Bytes).Take(4),d'
ask server.xht -g '@$cursession.TTD.Data.Leaks().Select(l => new { l.Caller, l.Caller.File, l.Caller.Line, l.Bytes }).Skip(1).Take(2),d'
ask server.xht '@$cursession.TTD.Data.Heap().Count(h => h.Frames.Any(f => f.Function.Contains("handle"))),d'
ask server.xht '@$cursession.TTD.Data.Heap().Count(h => h.Stack.Contains("handle")),d'
ask server.xht '@$cursession.TTD.Data.Heap()[5].Stack[1]'
ask server.xht '@$cursession.TTD.Data.Heap()[0].FreeStack[0]'
ask server.xht '@$cursession.TTD.Data.Allocations().First(a => a.End == "free").FreeStack[0].Function'
ask server.xht '@$cursession.TTD.Data.Heap()[5].Function[0]'
# What leaks, by stack.
ask server.xht -g '@$cursession.TTD.Data.Leaks().Where(l => l.Stack.Contains("put(int")),d'
ask server.xht -n -g '@$cursession.TTD.Data.Leaks(),d,1'
ask server.xht -format csv '@$cursession.TTD.Data.Leaks(),d,1'
ask server.xht -g '@$cursession.TTD.Data.Heap().GroupBy(h => h.Stack).Select(g => new { g.Key, N = g.Count() }).OrderByDescending(x => x.N).Take(2),d'
# Which block a free gave back, when a block was freed, and how it ended.
ask plain.xht -r0 '@$cursession.TTD.Data.Heap()[5].Block.Size == @$cursession.TTD.Data.Heap()[5].AllocEvent.Size'
ask plain.xht '@$cursession.TTD.Data.Heap()[5].AllocEvent'
ask plain.xht -g '@$cursession.TTD.Data.Heap().Where(h => h.Action != "Free").Select(h => new { h.Freed, h.End, Free = h.FreeEvent.Index }),d'
ask plain.xht '@$cursession.TTD.Data.Heap().Where(h => h.Action != "Free").Count(h => !h.Freed) == @$cursession.TTD.Data.Heap().Where(h => h.Action != "Free").Count(h => !h.FreeEvent)'
# What is live at 4 us, and at half time.
ask plain.xht '@$cursession.TTD.Data.Live("4us").Count(),d'
ask plain.xht '@$cursession.TTD.Data.Live(50).Sum(b => b.Size),d'
ask plain.xht '@$cursession.TTD.Data.Live("9s").Count() == @$cursession.TTD.Data.Live(100).Count()'
ask plain.xht -g '@$cursession.TTD.Data.Growth(25, "50%").Select(s => new { s.Count, s.Bytes }),d'
ask plain.xht '@$cursession.TTD.Data.Live(4us).Count() == @$cursession.TTD.Data.Live("4us").Count()'
ask plain.xht '@$cursession.TTD.Data.Growth("1us", "9s").Count()'
ask plain.xht -r1 '@$cursession.TTD.SetPosition("2us")'
# Times in conditions, with units as sizes have them; a position without a step, as it is printed, names a nanosecond.
for time in 4us '"4us"' '0.004 ms' '"FA0:0"' '@$position("FA0:0")'; do
	ask plain.xht "@\$cursession.TTD.Data.Heap().Count(h => h.TimeStart < $time),d"
done
ask plain.xht '@$cursession.TTD.Data.Heap().Count(h => h.TimeStart.Sequence < 4000) == @$cursession.TTD.Data.Heap().Count(h => 4us > h.TimeStart)'
ask plain.xht '@$cursession.TTD.Data.Heap().Count(h => h.TimeEnd >= 4us) + @$cursession.TTD.Data.Heap().Count(h => h.TimeEnd < 4us) == @$cursession.TTD.Data.Heap().Count()'
ask plain.xht '@$cursession.TTD.Data.Heap().Count(h => h.TimeEnd == "FA0:1"),d'
ask plain.xht '@$cursession.TTD.Data.Allocations().Count(a => a.Lifetime > 1us && a.Lifetime < 1.5 ms),d'
ask plain.xht '@$cursession.TTD.Data.SlowCalls("100ns").Count() == @$cursession.TTD.Data.SlowCalls(100).Count()'
ask plain.xht '@$cursession.TTD.Data.SlowCalls(0.1us).Count() == @$cursession.TTD.Data.SlowCalls(100).Count()'
ask plain.xht '@$cursession.TTD.Data.SlowCalls("soon").Count()'
ask plain.xht '@$cursession.TTD.Data.SlowCalls(-1us).Count()'
ask plain.xht '@$cursession.TTD.Data.Live("FA0").Count() == @$cursession.TTD.Data.Live("4us").Count()'
ask plain.xht -r1 '@$cursession.TTD.Data.Live(@$position("1F4")).Count(),d'
for word in abc FACE 1f4 101; do
	ask plain.xht "@\$cursession.TTD.Data.Live(\"$word\")"
done
ask plain.xht 'new { A = 1.5GB, B = 64 KB, C = 2 ms, D = 1.5s, E = 5T }'
ask plain.xht '64 parsecs'
ask plain.xht '10min'
ask plain.xht '99999999999T'
ask plain.xht '@$cursession.TTD.Data.Heap().Count(h => h.TimeStart < 4000)'
ask plain.xht '@$cursession.TTD.Data.Heap().Count(h => h.TimeStart < "soon")'
ask plain.xht '@$cursession.TTD.Data.Allocations().Count(a => a.Lifetime > "2ms")'
ask plain.xht '@$cursession.TTD.Data.Heap().Count(h => h.Size > "4K")'
ask plain.xht '010 + 1'
ask plain.xht '~0 == -1 && ~0x0 == 0xFFFFFFFFFFFFFFFF'
