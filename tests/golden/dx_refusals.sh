# SPDX-License-Identifier: MIT
# What can never be true, or means nothing, is refused with what to write, and has no answer that looks like one.
cp "$SOURCE/tests/golden/traces/libstdcxx.xht" server.xht
heap='@$cursession.TTD.Data.Heap()'
ask() {
	echo "> $*"
	"$XHEAP" dx server.xht "$@" 2>&1
	status=$?
	[ $status = 0 ] || echo "status $status"
}
where() {
	ask "$heap.Where(h => $*).Count(),d"
}
# Words that a member never has.
where 'h.Action == "alloc"'
where 'h.Action == "Reserve"'
where '"Realloc" != h.Action'
where 'h.State == "Double"'
where 'h.State == "invalid"'
where 'h.End == "leak"'
where 'h.Action.Contains("alloc")'
where 'h.Action.EndsWith("lloc")'
ask '@$curprocess.TTD.Events.Where(t => t.Type == "ThreadCreate")'
ask '@$curprocess.TTD.Events.Where(t => t.Type == "Exception").Count()'
ask '@$cursession.Processes.Where(p => p.End == "crash")'
ask '@$cursession.Processes.Where(p => p.End == "exit").Count()'
ask '@$cursession.TTD.Calls("libc!free").Where(c => c.EventType == "call")'
ask "$heap.Select(h => new { What = h.Action }).Where(x => x.What == \"free\")"
ask "$heap.GroupBy(h => h.Action).First(g => g.Key == \"free\")"
ask "$heap.Select(h => h.Action).Contains(\"free\")"
# Functions are those that the trace has, and those that xheap knows.
where 'h.Function == "libc!malloc"'
where 'h.Function == "Malloc"'
where 'h.Function == "pvalloc"'
where 'h.Function == "operator new"'
ask '@$cursession.TTD.Data.Allocations().Count(a => a.FreeFunction == "delete")'
ask '@$cursession.TTD.Calls("libc!malloc").Where(c => c.Function == "libc!malloc")'
where 'h.Caller.Function == "server!main"'
where 'h.Frames.Any(f => f.Function == "operator!=")'
# What is never equal.
where 'h.Frames.Contains("handle")'
where 'h.Caller == "handle"'
where 'h.Thread == 5'
where 'h.Thread == h.Process'
where 'h.TimeStart == h.Size'
ask "$heap.Select(h => h.Address).Except(@\$cursession.TTD.Data.Allocations()).Count()"
ask "$heap.Select(h => h.Frames.First()).Contains($heap[3].Frames[0])"
# Words of other languages and debuggers.
ask '@$cursession.TTD.Data.Heap().Length()'
ask '@$cursession.TTD.Data.Heap().Length'
ask '@$cursession.TTD.Data.Heap().SelectMany(h => h.Frames)'
ask '@$cursession.TTD.Data.Heap().Sort(h => h.Size)'
ask '@$cursession.TTD.Data.Heap().Filter(h => h.Size > 5)'
ask '@$cursession.TTD.Data.Heap().ToList()'
ask '@$cursession.TTD.Data.Heap().Reverse()'
ask '@$cursession.TTD.Data.Heap().FirstOrDefault()'
ask '@$cursession.TTD.Data.Heap().First().SystemTime'
ask '@$cursession.TTD.Data.Heap().First().Tid'
ask '@$cursession.TTD.Data.Heap().First().Bytes'
ask '@$cursession.TTD.Data.Heap().First().Leaked'
ask '@$cursession.TTD.Data.Allocations().First().Leaked'
ask '@$cursession.TTD.Data.Allocations().First().Type'
ask '@$cursession.TTD.Data.Allocations().First().Callstack'
ask '@$cursession.Processes.First().Pid'
ask '@$curthread.Tid'
ask '@$cursession.TTD.Data.Heap().First().Function.Size'
ask '@$cursession.TTD.Data.Heap().First().Stack.Split(";")'
ask '@$cursession.TTD.Data.Heap().First(h => h.Action == "ReAlloc").Parameters.size'
ask '@$cursession.TTD.Data.Allocations().Count(a => a.End == "leak")'
where 'h.Size between 1 and 5'
where 'h.Size in [8, 16]'
where 'h.Size == 8 or 16'
where 'h.Function contains "mal"'
where 'not h.Freed'
where 'h.Size <> 5'
ask 'SELECT COUNT(*) FROM heap'
ask 'from h in heap select h'
ask 'k'
ask 'lm'
ask '@$cursession.TTD.Data.Heap().Where(x -> x.Size)'
ask '@$cursession.TTD.Data.Heap().Where(Size > 5)'
ask '@$cursession.TTD.Data.Heap().OrderBy(Size)'
ask '@$cursession.TTD.Data.Heap().Where(h => Size > 5)'
ask '@$cursession.TTD.Data.Heap().Where(h => h.Action == Alloc)'
ask '@$cursession.TTD.Data.Heap().Where(h => h.Function == malloc)'
ask '@$cursession.TTD.Data.Heap().Where(h => !h.Caller.Image)'
ask '!tt 50'
ask '@$position("1.2.3%")'
ask '@$cursession.TTD.Data.Heap().Where("abc".Contains("a") && Size > 3).Count()'
ask '@$cursession.TTD.Data.Heap().ElementAt(3)'
ask '@$cursession.TTD.Data.Heap().Count(h => h.Caller.Kind == "Python")'
