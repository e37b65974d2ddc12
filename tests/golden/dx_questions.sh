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
ask plain.xht -r1 '@$cursession.TTD.SetPosition("2us")'
