# SPDX-License-Identifier: MIT
# The queries that the documents show, as far as they concern heap calls, on traces of real programs; ready questions; the prompt; refusals.
ask() {
	echo "> $*"
	"$XHEAP" dx "$@" 2>&1
	status=$?
	[ $status = 0 ] || echo "status $status"
}
server=$SOURCE/tests/golden/traces/libstdcxx.xht
real=$SOURCE/tests/golden/traces/c.xht
cp "$server" server.xht
cp "$real" c.xht
ask c.xht -g '@$cursession.TTD.Data.Heap(),5'
ask c.xht -r1 '@$cursession.TTD.Data.Heap()[2]'
ask c.xht -r2 '@$cursession.TTD.Calls("libc!malloc").Where(c => c.ReturnValue != 0).Select(c => new { Time = c.TimeStart, Error = c.ReturnValue }).GroupBy(x => x.Error),2'
ask c.xht -g '@$cursession.TTD.Calls("libc!*").GroupBy(x => x.Function).Select(x => new { Function = x.First().Function, Count = x.Count() }).OrderByDescending(p => p.Count),d'
ask c.xht '@$cursession.TTD.Data.Heap().Where(h => h.TimeStart < @$create("Debugger.Models.TTD.Position", 0x20000, 0) && h.Action == "Alloc").Count()'
ask c.xht '@$cursession.TTD.Data.Heap().OrderBy(h => h.TimeStart).Last().TimeEnd.SeekTo()'
ask c.xht -g '@$cursession.TTD.Data.Leaks(),d,3'
ask server.xht -g '@$cursession.TTD.Data.FreedByOtherThread().GroupBy(b => b.FreeFunction).Select(g => new { By = g.First().FreeFunction, Blocks = g.Count(), Bytes = g.Sum(b => b.Size) }),d'
ask server.xht -g '@$cursession.TTD.Data.Largest(3).Select(b => new { b.Size, b.End, b.Function }),d'
ask server.xht -g '@$curprocess.Threads.OrderBy(t => t.UniqueId).Take(3)'
"$BUILD/tests/golden/make_trace" plain plain.xht
"$BUILD/tests/golden/make_trace" losses losses.xht
"$BUILD/tests/golden/make_trace" forks forks.xht
"$BUILD/tests/golden/make_trace" earlier earlier.xht
"$BUILD/tests/golden/make_trace" nested nested.xht
ask plain.xht -g '@$cursession.TTD.Utility.GetHeapAddress(0x7f0000010090)'
ask losses.xht -g '@$cursession.TTD.Data.Heap()'
ask losses.xht -r3 '@$cursession.TTD.Data.HeapAnalyze()'
MALLOC_PERTURB_=85 ask losses.xht '@$cursession.TTD.Data.HeapAnalyze().Select(f => f.Free).Except(@$cursession.TTD.Data.Heap()).Count()'
ask forks.xht -g '@$cursession.TTD.Data.Live(@$position("FA0:1")).Select(b => new { b.Address, b.Process }),x'
ask forks.xht -g '@$curprocess.TTD.Data.Heap()'
ask forks.xht -g '@$cursession.TTD.Data.Live(@$position("FA0:2")).Where(b => b.IsInherited)'
ask forks.xht '@$cursession.Processes[200].Heap'
ask plain.xht -g '@$curprocess.Heaps'
ask plain.xht -g '@$cursession.TTD.Data.Allocations().Select(b => new { b.Address, b.End, Begun = b.Event.Index, Ended = b.FreeEvent.Index, By = b.FreeEvent.Action })'
ask earlier.xht -g '@$cursession.TTD.Data.Live(@$position("0:1"))'
ask nested.xht -g '@$cursession.TTD.Data.Heap(false).SkipWhile(h => h.Index < 9),4'
ask nested.xht '@$cursession.TTD.Data.Heap().Count()'
ask plain.xht '@$cursession.TTD.Memory(0x1000, 0x2000, "r")'
ask plain.xht '@$curprocess.TTD.MemoryForPositionRange(0x1000, 0x2000, "r", 0, 5)'
ask plain.xht '@$curprocess.TTD.NextMemoryAccess("r", 0x1000, 4)'
ask plain.xht '@$curprocess.TTD.PrevMemoryAccess("r", 0x1000, 4)'
ask plain.xht '@$curframe'
ask plain.xht '@$cursession.TTD.Calls("app!main")'
ask c.xht '@$cursession.TTD.Calls("libc!aligned_alloc").Count()'
ask c.xht '@$cursession.TTD.Calls("libc!printf")'
ask c.xht '@$cursession.TTD.Calls("nosuch!aligned_alloc")'
ask plain.xht -h '@$cursession.TTD.Utility'
ask plain.xht -h '@$cursession.TTD.Data.Leaks().Take(2)'
ask plain.xht -h '@$cursession.TTD.Data.Heap()[0].TimeEnd'
ask plain.xht -h 'new { A = 1, B = "x" }'
ask plain.xht -h '@$curframe'
ask plain.xht '-v @$cursession.TTD.Utility'
ask plain.xht -n '@$curprocess.Threads'
ask plain.xht -r2 '@$curprocess.TTD.Threads[0]'
ask plain.xht '@$curprocess.TTD.Threads[1].@"ActiveTime".@"MinPosition".SeekTo()'
ask plain.xht '@$curprocess.TTD.Threads'
ask plain.xht '@$curprocess.TTD.Events.Where(t => t.Type == "ThreadCreated")'
ask c.xht '@$curprocess.TTD.Events.Where(t => t.Type == "ModuleLoaded").Where(t => t.Module.Name.Contains("libc.so"))'
ask c.xht '@$curprocess.TTD.Events.Where(t => t.Type == "ModuleUnloaded").Where(t => t.Module.Name.Contains("libc.so"))'
ask c.xht -r2 '@$curprocess.TTD.Events.Where(t => t.Type == "Exception").Select(e => e.Exception)'
ask plain.xht -g '@$curprocess.TTD.Events'
ask plain.xht '-5,d'
ask plain.xht 'dx'
ask plain.xht 'dx -gc 0 1'
ask plain.xht 'cursession.TTD'
ask plain.xht '@$curprocess = 5'
ask plain.xht '@$cursession.TTD.Data.Live("soon")'
ask plain.xht '@$cursession.TTD.Data.Live(101)'
ask plain.xht '@$cursession.TTD.Data.Heap().OrderBy(h => h.Size, (a, b) => b - a)'
ask plain.xht '@$cursession.TTD.Data.Heap().OrderBy(h => h.Size, (a, b) => "a")'
ask plain.xht '@$cursession.TTD.Data.Heap(),d, zz'
ask plain.xht '@$cursession.TTD.Data.Heap(),d,[@$cursession.Procesess.Count()]'
ask plain.xht '@$cursession.TTD.Data.Heap(),'
ask plain.xht '@$cursession.TTD.Data.Heap().Where(h => h.Sise > 1)'
ask plain.xht '@$cursession.TTD.Data.Heap().OrdrBy(h => h.Size)'
ask plain.xht '@$cursession.TTD.Data.Heap().Where(h => h.Action > 1)'
ask plain.xht -memory 1M '"a".PadLeft(60000).Replace(" ", "abcdefghijklmnopqrstuvwxyz")'
cat > lines.dx <<'END'
// A session at the prompt.
0:000> dx @$big = 1000
0:0:000> dx @$cursession.TTD.Data.Heap().Count(h => h.Size > @$big)
!tt 1770:1
!positions
dx @$curprocess.Heap
dx -g @$curprocess.Heap.ByHeap,d
!tt 50
!tt 101
!tt FFFFFFFFFF:0
dx Debugger.State.UserVariables
dx @$vars.Remove("big")
dx @$big
quit
dx "behind the end"
END
ask plain.xht -f lines.dx
# Until a position is set, it is the end: of the trace, or of the process.
cat > end.dx <<'END'
dx @$cursession.TTD.Data.Live().Count(),d
dx @$cursession.Processes[200].TTD.Data.Live().Count(),d
dx @$cursession.Processes[200].Heap
dx @$curprocess.Heap.Count,d
!positions
dx -extra @$cursession.TTD
!tt 0
dx @$cursession.TTD.Data.Live().Count(),d
dx @$curprocess.Heap.Count,d
dx @$cursession.Processes[200].Heap.Position
END
ask forks.xht -f end.dx
cat > switch.dx <<'END'
dx @$curprocess.Id,d
dx @$cursession.Processes[200].SwitchTo()
dx @$curprocess.Id,d
dx @$curthread.Id,d
dx @$cursession.Processes.Single(p => p.Id == 100).Threads.First().SwitchTo()
dx @$curthread.Process.Id,d
END
ask forks.xht -f switch.dx
ask plain.xht -format csv '@$cursession.TTD.Data.Live(@$position("1770:1"))'
# Events that are found by the ordinals of points are those of a pass over the trace, also where windows of points meet.
"$BUILD/tests/golden/make_trace" random random.xht 5 70000
ask random.xht '@$cursession.TTD.Data.Allocations().Select(b => b.Event).Except(@$cursession.TTD.Data.Heap()).Count(),d'
ask random.xht '@$cursession.TTD.Data.Allocations().Where(b => b.End == "free" || b.End == "realloc").Select(b => b.FreeEvent).Except(@$cursession.TTD.Data.Heap()).Count(),d'
ask random.xht -memory 16M '@$cursession.TTD.Data.Allocations().Where(b => b.End == "free").Where(b => b.FreeEvent.Address != b.Address || b.FreeEvent.TimeStart != b.TimeEnd).Count(),d'
ask random.xht -memory 16M '@$cursession.TTD.Data.Allocations().Where(b => b.End == "realloc").Where(b => b.FreeEvent.PreviousAddress != b.Address).Count(),d'
# Which part of a query is a plan, or why none is: the last lines of -explain.
explain() {
	echo "> $*"
	"$XHEAP" dx c.xht -explain "$@" 2>&1 | sed -n '/, column [0-9]*: /,$p'
}
explain '@$cursession.TTD.Data.Heap().Where(h => h.Size > 100).GroupBy(h => h.Stack).Select(g => new { N = g.Count(), B = g.Sum(h => h.Size) }).OrderByDescending(x => x.B).ThenBy(x => x.B / x.N).Skip(1).Take(5)'
explain '@$cursession.TTD.Data.Allocations().Where(a => a.IsRealloc).OrderByDescending(a => a.Size).Select(a => new { S = a.Size, F = a.Function })'
explain '@$cursession.TTD.Data.Allocations().Count(a => a.Size > 5)'
explain '@$cursession.TTD.Data.Heap().Where(h => h.TimeStart > h.TimeEnd).GroupBy(h => h.Size).Select(g => g.Count())'
explain '@$cursession.TTD.Data.Heap().GroupBy(h => h.Stack).Select(g => g.Last())'
explain '@$cursession.TTD.Data.Heap().OrderBy(h => h.Size)'
# Arithmetic, which is none where it may be an error.
explain '@$cursession.TTD.Data.Allocations().Where(a => a.Size * 2 - a.Usable > -4).Sum(a => a.Lifetime / 1000)'
explain '@$cursession.TTD.Data.Allocations().GroupBy(a => a.Size / 16).Select(g => g.Sum(a => 100 - a.Size))'
explain '@$cursession.TTD.Data.Allocations().Where(a => a.Size / a.Index > 4)'
explain '@$curprocess.TTD.Data.Heap().Where(h => h.Size > 5)'
explain '@$cursession.TTD.Data.FreedByOtherThread().Count(b => b.Size > 5)'
explain '@$cursession.TTD.Data.Heap().Where(h => h.Stack.Contains("main") && h.Size > 5).Count(h => h.Thread.Id > 0)'
explain '@$cursession.TTD.Data.Allocations().Where(a => a.FreeThread.Id / (a.FreeThread.Id - a.FreeThread.Id) > 1)'
explain '@$cursession.TTD.Data.Heap().Where(h => h.Size > 5).Average(h => h.Size)'
explain '@$cursession.TTD.Data.Allocations().Select(a => a.Lifetime).Max()'
